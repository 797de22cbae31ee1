//! The common parts of all kernels of the family: the tiling's types, tensors as the templates name them, and the
//! epilogue.

use super::super::decide::{Decision, operands};
use crate::dtype::DType;
use crate::emit;
use crate::model::SharedAnalysis;
use crate::plan::{Operand, Plan, WORKSPACE};
use crate::recipe::product::{EpilogueText, F32, Parts, Tensor};
use crate::tiling::{CopyOp, SmemTensor};
use crate::view::Access;

/// A factor's tile in shared memory, as the templates name it.
pub(super) struct Factor<'a> {
    pub(super) tile: &'a SmemTensor,
    /// `a` in `smem_a`.
    pub(super) param: &'static str,
    /// `m` in coordinates, `M` in modes.
    pub(super) row: &'static str,
    pub(super) mode: &'static str,
    pub(super) banks: String,
    pub(super) bytes: u64,
    /// Elements of a copy from global memory.
    pub(super) vec: i64,
    /// Bits that a copy to registers, and one from them, may take at once.
    pub(super) load_bits: u64,
    pub(super) store_bits: u64,
}

impl Factor<'_> {
    /// Whether its vectors can be copied whole, as the text asks.
    pub(super) fn is_vector(&self) -> String {
        if self.vec > 1 { format!("params.aligned_{}", self.param) } else { "false".to_owned() }
    }
}

/// The tile of A (0) or B (1).
fn factor(decision: &Decision, factor: usize) -> Factor<'_> {
    let tile = &decision.tiling.smem[factor];
    // CuTe makes no vectors behind a swizzle; nvcc does.
    let bits = |copy: usize| match decision.tiling.copies[2 * factor + copy].op() {
        Some(CopyOp::Universal(bytes) | CopyOp::Through { store: bytes, .. }) if tile.swizzle.is_none() => 8 * bytes.0,
        _ => 8 * F32 as u64,
    };
    Factor {
        tile,
        param: ["a", "b"][factor],
        row: ["m", "n"][factor],
        mode: ["M", "N"][factor],
        banks: banks(&decision.shared[factor]),
        bytes: tile.bytes().map_or(0, |bytes| bytes.0),
        vec: decision.vector(factor),
        load_bits: bits(1),
        store_bits: bits(0),
    }
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
    /// Where parts of K put their sums: `(M,N,SPLIT)` or, where tiles are cut, `(BM,BN,(CUT,PARTS))`.
    pub(super) sums: Option<Tensor>,
    /// The tiles in shared memory: none, or two.
    pub(super) factors: Vec<Factor<'a>>,
    pub(super) blocks_doc: String,
}

impl Common<'_> {
    /// C, the auxiliary tensors, D.
    pub(super) fn epilogue(&self) -> &[Tensor] {
        &self.operands[2..]
    }

    /// The tensors of the kernel that multiplies: A, B, and the epilogue's or, for all pieces of K, their sums.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.operands[..2].iter().chain(self.stores())
    }

    /// The tensors that its threads read and write at the end, with the written one last.
    pub(super) fn stores(&self) -> &[Tensor] {
        match &self.sums {
            Some(sums) if self.d.recipe.wave == 0 => core::slice::from_ref(sums),
            _ => self.epilogue(),
        }
    }

    /// The tensors among them that they read.
    pub(super) fn reads(&self) -> &[Tensor] {
        &self.stores()[..self.stores().len() - 1]
    }

    /// What dynamic shared memory is aligned to: as much as any tile in it.
    pub(super) fn alignment(&self) -> u64 {
        self.factors.iter().map(|factor| factor.tile.align.0).max().unwrap_or(1)
    }

    /// Elements along N that a thread moves at once at the end.
    pub(super) fn vec_n(&self) -> i64 {
        self.d.recipe.vectors()[1]
    }

    /// The inputs after the accumulator, read where they lie.
    pub(super) fn arguments(&self, prefix: &str, index: &str) -> String {
        self.op.arguments(&self.operands, |t| t.load(prefix, index))
    }

    /// The same from registers that hold elements as they were read.
    pub(super) fn converted(&self, prefix: &str, index: &str) -> String {
        self.op.converted(&self.operands, prefix, index)
    }

    /// The same from registers that hold f32.
    pub(super) fn registers(&self, prefix: &str, index: &str) -> String {
        self.op.arguments(&self.operands, |t| format!("{prefix}{}{index}", t.read_name()))
    }
}

/// The workspace, rows without gaps; `None` where K is not cut.
fn sums(decision: &Decision) -> Option<Tensor> {
    let [bm, bn, _] = decision.tile();
    let (shape, strides, modes) = match (decision.recipe.parts(), decision.recipe.batched) {
        (Parts::Each(1), _) => return None,
        (Parts::Each(split), batched) => {
            let shape = format!("params.m, params.n, Int<{split}>{{}}");
            let strides = "int64_t(params.n), _1{}, int64_t(params.m) * params.n";
            match batched {
                true => (
                    shape + ", params.l",
                    format!("{strides}, int64_t(params.m) * params.n * {split}"),
                    "(M,N,SPLIT,L)",
                ),
                false => (shape, strides.to_owned(), "(M,N,SPLIT)"),
            }
        }
        (Parts::Wave(_), _) => (
            format!("Int<{bm}>{{}}, Int<{bn}>{{}}, make_shape(params.cut, params.parts)"),
            format!("Int<{bn}>{{}}, _1{{}}, make_stride(int64_t({0}), int64_t({0}) * params.cut)", bm * bn),
            "(BM,BN,(CUT,PARTS))",
        ),
    };
    Some(Tensor {
        is: Operand { param: WORKSPACE.to_owned(), ..Operand::new("W", DType::F32, Access::Write, &[]) },
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({strides})"),
        modes,
        vector: String::new(),
        guard: String::new(),
    })
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
    Common {
        banner: emit::banner(plan, template),
        plan,
        d: decision,
        op: EpilogueText::new(&decision.product, plan.operands()),
        operands: operands(decision).into_iter().map(tensor).collect(),
        sums: sums(decision),
        factors: (0..decision.tiling.smem.len()).map(|index| factor(decision, index)).collect(),
        blocks_doc: match recipe.wave {
            0 => format!("(ceil_div(N,{bn}), ceil_div(M,{bm}), {z})"),
            _ => "whole + cut * parts".to_owned(),
        },
    }
}
