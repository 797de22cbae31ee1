//! From the views of a launch to its grid and parameters.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Variant;
use super::decide::{Decision, operands};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::plan::{
    Abi, Geometry, GridRule, ModeStride, Operand, ParamStruct, ParamValue, Shapes, WORKSPACE, is_zero, written,
};
use crate::recipe::product::{Cut, Field, Grids, Parts};
use crate::units::Bytes;
use crate::view::ViewRef;

/// What one launch gives the kernel; nothing is known of it when that is planned.
#[derive(Default)]
struct Given<'a> {
    views: &'a [ViewRef],
    extents: [i64; 4],
    cut: [i64; 4],
    /// Whether vectors of A, of B, of D and of what is read with it are aligned.
    aligned: [bool; 3],
    scalars: &'a [f64],
}

/// What a launch is computed by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    parts: Parts,
    batched: bool,
    pipelined: bool,
    tile: [i64; 3],
    /// Elements along K that are asked for past the end, at most.
    margin: i64,
    /// Elements of a vector of A, of B, of D and what is read with it.
    vectors: [i64; 3],
    /// Of which the parameters tell whether they are aligned.
    told: [bool; 3],
    /// The scalar that spares reading A and B where it is 0.
    alpha: Option<usize>,
}

impl Rule {
    pub(super) fn of(decision: &Decision) -> Self {
        let recipe = &decision.recipe;
        let (tile, vectors) = (decision.tile(), [0, 1, 2].map(|factor| decision.vector(factor)));
        Self {
            parts: recipe.parts(),
            batched: recipe.batched,
            pipelined: recipe.variant == Variant::Pipelined,
            tile,
            margin: tile[2] * (decision.stages() * i64::from(recipe.split_k) + 1),
            vectors,
            told: vectors.map(|vector| recipe.variant.has_mma() && vector > 1),
            alpha: decision.product.alpha(),
        }
    }
}

impl GridRule for Rule {
    fn numbers(&self) -> Value {
        written(self)
    }

    fn geometry(&self, abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
        geometry(self, abi, views, scalars)
    }
}

/// The parameter struct, with so many of the run-time scalars.
pub(super) fn params(decision: &Decision, scalars: usize) -> ParamStruct {
    let given = Given { scalars: &vec![0.0; scalars], ..Given::default() };
    let names = decision.recipe.epilogue.scalars();
    Field::structure(fields(&Rule::of(decision), &operands(decision), names, &given))
}

/// Addresses, strides, extents, alignment, workspace, scalars.
fn fields(rule: &Rule, operands: &[Operand], scalars: &[String], given: &Given) -> Vec<Field> {
    let with_views = || operands.iter().enumerate().map(|(index, operand)| (operand, given.views.get(index)));
    let mut fields: Vec<Field> = with_views().map(|(operand, view)| Field::address(operand, view)).collect();
    let doc = match rule.parts {
        Parts::Each(1) => None,
        Parts::Each(parts) => {
            let l = if rule.batched { ",L" } else { "" };
            Some(format!("sums of the {parts} parts of K, (M,N,SPLIT{l})"))
        }
        Parts::Wave(_) => Some("sums of the parts of each tile that is cut, (BM,BN,(CUT,PARTS))".to_owned()),
    };
    fields.extend(doc.map(|doc| Field::new(WORKSPACE, doc, ParamValue::Ptr(0))));
    fields.extend(with_views().flat_map(|(operand, view)| Field::strides(operand, view)));
    fields.extend(Field::extents(given.extents, rule.batched));
    if let Parts::Wave(_) = rule.parts {
        let docs = [
            ("whole", "tiles of D that one block computes"),
            ("cut", "tiles of D behind them that are cut along K"),
            ("parts", "blocks of each of those"),
            ("k_part", "tiles of A and B of one such block; the last has what is left"),
        ];
        fields.extend(docs.into_iter().zip(given.cut).map(|((name, doc), value)| Field::number(name, doc, value)));
    }
    let vectors = [("a", "loads of A"), ("b", "loads of B"), ("d", "vectors of D and of what is read with it")];
    for (factor, ((name, what), aligned)) in vectors.into_iter().zip(given.aligned).enumerate() {
        if rule.told[factor] {
            let doc = format!("1 where all {what} are aligned, else 0");
            fields.push(Field::number(&format!("aligned_{name}"), &doc, aligned.into()));
        }
    }
    fields.extend(Field::scalars(scalars, given.scalars));
    fields
}

fn geometry(rule: &Rule, abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
    let shapes: Vec<&[i64]> = views.iter().map(|view| view.layout.shape()).collect();
    let Some(problem) = (Shapes::Product { batched: rule.batched }).problem_of(&shapes) else {
        return Err(abi.unexpected_views(views).into());
    };
    let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).copied().unwrap_or(1));
    let k = if is_zero(scalars, rule.alpha) { 0 } else { k };
    let Rule { parts, margin, tile, .. } = *rule;
    let [bm, bn, _] = tile;
    let small = [(m, bm), (n, bn), (k, margin), (l, 1)].iter().all(|(e, tile)| *e <= i64::from(i32::MAX) - 2 * tile);
    let grids = small.then(|| parts.grids(tile, [m, n, k, l])).flatten();
    let Some(Grids { main, reduce, workspace, cut: Cut { whole, cut, parts: each, k_part } }) = grids else {
        return Err(too_large(rule, abi, [m, n, k, l]).into());
    };
    let aligned = [0, 1, 2].map(|factor| aligned(rule, abi, views, n, factor));
    let given = Given { views, extents: [m, n, k, l], cut: [whole, cut, each, k_part], aligned, scalars };
    let something = m > 0 && n > 0 && l > 0;
    let grids = [Some(main)].into_iter().chain((parts != Parts::Each(1)).then_some(reduce));
    Ok(Geometry {
        grids: grids.map(|grid| grid.filter(|_| something)).collect(),
        values: fields(rule, abi.operands(), abi.scalars(), &given).into_iter().map(|field| field.value).collect(),
        workspace: if something { workspace } else { Bytes(0) },
    })
}

/// Whether all loads of A (0), or of B (1), or all vectors of D and of what is read with it are aligned.
fn aligned(rule: &Rule, abi: &Abi, views: &[ViewRef], n: i64, factor: usize) -> bool {
    let vec = rule.vectors[factor];
    let mut all = abi.operands().iter().zip(views).enumerate();
    if factor < 2 {
        return all.any(|(index, (operand, view))| index == factor && operand.aligned(view, vec));
    }
    // The sums of the parts of K lie in rows without gaps.
    let sums = matches!(rule.parts, Parts::Each(1) | Parts::Wave(_)) || n % vec == 0;
    let along_n = |operand: &Operand| operand.strides.get(1) == Some(&ModeStride::Unit);
    sums && all.skip(2).all(|(_, (operand, view))| !along_n(operand) || operand.aligned(view, vec))
}

fn too_large(rule: &Rule, abi: &Abi, [m, n, k, l]: [i64; 4]) -> Diagnostic {
    let [bm, bn, _] = rule.tile;
    let grid = Arch::MAX_GRID_YZ as i64;
    let blocks = match rule.parts {
        Parts::Wave(_) => "tiles of D below 2^31".to_owned(),
        Parts::Each(1) => format!("M <= {}, L <= {grid}", grid * bm),
        Parts::Each(split) => {
            format!("M <= {}, L * split_k <= {grid}, that is L <= {}, M * N < 2^31", grid * bm, grid / split)
        }
    };
    abi.diagnostic(
        Code::ProblemTooLarge,
        format!("M = {m}, N = {n}, K = {k}, L = {l}, tiles of {bm} x {bn}"),
        format!("extents below 2^31 less some tiles, {blocks}"),
        "coordinates are 32-bit integers, and a grid has at most 65535 blocks along y and z (CUDA C++ Programming Guide, \
         \"Compute Capabilities\"); offsets are 64-bit",
        match (rule.pipelined, rule.parts) {
            (true, Parts::Each(_)) => "wave=264, whose blocks lie along x, or launches on parts",
            (true, Parts::Wave(_)) => "launch on parts of the matrices",
            _ => "a larger tile",
        },
    )
}
