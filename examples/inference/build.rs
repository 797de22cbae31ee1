//! The kernels of a decoder: one product, five programs of rows, attention, and one in CUDA C++.

use std::error::Error;

use cutemplate::arch::Arch;
use cutemplate::build::Config;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::plan::ParamType;
use cutemplate::recipe::attention::Mask;
use cutemplate::recipe::product::{Extents, Major};
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{Attention, Gemm, Rows};
use cutemplate::view::Access;

/// The widest row of this example: features, pairs of all heads, and the vocabulary.
const COLUMNS: u32 = 1024;

fn rows(preset: Preset) -> Rows {
    Rows { columns: COLUMNS, ..Rows::preset(preset, DType::F16) }
}

fn embed() -> Entry {
    let embed = Entry::new("embed")
        .doc("x(t,j) = table(ids(t),j); a row of NaN where ids(t) is no row of the table.")
        .operand("ids", DType::I32, Access::Read, "tokens:1")
        .operand("table", DType::F16, Access::Read, "(vocabulary,features):(?,1)")
        .operand("x", DType::F16, Access::Write, "(tokens,features):(features,1)")
        .extent("vocabulary", "table.0")
        .extent("features", "table.1")
        .value("row", ParamType::I64, "stride(table, 0)")
        .grid("tokens")
        .block(128);
    // SAFETY: block t reads ids(t), reads a row of the table only where there is one of that number, and writes row t of x: each element
    // by one thread.
    unsafe { embed.vouched() }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Small tiles: the matrices of this example are small. Weights are contiguous along their outputs.
    let linear = Gemm { sm80_tile: Extents([64, 64, 32]), b: Major::Row, ..Gemm::default() };
    let attention = Attention { head: 32, mask: Mask::Causal, ..Attention::default() };
    let log_softmax = Rows { outputs: vec!["f32:(?,1)".parse()?], ..rows(Preset::LogSoftmax) };
    // One text for all GPUs from sm_80 on, which compiles in half the time. Hopper's own are made where `Arch::Sm90a` is a target too.
    Config::new()
        .arch(Arch::Sm80)
        .cuda("embed", Cuda::file("kernels/embed.cu").entry(embed()))
        .recipe("rms_norm", &rows(Preset::RmsNorm))
        .recipe("residual_norm", &rows(Preset::ResidualRmsNorm))
        .recipe("linear", &linear)
        .recipe("rope", &rows(Preset::Rope))
        .recipe("attention", &attention)
        .recipe("gated", &rows(Preset::GatedSilu))
        .recipe("log_softmax", &log_softmax)
        .compile();
    Ok(())
}
