//! Contract: each planted defect is found, with its kind, block, thread, tensor and coordinate, and line; the same kernel
//! without the defect is told nothing (host_kernels.rs, and the clean halves here).

#![cfg(feature = "host")]

mod host_common;

use std::time::Duration;

use cutemplate::host::{Actor, Finding, FindingKind, Mode, Report, Target};
use host_common::{Matrix, Shape, Text, element, launch, line, only, options, text};

const CHECKED: [Mode; 2] = [Mode::Bounds, Mode::Races];

fn actor(block: u32, thread: u32) -> Option<Actor> {
    Some(Actor { block: [block, 0, 0], thread: Some([thread, 0, 0]) })
}

fn line_number(finding: &Finding) -> Option<u32> {
    finding.line.as_ref().map(|l| l.line)
}

// ---------------------------------------------------------------------------------------------------------------------
// Races
// ---------------------------------------------------------------------------------------------------------------------

fn block_sum() -> Text {
    text(
        "block_sum",
        "struct Params { float const *a; float *c; };
         extern \"C\" __global__ void block_sum(Params const p) {
           __shared__ float partial[64];
           partial[threadIdx.x] = p.a[blockIdx.x * 64 + threadIdx.x];
           __syncthreads();  // all are written
           for (unsigned half = 32; half > 0; half /= 2) {
             if (threadIdx.x < half) {
               partial[threadIdx.x] += partial[threadIdx.x + half];
             }
             __syncthreads();  // all are added
           }
           if (threadIdx.x == 0) { p.c[blockIdx.x] = partial[0]; }
         }",
    )
}

fn sums(kernel: &Text) -> Report {
    let mut mats = [Matrix::read("A", 1, 128, |_, j| j as f32), Matrix::write("C", 1, 2)];
    kernel.run(Mode::Races, &line(2, 64), &mut mats)
}

#[test]
fn a_missing_barrier_after_the_copy_is_a_race() {
    assert!(sums(&block_sum()).is_clean());
    let broken = block_sum().with("__syncthreads();  // all are written", "");
    let report = sums(&broken);
    // Thread 0 runs first, and reads what thread 32 has not written yet.
    let [stale, race] = &report.findings[..] else { panic!("{report}") };
    let partial = Target::Shared { name: "partial".into(), offset: 128, size: 256 };
    assert_eq!(
        (stale.kind, stale.actor, stale.target.as_ref()),
        (FindingKind::Uninitialized, actor(0, 0), Some(&partial))
    );
    assert_eq!((race.kind, race.actor, race.target.as_ref()), (FindingKind::Race, actor(0, 32), Some(&partial)));
    assert_eq!((race.write, line_number(race)), (true, Some(broken.line_of("= p.a["))));
    let earlier = race.earlier.as_ref().expect("two sides");
    assert_eq!((Some(earlier.actor), earlier.write), (actor(0, 0), false));
    assert_eq!(earlier.line.as_ref().map(|l| l.line), Some(broken.line_of("partial[threadIdx.x] +=")));
}

#[test]
fn a_missing_barrier_in_the_loop_is_a_race() {
    let report = sums(&block_sum().with("__syncthreads();  // all are added", ""));
    assert!(!report.is_clean());
    assert!(report.findings.iter().all(|f| f.kind == FindingKind::Race), "{report}");
}

#[test]
fn a_missing_syncwarp_is_a_race_between_lanes() {
    let kernel = text(
        "lanes",
        "struct Params { float *c; };
         extern \"C\" __global__ void lanes(Params const p) {
           __shared__ float slot[32];
           slot[threadIdx.x] = 1.0f;
           __syncwarp();
           p.c[threadIdx.x] = slot[threadIdx.x ^ 1];
         }",
    );
    let run = |kernel: &Text| kernel.run(Mode::Races, &line(1, 32), &mut [Matrix::write("C", 1, 32)]);
    assert!(run(&kernel).is_clean());
    let report = run(&kernel.with("__syncwarp();", ""));
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::Race), "{report}");
}

fn scatter(index: &str) -> Text {
    text(
        "scatter",
        &format!(
            "struct Params {{ float *c; }};
             extern \"C\" __global__ void scatter(Params const p) {{
               p.c[{index}] = float(threadIdx.x);
             }}"
        ),
    )
}

#[test]
fn two_threads_of_a_block_on_one_element_are_a_race() {
    let matrix = || [Matrix::write("C", 4, 16).padded(20, 0, 0, 0.0)];
    let row_major = "threadIdx.x / 16 * 20 + threadIdx.x % 16";
    assert!(scatter(row_major).run(Mode::Races, &line(1, 64), &mut matrix()).is_clean());
    let broken = scatter("threadIdx.x / 16 * 20 + threadIdx.x % 15");
    let report = broken.run(Mode::Races, &line(1, 64), &mut matrix());
    let finding = only(&report);
    assert_eq!((finding.kind, finding.actor, finding.write), (FindingKind::Race, actor(0, 15), true), "{report}");
    assert_eq!((element(finding), finding.bytes, finding.count), (("C", (0, 0)), 4, 4), "once for each row");
    assert_eq!(finding.earlier.as_ref().map(|e| e.actor), actor(0, 0));
    assert_eq!(line_number(finding), Some(3));
}

#[test]
fn two_blocks_on_one_element_are_a_race() {
    let per_block = scatter("blockIdx.x * blockDim.x + threadIdx.x");
    assert!(per_block.run(Mode::Races, &line(3, 8), &mut [Matrix::write("C", 3, 8)]).is_clean());
    let report = scatter("threadIdx.x").run(Mode::Races, &line(3, 8), &mut [Matrix::write("C", 3, 8)]);
    let finding = only(&report);
    assert_eq!((finding.kind, finding.actor, element(finding)), (FindingKind::Race, actor(1, 0), ("C", (0, 0))));
    assert_eq!(finding.earlier.as_ref().map(|e| e.actor), actor(0, 0));
    assert_eq!(finding.count, 16, "every element of two blocks");
}

#[test]
fn a_block_that_reads_what_another_writes_is_a_race() {
    let kernel = text(
        "neighbour",
        "struct Params { float *c; };
         extern \"C\" __global__ void neighbour(Params const p) {
           unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
           float const next = p.c[(i + 1) % 8];
           __syncthreads();
           p.c[i] = next;
         }",
    );
    let one_block = kernel.run(Mode::Races, &line(1, 8), &mut [Matrix::write("C", 1, 8)]);
    assert!(one_block.is_clean(), "{one_block}");
    let report = kernel.run(Mode::Races, &line(2, 4), &mut [Matrix::write("C", 1, 8)]);
    let kinds: Vec<_> = report.findings.iter().map(|f| (f.kind, f.write, element(f))).collect();
    // Block 1 writes C(0,4), which block 0 has read, and reads C(0,0), which block 0 has written.
    assert!(kinds.contains(&(FindingKind::Race, true, ("C", (0, 4)))), "{report}");
    assert!(kinds.contains(&(FindingKind::Race, false, ("C", (0, 0)))), "{report}");
}

#[test]
fn an_atomic_and_a_plain_access_are_a_race() {
    let kernel = text(
        "counts",
        "struct Params { float *c; };
         extern \"C\" __global__ void counts(Params const p) {
           if (threadIdx.x == 0) { p.c[0] = 1.0f; } else { atomicAdd(p.c, 1.0f); }
         }",
    );
    let report = kernel.run(Mode::Races, &line(1, 4), &mut [Matrix::write("C", 1, 1)]);
    assert_eq!((only(&report).kind, only(&report).actor), (FindingKind::Race, actor(0, 1)));
}

#[test]
fn shared_memory_that_nobody_wrote_is_noticed() {
    let kernel = text(
        "stale",
        "struct Params { float *c; };
         extern \"C\" __global__ void stale(Params const p) {
           __shared__ float tile[32];
           if (threadIdx.x < 31) { tile[threadIdx.x] = 1.0f; }
           __syncthreads();
           p.c[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
         }",
    );
    for mode in Mode::ALL {
        let mut mats = [Matrix::write("C", 2, 32)];
        let report = kernel.run(*mode, &line(2, 32), &mut mats);
        assert!(mats[0].at(0, 31).is_nan() && mats[0].at(1, 31).is_nan(), "nothing is left over from the block before");
        assert_eq!(report.is_clean(), *mode != Mode::Races, "{report}");
        if let [finding] = &report.findings[..] {
            assert_eq!((finding.kind, finding.actor), (FindingKind::Uninitialized, actor(0, 31)));
            let tile = Target::Shared { name: "tile".into(), offset: 124, size: 128 };
            assert_eq!(finding.target, Some(tile));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Bounds
// ---------------------------------------------------------------------------------------------------------------------

/// Thread i sums row i of A, `(5,7):(8,1)`, whose gaps and surroundings hold NaN.
fn row_sums(first: &str, last: &str, rows: i32, mode: Mode) -> Report {
    let kernel = text(
        "row_sums",
        &format!(
            "struct Params {{ float const *a; float *c; int rows, cols, lda; }};
             extern \"C\" __global__ void row_sums(Params const p) {{
               int const i = threadIdx.x;
               float sum = 0.0f;
               for (int j = {first}; j {last} && i < p.rows; ++j) {{
                 sum += p.a[i * p.lda + j];
               }}
               p.c[i] = sum;
             }}"
        ),
    );
    let a = Matrix::read("A", 5, 7, |i, j| (10 * i + j) as f32).padded(8, 3, 0, f32::NAN);
    let shape = Shape { ints: &[rows, 7, 8], ..line(1, 6) };
    kernel.run(mode, &shape, &mut [a, Matrix::write("C", 1, 6)])
}

#[test]
fn a_read_one_past_the_row_hits_the_gap() {
    for mode in CHECKED {
        let clean = row_sums("0", "< p.cols", 5, mode);
        assert!(clean.is_clean(), "{clean}");
        let report = row_sums("0", "<= p.cols", 5, mode);
        let finding = only(&report);
        assert_eq!((finding.kind, finding.write, finding.bytes), (FindingKind::OutOfBounds, false, 4), "{report}");
        assert_eq!((finding.actor, element(finding)), (actor(0, 0), ("A", (0, 7))), "{report}");
        assert_eq!((line_number(finding), finding.count), (Some(6), 5), "each row's, and behind the last");
    }
}

#[test]
fn a_read_one_past_the_last_row_and_one_before_the_first_are_outside() {
    for mode in CHECKED {
        let report = row_sums("0", "< p.cols", 6, mode);
        assert_eq!((only(&report).actor, element(only(&report))), (actor(0, 5), ("A", (5, 0))), "{report}");
        let report = row_sums("-1", "< p.cols", 5, mode);
        assert_eq!((only(&report).actor, element(only(&report))), (actor(0, 0), ("A", (-1, 7))), "{report}");
    }
}

#[test]
fn a_vector_that_straddles_the_end_is_told_at_its_first_element_outside() {
    let kernel = text(
        "vectors",
        "struct Params { float4 *c; };
         extern \"C\" __global__ void vectors(Params const p) {
           p.c[threadIdx.x] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
         }",
    );
    for mode in CHECKED {
        assert!(kernel.run(mode, &line(1, 2), &mut [Matrix::write("C", 1, 8)]).is_clean());
        let report = kernel.run(mode, &line(1, 2), &mut [Matrix::write("C", 1, 7)]);
        assert_eq!((only(&report).actor, element(only(&report))), (actor(0, 1), ("C", (1, 0))), "{report}");
    }
}

#[test]
fn writes_outside_are_found_and_reach_the_caller_as_they_are() {
    let kernel = text(
        "past",
        "struct Params { float *c; int n; };
         extern \"C\" __global__ void past(Params const p) {
           if (threadIdx.x <= p.n) { p.c[threadIdx.x] = 1.0f; }
         }",
    );
    for mode in Mode::ALL {
        // Room behind the view that belongs to the caller: what lies there is the caller's to check.
        let mut mats = [Matrix::write("C", 1, 10).padded(10, 2, 3, -1.0)];
        let report = kernel.run(*mode, &Shape { ints: &[10], ..line(1, 32) }, &mut mats);
        assert_eq!(mats[0].data[2..], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0], "{mode}");
        assert_eq!(report.is_clean(), *mode == Mode::Plain, "{report}");
        // No room: even plain mode notices, only not who it was.
        let mut mats = [Matrix::write("C", 1, 10)];
        let report = kernel.run(*mode, &Shape { ints: &[10], ..line(1, 32) }, &mut mats);
        let finding = only(&report);
        assert_eq!((finding.kind, element(finding)), (FindingKind::OutOfBounds, ("C", (1, 0))), "{mode}");
        assert_eq!(finding.actor, if *mode == Mode::Plain { None } else { actor(0, 10) });
    }
}

#[test]
fn a_write_to_an_input_is_found() {
    let kernel = text(
        "swapped",
        "struct Params { float *a; float const *c; };
         extern \"C\" __global__ void swapped(Params const p) { p.a[threadIdx.x] = 2.0f; }",
    );
    for mode in CHECKED {
        let mut mats = [Matrix::read("A", 2, 2, |_, _| 1.0), Matrix::write("C", 2, 2)];
        let report = kernel.run(mode, &line(1, 4), &mut mats);
        assert_eq!((only(&report).kind, element(only(&report))), (FindingKind::WriteToInput, ("A", (0, 0))));
        assert_eq!(mats[0].data, [1.0; 4], "the caller's input is untouched");
    }
}

#[test]
fn shared_variables_end_where_their_neighbours_begin() {
    let kernel = text(
        "overflow",
        "struct Params { float *c; int which; };
         extern \"C\" __global__ void overflow(Params const p) {
           __shared__ float first[8];
           __shared__ float second[8];
           extern __shared__ float dynamic[];
           float *array = p.which == 0 ? first : p.which == 1 ? second : dynamic;
           for (int i = 0; i < 9; ++i) { array[i] = float(i); }
           p.c[0] = first[1] + second[1];
         }",
    );
    for mode in CHECKED {
        for which in 0..3 {
            let shape = Shape { smem: 32, ints: &[which], ..line(1, 1) };
            let report = kernel.run(mode, &shape, &mut [Matrix::write("C", 1, 1)]);
            let finding = report.findings.iter().find(|f| f.kind == FindingKind::OutOfBounds).expect("found");
            let want = match which {
                0 => Target::Shared { name: "first".into(), offset: 32, size: 32 },
                1 => Target::Shared { name: "second".into(), offset: 32, size: 32 },
                _ => Target::DynamicShared { offset: 32, size: 32 },
            };
            assert_eq!((finding.target.as_ref(), finding.write), (Some(&want), true), "{mode}: {report}");
        }
    }
}

#[test]
fn a_register_array_that_overflows_is_found() {
    let kernel = text(
        "fragment",
        "struct Params { float *c; int n; };
         extern \"C\" __global__ void fragment(Params const p) {
           float registers[8];
           float *cursor = registers;
           for (int i = 0; i < p.n; ++i) { *cursor++ = float(i); }
           p.c[threadIdx.x] = registers[threadIdx.x];
         }",
    );
    let run = |n| kernel.run(Mode::Bounds, &Shape { ints: &[n], ..line(1, 4) }, &mut [Matrix::write("C", 1, 4)]);
    assert!(run(8).is_clean());
    let report = run(9);
    let finding = only(&report);
    assert_eq!(
        (finding.kind, finding.actor, finding.write),
        (FindingKind::AddressError, actor(0, 0), true),
        "{report}"
    );
    assert_eq!((finding.detail.as_str(), line_number(finding)), ("stack-buffer-overflow", Some(5)));
    assert!(report.log.contains("'registers'"), "{}", report.log);
}

#[test]
fn undefined_behaviour_is_told_with_its_line() {
    let kernel = text(
        "vector",
        "struct Params { float const *a; float *c; int shift; };
         extern \"C\" __global__ void vector(Params const p) {
           double const two = *reinterpret_cast<double const *>(p.a + p.shift);
           p.c[threadIdx.x] = float(two) + float(1 << (p.shift * 40));
         }",
    );
    let a = || {
        let mut a = Matrix::read("A", 1, 64, |_, j| j as f32);
        // The caller's own alignment counts: begin at an address that is a multiple of 16.
        let address = a.data.as_ptr() as usize;
        a.before = (16 - address % 16) % 16 / 4;
        a.cols = 32;
        a.ld = 32;
        a
    };
    let run =
        |shift| kernel.run(Mode::Bounds, &Shape { ints: &[shift], ..line(1, 1) }, &mut [a(), Matrix::write("C", 1, 1)]);
    assert!(run(0).is_clean(), "{}", run(0));
    let report = run(1);
    let kinds: Vec<_> = report.findings.iter().map(|f| (f.kind, line_number(f))).collect();
    assert!(kinds.contains(&(FindingKind::Undefined, Some(3))), "a misaligned load: {report}");
    assert!(kinds.contains(&(FindingKind::Undefined, Some(4))), "a shift by 40: {report}");
    assert!(report.findings.iter().all(|f| f.actor == actor(0, 0)));
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels that do not end
// ---------------------------------------------------------------------------------------------------------------------

fn stuck(body: &str) -> Text {
    text(
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
    stuck(body).run(mode, &line(2, 64), &mut [Matrix::write("C", 1, 64)])
}

#[test]
fn a_barrier_that_some_threads_do_not_reach_is_a_deadlock() {
    for mode in Mode::ALL {
        let report = run_stuck("if (t >= 10) { __syncthreads(); }", *mode);
        let finding = report.findings.iter().find(|f| f.kind == FindingKind::Deadlock).expect("found");
        assert_eq!(
            (finding.actor.and_then(|a| a.thread), line_number(finding)),
            (Some([10, 0, 0]), Some(4)),
            "{report}"
        );
        let told: Vec<&str> = finding.detail.lines().collect();
        assert_eq!(told[0], "10 of 64 threads returned, the first of them (0,0,0)");
        assert!(told[1].starts_with("54 of 64 threads wait at the barrier at "), "{report}");
        assert!(told[1].ends_with("stuck.cu:4, the first of them (10,0,0)"), "{report}");
    }
}

#[test]
fn two_barriers_for_two_halves_of_a_block_are_a_deadlock() {
    let report = run_stuck("if (t < 32) { __syncthreads(); }\n else { __syncthreads(); }", Mode::Plain);
    let finding = &report.findings[0];
    assert_eq!(finding.kind, FindingKind::Deadlock, "{report}");
    assert!(finding.detail.contains("stuck.cu:4") && finding.detail.contains("stuck.cu:5"), "{report}");
}

#[test]
fn a_mask_with_lanes_that_never_come_is_a_deadlock() {
    let report =
        run_stuck("if (t % 32 != 3) { __shfl_sync(0xffffffffu, t, 0); } else { __syncthreads(); }", Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Deadlock);
    assert!(report.findings[0].detail.contains("wait for the lanes of their mask"), "{report}");
    let report = run_stuck("if (t == 3) { __shfl_sync(1u, t, 0); }", Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Undefined);
    assert_eq!(report.findings[0].actor.and_then(|a| a.thread), Some([3, 0, 0]));
}

#[test]
fn a_crash_is_a_verdict_with_its_thread() {
    // In bounds, AddressSanitizer sees it before the processor does.
    for mode in [Mode::Plain, Mode::Races] {
        let report = run_stuck("if (blockIdx.x == 0 && t == 5) { *(volatile float *)16 = 0.0f; }", mode);
        let finding = &report.findings[0];
        assert_eq!(
            (finding.kind, finding.signal, finding.actor),
            (FindingKind::Crash, Some(11), actor(0, 5)),
            "{report}"
        );
        assert_eq!((line_number(finding), finding.target.clone()), (Some(4), Some(Target::Address(16))), "{report}");
    }
}

#[test]
fn a_far_stray_in_plain_mode_names_the_tensor() {
    let report = run_stuck("if (t == 7) { p.c[64 * 1000 + 5] = 0.0f; }", Mode::Plain);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, element(finding)), (FindingKind::Crash, ("C", (1000, 5))), "{report}");
}

#[test]
fn a_kernel_that_stops_itself_is_a_verdict() {
    let report = run_stuck("if (t == 9) { __trap(); }", Mode::Plain);
    assert_eq!((report.findings[0].kind, line_number(&report.findings[0])), (FindingKind::Trap, Some(4)));
    let report = stuck("assert(t != 9);").with("struct Params", "#include <cassert>\nstruct Params");
    let report = report.run(Mode::Plain, &line(1, 64), &mut [Matrix::write("C", 1, 64)]);
    assert_eq!((report.findings[0].kind, report.findings[0].signal), (FindingKind::Crash, Some(6)));
    assert!(report.log.contains("Assertion `t != 9' failed"), "{}", report.log);
    let report = run_stuck("if (t == 9) { exit(0); }", Mode::Plain);
    assert_eq!(report.findings[0].kind, FindingKind::Crash, "{report}");
}

#[test]
fn a_stack_that_overflows_is_a_verdict() {
    let kernel = stuck("p.c[t] = dive(int(t) + 1000000);").with(
        "extern \"C\"",
        "__device__ float dive(int n) { volatile float here[64]; here[n % 64] = n; return n == 0 ? 0 : dive(n - 1) + here[3]; }\nextern \"C\"",
    );
    let report = kernel.run(Mode::Plain, &line(1, 64), &mut [Matrix::write("C", 1, 64)]);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, finding.actor), (FindingKind::Crash, actor(0, 0)), "{report}");
    assert!(finding.detail.contains("stack of the thread overflowed"), "{report}");
}

#[test]
fn an_endless_loop_ends_at_the_time_limit() {
    let mut options = options();
    options.time_limit = Duration::from_millis(200);
    let kernel = stuck("while (t == 20) { p.c[20] = p.c[21]; __threadfence(); }");
    for mode in Mode::ALL {
        let program = kernel.compile_with(*mode, &options);
        let report = launch(&program, &line(1, 64), &mut [Matrix::write("C", 1, 64)]);
        let finding = report.findings.iter().find(|f| f.kind == FindingKind::Timeout).expect("found");
        assert_eq!((finding.actor, line_number(finding)), (actor(0, 20), Some(4)), "{report}");
    }
}

#[test]
fn the_same_run_gives_the_same_report() {
    let broken = block_sum().with("__syncthreads();  // all are written", "");
    assert_eq!(sums(&broken), sums(&broken));
}
