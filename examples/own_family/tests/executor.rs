//! Contract: the kernel of a family from another crate is right on the executor, and a launch that does not fit is refused.

use cutemplate::arch::Targets;
use cutemplate::dtype::{DType, E4m3};
use cutemplate::exec;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Recipe, TensorArgs};
use cutemplate::verify::{self, Fill, Tensor, TensorLayout, Verdict};
use gated_family::Gated;
use half::bf16;
use own_family::gated;

fn plan() -> Plan {
    let recipe = Gated { dtype: DType::Bf16, ..Gated::default() };
    recipe.plan_as("gated", &Targets::default()).expect("the build script planned it")
}

/// Gate, Up, Q and S of a problem, with gaps between rows.
fn tensors(m: u64, n: u64, fill: Fill) -> [Tensor; 4] {
    let of = |dtype, layout| Tensor::new(dtype, layout).expect("a small tensor");
    let inputs = || TensorLayout::padded(m, n, n + 4);
    let mut all = [
        of(DType::Bf16, inputs()),
        of(DType::Bf16, inputs()),
        of(DType::E4m3, inputs()),
        of(DType::F32, TensorLayout::padded(m, n.div_ceil(128), n.div_ceil(128) + 1)),
    ];
    for (input, seed) in all[..2].iter_mut().zip(1..) {
        input.fill(fill, seed);
    }
    all
}

fn launch([gate, up, q, s]: &mut [Tensor; 4]) -> Result<(), exec::Error> {
    let kernel = exec::Kernel::<gated::Recipe>::load(&gated::ARTIFACT).expect("it was compiled");
    kernel.launch(
        TensorArgs::new()
            .input(gate.view::<bf16>().expect("bf16"))
            .input(up.view::<bf16>().expect("bf16"))
            .output(q.view_mut::<E4m3>().expect("e4m3"))
            .output(s.view_mut::<f32>().expect("f32")),
    )
}

fn verdicts([gate, up, q, s]: &[Tensor; 4]) -> Vec<Verdict> {
    verify::check(&plan(), &[gate, up], &[], &[q, s]).expect("tensors of the family")
}

#[test]
fn every_element_is_right() {
    for (m, n, fill) in
        [(9, 384, Fill::Normal), (8, 128, Fill::Integers), (12, 256, Fill::Specials), (0, 128, Fill::Normal)]
    {
        let mut tensors = tensors(m, n, fill);
        let [gate, up, outputs @ ..] = &mut tensors;
        verify::fill_unwritten(&plan(), &[gate, up], &[], outputs).expect("tensors of the family");
        launch(&mut tensors).expect("no finding");
        for verdict in verdicts(&tensors) {
            assert!(verdict.is_right(), "{m}x{n} {fill}: {verdict}");
        }
    }
}

#[test]
fn what_is_wrong_is_found() {
    let mut tensors = tensors(3, 256, Fill::Normal);
    launch(&mut tensors).expect("no finding");
    // A scale that is 1 % too large, and a value of another coordinate.
    let row = tensors[3].row_mut::<f32>(2).expect("a row");
    row[1] *= 1.01;
    let row = tensors[2].row_mut::<E4m3>(1).expect("a row");
    row[7] = E4m3(row[7].0 ^ 1);
    let found: Vec<u64> = verdicts(&tensors).iter().map(|verdict| verdict.mismatches).collect();
    assert_eq!(found, [1, 1]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let told = |m, n| launch(&mut tensors(m, n, Fill::Normal)).expect_err("refused").to_string();
    assert!(told(4, 100).starts_with("error[CT110]"), "{}", told(4, 100));
    let mut scales = tensors(4, 256, Fill::Normal);
    scales[3] = Tensor::new(DType::F32, TensorLayout::contiguous(4, 3)).expect("small");
    let told = launch(&mut scales).expect_err("refused").to_string();
    assert!(told.contains("S of shape (4,2)"), "{told}");
}
