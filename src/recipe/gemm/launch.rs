//! From the views of a launch to its grid, parameters and tensor maps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::{Isa, Part};
use super::tilings::{ALIGN, VECTOR};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic, Diagnostics};
use crate::dtype::DType;
use crate::plan::{Abi, Geometry, GridRule, ParamStruct, ParamType, ParamValue, written};
use crate::tiling::{MapSwizzle, Schedule, TensorMapSpec, Tiling};
use crate::view::ViewRef;

/// The fields that hold A, B and D.
pub(super) fn pointers(isa: Isa) -> [&'static str; 3] {
    match isa {
        Isa::Sm80 => ["a", "b", "d"],
        Isa::Sm90a => ["map_a", "map_b", "d"],
    }
}

/// The parameter struct of a text.
pub(super) fn params(isa: Isa) -> ParamStruct {
    let [a, b, d] = pointers(isa);
    let mut fields = match isa {
        Isa::Sm80 => vec![(a, ParamType::ConstPtr, "A"), (b, ParamType::ConstPtr, "B")],
        Isa::Sm90a => {
            let map_d =
                ("map_d", ParamType::TensorMap, "D, (M,N), N-major, where it has rows at multiples of 16 bytes");
            vec![(a, ParamType::TensorMap, "A, (M,K), K-major"), (b, ParamType::TensorMap, "B, (N,K), K-major"), map_d]
        }
    };
    fields.push((d, ParamType::MutPtr, "D"));
    if isa == Isa::Sm80 {
        fields.push(("lda", ParamType::I64, "elements from one row of A to the next"));
        fields.push(("ldb", ParamType::I64, "elements from one column of B, (K,N), to the next"));
    }
    fields.push(("ldd", ParamType::I64, "elements from one row of D to the next"));
    fields.extend([("m", "M"), ("n", "N"), ("k", "K")].map(|(name, doc)| (name, ParamType::I32, doc)));
    ParamStruct::new(&fields)
}

/// A factor as (rows, K), K-major: extents, and elements from one row to the next.
struct Factor {
    rows: i64,
    leading: i64,
}

/// What TMA is told of a matrix besides its address, extents and leading dimension.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    dtype: DType,
    /// Of the box, rows and columns.
    extents: [u64; 2],
    swizzle: MapSwizzle,
}

impl Map {
    /// Of the copy of that name.
    fn of(tiling: &Tiling, name: &str) -> Option<Self> {
        let copy = tiling.copy(name)?;
        let (_, tensor) = copy.in_global_and_shared()?;
        let spec = copy.tensor_map(tiling.smem(tensor)?, 0, [1; 2], 1)?;
        let [columns, rows, ..] = spec.extents.map(u64::from);
        Some(Self { dtype: spec.dtype, extents: [rows, columns], swizzle: spec.swizzle })
    }

    fn spec(&self, address: u64, factor: &Factor, columns: i64) -> TensorMapSpec {
        let ([rows, width], bytes) = (self.extents, factor.leading as u64 * self.dtype.bytes().0);
        let extents = [columns as u64, factor.rows as u64];
        TensorMapSpec::matrix(address, self.dtype, extents, bytes, [width, rows], self.swizzle)
    }
}

/// What a launch is computed by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    isa: Isa,
    tile: [i64; 3],
    stages: i64,
    /// CTAs along M and N.
    cluster: [u32; 2],
    /// CTAs that are launched, at most, where each computes several tiles.
    resident: Option<u32>,
    /// Of A, B and D.
    maps: [Option<Map>; 3],
}

impl Rule {
    pub(super) fn of(part: &Part) -> Self {
        let [along_m, along_n, _] = part.tiling.cluster;
        Self {
            isa: part.isa,
            tile: part.tiling.tile,
            stages: part.tiling.stages(),
            cluster: [along_m, along_n],
            resident: match part.tiling.schedule {
                Schedule::OneTileACta => None,
                Schedule::Persistent { .. } => Some(part.recipe.ctas),
            },
            maps: ["TmaA", "TmaB", "TmaD"].map(|name| Map::of(&part.tiling, name)),
        }
    }
}

impl GridRule for Rule {
    fn numbers(&self) -> Value {
        written(self)
    }

    fn geometry(&self, abi: &Abi, views: &[ViewRef], _: &[f64]) -> Result<Geometry, BindError> {
        geometry(self, abi, views)
    }
}

fn geometry(rule: &Rule, abi: &Abi, views: &[ViewRef]) -> Result<Geometry, BindError> {
    let [a, b, d] = views else { return Err(abi.unexpected_views(views).into()) };
    let (m, n, k) = (a.layout.shape()[0], b.layout.shape()[1], a.layout.shape()[1]);
    let mut found = Vec::new();
    shapes(abi, views, [m, n, k], &mut found);
    if let Some(refused) = Diagnostics::new(core::mem::take(&mut found)) {
        return Err(refused.into());
    }
    let factors = [("A", a, m, a.layout.stride()[0]), ("B", b, n, b.layout.stride()[1])];
    let empty = m == 0 || n == 0 || k == 0;
    if !empty {
        rows_are_aligned(abi, k, &factors, &mut found);
    }
    // A row with nothing after it has no leading dimension.
    let [a_rows, b_rows] =
        factors.map(|(_, _, rows, ld)| Factor { rows, leading: if rows > 1 { ld } else { k.max(VECTOR) } });
    let [bm, bn, bk] = rule.tile;
    let blocks = blocks(rule, [m, n]);
    let margin = bk * (rule.stages + 1);
    let fits = [(m, bm), (n, bn), (k, margin)].iter().all(|(e, tile)| *e <= i64::from(i32::MAX) - 2 * tile);
    let Some(blocks) = blocks.filter(|_| fits) else {
        let refused = abi.diagnostic(
            Code::ProblemTooLarge,
            format!("M = {m}, N = {n}, K = {k}"),
            "extents below 2^31 less some tiles, and fewer than 2^31 tiles of D".into(),
            "coordinates are 32-bit integers, and so is the number of a CTA; offsets are 64-bit",
            "launch on parts of the matrices",
        );
        found.push(refused);
        return Err(Diagnostics::new(found).map_or_else(|| abi.unexpected_views(views).into(), BindError::from));
    };
    Diagnostics::refuse(found)?;
    let [of_a, of_b, of_d] = &rule.maps;
    let map = |map: &Option<Map>, address: u64, factor: &Factor| match map {
        _ if empty => Ok(ParamValue::TensorMap(None)),
        Some(map) => Ok(ParamValue::TensorMap(Some(map.spec(address, factor, k)))),
        None => Err(Defect::new("the tiling has no tensor map of a factor", abi.recipe())),
    };
    let leading_d = if m > 1 { d.layout.stride()[0] } else { n };
    // TMA stores whole chunks of 16 bytes, past the end of a row too (seen on an H200), so that rows are multiples of them.
    let whole = (n as u64 * d.dtype.bytes().0).is_multiple_of(ALIGN.0);
    let map_d = of_d.as_ref().map(|map| map.spec(d.ptr, &Factor { rows: m, leading: leading_d }, n));
    let map_d = map_d.filter(|spec| k > 0 && whole && spec.is_encodable());
    let by_tma = map_d.is_some();
    let mut values = match rule.isa {
        Isa::Sm80 => vec![ParamValue::Ptr(a.ptr), ParamValue::Ptr(b.ptr)],
        Isa::Sm90a => vec![map(of_a, a.ptr, &a_rows)?, map(of_b, b.ptr, &b_rows)?, ParamValue::TensorMap(map_d)],
    };
    values.push(ParamValue::Ptr(d.ptr));
    if rule.isa == Isa::Sm80 {
        values.extend([a_rows.leading, b_rows.leading].map(ParamValue::I64));
    }
    values.push(ParamValue::I64(d.layout.stride()[0]));
    values.extend([m, n, k].map(|extent| ParamValue::I32(extent as i32)));
    let grid = (m > 0 && n > 0).then_some([blocks, 1, 1]);
    // One of the entries of sm_90a stores D.
    let grids = match (rule.isa, by_tma) {
        (Isa::Sm80, _) => vec![grid],
        (Isa::Sm90a, true) => vec![grid, None],
        (Isa::Sm90a, false) => vec![None, grid],
    };
    Ok(Geometry { grids, values, workspace: crate::units::Bytes(0) })
}

/// CTAs that are launched: one for each tile, or as many as are resident at a time, in clusters, and no more than make each
/// compute as often as the others. `None` where there are more tiles than can be numbered.
fn blocks(rule: &Rule, [m, n]: [i64; 2]) -> Option<u32> {
    let [bm, bn, _] = rule.tile;
    let [along_m, along_n] = rule.cluster;
    let tiles = |extent: i64, tile: i64, along: u32| (extent as u64).div_ceil(tile as u64 * u64::from(along));
    let clusters = tiles(m, bm, along_m).checked_mul(tiles(n, bn, along_n))?;
    let size = u64::from(along_m) * u64::from(along_n);
    let launched = match rule.resident {
        None => clusters,
        Some(ctas) => {
            let resident = (u64::from(ctas) / size).max(1);
            clusters.div_ceil(clusters.div_ceil(resident).max(1))
        }
    };
    let fits = clusters.checked_mul(size).is_some_and(|blocks| blocks <= Arch::MAX_GRID_X);
    fits.then_some((launched * size) as u32)
}

fn shapes(abi: &Abi, views: &[ViewRef], [m, n, k]: [i64; 3], found: &mut Vec<Diagnostic>) {
    for (o, view) in abi.operands().iter().zip(views) {
        let required = match o.name {
            "A" => [m, k],
            "B" => [k, n],
            _ => [m, n],
        };
        if view.layout.shape() != required {
            let [rows, columns] = required;
            found.push(abi.diagnostic(
                Code::ViewShape,
                format!("{} is {}, where A has M = {m} and K = {k}, and B has N = {n}", o.name, view.layout),
                format!("{} of shape ({rows},{columns})", o.name),
                "D(m,n) is the sum over k of A(m,k) * B(k,n)",
                "A is (M,K), B is (K,N), and D is (M,N)",
            ));
        }
    }
}

/// Rows of A and columns of B are copied by 16 bytes.
fn rows_are_aligned(abi: &Abi, k: i64, factors: &[(&str, &ViewRef, i64, i64); 2], found: &mut Vec<Diagnostic>) {
    let mut refuse = |what: String, required: String, help: &str| {
        let because = "A and B are copied by 16 bytes, 8 elements at a time: each row of A and each column of B begins and ends at a \
                       multiple of that";
        found.push(abi.diagnostic(Code::ViewVector, what, required, because, help));
    };
    if k % VECTOR != 0 {
        let help = format!(
            "K = {} with zeros behind the elements of A and of B, or a family that `cutemplate list` says takes any extents",
            (k / VECTOR + 1) * VECTOR
        );
        refuse(format!("K = {k}"), format!("a multiple of {VECTOR}"), &help);
    }
    let bytes = ALIGN.0;
    for (name, view, rows, leading) in factors {
        if !view.ptr.is_multiple_of(bytes) {
            let what = format!("{name} at {:#x}, {} B past a multiple of {bytes} B", view.ptr, view.ptr % bytes);
            refuse(
                what,
                format!("an address that is a multiple of {bytes} B"),
                "copy it to the begin of an allocation",
            );
        }
        if *rows > 1 && (leading % VECTOR != 0 || *leading < k) {
            let what = format!("{name} = {} has a leading dimension of {leading}", view.layout);
            let required = format!("a multiple of {VECTOR} that is at least K = {k}");
            refuse(what, required, "allocate rows with room behind them, or copy what is broadcast");
        }
    }
}
