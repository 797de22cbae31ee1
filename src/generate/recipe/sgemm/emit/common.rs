//! The common parts of all kernels of the family: the tiling's types, tensors as the templates name them, and the
//! epilogue.

use super::super::Variant;
use super::super::decide::{Decision, operands};
use crate::dtype::DType;
use crate::emit::{self, Alias, Assertion};
use crate::expr::Compute;
use crate::model::SharedAnalysis;
use crate::plan::{Operand, Plan, WORKSPACE};
use crate::recipe::product::{EpilogueText, F32, Parts, Tensor};
use crate::tiling::{CopyOp, SmemTensor, TileCopy, TileMma};
use crate::view::Access;

/// A factor's tile in shared memory, as the templates name it.
pub(super) struct Factor<'a> {
    pub(super) tile: &'a SmemTensor,
    /// `a` in `smem_a`.
    pub(super) param: &'static str,
    pub(super) banks: String,
    /// Elements of a copy from global memory.
    pub(super) vec: i64,
    /// Bits that a copy to registers, and one from them, may take at once.
    pub(super) load_bits: u64,
    pub(super) store_bits: u64,
}

/// The tile of A (0) or B (1).
fn factor<'a>(decision: &'a Decision, factor: usize, tile: &'a SmemTensor) -> Factor<'a> {
    // CuTe makes no vectors behind a swizzle; nvcc does.
    let bits = |copy: &str| match decision.tiling.copy(copy).and_then(TileCopy::op) {
        Some(CopyOp::Universal(bytes) | CopyOp::Through { store: bytes, .. }) if tile.swizzle.is_none() => 8 * bytes.0,
        _ => 8 * F32 as u64,
    };
    Factor {
        tile,
        param: ["a", "b"][factor],
        banks: banks(&decision.shared[factor]),
        vec: decision.vector(factor),
        load_bits: bits(["LoadA", "LoadB"][factor]),
        store_bits: bits(["CopyA", "CopyB"][factor]),
    }
}

/// What the text relies on of a tile in shared memory: its bytes, and columns and stages that begin at multiples of its widest access.
fn assertions(tile: &SmemTensor) -> Vec<Assertion> {
    let (name, align) = (tile.name, tile.align.0);
    let swizzled = tile.swizzle.is_some();
    let strides = format!("stride(Smem{name}{{}}{})", if swizzled { ".layout_b()" } else { "" });
    let apart = |mode: usize| format!("get<{mode}>({strides}) * sizeof(float) % {align} == 0");
    let bits = format!("1 << remove_cvref_t<decltype(Smem{name}{{}}.layout_a())>::num_base");
    let bytes = tile.bytes().map_or(0, |bytes| bytes.0);
    let all = [
        Some((format!("cosize(Smem{name}{{}}) * sizeof(float) == {bytes}"), format!("bytes of s{name}"))),
        Some((apart(1 - tile.contiguous()), format!("columns of s{name} begin at multiples of its widest access"))),
        (tile.layout.rank() > 2).then(|| (apart(2), "and so do its stages".to_owned())),
        swizzled
            .then(|| (format!("({bits}) * sizeof(float) % {align} == 0"), "which its swizzle keeps whole".to_owned())),
    ];
    all.into_iter().flatten().map(|(condition, what)| Assertion { condition, what }).collect()
}

/// The passes over the banks that a warp's accesses take.
fn banks(analysis: &SharedAnalysis) -> String {
    let passes = |worst: u32| if worst == 1 { "1 pass".to_owned() } else { format!("{worst} passes") };
    let accesses = analysis.accesses.iter();
    let texts: Vec<String> = accesses.map(|a| format!("{} of a warp: {}", a.what, passes(a.worst))).collect();
    texts.join(", ")
}

/// The common parts of all kernels of the family.
pub(super) struct Common<'a> {
    pub(super) banner: String,
    pub(super) plan: &'a Plan,
    pub(super) d: &'a Decision,
    pub(super) op: EpilogueText,
    /// The operands, D last.
    pub(super) operands: Vec<Tensor>,
    /// Where parts of K put their sums: `(M,N,SPLIT,L)` or, where tiles are cut, `(BM,BN,(CUT,PARTS))`.
    pub(super) sums: Vec<Tensor>,
    /// The tiles in shared memory: none, or two.
    pub(super) factors: Vec<Factor<'a>>,
    pub(super) aliases: Vec<Alias>,
    pub(super) assertions: Vec<Assertion>,
    /// The grid.
    pub(super) blocks: String,
    /// The modes of the matrices.
    pub(super) shapes: String,
}

impl Common<'_> {
    /// A and B.
    pub(super) fn matrices(&self) -> &[Tensor] {
        &self.operands[..2]
    }

    /// C, the auxiliary tensors, D.
    pub(super) fn epilogue(&self) -> &[Tensor] {
        &self.operands[2..]
    }

    /// The tensors among them that are read.
    pub(super) fn reads(&self) -> &[Tensor] {
        &self.epilogue()[..self.epilogue().len() - 1]
    }

    /// The parameter that tells whether all vectors of A (0), of B (1), or of D and the epilogue inputs (2) are aligned.
    pub(super) fn told(&self, factor: usize) -> Option<&'static str> {
        let params = ["params.aligned_a", "params.aligned_b", "params.aligned_d"];
        params.get(factor).copied().filter(|_| self.d.has_vectors(factor))
    }

    /// Those of A and B.
    pub(super) fn told_of_factors(&self) -> impl Iterator<Item = &'static str> {
        (0..2).filter_map(|factor| self.told(factor))
    }

    /// Whether they are copied as vectors.
    pub(super) fn vectors(&self, factor: usize) -> &'static str {
        self.told(factor).unwrap_or("false")
    }

    /// The extent of the mode of batches.
    pub(super) fn batches(&self) -> &'static str {
        if self.d.recipe.batched { "params.l" } else { "_1{}" }
    }

    /// The matrix of a CTA's batch.
    pub(super) fn matrix(&self) -> &'static str {
        if self.d.recipe.batched { "(_,_,l)" } else { "" }
    }

    /// The same in comments.
    pub(super) fn batches_doc(&self) -> &'static str {
        if self.d.recipe.batched { "L" } else { "1" }
    }

    pub(super) fn dynamic_smem(&self) -> u64 {
        self.plan.entries().first().map_or(0, |entry| entry.dynamic_smem.0)
    }

    /// Threads of a block that adds up.
    pub(super) fn reduce_threads(&self) -> u32 {
        self.plan.entries().last().map_or(0, |entry| entry.threads)
    }

    /// What dynamic shared memory is aligned to: as much as any tile in it.
    pub(super) fn alignment(&self) -> u64 {
        self.factors.iter().map(|factor| factor.tile.align.0).max().unwrap_or(1)
    }

    /// Elements along N that a thread moves at once at the end.
    pub(super) fn vec_n(&self) -> i64 {
        self.d.recipe.vectors()[1]
    }

    /// The type of so many.
    pub(super) fn vector_n(&self) -> String {
        format!("uint{}_t", 8 * F32 * self.vec_n())
    }

    /// The inputs after the accumulator, read where they lie.
    pub(super) fn arguments(&self, prefix: &str, index: &str) -> String {
        self.op.arguments(&self.operands, |t| t.load(prefix, index))
    }

    /// The same from registers that hold elements as they were read.
    pub(super) fn converted(&self, prefix: &str, index: &str) -> String {
        self.op.converted(&self.operands, prefix, &[index])
    }

    /// The same from registers that hold f32.
    pub(super) fn registers(&self, prefix: &str, index: &str) -> String {
        self.op.arguments(&self.operands, |t| format!("{prefix}{}{index}", t.read_name()))
    }
}

/// The workspace, rows without gaps; none where K is not cut.
fn sums(decision: &Decision) -> Option<Tensor> {
    let [bm, bn, _] = decision.tile();
    let (shape, strides, modes) = match decision.recipe.parts() {
        Parts::Each(1) => return None,
        Parts::Each(split) => {
            let (l, apart) = match decision.recipe.batched {
                true => ("params.l", format!("int64_t(params.m) * params.n * {split}")),
                false => ("_1{}", "_0{}".to_owned()),
            };
            (
                format!("params.m, params.n, Int<{split}>{{}}, {l}"),
                format!("int64_t(params.n), _1{{}}, int64_t(params.m) * params.n, {apart}"),
                "(M,N,SPLIT,L)",
            )
        }
        Parts::Wave(_) => (
            format!("Int<{bm}>{{}}, Int<{bn}>{{}}, make_shape(params.cut, params.parts)"),
            format!("Int<{bn}>{{}}, _1{{}}, make_stride(int64_t({0}), int64_t({0}) * params.cut)", bm * bn),
            "(BM,BN,(CUT,PARTS))",
        ),
    };
    Some(Tensor {
        is: Operand { param: WORKSPACE.to_owned(), ..Operand::new("W", DType::F32, Access::Write, &[]) },
        grouped: false,
        scattered: false,
        of_k: false,
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({strides})"),
        modes,
        vector: "void".to_owned(),
        guard: String::new(),
        compute: Compute::F32,
    })
}

/// The types that a rung has: its tiles, those in shared memory, and with an MMA all.
fn aliases(decision: &Decision) -> Vec<Alias> {
    let (tiling, variant) = (&decision.tiling, decision.recipe.variant);
    let tiles = tiling.mmas.iter().flat_map(TileMma::tile_aliases);
    match variant {
        Variant::Naive | Variant::Coalesced => tiles.skip(2).collect(),
        Variant::SmemTiled | Variant::Block1d | Variant::Block2d => tiles.chain(tiling.smem_aliases()).collect(),
        _ => tiling.aliases(),
    }
}

pub(super) fn common<'a>(decision: &'a Decision, plan: &'a Plan, template: &str) -> Common<'a> {
    let recipe = &decision.recipe;
    let [bm, bn, _] = decision.tile();
    let tensor = |operand| Tensor::new(&decision.product, operand, recipe.vectors()[1]);
    let z = match (recipe.batched, recipe.split_k) {
        (false, split) => split.to_string(),
        (true, 1) => "L".to_owned(),
        (true, split) => format!("{split}*L"),
    };
    let l = if recipe.batched { ",L" } else { "" };
    let of_mma = if recipe.variant.has_mma() { decision.tiling.assertions() } else { Vec::new() };
    Common {
        banner: emit::banner(plan, template),
        plan,
        d: decision,
        op: EpilogueText::new(&decision.product, plan.operands()),
        operands: operands(decision).into_iter().map(tensor).collect(),
        sums: sums(decision).into_iter().collect(),
        factors: (0..).zip(&decision.tiling.smem).map(|(index, tile)| factor(decision, index, tile)).collect(),
        aliases: aliases(decision),
        assertions: of_mma.into_iter().chain(decision.tiling.smem.iter().flat_map(assertions)).collect(),
        shapes: format!("A is (M,K{l}), B is (K,N{l}), here as (N,K{l}), D is (M,N{l})"),
        blocks: match recipe.wave {
            0 => format!("(ceil_div(N,{bn}), ceil_div(M,{bm}), {z})"),
            _ => "whole + cut * parts".to_owned(),
        },
    }
}
