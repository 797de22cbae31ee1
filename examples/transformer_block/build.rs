//! The kernels of a transformer block: three products with their epilogues, and what goes along rows.

use std::error::Error;

use cutemplate::arch::Arch;
use cutemplate::build::Config;
use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::recipe::product::{Extents, Major};
use cutemplate::recipe::{ElementwiseApply, Gemm, Sum, TensorSpec};

fn specs<const N: usize>(texts: [&str; N]) -> Result<Vec<TensorSpec>, Box<dyn Error>> {
    Ok(texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

/// Small tiles: the matrices of this example are small.
fn product() -> Gemm {
    Gemm { sm80_tile: Extents([64, 64, 32]), ..Gemm::default() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let function = |text: &str| text.parse::<Function>();
    // Weights are contiguous along their outputs; beta is 1 for a residual and 0 for none.
    let rows = Gemm { b: Major::Row, ..product() };
    let linear = Gemm { batched: true, ..rows.clone() }
        .with_epilogue(function("|a, c, bias; beta| a + beta * c + bias")?, specs(["f16:(0,1,0)"])?);
    let expand = rows.bias(|x| x.gelu());
    // Keys are the columns of B.
    let scores =
        Gemm { out: DType::F32, batched: true, ..product() }.with_epilogue(function("|a; s| s * a")?, Vec::new());

    let mean = Sum::new(function("|x; part| part * x")?, DType::F16);
    let deviations = Sum {
        inputs: specs(["f16:(?,1)", "f32:(1,0)"])?,
        ..Sum::new(function("|x, mean; part| part * (x - mean) * (x - mean)")?, DType::F16)
    };
    let normalise = ElementwiseApply {
        inputs: specs(["f16:(?,1)", "f32:(1,0)", "f32:(1,0)", "f16:(0,1)", "f16:(0,1)"])?,
        ..ElementwiseApply::new(
            function("|x, mean, variance, scale, shift| (x - mean) * rsqrt(variance + 0.00001) * scale + shift")?,
            DType::F16,
        )
    };
    let greater = ElementwiseApply::new(function("max(a, b)")?, DType::F32);
    // A score minus the greatest one of its row is at most 0.
    let exp_sums = Sum {
        inputs: specs(["f32:(?,1)", "f32:(1,0)"])?,
        ..Sum::new(function("|score, greatest| exp(score - greatest)")?, DType::F32)
    };
    let softmax = ElementwiseApply {
        inputs: specs(["f32:(?,1)", "f32:(1,0)", "f32:(1,0)"])?,
        outputs: specs(["f16:(?,1)"])?,
        ..ElementwiseApply::new(function("|score, greatest, sum| exp(score - greatest) / sum")?, DType::F32)
    };
    // One text for all GPUs from sm_80 on, which compiles in half the time. Hopper's own are made where `Arch::Sm90a` is a target too.
    Config::new()
        .arch(Arch::Sm80)
        .recipe("linear", &linear)
        .recipe("expand", &expand)
        .recipe("scores", &scores)
        .recipe("mean", &mean)
        .recipe("deviations", &deviations)
        .recipe("normalise", &normalise)
        .recipe("greater", &greater)
        .recipe("exp_sums", &exp_sums)
        .recipe("softmax", &softmax)
        .compile();
    Ok(())
}
