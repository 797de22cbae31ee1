//! Compiles the kernels of this crate: one of each kind.

use cutemplate::build::Config;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::plan::ParamType;
use cutemplate::recipe::{ElementwiseApply, Sum};
use cutemplate::view::Access;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A recipe of cutemplate: sums along rows.
    let row_sums = Sum::default();

    // A function of your own, element by element. Names in front of it are those of the arguments.
    let function: Function = "|x, gain, bias| relu(x * gain + bias)".parse()?;
    let fused = ElementwiseApply::new(function, DType::F32);

    // CUDA C++ of your own, with the signature of its function. The build compares the two.
    let scale = Entry::new("scale")
        .operand("x", DType::F32, Access::Read, "n:1")
        .operand("y", DType::F32, Access::Write, "n:1")
        .extent("n", "x.0")
        .scalar("factor", ParamType::F32)
        .grid("ceil_div(n, 256)")
        .block(256);

    Config::new()
        .recipe("row_sums", &row_sums)
        .recipe("fused", &fused)
        .cuda("scale", Cuda::file("kernels/scale.cu").entry(scale))
        .compile();
    Ok(())
}
