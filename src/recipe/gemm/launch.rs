//! From the views of a launch to what it is given.

use super::decide::{Isa, Part};
use crate::plan::{Field, Given, ModeStride, Operand, ParamStruct, ParamType};
use crate::recipe::product::{Fields, number};
use crate::view::{ViewLayout, ViewRef};

/// The parameter struct of a text: tensor maps, addresses, strides, extents, scalars.
pub(super) fn params(part: &Part) -> ParamStruct {
    let (operands, recipe) = (part.operands(), &part.recipe);
    let (scalars, alpha) = (recipe.epilogue.scalars(), part.product.alpha());
    let of = Fields { operands: &operands, batched: recipe.batched, scalars, alpha };
    let mut fields: Vec<Field> = Vec::new();
    if part.isa == Isa::Sm90a {
        let names = [("map_a", "A"), ("map_b", "B"), ("map_d", "D")];
        let doc = |of| format!("{of}, where its rows begin at multiples of 16 bytes");
        fields.extend(names.map(|(name, of)| (name.to_owned(), ParamType::TensorMap, doc(of), Given::Follows)));
    }
    fields.extend(of.addresses());
    if part.isa == Isa::Sm90a && recipe.batched {
        let docs = [("each_a", "A"), ("each_b", "B")];
        fields.extend(docs.map(|(name, of)| number(name, &format!("1 where each batch has its own {of}, else 0"))));
    }
    fields.extend(of.strides());
    fields.extend(of.extents());
    fields.extend(of.scalars());
    if recipe.is_turned() {
        fields.iter_mut().for_each(|(.., given)| *given = argument(*given));
    }
    ParamStruct::new(fields)
}

/// What the launch of a turned product gives, where its text has B, A, and all transposed.
fn argument(given: Given) -> Given {
    let tensor = |tensor| if tensor < 2 { 1 - tensor } else { tensor };
    let mode = |mode| if mode < 2 { 1 - mode } else { mode };
    match given {
        Given::Address { tensor: t } => Given::Address { tensor: tensor(t) },
        Given::Stride { tensor: t, mode: m } => Given::Stride { tensor: tensor(t), mode: mode(m) },
        Given::Extent { tensor: t, mode: m } => Given::Extent { tensor: tensor(t), mode: mode(m) },
        Given::ExtentUnless { tensor: t, mode: m, zero } => {
            Given::ExtentUnless { tensor: tensor(t), mode: mode(m), zero }
        }
        Given::Scalar(_) | Given::Follows => given,
    }
}

/// The views as a text has them: of a turned product B, A, and all transposed.
pub(super) fn oriented(part: &Part, views: &[ViewRef]) -> Vec<ViewRef> {
    let mut views = views.to_vec();
    if part.recipe.is_turned() {
        views.swap(0, 1);
        for view in &mut views {
            let (mut shape, mut stride) = (view.layout.shape().to_vec(), view.layout.stride().to_vec());
            shape.swap(0, 1);
            stride.swap(0, 1);
            view.layout = ViewLayout::strided(&shape, &stride).unwrap_or(view.layout);
        }
    }
    views
}

/// The operands as a text has them: of a turned product B is its A, and all are transposed.
pub(super) fn turned(mut operands: Vec<Operand>) -> Vec<Operand> {
    operands.swap(0, 1);
    for (operand, name) in operands.iter_mut().zip(["A", "B"]) {
        operand.name = name;
    }
    for operand in &mut operands {
        let strides: &mut Vec<ModeStride> = &mut operand.strides;
        strides.swap(0, 1);
    }
    operands
}

impl Part {
    /// The operands as the text has them.
    pub(super) fn operands(&self) -> Vec<Operand> {
        let operands = self.arguments();
        if self.recipe.is_turned() { turned(operands) } else { operands }
    }

    /// The operands as a launch has them, each with the field of the text that it is.
    pub(super) fn arguments(&self) -> Vec<Operand> {
        let recipe = &self.recipe;
        let (dtypes, majors) = ([recipe.dtype, recipe.out], [recipe.a, recipe.b, recipe.d]);
        let mut operands = recipe.epilogue().operands(self.product.has_c(), dtypes, majors);
        if recipe.is_turned() {
            for (operand, param) in operands.iter_mut().zip(["b", "a"]) {
                operand.param = param.to_owned();
            }
        }
        operands
    }
}
