//! Contract: an access outside the elements of a tensor, a shared variable or a register array is found, with block,
//! thread, tensor and coordinate, and line; the same kernel without the defect is told nothing.

#![cfg(feature = "host")]

use crate::host_common::{Shape, Tensor, Text, actor, element, line, line_number, only};
use crate::together::CUDA;
use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{FindingKind, Report, Target};

const CHECKED: [Mode; 2] = [Mode::Bounds, Mode::Races];

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    vec![
        (row_sums("0", "< p.cols"), &CHECKED[..]),
        (row_sums("0", "<= p.cols"), &CHECKED),
        (row_sums("-1", "< p.cols"), &CHECKED),
        (vectors(), &CHECKED),
        (past(), Mode::ALL),
        (swapped(), &CHECKED),
        (overflow(), &CHECKED),
        (fragment(), &[Mode::Bounds]),
        (vector(), &[Mode::Bounds]),
        (tiny(), &[Mode::Bounds]),
    ]
}

/// Thread i sums row i of A.
fn row_sums(first: &str, last: &str) -> Text {
    CUDA.text(
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
    )
}

/// On A = `(5,7):(8,1)`, whose gaps and surroundings hold NaN.
fn run_row_sums(first: &str, last: &str, rows: i32, mode: Mode) -> Report {
    let a = Tensor::read("A", 5, 7, |i, j| (10 * i + j) as f32).padded(8, 3, 0, f32::NAN);
    let shape = Shape { ints: &[rows, 7, 8], ..line(1, 6) };
    row_sums(first, last).run(mode, &shape, &mut [a, Tensor::write("C", 1, 6)])
}

#[test]
fn a_read_one_past_the_row_hits_the_gap() {
    for mode in CHECKED {
        let clean = run_row_sums("0", "< p.cols", 5, mode);
        assert!(clean.is_clean(), "{clean}");
        let report = run_row_sums("0", "<= p.cols", 5, mode);
        let finding = only(&report);
        assert_eq!((finding.kind, finding.write, finding.bytes), (FindingKind::OutOfBounds, false, 4), "{report}");
        assert_eq!((finding.who, element(finding)), (actor(0, 0), ("A", (0, 7))), "{report}");
        assert_eq!((line_number(finding), finding.count), (Some(6), 5), "each row's, and behind the last");
    }
}

#[test]
fn a_read_one_past_the_last_row_and_one_before_the_first_are_outside() {
    for mode in CHECKED {
        let report = run_row_sums("0", "< p.cols", 6, mode);
        assert_eq!((only(&report).who, element(only(&report))), (actor(0, 5), ("A", (5, 0))), "{report}");
        let report = run_row_sums("-1", "< p.cols", 5, mode);
        assert_eq!((only(&report).who, element(only(&report))), (actor(0, 0), ("A", (-1, 7))), "{report}");
    }
}

fn vectors() -> Text {
    CUDA.text(
        "vectors",
        "struct Params { float4 *c; };
         extern \"C\" __global__ void vectors(Params const p) {
           p.c[threadIdx.x] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
         }",
    )
}

#[test]
fn a_vector_that_straddles_the_end_is_told_at_its_first_element_outside() {
    for mode in CHECKED {
        assert!(vectors().run(mode, &line(1, 2), &mut [Tensor::write("C", 1, 8)]).is_clean());
        let report = vectors().run(mode, &line(1, 2), &mut [Tensor::write("C", 1, 7)]);
        assert_eq!((only(&report).who, element(only(&report))), (actor(0, 1), ("C", (1, 0))), "{report}");
    }
}

fn past() -> Text {
    CUDA.text(
        "past",
        "struct Params { float *c; int n; };
         extern \"C\" __global__ void past(Params const p) {
           if (threadIdx.x <= p.n) { p.c[threadIdx.x] = 1.0f; }
         }",
    )
}

#[test]
fn writes_outside_are_found_and_reach_the_caller_as_they_are() {
    for mode in Mode::ALL {
        // Room behind the view that belongs to the caller: what lies there is the caller's to check.
        let mut mats = [Tensor::write("C", 1, 10).padded(10, 2, 3, -1.0)];
        let report = past().run(*mode, &Shape { ints: &[10], ..line(1, 32) }, &mut mats);
        assert_eq!(mats[0].data[2..], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0], "{mode}");
        assert_eq!(report.is_clean(), *mode == Mode::Plain, "{report}");
        // No room: even plain mode notices, only not who it was.
        let mut mats = [Tensor::write("C", 1, 10)];
        let report = past().run(*mode, &Shape { ints: &[10], ..line(1, 32) }, &mut mats);
        let finding = only(&report);
        assert_eq!((finding.kind, element(finding)), (FindingKind::OutOfBounds, ("C", (1, 0))), "{mode}");
        assert_eq!(finding.who, if *mode == Mode::Plain { None } else { actor(0, 10) });
    }
}

fn swapped() -> Text {
    CUDA.text(
        "swapped",
        "struct Params { float *a; float const *c; };
         extern \"C\" __global__ void swapped(Params const p) { p.a[threadIdx.x] = 2.0f; }",
    )
}

#[test]
fn a_write_to_an_input_is_found() {
    for mode in CHECKED {
        let mut mats = [Tensor::read("A", 2, 2, |_, _| 1.0), Tensor::write("C", 2, 2)];
        let report = swapped().run(mode, &line(1, 4), &mut mats);
        assert_eq!((only(&report).kind, element(only(&report))), (FindingKind::WriteToInput, ("A", (0, 0))));
        assert_eq!(mats[0].data, [1.0; 4], "the caller's input is untouched");
    }
}

fn overflow() -> Text {
    CUDA.text(
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
    )
}

#[test]
fn shared_variables_end_where_their_neighbours_begin() {
    for mode in CHECKED {
        for which in 0..3 {
            let shape = Shape { smem: 32, ints: &[which], ..line(1, 1) };
            let report = overflow().run(mode, &shape, &mut [Tensor::write("C", 1, 1)]);
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

fn fragment() -> Text {
    CUDA.text(
        "fragment",
        "struct Params { float *c; int n; };
         extern \"C\" __global__ void fragment(Params const p) {
           float registers[8];
           float *cursor = registers;
           for (int i = 0; i < p.n; ++i) { *cursor++ = float(i); }
           p.c[threadIdx.x] = registers[threadIdx.x];
         }",
    )
}

#[test]
fn a_register_array_that_overflows_is_found() {
    let run = |n| fragment().run(Mode::Bounds, &Shape { ints: &[n], ..line(1, 4) }, &mut [Tensor::write("C", 1, 4)]);
    assert!(run(8).is_clean());
    let report = run(9);
    let finding = only(&report);
    assert_eq!((finding.kind, finding.who, finding.write), (FindingKind::AddressError, actor(0, 0), true), "{report}");
    assert_eq!((finding.detail.as_str(), line_number(finding)), ("stack-buffer-overflow", Some(5)));
    assert!(report.printed.contains("'registers'"), "{}", report.printed);
}

fn vector() -> Text {
    CUDA.text(
        "vector",
        "struct Params { float const *a; float *c; int shift; };
         extern \"C\" __global__ void vector(Params const p) {
           double const two = *reinterpret_cast<double const *>(p.a + p.shift);
           p.c[threadIdx.x] = float(two) + float(1 << (p.shift * 40));
         }",
    )
}

#[test]
fn undefined_behaviour_is_told_with_its_line() {
    let a = || {
        let mut a = Tensor::read("A", 1, 64, |_, j| j as f32);
        // The caller's own alignment counts: begin at an address that is a multiple of 16.
        let address = a.data.as_ptr() as usize;
        a.before = (16 - address % 16) % 16 / 4;
        a.cols = 32;
        a.ld = 32;
        a
    };
    let run = |shift| {
        vector().run(Mode::Bounds, &Shape { ints: &[shift], ..line(1, 1) }, &mut [a(), Tensor::write("C", 1, 1)])
    };
    assert!(run(0).is_clean(), "{}", run(0));
    let report = run(1);
    let kinds: Vec<_> = report.findings.iter().map(|f| (f.kind, line_number(f))).collect();
    assert!(kinds.contains(&(FindingKind::Misaligned, Some(3))), "a misaligned load: {report}");
    assert!(kinds.contains(&(FindingKind::Undefined, Some(4))), "a shift by 40: {report}");
    assert!(report.findings.iter().all(|f| f.who == actor(0, 0)));
}

fn tiny() -> Text {
    CUDA.text(
        "tiny",
        "#include <cutlass/float8.h>
         struct Params { float const *a; float *c; int n; };
         extern \"C\" __global__ void tiny(Params const p) {
           float const x = p.a[threadIdx.x];
           int const least = p.n - 1;
           p.c[threadIdx.x] = float(cutlass::float_e4m3_t(x)) + float(cutlass::float_e5m2_t(x)) + float(least);
         }",
    )
}

/// CUTLASS's conversion to 8 bits overflows an `int` for f32 just so small. That is its own; an overflow of the kernel is not hidden.
#[test]
fn undefined_behaviour_of_cutlass_is_not_the_kernels() {
    let powers = || Tensor::read("A", 1, 64, |_, j| (-(j as f32)).exp2());
    let run = |n| {
        let shape = Shape { ints: &[n], ..line(1, 64) };
        tiny().run(Mode::Bounds, &shape, &mut [powers(), Tensor::write("C", 1, 64)])
    };
    assert!(run(1).is_clean(), "{}", run(1));
    let report = run(i32::MIN);
    let found = only(&report);
    assert_eq!((found.kind, line_number(found)), (FindingKind::Undefined, Some(5)), "{report}");
}
