//! From the views of a launch to the kernel's problem `(M,N)`: modes are merged where all tensors allow it, and alignment is
//! looked at.

use super::decide::{Body, Class, Decision};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::expr::Compute;
use crate::plan::{Geometry, ParamStruct, ParamType, ParamValue, Plan};
use crate::view::ViewRef;

/// The parameter struct: addresses, strides, extents, alignment, `scalars`.
pub(super) fn params(decision: &Decision, scalars: &[String]) -> ParamStruct {
    let mut fields: Vec<(String, ParamType, String)> = Vec::new();
    for t in &decision.tensors {
        let ty = if t.output { ParamType::MutPtr } else { ParamType::ConstPtr };
        fields.push((t.param(), ty, format!("{}, {}", t.name, t.dtype)));
    }
    let several = decision.m_rank() > 1;
    let number = |i: usize| if several { i.to_string() } else { String::new() };
    for t in &decision.tensors {
        for i in 0..decision.m_rank() {
            let doc = format!("elements from one coordinate of M{} to the next, in {}", number(i), t.name);
            fields.push((format!("ld{}{}", t.param(), number(i)), ParamType::I64, doc));
        }
        if matches!(t.class, Class::Strided | Class::Transposed) {
            let doc = format!("elements from one coordinate of N to the next, in {}", t.name);
            fields.push((format!("inc{}", t.param()), ParamType::I64, doc));
        }
    }
    for i in 0..decision.m_rank() {
        fields.push((format!("m{}", number(i)), ParamType::I32, format!("extent of M{}", number(i))));
    }
    fields.push(("n".into(), ParamType::I32, "extent of N".into()));
    if matches!(decision.body, Body::Vectorized) {
        fields.push(("vectors".into(), ParamType::I32, "vectors that a coordinate of M has at most".into()));
        fields.push(("whole".into(), ParamType::I32, "1 where rows are whole vectors from n = 0 on; else 0".into()));
    }
    if !matches!(decision.body, Body::Naive) {
        let doc = match decision.body {
            Body::Vectorized => "1 where all tensors reach a multiple of the vector at the same n, for each m; else 0",
            _ => "1 where all tensors are at a multiple of the vector at n = 0, for each m; else 0",
        };
        fields.push(("aligned".into(), ParamType::I32, doc.into()));
    }
    if matches!(decision.body, Body::Transposed(_)) {
        let doc = "1 where all inputs that are turned are at a multiple of the vector at m = 0, for each n; else 0";
        fields.push(("aligned_in".into(), ParamType::I32, doc.into()));
    }
    for scalar in scalars {
        let ty = match decision.checked.compute() {
            Compute::F32 => ParamType::F32,
            Compute::F64 => ParamType::F64,
            Compute::I32 => ParamType::I32,
        };
        fields.push((scalar.clone(), ty, "run-time scalar of the function".into()));
    }
    ParamStruct::new(&fields)
}

/// A mode of the problem: its extent, and the stride of each tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) extent: i64,
    pub(super) strides: Vec<i64>,
}

impl Mode {
    fn of(views: &[ViewRef], mode: usize) -> Self {
        let extent = views.first().map_or(1, |v| v.layout.shape()[mode]);
        // The stride of a mode of one coordinate is never used; 0 merges with anything.
        let stride = |v: &ViewRef| if extent == 1 { 0 } else { v.layout.stride()[mode] };
        Self { extent, strides: views.iter().map(stride).collect() }
    }

    /// Both as one mode, where `outer` goes on in every tensor where `self` ends and the extent stays below `limit`.
    fn merged(&self, outer: &Mode, limit: i64) -> Option<Mode> {
        let extent = self.extent.checked_mul(outer.extent).filter(|e| *e <= limit)?;
        let goes_on = |(inner, outer): (&i64, &i64)| inner.checked_mul(self.extent) == Some(*outer);
        self.strides.iter().zip(&outer.strides).all(goes_on).then(|| Mode { extent, strides: self.strides.clone() })
    }
}

/// The problem of a launch: N, and as many modes of M as the kernel has.
pub(super) struct Problem {
    pub(super) n: Mode,
    pub(super) m: Vec<Mode>,
}

impl Problem {
    pub(super) fn new(decision: &Decision, views: &[ViewRef]) -> Self {
        let mut n = Mode::of(views, decision.n_mode);
        // A view whose only coordinate along N has another stride is contiguous there all the same.
        for (stride, t) in n.strides.iter_mut().zip(&decision.tensors) {
            match t.class {
                Class::Contiguous => *stride = 1,
                Class::Broadcast => *stride = 0,
                Class::Strided | Class::Transposed => {}
            }
        }
        let mut m: Vec<Mode> = decision.m_modes.iter().map(|mode| Mode::of(views, *mode)).collect();
        m.retain(|mode| mode.extent != 1);
        // Strides of M are known at launch only, so its modes may stand in any order: that of the first output's strides.
        let first_output = decision.inputs().count();
        m.sort_by_key(|mode| mode.strides[first_output]);
        let limit = longest(decision);
        if matches!(decision.body, Body::Naive | Body::Vectorized) {
            while let Some(merged) = m.first().and_then(|inner| n.merged(inner, limit)) {
                n = merged;
                m.remove(0);
            }
        }
        let mut i = 0;
        while i + 1 < m.len() {
            match m[i].merged(&m[i + 1], limit) {
                Some(merged) => {
                    m[i] = merged;
                    m.remove(i + 1);
                }
                None => i += 1,
            }
        }
        m.resize(decision.m_rank(), Mode { extent: 1, strides: vec![0; views.len()] });
        Self { n, m }
    }

    /// Whether all contiguous tensors reach a multiple of the vector at the same n for each coordinate of M, and whether
    /// that is n = 0 everywhere.
    pub(super) fn alignment(&self, decision: &Decision, views: &[ViewRef]) -> (bool, bool) {
        let vec = decision.vec;
        let contiguous = || (0..views.len()).filter(|i| decision.tensors[*i].class == Class::Contiguous);
        // A remainder below the vector, which is at most 16.
        let phase = |i: usize| (views[i].ptr / views[i].dtype.bytes().0 % vec as u64) as i64;
        let steps = |i: usize| self.m.iter().map(move |mode| mode.strides[i] % vec);
        let Some(last) = contiguous().next_back() else { return (true, true) };
        let together = contiguous().all(|i| phase(i) == phase(last) && steps(i).eq(steps(last)));
        (together, together && phase(last) == 0 && steps(last).all(|s| s == 0))
    }
}

pub(super) fn geometry(
    decision: &Decision,
    plan: &Plan,
    views: &[ViewRef],
    scalars: &[f64],
) -> Result<Geometry, BindError> {
    let problem = Problem::new(decision, views);
    let (together, at_zero) = problem.alignment(decision, views);
    let vec = decision.vec;
    let (n, rows) = (problem.n.extent, problem.m.iter().try_fold(1_i64, |r, m| r.checked_mul(m.extent)));
    let vectors = if together && !at_zero { (n - 1) / vec + 2 } else { (n - 1) / vec + 1 };
    let aligned = if matches!(decision.body, Body::Vectorized) { together } else { at_zero };
    let blocks = rows.and_then(|rows| blocks(decision, &problem, rows, vectors));
    let fits = |extent: i64| i32::try_from(extent).ok().filter(|_| extent <= longest(decision));
    let extents: Option<Vec<i32>> = problem.m.iter().chain([&problem.n]).map(|mode| fits(mode.extent)).collect();
    let grid = blocks.and_then(|b| u32::try_from(b).ok()).filter(|b| u64::from(*b) <= Arch::MAX_GRID_X);
    let (Some(extents), Some(grid)) = (extents, grid) else { return Err(too_large(decision, plan, views).into()) };
    let mut values: Vec<ParamValue> = views.iter().map(|v| ParamValue::Ptr(v.ptr)).collect();
    for (i, t) in decision.tensors.iter().enumerate() {
        values.extend(problem.m.iter().map(|mode| ParamValue::I64(mode.strides[i])));
        if matches!(t.class, Class::Strided | Class::Transposed) {
            values.push(ParamValue::I64(problem.n.strides[i]));
        }
    }
    values.extend(extents.into_iter().map(ParamValue::I32));
    if matches!(decision.body, Body::Vectorized) {
        values.push(ParamValue::I32(vectors as i32));
        values.push(ParamValue::I32((at_zero && n % vec == 0).into()));
    }
    if !matches!(decision.body, Body::Naive) {
        values.push(ParamValue::I32(aligned.into()));
    }
    if matches!(decision.body, Body::Transposed(_)) {
        values.push(ParamValue::I32(turned_aligned(decision, &problem, views).into()));
    }
    values.extend(scalars.iter().map(|value| match decision.checked.compute() {
        Compute::F32 => ParamValue::F32(*value as f32),
        Compute::F64 => ParamValue::F64(*value),
        Compute::I32 => ParamValue::I32(*value as i32),
    }));
    Ok(Geometry::new([grid, 1, 1], values))
}

/// The largest extent whose coordinates are 32-bit integers, those of the last vector or tile past the end too.
fn longest(decision: &Decision) -> i64 {
    let past_the_end = match &decision.body {
        Body::Naive => 1,
        // Rows that begin between two multiples of the vector have one more.
        Body::Vectorized => 2 * decision.vec,
        Body::Tv { tile, .. } => tile.tile[0].max(tile.tile[1]),
        Body::Transposed(turn) => turn.tile[0].max(turn.tile[1]),
    };
    i64::from(i32::MAX) - past_the_end
}

/// Transposed inputs are aligned along M.
pub(super) fn turned_aligned(decision: &Decision, problem: &Problem, views: &[ViewRef]) -> bool {
    let turned = decision.tensors.iter().enumerate().filter(|(_, t)| t.class == Class::Transposed);
    turned.into_iter().all(|(i, t)| {
        let vector = t.dtype.bytes().0 * decision.vec as u64;
        views[i].ptr.is_multiple_of(vector) && problem.n.strides[i] % decision.vec == 0
    })
}

/// Blocks along x; `None` where the kernel's 32-bit numbers do not reach.
fn blocks(decision: &Decision, problem: &Problem, rows: i64, vectors: i64) -> Option<i64> {
    let threads = i64::from(decision.threads);
    let counted = |items: i64, per_block: i64| {
        let blocks = (items - 1) / per_block + 1;
        // The last block counts past the end.
        blocks.checked_mul(per_block).filter(|end| *end <= i64::from(i32::MAX)).map(|_| blocks)
    };
    let tiles = |m: i64, n: i64| {
        let per_m = (problem.m[0].extent - 1) / m + 1;
        per_m.checked_mul((problem.n.extent - 1) / n + 1)
    };
    match &decision.body {
        Body::Naive => counted(rows.checked_mul(problem.n.extent)?, threads),
        Body::Vectorized => counted(rows.checked_mul(vectors)?, threads * decision.unroll),
        Body::Tv { tile, .. } => tiles(tile.tile[0], tile.tile[1]),
        Body::Transposed(turn) => tiles(turn.tile[0], turn.tile[1]),
    }
}

fn too_large(decision: &Decision, plan: &Plan, views: &[ViewRef]) -> Diagnostic {
    let layout = views.last().map_or_else(String::new, |v| v.layout.to_string());
    plan.diagnostic(
        Code::ProblemTooLarge,
        format!("tensors of {layout}"),
        format!(
            "extents of at most {}, and at most 2^31 - 1 vectors and {} blocks",
            longest(decision),
            Arch::MAX_GRID_X
        ),
        "coordinates are 32-bit integers, and a grid has at most 2^31-1 blocks along x (CUDA C++ Programming Guide, \
         \"Compute Capabilities\"); offsets are 64-bit",
        "launch on parts of the tensors",
    )
}
