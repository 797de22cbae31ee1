//! From the views of a launch to its grid, parameters and tensor maps.

use super::decide::{Isa, Part};
use super::tilings::{ALIGN, VECTOR};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic, Diagnostics};
use crate::plan::{Geometry, ParamStruct, ParamType, ParamValue, Plan};
use crate::tiling::{Schedule, TensorMapSpec};
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

pub(super) fn geometry(part: &Part, plan: &Plan, views: &[ViewRef]) -> Result<Geometry, BindError> {
    let [a, b, d] = views else { return Err(plan.unexpected_views(views).into()) };
    let (m, n, k) = (a.layout.shape()[0], b.layout.shape()[1], a.layout.shape()[1]);
    let mut found = Vec::new();
    shapes(plan, views, [m, n, k], &mut found);
    if let Some(refused) = Diagnostics::new(core::mem::take(&mut found)) {
        return Err(refused.into());
    }
    let factors = [("A", a, m, a.layout.stride()[0]), ("B", b, n, b.layout.stride()[1])];
    let empty = m == 0 || n == 0 || k == 0;
    if !empty {
        rows_are_aligned(plan, k, &factors, &mut found);
    }
    // A row with nothing after it has no leading dimension.
    let [a_rows, b_rows] =
        factors.map(|(_, _, rows, ld)| Factor { rows, leading: if rows > 1 { ld } else { k.max(VECTOR) } });
    let [bm, bn, bk] = part.tiling.tile;
    let blocks = blocks(part, [m, n]);
    let margin = bk * (part.tiling.stages() + 1);
    let fits = [(m, bm), (n, bn), (k, margin)].iter().all(|(e, tile)| *e <= i64::from(i32::MAX) - 2 * tile);
    let Some(blocks) = blocks.filter(|_| fits) else {
        let refused = plan.diagnostic(
            Code::ProblemTooLarge,
            format!("M = {m}, N = {n}, K = {k}"),
            "extents below 2^31 less some tiles, and fewer than 2^31 tiles of D".into(),
            "coordinates are 32-bit integers, and so is the number of a CTA; offsets are 64-bit",
            "launch on parts of the matrices",
        );
        found.push(refused);
        return Err(Diagnostics::new(found).map_or_else(|| plan.unexpected_views(views).into(), BindError::from));
    };
    Diagnostics::refuse(found)?;
    let map = |name: &str, address: u64, factor: &Factor| match tensor_map(part, name, address, factor, k) {
        _ if empty => Ok(ParamValue::TensorMap(None)),
        Some(spec) => Ok(ParamValue::TensorMap(Some(spec))),
        None => Err(Defect::new(format!("the tiling's copy {name} has no tensor map"), plan.recipe())),
    };
    let leading_d = if m > 1 { d.layout.stride()[0] } else { n };
    // TMA stores whole chunks of 16 bytes, past the end of a row too (seen on an H200), so that rows are multiples of them.
    let whole = (n as u64 * d.dtype.bytes().0).is_multiple_of(ALIGN.0);
    let map_d = tensor_map(part, "TmaD", d.ptr, &Factor { rows: m, leading: leading_d }, n)
        .filter(|spec| k > 0 && whole && spec.is_encodable());
    let by_tma = map_d.is_some();
    let mut values = match part.isa {
        Isa::Sm80 => vec![ParamValue::Ptr(a.ptr), ParamValue::Ptr(b.ptr)],
        Isa::Sm90a => vec![map("TmaA", a.ptr, &a_rows)?, map("TmaB", b.ptr, &b_rows)?, ParamValue::TensorMap(map_d)],
    };
    values.push(ParamValue::Ptr(d.ptr));
    if part.isa == Isa::Sm80 {
        values.extend([a_rows.leading, b_rows.leading].map(ParamValue::I64));
    }
    values.push(ParamValue::I64(d.layout.stride()[0]));
    values.extend([m, n, k].map(|extent| ParamValue::I32(extent as i32)));
    let grid = (m > 0 && n > 0).then_some([blocks, 1, 1]);
    // One of the entries of sm_90a stores D.
    let grids = match (part.isa, by_tma) {
        (Isa::Sm80, _) => vec![grid],
        (Isa::Sm90a, true) => vec![grid, None],
        (Isa::Sm90a, false) => vec![None, grid],
    };
    Ok(Geometry { grids, values, workspace: crate::units::Bytes(0) })
}

/// CTAs that are launched: one for each tile, or as many as are resident at a time, in clusters, and no more than make each
/// compute as often as the others. `None` where there are more tiles than can be numbered.
fn blocks(part: &Part, [m, n]: [i64; 2]) -> Option<u32> {
    let [bm, bn, _] = part.tiling.tile;
    let [along_m, along_n, _] = part.tiling.cluster;
    let tiles = |extent: i64, tile: i64, along: u32| (extent as u64).div_ceil(tile as u64 * u64::from(along));
    let clusters = tiles(m, bm, along_m).checked_mul(tiles(n, bn, along_n))?;
    let size = u64::from(part.tiling.cluster_size());
    let launched = match part.tiling.schedule {
        Schedule::OneTileACta => clusters,
        Schedule::Persistent { .. } => {
            let resident = (u64::from(part.recipe.ctas) / size).max(1);
            clusters.div_ceil(clusters.div_ceil(resident).max(1))
        }
    };
    let fits = clusters.checked_mul(size).is_some_and(|blocks| blocks <= Arch::MAX_GRID_X);
    fits.then_some((launched * size) as u32)
}

/// What the copy of that name is told of a matrix.
fn tensor_map(part: &Part, name: &str, address: u64, factor: &Factor, columns: i64) -> Option<TensorMapSpec> {
    let copy = part.tiling.copy(name)?;
    let (_, tensor) = copy.in_global_and_shared()?;
    let tensor = part.tiling.smem(tensor)?;
    copy.tensor_map(tensor, address, [factor.rows as u64, columns as u64], factor.leading as u64)
}

fn shapes(plan: &Plan, views: &[ViewRef], [m, n, k]: [i64; 3], found: &mut Vec<Diagnostic>) {
    for (o, view) in plan.operands().iter().zip(views) {
        let required = match o.name {
            "A" => [m, k],
            "B" => [k, n],
            _ => [m, n],
        };
        if view.layout.shape() != required {
            let [rows, columns] = required;
            found.push(plan.diagnostic(
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
fn rows_are_aligned(plan: &Plan, k: i64, factors: &[(&str, &ViewRef, i64, i64); 2], found: &mut Vec<Diagnostic>) {
    let mut refuse = |what: String, required: String, help: &str| {
        let because = "A and B are copied by 16 bytes, 8 elements at a time: each row of A and each column of B begins and ends at a \
                       multiple of that";
        found.push(plan.diagnostic(Code::ViewVector, what, required, because, help));
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
