//! From the views of a launch to the kernel's problem `(M,N)`: modes are merged where all tensors allow it, and alignment is
//! looked at.

use super::decide::{Body, Class, Decision, Tensor};
use crate::arch::Arch;
use crate::plan::{Field, Given, Int, IntOp, Merging, ParamStruct, ParamType, Reach, Rule};
use crate::view::{Access, ViewRef};

/// The parameter struct: addresses, strides, extents, alignment, scalars.
pub(super) fn params(decision: &Decision) -> ParamStruct {
    let mut fields: Vec<Field> = Vec::new();
    for (tensor, t) in decision.tensors.iter().enumerate() {
        let access = if t.output { Access::Write } else { Access::Read };
        fields.push(ParamStruct::address_field(tensor, [t.name, &t.param], t.dtype, access));
    }
    let several = decision.m_rank() > 1;
    let number = |i: usize| if several { i.to_string() } else { String::new() };
    for (tensor, t) in decision.tensors.iter().enumerate() {
        for (i, name) in modes(decision, &format!("ld{}", t.param)).into_iter().enumerate() {
            let doc = format!("elements from one coordinate of M{} to the next, in {}", number(i), t.name);
            fields.push((name, ParamType::I64, doc, Given::Stride { tensor, mode: M + i }));
        }
        if t.class.has_increment() {
            let doc = format!("elements from one coordinate of N to the next, in {}", t.name);
            fields.push((format!("inc{}", t.param), ParamType::I64, doc, Given::Stride { tensor, mode: N }));
        }
    }
    for (i, name) in modes(decision, "m").into_iter().enumerate() {
        let doc = format!("extent of M{}", number(i));
        fields.push((name, ParamType::I32, doc, Given::Extent { tensor: 0, mode: M + i }));
    }
    fields.push(("n".into(), ParamType::I32, "extent of N".into(), Given::Extent { tensor: 0, mode: N }));
    let vectors = ("vectors", "the most vectors of a coordinate of M");
    let whole_rows = ("whole", "1 if rows are whole vectors from n = 0 on, else 0");
    let together = "1 if all tensors reach a multiple of the vector at the same n, for each m, else 0";
    let at_zero = "1 if all tensors are at a multiple of the vector at n = 0, for each m, else 0";
    let along_n = "elements of the widest vectors along N that every tensor is aligned to";
    let rows = "the same, where rows are whole vectors";
    let follow = match decision.body {
        Body::Naive => Vec::new(),
        Body::Vectorized { .. } => vec![vectors, whole_rows, ("aligned", together)],
        Body::Tv { .. } => vec![("aligned", at_zero)],
        Body::Transposed { .. } => vec![(ALIGNED, along_n), (WHOLE, rows)],
    };
    fields.extend(follow.into_iter().map(|(name, doc)| (name.into(), ParamType::I32, doc.into(), Given::Follows)));
    for t in decision.tensors.iter().filter(|t| t.class == Class::Transposed) {
        let doc = format!("elements of the widest vectors along M that {} is aligned to", t.name);
        fields.push((aligned(t), ParamType::I32, doc, Given::Follows));
        fields.push((whole(t), ParamType::I32, "the same, where columns are whole vectors".into(), Given::Follows));
    }
    fields.extend(ParamStruct::scalar_fields(&decision.scalars, decision.checked.compute(), "function"));
    ParamStruct::new(fields)
}

/// Where N stands among the modes of the problem, and where the first of M.
const N: usize = 0;
const M: usize = 1;

/// How the modes of the tensors become N and M.
pub(super) fn merging(decision: &Decision) -> Merging {
    let along_n = decision.tensors.iter().map(|t| match t.class {
        Class::Contiguous => Some(1),
        Class::Broadcast => Some(0),
        Class::Strided | Class::Transposed => None,
    });
    Merging {
        n: decision.n_mode,
        m: decision.m_modes.clone(),
        batches: matches!(decision.body, Body::Transposed { .. }),
        along_n: along_n.collect(),
        by: decision.inputs().count(),
        into_n: matches!(decision.body, Body::Naive | Body::Vectorized { .. }),
        limit: longest(decision),
        rank: decision.m_rank(),
    }
}

/// How tensors are aligned to vectors.
#[derive(Clone, Copy)]
pub(super) struct Alignment {
    /// All contiguous tensors reach a multiple of the vector at the same n for each coordinate of M.
    pub(super) together: bool,
    /// That is n = 0 everywhere.
    pub(super) at_zero: bool,
}

/// What a rule derives for views; 0 for what it does not.
pub(super) fn derived(decision: &Decision, views: &[ViewRef], name: &str) -> i64 {
    let rule = rule(decision);
    let values = rule.values(&params(decision), views, &vec![1.0; decision.scalars.len()]);
    let values = values.ok().flatten().unwrap_or_default();
    rule.steps.value(name, &values).unwrap_or(0)
}

impl Alignment {
    /// The alignment of a launch's views.
    pub(super) fn of(decision: &Decision, views: &[ViewRef]) -> Self {
        let is = |name: &str| derived(decision, views, name) != 0;
        Self { together: is(TOGETHER), at_zero: is(AT_ZERO) }
    }
}

/// Values of the rule.
const TOGETHER: &str = "together";
const AT_ZERO: &str = "at_zero";
pub(super) const ALIGNED: &str = "aligned";
pub(super) const WHOLE: &str = "whole";

/// The parameter for the alignment of a transposed input.
pub(super) fn aligned(tensor: &Tensor) -> String {
    format!("aligned_{}", tensor.param)
}

/// The same where columns are whole vectors.
pub(super) fn whole(tensor: &Tensor) -> String {
    format!("whole_{}", tensor.param)
}

/// Grid and parameters from addresses, strides and extents.
pub(super) fn rule(decision: &Decision) -> Rule {
    let mut rule = Rule::new(&params(decision), reach(decision));
    rule.merging = Some(merging(decision));
    let (vec, threads) = (decision.vec, i64::from(decision.threads));
    let m: Vec<Int> = modes(decision, "m").iter().map(|name| rule.param(name)).collect();
    let n = rule.param("n");
    for extent in m.iter().chain([&n]) {
        rule.steps.require(extent.clone().at_most(longest(decision)), INTEGERS);
    }
    match &decision.body {
        Body::Transposed { .. } => widths(decision, &mut rule),
        _ => alignment(decision, &mut rule),
    }
    let at_zero = rule.steps.find(AT_ZERO);
    match &decision.body {
        Body::Naive | Body::Transposed { .. } => {}
        Body::Vectorized { .. } => {
            let together = rule.steps.find(TOGETHER);
            let shifted = together.clone().and(at_zero.clone().is(0));
            let vectors = rule.steps.set("vectors", n.clone().ceil_div(vec) + shifted.select(1, 0));
            rule.derive_if_any("vectors", vectors);
            rule.derive_if_any("whole", at_zero.and(n.clone().divides_by(vec)));
            rule.derive_if_any("aligned", together);
        }
        Body::Tv { .. } => {
            rule.derive_if_any("aligned", at_zero);
        }
    }
    let something = Int::all(m.iter().chain([&n]).map(|extent| Int::from(0).less(extent.clone())));
    let blocks = match &decision.body {
        Body::Naive => counted(&mut rule, m, n, threads),
        Body::Vectorized { .. } => {
            let vectors = rule.steps.find("vectors");
            counted(&mut rule, m, vectors, threads * decision.unroll)
        }
        Body::Tv { .. } | Body::Transposed { .. } => {
            let [tile_m, tile_n, _] = decision.tiling.tile;
            let tiles = m[0].clone().ceil_div(tile_m) * n.ceil_div(tile_n);
            // Of a tile all modes but the first of M are batches.
            m.into_iter().skip(1).fold(tiles, |blocks, batches| blocks * batches)
        }
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

/// The alignment of the tensors.
fn alignment(decision: &Decision, rule: &mut Rule) {
    let vec = decision.vec;
    let contiguous = || decision.tensors.iter().filter(|t| t.class == Class::Contiguous);
    let mut phases = |t: &Tensor| -> Vec<Int> {
        let address = rule.param(&t.param);
        let at = rule.steps.set(&format!("phase_{}", t.param), address / t.dtype.bytes().0 as i64 % vec);
        let steps = modes(decision, &format!("ld{}", t.param));
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
}

/// The widest vectors that the tensors are aligned to, of at most so many elements, and those that rows are made of.
fn widths(decision: &Decision, rule: &mut Rule) {
    let narrowest = |all: Vec<Int>| all.into_iter().reduce(|a, b| a.op(IntOp::Min, b)).unwrap_or(Int::Const(1));
    let mut along_n = Vec::new();
    for t in decision.tensors.iter().filter(|t| t.class == Class::Contiguous) {
        along_n.push(phase(rule, t, decision.vec, &modes(decision, &format!("ld{}", t.param))));
    }
    let (extents, aligned_n) = (rule.param("n"), narrowest(along_n));
    derive_widths(rule, [ALIGNED, WHOLE], decision.vec, aligned_n, &extents);
    let extents = rule.param(&modes(decision, "m")[0]);
    for t in decision.tensors.iter().filter(|t| t.class == Class::Transposed) {
        let batches = modes(decision, &format!("ld{}", t.param)).into_iter().skip(1);
        let strides: Vec<String> = batches.chain([format!("inc{}", t.param)]).collect();
        let [vec, _] = super::turn::block(&decision.tiling, t.name);
        let aligned_m = phase(rule, t, vec, &strides);
        derive_widths(rule, [&aligned(t), &whole(t)], vec, aligned_m, &extents);
    }
}

/// The largest power of two, of at most so many elements, for which a condition holds.
fn widest(vec: i64, holds: impl Fn(i64) -> Int) -> Int {
    (1..=vec.ilog2()).map(|bit| 1 << bit).fold(Int::Const(1), |narrow, width| holds(width).select(width, narrow))
}

/// The most elements of a vector that all rows of a tensor begin at a multiple of: its address and these strides are.
fn phase(rule: &mut Rule, tensor: &Tensor, vec: i64, strides: &[String]) -> Int {
    let address = rule.param(&tensor.param) / tensor.dtype.bytes().0 as i64;
    let starts: Vec<Int> = core::iter::once(address).chain(strides.iter().map(|name| rule.param(name))).collect();
    let all = |width| Int::all(starts.iter().map(|start| start.clone().divides_by(width)));
    rule.steps.set(&format!("phase_{}", tensor.param), widest(vec, all))
}

/// Derives the width of vectors, and the width of those that rows of an extent are made of.
fn derive_widths(rule: &mut Rule, [aligned, whole]: [&str; 2], vec: i64, width: Int, extent: &Int) {
    let width = rule.steps.set(aligned, width);
    let of_rows = widest(vec, |width| extent.clone().divides_by(width)).op(IntOp::Min, width.clone());
    let of_rows = rule.steps.set(whole, of_rows);
    rule.derive_if_any(aligned, width);
    rule.derive_if_any(whole, of_rows);
}

/// Blocks for this many items per coordinate of M.
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

/// The largest extent whose coordinates are 32-bit integers, those of the last vector or tile past the end too.
fn longest(decision: &Decision) -> i64 {
    let past_the_end = match &decision.body {
        Body::Naive => 1,
        // Rows that begin between two multiples of the vector have one more.
        Body::Vectorized { .. } => 2 * decision.vec,
        Body::Tv { .. } | Body::Transposed { .. } => decision.tiling.tile[0].max(decision.tiling.tile[1]),
    };
    i64::from(i32::MAX) - past_the_end
}

/// The error for larger numbers.
fn reach(decision: &Decision) -> Reach {
    let (most, blocks) = (longest(decision), Arch::MAX_GRID_X);
    Reach {
        required: format!("extents of at most {most}, and at most 2^31 - 1 vectors and {blocks} blocks"),
        because: "coordinates are 32-bit integers, and a grid has at most 2^31-1 blocks along x (CUDA C++ Programming Guide, \
                  \"Compute Capabilities\"); offsets are 64-bit"
            .into(),
        help: "launch on parts of the tensors".into(),
    }
}
