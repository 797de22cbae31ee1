//! Lanes of a warp that skip an instruction of the others. With every seed defects are found, and correct kernels give no finding.

use ptx_exec::{Buffer, Data, Modes};
use ptx_exec::{Finding, FindingKind, Rule};

use crate::defects::module;

/// The findings and the output of a launch with a seed.
fn run(body: &str, threads: u32, modes: Modes, seed: u64) -> (Vec<Finding>, Vec<u32>) {
    let module = module(body);
    let mut out = vec![0xff_u8; 1024];
    let input: Vec<u8> = (0..256_u32).flat_map(u32::to_le_bytes).collect();
    let mut buffer = Buffer::new("out", Data::Write(&mut out));
    buffer.written = false;
    let launch = module.launch("k").expect("an entry").block(&[threads]).arg_buffer(buffer).input("in", &input);
    let report = launch.modes(modes).seed(seed).step_budget(3_000_000).run().expect("it runs");
    (report.findings, out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect())
}

const SEEDS: u64 = 21;

#[track_caller]
fn found(body: &str, threads: u32, modes: Modes, rule: Rule) -> Finding {
    let mut first = None;
    for seed in 0..SEEDS {
        let (findings, _) = run(body, threads, modes, seed);
        let finding = findings.iter().find(|f| f.rule == rule);
        let finding = finding.unwrap_or_else(|| panic!("seed {seed}: no {rule:?} among {findings:#?} of\n{body}"));
        assert_eq!(findings.len(), 1, "seed {seed}: one finding a cause, not {findings:#?} of\n{body}");
        first.get_or_insert(finding.clone());
    }
    first.expect("a seed")
}

#[track_caller]
fn silent(body: &str, threads: u32) -> Vec<u32> {
    let mut out = Vec::new();
    for seed in 0..SEEDS {
        let (findings, words) = run(body, threads, Modes::ALL, seed);
        assert!(findings.is_empty(), "seed {seed}: {} of\n{body}", findings[0]);
        assert!(out.is_empty() || out == words, "seed {seed} of\n{body}");
        out = words;
    }
    out
}

const INIT: Modes = Modes { bounds: false, init: true, races: false };

/// The instructions with a mask: text with the mask in place of `M`, which writes `%r7`.
fn with_mask() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (mode, by, clamp) in [("idx", 0, 31), ("up", 1, 0), ("down", 1, 31), ("bfly", 1, 31)] {
        all.push(format!("shfl.sync.{mode}.b32 %r7, %r1, {by}, {clamp}, M;"));
        all.push(format!("shfl.sync.{mode}.b32 %r7|%p4, %r1, {by}, {clamp}, M;"));
    }
    for mode in ["all", "any", "uni"] {
        all.push(format!("vote.sync.{mode}.pred %p4, %p5, M;\nselp.u32 %r7, 1, 0, %p4;"));
    }
    all.push("vote.sync.ballot.b32 %r7, %p5, M;".to_owned());
    for ty in ["b32 %r7, %r8", "b64 %r7, %d9"] {
        all.push(format!("match.any.sync.{ty}, M;"));
        all.push(format!("match.all.sync.{ty}, M;"));
        all.push(format!("match.all.sync.{}, M;", ty.replace("%r7", "%r7|%p4")));
    }
    for op in ["add.u32", "add.s32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32"] {
        all.push(format!("redux.sync.{op} %r7, %r8, M;"));
    }
    all.push("elect.sync %r7|%p4, M;".to_owned());
    all.push("bar.warp.sync M;\nmov.u32 %r7, 1;".to_owned());
    all.push("barrier.warp.sync M;\nmov.u32 %r7, 1;".to_owned());
    all
}

/// `%p5` and `%r8` are the same in all lanes, `%r12` is the lane.
fn collective(mask: &str, text: &str) -> String {
    let text = text.replace('M', mask);
    format!(
        "mov.u32 %r8, 5;\ncvt.u64.u32 %d9, %r8;\nsetp.eq.u32 %p5, %r8, 5;\nmov.u32 %r12, %laneid;\n{text}\nst.global.u32 [%d4], %r7;"
    )
}

#[test]
fn a_lane_that_its_own_mask_does_not_name_is_found() {
    for text in with_mask() {
        for modes in [Modes::PLAIN, Modes::ALL] {
            let finding = found(&collective("0xfffffffd", &text), 32, modes, Rule::OwnMask);
            assert_eq!(finding.kind, FindingKind::Undefined);
            assert_eq!(finding.who.expect("a warp").lanes, 2, "{text}");
            assert!(finding.detail.contains("0xfffffffd"), "{}", finding.detail);
        }
        // Nobody is named.
        found(&collective("0", &text), 32, Modes::PLAIN, Rule::OwnMask);
        // 32 lanes, and the mask of 16.
        let finding = found(&collective("0xffff", &text), 32, Modes::ALL, Rule::OwnMask);
        assert_eq!(finding.who.expect("a warp").lanes, 0xffff_0000);
    }
}

#[test]
fn masks_that_differ_between_lanes_are_found() {
    let masks = [
        // One lane names all, the others do not name it.
        "setp.eq.u32 %p6, %r12, 0;\nselp.b32 %r13, 0xffffffff, 0xfffffffe, %p6;",
        // The upper half names the lower, which names itself.
        "setp.lt.u32 %p6, %r12, 16;\nselp.b32 %r13, 0xffff, 0xffffffff, %p6;",
        // Each names itself and the next.
        "shl.b32 %r13, 3, %r12;\nsetp.eq.u32 %p6, %r12, 31;\nselp.b32 %r13, 0x80000001, %r13, %p6;",
    ];
    for text in with_mask() {
        for mask in masks {
            let body = collective("%r13", &format!("{mask}\n{text}"));
            assert_eq!(found(&body, 32, Modes::PLAIN, Rule::OneMask).kind, FindingKind::Undefined);
            // A shuffle may take a value of another party besides.
            for seed in 0..SEEDS {
                let (findings, _) = run(&body, 32, Modes::ALL, seed);
                assert!(findings.iter().any(|f| f.rule == Rule::OneMask), "seed {seed} of\n{body}");
            }
            // A barrier after it changes nothing.
            found(&format!("{body}\nbar.sync 0;"), 64, Modes::PLAIN, Rule::OneMask);
        }
    }
}

#[test]
fn parties_of_lanes_with_masks_of_their_own_are_silent() {
    let masks = [
        "mov.u32 %r13, -1;",
        "setp.lt.u32 %p6, %r12, 16;\nselp.b32 %r13, 0xffff, 0xffff0000, %p6;",
        "and.b32 %r14, %r12, 24;\nshl.b32 %r13, 0xff, %r14;",
        "activemask.b32 %r13;",
        "vote.sync.ballot.b32 %r13, %p5, -1;",
        "match.any.sync.b32 %r13, %r8, -1;",
    ];
    for text in with_mask() {
        // Values from lanes of another mask are undefined: where a shuffle takes them is not tried here.
        let masks =
            if text.starts_with("shfl.sync.bfly") || !text.starts_with("shfl") { &masks[..] } else { &masks[..1] };
        for mask in masks {
            silent(&collective("%r13", &format!("{mask}\n{text}")), 32);
        }
    }
}

#[test]
fn who_comes_again_with_another_mask_is_silent() {
    // A loop whose mask grows: the upper half waits where the lower half is with a smaller mask.
    let body = "mov.u32 %r6, 16;\nmov.u32 %r7, %r1;\nLOOP:\nsetp.ge.u32 %p1, %r1, %r6;\n@%p1 bra NEXT;\n\
                setp.eq.u32 %p2, %r6, 16;\nselp.b32 %r8, 0xffff, 0xffffffff, %p2;\nredux.sync.add.u32 %r7, %r7, %r8;\n\
                NEXT:\nshl.b32 %r6, %r6, 1;\nsetp.le.u32 %p3, %r6, 32;\n@%p3 bra LOOP;\nst.global.u32 [%d4], %r7;";
    let out = silent(body, 32);
    assert_eq!(out[0], 16 * 120 + 376);
    // Half of the lanes comes late.
    let late = "setp.lt.u32 %p1, %r1, 16;\nmov.u32 %r6, 1;\n@%p1 bra SOME;\nmov.u32 %r6, 2;\nnanosleep.u32 20;\nSOME:\n\
                redux.sync.add.u32 %r7, %r6, -1;\nst.global.u32 [%d4], %r7;";
    assert_eq!(silent(late, 32)[..32], [48; 32]);
}

/// A shuffle whose lanes 16 to 31 have gone in one of several ways; `%p1` holds for them.
const GONE: [(&str, u32); 4] = [
    ("@%p1 ret;\nSHFL\nst.global.u32 [%d4], %r7;", 32),
    ("@%p1 bra PAST;\nSHFL\nst.global.u32 [%d4], %r7;\nPAST:", 32),
    ("@!%p1 bra HERE;\nbra PAST;\nHERE:\nSHFL\nst.global.u32 [%d4], %r7;\nPAST:\nst.global.u32 [%d4+256], %r1;", 32),
    ("SHFL\nst.global.u32 [%d4], %r7;", 16),
];

#[test]
fn the_value_of_a_lane_that_takes_no_part_is_undefined() {
    for (shape, threads) in GONE {
        for mask in ["-1", "0xffff"] {
            // A shuffle waits for a named lane that bypasses it, until the lane exits.
            for (shfl, lanes) in [
                ("idx.b32 %r7, %r1, 31, 31", 0xffff_u32),
                ("idx.b32 %r7|%p4, %r1, 16, 31", 0xffff),
                ("down.b32 %r7, %r1, 1, 31", 0x8000),
                ("down.b32 %r7|%p4, %r1, 8, 31", 0xff00),
                ("bfly.b32 %r7, %r1, 16, 31", 0xffff),
                ("up.b32 %r7, %r1, 31, 0", 0),
                ("idx.b32 %r7, %r1, 15, 31", 0),
                ("down.b32 %r7, %r1, 1, 4127", 0),
                ("bfly.b32 %r7, %r1, 15, 31", 0),
            ] {
                let body = shape.replace("SHFL", &format!("shfl.sync.{shfl}, {mask};"));
                let body = format!("setp.ge.u32 %p1, %r1, 16;\n{body}");
                if lanes == 0 {
                    silent(&body, threads);
                    continue;
                }
                let finding = found(&body, threads, INIT, Rule::Initialised);
                assert_eq!(finding.who.expect("a warp").lanes, lanes, "{body}");
                assert!(finding.detail.contains("took the value of lane"), "{}", finding.detail);
                found(&body, threads, Modes::ALL, Rule::Initialised);
            }
        }
    }
}

#[test]
fn an_undefined_value_that_is_dropped_is_silent() {
    // nvcc's code for `if (lane + 1 < n) v += __shfl_down_sync(~0u, v, 1)`, and for a select.
    for (shape, threads) in GONE {
        let dropped = "setp.lt.u32 %p6, %r1, 15;\nshfl.sync.down.b32 %r9, %r1, 1, 31, -1;\nmov.u32 %r7, %r1;\n@%p6 add.u32 %r7, %r7, %r9;";
        let out = silent(&format!("setp.ge.u32 %p1, %r1, 16;\n{}", shape.replace("SHFL", dropped)), threads);
        assert_eq!(out[..16], core::array::from_fn::<u32, 16, _>(|l| if l < 15 { 2 * l as u32 + 1 } else { 15 }));
        let selected =
            dropped.replace("mov.u32 %r7, %r1;\n@%p6 add.u32 %r7, %r7, %r9;", "selp.b32 %r7, %r9, %r1, %p6;");
        silent(&format!("setp.ge.u32 %p1, %r1, 16;\n{}", shape.replace("SHFL", &selected)), threads);
    }
}

#[test]
fn votes_and_sums_are_over_those_that_are_left() {
    for (shape, threads) in GONE {
        for (text, result) in [
            ("setp.eq.u32 %p5, %r1, %r1;\nvote.sync.ballot.b32 %r7, %p5, -1;", 0xffff),
            ("redux.sync.add.u32 %r7, %r1, -1;", 120),
            ("mov.u32 %r8, 3;\nmatch.any.sync.b32 %r7, %r8, -1;", 0xffff),
            ("mov.u32 %r8, 3;\nmatch.all.sync.b32 %r7|%p4, %r8, -1;", 0xffff),
        ] {
            let out = silent(&format!("setp.ge.u32 %p1, %r1, 16;\n{}", shape.replace("SHFL", text)), threads);
            assert_eq!(out[..16], [result; 16], "{text}");
        }
    }
}

#[test]
fn a_guard_that_some_lanes_fail_keeps_no_lane_waiting_for_ever() {
    // Lanes whose guard is false have passed; the others wait for them until they exit.
    let body =
        "setp.lt.u32 %p1, %r1, 16;\nmov.u32 %r7, 9;\n@%p1 redux.sync.add.u32 %r7, %r1, -1;\nst.global.u32 [%d4], %r7;";
    let out = silent(body, 32);
    assert_eq!((out[0], out[31]), (120, 9));
    // If these lanes reach a barrier, the warp deadlocks.
    let body = format!("{body}\nbar.sync 0;");
    let (findings, _) = run(&body, 32, Modes::PLAIN, 0);
    assert!(!findings.is_empty() && findings[0].kind != FindingKind::Timeout, "{findings:#?}");
}

#[test]
fn matrix_instructions_want_the_whole_warp() {
    let mma = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r6,%r7,%r8,%r9}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%r1,%r1,%r1,%r1};";
    for text in [
        mma,
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r4];",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1;",
    ] {
        for shape in ["@%p1 ret;\nX", "@%p1 bra PAST;\nX\nPAST:", "@!%p1 X"] {
            let body = format!("setp.ge.u32 %p1, %r1, 16;\n{}", shape.replace('X', text));
            found(&body, 32, Modes::PLAIN, Rule::WarpMatrix);
        }
        found(text, 16, Modes::PLAIN, Rule::WarpMatrix);
        silent(text, 64);
    }
}

const RACES: Modes = Modes { bounds: false, init: false, races: true };

/// Lane 63 of two warps exits, and another thread reads its word. `WRITE` is the write, `LEAVE` the exit.
fn leaves(barrier: &str) -> String {
    format!(
        "setp.ne.u32 %p1, %r1, 63;\nst.shared.u32 [%r5], %r1;\n@!%p1 ret;\n{barrier}\nld.shared.u32 %r6, [%r4+252];\nst.global.u32 [%d4], %r6;"
    )
}

#[test]
fn what_a_lane_wrote_that_left_before_the_barrier_is_not_ordered() {
    for barrier in ["bar.sync 0;", "barrier.sync 0;", "bar.red.popc.u32 %r9, 0, %p1;", "bar.sync 0;\nbar.sync 0;"] {
        let finding = found(&leaves(barrier), 64, RACES, Rule::LeftEarly);
        assert!(
            finding.detail.contains("warp 1 lanes 0x80000000 had exited before the barrier at PTX line"),
            "{finding}"
        );
        found(&leaves(barrier), 64, Modes::ALL, Rule::LeftEarly);
        // A whole warp that leaves.
        let warp = leaves(barrier).replace("setp.ne.u32 %p1, %r1, 63", "setp.lt.u32 %p1, %r1, 32");
        let finding = found(&warp, 64, RACES, Rule::LeftEarly);
        assert!(finding.detail.contains("warp 1 lanes 0x80000000"), "{finding}");
    }
}

#[test]
fn a_lane_that_leaves_early_is_silent_where_nobody_reads_what_it_wrote() {
    for barrier in ["bar.sync 0;", "barrier.sync 0;"] {
        // Other threads read words of lanes that stayed.
        silent(&leaves(barrier).replace("%r4+252", "%r4+248"), 64);
        silent(&leaves(barrier).replace("%r4+252", "%r4+128"), 64);
        // It was at an earlier barrier.
        let after = leaves(barrier).replace("@!%p1 ret;", "bar.sync 0;\n@!%p1 ret;");
        silent(&after, 64);
        // The other lanes met it at `bar.warp.sync`, and publish its write.
        let met = leaves(barrier).replace("@!%p1 ret;", "bar.warp.sync -1;\n@!%p1 ret;");
        silent(&met, 64);
        // It has written nothing.
        silent(
            &leaves(barrier)
                .replace("st.shared.u32 [%r5], %r1;\n@!%p1 ret;", "@!%p1 ret;\nst.shared.u32 [%r5], %r1;")
                .replace("%r4+252", "%r4+248"),
            64,
        );
    }
    // Their release reaches other blocks too.
    let body = "setp.ne.u32 %p1, %r1, 63;\nst.global.u32 [%d4], %r1;\n@!%p1 ret;\nbar.sync 0;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 ret;\n\
                membar.gl;\natom.global.add.u32 %r6, [%d1+512], 1;";
    let (findings, _) = run(body, 64, RACES, 0);
    assert!(findings.is_empty(), "{}", findings[0]);
}

/// A barrier that lanes 16 to 31 skip, before an instruction of all lanes.
const SKIPS: [&str; 5] = [
    "@%p1 bra PAST;\nBAR\nPAST:\nst.global.u32 [%d4], %r1;",
    "@%p1 bra PAST;\nst.shared.u32 [%r5], %r1;\nBAR\nld.shared.u32 %r6, [%r4];\nPAST:\nst.global.u32 [%d4], %r1;",
    // The skipping lanes come to a barrier of a later round.
    "mov.u32 %r6, 0;\nLOOP:\nand.b32 %r7, %r6, 1;\nand.b32 %r8, %r1, 1;\nsetp.ne.u32 %p2, %r7, %r8;\n@%p2 bra PAST;\nBAR\nPAST:\n\
     st.shared.u32 [%r5], %r6;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 4;\n@%p3 bra LOOP;\nst.global.u32 [%d4], %r1;",
    // Rounds of different numbers.
    "and.b32 %r6, %r1, 3;\nLOOP:\nBAR\nsetp.eq.u32 %p2, %r6, 0;\n@%p2 bra PAST;\nsub.u32 %r6, %r6, 1;\nbra LOOP;\nPAST:\nst.global.u32 [%d4], %r1;",
    // By a table of labels.
    "T: .branchtargets ON, PAST;\nselp.u32 %r6, 1, 0, %p1;\nbrx.idx %r6, T;\nON:\nBAR\nPAST:\nst.global.u32 [%d4], %r1;",
];

#[test]
fn a_barrier_that_some_lanes_skip_is_found() {
    for body in SKIPS {
        for bar in ["bar.sync 0;", "bar.sync 1, 64;", "barrier.sync.aligned 0;", "bar.red.popc.u32 %r9, 0, %p1;"] {
            for threads in if bar.contains("64") { &[64][..] } else { &[32, 64] } {
                let body = format!("and.b32 %r10, %r1, 31;\nsetp.ge.u32 %p1, %r10, 16;\n{}", body.replace("BAR", bar));
                for modes in [Modes::PLAIN, Modes::ALL] {
                    found(&body, *threads, modes, Rule::WholeWarp);
                }
            }
        }
    }
}

#[test]
fn barriers_that_lanes_come_to_by_different_ways_are_silent() {
    let prelude = "and.b32 %r10, %r1, 31;\nsetp.ge.u32 %p1, %r10, 16;\nsetp.eq.u32 %p5, %r1, %r1;\n";
    for body in [
        // Both paths lead to the barrier: `if (a || b)`, with `b` true for all.
        "@%p1 bra HERE;\n@!%p5 bra PAST;\nHERE:\nbar.sync 0;\nPAST:\nst.global.u32 [%d4], %r1;",
        // Lanes diverge before a barrier that no lane reaches.
        "@%p1 bra PAST;\n@%p5 bra PAST;\nbar.sync 0;\nPAST:\nst.global.u32 [%d4], %r1;",
        // Lanes that leave do not skip it.
        "@%p1 ret;\nbar.sync 0;\nst.global.u32 [%d4], %r1;",
        "@!%p1 bra ON;\nst.global.u32 [%d4], %r1;\nret;\nON:\nbar.sync 0;\nst.global.u32 [%d4], %r1;",
        // Some lanes leave a loop in its first round.
        "mov.u32 %r6, 0;\nLOOP:\n@%p1 ret;\nbar.sync 0;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 4;\n@%p3 bra LOOP;\nst.global.u32 [%d4], %r1;",
        // The rare path is at the end of the text, in a loop with a barrier.
        "mov.u32 %r6, 0;\nLOOP:\nbar.sync 0;\n@%p1 bra RARE;\nBACK:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 4;\n@%p3 bra LOOP;\n\
         st.global.u32 [%d4], %r6;\nret;\nRARE:\nst.shared.u32 [%r5], %r6;\nbra BACK;",
        // This barrier counts single threads.
        "@%p1 bra PAST;\nbarrier.sync 1, 32;\nPAST:\nst.global.u32 [%d4], %r1;",
    ] {
        silent(&format!("{prelude}{body}"), 64);
    }
}

#[test]
fn a_loop_that_polls_for_ever_says_what_it_polls() {
    for (body, what) in [
        (
            "mov.u32 %r6, 7;\nst.global.u32 [%d1+8], %r6;\nLOOP:\nld.volatile.global.u32 %r7, [%d1+8];\nsetp.ne.u32 %p1, %r7, 1;\n@%p1 bra LOOP;",
            "byte 8 of out[1024 B], which holds 0x7, at PTX line 26 (ld.volatile.global.u32), kernel.cu:7",
        ),
        (
            "mov.u32 %r6, 9;\nst.shared.u32 [%r4+4], %r6;\nLOOP:\natom.shared.cas.b32 %r7, [%r4+4], 0, 1;\nsetp.ne.u32 %p1, %r7, 0;\n@%p1 bra LOOP;",
            "byte 4 of shared s[1024 B], which holds 0x9, at PTX line 26 (atom.shared.cas.b32), kernel.cu:7",
        ),
    ] {
        let (findings, _) = run(body, 1, Modes::PLAIN, 1);
        let finding = &findings[0];
        assert_eq!((findings.len(), finding.rule), (1, Rule::End));
        assert!(finding.detail.contains(what), "{finding}");
        assert!(finding.to_string().contains("raise"), "{finding}");
    }
}
