//! Contract: the emitted elementwise_add runs on the CPU as it stands, through the typed launcher, exact to the bit, in
//! every mode and on every path through it; broken on purpose, it is caught.

#![cfg(feature = "host")]

use crate::host_common::{element, options};
use cutemplate::arch::{Arch, Targets};
use cutemplate::artifact::{Artifact, Code, Parts, Text};
use cutemplate::dtype::{DType, Element};
use cutemplate::emit::{self, SourceFile};
use cutemplate::exec::cxx::{Kernel, Mode, Program, Source};
use cutemplate::exec::{Buffer, Error, Executor, FindingKind, Job, Report};
use cutemplate::plan::Plan;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, Host, View, ViewLayout, ViewMut, ViewRef};
use half::{bf16, f16};

fn plan(dtype: DType) -> Plan {
    planned(&format!("dtype={dtype}"))
}

fn planned(settings: &str) -> Plan {
    let targets = Targets::new([Arch::Sm80]).expect("one");
    ElementwiseAdd::from_settings(&Settings::parse_lines(settings)).expect("legal").plan(&targets).expect("legal")
}

/// (M,N), leading dimension, first element: whole vectors, single elements, misaligned, padded, one row, one column.
const SHAPES: [([usize; 2], usize, usize); 7] = [
    ([1, 1], 1, 0),
    ([3, 12], 12, 0),
    ([129, 511], 511, 0),
    ([65, 512], 520, 0),
    ([30, 40], 41, 1),
    ([1, 3000], 3000, 0),
    ([3000, 1], 1, 0),
];

fn check<T: Element + PartialEq + std::fmt::Debug>(mode: Mode, from: fn(f32) -> T, add: fn(T, T) -> T) {
    let kernel: Kernel<ElementwiseAdd> = Kernel::compile(plan(T::DTYPE), mode, &options()).expect("compiles");
    for ([m, n], ld, first) in SHAPES {
        let len = first + (m - 1) * ld + n;
        let a: Vec<T> = (0..len).map(|i| from((i % 101) as f32 - 50.0)).collect();
        let b: Vec<T> = (0..len).map(|i| from((i % 37) as f32 * 0.25)).collect();
        let untouched = from(-7.0);
        let mut c = vec![untouched; len];
        let (shape, pitch) = ([m as i64, n as i64], ld as i64);
        let launched = kernel.launch(ElementwiseAddArgs {
            a: View::<T, Host>::host(&a[first..], shape, pitch),
            b: View::host(&b[first..], shape, pitch),
            c: ViewMut::host(&mut c[first..], shape, pitch),
        });
        launched.unwrap_or_else(|e| panic!("{m} x {n}, {mode}: {e}"));
        for (i, found) in c.iter().enumerate() {
            let inside = i >= first && (i - first) % ld < n;
            assert_eq!(*found, if inside { add(a[i], b[i]) } else { untouched }, "{m} x {n}, {mode}, element {i}");
        }
    }
}

#[test]
fn f32_is_exact_in_every_mode() {
    Mode::ALL.iter().for_each(|mode| check::<f32>(*mode, |x| x, |a, b| a + b));
}

#[test]
fn f16_is_exact() {
    check::<f16>(Mode::Plain, f16::from_f32, |a, b| f16::from_f32(a.to_f32() + b.to_f32()));
}

#[test]
fn bf16_is_exact() {
    check::<bf16>(Mode::Plain, bf16::from_f32, |a, b| bf16::from_f32(a.to_f32() + b.to_f32()));
}

/// Runs the f32 kernel with its header changed, on 5 x 6 matrices.
fn broken(mode: Mode, from: &str, to: &str) -> Report {
    let plan = planned("dtype=f32\nraster=n");
    let unit = emit::render(&plan);
    assert!(unit.header().text.contains(from), "{from} is in the template");
    let mut files = unit.files().to_vec();
    for file in &mut files {
        if file.name == unit.header().name {
            *file = SourceFile { text: file.text.replace(from, to), ..file.clone() };
        }
    }
    let program = Program::compile(Source::new(unit.name(), &files), mode, &options()).expect("compiles");
    let (a, b, mut c) = (vec![1.0_f32; 30], vec![2.0_f32; 30], vec![0.0_f32; 30]);
    let view = |data: &[f32], access| ViewRef {
        dtype: DType::F32,
        ptr: data.as_ptr() as u64,
        available: Elements(data.len() as u64),
        layout: ViewLayout::matrix([5, 6], 6),
        access,
    };
    let views = [view(&a, Access::Read), view(&b, Access::Read), view(&c, Access::Write)];
    let binding = plan.bind(&views).expect("fits");
    // SAFETY: any four bytes are an f32.
    let (a, b, c) = unsafe { (a.align_to::<u8>().1, b.align_to::<u8>().1, c.align_to_mut::<u8>().1) };
    let mut buffers = [Buffer::Read(a), Buffer::Read(b), Buffer::Write(c)];
    program.run(&Job::from(&binding), &mut buffers).expect("runs")
}

#[test]
fn a_predicate_that_is_off_by_one_is_caught() {
    let report = broken(
        Mode::Bounds,
        "return elem_less(crd, shape_MN);",
        "return elem_less(crd, make_shape(params.m + 1, params.n));",
    );
    assert!(!report.is_clean());
    for finding in &report.findings {
        let (tensor, coordinate) = element(finding);
        assert_eq!((finding.kind, coordinate.0), (FindingKind::OutOfBounds, 5), "{report}");
        assert_eq!(finding.write, tensor == "C");
        assert!(finding.line().is_some_and(|l| l.file == "elementwise_add_f32.cuh"), "{report}");
    }
}

#[test]
fn two_threads_on_one_element_are_caught() {
    let thread = "composition(gT, TVFrag{})(threadIdx.x, _, _, _)";
    let report = broken(Mode::Races, thread, "composition(gT, TVFrag{})(threadIdx.x / 2 * 2, _, _, _)");
    let finding = report.findings.iter().find(|f| f.kind == FindingKind::Race).unwrap_or_else(|| panic!("{report}"));
    assert_eq!(element(finding).0, "C");
    assert!(finding.write && finding.other.as_ref().is_some_and(|e| e.write), "{report}");
}

#[test]
fn an_artifact_of_a_build_script_runs_without_a_gpu() {
    let plan = plan(DType::F32);
    let (abi, digest) = (plan.abi().to_json(), plan.abi().digest().to_string());
    let texts = vec![Text { abi: &abi, digest: &digest, code: Code::Stub { why: "a test" } }].into();
    let parts = Parts { family: ElementwiseAdd::FAMILY, name: plan.name(), texts };
    // SAFETY: there is no fatbin.
    let artifact = unsafe { Artifact::new(parts) };
    let kernel: Kernel<ElementwiseAdd> = Kernel::load_with(&artifact, Mode::Plain, &options()).expect("loads");
    let (a, b, mut c) = ([1.0_f32, 2.0], [10.0_f32, 20.0], [f32::NAN; 2]);
    let args = |c: &mut [f32]| {
        kernel.launch(ElementwiseAddArgs {
            a: View::<f32, Host>::host(&a, [1, 2], 2),
            b: View::host(&b, [1, 2], 2),
            c: ViewMut::host(c, [1, 2], 2),
        })
    };
    args(&mut c).expect("clean");
    assert_eq!(c, [11.0, 22.0]);
    match args(&mut c[..1]) {
        Err(Error::Bind(refused)) => assert!(refused.to_string().starts_with("error[CT107]"), "{refused}"),
        other => panic!("a view of too little memory was launched: {other:?}"),
    }
}

#[test]
fn halves_of_one_buffer_are_one_memory() {
    // C is the right half of the rows whose left half is A and B: the gaps of one are the elements of the other.
    let (m, n, ld) = (17, 24, 48);
    for mode in [Mode::Plain, Mode::Bounds] {
        let kernel: Kernel<ElementwiseAdd> = Kernel::compile(plan(DType::F32), mode, &options()).expect("compiles");
        let mut both: Vec<f32> = (0..m * ld).map(|i| i as f32).collect();
        let base = both.as_mut_ptr() as u64;
        let available = Elements((m * ld - n) as u64);
        let shape = [m as i64, n as i64];
        // SAFETY: nobody touches `both` until the launch is over; the kernel reads the left half and writes the right.
        let (a, b, c) = unsafe {
            (
                View::<f32, Host>::from_raw_parts(base, available, ViewLayout::matrix(shape, ld as i64)),
                View::from_raw_parts(base, available, ViewLayout::matrix(shape, ld as i64)),
                ViewMut::from_raw_parts(base + 4 * n as u64, available, ViewLayout::matrix(shape, ld as i64)),
            )
        };
        kernel.launch(ElementwiseAddArgs { a, b, c }).unwrap_or_else(|e| panic!("{mode}: {e}"));
        for (i, found) in both.iter().enumerate() {
            let want = if i % ld < n { i as f32 } else { 2.0 * (i - n) as f32 };
            assert_eq!(*found, want, "{mode}, element {i}");
        }
    }
}
