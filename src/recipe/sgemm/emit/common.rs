//! What all kernels of the family have in common: the tiling's types, tensors as the templates name them, and the epilogue.

use super::super::decide::{Decision, operands};
use super::super::epilogue::AUX;
use super::super::launch::stride_params;
use crate::dtype::DType;
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::model::SharedAnalysis;
use crate::plan::{ModeStride, Operand, Plan, WORKSPACE};
use crate::recipe::product::{F32, Parts};
use crate::tiling::{CopyOp, SmemTensor};
use crate::view::Access;

/// A tensor in global memory as the templates name it.
pub(super) struct Tensor {
    pub(super) is: Operand,
    pub(super) shape: String,
    pub(super) strides: String,
    /// `(M,K)`.
    pub(super) modes: &'static str,
    /// The vector type where it is contiguous along N, else empty.
    pub(super) vector: String,
    /// When it is read at all; empty for always.
    pub(super) guard: String,
}

impl Tensor {
    /// `C` in `tCrC` would be the accumulators: what is read of C is `tCrX`.
    pub(super) fn read_name(&self) -> &'static str {
        if self.is.name == "C" { "X" } else { self.is.name }
    }

    /// `float const`.
    pub(super) fn pointee(&self) -> String {
        format!("{}{}", self.is.dtype.cxx(), if self.is.access == Access::Write { "" } else { " const" })
    }

    /// An element as f32; the helpers that this takes are those of `Common`.
    fn as_f32(&self, element: &str) -> String {
        Helpers::new(Compute::F32).load(self.is.dtype, element)
    }

    /// The element of its view `prefix`, as f32, or 0 where it need not be read.
    pub(super) fn load(&self, prefix: &str, index: &str) -> String {
        let element = self.as_f32(&format!("{prefix}{}{index}", self.is.name));
        if self.guard.is_empty() { element } else { format!("{} ? {element} : 0.0f", self.guard) }
    }
}

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

/// What all kernels of the family have in common.
pub(super) struct Common<'a> {
    pub(super) banner: String,
    pub(super) plan: &'a Plan,
    pub(super) d: &'a Decision,
    pub(super) inputs_doc: String,
    pub(super) helpers: String,
    pub(super) functor: String,
    pub(super) scalars: String,
    /// The operands, D last.
    pub(super) operands: Vec<Tensor>,
    /// Where parts of K put their sums: `(M,N,SPLIT)` or, where tiles are cut, `(BM,BN,(CUT,PARTS))`.
    pub(super) sums: Option<Tensor>,
    /// Which operand is which input of the epilogue, from 1; `None` for C where it is not used.
    inputs: Vec<Option<usize>>,
    /// The tiles in shared memory: none, or two.
    pub(super) factors: Vec<Factor<'a>>,
    pub(super) blocks_doc: String,
}

impl Common<'_> {
    /// C, the auxiliary tensors, D.
    pub(super) fn epilogue(&self) -> &[Tensor] {
        &self.operands[2..]
    }

    /// What the kernel that multiplies has: A, B, and the tensors of the epilogue or, for all parts of K, their sums.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.operands[..2].iter().chain(self.stores())
    }

    /// What its threads read and write at the end, what is written last.
    pub(super) fn stores(&self) -> &[Tensor] {
        match &self.sums {
            Some(sums) if self.d.recipe.wave == 0 => core::slice::from_ref(sums),
            _ => self.epilogue(),
        }
    }

    /// What of it they read.
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

    fn arguments_by(&self, value: impl Fn(&Tensor) -> String) -> String {
        let one = |input: &Option<usize>| input.map_or_else(|| "0.0f".to_owned(), |i| value(&self.operands[i]));
        self.inputs.iter().map(|input| format!(", {}", one(input))).collect()
    }

    /// The inputs after the accumulator, read where they lie.
    pub(super) fn arguments(&self, prefix: &str, index: &str) -> String {
        self.arguments_by(|t| t.load(prefix, index))
    }

    /// The same from registers that hold elements as they were read.
    pub(super) fn converted(&self, prefix: &str, index: &str) -> String {
        self.arguments_by(|t| t.as_f32(&format!("{prefix}{}{index}", t.read_name())))
    }

    /// The same from registers that hold f32.
    pub(super) fn registers(&self, prefix: &str, index: &str) -> String {
        self.arguments_by(|t| format!("{prefix}{}{index}", t.read_name()))
    }
}

/// A tensor as the text has it: B is (N,K), as in CuTe.
fn tensor(decision: &Decision, is: Operand) -> Tensor {
    let (extents, modes) = match is.name {
        "A" => (["m", "k"], "(M,K)"),
        "B" => (["n", "k"], "(N,K)"),
        _ => (["m", "n"], "(M,N)"),
    };
    let stride = |(kind, param): (&ModeStride, Option<String>)| match (kind, param) {
        (ModeStride::Unit, _) => "_1{}".to_owned(),
        (_, Some(param)) => format!("params.{param}"),
        _ => "_0{}".to_owned(),
    };
    let mut strides: Vec<String> = is.strides.iter().zip(stride_params(&is)).map(stride).collect();
    if is.name == "B" {
        strides.swap(0, 1);
    }
    let batch = decision.recipe.batched.then_some("l");
    let shape: Vec<String> = extents.into_iter().chain(batch).map(|extent| format!("params.{extent}")).collect();
    let vector = 8 * decision.recipe.vectors()[1] as u64 * is.dtype.bytes().0;
    let along_n = is.strides.get(1) == Some(&ModeStride::Unit);
    let beta = decision.product.beta().filter(|_| is.name == "C");
    let guard = beta.map(|s| format!("params.{} != 0.0f", decision.recipe.epilogue.scalars()[s]));
    Tensor {
        is,
        shape: format!("make_shape({})", shape.join(", ")),
        strides: format!("make_stride({})", strides.join(", ")),
        modes,
        vector: if along_n { format!("uint{vector}_t") } else { String::new() },
        guard: guard.unwrap_or_default(),
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
    let mut helpers = Helpers::new(Compute::F32);
    let functor = decision.product.epilogue().functor("Op", &mut helpers);
    for operand in plan.operands() {
        helpers.load(operand.dtype, "");
    }
    let [bm, bn, _] = decision.tile();
    // Behind A and B: C where it is used, and the auxiliary tensors.
    let c = usize::from(decision.product.has_c());
    let input = |input: usize| if input == 1 { (c == 1).then_some(2) } else { Some(input + c) };
    let names = core::iter::once("C").chain(AUX).zip(recipe.epilogue.input_names().skip(1));
    let scalars: Vec<String> = recipe.epilogue.scalars().iter().map(|s| format!("params.{s}")).collect();
    let z = match (recipe.batched, recipe.split_k) {
        (false, split) => split.to_string(),
        (true, 1) => "L".to_owned(),
        (true, split) => format!("{split}*L"),
    };
    Common {
        banner: emit::banner(plan, template),
        plan,
        d: decision,
        inputs_doc: names.map(|(tensor, input)| format!(", {input} = {tensor}(m,n)")).collect(),
        helpers: helpers.to_string(),
        functor,
        scalars: scalars.join(", "),
        operands: operands(decision).into_iter().map(|o| tensor(decision, o)).collect(),
        sums: sums(decision),
        inputs: (1..recipe.epilogue.inputs()).map(input).collect(),
        factors: (0..decision.tiling.smem.len()).map(|index| factor(decision, index)).collect(),
        blocks_doc: match recipe.wave {
            0 => format!("(ceil_div(N,{bn}), ceil_div(M,{bm}), {z})"),
            _ => "whole + cut * parts".to_owned(),
        },
    }
}
