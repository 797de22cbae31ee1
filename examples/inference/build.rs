//! The kernels of a decoder: two products, six programs of rows, two of attention, and three in CUDA C++.

use std::error::Error;

use cutemplate::arch::Arch;
use cutemplate::build::Config;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::plan::ParamType;
use cutemplate::recipe::attention::Mask;
use cutemplate::recipe::gemm::Block;
use cutemplate::recipe::product::{Extents, Major};
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{Attention, Gemm, Recipe, Rows};
use cutemplate::view::Access;

/// The widest row of this example: features, pairs of all heads, and the vocabulary.
const COLUMNS: u32 = 1024;

fn rows(preset: Preset) -> Rows {
    Rows { columns: COLUMNS, ..Rows::preset(preset, DType::F16) }
}

fn gather() -> Entry {
    let gather = Entry::new("gather")
        .doc("x(i,j) = table(ids(i),j); a row of NaN where ids(i) is no row of the table.")
        .operand("ids", DType::I32, Access::Read, "rows:1")
        .operand("table", DType::F16, Access::Read, "(numbered,features):(?,1)")
        .operand("x", DType::F16, Access::Write, "(rows,features):(features,1)")
        .extent("numbered", "table.0")
        .extent("features", "table.1")
        .value("row", ParamType::I64, "stride(table, 0)")
        .grid("rows")
        .block(128);
    // SAFETY: block i reads ids(i), reads a row of the table only where there is one of that number, and writes row i of x: each element
    // by one thread.
    unsafe { gather.vouched() }
}

fn route() -> Entry {
    let pairs = |entry: Entry, name, dtype| entry.operand(name, dtype, Access::Write, "(tokens,2):(2,1)");
    let route = Entry::new("route")
        .doc("The two experts of each token with their weights, and its slots: slots are sorted by expert, then by token.")
        .operand("logits", DType::F16, Access::Read, "(tokens,experts):(experts,1)");
    let route = pairs(pairs(pairs(route, "expert", DType::I32), "weight", DType::F32), "slot", DType::I32)
        .operand("token", DType::I32, Access::Write, "slots:1")
        .operand("ends", DType::I32, Access::Write, "experts:1")
        .extent("tokens", "logits.0")
        .extent("experts", "logits.1")
        .require("slots == 2 * tokens", "each token has two slots")
        .require("experts >= 2 && experts <= 128", "a thread counts the slots of an expert")
        .block(128);
    // SAFETY: one block. Each token's experts are written before a barrier and read behind it. A thread writes the end of one expert, and
    // the slots of its tokens, which are fewer than 2 * tokens in all and belong to no other expert.
    unsafe { route.vouched() }
}

fn combine() -> Entry {
    let combine = Entry::new("combine")
        .doc("y(t,j) = weight(t,0) * x(slot(t,0),j) + weight(t,1) * x(slot(t,1),j).")
        .operand("x", DType::F16, Access::Read, "(slots,features):(features,1)")
        .operand("slot", DType::I32, Access::Read, "(tokens,2):(2,1)")
        .operand("weight", DType::F32, Access::Read, "(tokens,2):(2,1)")
        .operand("y", DType::F16, Access::Write, "(tokens,features):(features,1)")
        .extent("slots", "x.0")
        .extent("features", "x.1")
        .grid("tokens")
        .block(128);
    // SAFETY: block t reads a row of x only where a slot is one of its rows, and writes row t of y: each element by one thread.
    unsafe { combine.vouched() }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Small tiles: the matrices of this example are small. Weights of experts are contiguous along their outputs.
    let experts = Gemm { b: Major::Row, ..Gemm::default().grouped() };
    let experts = Gemm { sm80_tile: Extents([64, 64, 32]), ..experts };
    // Activations are quantised by 128 features of a token, weights by blocks of 128 x 128. Only Hopper's tensor cores multiply them.
    let scaled = Gemm { out: DType::F16, ..Gemm::of(DType::E4m3)?.block_scaled(Block::Row, Block::Square) };
    let scaled = Gemm { tile: Extents([64, 64, 128]), cluster: Extents([1, 1]), stages: 2, ..scaled };
    let attention = Attention { head: 32, mask: Mask::Causal, ..Attention::default() };
    // Sequences of any lengths in one launch. A launch says how far a token looks, -1 for all, and what each head loses by distance.
    let packed = Attention {
        head: 32,
        varlen: true,
        mask: Mask::Window,
        score: "|s, b, h, q, k, slope| s - slope * abs(q - k)".parse()?,
        aux: vec!["f32:(1,0,0)".parse()?],
        ..Attention::default()
    };
    let log_softmax = Rows { outputs: vec!["f32:(?,1)".parse()?], ..rows(Preset::LogSoftmax) };
    let cuda = Cuda::file("kernels/experts.cu").entry(gather()).entry(route()).entry(combine());
    // One text for all GPUs from sm_80 on, which compiles in half the time. Hopper's own are made where `Arch::Sm90a` is a target too.
    Config::new()
        .arch(Arch::Sm80)
        .cuda("moe", cuda)
        .recipe("rms_norm", &rows(Preset::RmsNorm))
        .recipe("residual_norm", &rows(Preset::ResidualRmsNorm))
        .recipe("quantize", &rows(Preset::Quantize))
        .plan(scaled.plan_as("scaled", &scaled.usual_targets())?)
        .recipe("experts", &experts)
        .recipe("rope", &rows(Preset::Rope))
        .recipe("attention", &attention)
        .recipe("packed", &packed)
        .recipe("gated", &rows(Preset::GatedSilu))
        .recipe("log_softmax", &log_softmax)
        .compile();
    Ok(())
}
