//! Control, lanes, barriers, calls, printing.

use ptx_exec::FindingKind;
use ptx_exec::{Data, Modes, Module, TensorCores};

use crate::defects::launch;
use crate::forms::{Form, forms};
use crate::numbers::compute_on;

#[track_caller]
fn run(body: &str, blocks: u32, threads: u32) -> Vec<u32> {
    let (report, out) = launch(body, blocks, threads, Modes::ALL);
    assert!(report.is_clean(), "{}", report.findings[0]);
    out
}

#[test]
fn lanes_go_apart_and_meet_again() {
    let out = run(
        "mov.u32 %r6, 0;\nmov.u32 %r7, %r1;\nLOOP:\nsetp.eq.u32 %p1, %r7, 0;\n@%p1 bra END;\nadd.u32 %r6, %r6, %r7;\nsub.u32 %r7, %r7, 1;\n\
         bra LOOP;\nEND:\nactivemask.b32 %r8;\nadd.u32 %r6, %r6, %r8;\nst.global.u32 [%d4], %r6;",
        1,
        32,
    );
    assert_eq!(out[5], 15_u32.wrapping_sub(1));
    assert_eq!(out[31], 496 - 1);
}

#[test]
fn indexed_branches_go_where_their_index_says() {
    let out = run(
        "and.b32 %r6, %r1, 3;\nmov.u32 %r7, 9;\nts: .branchtargets A, B, C, D;\nbrx.idx %r6, ts;\nA:\nmov.u32 %r7, 1;\nbra D;\n\
         B:\nmov.u32 %r7, 2;\nbra D;\nC:\nmov.u32 %r7, 3;\nD:\nst.global.u32 [%d4], %r7;",
        1,
        32,
    );
    assert_eq!(out[..5], [1, 2, 3, 9, 1]);
}

#[test]
fn lanes_vote_and_reduce() {
    let out = run(
        "setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r6, %p1, -1;\nredux.sync.add.u32 %r7, %r1, -1;\nadd.u32 %r6, %r6, %r7;\n\
         and.b32 %r8, %r1, 1;\nmatch.any.sync.b32 %r9, %r8, -1;\nelect.sync %r10|%p2, -1;\nselp.u32 %r9, %r9, 0, %p2;\n\
         add.u32 %r6, %r6, %r9;\nst.global.u32 [%d4], %r6;",
        1,
        32,
    );
    assert_eq!((out[0], out[1]), (31_u32.wrapping_add(496).wrapping_add(0x5555_5555), 31 + 496));
}

/// Each half of a warp names its own lanes, and one half is complete before the other.
#[test]
fn lanes_that_name_different_members_are_on_their_own() {
    let named = "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r6, 0x0000ffff, 0xffff0000, %p1;\n";
    let out = run(
        &format!(
            "{named}and.b32 %r7, %r1, 1;\nsetp.eq.u32 %p2, %r7, 0;\nvote.sync.ballot.b32 %r8, %p2, %r6;\nredux.sync.add.u32 %r9, %r1, %r6;\n\
             elect.sync %r10|%p3, %r6;\nmatch.any.sync.b32 %r11, %r7, %r6;\nxor.b32 %r8, %r8, %r11;\nadd.u32 %r8, %r8, %r9;\n\
             add.u32 %r8, %r8, %r10;\nst.global.u32 [%d4], %r8;"
        ),
        1,
        32,
    );
    // For each half: the mask of even lanes, the mask of equal values, the sum of lane numbers, and the first lane.
    let expected = |l: u32| {
        let half = if l < 16 { 0xffff } else { 0xffff_0000_u32 };
        let (even, odd) = (half & 0x5555_5555, half & 0xaaaa_aaaa);
        let (sum, first) = if l < 16 { (120, 0) } else { (376, 16) };
        (even ^ if l.is_multiple_of(2) { even } else { odd }).wrapping_add(sum).wrapping_add(first)
    };
    assert_eq!(out[..32], (0..32).map(expected).collect::<Vec<u32>>());
    let late = "setp.ge.u32 %p2, %r1, 24;\n@%p2 bra LATE;\nbra MEET;\nLATE:\nmov.u32 %r7, 5;\nbra MEET;\nMEET:\n";
    // Each half synchronises by itself, and reads words of its own lanes.
    let body = format!(
        "{named}st.shared.u32 [%r5], %r1;\n{late}bar.warp.sync %r6;\nxor.b32 %r9, %r1, 15;\nshl.b32 %r9, %r9, 2;\nadd.u32 %r9, %r4, %r9;\n\
         ld.shared.u32 %r10, [%r9];\nst.global.u32 [%d4], %r10;"
    );
    assert_eq!(run(&body, 1, 32)[..32], (0..32).map(|l| l ^ 15).collect::<Vec<u32>>());
    // The other half has not synchronised with these lanes.
    let (report, _) = launch(&body.replace("%r1, 15", "%r1, 31"), 1, 32, Modes::ALL);
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::Race), "{report}");
}

#[test]
fn barriers_reduce() {
    let out = run(
        "setp.lt.u32 %p1, %r1, 40;\nbarrier.red.popc.aligned.u32 %r6, 0, %p1;\nbarrier.red.or.aligned.pred %p2, 0, %p1;\n\
         barrier.red.and.aligned.pred %p3, 0, %p1;\nselp.u32 %r7, 100, 0, %p2;\nselp.u32 %r8, 1000, 0, %p3;\nadd.u32 %r6, %r6, %r7;\n\
         add.u32 %r6, %r6, %r8;\nst.global.u32 [%d4], %r6;",
        1,
        64,
    );
    assert_eq!((out[0], out[63]), (140, 140));
}

const CALLS: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[18] = {37, 100, 32, 105, 115, 32, 37, 48, 52, 120, 32, 37, 115, 33, 10, 0};
.global .align 1 .b8 word[3] = {104, 105, 0};
.global .align 4 .u32 table[3] = {10, 20, 30};
.func (.param .b32 back) square(.param .b32 x)
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.u32 %r1, [x];
    setp.gt.u32 %p, %r1, 9;
    @%p bra BIG;
    mul.lo.u32 %r2, %r1, %r1;
    st.param.b32 [back], %r2;
    ret;
BIG:
    st.param.b32 [back], 0;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .local .align 8 .b8 args[16];
    .reg .b32 %r<9>;
    .reg .b64 %d<9>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), square, (a); ld.param.b32 %r2, [b]; }
    mov.u64 %d3, table;
    ld.global.u32 %r3, [%d3+4];
    add.u32 %r2, %r2, %r3;
    mul.wide.u32 %d1, %r1, 4;
    ld.param.u64 %d2, [out];
    add.u64 %d2, %d2, %d1;
    st.global.u32 [%d2], %r2;
    setp.eq.u32 %p, %r1, 3;
    mov.u64 %d4, args;
    cvta.local.u64 %d5, %d4;
    st.local.u32 [args], %r2;
    st.local.u32 [args+4], %r1;
    mov.u64 %d6, word;
    cvta.global.u64 %d6, %d6;
    st.local.u64 [args+8], %d6;
    mov.u64 %d7, text;
    cvta.global.u64 %d7, %d7;
    { .param .b64 f; st.param.b64 [f], %d7; .param .b64 v; st.param.b64 [v], %d5; .param .b32 n; @%p call.uni (n), vprintf, (f, v); }
    ret;
}";

#[test]
fn functions_are_called_and_the_kernel_prints() {
    let module = Module::parse(CALLS).expect("PTX");
    let mut out = vec![0_u8; 128];
    let launch = module.launch("k").expect("an entry").block(&[32]).output("out", &mut out).modes(Modes::ALL);
    let report = launch.run().expect("it runs");
    assert!(report.is_clean(), "{}", report.findings[0]);
    let word = |i: usize| u32::from_le_bytes(out[4 * i..][..4].try_into().expect("4 bytes"));
    assert_eq!((word(3), word(9), word(10)), (29, 101, 20));
    assert_eq!(report.printed, "29 is 0003 hi!\n");
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let text = CALLS.replace("mul.lo.u32 %r2, %r1, %r1;", "{ .param .b32 a; .param .b32 b; call (b), square, (a); }");
    let error = Module::parse(text).expect("PTX").launch("k").expect_err("recursion");
    assert!(error.to_string().contains("calls itself"), "{error}");
}

/// Blocks add to one float: the sum depends on their order, and so on the seed alone.
#[test]
fn the_same_seed_gives_the_same_result() {
    let module = crate::defects::module(
        "cvt.rn.f32.u32 %r6, %r2;\nmul.f32 %r6, %r6, 0f3DCCCCCD;\nred.global.add.f32 [%d1], %r6;",
    );
    let sum = |seed: u64| {
        let mut out = vec![0_u8; 1024];
        let launch = module.launch("k").expect("an entry").grid(&[300]).block(&[32]);
        let launch = launch.output("out", &mut out).input("in", &[0; 1024]).seed(seed);
        assert!(launch.run().expect("it runs").is_clean());
        out
    };
    let sums: Vec<Vec<u8>> = (0..4).map(sum).collect();
    assert_eq!(sums[1], sum(1));
    assert!(sums.iter().any(|s| *s != sums[0]), "the seed changes nothing");
}

#[test]
fn blocks_run_on_all_cores_with_one_result() {
    let module = crate::defects::module(
        "mad.lo.u32 %r6, %r2, 32, %r1;\nmul.wide.u32 %d6, %r6, 4;\nadd.u64 %d6, %d1, %d6;\nst.global.u32 [%d6], %r6;",
    );
    let run = |workers: usize| {
        let mut out = vec![0_u8; 4 * 32 * 500];
        let launch = module.launch("k").expect("an entry").grid(&[500]).block(&[32]);
        let report = launch.output("out", &mut out).input("in", &[]).workers(workers).run().expect("it runs");
        assert!(report.is_clean());
        (out, report.instructions)
    };
    assert_eq!(run(1), run(4));
    let _ = Data::Scratch(0);
}

/// Tests of users run this crate without optimisation, on threads with 2 MiB of stack or a main thread with 1 MiB. Set
/// `CARGO_PROFILE_DEV_OPT_LEVEL=0` to test that here.
#[test]
fn a_small_stack_is_enough() {
    let is_product = |f: &Form| f.name.starts_with("mma") || f.name.starts_with("wgmma");
    let forms: Vec<Form> = forms().into_iter().filter(is_product).collect();
    assert!(forms.len() > 30, "{}", forms.len());
    let run = || {
        let text = Module::parse(crate::forms::module(&forms)).expect("PTX");
        for (number, form) in forms.iter().enumerate() {
            for cores in [TensorCores::Fast, TensorCores::Hopper] {
                assert!(!compute_on(&text, number, form, cores, Some(1)).is_empty());
            }
        }
        // The other loops and their lane functions.
        assert_eq!(
            run("add.u32 %r6, %r1, %r2;\nprmt.b32 %r7, %r6, %r6, 12816;\nst.global.u32 [%d4], %r7;", 1, 32).len(),
            256
        );
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, run).expect("a thread");
    });
}

#[test]
fn registers_are_zeros_whatever_the_block_before_has_left() {
    // Every other block writes a register and reads valid memory. The others read out of bounds, which is found, and continue.
    let body = "and.b32 %r6, %r2, 1;\nsetp.eq.u32 %p1, %r6, 0;\nmul.wide.u32 %d6, %r6, 65536;\nadd.u64 %d7, %d5, %d6;\n\
                @%p1 mov.u32 %r7, 7;\nld.global.u32 %r8, [%d7+4];\nadd.u32 %r9, %r8, %r7;\n\
                mad.lo.u32 %r10, %r2, 32, %r1;\nmul.wide.u32 %d8, %r10, 4;\nadd.u64 %d9, %d1, %d8;\nst.global.u32 [%d9], %r9;";
    // Mode `init` clears all registers.
    let (_, expected) = launch(body, 8, 32, Modes { bounds: false, init: true, races: false });
    for (i, value) in (0_u32..).zip(&expected).filter(|(i, _)| i / 32 % 2 == 0) {
        assert_eq!(*value, i % 32 + 1 + 7);
    }
    for modes in [Modes::PLAIN, Modes { bounds: true, init: false, races: true }] {
        let (report, out) = launch(body, 8, 32, modes);
        assert_eq!(report.findings.iter().map(|f| f.kind).collect::<Vec<_>>(), [FindingKind::OutOfBounds], "{report}");
        assert_eq!(out, expected);
    }
}
