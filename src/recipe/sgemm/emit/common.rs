//! What all kernels of the family have in common: tensors as the templates name them, and the epilogue.

use super::super::decide::{Decision, operands};
use super::super::epilogue::AUX;
use super::super::launch::stride_params;
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::plan::{ModeStride, Operand, Plan};
use crate::view::Access;

/// A tensor as the templates name it.
#[derive(Clone)]
pub(super) struct Tensor {
    /// `A` in `mA`.
    pub(super) name: &'static str,
    /// `C` in `tCrC` would be the accumulators: what is read of C is `tCrX`.
    pub(super) read_name: String,
    pub(super) param: String,
    pub(super) element: &'static str,
    pub(super) pointee: String,
    pub(super) shape: String,
    pub(super) strides: String,
    /// Takes the matrix of this batch.
    pub(super) slice: String,
    /// `(M,K)`.
    pub(super) modes: &'static str,
    /// The vector type where it is contiguous along N, else empty.
    pub(super) vector: String,
    /// When it is read at all; empty for always.
    pub(super) guard: String,
    /// The conversion of `@` to f32.
    pub(super) convert: String,
}

impl Tensor {
    /// The element at `place`, whose `@` is the tensor's name, or 0 where it need not be read.
    pub(super) fn load(&self, place: &str) -> String {
        let element = self.convert.replace('@', &place.replace('@', self.name));
        if self.guard.is_empty() { element } else { format!("{} ? {element} : 0.0f", self.guard) }
    }

    /// The condition, where it is read at all.
    pub(super) fn guarded(&self, condition: &str) -> String {
        if self.guard.is_empty() { condition.to_owned() } else { format!("{} && {condition}", self.guard) }
    }

    /// Begins the branch for where that condition does not hold.
    pub(super) fn if_guarded(&self) -> String {
        if self.guard.is_empty() { String::new() } else { format!("if ({}) ", self.guard) }
    }
}

/// What all kernels of the family have in common.
pub(super) struct Common<'a> {
    pub(super) banner: String,
    pub(super) plan: &'a Plan,
    pub(super) function: String,
    pub(super) inputs_doc: String,
    pub(super) helpers: String,
    pub(super) functor: String,
    pub(super) scalars: String,
    /// As the kernel declares them.
    pub(super) tensors: Vec<Tensor>,
    /// Those of the epilogue, D last.
    pub(super) epilogue: Vec<Tensor>,
    /// Which input of the epilogue, from 1, is which tensor that is read; `None` for C where it is not used.
    pub(super) inputs: Vec<Option<usize>>,
    /// `(BN,BM)`, as the sums of a tile are numbered.
    pub(super) tile_nm: String,
    pub(super) tile_a: String,
    pub(super) tile_b: String,
    pub(super) tile_d: String,
    pub(super) split: i64,
    /// That number as a type.
    pub(super) parts: String,
    /// Whether blocks are numbered, and the last tiles cut along K.
    pub(super) wave: bool,
    /// The tile of the block along M and along N.
    pub(super) tile_m: &'static str,
    pub(super) tile_n: &'static str,
    /// Tiles along N, M and L.
    pub(super) tiles_nm: String,
    /// `, l` behind their coordinates.
    pub(super) comma_l: &'static str,
    pub(super) blocks_doc: String,
    pub(super) batched: bool,
    /// `,L`, or nothing.
    pub(super) l: &'static str,
    pub(super) batches: &'static str,
    pub(super) batches_doc_l: &'static str,
}

impl Common<'_> {
    /// What the epilogue reads.
    pub(super) fn read(&self) -> &[Tensor] {
        &self.epilogue[..self.epilogue.len() - 1]
    }

    pub(super) fn reads(&self) -> bool {
        self.epilogue.len() > 1
    }

    pub(super) fn arguments_by(&self, value: impl Fn(&Tensor) -> String) -> String {
        let one = |input: &Option<usize>| input.map_or_else(|| "0.0f".to_owned(), |i| value(&self.epilogue[i]));
        self.inputs.iter().map(|input| format!(", {}", one(input))).collect()
    }

    /// The inputs after the accumulator, read where they lie.
    pub(super) fn arguments(&self, place: &str) -> String {
        self.arguments_by(|t| t.load(place))
    }

    /// The same from registers, at `index`.
    pub(super) fn registers(&self, index: &str) -> String {
        self.arguments_by(|t| format!("tCr{}{index}", t.read_name))
    }
}

/// A tensor whose matrix is `(rows,cols)`, turned where an MMA takes B as `(N,K)`.
pub(super) fn tensor(decision: &Decision, operand: &Operand, helpers: &mut Helpers) -> Tensor {
    let mma = decision.recipe.variant.has_mma();
    let (extents, modes, turned) = match operand.name {
        "A" => (["m", "k"], "(M,K)", false),
        "B" if mma => (["n", "k"], "(N,K)", true),
        "B" => (["k", "n"], "(K,N)", false),
        _ => (["m", "n"], "(M,N)", false),
    };
    let stride = |(kind, param): (&ModeStride, Option<String>)| match (kind, param) {
        (ModeStride::Unit, _) => "_1{}".to_owned(),
        (_, Some(param)) => format!("params.{param}"),
        _ => "_0{}".to_owned(),
    };
    let mut strides: Vec<String> =
        operand.strides.iter().zip(stride_params(&operand.param, &operand.strides)).map(stride).collect();
    if turned {
        strides.swap(0, 1);
    }
    let batched = decision.recipe.batched;
    let mut shape: Vec<String> = extents.iter().map(|e| format!("params.{e}")).collect();
    shape.extend(batched.then(|| "params.l".to_owned()));
    let written = operand.access == Access::Write;
    let element = operand.dtype.cxx();
    let vec = decision.recipe.vectors()[1] as u64;
    let along_n = operand.strides.get(1) == Some(&ModeStride::Unit);
    let beta = decision.product.beta().filter(|_| operand.name == "C");
    let guard = beta.map(|s| format!("params.{} != 0.0f", decision.recipe.epilogue.scalars()[s]));
    Tensor {
        name: operand.name,
        read_name: if operand.name == "C" { "X".to_owned() } else { operand.name.to_owned() },
        param: operand.param.clone(),
        element,
        pointee: format!("{element}{}", if written { "" } else { " const" }),
        shape: format!("make_shape({})", shape.join(", ")),
        strides: format!("make_stride({})", strides.join(", ")),
        slice: if batched { "(_,_,l)".to_owned() } else { String::new() },
        modes,
        vector: if along_n { format!("uint{}_t", 8 * vec * operand.dtype.bytes().0) } else { String::new() },
        guard: guard.unwrap_or_default(),
        convert: helpers.load(operand.dtype, "@"),
    }
}

/// The workspace, rows without gaps: `(M,N,SPLIT)` or, where tiles are cut, `(BM,BN,(CUT,PARTS))`.
pub(super) fn sums(decision: &Decision, slice: &str, modes: &'static str) -> Tensor {
    let batched = decision.recipe.batched;
    let ([bm, bn, _], split) = (decision.tile(), decision.split());
    let (shape_l, stride_l) =
        if batched { (", params.l", format!(", int64_t(params.m) * params.n * {split}")) } else { ("", String::new()) };
    let (shape, strides) = match decision.recipe.wave {
        0 => (
            format!("params.m, params.n, {}{{}}{shape_l}", emit::int(split)),
            format!("int64_t(params.n), _1{{}}, int64_t(params.m) * params.n{stride_l}"),
        ),
        _ => (
            format!("{}{{}}, {}{{}}, make_shape(params.cut, params.parts)", emit::int(bm), emit::int(bn)),
            format!("{}{{}}, _1{{}}, make_stride(int64_t({1}), int64_t({1}) * params.cut)", emit::int(bn), bm * bn),
        ),
    };
    Tensor {
        name: "W",
        read_name: "W".to_owned(),
        param: crate::plan::WORKSPACE.to_owned(),
        element: "float",
        pointee: "float".to_owned(),
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({strides})"),
        slice: slice.to_owned(),
        modes,
        vector: String::new(),
        guard: String::new(),
        convert: "@".to_owned(),
    }
}

pub(super) fn common<'a>(decision: &Decision, plan: &'a Plan, template: &str) -> Common<'a> {
    let recipe = &decision.recipe;
    let mut helpers = Helpers::new(Compute::F32);
    let functor = decision.product.epilogue().functor("Op", &mut helpers);
    let all: Vec<Tensor> = operands(decision).iter().map(|o| tensor(decision, o, &mut helpers)).collect();
    let epilogue: Vec<Tensor> = all[2..].to_vec();
    let mut tensors = all;
    if decision.split() > 1 {
        tensors.truncate(2);
        let slice = if recipe.batched { "(_,_,split,l)" } else { "(_,_,split)" };
        tensors.push(sums(decision, slice, "(M,N)"));
    }
    let [bm, bn, bk] = decision.tile();
    let c = usize::from(decision.product.has_c());
    let inputs = (1..recipe.epilogue.inputs())
        .map(|input| if input == 1 { (c == 1).then_some(0) } else { Some(input - 2 + c) })
        .collect();
    let names = ["b = C(m,n)".to_owned()]
        .into_iter()
        .chain(recipe.epilogue.input_names().skip(2).zip(AUX).map(|(input, aux)| format!("{input} = {aux}(m,n)")));
    let used = names.take(recipe.epilogue.inputs().saturating_sub(1));
    let tile_b = if recipe.variant.has_mma() { [bn, bk] } else { [bk, bn] };
    let split = decision.split();
    let z = match (recipe.batched, split) {
        (false, 1) => "1".to_owned(),
        (true, 1) => "L".to_owned(),
        (false, s) => s.to_string(),
        (true, s) => format!("{s}*L"),
    };
    Common {
        banner: emit::banner(plan, template),
        plan,
        function: recipe.epilogue.to_string(),
        inputs_doc: used.map(|name| format!(", {name}")).collect(),
        helpers: helpers.to_string(),
        functor,
        scalars: recipe.epilogue.scalars().iter().map(|s| format!("params.{s}")).collect::<Vec<_>>().join(", "),
        tensors,
        epilogue,
        inputs,
        tile_nm: emit::shape_type([bn, bm]),
        tile_a: emit::shape_type([bm, bk]),
        tile_b: emit::shape_type(tile_b),
        tile_d: emit::shape_type([bm, bn]),
        split,
        parts: emit::int(split),
        wave: recipe.wave > 0,
        tile_m: if recipe.wave > 0 { "tile_m" } else { "int(blockIdx.y)" },
        tile_n: if recipe.wave > 0 { "tile_n" } else { "int(blockIdx.x)" },
        tiles_nm: format!(
            "make_shape(ceil_div(params.n, {}{{}}), ceil_div(params.m, {}{{}}){})",
            emit::int(bn),
            emit::int(bm),
            if recipe.batched { ", params.l" } else { "" }
        ),
        comma_l: if recipe.batched { ", l" } else { "" },
        blocks_doc: match recipe.wave {
            0 => format!("(ceil_div(N,{bn}), ceil_div(M,{bm}), {z})"),
            _ => "whole + cut * parts".to_owned(),
        },
        batched: recipe.batched,
        l: if recipe.batched { ",L" } else { "" },
        batches: if recipe.batched { "params.l" } else { "_1{}" },
        batches_doc_l: if recipe.batched { "L" } else { "1" },
    }
}
