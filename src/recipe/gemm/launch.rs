//! From the views of a launch to what it is given.

use super::decide::{Isa, Part};
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::plan::{Computes, Geometry, ModeStride, Operand, ParamStruct, ParamValue, Plan};
use crate::recipe::product::Field;
use crate::view::{ViewLayout, ViewRef};

/// What one launch gives a text, A, B and D as the text has them; nothing is known of it when that is planned.
#[derive(Default)]
struct Given<'a> {
    views: Vec<ViewRef>,
    /// M, N, K, L.
    extents: [i64; 4],
    scalars: &'a [f64],
}

/// The parameter struct of a text, with so many run-time scalars.
pub(super) fn params(part: &Part, scalars: usize) -> ParamStruct {
    Field::structure(fields(part, &Given { scalars: &vec![0.0; scalars], ..Given::default() }))
}

/// Tensor maps, addresses, strides, extents, scalars; any for those that follow from the others.
fn fields(part: &Part, given: &Given) -> Vec<Field> {
    let operands = part.operands();
    let with_views = || operands.iter().enumerate().map(|(index, operand)| (operand, given.views.get(index)));
    let mut fields = Vec::new();
    if part.isa == Isa::Sm90a {
        let names = [("map_a", "A"), ("map_b", "B"), ("map_d", "D")];
        let doc = |of| format!("{of}, where its rows begin at multiples of 16 bytes");
        fields.extend(names.map(|(name, of)| Field::new(name, doc(of), ParamValue::TensorMap(None))));
    }
    fields.extend(with_views().map(|(operand, view)| Field::address(operand, view)));
    if part.isa == Isa::Sm90a && part.recipe.batched {
        for (name, doc) in [("each_a", "A"), ("each_b", "B")] {
            fields.push(Field::number(name, &format!("1 where each batch has its own {doc}, else 0"), 0));
        }
    }
    fields.extend(with_views().flat_map(|(operand, view)| Field::strides(operand, view)));
    fields.extend(Field::extents(given.extents, part.recipe.batched));
    fields.extend(Field::scalars(part.recipe.epilogue.scalars(), given.scalars));
    fields
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

pub(super) fn geometry(part: &Part, plan: &Plan, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
    let views = oriented(part, views);
    let shapes: Vec<&[i64]> = views.iter().map(|view| view.layout.shape()).collect();
    let problem = Computes::Product(&part.product).problem_of(&shapes);
    let Some(problem) = problem else { return Err(plan.unexpected_views(&views).into()) };
    let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).copied().unwrap_or(1));
    let k = if part.product.reads_factors(scalars) { k } else { 0 };
    let given = fields(part, &Given { views, extents: [m, n, k, l], scalars });
    let given: Vec<ParamValue> = given.into_iter().map(|field| field.value).collect();
    plan.follow(&given)?.ok_or_else(|| too_large(plan, [m, n, k, l]).into())
}

fn too_large(plan: &Plan, [m, n, k, l]: [i64; 4]) -> Diagnostic {
    plan.diagnostic(
        Code::ProblemTooLarge,
        format!("M = {m}, N = {n}, K = {k}, L = {l}"),
        "extents below 2^31 less some tiles, and fewer than 2^31 tiles of D".into(),
        "coordinates are 32-bit integers, and so is the number of a CTA; offsets are 64-bit",
        "launch on parts of the matrices",
    )
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
