//! Contract: a kernel that does not end, or ends itself, is a verdict that says which threads wait where.

#![cfg(feature = "host")]

use std::time::Duration;

use crate::host_common::{Tensor, Text, actor, element, launch, line, line_number, options};
use crate::together::CUDA;
use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{FindingKind, Report, Target};

const SOME_WAIT: &str = "if (t >= 10) { __syncthreads(); }";
const TWO_BARRIERS: &str = "if (t < 32) { __syncthreads(); }\n else { __syncthreads(); }";
const NEVER_COME: &str = "if (t % 32 != 3) { __shfl_sync(0xffffffffu, t, 0); } else { __syncthreads(); }";
const NOT_IN_MASK: &str = "if (t == 3) { __shfl_sync(1u, t, 0); }";
const CRASHES: &str = "if (blockIdx.x == 0 && t == 5) { *(volatile float *)16 = 0.0f; }";
const STRAYS: &str = "if (t == 7) { p.c[64 * 1000 + 5] = 0.0f; }";
const TRAPS: &str = "if (t == 9) { __trap(); }";
const EXITS: &str = "if (t == 9) { exit(0); }";

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    let plain = |text: Text| (text, &[Mode::Plain][..]);
    let mut all = vec![(stuck(SOME_WAIT), Mode::ALL), (endless(), Mode::ALL)];
    all.push((stuck(CRASHES), &[Mode::Plain, Mode::Races]));
    all.extend([TWO_BARRIERS, NEVER_COME, NOT_IN_MASK, STRAYS, TRAPS, EXITS].map(|body| plain(stuck(body))));
    all.extend([asserts(), dives()].map(plain));
    all
}

fn stuck(body: &str) -> Text {
    CUDA.text(
        "stuck",
        &format!(
            "struct Params {{ float *c; }};
             extern \"C\" __global__ void stuck(Params const p) {{
               unsigned const t = threadIdx.x;
               {body}
               p.c[t] = 1.0f;
             }}"
        ),
    )
}

fn run_stuck(body: &str, mode: Mode) -> Report {
    stuck(body).run(mode, &line(2, 64), &mut [Tensor::write("C", 1, 64)])
}

#[test]
fn a_barrier_that_some_threads_do_not_reach_is_a_deadlock() {
    for mode in Mode::ALL {
        let report = run_stuck(SOME_WAIT, *mode);
        let finding = report.findings.iter().find(|f| f.kind == FindingKind::Deadlock).expect("found");
        assert_eq!((finding.who.and_then(|a| a.thread), line_number(finding)), (Some([10, 0, 0]), Some(4)), "{report}");
        let told: Vec<&str> = finding.detail.lines().collect();
        assert_eq!(told[0], "10 of 64 threads returned, the first of them (0,0,0)");
        assert!(told[1].starts_with("54 of 64 threads wait at the barrier at "), "{report}");
        assert!(told[1].ends_with("stuck.cu:4, the first of them (10,0,0)"), "{report}");
    }
}

#[test]
fn two_barriers_for_two_halves_of_a_block_are_a_deadlock() {
    let report = run_stuck(TWO_BARRIERS, Mode::Plain);
    let finding = &report.findings[0];
    assert_eq!(finding.kind, FindingKind::Deadlock, "{report}");
    assert!(finding.detail.contains("stuck.cu:4") && finding.detail.contains("stuck.cu:5"), "{report}");
}

#[test]
fn a_mask_with_lanes_that_never_come_is_a_deadlock() {
    let report = run_stuck(NEVER_COME, Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Deadlock);
    assert!(report.findings[0].detail.contains("wait for the lanes of their mask"), "{report}");
    let report = run_stuck(NOT_IN_MASK, Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Undefined);
    assert_eq!(report.findings[0].who.and_then(|a| a.thread), Some([3, 0, 0]));
}

#[test]
fn a_crash_is_a_verdict_with_its_thread() {
    // In bounds, AddressSanitizer sees it before the processor does.
    for mode in [Mode::Plain, Mode::Races] {
        let report = run_stuck(CRASHES, mode);
        let finding = &report.findings[0];
        assert_eq!(
            (finding.kind, finding.signal, finding.who),
            (FindingKind::Crash, Some(11), actor(0, 5)),
            "{report}"
        );
        assert_eq!((line_number(finding), finding.target.clone()), (Some(4), Some(Target::Address(16))), "{report}");
    }
}

#[test]
fn a_far_stray_in_plain_mode_names_the_tensor() {
    let report = run_stuck(STRAYS, Mode::Plain);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, element(finding)), (FindingKind::Crash, ("C", (1000, 5))), "{report}");
}

fn asserts() -> Text {
    stuck("assert(t != 9);").with("struct Params", "#include <cassert>\nstruct Params")
}

#[test]
fn a_kernel_that_stops_itself_is_a_verdict() {
    let report = run_stuck(TRAPS, Mode::Plain);
    assert_eq!((report.findings[0].kind, line_number(&report.findings[0])), (FindingKind::Trap, Some(4)));
    let report = asserts().run(Mode::Plain, &line(1, 64), &mut [Tensor::write("C", 1, 64)]);
    assert_eq!((report.findings[0].kind, report.findings[0].signal), (FindingKind::Crash, Some(6)));
    assert!(report.printed.contains("Assertion `t != 9' failed"), "{}", report.printed);
    let report = run_stuck(EXITS, Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Crash, "{report}");
}

fn dives() -> Text {
    stuck("p.c[t] = dive(int(t) + 1000000);").with(
        "extern \"C\"",
        "__device__ float dive(int n) {
           volatile float here[64];
           here[n % 64] = n;
           return n == 0 ? 0 : dive(n - 1) + here[3];
         }
         extern \"C\"",
    )
}

#[test]
fn a_stack_that_overflows_is_a_verdict() {
    let report = dives().run(Mode::Plain, &line(1, 64), &mut [Tensor::write("C", 1, 64)]);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, finding.who), (FindingKind::Crash, actor(0, 0)), "{report}");
    assert!(finding.detail.contains("stack of the thread overflowed"), "{report}");
}

fn endless() -> Text {
    stuck("while (t == 20) { p.c[20] = p.c[21]; __threadfence(); }")
}

#[test]
fn an_endless_loop_ends_at_the_time_limit() {
    let mut options = options();
    options.time_limit = Duration::from_millis(200);
    for mode in Mode::ALL {
        let program = endless().compile_with(*mode, &options);
        let report = launch(&program, &line(1, 64), &mut [Tensor::write("C", 1, 64)]);
        let finding = report.findings.iter().find(|f| f.kind == FindingKind::Timeout).expect("found");
        assert_eq!((finding.who, line_number(finding)), (actor(0, 20), Some(4)), "{report}");
    }
}
