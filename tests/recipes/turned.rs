//! Contract: inputs of any rank and type that are contiguous along another mode than the outputs are turned right, whole tiles and edges, with
//! the vectors that addresses, strides and extents allow.

use crate::judge;
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;

use cutemplate::arch::Targets;
use cutemplate::plan::{ModeStride, Operand};
use cutemplate::recipe::{ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::ViewLayout;

/// Settings, and what they are there for.
const TURNED: &[(&str, &str)] = &[
    ("expr=a\nin=u8:(1,?)\nout=u8:(?,1)", "single bytes: 16 along M, 8 rows"),
    ("expr=a + b\nin=bf16:(1,?), bf16:(?,1)\nout=bf16:(?,1)", "halves, and an input that is not turned"),
    ("expr=a * 2, a - b\nin=f32:(1,?), f32:(1,?)\nout=f32:(?,1), f16:(?,1)", "two turned inputs, outputs of two types"),
    ("expr=a\nin=f64:(1,?)\nout=f64:(?,1)", "8 bytes: 2 along M, 2 rows"),
    (
        "expr=a + 2 * b + 4 * c + d\nin=i8:(1,?), f32:(1,?), f16:(?,1), f32:(0,1)\nout=f32:(?,1)\ncompute=f32",
        "each turned by its own width, and a broadcast row",
    ),
    ("expr=a + b\nin=i8:(1,?), f16:(?,?)\nout=f64:(?,1)\ncompute=f64", "a wide output, and any strides"),
    ("expr=a\nin=f16:(1,?)\nout=f16:(?,1)\nthreads=64", "several blocks a thread"),
    ("expr=a\nin=f16:(1,?)\nout=f16:(?,1)\nthreads=1024\nvector=4", "fewer rows, vectors of 4 bytes"),
    ("expr=a\nin=f16:(?,1,?)\nout=f16:(?,?,1)", "batches outside"),
    ("expr=a\nin=i8:(?,1,?,?)\nout=i8:(?,?,?,1)", "NHWC to NCHW: two modes are N"),
    ("expr=a + b\nin=f32:(1,?,?,?,?), f32:(?,1,?,?,?)\nout=f32:(?,?,?,?,1)", "two orders: one of them by strides"),
];

/// Extents, elements that rows are padded by, and elements before the first.
type Lies = (&'static [i64], i64, u64);

/// Every power of two that rows are a multiple of; whole tiles, edges, and less than a vector.
fn lies(rank: usize, bytes: u64) -> Vec<Lies> {
    match (rank, bytes) {
        (2, 1) => {
            vec![(&[304, 272], 0, 0), (&[264, 136], 4, 8), (&[131, 258], 1, 0), (&[5, 3], 0, 1), (&[257, 144], 2, 0)]
        }
        (2, 2) => {
            vec![(&[144, 272], 0, 0), (&[132, 134], 2, 4), (&[67, 130], 1, 0), (&[3, 5], 0, 1), (&[129, 136], 0, 8)]
        }
        (2, _) => vec![(&[72, 136], 0, 0), (&[66, 68], 2, 4), (&[67, 65], 1, 0), (&[3, 5], 0, 1), (&[33, 72], 0, 2)],
        (3, _) => vec![(&[3, 136, 144], 0, 0), (&[2, 130, 33], 2, 8), (&[5, 1, 70], 0, 1)],
        (4, _) => vec![(&[2, 260, 12, 11], 0, 0), (&[3, 20, 5, 14], 2, 16), (&[2, 7, 1, 3], 0, 3)],
        _ => vec![(&[70, 2, 3, 2, 66], 0, 0), (&[5, 3, 2, 4, 9], 3, 4), (&[66, 1, 1, 3, 4], 0, 0)],
    }
}

/// The contiguous mode first, then from the last to the first, each row of the first padded.
fn layout(operand: &Operand, (shape, padding, offset): Lies) -> TensorLayout {
    let unit = |mode: &usize| operand.strides[*mode] == ModeStride::Unit;
    let order = (0..shape.len()).rev().filter(unit).chain((0..shape.len()).rev().filter(|mode| !unit(mode)));
    let (mut stride, mut next) = (vec![0; shape.len()], 1);
    for (place, mode) in order.enumerate() {
        if operand.strides[mode] != ModeStride::Broadcast {
            stride[mode] = next;
            next = next * shape[mode] + if place == 0 { padding } else { 0 };
        }
    }
    TensorLayout::from(ViewLayout::strided(shape, &stride).expect("rank 1 to 5")).at_offset(Elements(offset))
}

fn problems(kernel: &Kernel) -> Vec<Problem> {
    let operands = kernel.plan.operands();
    let bytes = operands.iter().map(|operand| operand.dtype.bytes().0).min().unwrap_or(1);
    let of = |(seed, lies): (u64, Lies)| Problem {
        layouts: operands.iter().map(|operand| layout(operand, lies)).collect(),
        in_place: vec![None; operands.iter().filter(|operand| !operand.access.writes()).count()],
        scalars: Vec::new(),
        fills: vec![Fill::Integers; operands.iter().filter(|operand| !operand.access.writes()).count()],
        planted: Vec::new(),
        seed,
    };
    (1..).zip(lies(operands[0].strides.len(), bytes)).map(of).collect()
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let recipe = |(settings, what): &(&str, &str)| {
        ElementwiseApply::from_settings(&Settings::parse_lines(settings)).unwrap_or_else(|e| panic!("{what}: {e}"))
    };
    let kernels = tally.plan("turned", (0..).zip(TURNED.iter().map(recipe)), &Targets::default());
    assert_eq!(kernels.len(), TURNED.len(), "{tally}");
    for kernel in &kernels {
        assert!(kernel.plan.shared().iter().all(|tile| tile.extra() == 0), "{kernel}: conflicts");
        assert!(!kernel.plan.shared().is_empty(), "{kernel}: turned by default");
    }
    (tally, kernels)
}

/// What the test of this module runs as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).collect()
}

#[test]
fn inputs_of_any_rank_and_type_are_turned_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, problems);
    tally.finish("turned");
}
