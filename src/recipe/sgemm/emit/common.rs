//! What all kernels of the family have in common: the tiling's types, tensors as the templates name them, and the epilogue.

use super::super::decide::{Decision, operands};
use super::super::epilogue::AUX;
use super::super::launch::stride_params;
use super::super::tilings::F32;
use crate::dtype::DType;
use crate::emit::{self, Alias};
use crate::expr::{Compute, Helpers};
use crate::model::SharedAnalysis;
use crate::plan::{ModeStride, Operand, Plan};
use crate::tiling::CopyOp;
use crate::view::Access;

/// A tensor in global memory as the templates name it.
pub(super) struct Tensor {
    /// `A` in `mA`.
    pub(super) name: &'static str,
    /// `C` in `tCrC` would be the accumulators: what is read of C is `tCrX`.
    pub(super) read_name: &'static str,
    pub(super) param: String,
    dtype: DType,
    /// `float const`.
    pub(super) pointee: String,
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
    pub(super) fn element(&self) -> &'static str {
        self.dtype.cxx()
    }

    /// An element as f32; the helpers that this takes are those of `Common`.
    fn as_f32(&self, element: &str) -> String {
        Helpers::new(Compute::F32).load(self.dtype, element)
    }

    /// The element of its view `prefix`, as f32, or 0 where it need not be read.
    pub(super) fn load(&self, prefix: &str, index: &str) -> String {
        let element = self.as_f32(&format!("{prefix}{}{index}", self.name));
        if self.guard.is_empty() { element } else { format!("{} ? {element} : 0.0f", self.guard) }
    }
}

/// A factor's tile in shared memory, as the templates name it.
pub(super) struct Factor {
    /// `A` in `sA`.
    pub(super) name: &'static str,
    /// `a` in `smem_a`.
    pub(super) param: &'static str,
    /// `m` in coordinates, `M` in modes.
    pub(super) row: &'static str,
    pub(super) mode: &'static str,
    pub(super) banks: String,
    pub(super) bytes: u64,
    /// What its base, its columns and its stages begin at multiples of, in bytes.
    pub(super) alignment: u64,
    /// The mode whose stride leads from one column to the next.
    pub(super) columns: usize,
    pub(super) staged: bool,
    pub(super) swizzled: bool,
    /// Elements of a copy from global memory.
    pub(super) vec: i64,
    /// Bits that a copy to registers, and one from them, may take at once.
    pub(super) load_bits: u64,
    pub(super) store_bits: u64,
}

impl Factor {
    /// Whether its vectors can be copied whole, as the text asks.
    pub(super) fn is_vector(&self) -> String {
        if self.vec > 1 { format!("params.aligned_{}", self.param) } else { "false".to_owned() }
    }
}

/// The tile of A (0) or B (1).
fn factor(decision: &Decision, factor: usize) -> Factor {
    let tensor = &decision.tiling.smem[factor];
    // CuTe makes no vectors behind a swizzle; nvcc does.
    let bits = |op: Option<CopyOp>| match op {
        Some(CopyOp::Universal(bytes) | CopyOp::Through { store: bytes, .. }) if tensor.swizzle.is_none() => {
            8 * bytes.0
        }
        _ => 8 * F32 as u64,
    };
    Factor {
        name: tensor.name,
        param: ["a", "b"][factor],
        row: ["m", "n"][factor],
        mode: ["M", "N"][factor],
        banks: banks(&decision.shared[factor]),
        bytes: tensor.bytes().map_or(0, |bytes| bytes.0),
        alignment: tensor.align.0,
        columns: 1 - tensor.contiguous(),
        staged: tensor.layout.rank() > 2,
        swizzled: tensor.swizzle.is_some(),
        vec: decision.vector(factor),
        load_bits: bits(decision.tiling.copies[2 * factor + 1].op()),
        store_bits: bits(decision.copy(factor).op()),
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
    pub(super) what: &'static str,
    pub(super) plan: &'a Plan,
    pub(super) function: String,
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
    pub(super) aliases: Vec<Alias>,
    pub(super) assertions: Vec<emit::Assertion>,
    /// The tiles in shared memory: none, or two.
    pub(super) factors: Vec<Factor>,
    /// Elements along N that a thread moves at once at the end.
    pub(super) vec_n: i64,
    pub(super) stages: i64,
    pub(super) split: i64,
    /// Whether blocks are numbered, and the last tiles cut along K.
    pub(super) wave: bool,
    pub(super) batched: bool,
    pub(super) warp_sync: bool,
    pub(super) blocks_doc: String,
    pub(super) reduce_threads: u32,
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
            Some(sums) if !self.wave => core::slice::from_ref(sums),
            _ => self.epilogue(),
        }
    }

    /// What of it they read.
    pub(super) fn reads(&self) -> &[Tensor] {
        &self.stores()[..self.stores().len() - 1]
    }

    /// What dynamic shared memory is aligned to: as much as any tile in it.
    pub(super) fn alignment(&self) -> u64 {
        self.factors.iter().map(|factor| factor.alignment).max().unwrap_or(1)
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
        self.arguments_by(|t| t.as_f32(&format!("{prefix}{}{index}", t.read_name)))
    }

    /// The same from registers that hold f32.
    pub(super) fn registers(&self, prefix: &str, index: &str) -> String {
        self.arguments_by(|t| format!("{prefix}{}{index}", t.read_name))
    }
}

/// A tensor as the text has it: B is (N,K), as in CuTe.
fn tensor(decision: &Decision, operand: &Operand) -> Tensor {
    let (extents, modes) = match operand.name {
        "A" => (["m", "k"], "(M,K)"),
        "B" => (["n", "k"], "(N,K)"),
        _ => (["m", "n"], "(M,N)"),
    };
    let stride = |(kind, param): (&ModeStride, Option<String>)| match (kind, param) {
        (ModeStride::Unit, _) => "_1{}".to_owned(),
        (_, Some(param)) => format!("params.{param}"),
        _ => "_0{}".to_owned(),
    };
    let mut strides: Vec<String> =
        operand.strides.iter().zip(stride_params(&operand.param, &operand.strides)).map(stride).collect();
    if operand.name == "B" {
        strides.swap(0, 1);
    }
    let mut shape: Vec<String> = extents.iter().map(|e| format!("params.{e}")).collect();
    shape.extend(decision.recipe.batched.then(|| "params.l".to_owned()));
    let written = operand.access == Access::Write;
    let vec = decision.recipe.vectors()[1] as u64;
    let along_n = operand.strides.get(1) == Some(&ModeStride::Unit);
    let beta = decision.product.beta().filter(|_| operand.name == "C");
    let guard = beta.map(|s| format!("params.{} != 0.0f", decision.recipe.epilogue.scalars()[s]));
    Tensor {
        name: operand.name,
        read_name: if operand.name == "C" { "X" } else { operand.name },
        param: operand.param.clone(),
        dtype: operand.dtype,
        pointee: format!("{}{}", operand.dtype.cxx(), if written { "" } else { " const" }),
        shape: format!("make_shape({})", shape.join(", ")),
        strides: format!("make_stride({})", strides.join(", ")),
        modes,
        vector: if along_n { format!("uint{}_t", 8 * vec * operand.dtype.bytes().0) } else { String::new() },
        guard: guard.unwrap_or_default(),
    }
}

/// The workspace, rows without gaps.
fn sums(decision: &Decision) -> Tensor {
    let ([bm, bn, _], split) = (decision.tile(), decision.split());
    let [l, stride_l] = match decision.recipe.batched {
        true => [", params.l".to_owned(), format!(", int64_t(params.m) * params.n * {split}")],
        false => [const { String::new() }; 2],
    };
    let (shape, strides, modes) = match decision.recipe.wave {
        0 => (
            format!("params.m, params.n, Int<{split}>{{}}{l}"),
            format!("int64_t(params.n), _1{{}}, int64_t(params.m) * params.n{stride_l}"),
            if decision.recipe.batched { "(M,N,SPLIT,L)" } else { "(M,N,SPLIT)" },
        ),
        _ => (
            format!("Int<{bm}>{{}}, Int<{bn}>{{}}, make_shape(params.cut, params.parts)"),
            format!("Int<{bn}>{{}}, _1{{}}, make_stride(int64_t({0}), int64_t({0}) * params.cut)", bm * bn),
            "(BM,BN,(CUT,PARTS))",
        ),
    };
    Tensor {
        name: "W",
        read_name: "W",
        param: crate::plan::WORKSPACE.to_owned(),
        dtype: DType::F32,
        pointee: DType::F32.cxx().to_owned(),
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({strides})"),
        modes,
        vector: String::new(),
        guard: String::new(),
    }
}

pub(super) fn common<'a>(decision: &Decision, plan: &'a Plan, template: &str) -> Common<'a> {
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
    let names = ["b = C(m,n)".to_owned()]
        .into_iter()
        .chain(recipe.epilogue.input_names().skip(2).zip(AUX).map(|(input, aux)| format!("{input} = {aux}(m,n)")));
    let used = names.take(recipe.epilogue.inputs().saturating_sub(1));
    let split = decision.split();
    let z = match (recipe.batched, split) {
        (false, split) => split.to_string(),
        (true, 1) => "L".to_owned(),
        (true, split) => format!("{split}*L"),
    };
    Common {
        banner: emit::banner(plan, template),
        what: recipe.variant.what(),
        plan,
        function: recipe.epilogue.to_string(),
        inputs_doc: used.map(|name| format!(", {name}")).collect(),
        helpers: helpers.to_string(),
        functor,
        scalars: recipe.epilogue.scalars().iter().map(|s| format!("params.{s}")).collect::<Vec<_>>().join(", "),
        operands: operands(decision).iter().map(|o| tensor(decision, o)).collect(),
        sums: decision.reduces().then(|| sums(decision)),
        inputs: (1..recipe.epilogue.inputs()).map(input).collect(),
        aliases: decision.tiling.aliases(),
        assertions: decision.tiling.assertions(),
        factors: (0..decision.tiling.smem.len()).map(|index| factor(decision, index)).collect(),
        vec_n: recipe.vectors()[1],
        stages: decision.stages(),
        split,
        wave: recipe.wave > 0,
        batched: recipe.batched,
        warp_sync: recipe.warp_sync,
        blocks_doc: match recipe.wave {
            0 => format!("(ceil_div(N,{bn}), ceil_div(M,{bm}), {z})"),
            _ => "whole + cut * parts".to_owned(),
        },
        reduce_threads: super::REDUCE_THREADS,
    }
}
