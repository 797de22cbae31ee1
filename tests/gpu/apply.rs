//! Contract: on a GPU, an elementwise recipe of any function, types, strides and settings is refused with a reason, or its
//! kernel is right for every shape, layout, address and input, and touches nothing else.
//!
//! Where there is no GPU the tests say that they did not run. `support/gpu.rs` tells how to carry them to one.
//! `CUTEMPLATE_APPLY_RECIPES` sets how many recipes are drawn; with it, every variant, layout and type is there, else a
//! selection.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;

use crate::kernels::Tally;
use crate::kernels::apply::{drawn, systematic};
use crate::variables;
use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Code;
use cutemplate::launch::{AnyKernel, Gpu, LaunchError};
use cutemplate::plan::Plan;
use cutemplate::recipe::{ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use cutemplate::view::{View, ViewLayout, ViewMut};

fn recipes() -> Option<u64> {
    variables::number("CUTEMPLATE_APPLY_RECIPES")
}

fn targets() -> Targets {
    Targets::new([Arch::Sm90a]).expect("not empty")
}

#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let kernels = tally.plan("apply", (0..recipes().unwrap_or(60)).map(|i| (i, drawn(i))), &targets());
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(4, 40_000).collect());
    tally.finish("random recipes");
}

#[test]
#[ignore = "needs a GPU"]
fn every_variant_type_and_layout_is_refused_or_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let every = if recipes().is_some() { 1 } else { 11 };
    let kernels = tally.plan("grid", (0..).zip(systematic(every)), &targets());
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(4, 200_000).collect());
    tally.finish("variants, types and layouts");
}

fn planned(name: &str, settings: &str) -> Plan {
    let recipe = ElementwiseApply::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as(name, &targets()).expect("a right recipe")
}

/// Bytes of the device for `buffers` of so many, or a word on standard error.
pub(crate) fn fits(gpu: &Gpu, buffers: u64, bytes: usize) -> bool {
    let fits = gpu.memory().0 > (buffers + 1) * bytes as u64;
    if !fits {
        eprintln!("{gpu} has {} of memory: not run", gpu.memory());
    }
    fits
}

/// `5 - 2 * a` of bytes that are 0 but for marks: 5 but for the marks. Elements lie at `from` in A, at `to` in Y.
pub(crate) fn marks_arrive(gpu: &Gpu, kernel: &AnyKernel, marks: &[[i64; 2]], from: ViewLayout, to: ViewLayout) {
    let len = |layout: &ViewLayout| usize::try_from(layout.span().expect("positive")).expect("64 bits");
    let offset =
        |layout: &ViewLayout, c: &[i64; 2]| layout.stride().iter().zip(c).map(|(d, c)| d * c).sum::<i64>() as usize;
    let stream = gpu.stream();
    let mut a = stream.alloc_zeros::<u8>(len(&from)).expect("device memory");
    let mut y = stream.alloc_zeros::<u8>(len(&to)).expect("device memory");
    for (value, mark) in (1..).zip(marks) {
        let at = offset(&from, mark);
        stream.memcpy_htod(&[value], &mut a.slice_mut(at..at + 1)).expect("copied");
    }
    let mut views = [View::device_strided(&a, from).erase(), ViewMut::device_strided(&mut y, to).into_any()];
    kernel.launch(&stream, &mut views).expect("launches");
    let found = stream.clone_dtoh(&y).expect("ran");
    let (fives, others): (Vec<usize>, Vec<usize>) =
        (0..found.len()).filter(|at| found[*at] != 0).partition(|at| found[*at] == 5);
    let size = usize::try_from(to.size().expect("positive")).expect("64 bits");
    assert_eq!(fives.len() + others.len(), size, "{}: elements, and nothing in the gaps", kernel.plan().name());
    let mut odd: Vec<(usize, u8)> =
        (1_u8..).zip(marks).map(|(value, mark)| (offset(&to, mark), 5_u8.wrapping_sub(2 * value))).collect();
    odd.sort_unstable();
    let others: Vec<(usize, u8)> = others.into_iter().map(|at| (at, found[at])).collect();
    assert_eq!(others, odd, "{}", kernel.plan().name());
}

const LARGE: &[(&str, &str)] = &[
    ("large_vectorized", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=vectorized"),
    ("large_tv", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=tv"),
    ("large_remapped", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=remapped"),
    ("large_transposed", "expr=5 - 2 * a\nin=u8:(1,?)\nout=u8:(?,1)\nvariant=transposed"),
];

/// More than 2^31 elements, looked at around the places where a 32-bit index would wrap.
#[test]
#[ignore = "needs a GPU"]
fn tensors_may_have_more_than_2_31_elements() {
    let gpu = gpu::find();
    for (name, settings) in LARGE {
        let Some(kernel) = gpu::load(gpu.as_ref(), planned(name, settings)) else { continue };
        let Some(gpu) = gpu.as_ref().filter(|gpu| fits(gpu, 2, 1 << 31)) else { continue };
        let (m, n) = (65_539_i64, 32_771_i64);
        let around = [0, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, m * n - 1];
        let marks: Vec<[i64; 2]> = around.iter().map(|at| [at / n, at % n]).collect();
        let layout = |stride: [i64; 2]| ViewLayout::strided(&[m, n], &stride).expect("a matrix");
        let turned = name.ends_with("transposed");
        marks_arrive(gpu, &kernel, &marks, layout(if turned { [1, m] } else { [n, 1] }), layout([n, 1]));
    }
}

/// One thread for an element counts them in 32 bits.
#[test]
#[ignore = "needs a GPU"]
fn more_elements_than_threads_are_counted_in_are_refused() {
    let gpu = gpu::find();
    let Some(kernel) = gpu::load(gpu.as_ref(), planned("large_naive", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=naive"))
    else {
        return;
    };
    let gpu = gpu.expect("a kernel was loaded");
    if !fits(&gpu, 1, 1 << 31) {
        return;
    }
    let stream = gpu.stream();
    let (m, n) = (65_539_i64, 32_771_i64);
    let a = stream.alloc_zeros::<u8>((m * n) as usize).expect("device memory");
    let mut y = stream.alloc_zeros::<u8>((m * n) as usize).expect("device memory");
    let mut views = [View::device(&a, [m, n], n).erase(), ViewMut::device(&mut y, [m, n], n).into_any()];
    match kernel.launch(&stream, &mut views) {
        Err(LaunchError::Bind(error)) => assert_eq!(error.diagnostics()[0].code, Code::ProblemTooLarge),
        other => panic!("{other:?}"),
    }
}

const FAR: &[(&str, &str, [i64; 2])] = &[
    ("far_naive", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=naive", [1_100_000_001, 1]),
    ("far_vectorized", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=vectorized", [1_100_000_001, 1]),
    ("far_tv", "expr=5 - 2 * a\nin=u8:(?,1)\nvariant=tv", [1_100_000_001, 1]),
    ("far_strided", "expr=5 - 2 * a\nin=u8:(?,?)\nvariant=vectorized", [1_100_000_001, 1_100_003]),
];

/// Offsets beyond 2^31: few elements that lie far apart.
#[test]
#[ignore = "needs a GPU"]
fn elements_may_lie_more_than_2_31_apart() {
    let gpu = gpu::find();
    for (name, settings, stride) in FAR {
        let Some(kernel) = gpu::load(gpu.as_ref(), planned(name, settings)) else { continue };
        let Some(gpu) = gpu.as_ref().filter(|gpu| fits(gpu, 2, 3_300_000_000)) else { continue };
        let layout = ViewLayout::strided(&[3, 999], stride).expect("a matrix");
        marks_arrive(gpu, &kernel, &[[0, 0], [0, 998], [1, 17], [2, 0], [2, 998]], layout, layout);
    }
}
