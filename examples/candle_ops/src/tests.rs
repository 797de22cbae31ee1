//! The operations against candle's own: on the GPU with the feature `cuda`, else on the CPU.

use candle_core::{D, DType, Device, IndexOp, Result, Tensor, Var};

use super::{LinearRelu, MulRelu, RmsNorm, RowSums, Softmax};

fn device() -> Device {
    Device::cuda_if_available(0).expect("a device")
}

/// Small integers, of which sums are exact, so that results are compared bit for bit.
fn integers(shape: &[usize], scale: f64) -> Result<Tensor> {
    let count = shape.iter().product::<usize>() as f32;
    let line = Tensor::arange(0_f32, count, &device())?;
    // -3 to 3, without a period that fits a row.
    let wave = (line.affine(0.618_034, 0.0)?.sin()? * 3.5)?.round()?;
    (wave * scale)?.reshape(shape)
}

fn same(found: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
    let flat = |t: &Tensor| t.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
    assert_eq!(flat(found)?, flat(expected)?);
    Ok(())
}

#[test]
fn products_of_any_strides_are_candle_s() -> Result<()> {
    let (a, b) = (integers(&[60, 50], 1.0)?, integers(&[60, 50], 0.5)?);
    let row = integers(&[1, 50], 1.0)?.broadcast_as((60, 50))?;
    let cases = [
        (a.clone(), b.clone()),
        (a.i((10.., 3..40))?, b.i((..50, 5..42))?),
        (a.t()?, b.t()?),
        (a.t()?, b.t()?.contiguous()?),
        (a.clone(), row.clone()),
        (a.reshape((3, 20, 50))?, b.reshape((3, 20, 50))?),
        (a.i(7)?, row.i(0)?),
        (a.i((.., 4..5))?, b.i((.., 9..10))?),
    ];
    for (a, b) in &cases {
        same(&a.apply_op2(b, MulRelu)?, &(a * b)?.relu()?)?;
    }
    Ok(())
}

#[test]
fn gradients_are_candle_s() -> Result<()> {
    let (a, b) = (Var::from_tensor(&integers(&[9, 20], 1.0)?)?, Var::from_tensor(&integers(&[9, 20], 0.5)?)?);
    let ours = a.apply_op2(&b, MulRelu)?.sum_all()?.backward()?;
    let theirs = (a.as_tensor() * b.as_tensor())?.relu()?.sum_all()?.backward()?;
    for variable in [&a, &b] {
        let (Some(found), Some(expected)) = (ours.get(variable), theirs.get(variable)) else { panic!("no gradient") };
        same(found, expected)?;
    }
    Ok(())
}

#[test]
fn sums_are_candle_s() -> Result<()> {
    let a = integers(&[12, 700], 1.0)?;
    for a in [a.clone(), a.t()?, a.i((2..9, 100..))?, a.reshape((3, 4, 700))?, a.i(0)?.broadcast_as((5, 700))?] {
        same(&a.apply_op1(RowSums)?, &a.sum(D::Minus1)?)?;
    }
    Ok(())
}

#[test]
fn linear_layers_are_candle_s() -> Result<()> {
    let f16 = |t: Tensor| t.to_dtype(DType::F16);
    let (x, w, bias) = (f16(integers(&[70, 40], 1.0)?)?, f16(integers(&[48, 40], 0.5)?)?, f16(integers(&[48], 4.0)?)?);
    let theirs = |x: &Tensor, w: &Tensor, bias: &Tensor| x.matmul(&w.t()?)?.broadcast_add(bias)?.relu();
    for (x, w, bias) in [
        (x.clone(), w.clone(), bias.clone()),
        // 16 rows of an odd number of columns, at an odd offset.
        (x.i((30..46, 1..38))?, w.i((.., 3..40))?, bias.clone()),
        (x.clone(), w.i(5..32)?, bias.i(5..32)?),
    ] {
        same(&x.apply_op3(&w, &bias, LinearRelu)?, &theirs(&x.contiguous()?, &w.contiguous()?, &bias)?)?;
    }
    let batched = x.reshape((7, 10, 40))?.apply_op3(&w, &bias, LinearRelu)?;
    same(&batched, &theirs(&x, &w, &bias)?.reshape((7, 10, 48))?)
}

/// Numbers from -4 to 4.
fn reals(shape: &[usize]) -> Result<Tensor> {
    let line = Tensor::arange(0_f32, shape.iter().product::<usize>() as f32, &device())?;
    (line.affine(0.618_034, 0.3)?.sin()? * 4.0)?.reshape(shape)
}

/// Both have errors of their own: each element is off by at most so many units in the last place of f32.
fn near(found: &Tensor, expected: &Tensor, ulps: f64) -> Result<()> {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
    let flat = |t: &Tensor| t.flatten_all()?.to_vec1::<f32>();
    for (at, (found, expected)) in flat(found)?.into_iter().zip(flat(expected)?).enumerate() {
        let (found, expected) = (f64::from(found), f64::from(expected));
        let most = ulps * f64::from(f32::EPSILON) * expected.abs();
        assert!((found - expected).abs() <= most, "{at}: {found} and {expected}, {most} apart at most");
    }
    Ok(())
}

/// Tensors whose last mode has `n` elements: contiguous, in parts of rows, and with rows for all batches.
fn of_rows(n: usize) -> Result<[Tensor; 3]> {
    let x = reals(&[12, n + 5])?;
    Ok([x.i((.., ..n))?.contiguous()?, x.i((3..9, 5..))?, x.i((..4, 2..n + 2))?.reshape((2, 2, n))?])
}

#[test]
fn softmax_is_candle_s() -> Result<()> {
    for n in [1, 33, 700, 1024] {
        for x in of_rows(n)? {
            // exp has 2 units; its argument, at most 8, an error of half a unit times 8; a sum of n terms half a unit for each; and
            // a quotient half of one. All of that twice, once by each side.
            let ulps = 2.0 * (2.0 + 4.0 + n as f64 / 2.0 + 2.0 + 4.0 + 0.5);
            near(&x.apply_op1(Softmax)?, &candle_nn::ops::softmax_last_dim(&x.contiguous()?)?, ulps)?;
        }
    }
    Ok(())
}

#[test]
fn norms_are_candle_s() -> Result<()> {
    for n in [1, 33, 700, 1024] {
        let weight = reals(&[n])?;
        for x in of_rows(n)? {
            // Half a unit for each square and each of n sums, of which a root has half; then a root and a quotient of 2 units each, and two
            // products. Twice, once by each side.
            let ulps = 2.0 * ((0.5 + n as f64 / 2.0 + 1.0) / 2.0 + 4.0 + 1.0);
            let found = x.apply_op2(&weight, RmsNorm { eps: 1e-5 })?;
            near(&found, &candle_nn::ops::rms_norm(&x.contiguous()?, &weight, 1e-5)?, ulps)?;
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_in_words() -> Result<()> {
    let a = integers(&[4, 6, 5], 1.0)?;
    let told = |result: Result<Tensor>| result.expect_err("refused").to_string();
    let holes = a.i((.., ..3, ..))?;
    let said = told(holes.apply_op1(RowSums));
    assert!(said.starts_with("found [4, 3, 5] with strides [30, 5, 1], required rows at one distance"), "{said}");
    let said = told(a.apply_op2(&a.i(0)?, MulRelu));
    assert!(said.starts_with("found [4, 6, 5] and [6, 5], required one shape"), "{said}");
    let said = told(a.to_dtype(DType::F64)?.apply_op1(RowSums));
    assert!(said.contains("unexpected dtype, expected: F32, got: F64"), "{said}");
    let said = told(a.i(0)?.apply_op2(&a.i((0, .., 0))?, RmsNorm { eps: 0.0 }));
    assert!(said.starts_with("found x [6, 5] and a weight [6], required (.., N) and (N)"), "{said}");
    let x = integers(&[4, 8], 1.0)?.to_dtype(DType::F16)?;
    let said = told(x.apply_op3(&x.i((.., ..8))?.t()?.contiguous()?, &x.i(0)?, LinearRelu));
    assert!(said.starts_with("found x [4, 8], w [8, 4] and bias [8], required (.., K), (N, K) and (N)"), "{said}");
    Ok(())
}
