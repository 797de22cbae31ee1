//! From the views of a launch to its grid, parameters and tensor maps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::{Isa, Part};
use super::tilings::VECTOR;
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic};
use crate::dtype::DType;
use crate::plan::{Abi, Geometry, GridRule, ModeStride, Operand, ParamStruct, ParamValue, Shapes, is_zero, written};
use crate::recipe::product::Field;
use crate::tiling::{Global, MapSwizzle, Schedule, TensorMapSpec, Tiling};
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

/// What TMA is told of a matrix besides its address, extents and strides.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    dtype: DType,
    /// The mode that is contiguous, of rows and columns.
    contiguous: usize,
    /// Of the box, the contiguous mode first.
    extents: [u64; 2],
    swizzle: MapSwizzle,
    batched: bool,
}

impl Map {
    /// Of the copy of that name.
    fn of(tiling: &Tiling, name: &str) -> Option<Self> {
        let copy = tiling.copy(name)?;
        let (Global { contiguous, batched, .. }, tensor) = copy.in_global_and_shared()?;
        let spec = copy.tensor_map(tiling.smem(tensor)?, 0, [1; 2], 1, [1; 2])?;
        let [inner, outer, ..] = spec.extents.map(u64::from);
        Some(Self { dtype: spec.dtype, contiguous, extents: [inner, outer], swizzle: spec.swizzle, batched })
    }
}

/// What a launch is computed by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    isa: Isa,
    /// Whether the text has B as its A, and all transposed.
    turned: bool,
    batched: bool,
    k_major: [bool; 2],
    tile: [i64; 3],
    stages: i64,
    /// CTAs along M and N.
    cluster: [u32; 2],
    /// CTAs that are launched, at most, where each computes several tiles.
    resident: Option<u32>,
    /// The scalar that spares reading A and B where it is 0.
    alpha: Option<usize>,
    /// Of A, B and D.
    maps: [Option<Map>; 3],
}

impl Rule {
    pub(super) fn of(part: &Part) -> Self {
        let [along_m, along_n, _] = part.tiling.cluster;
        Self {
            isa: part.isa,
            turned: part.recipe.is_turned(),
            batched: part.recipe.batched,
            k_major: part.recipe.k_major(),
            tile: part.tiling.tile,
            stages: part.tiling.stages(),
            cluster: [along_m, along_n],
            resident: match part.tiling.schedule {
                Schedule::OneTileACta => None,
                Schedule::Persistent { .. } => Some(part.recipe.ctas),
            },
            alpha: part.product.alpha(),
            maps: ["TmaA", "TmaB", "TmaD"].map(|name| Map::of(&part.tiling, name)),
        }
    }

    /// The operands as the text has them.
    fn operands(&self, arguments: &[Operand]) -> Vec<Operand> {
        if self.turned { turned(arguments.to_vec()) } else { arguments.to_vec() }
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

/// The parameter struct of a text, with so many run-time scalars.
pub(super) fn params(part: &Part, scalars: usize) -> ParamStruct {
    let given = Given { scalars: &vec![0.0; scalars], ..Given::default() };
    Field::structure(fields(&Rule::of(part), &part.operands(), part.recipe.epilogue.scalars(), &given))
}

/// Tensor maps, addresses, strides, extents, scalars.
fn fields(rule: &Rule, operands: &[Operand], scalars: &[String], given: &Given) -> Vec<Field> {
    let with_views = || operands.iter().enumerate().map(|(index, operand)| (operand, given.views.get(index)));
    let mut fields = Vec::new();
    if rule.isa == Isa::Sm90a {
        let names = ["map_a", "map_b", "map_d"].into_iter().zip(["A", "B", "D"]).zip(given.maps);
        let doc = |of| format!("{of}, where its rows begin at multiples of 16 bytes");
        fields.extend(names.map(|((name, of), map)| Field::new(name, doc(of), ParamValue::TensorMap(map))));
    }
    fields.extend(with_views().map(|(operand, view)| Field::address(operand, view)));
    if rule.isa == Isa::Sm90a && rule.batched {
        let each = |view: Option<&ViewRef>| view.is_some_and(|view| batches(view, given.extents[3]) > 1).into();
        for (name, doc, view) in [("each_a", "A", given.views.first()), ("each_b", "B", given.views.get(1))] {
            fields.push(Field::number(name, &format!("1 where each batch has its own {doc}, else 0"), each(view)));
        }
    }
    fields.extend(with_views().flat_map(|(operand, view)| Field::strides(operand, view)));
    fields.extend(Field::extents(given.extents, rule.batched));
    fields.extend(Field::scalars(scalars, given.scalars));
    fields
}

/// How many matrices a factor has: one that serves all batches is one.
fn batches(view: &ViewRef, l: i64) -> i64 {
    if view.layout.stride().get(2).is_some_and(|stride| *stride != 0) { l } else { 1 }
}

/// The views as a text has them: of a turned product B, A, and all transposed.
pub(super) fn oriented(is_turned: bool, views: &[ViewRef]) -> Vec<ViewRef> {
    let mut views = views.to_vec();
    if is_turned {
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

fn geometry(rule: &Rule, abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
    let views = oriented(rule.turned, views);
    let shapes: Vec<&[i64]> = views.iter().map(|view| view.layout.shape()).collect();
    let problem = (Shapes::Product { batched: rule.batched }).problem_of(&shapes);
    let (Some(problem), [a, b, .., d]) = (problem, &views[..]) else {
        return Err(abi.unexpected_views(&views).into());
    };
    let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).copied().unwrap_or(1));
    let k = if is_zero(scalars, rule.alpha) { 0 } else { k };
    let [bm, bn, bk] = rule.tile;
    let margin = bk * (rule.stages + 1);
    let small = [(m, bm), (n, bn), (k, margin), (l, 1)].iter().all(|(e, tile)| *e <= i64::from(i32::MAX) - 2 * tile);
    let Some(blocks) = small.then(|| blocks(rule, [m, n, l])).flatten() else {
        return Err(too_large(abi, [m, n, k, l]).into());
    };
    let something = m > 0 && n > 0 && l > 0;
    let maps = match rule.isa {
        Isa::Sm90a if something && k > 0 => {
            let defect = || Defect::new("a copy of the tiling has no tensor map", abi.recipe());
            let [of_a, of_b, of_d] = &rule.maps;
            let asked = [(of_a, "A", a, [m, k]), (of_b, "B", b, [n, k]), (of_d, "D", d, [m, n])];
            let [a, b, d] = asked.map(|(map, name, view, shape)| {
                map.as_ref().ok_or_else(defect).map(|map| tensor_map(map, name, view, shape, l))
            });
            [a?, b?, d?]
        }
        _ => [None; 3],
    };
    let entry = match (rule.isa, maps) {
        (Isa::Sm80, _) => usize::from(k > 0 && !vectors_are_whole(rule, abi, [a, b], [m, n, k])),
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
        grids: (0..abi.entries().len()).map(grid).collect(),
        values: fields(rule, &rule.operands(abi.operands()), abi.scalars(), &given)
            .into_iter()
            .map(|field| field.value)
            .collect(),
        workspace: Bytes(0),
    })
}

/// Whether all copies of A and B by 16 bytes are aligned, and none lies across an edge.
fn vectors_are_whole(rule: &Rule, abi: &Abi, views: [&ViewRef; 2], [m, n, k]: [i64; 3]) -> bool {
    let each = rule.operands(abi.operands()).into_iter().zip(views).zip(rule.k_major).zip([m, n]);
    let whole = |(((operand, view), k_major), rows): (((Operand, &ViewRef), bool), i64)| {
        operand.aligned(view, VECTOR) && (if k_major { k } else { rows }) % VECTOR == 0
    };
    each.into_iter().all(whole)
}

/// CTAs that are launched: one for each tile, or as many as are resident at a time, in clusters, and no more than make each
/// compute as often as the others. `None` where there are more tiles than can be numbered.
fn blocks(rule: &Rule, [m, n, l]: [i64; 3]) -> Option<u32> {
    let [bm, bn, _] = rule.tile;
    let [along_m, along_n] = rule.cluster;
    let tiles = |extent: i64, tile: i64, along: u32| (extent as u64).div_ceil(tile as u64 * u64::from(along));
    let clusters = tiles(m, bm, along_m).checked_mul(tiles(n, bn, along_n))?.checked_mul(l as u64)?;
    let size = u64::from(along_m) * u64::from(along_n);
    let launched = match rule.resident {
        None => clusters,
        Some(ctas) => {
            let resident = (u64::from(ctas) / size).max(1);
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
fn tensor_map(map: &Map, name: &str, view: &ViewRef, shape: [i64; 2], l: i64) -> Option<TensorMapSpec> {
    let operand = if name == "B" { [1, 0] } else { [0, 1] };
    let stride = operand.map(|mode| view.layout.stride().get(mode).copied().unwrap_or(0));
    let (inner, outer) = (shape[map.contiguous], shape[1 - map.contiguous]);
    // A row with nothing after it has no leading dimension, and a matrix with none after it no distance.
    let whole = (inner + VECTOR - 1) / VECTOR * VECTOR;
    let leading = if outer > 1 { stride[1 - map.contiguous] } else { whole };
    let l = if name == "D" { l } else { batches(view, l) };
    let apart = if l > 1 { view.layout.stride().get(2).copied().unwrap_or(0) } else { leading };
    if leading < inner || apart < 1 {
        return None;
    }
    let size = map.dtype.bytes().0;
    let bytes = |elements: i64| elements as u64 * size;
    let dims = [inner as u64, outer as u64];
    let matrix = TensorMapSpec::matrix(view.ptr, map.dtype, dims, bytes(leading), map.extents, map.swizzle);
    let spec = if map.batched { matrix.batched(l as u64, bytes(apart)) } else { matrix };
    let ends = name != "D" || (inner as u64 * view.dtype.bytes().0).is_multiple_of(16);
    Some(spec).filter(|spec| ends && spec.is_encodable())
}

fn too_large(abi: &Abi, [m, n, k, l]: [i64; 4]) -> Diagnostic {
    abi.diagnostic(
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
