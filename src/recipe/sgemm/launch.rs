//! From the views of a launch to its grid and parameters.

use super::Variant;
use super::decide::{Decision, REDUCE_THREADS};
use super::tilings::F32;
use super::wave::Cut;
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic, Diagnostics};
use crate::plan::{Geometry, ModeStride, Operand, ParamStruct, ParamType, ParamValue, Plan, WORKSPACE};
use crate::units::Bytes;
use crate::view::{Access, ViewRef};

/// A stride that the launch gives, by the name of its parameter.
pub(super) fn stride_params(operand_param: &str, strides: &[ModeStride]) -> Vec<Option<String>> {
    let matrix: Vec<bool> = strides.iter().take(2).map(|s| *s == ModeStride::Dynamic).collect();
    let name = |mode: usize| match mode {
        2 => format!("batch_{operand_param}"),
        // The one stride of a matrix that is not 1 is its leading dimension.
        1 if matrix == [true, true] => format!("inc_{operand_param}"),
        _ => format!("ld{operand_param}"),
    };
    (0..strides.len()).map(|mode| (strides[mode] == ModeStride::Dynamic).then(|| name(mode))).collect()
}

/// The parameters of a wave, in order.
pub(super) const CUT: [(&str, &str); 4] = [
    ("whole", "tiles of D that one block computes"),
    ("cut", "tiles of D behind them that are cut along K"),
    ("parts", "blocks of each of those"),
    ("k_part", "tiles of A and B of one such block; the last has what is left"),
];

/// The parameter struct: addresses, strides, extents, alignment, workspace, scalars.
pub(super) fn params(decision: &Decision) -> ParamStruct {
    let recipe = &decision.recipe;
    let operands = super::decide::operands(decision);
    let mut fields: Vec<(String, ParamType, String)> = Vec::new();
    for o in &operands {
        let ty = if o.access == Access::Write { ParamType::MutPtr } else { ParamType::ConstPtr };
        fields.push((o.param.clone(), ty, format!("{}, {}", o.name, o.dtype)));
    }
    if decision.reduces() {
        let l = if recipe.batched { ",L" } else { "" };
        let doc = match recipe.wave {
            0 => format!("sums of the {} parts of K, (M,N,SPLIT{l})", recipe.split_k),
            _ => "sums of the parts of each tile that is cut, (BM,BN,(CUT,PARTS))".to_owned(),
        };
        fields.push((WORKSPACE.into(), ParamType::MutPtr, doc));
    }
    let modes = ["first", "second", "batch"];
    for o in &operands {
        for (name, mode) in stride_params(&o.param, &o.strides).into_iter().zip(modes) {
            let doc = format!("elements from one coordinate of the {mode} mode to the next, in {}", o.name);
            fields.extend(name.map(|name| (name, ParamType::I64, doc)));
        }
    }
    let extents = [("m", "M"), ("n", "N"), ("k", "K; 0 where nothing of A and B is asked for"), ("l", "L")];
    for (name, doc) in extents.into_iter().take(if recipe.batched { 4 } else { 3 }) {
        fields.push((name.into(), ParamType::I32, doc.into()));
    }
    if recipe.wave > 0 {
        for (name, doc) in CUT {
            fields.push((name.into(), ParamType::I32, doc.into()));
        }
    }
    if recipe.variant.has_mma() {
        for (name, what) in
            [("a", "loads of A"), ("b", "loads of B"), ("d", "vectors of D and of what is read with it")]
        {
            let doc = format!("1 where all {what} are aligned, else 0");
            let asked = decision.moves_vectors(name);
            fields.extend(asked.then(|| (format!("aligned_{name}"), ParamType::I32, doc)));
        }
    }
    for scalar in recipe.epilogue.scalars() {
        fields.push((scalar.clone(), ParamType::F32, "run-time scalar of the epilogue".into()));
    }
    ParamStruct::new(&fields)
}

/// M, N, K and L of a launch.
#[derive(Clone, Copy)]
pub(super) struct Problem {
    pub(super) m: i64,
    pub(super) n: i64,
    pub(super) k: i64,
    pub(super) l: i64,
}

impl Problem {
    /// Of A, B, .., D; `None` where they are no matrices.
    pub(super) fn of(views: &[ViewRef]) -> Option<Problem> {
        let [a, _, .., d] = views else { return None };
        let ([_, k, ..], [m, n, batches @ ..]) = (a.layout.shape(), d.layout.shape()) else { return None };
        Some(Problem { m: *m, n: *n, k: *k, l: batches.first().copied().unwrap_or(1) })
    }
}

fn problem(plan: &Plan, views: &[ViewRef]) -> Result<Problem, BindError> {
    let (Some(problem), Some(d)) = (Problem::of(views), views.last()) else {
        return Err(plan.unexpected_views(views).into());
    };
    let Problem { m, n, k, l } = problem;
    let mut found = Vec::new();
    for (o, view) in plan.operands().iter().zip(views) {
        let (rows, cols) = match o.name {
            "A" => (m, k),
            "B" => (k, n),
            _ => (m, n),
        };
        let required: Vec<i64> = [rows, cols, l].into_iter().take(o.strides.len()).collect();
        if view.layout.shape() != required {
            let text = |e: &[i64]| e.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            found.push(plan.diagnostic(
                Code::ViewShape,
                format!(
                    "{} is ({}), D is ({}), A has K = {k}",
                    o.name,
                    text(view.layout.shape()),
                    text(d.layout.shape())
                ),
                format!("{} of shape ({})", o.name, text(&required)),
                "D(m,n) is the sum over k of A(m,k) * B(k,n), with C(m,n) and auxiliary elements of the same m and n",
                "A is (M,K), B is (K,N), and the others are (M,N); what is broadcast has stride 0, not extent 1",
            ));
        }
    }
    Diagnostics::refuse(found)?;
    Ok(problem)
}

/// Whether vectors of `vec` elements at multiples of `vec` along the contiguous mode are aligned, at every coordinate of the
/// other modes.
pub(super) fn aligned(view: &ViewRef, operand: &Operand, vec: i64) -> bool {
    let bytes = view.dtype.bytes().0 * vec as u64;
    let modes = operand.strides.iter().zip(view.layout.stride()).zip(view.layout.shape());
    let mut steps = modes.filter(|((want, _), extent)| **want == ModeStride::Dynamic && **extent > 1);
    view.ptr.is_multiple_of(bytes) && steps.all(|((_, stride), _)| stride % vec == 0)
}

/// Blocks of both kernels, and what lies between them.
struct Grids {
    main: [u32; 3],
    reduce: Option<[u32; 3]>,
    /// Bytes of the sums.
    workspace: i64,
    cut: Option<Cut>,
}

/// Tiles of an extent.
fn tiles(extent: i64, tile: i64) -> Option<i64> {
    extent.checked_add(tile - 1).map(|e| e / tile)
}

/// A grid of at most so many blocks along x, y and z.
fn grid(blocks: [i64; 3]) -> Option<[u32; 3]> {
    let limits = [Arch::MAX_GRID_X, Arch::MAX_GRID_YZ, Arch::MAX_GRID_YZ];
    let mut grid = [0; 3];
    for ((grid, blocks), limit) in grid.iter_mut().zip(blocks).zip(limits) {
        *grid = u32::try_from(blocks).ok().filter(|b| u64::from(*b) <= limit)?;
    }
    Some(grid)
}

/// A block for each tile and each of the equal parts of K; then threads for the elements of D, where there are parts.
fn blocks_of_parts(decision: &Decision, [m, n, _, l]: [i64; 4]) -> Option<Grids> {
    let ([bm, bn, _], split) = (decision.tile(), decision.split());
    let main = grid([tiles(n, bn)?, tiles(m, bm)?, l.checked_mul(split)?])?;
    if split == 1 {
        return Some(Grids { main, reduce: None, workspace: 0, cut: None });
    }
    let threads = i64::from(REDUCE_THREADS);
    let sums = m.checked_mul(n).filter(|mn| *mn <= i64::from(i32::MAX) - threads)?;
    let reduce = Some(grid([tiles(sums, threads)?, 1, l])?);
    Some(Grids { main, reduce, workspace: sums.checked_mul(l)?.checked_mul(split)?.checked_mul(F32)?, cut: None })
}

/// Blocks by number, and threads for the elements of the tiles that are cut.
fn blocks_of_a_wave(decision: &Decision, [m, n, k, l]: [i64; 4]) -> Option<Grids> {
    let [bm, bn, _] = decision.tile();
    let all = tiles(n, bn)?.checked_mul(tiles(m, bm)?)?.checked_mul(l)?;
    let cut = decision.cut(all, k);
    let main = grid([cut.blocks()?, 1, 1])?;
    let reduce = match cut.cut {
        0 => None,
        cut => Some(grid([tiles(bm * bn, i64::from(REDUCE_THREADS))?, cut, 1])?),
    };
    let workspace = cut.cut.checked_mul(cut.parts)?.checked_mul(F32 * bm * bn)?;
    Some(Grids { main, reduce, workspace, cut: Some(cut) })
}

pub(super) fn geometry(
    decision: &Decision,
    plan: &Plan,
    views: &[ViewRef],
    scalars: &[f64],
) -> Result<Geometry, BindError> {
    let recipe = &decision.recipe;
    let Problem { m, n, k, l } = problem(plan, views)?;
    let k = if decision.product.reads_factors(scalars) { k } else { 0 };
    let [bm, bn, bk] = decision.tile();
    let fits = |extent: i64, tile: i64| i32::try_from(extent).ok().filter(|e| e.checked_add(2 * tile as i32).is_some());
    let stages = decision.stages() * decision.split();
    let extents: Option<Vec<i32>> =
        [(m, bm), (n, bn), (k, bk * (stages + 1)), (l, 1)].into_iter().map(|(e, t)| fits(e, t)).collect();
    let blocks = if recipe.wave > 0 { blocks_of_a_wave } else { blocks_of_parts };
    let (Some(grids), Some(extents)) = (blocks(decision, [m, n, k, l]), extents) else {
        return Err(too_large(decision, plan, [m, n, k, l]).into());
    };
    let mut values: Vec<ParamValue> = views.iter().map(|v| ParamValue::Ptr(v.ptr)).collect();
    if decision.reduces() {
        values.push(ParamValue::Ptr(0));
    }
    for (o, v) in plan.operands().iter().zip(views) {
        let dynamic = o.strides.iter().zip(v.layout.stride()).filter(|(want, _)| **want == ModeStride::Dynamic);
        values.extend(dynamic.map(|(_, stride)| ParamValue::I64(*stride)));
    }
    values.extend(extents.into_iter().take(if recipe.batched { 4 } else { 3 }).map(ParamValue::I32));
    if let Some(Cut { whole, cut, parts, k_part }) = grids.cut {
        // No more than there are blocks, or steps along K.
        values.extend([whole, cut, parts, k_part].map(|number| ParamValue::I32(number as i32)));
    }
    if recipe.variant.has_mma() {
        let asked = alignments(decision, plan, views, n).into_iter().filter(|(name, _)| decision.moves_vectors(name));
        values.extend(asked.map(|(_, aligned)| ParamValue::I32(aligned.into())));
    }
    values.extend(scalars.iter().map(|s| ParamValue::F32(*s as f32)));
    let something = m > 0 && n > 0 && l > 0;
    let main = something.then_some(grids.main);
    let reduce = decision.reduces().then(|| grids.reduce.filter(|_| something));
    let workspace = if something { Bytes(grids.workspace as u64) } else { Bytes(0) };
    Ok(Geometry { grids: core::iter::once(main).chain(reduce).collect(), values, workspace })
}

/// Of loads of A, of loads of B, of vectors of D and of what is read with it.
fn alignments(decision: &Decision, plan: &Plan, views: &[ViewRef], n: i64) -> [(&'static str, bool); 3] {
    let of = |name: &str, vec: i64| {
        let found = plan.operands().iter().zip(views).find(|(o, _)| o.name == name);
        found.is_some_and(|(o, v)| aligned(v, o, vec))
    };
    let [vec_a, vec_b, wide] = [0, 1, 2].map(|factor| decision.vector(factor));
    let along_n = |o: &Operand| o.strides.get(1) == Some(&ModeStride::Unit) && !["A", "B"].contains(&o.name);
    let mut with_d = plan.operands().iter().zip(views).filter(|(o, _)| along_n(o));
    // The sums of the parts of K lie in rows without gaps.
    let sums = decision.split() == 1 || n % wide == 0;
    let with_d = sums && with_d.all(|(o, v)| aligned(v, o, wide));
    [("a", of("A", vec_a)), ("b", of("B", vec_b)), ("d", with_d)]
}

fn too_large(decision: &Decision, plan: &Plan, [m, n, k, l]: [i64; 4]) -> Diagnostic {
    let [bm, bn, _] = decision.tile();
    let grid = Arch::MAX_GRID_YZ as i64;
    let blocks = match (decision.recipe.wave, decision.split()) {
        (1.., _) => "tiles of D below 2^31".to_owned(),
        (0, 1) => format!("M <= {}, L <= {grid}", grid * bm),
        (0, split) => format!("M <= {}, L * split_k <= {grid}, that is L <= {}, M * N < 2^31", grid * bm, grid / split),
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
