//! From the views of a launch to its grid, parameters and tensor maps.

use super::decide::{Isa, Part};
use super::tilings::VECTOR;
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic};
use crate::plan::{Computes, Geometry, ModeStride, Operand, ParamStruct, ParamValue, Plan};
use crate::recipe::product::Field;
use crate::tiling::{Schedule, TensorMapSpec};
use crate::units::Bytes;
use crate::view::{ViewLayout, ViewRef};

/// What one launch gives a text, A, B and D as the text has them; nothing is known of it when that is planned.
#[derive(Default)]
struct Given<'a> {
    views: Vec<ViewRef>,
    /// M, N, K, L.
    extents: [i64; 4],
    /// Of A, B and D, where TMA can copy them.
    maps: [Option<TensorMapSpec>; 3],
    scalars: &'a [f64],
}

/// The parameter struct of a text, with so many run-time scalars.
pub(super) fn params(part: &Part, scalars: usize) -> ParamStruct {
    Field::structure(fields(part, &Given { scalars: &vec![0.0; scalars], ..Given::default() }))
}

/// Tensor maps, addresses, strides, extents, scalars.
fn fields(part: &Part, given: &Given) -> Vec<Field> {
    let operands = part.operands();
    let with_views = || operands.iter().enumerate().map(|(index, operand)| (operand, given.views.get(index)));
    let mut fields = Vec::new();
    if part.isa == Isa::Sm90a {
        let names = ["map_a", "map_b", "map_d"].into_iter().zip(["A", "B", "D"]).zip(given.maps);
        let doc = |of| format!("{of}, where its rows begin at multiples of 16 bytes");
        fields.extend(names.map(|((name, of), map)| Field::new(name, doc(of), ParamValue::TensorMap(map))));
    }
    fields.extend(with_views().map(|(operand, view)| Field::address(operand, view)));
    if part.isa == Isa::Sm90a && part.recipe.batched {
        let each = |view: Option<&ViewRef>| view.is_some_and(|view| batches(view, given.extents[3]) > 1).into();
        for (name, doc, view) in [("each_a", "A", given.views.first()), ("each_b", "B", given.views.get(1))] {
            fields.push(Field::number(name, &format!("1 where each batch has its own {doc}, else 0"), each(view)));
        }
    }
    fields.extend(with_views().flat_map(|(operand, view)| Field::strides(operand, view)));
    fields.extend(Field::extents(given.extents, part.recipe.batched));
    fields.extend(Field::scalars(part.recipe.epilogue.scalars(), given.scalars));
    fields
}

/// How many matrices a factor has: one that serves all batches is one.
fn batches(view: &ViewRef, l: i64) -> i64 {
    if view.layout.stride().get(2).is_some_and(|stride| *stride != 0) { l } else { 1 }
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
    let (Some(problem), [a, b, .., d]) = (problem, &views[..]) else {
        return Err(plan.unexpected_views(&views).into());
    };
    let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).copied().unwrap_or(1));
    let k = if part.product.reads_factors(scalars) { k } else { 0 };
    let [bm, bn, bk] = part.tiling.tile;
    let margin = bk * (part.tiling.stages() + 1);
    let small = [(m, bm), (n, bn), (k, margin), (l, 1)].iter().all(|(e, tile)| *e <= i64::from(i32::MAX) - 2 * tile);
    let Some(blocks) = small.then(|| blocks(part, [m, n, l])).flatten() else {
        return Err(too_large(plan, [m, n, k, l]).into());
    };
    let something = m > 0 && n > 0 && l > 0;
    let maps = match part.isa {
        Isa::Sm90a if something && k > 0 => {
            let asked = [("TmaA", a, [m, k]), ("TmaB", b, [n, k]), ("TmaD", d, [m, n])];
            let [a, b, d] = asked.map(|(copy, view, shape)| tensor_map(part, plan, copy, view, shape, l));
            [a?, b?, d?]
        }
        _ => [None; 3],
    };
    let entry = match (part.isa, maps) {
        (Isa::Sm80, _) => usize::from(k > 0 && !vectors_are_whole(part, [a, b], [m, n, k])),
        (Isa::Sm90a, [Some(_), Some(_), Some(_)]) => 0,
        (Isa::Sm90a, [Some(_), Some(_), None]) => 1,
        (Isa::Sm90a, _) => {
            if k > 0 {
                2
            } else {
                1
            }
        }
    };
    let grid = |index: usize| (something && index == entry).then_some([blocks, 1, 1]);
    let given = Given { views, extents: [m, n, k, l], maps, scalars };
    Ok(Geometry {
        grids: (0..plan.entries().len()).map(grid).collect(),
        values: fields(part, &given).into_iter().map(Field::narrowed).collect(),
        workspace: Bytes(0),
    })
}

/// Whether all copies of A and B by 16 bytes are aligned, and none lies across an edge.
fn vectors_are_whole(part: &Part, views: [&ViewRef; 2], [m, n, k]: [i64; 3]) -> bool {
    let each = part.operands().into_iter().zip(views).zip(part.recipe.k_major()).zip([m, n]);
    let whole = |(((operand, view), k_major), rows): (((Operand, &ViewRef), bool), i64)| {
        operand.aligned(view, VECTOR) && (if k_major { k } else { rows }) % VECTOR == 0
    };
    each.into_iter().all(whole)
}

/// CTAs that are launched: one for each tile, or as many as are resident at a time, in clusters, and no more than make each
/// compute as often as the others. `None` where there are more tiles than can be numbered.
fn blocks(part: &Part, [m, n, l]: [i64; 3]) -> Option<u32> {
    let [bm, bn, _] = part.tiling.tile;
    let [along_m, along_n, _] = part.tiling.cluster;
    let tiles = |extent: i64, tile: i64, along: u32| (extent as u64).div_ceil(tile as u64 * u64::from(along));
    let clusters = tiles(m, bm, along_m).checked_mul(tiles(n, bn, along_n))?.checked_mul(l as u64)?;
    let size = u64::from(part.tiling.cluster_size());
    let launched = match part.tiling.schedule {
        Schedule::OneTileACta => clusters,
        Schedule::Persistent { .. } => {
            let resident = (u64::from(part.recipe.ctas) / size).max(1);
            clusters.div_ceil(clusters.div_ceil(resident).max(1))
        }
    };
    // A CTA's next tile is numbered by 32 bits too, though there be none.
    let numbered = clusters.checked_add(launched)?.checked_mul(size)?;
    (numbered <= Arch::MAX_GRID_X || clusters == launched && clusters * size <= Arch::MAX_GRID_X)
        .then_some((launched * size) as u32)
}

/// What the copy of that name is told of a matrix, where it lies as TMA can copy it: rows of a factor that begin at multiples of 16
/// bytes and do not overlap. Rows of D end there too: TMA stores whole chunks, past the end of a row (seen on an H200).
fn tensor_map(
    part: &Part,
    plan: &Plan,
    name: &str,
    view: &ViewRef,
    shape: [i64; 2],
    l: i64,
) -> Result<Option<TensorMapSpec>, Defect> {
    let defect = || Defect::new(format!("the tiling's copy {name} has no tensor map"), plan.recipe());
    let copy = part.tiling.copy(name).ok_or_else(defect)?;
    let (global, tensor) = copy.in_global_and_shared().ok_or_else(defect)?;
    let tensor = part.tiling.smem(tensor).ok_or_else(defect)?;
    let operand = if name == "TmaB" { [1, 0] } else { [0, 1] };
    let stride = operand.map(|mode| view.layout.stride().get(mode).copied().unwrap_or(0));
    let (inner, outer) = (shape[global.contiguous], shape[1 - global.contiguous]);
    // A row with nothing after it has no leading dimension, and a matrix with none after it no distance.
    let whole = (inner + VECTOR - 1) / VECTOR * VECTOR;
    let leading = if outer > 1 { stride[1 - global.contiguous] } else { whole };
    let l = if copy.name == "TmaD" { l } else { batches(view, l) };
    let apart = if l > 1 { view.layout.stride().get(2).copied().unwrap_or(0) } else { leading };
    if leading < inner || apart < 1 {
        return Ok(None);
    }
    let spec = copy.tensor_map(tensor, view.ptr, shape.map(|e| e as u64), leading as u64, [l as u64, apart as u64]);
    let ends = copy.name != "TmaD" || (inner as u64 * view.dtype.bytes().0).is_multiple_of(16);
    spec.map(|spec| Some(spec).filter(|spec| ends && spec.is_encodable())).ok_or_else(defect)
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
