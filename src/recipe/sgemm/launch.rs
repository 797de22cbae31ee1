//! From the views of a launch to its grid and parameters.

use super::Variant;
use super::decide::{Decision, operands};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::plan::{Computes, Geometry, Int, ModeStride, Operand, ParamStruct, ParamValue, Plan, Rule, WORKSPACE};
use crate::recipe::product::{self, Field, Parts};
use crate::view::ViewRef;

/// What one launch gives the kernel; nothing is known of it when that is planned.
#[derive(Default)]
struct Given<'a> {
    views: &'a [ViewRef],
    extents: [i64; 4],
    scalars: &'a [f64],
}

/// The parameter struct, with so many of the run-time scalars.
pub(super) fn params(decision: &Decision, scalars: usize) -> ParamStruct {
    Field::structure(fields(decision, &Given { scalars: &vec![0.0; scalars], ..Given::default() }))
}

/// Addresses, strides, extents, alignment, workspace, scalars.
fn fields(decision: &Decision, given: &Given) -> Vec<Field> {
    let recipe = &decision.recipe;
    let operands = operands(decision);
    let with_views = || operands.iter().enumerate().map(|(index, operand)| (operand, given.views.get(index)));
    let mut fields: Vec<Field> = with_views().map(|(operand, view)| Field::address(operand, view)).collect();
    let doc = match decision.recipe.parts() {
        Parts::Each(1) => None,
        Parts::Each(parts) => {
            let l = if recipe.batched { ",L" } else { "" };
            Some(format!("sums of the {parts} parts of K, (M,N,SPLIT{l})"))
        }
        Parts::Wave(_) => Some("sums of the parts of each tile that is cut, (BM,BN,(CUT,PARTS))".to_owned()),
    };
    fields.extend(doc.map(|doc| Field::new(WORKSPACE, doc, ParamValue::Ptr(0))));
    fields.extend(with_views().flat_map(|(operand, view)| Field::strides(operand, view)));
    fields.extend(Field::extents(given.extents, recipe.batched));
    if recipe.wave > 0 {
        let docs = [
            ("whole", "tiles of D that one block computes"),
            ("cut", "tiles of D behind them that are cut along K"),
            ("parts", "blocks of each of those"),
            ("k_part", "tiles of A and B of one such block; the last has what is left"),
        ];
        fields.extend(docs.map(|(name, doc)| Field::number(name, doc, 0)));
    }
    for (factor, (name, what)) in VECTORS.into_iter().enumerate() {
        if has_vectors(decision, factor) {
            fields.push(Field::number(name, &format!("1 where all {what} are aligned, else 0"), 0));
        }
    }
    fields.extend(Field::scalars(recipe.epilogue.scalars(), given.scalars));
    fields
}

pub(super) fn geometry(
    decision: &Decision,
    plan: &Plan,
    views: &[ViewRef],
    scalars: &[f64],
) -> Result<Geometry, BindError> {
    let shapes: Vec<&[i64]> = views.iter().map(|view| view.layout.shape()).collect();
    let Some(problem) = Computes::Product(&decision.product).problem_of(&shapes) else {
        return Err(plan.unexpected_views(views).into());
    };
    let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).copied().unwrap_or(1));
    let k = if decision.product.reads_factors(scalars) { k } else { 0 };
    let given = fields(decision, &Given { views, extents: [m, n, k, l], scalars });
    let given: Vec<ParamValue> = given.into_iter().map(|field| field.value).collect();
    plan.follow(&given)?.ok_or_else(|| too_large(decision, plan, [m, n, k, l]).into())
}

/// The parameters that say whether vectors of A, of B, and of what goes with D are aligned.
const VECTORS: [(&str, &str); 3] = [
    ("aligned_a", "loads of A"),
    ("aligned_b", "loads of B"),
    ("aligned_d", "vectors of D and of what is read with it"),
];

fn has_vectors(decision: &Decision, factor: usize) -> bool {
    decision.recipe.variant.has_mma() && decision.vector(factor) > 1
}

/// Grids, alignment and what is cut, from addresses, strides and extents.
pub(super) fn rule(decision: &Decision, scalars: usize) -> Rule {
    let mut rule = Rule::new(&params(decision, scalars));
    let extents = ["m", "n", "k", "l"].map(|name| rule.param(name));
    let [bm, bn, bk] = decision.tile();
    let margin = bk * (decision.stages() * i64::from(decision.recipe.split_k) + 1);
    for (extent, tile) in extents.iter().zip([bm, bn, margin, 1]) {
        let most = i64::from(i32::MAX) - 2 * tile;
        rule.steps.require(extent.clone().at_most(most), "coordinates are 32-bit integers");
    }
    decision.recipe.parts().grids(&mut rule, decision.tile(), extents);
    for (factor, (name, _)) in VECTORS.into_iter().enumerate() {
        if has_vectors(decision, factor) {
            let aligned = aligned(decision, &rule, factor);
            rule.derive(name, aligned);
        }
    }
    rule
}

/// Whether all loads of A (0), or of B (1), or all vectors of D and of what is read with it are aligned.
fn aligned(decision: &Decision, rule: &Rule, factor: usize) -> Int {
    let vec = decision.vector(factor);
    let one = |operand: &Operand| product::aligned(rule, operand, vec);
    let all = operands(decision);
    if factor < 2 {
        return all.get(factor).map_or(Int::Const(0), one);
    }
    // The sums of the parts of K lie in rows without gaps.
    let sums = if decision.recipe.split_k == 1 { Int::Const(1) } else { rule.param("n").divides_by(vec) };
    let along_n = |operand: &&Operand| operand.strides.get(1) == Some(&ModeStride::Unit);
    sums.and(Int::all(all.iter().skip(2).filter(along_n).map(one)))
}

fn too_large(decision: &Decision, plan: &Plan, [m, n, k, l]: [i64; 4]) -> Diagnostic {
    let [bm, bn, _] = decision.tile();
    let grid = Arch::MAX_GRID_YZ as i64;
    let blocks = match decision.recipe.parts() {
        Parts::Wave(_) => "tiles of D below 2^31".to_owned(),
        Parts::Each(1) => format!("M <= {}, L <= {grid}", grid * bm),
        Parts::Each(split) => {
            format!("M <= {}, L * split_k <= {grid}, that is L <= {}, M * N < 2^31", grid * bm, grid / split)
        }
    };
    plan.diagnostic(
        Code::ProblemTooLarge,
        format!("M = {m}, N = {n}, K = {k}, L = {l}, tiles of {bm} x {bn}"),
        format!("extents below 2^31 less some tiles, {blocks}"),
        "coordinates are 32-bit integers, and a grid has at most 65535 blocks along y and z (CUDA C++ Programming Guide, \
         \"Compute Capabilities\"); offsets are 64-bit",
        match decision.recipe.variant {
            Variant::Pipelined if decision.recipe.wave == 0 => "wave=264, whose blocks lie along x, or launches on parts",
            Variant::Pipelined => "launch on parts of the matrices",
            _ => "a larger tile",
        },
    )
}
