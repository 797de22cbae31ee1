//! The text: its joining template with the values of the tiling.

use askama::Template;

use super::Mask;
use super::decide::Decision;
use crate::dtype::DType;
use crate::emit::{self, Alias, Assertion};
use crate::plan::{Operand, Plan};
use crate::tiling::{Lives, SmemTensor};
use crate::units::Bytes;

/// What the parts of a text share.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    element: &'static str,
    /// Elements of a row of Q and K, and of V and O, as types.
    head: String,
    value: String,
    /// Whether keys behind a query are not seen, and whether those of a window are.
    diagonal: bool,
    window: bool,
    varlen: bool,
    /// What sequences are apart, among the strides.
    apart: &'static str,
    lse: bool,
    /// Two weights in a register, as PTX spells them.
    pair: &'static str,
    threads: u32,
    smem_bytes: u64,
    align: u64,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: Vec<Shared>,
    rows: Vec<Rows>,
}

/// An array in shared memory.
struct Shared {
    name: &'static str,
    param: String,
    align: Bytes,
    /// Whether it lies where the others do.
    lent: bool,
}

/// An input with rows of a head.
struct Rows {
    name: &'static str,
    param: String,
}

#[derive(Template)]
#[template(path = "attention/sm80.cuh")]
struct Sm80<'a> {
    c: Common<'a>,
}

impl Common<'_> {
    fn staged(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| !tensor.lent)
    }

    fn lent(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| tensor.lent)
    }

    fn reads(&self) -> &[Rows] {
        &self.rows
    }
}

fn rows(operand: &Operand) -> Rows {
    Rows { name: operand.name, param: operand.param.clone() }
}

fn shared(tensor: &SmemTensor) -> Shared {
    let (name, lent) = (tensor.name, tensor.lives == Lives::Epilogue);
    Shared { name, param: name.to_lowercase(), align: tensor.align, lent }
}

pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let Decision { recipe, tiling, smem, .. } = decision;
    let c = Common {
        banner: emit::banner(plan, "attention/sm80.cuh"),
        plan,
        element: emit::element(recipe.dtype),
        head: emit::int(recipe.head.into()),
        value: emit::int(recipe.value().into()),
        diagonal: recipe.has_diagonal(),
        window: recipe.mask == Mask::Window,
        varlen: recipe.varlen,
        apart: recipe.apart(),
        lse: recipe.lse,
        pair: if recipe.dtype == DType::Bf16 { "bf16x2" } else { "f16x2" },
        threads: tiling.threads(),
        smem_bytes: smem.0,
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
        aliases: tiling.aliases(),
        assertions: tiling.assertions(),
        tensors: tiling.smem.iter().map(shared).collect(),
        rows: plan.operands().iter().take(3).map(rows).collect(),
    };
    emit::text(&Sm80 { c })
}
