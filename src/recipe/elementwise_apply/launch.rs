//! From the views of a launch to the kernel's problem `(M,N)`: modes are merged where all tensors allow it, and alignment is
//! looked at.

use super::decide::{Body, Class, Decision, Tensor};
use crate::arch::Arch;
use crate::diagnostic::{BindError, Code, Diagnostic};
use crate::expr::Compute;
use crate::plan::{Geometry, Int, ParamStruct, ParamType, ParamValue, Plan, Rule};
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

    /// The parameters, any for those that follow from the others.
    fn given(&self, decision: &Decision, views: &[ViewRef], scalars: &[f64]) -> Vec<ParamValue> {
        let mut values: Vec<ParamValue> = views.iter().map(|v| ParamValue::Ptr(v.ptr)).collect();
        for (i, t) in decision.tensors.iter().enumerate() {
            values.extend(self.m.iter().map(|mode| ParamValue::I64(mode.strides[i])));
            if matches!(t.class, Class::Strided | Class::Transposed) {
                values.push(ParamValue::I64(self.n.strides[i]));
            }
        }
        values.extend(self.m.iter().chain([&self.n]).map(|mode| ParamValue::I64(mode.extent)));
        let follow = match decision.body {
            Body::Naive => 0,
            Body::Tv { .. } => 1,
            Body::Transposed(_) => 2,
            Body::Vectorized => 3,
        };
        values.resize(values.len() + follow, ParamValue::I64(0));
        values.extend(scalars.iter().map(|value| match decision.checked.compute() {
            Compute::F32 => ParamValue::F32(*value as f32),
            Compute::F64 => ParamValue::F64(*value),
            Compute::I32 => ParamValue::I32(*value as i32),
        }));
        values
    }

    /// How the views of this problem are aligned.
    pub(super) fn alignment(&self, decision: &Decision, views: &[ViewRef]) -> Alignment {
        let rule = rule(decision, &[]);
        let values = rule.values(&self.given(decision, views, &[])).unwrap_or_default();
        let is = |name: &str| rule.steps.value(name, &values).is_some_and(|value| value != 0);
        Alignment { together: is(TOGETHER), at_zero: is(AT_ZERO), turned: is(TURNED) }
    }
}

/// How tensors are aligned to vectors.
#[derive(Clone, Copy)]
pub(super) struct Alignment {
    /// All contiguous tensors reach a multiple of the vector at the same n for each coordinate of M.
    pub(super) together: bool,
    /// That is n = 0 everywhere.
    pub(super) at_zero: bool,
    /// Transposed inputs are aligned along M.
    pub(super) turned: bool,
}

/// Values of the rule.
const TOGETHER: &str = "together";
const AT_ZERO: &str = "at_zero";
const TURNED: &str = "aligned_in";

/// Grid and parameters from addresses, strides and extents.
pub(super) fn rule(decision: &Decision, scalars: &[String]) -> Rule {
    let mut rule = Rule::new(&params(decision, scalars));
    let (vec, threads) = (decision.vec, i64::from(decision.threads));
    let m: Vec<Int> = modes(decision, "m").iter().map(|name| rule.param(name)).collect();
    let n = rule.param("n");
    for extent in m.iter().chain([&n]) {
        rule.steps.require(extent.clone().at_most(longest(decision)), INTEGERS);
    }
    alignment(decision, &mut rule);
    let at_zero = rule.steps.find(AT_ZERO);
    match &decision.body {
        Body::Naive => {}
        Body::Vectorized => {
            let together = rule.steps.find(TOGETHER);
            let shifted = together.clone().and(at_zero.clone().is(0));
            let vectors = rule.steps.set("vectors", n.clone().ceil_div(vec) + shifted.select(1, 0));
            rule.derive("vectors", vectors);
            rule.derive("whole", at_zero.and(n.clone().divides_by(vec)));
            rule.derive("aligned", together);
        }
        Body::Tv { .. } | Body::Transposed(_) => {
            rule.derive("aligned", at_zero);
        }
    }
    let something = Int::all(m.iter().chain([&n]).map(|extent| Int::from(0).less(extent.clone())));
    let blocks = match &decision.body {
        Body::Naive => counted(&mut rule, m, n, threads),
        Body::Vectorized => {
            let vectors = rule.steps.find("vectors");
            counted(&mut rule, m, vectors, threads * decision.unroll)
        }
        Body::Tv { tile, .. } => m[0].clone().ceil_div(tile.tile[0]) * n.ceil_div(tile.tile[1]),
        Body::Transposed(turn) => m[0].clone().ceil_div(turn.tile[0]) * n.ceil_div(turn.tile[1]),
    };
    rule.grid(something, [blocks, 1.into(), 1.into()]);
    rule
}

const INTEGERS: &str = "coordinates are 32-bit integers";

/// `m`, or `m0`, `m1`, ..
fn modes(decision: &Decision, name: &str) -> Vec<String> {
    let several = decision.m_rank() > 1;
    (0..decision.m_rank()).map(|i| if several { format!("{name}{i}") } else { name.to_owned() }).collect()
}

/// What is known of the alignment of tensors.
fn alignment(decision: &Decision, rule: &mut Rule) {
    let vec = decision.vec;
    let contiguous = || decision.tensors.iter().filter(|t| t.class == Class::Contiguous);
    let mut phases = |t: &Tensor| -> Vec<Int> {
        let address = rule.param(&t.param());
        let at = rule.steps.set(&format!("phase_{}", t.param()), address / t.dtype.bytes().0 as i64 % vec);
        let steps = modes(decision, &format!("ld{}", t.param()));
        core::iter::once(at).chain(steps.iter().map(|name| rule.param(name) % vec)).collect()
    };
    if !matches!(decision.body, Body::Naive) {
        let all: Vec<Vec<Int>> = contiguous().map(&mut phases).collect();
        let last = all.last().cloned().unwrap_or_default();
        let others = all.split_last().map_or(&[][..], |(_, others)| others).iter();
        let same = others.flat_map(|phases| phases.iter().zip(&last).map(|(a, b)| a.clone().is(b.clone())));
        let together = Int::all(same);
        let together = rule.steps.set(TOGETHER, together);
        rule.steps.set(AT_ZERO, Int::all([together].into_iter().chain(last.into_iter().map(|phase| phase.is(0)))));
    }
    if matches!(decision.body, Body::Transposed(_)) {
        let turned = decision.tensors.iter().filter(|t| t.class == Class::Transposed);
        let aligned = turned.flat_map(|t| {
            let address = rule.param(&t.param()).divides_by(t.dtype.bytes().0 as i64 * vec);
            [address, rule.param(&format!("inc{}", t.param())).divides_by(vec)]
        });
        let aligned = Int::all(aligned);
        let aligned = rule.steps.set(TURNED, aligned);
        rule.derive(TURNED, aligned);
    }
}

/// Blocks for so many items of each coordinate of M.
fn counted(rule: &mut Rule, m: Vec<Int>, items: Int, per_block: i64) -> Int {
    let most = i64::from(i32::MAX);
    let all = m.into_iter().reduce(|rows, extent| {
        let rows = rule.steps.set("rows", rows * extent);
        rule.steps.require(rows.clone().at_most(most), INTEGERS);
        rows
    });
    let blocks = rule.steps.set("blocks", (all.unwrap_or(Int::Const(1)) * items).ceil_div(per_block));
    // The last block counts past the end.
    rule.steps.require(blocks.clone().at_most(most / per_block), INTEGERS);
    blocks
}

pub(super) fn geometry(
    decision: &Decision,
    plan: &Plan,
    views: &[ViewRef],
    scalars: &[f64],
) -> Result<Geometry, BindError> {
    let given = Problem::new(decision, views).given(decision, views, scalars);
    plan.follow(&given)?.ok_or_else(|| too_large(decision, plan, views).into())
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
