//! Feeds each check with the mistake that it catches: recipes cannot reach all of these, because an earlier check fails
//! first.

use super::*;
use crate::tiling::{Completion, CopyOp, Engine, Global, Guard, Order, Place, Role, Task, TileCopy};

fn checks() -> Checks {
    Checks::new("Test", &Targets::default())
}

fn codes(checks: Checks) -> Vec<Code> {
    checks.found.iter().map(|d| d.code).collect()
}

fn layout(text: &str) -> Layout {
    text.parse().expect("a layout")
}

/// The tile of a thread-value layout, moved in vectors of two bytes.
fn tiling(thr: &str, val: &str) -> Tiling {
    let (tile, _) = tv_layout(&mut checks(), &layout(thr), &layout(val), 1).expect("a tile");
    let place = Place::Global(Global { align: Bytes(1), ..Global::matrix("A") });
    let engine = Engine::Threads { op: CopyOp::Universal(Bytes(2)), threads: layout(thr), values: layout(val) };
    Tiling {
        tile: [tile[0], tile[1], 1],
        smem: Vec::new(),
        pipelines: Vec::new(),
        copies: vec![TileCopy {
            name: "Y",
            what: "store of Y",
            tile,
            dtype: DType::U8,
            from: Place::Threads,
            to: place,
            engine,
            guard: Guard::Elements,
            completes: Completion::Program,
            split: None,
        }],
        mmas: Vec::new(),
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: layout(thr).size() as u32, registers: None }],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

#[test]
fn a_tile_that_is_covered_once_passes() {
    let mut c = checks();
    let (thr, val) = (layout("(4,64):(64,1)"), layout("(16,8):(8,1)"));
    let (tile, tv) = tv_layout(&mut c, &thr, &val, 8).expect("legal");
    let fragments = tv_tile(&mut c, &tv, &val, 8, 0).expect("legal");
    assert!(proofs(&mut c, &tiling("(4,64):(64,1)", "(16,8):(8,1)"), "help") && c.found.is_empty());
    assert_eq!((tile, fragments.values), ([64, 512], [8, 16, 1]));
    assert_eq!(tv.to_string(), "((64,4),(8,16)):((512,16),(64,1))");
}

#[test]
fn flaws_of_a_tiling_are_told_once_for_each_law() {
    let told = |tiling: &Tiling| {
        let mut c = checks();
        assert!(!proofs(&mut c, tiling, "help"));
        codes(c)
    };
    // Values that leave the row, and a tile that has an element more.
    let mut down = tiling("(1,4):(4,1)", "(2,2):(1,2)");
    assert_eq!(told(&down), [Code::VectorContiguity]);
    down.copies.push(down.copies[0].clone());
    assert_eq!(told(&down), [Code::VectorContiguity]);
    let mut other = tiling("(1,4):(4,1)", "(1,2):(2,1)");
    (other.copies[0].tile, other.tile) = ([1, 9], [1, 9, 1]);
    assert!(!told(&other).is_empty());
}

#[test]
fn shared_memory_beyond_the_smallest_target_is_caught() {
    let targets = Targets::new([Arch::Sm86, Arch::Sm90a]).expect("not empty");
    let mut c = checks();
    let check =
        |c: &mut Checks, bytes, stages| shared_memory(c, Bytes(bytes), stages, &targets, |limit| limit.to_string());
    check(&mut c, 99 << 10, Some(3));
    check(&mut c, 48 << 10, None);
    assert!(c.found.is_empty());
    check(&mut c, (99 << 10) + 1, Some(3));
    check(&mut c, (48 << 10) + 1, None);
    assert!(c.found[0].found.ends_with(", 33793 B for each of 3 stages"), "{:?}", c.found);
    assert_eq!(c.found[1].help, "49152 B");
    assert_eq!(codes(c), [Code::SharedMemory; 2]);
}

#[test]
fn registers_are_counted_for_the_thread_and_for_the_block() {
    let mut c = checks();
    let check = |c: &mut Checks, values: u64, threads, blocks| registers(c, Bytes(4 * values), threads, blocks, "help");
    assert_eq!(check(&mut c, 223, 256, 1), Some(255));
    assert_eq!(check(&mut c, 96, 256, 2), Some(128));
    assert!(c.found.is_empty(), "255 registers, and 256 threads of them fit in a block");
    for (values, threads, blocks) in [(224, 256, 0), (97, 512, 1), (97, 256, 2)] {
        assert_eq!(check(&mut c, values, threads, blocks), None);
    }
    assert_eq!(codes(c), [Code::Registers; 3]);
}

#[test]
fn an_end_without_decision_and_without_reason_says_so() {
    let defect = |checks: Checks, value: Option<()>| {
        let error = checks.finish(value).expect_err("there is none");
        assert!(matches!(&error, PlanError::Defect(_)) && error.diagnostics().is_empty(), "{error:?}");
        error.to_string()
    };
    let text = defect(checks(), None);
    assert!(
        text.starts_with("error[defect]: planning ended with neither a decision nor a reason against it\n"),
        "{text}"
    );
    assert!(text.contains("\n  with:     Test for sm_80, sm_90a\n"), "{text}");
    // What cannot fail and does is named, the first of it, whatever comes after.
    let mut c = checks();
    assert_eq!(c.sound("two is even", Ok::<_, String>(2)), Some(2));
    assert_eq!(c.sound("three is even", Err::<(), _>("3 % 2 = 1")), None);
    assert_eq!(c.attempt(|trial| trial.sound("five is even", Err::<(), _>("5 % 2 = 1"))), None);
    assert!(defect(c, Some(())).starts_with("error[defect]: three is even: 3 % 2 = 1\n"));
    let mut c = checks();
    c.attempt(|trial| trial.sound("five is even", Err::<(), _>("5 % 2 = 1")));
    assert!(defect(c, None).starts_with("error[defect]: five is even"), "a trial hides no defect");
    // The user's own mistakes come first: they may be what made it fail.
    let mut c = checks();
    c.sound("three is even", Err::<(), _>("3 % 2 = 1"));
    thread_count(&mut c, 0, "help");
    let refused = c.finish(None::<()>).expect_err("refused");
    assert_eq!(refused.diagnostics().iter().map(|d| d.code).collect::<Vec<_>>(), [Code::ThreadCount]);
}
