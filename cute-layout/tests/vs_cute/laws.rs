//! What the law of an operation says to an answer of compiled CuTe, found from values alone.

use cute_layout::layout::{
    AnyLayout, IntTuple, Layout, compose_any, filter_zeros, is_injective, laws, slice_and_offset,
};

use crate::compile::Answer;
use crate::cpp::Case;
use crate::ops::ours;

/// Why the answer breaks the operation's law; `None` where it does not, or where no law is stated here.
pub(crate) fn broken(case: &Case, answer: &Answer, ask: &dyn Fn(&Case) -> Answer) -> Option<String> {
    match answer {
        Answer::Refused(_) => refused_without_need(case),
        Answer::Text { text, .. } => match case.op.as_str() {
            "composition" => composition(case, text),
            "with_shape" => with_shape(case, text),
            "left_inverse" => left_inverse(case, text),
            "make_ordered_layout" | "make_layout_like" => compact(text),
            "complement" => complement(case, text),
            "blocked_product" | "raked_product" | "make_layout_tv" => paired(case, text),
            "logical_divide" => logical_divide(case, text),
            "cosize" => cosize(case, text),
            "upcast" | "downcast" | "recast_layout" => recast(case, text),
            "max_common_vector" | "max_common_layout" => common(case, text),
            "make_layout" => swizzle_domain(case, text),
            "idx2crd" => inside(case, text),
            "slice_and_offset" => sliced(case, text).or_else(|| one_text(case, text, ask)),
            _ => None,
        },
    }
}

/// Whether a law is stated here for answers of the operation.
pub(crate) fn stated(case: &Case, answer: &Answer) -> bool {
    let refusals = [
        "composition",
        "complement",
        "upcast",
        "downcast",
        "recast_layout",
        "blocked_product",
        "raked_product",
        "make_layout_tv",
    ];
    let answers = [
        "composition",
        "left_inverse",
        "make_ordered_layout",
        "make_layout_like",
        "complement",
        "logical_divide",
        "cosize",
        "upcast",
        "downcast",
        "recast_layout",
        "blocked_product",
        "raked_product",
        "make_layout_tv",
    ];
    let casts = ["upcast", "downcast", "recast_layout"].contains(&case.op.as_str());
    let layouts = case.inputs.iter().all(|input| input.contains(':')) || casts && case.input(0).contains(':');
    match answer {
        Answer::Refused(_) => refusals.contains(&case.op.as_str()) && layouts,
        Answer::Text { .. } => case.op == "slice_and_offset" || answers.contains(&case.op.as_str()) && layouts,
    }
}

/// Both layouts count up from 0 by 1, at indices of both domains: a number says how far, a layout where.
fn common(case: &Case, text: &str) -> Option<String> {
    let (a, b) = (layout(case.input(0))?, layout(case.input(1))?);
    let domain = a.size().min(b.size());
    let counts = |at: i64, i: i64| at < domain && a.at(at) == Ok(i) && b.at(at) == Ok(i);
    if let Some(result) = layout(text) {
        let at = |i: i64| result.at(i).unwrap_or(i64::MAX);
        let i = (0..result.size()).find(|&i| !counts(at(i), i))?;
        return Some(format!("index {i}: {} is not where both layouts of {domain} indices are {i}", at(i)));
    }
    let i = (0..text.parse().ok()?).find(|&i| !(0..domain).any(|at| counts(at, i)))?;
    Some(format!("value {i}: at no index below {domain} both layouts are {i}"))
}

fn layout(text: &str) -> Option<Layout> {
    text.parse().ok()
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).filter_map(|i| layout.at(i).ok()).collect()
}

fn refused_without_need(case: &Case) -> Option<String> {
    match case.op.as_str() {
        "composition" => {
            let [a, b] = [0, 1].map(|i| case.input(i).parse::<AnyLayout>());
            let (a, b) = (a.ok()?, b.ok()?);
            let size = b.domain().or(a.domain()).ok()?.size();
            let ours = compose_any(&a, &b).ok()?;
            let exact = (0..size).all(|i| b.at(i).and_then(|b| a.at(b)).is_ok_and(|value| ours.at(i) == Ok(value)));
            exact.then(|| format!("{ours} is A(B(i)) at every i"))
        }
        "upcast" | "downcast" | "recast_layout" => {
            let ours = ours(case).ok()?;
            recast(case, &ours.text).is_none().then(|| format!("{} covers the same bytes", ours.text))
        }
        "blocked_product" | "raked_product" | "make_layout_tv" => {
            let ours = ours(case).ok()?;
            paired(case, &ours.text).is_none().then(|| format!("{} pairs the modes of both", ours.text))
        }
        "complement" => {
            let a = layout(case.input(0))?;
            is_injective(&a).ok()?.then(|| format!("the {} values of {a} differ", a.size()))
        }
        _ => None,
    }
}

fn composition(case: &Case, text: &str) -> Option<String> {
    if let Some(a) = layout(case.input(0)) {
        return laws::composition(&a, &layout(case.input(1))?, &layout(text)?).err().map(|broken| broken.at);
    }
    let a: AnyLayout = case.input(0).parse().ok()?;
    let (b, result) = (layout(case.input(1))?, text.replace('o', " o ").parse::<AnyLayout>().ok()?);
    (0..b.size()).find_map(|i| {
        let (left, right) = (result.at(i).ok()?, a.at(b.at(i).ok()?).ok()?);
        (left != right).then(|| format!("index {i}: R = {left}, A(B) = {right}"))
    })
}

/// The same bytes, block by block.
fn recast(case: &Case, text: &str) -> Option<String> {
    let number = |i: usize| case.input(i).parse::<i64>().ok();
    let (up, down) = match case.op.as_str() {
        "upcast" => (number(1)?, 1),
        "downcast" => (1, number(1)?),
        _ => {
            let (old, new) = (number(1)?, number(2)?);
            let common = (1..=old.min(new)).rev().find(|n| old % n == 0 && new % n == 0)?;
            (new / common, old / common)
        }
    };
    let (before, after) = (case.input(0).parse().ok()?, text.replace('o', " o ").parse().ok()?);
    laws::recast_any(&before, up, down, &after).err().map(|broken| broken.at)
}

fn with_shape(case: &Case, text: &str) -> Option<String> {
    let shape: IntTuple = case.input(1).parse().ok()?;
    laws::with_shape(&layout(case.input(0))?, &shape, &layout(text)?).err().map(|broken| broken.at)
}

fn left_inverse(case: &Case, text: &str) -> Option<String> {
    laws::left_inverse(&layout(case.input(0))?, &layout(text)?).err().map(|broken| broken.at)
}

fn compact(text: &str) -> Option<String> {
    laws::compact(&filter_zeros(&layout(text)?)).err().map(|broken| broken.at)
}

fn complement(case: &Case, text: &str) -> Option<String> {
    match text.parse() {
        Ok(result) => laws::complement(&layout(case.input(0))?, &result).err().map(|broken| broken.at),
        Err(error) => Some(format!("{text} is no layout: {}", error.what_was_found())),
    }
}

/// Products whose modes pair those of block and tiler, and what is made of one: a tiler, and a layout.
fn paired(case: &Case, text: &str) -> Option<String> {
    let (block, tiler) = (layout(case.input(0))?, layout(case.input(1))?);
    let judged = match case.op.as_str() {
        "blocked_product" => laws::blocked_product(&block, &tiler, &layout(text)?),
        "raked_product" => laws::raked_product(&block, &tiler, &layout(text)?),
        _ => laws::make_layout_tv(&block, &tiler, &layout(text.split_once(';')?.1)?),
    };
    judged.err().map(|broken| broken.at)
}

fn logical_divide(case: &Case, text: &str) -> Option<String> {
    let (whole, tiler, result) = (layout(case.input(0))?, layout(case.input(1))?, layout(text)?);
    laws::logical_divide(&whole, &tiler, &result).err().map(|broken| broken.at)
}

/// A swizzle of CuTe on an index.
fn swizzled(swizzle: &str, index: i64) -> Option<i64> {
    let inner = swizzle.trim().strip_prefix("Sw<")?.strip_suffix('>')?;
    let numbers: Vec<i64> = inner.split(',').filter_map(|n| n.parse().ok()).collect();
    let &[bits, base, shift] = numbers.as_slice() else { return None };
    let mask = ((1i64 << bits) - 1) << (base + shift.max(0));
    Some(index ^ if shift >= 0 { (index & mask) >> shift } else { (index & mask) << -shift })
}

fn cosize(case: &Case, text: &str) -> Option<String> {
    let parts: Vec<&str> = case.input(0).split(" o ").collect();
    let &[swizzle, offset, inner] = parts.as_slice() else { return None };
    let (offset, inner) = (offset.parse::<i64>().ok()?, layout(inner)?);
    let last = values(&inner).into_iter().filter_map(|v| swizzled(swizzle, offset + v)).max()?;
    (last >= text.parse().ok()?).then(|| format!("{last} is a value, so {} elements are needed", last + 1))
}

fn swizzle_domain(case: &Case, text: &str) -> Option<String> {
    let inner = case.input(0).strip_prefix("Sw<")?.strip_suffix('>')?;
    let bits: i64 = inner.split(',').filter_map(|n| n.parse::<i64>().ok()).map(i64::abs).sum();
    let domain = layout(text.split_once("o0o")?.1)?;
    (domain.size() != 1 << bits).then(|| format!("the swizzle permutes {} indices, not {}", 1 << bits, domain.size()))
}

fn inside(case: &Case, text: &str) -> Option<String> {
    let (coord, shape): (IntTuple, IntTuple) = (text.parse().ok()?, case.input(1).parse().ok()?);
    let leaves = |t: &IntTuple| -> Vec<Option<i64>> { t.flatten().modes().map(|leaf| leaf.as_int()).collect() };
    let outside = leaves(&coord).into_iter().zip(leaves(&shape)).any(|(c, s)| c >= s);
    outside.then(|| format!("{coord} is outside {shape}"))
}

/// The slice of a swizzled layout: the value at what is left free, the coordinate's share included.
fn sliced(case: &Case, text: &str) -> Option<String> {
    let parts: Vec<&str> = case.input(0).split(" o ").collect();
    let &[swizzle, offset, inner] = parts.as_slice() else { return None };
    let (kept, taken) = slice_and_offset(&case.input(1).parse().ok()?, &layout(inner)?).ok()?;
    let start = offset.parse::<i64>().ok()? + taken.as_int()?;
    let (result, apart) = text.split_once(';')?;
    let (result, apart) = (result.replace('o', " o ").parse::<AnyLayout>().ok()?, apart.parse::<i64>().ok()?);
    (0..kept.size()).find_map(|i| {
        let (exact, found) = (swizzled(swizzle, start + kept.at(i).ok()?)?, result.at(i).ok()? + apart);
        (exact != found).then(|| format!("index {i}: {exact}, not {found}"))
    })
}

fn one_text(case: &Case, text: &str, ask: &dyn Fn(&Case) -> Answer) -> Option<String> {
    match ask(&with_run_time_coordinate(case)) {
        Answer::Text { text: other, .. } if other != text => {
            Some(format!("with the coordinate known at run time only it is {other}"))
        }
        _ => None,
    }
}

/// A slice whose coordinate is known at run time only.
pub(crate) fn with_run_time_coordinate(case: &Case) -> Case {
    Case::new(&case.op, [case.input(0), case.input(1), "dynamic coord"])
}
