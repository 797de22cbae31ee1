//! Generates and compiles the kernels of the operations.

use std::error::Error;

use cutemplate::build::Config;
use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{ElementwiseApply, Gemm, Rows, Sum, TensorSpec};

fn main() -> Result<(), Box<dyn Error>> {
    // Rows that are contiguous, as most are: whole vectors. And whatever strides there are.
    let mul_relu = ElementwiseApply::new(Function::binary(|a, b| (a * b).relu()), DType::F32);
    let any: TensorSpec = "f32:(?,?)".parse()?;
    let mul_relu_strided = ElementwiseApply { inputs: vec![any.clone(), any.clone()], ..mul_relu.clone() };
    let row_sums = Sum { function: Function::unary(|a| a), inputs: vec![any], ..Default::default() };
    // x (M,K) and w (N,K), whose rows are the columns of B: relu(x @ w^T + bias).
    let epilogue = Function::nary(3, |_, x| [(x[0] + x[2]).relu()])?;
    let linear_relu = Gemm::default().with_epilogue(epilogue, vec!["f16:(0,1)".parse()?]);
    let rows = |preset| Rows { columns: 1024, ..Rows::preset(preset, DType::F32) };
    Config::new()
        .recipe("mul_relu", &mul_relu)
        .recipe("mul_relu_strided", &mul_relu_strided)
        .recipe("row_sums", &row_sums)
        .recipe("linear_relu", &linear_relu)
        .recipe("softmax", &rows(Preset::Softmax))
        .recipe("rms_norm", &rows(Preset::RmsNorm))
        .compile();
    Ok(())
}
