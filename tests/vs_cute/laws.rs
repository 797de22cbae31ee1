//! What the law of an operation says to an answer of compiled CuTe, found from values alone.

use cutemplate::layout::{IntTuple, Layout};

use crate::compile::Answer;
use crate::cpp::Case;

/// Why the answer breaks the operation's law; `None` where it does not, or where no law is stated here.
pub(crate) fn broken(case: &Case, answer: &Answer, ask: &dyn Fn(&Case) -> Answer) -> Option<String> {
    match answer {
        Answer::Refused(_) => refused_without_need(case),
        Answer::Text { text, .. } => match case.op.as_str() {
            "composition" => composition(case, text),
            "left_inverse" => left_inverse(case, text),
            "make_ordered_layout" | "make_layout_like" => compact(text),
            "complement" => complement(case, text),
            "cosize" => cosize(case, text),
            "make_layout" => swizzle_domain(case, text),
            "idx2crd" => inside(case, text),
            "slice_and_offset" => one_text(case, text, ask),
            _ => None,
        },
    }
}

fn layout(text: &str) -> Option<Layout> {
    text.parse().ok()
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).filter_map(|i| layout.at(i).ok()).collect()
}

fn refused_without_need(case: &Case) -> Option<String> {
    let a = layout(case.input(0))?;
    match case.op.as_str() {
        "composition" => {
            let b = layout(case.input(1))?;
            let exact: Vec<i64> = values(&b).iter().filter_map(|i| a.at(*i).ok()).collect();
            let ours = cutemplate::layout::composition(&a, &b).ok()?;
            (values(&ours) == exact).then(|| format!("{ours} is A(B(i)) at every i"))
        }
        "complement" => {
            let mut image = values(&a);
            image.sort_unstable();
            image.dedup();
            (image.len() as i64 == a.size()).then(|| format!("the {} values of {a} differ", a.size()))
        }
        _ => None,
    }
}

fn composition(case: &Case, text: &str) -> Option<String> {
    let (a, b, r) = (layout(case.input(0))?, layout(case.input(1))?, layout(text)?);
    let first = values(&b).into_iter().zip(values(&r)).enumerate().find_map(|(i, (x, r))| {
        let exact = a.at(x).ok()?;
        (exact != r).then(|| format!("A(B({i})) = {exact}, not {r}"))
    });
    first.or_else(|| (r.size() != b.size()).then(|| format!("{} elements, not {}", r.size(), b.size())))
}

fn left_inverse(case: &Case, text: &str) -> Option<String> {
    let (a, inverse) = (layout(case.input(0))?, layout(text)?);
    values(&a).into_iter().enumerate().find_map(|(i, value)| {
        let back = a.at(inverse.at(value).ok()?).ok()?;
        (back != value).then(|| format!("A(R(A({i}))) = {back}, not {value}"))
    })
}

fn compact(text: &str) -> Option<String> {
    let r = layout(text)?;
    let image = values(&cutemplate::layout::filter_zeros(&r));
    image.iter().enumerate().find_map(|(i, value)| {
        let first = image[..i].iter().position(|other| other == value)?;
        Some(format!("elements {first} and {i} are both at {value}"))
    })
}

fn complement(case: &Case, text: &str) -> Option<String> {
    let (a, r) = (layout(case.input(0))?, layout(text)?);
    let steps = values(&r);
    if let Some(i) = (1..steps.len()).find(|i| steps[*i] <= steps[*i - 1]) {
        return Some(format!("value {} at {i} is not above {} before it", steps[i], steps[i - 1]));
    }
    let image = values(&a);
    let mut seen = std::collections::BTreeMap::new();
    steps.iter().find_map(|step| {
        image.iter().find_map(|value| {
            let before = seen.insert(step + value, (*step, *value))?;
            (before.1 != *value).then(|| format!("{} + {} = {step} + {value}: not disjoint", before.0, before.1))
        })
    })
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

fn one_text(case: &Case, text: &str, ask: &dyn Fn(&Case) -> Answer) -> Option<String> {
    let run_time = Case::new(&case.op, [case.input(0), case.input(1), "dynamic coord"]);
    match ask(&run_time) {
        Answer::Text { text: other, .. } if other != text => {
            Some(format!("with the coordinate known at run time only it is {other}"))
        }
        _ => None,
    }
}
