//! From the views of a launch to the kernel's problem `(M,N)`: modes are merged where all tensors allow it, and
//! alignment is looked at.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decide::{Body, Class, Decision};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::expr::Compute;
use crate::plan::{Abi, Geometry, GridRule, ParamStruct, ParamType, ParamValue, written};
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

/// The structure of a kernel, as far as its launches know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Naive,
    Vectorized,
    Tv,
    Transposed,
}

/// What a launch is computed by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    body: Kind,
    /// Of each tensor, inputs first.
    classes: Vec<Class>,
    inputs: usize,
    n_mode: usize,
    m_modes: Vec<usize>,
    vec: i64,
    threads: u32,
    unroll: i64,
    /// Of `Tv` and `Transposed`.
    tile: [i64; 2],
    /// The type of the scalars.
    compute: Compute,
}

impl Rule {
    pub(super) fn of(decision: &Decision) -> Self {
        let (body, tile) = match &decision.body {
            Body::Naive => (Kind::Naive, [1; 2]),
            Body::Vectorized => (Kind::Vectorized, [1; 2]),
            Body::Tv { tile, .. } => (Kind::Tv, tile.tile),
            Body::Transposed(turn) => (Kind::Transposed, turn.tile),
        };
        Self {
            body,
            classes: decision.tensors.iter().map(|t| t.class).collect(),
            inputs: decision.inputs().count(),
            n_mode: decision.n_mode,
            m_modes: decision.m_modes.clone(),
            vec: decision.vec,
            threads: decision.threads,
            unroll: decision.unroll,
            tile,
            compute: decision.checked.compute(),
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
    pub(super) fn new(rule: &Rule, views: &[ViewRef]) -> Self {
        let mut n = Mode::of(views, rule.n_mode);
        // A view whose only coordinate along N has another stride is contiguous there all the same.
        for (stride, t) in n.strides.iter_mut().zip(&rule.classes) {
            match t {
                Class::Contiguous => *stride = 1,
                Class::Broadcast => *stride = 0,
                Class::Strided | Class::Transposed => {}
            }
        }
        let mut m: Vec<Mode> = rule.m_modes.iter().map(|mode| Mode::of(views, *mode)).collect();
        m.retain(|mode| mode.extent != 1);
        // Strides of M are known at launch only, so its modes may stand in any order: that of the first output's
        // strides.
        let first_output = rule.inputs;
        m.sort_by_key(|mode| mode.strides[first_output]);
        let limit = longest(rule);
        if matches!(rule.body, Kind::Naive | Kind::Vectorized) {
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
        m.resize(rule.m_modes.len().max(1), Mode { extent: 1, strides: vec![0; views.len()] });
        Self { n, m }
    }

    /// Whether all contiguous tensors reach a multiple of the vector at the same n for each coordinate of M, and
    /// whether that is n = 0 everywhere.
    pub(super) fn alignment(&self, rule: &Rule, views: &[ViewRef]) -> (bool, bool) {
        let vec = rule.vec;
        let contiguous = || (0..views.len()).filter(|i| rule.classes[*i] == Class::Contiguous);
        // A remainder below the vector, which is at most 16.
        let phase = |i: usize| (views[i].ptr / views[i].dtype.bytes().0 % vec as u64) as i64;
        let steps = |i: usize| self.m.iter().map(move |mode| mode.strides[i] % vec);
        let Some(last) = contiguous().next_back() else { return (true, true) };
        let together = contiguous().all(|i| phase(i) == phase(last) && steps(i).eq(steps(last)));
        (together, together && phase(last) == 0 && steps(last).all(|s| s == 0))
    }
}

fn geometry(rule: &Rule, abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
    if views.len() != rule.classes.len() {
        return Err(abi.unexpected_views(views).into());
    }
    let problem = Problem::new(rule, views);
    let (together, at_zero) = problem.alignment(rule, views);
    let vec = rule.vec;
    let (n, rows) = (problem.n.extent, problem.m.iter().try_fold(1_i64, |r, m| r.checked_mul(m.extent)));
    let vectors = if together && !at_zero { (n - 1) / vec + 2 } else { (n - 1) / vec + 1 };
    let aligned = if matches!(rule.body, Kind::Vectorized) { together } else { at_zero };
    let blocks = rows.and_then(|rows| blocks(rule, &problem, rows, vectors));
    let fits = |extent: i64| i32::try_from(extent).ok().filter(|_| extent <= longest(rule));
    let extents: Option<Vec<i32>> = problem.m.iter().chain([&problem.n]).map(|mode| fits(mode.extent)).collect();
    let grid = blocks.and_then(|b| u32::try_from(b).ok()).filter(|b| u64::from(*b) <= Arch::MAX_GRID_X);
    let (Some(extents), Some(grid)) = (extents, grid) else { return Err(too_large(rule, abi, views).into()) };
    let mut values: Vec<ParamValue> = views.iter().map(|v| ParamValue::Ptr(v.ptr)).collect();
    for (i, class) in rule.classes.iter().enumerate() {
        values.extend(problem.m.iter().map(|mode| ParamValue::I64(mode.strides[i])));
        if matches!(class, Class::Strided | Class::Transposed) {
            values.push(ParamValue::I64(problem.n.strides[i]));
        }
    }
    values.extend(extents.into_iter().map(ParamValue::I32));
    if matches!(rule.body, Kind::Vectorized) {
        values.push(ParamValue::I32(vectors as i32));
        values.push(ParamValue::I32((at_zero && n % vec == 0).into()));
    }
    if !matches!(rule.body, Kind::Naive) {
        values.push(ParamValue::I32(aligned.into()));
    }
    if matches!(rule.body, Kind::Transposed) {
        values.push(ParamValue::I32(turned_aligned(rule, &problem, views).into()));
    }
    values.extend(scalars.iter().map(|value| match rule.compute {
        Compute::F32 => ParamValue::F32(*value as f32),
        Compute::F64 => ParamValue::F64(*value),
        Compute::I32 => ParamValue::I32(*value as i32),
    }));
    Ok(Geometry::new([grid, 1, 1], values))
}

/// The largest extent whose coordinates are 32-bit integers, those of the last vector or tile past the end too.
fn longest(rule: &Rule) -> i64 {
    let past_the_end = match rule.body {
        Kind::Naive => 1,
        // Rows that begin between two multiples of the vector have one more.
        Kind::Vectorized => 2 * rule.vec,
        Kind::Tv => rule.tile[0].max(rule.tile[1]),
        Kind::Transposed => rule.tile[0].max(rule.tile[1]),
    };
    i64::from(i32::MAX) - past_the_end
}

/// Transposed inputs are aligned along M.
pub(super) fn turned_aligned(rule: &Rule, problem: &Problem, views: &[ViewRef]) -> bool {
    let mut turned = (0..views.len()).filter(|i| rule.classes[*i] == Class::Transposed);
    turned.all(|i| {
        let vector = views[i].dtype.bytes().0 * rule.vec as u64;
        views[i].ptr.is_multiple_of(vector) && problem.n.strides[i] % rule.vec == 0
    })
}

/// Blocks along x; `None` where the kernel's 32-bit numbers do not reach.
fn blocks(rule: &Rule, problem: &Problem, rows: i64, vectors: i64) -> Option<i64> {
    let threads = i64::from(rule.threads);
    let counted = |items: i64, per_block: i64| {
        let blocks = (items - 1) / per_block + 1;
        // The last block counts past the end.
        blocks.checked_mul(per_block).filter(|end| *end <= i64::from(i32::MAX)).map(|_| blocks)
    };
    let tiles = |m: i64, n: i64| {
        let per_m = (problem.m[0].extent - 1) / m + 1;
        per_m.checked_mul((problem.n.extent - 1) / n + 1)
    };
    match rule.body {
        Kind::Naive => counted(rows.checked_mul(problem.n.extent)?, threads),
        Kind::Vectorized => counted(rows.checked_mul(vectors)?, threads * rule.unroll),
        Kind::Tv => tiles(rule.tile[0], rule.tile[1]),
        Kind::Transposed => tiles(rule.tile[0], rule.tile[1]),
    }
}

fn too_large(rule: &Rule, abi: &Abi, views: &[ViewRef]) -> Diagnostic {
    let layout = views.last().map_or_else(String::new, |v| v.layout.to_string());
    abi.diagnostic(
        Code::ProblemTooLarge,
        format!("tensors of {layout}"),
        format!("extents of at most {}, and at most 2^31 - 1 vectors and {} blocks", longest(rule), Arch::MAX_GRID_X),
        "coordinates are 32-bit integers, and a grid has at most 2^31-1 blocks along x (CUDA C++ Programming Guide, \
         \"Compute Capabilities\"); offsets are 64-bit",
        "launch on parts of the tensors",
    )
}
