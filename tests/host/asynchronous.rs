//! Contract: asynchronous copies arrive when PTX says that they have, and not before: a CuTe SGEMM with a pipeline of three
//! stages runs unchanged and is exact, in every mode; a wait that is too weak, a group that is never committed, a barrier
//! that is missing, an address that is misaligned or outside, each is found.

#![cfg(feature = "host")]

mod texts;

use crate::host_common;
use crate::together::CUTE;

use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{Finding, FindingKind, Report, Target};
use host_common::{Shape, Tensor, Text, actor, element, line, line_number};
use texts::{OTHER_COPIES, other_copies, pipelined, single};

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    let mut all = vec![
        (pipelined(), Mode::ALL),
        (other_copies(), &[Mode::Bounds][..]),
        (weak_wait(), &[Mode::Plain, Mode::Races]),
        (no_group(), &[Mode::Races]),
        (no_barrier(), &[Mode::Races]),
        (overwritten(), &[Mode::Races]),
        (waits(), Mode::ALL),
        (too_early(), &[Mode::Plain, Mode::Races]),
        (zeros(), Mode::ALL),
        (leaves(), Mode::ALL),
    ];
    all.extend(UNCHECKED.map(|unchecked| (unchecked.text(), &[Mode::Bounds][..])));
    all.extend(written_source().map(|text| (text, &[Mode::Races][..])));
    all.extend(other_lanes().map(|text| (text, &[Mode::Races][..])));
    all.extend(WRONG_SPACES.map(|(copy, _)| (wrong_space(copy), Mode::ALL)));
    all
}

const M: usize = 50;
const N: usize = 44;

/// Small integers: every order of summation is exact.
fn a(i: usize, k: usize) -> f32 {
    ((i * 7 + k * 3) % 11) as f32 - 5.0
}

fn b(k: usize, j: usize) -> f32 {
    ((k * 5 + j * 13) % 9) as f32 - 4.0
}

fn run(kernel: &Text, mode: Mode, k: usize, offset: usize) -> (bool, Report) {
    run_entry(kernel, 0, mode, k, offset)
}

/// Runs an entry for a K, with A so many elements behind its allocation; whether every element of C is right, and what was
/// found.
fn run_entry(kernel: &Text, entry: usize, mode: Mode, k: usize, offset: usize) -> (bool, Report) {
    let ints = [M as i32, N as i32, k as i32];
    let smem = 4 * 3 * (384 + 256);
    let shape = Shape { entry, grid: [2, 2, 1], block: [64, 1, 1], smem, ints: &ints };
    let a_matrix = Tensor::read("A", M, k, a).padded(k, offset, 0, f32::NAN);
    let mut mats = [a_matrix, Tensor::read("B", k, N, b), Tensor::write("C", M, N)];
    let report = kernel.run(mode, &shape, &mut mats);
    let want = |i, j| (0..k).map(|l| f64::from(a(i, l)) * f64::from(b(l, j))).sum::<f64>() as f32;
    let right = (0..M * N).all(|e| mats[2].at(e / N, e % N).to_bits() == want(e / N, e % N).to_bits());
    (right, report)
}

fn of(report: &Report, kind: FindingKind) -> &Finding {
    report.findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("no {kind:?}: {report}"))
}

#[test]
fn a_pipeline_of_three_stages_is_exact_and_nothing_is_found() {
    for mode in Mode::ALL {
        // No more tiles than are in flight, more, and a last one that is not full.
        for k in [4, 8, 16, 24, 68] {
            let (right, report) = run(&pipelined(), *mode, k, 0);
            assert!(report.is_clean(), "{mode}, K = {k}: {report}\n{}", report.printed);
            assert!(right, "{mode}, K = {k}");
        }
    }
}

#[test]
fn every_width_and_kind_of_copy_is_exact() {
    for entry in 1..=OTHER_COPIES.len() {
        // Whole tiles along K: columns past the edge of B are never looked at.
        let (right, report) = run_entry(&other_copies(), entry, Mode::Bounds, 40, 0);
        assert!(report.is_clean(), "{entry}: {report}\n{}", report.printed);
        assert!(right, "{entry}");
    }
}

/// The kernel with a defect that shows as a race, or a read of what nobody wrote, on dynamic shared memory.
fn is_found(broken: &Text) {
    let (_, report) = run(broken, Mode::Races, 68, 0);
    assert!(!report.is_clean());
    for finding in &report.findings {
        assert!(matches!(finding.kind, FindingKind::Race | FindingKind::Uninitialized), "{finding}");
        assert!(matches!(finding.target, Some(Target::DynamicShared { .. })), "{finding}");
    }
    let race = of(&report, FindingKind::Race);
    let earlier = race.other.as_ref().expect("a race has two sides");
    assert!(race.write || earlier.write, "{race}");
    assert_eq!(race.line().map(|l| l.file.as_str()), Some("pipelined.cu"), "{race}");
}

fn weak_wait() -> Text {
    pipelined().with("cp_async_wait<Stages - 2>();", "cp_async_wait<Stages - 1>();")
}

#[test]
fn a_wait_that_is_too_weak_is_found() {
    is_found(&weak_wait());
    for mode in [Mode::Plain, Mode::Races] {
        assert!(!run(&weak_wait(), mode, 68, 0).0, "{mode}: a right result by chance");
    }
}

fn no_group() -> Text {
    pipelined().with("cp_async_fence();  // the group of the next tile", "")
}

#[test]
fn a_group_that_is_not_committed_is_found() {
    is_found(&no_group());
}

fn no_barrier() -> Text {
    let whole =
        "__syncthreads();  // every thread's part of this tile is there, and nobody reads the tile before it any more";
    pipelined().with(whole, "")
}

#[test]
fn a_missing_barrier_after_the_wait_is_found() {
    is_found(&no_barrier());
}

/// The tile goes where the one of this turn is.
fn overwritten() -> Text {
    pipelined().with("fetch(next, next % Stages);", "fetch(next, tile % Stages);")
}

#[test]
fn a_tile_that_is_overwritten_while_it_is_read_is_found() {
    let (_, report) = run(&overwritten(), Mode::Races, 68, 0);
    let race = of(&report, FindingKind::Race);
    assert!(race.other.is_some() && matches!(race.target, Some(Target::DynamicShared { .. })), "{report}");
}

#[test]
fn a_misaligned_source_is_found_in_every_mode() {
    for mode in Mode::ALL {
        let (_, report) = run(&pipelined(), *mode, 8, 1);
        let is_copy = |f: &&Finding| f.detail.contains("by cp.async");
        let finding = report.findings.iter().find(is_copy).unwrap_or_else(|| panic!("{mode}: {report}"));
        assert_eq!((finding.kind, element(finding)), (FindingKind::Misaligned, ("A", (0, 0))), "{mode}: {finding}");
        // In plain mode blocks run side by side, and any of them may be seen first.
        let thread = finding.who.and_then(|actor| actor.thread);
        assert_eq!((finding.bytes, thread), (16, Some([0, 0, 0])), "{mode}: {finding}");
        assert!(*mode == Mode::Plain || finding.who == actor(0, 0), "{mode}: {finding}");
    }
}

/// A copy without its predicate, the first element that it reads outside, and the end of its line.
#[derive(Clone, Copy)]
struct Unchecked {
    from: &'static str,
    to: &'static str,
    outside: (&'static str, (i64, i64)),
    comment: &'static str,
}

/// With 8 rows of B, what lies behind a row is the next one, so that only behind the last row is outside.
const UNCHECKED: [Unchecked; 2] = [
    Unchecked { from: "copyA.with(in_A)", to: "copyA.with(true)", outside: ("A", (50, 0)), comment: "// A\n" },
    Unchecked { from: "copy_if(copyB, tBpB, tBgB", to: "copy(copyB, tBgB", outside: ("B", (8, 0)), comment: "// B\n" },
];

impl Unchecked {
    fn text(self) -> Text {
        pipelined().with(self.from, self.to)
    }
}

#[test]
fn a_source_outside_of_its_matrix_is_found_at_the_copy() {
    for unchecked in UNCHECKED {
        let (broken, Unchecked { outside, comment, .. }) = (unchecked.text(), unchecked);
        let (_, report) = run(&broken, Mode::Bounds, 8, 0);
        let finding = of(&report, FindingKind::OutOfBounds);
        assert_eq!((element(finding), finding.write), (outside, false), "{report}");
        assert_eq!(line_number(finding), Some(broken.line_of(comment)), "{report}");
    }
}

fn run_single(kernel: &Text, mode: Mode) -> (Vec<f32>, Report) {
    let mut mats = [Tensor::read("A", 1, 64, a), Tensor::write("C", 1, 64), Tensor::write("D", 1, 64)];
    mats[2].data = (0..64).map(|i| i as f32).collect();
    let report = kernel.run(mode, &line(1, 64), &mut mats);
    (mats[1].data.clone(), report)
}

fn waits() -> Text {
    single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);
         cp_async_wait<0>();
         p.c[t] = slot[t];",
    )
}

fn too_early() -> Text {
    single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);  // the copy
         p.c[t] = slot[t];  // too early
         cp_async_wait<0>();",
    )
}

#[test]
fn words_are_copied_at_the_wait_and_not_before() {
    for mode in Mode::ALL {
        let (c, report) = run_single(&waits(), *mode);
        assert!(report.is_clean(), "{mode}: {report}");
        assert_eq!(c, (0..64).map(|t| a(0, t)).collect::<Vec<_>>(), "{mode}");
    }
    // Before the wait the same thread sees what was there, and mode races says so.
    let early = too_early();
    let (c, report) = run_single(&early, Mode::Plain);
    assert!(report.is_clean() && c == [-1.0; 64], "{c:?}");
    let (_, report) = run_single(&early, Mode::Races);
    let race = of(&report, FindingKind::Race);
    assert_eq!((race.write, line_number(race)), (true, Some(early.line_of("// the copy"))), "{report}");
    let earlier = race.other.as_ref().expect("two sides");
    assert_eq!((Some(earlier.who), earlier.write), (race.who, false), "{report}");
    assert_eq!(earlier.line().map(|l| l.line), Some(early.line_of("// too early")));
}

fn zeros() -> Text {
    single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS_ZFILL<float>::copy(p.a[t < 40 ? t : 1000], slot[t], t < 40);
         cp_async_fence();
         cp_async_wait(Int<0>{});
         p.c[t] = slot[t];",
    )
}

#[test]
fn what_is_not_read_is_zero() {
    for mode in Mode::ALL {
        let (c, report) = run_single(&zeros(), *mode);
        assert!(report.is_clean(), "{mode}: {report}");
        assert_eq!(c, (0..64).map(|t| if t < 40 { a(0, t) } else { 0.0 }).collect::<Vec<_>>(), "{mode}");
    }
}

/// A barrier on each side of the write orders nothing, as the copy goes on until the wait; with a wait ahead of it all is well.
fn written_source() -> [Text; 2] {
    let kernel = single(
        "SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.d[t], slot[t]);
         __syncthreads();
         p.d[63 - t] = 1.0f;
         __syncthreads();
         cp_async_wait<0>();
         p.c[t] = slot[t];",
    );
    let barrier = "__syncthreads();\n         p.d[63";
    let waits = kernel.with(barrier, &format!("cp_async_wait<0>();\n         {barrier}"));
    [kernel, waits]
}

#[test]
fn a_source_that_another_thread_writes_before_the_wait_is_a_race() {
    let [kernel, waits] = written_source();
    let (_, report) = run_single(&kernel, Mode::Races);
    let race = of(&report, FindingKind::Race);
    assert_eq!((race.write, element(race)), (false, ("D", (0, 0))), "{report}");
    assert_eq!(race.other.as_ref().map(|e| e.write), Some(true), "{report}");
    let (_, report) = run_single(&waits, Mode::Races);
    assert!(report.is_clean(), "{report}");
}

/// With `__syncwarp` after the wait, without it, and with it ahead of the wait, where it is of no use.
fn other_lanes() -> [Text; 3] {
    let kernel = single(
        "SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);
         cp_async_wait<0>();
         __syncwarp();  // of the warp
         p.c[t] = slot[t ^ 1];",
    );
    let without = kernel.with("__syncwarp();  // of the warp", "");
    let ahead = without.with("cp_async_wait<0>();", "__syncwarp(); cp_async_wait<0>();");
    [kernel, without, ahead]
}

#[test]
fn another_lane_sees_the_copy_after_the_wait_and_syncwarp() {
    let [kernel, without, ahead] = other_lanes();
    let (c, report) = run_single(&kernel, Mode::Races);
    assert!(report.is_clean() && c[5] == a(0, 4), "{report}");
    for broken in [without, ahead] {
        let (_, report) = run_single(&broken, Mode::Races);
        assert!(!report.is_clean());
    }
}

fn leaves() -> Text {
    CUTE.text(
        "leaves",
        "#include <cute/arch/copy_sm80.hpp>
         struct Params { float const *a; float *c; };
         extern \"C\" __global__ void leaves(Params const p) {
           __shared__ float slot[32];
           slot[threadIdx.x] = -1.0f;
           if (blockIdx.x == 0) { cute::SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[threadIdx.x], slot[threadIdx.x]); }
           if (blockIdx.x == 1) { cute::cp_async_wait<0>(); p.c[threadIdx.x] = slot[threadIdx.x]; }
         }",
    )
}

#[test]
fn copies_that_nobody_waits_for_end_with_their_thread() {
    // Nothing is left over for the second block, and a copy into a slot that another thread has read is a race.
    for mode in Mode::ALL {
        let mut mats = [Tensor::read("A", 1, 32, a), Tensor::write("C", 1, 32)];
        leaves().run_clean(*mode, &line(2, 32), &mut mats);
        assert_eq!(mats[1].data, [-1.0; 32], "{mode}");
    }
}

const WRONG_SPACES: [(&str, &str); 2] = [
    ("copy(p.a[t], p.c[t]);", "the destination of cp.async does not lie in shared memory"),
    ("copy(slot[t ^ 1], slot[t]);", "the source of cp.async lies in shared memory"),
];

fn wrong_space(copy: &str) -> Text {
    single(&format!("slot[t] = 0.0f; SM80_CP_ASYNC_CACHEALWAYS<float>::{copy}"))
}

#[test]
fn only_shared_memory_is_a_destination_and_only_other_memory_a_source() {
    for (copy, detail) in WRONG_SPACES {
        for mode in Mode::ALL {
            let (_, report) = run_single(&wrong_space(copy), *mode);
            let finding = of(&report, FindingKind::Undefined);
            assert_eq!((finding.detail.as_str(), finding.who), (detail, actor(0, 0)), "{mode}: {report}");
        }
    }
}

#[test]
fn the_compiler_refuses_what_no_instruction_copies() {
    use cutemplate::emit::SourceFile;
    use cutemplate::exec::cxx::{Program, Source};
    let refused = ["ALWAYS<short>::copy(v, v)", "GLOBAL<float>::copy(w, w)"];
    let copies = refused.map(|copy| format!("SM80_CP_ASYNC_CACHE{copy};\n"));
    let kernel = single(&format!("short v;\nfloat w;\n{}", copies.concat()));
    let files = [SourceFile { name: "single.cu".into(), text: kernel.text.clone() }];
    let error = Program::compile(Source::new("single", &files), Mode::Plain, &host_common::options());
    let error = error.expect_err("refused").to_string();
    let asserted = |line: &&str| line.contains("error: static assertion") && line.contains("which cp.async has");
    assert_eq!(error.lines().filter(asserted).count(), refused.len(), "{error}");
    for copy in refused {
        assert!(error.contains(&format!("single.cu:{}:", kernel.line_of(copy))), "{copy}: {error}");
    }
}
