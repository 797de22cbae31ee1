//! Operations on the modes of a layout: fewer of them, other groups, another order.

use super::super::value::Value;
use super::{Answer, Op, on_domain, op, some};
use crate::layout::{
    IntTuple, Layout, LayoutError, append, coalesce, coalesce_by, dice, filter, filter_by, filter_zeros,
    filter_zeros_by, flatten, group, prepend, replace, select, sorted, take, unflatten, zip,
};

pub(super) static OPS: &[Op] = &[
    op("coalesce", (1, 2), "layout [, profile]", |op, a| by(op, a, coalesce, coalesce_by)),
    op("filter", (1, 2), "layout [, profile]", |op, a| by(op, a, filter, filter_by)),
    op("filter_zeros", (1, 2), "layout [, profile]", |op, a| by(op, a, |l| Ok(filter_zeros(l)), filter_zeros_by)),
    op("flatten", (1, 1), "layout", |op, a| on_domain(op, a, |l| Ok(flatten(l)))),
    op("unflatten", (2, 2), "layout, profile", |op, a| {
        let profile = a[1].shape(op)?;
        on_domain(op, a, |l| unflatten(l, profile))
    }),
    op("zip", (1, 1), "layout", |op, a| on_domain(op, a, zip)),
    op("append", (2, 3), "layout, rank [, layout]", |op, a| pad(op, a, append)),
    op("prepend", (2, 3), "layout, rank [, layout]", |op, a| pad(op, a, prepend)),
    op("replace", (3, 3), "layout, index, layout", |op, a| {
        let (index, mode) = (a[1].index(op)?, a[2].plain(op)?);
        on_domain(op, a, |l| replace(l, index, mode))
    }),
    op("group", (3, 3), "layout, begin, end", |op, a| {
        let (begin, end) = (a[1].index(op)?, a[2].index(op)?);
        on_domain(op, a, |l| group(l, begin, end))
    }),
    op("take", (3, 3), "layout, begin, end", |op, a| {
        let (begin, end) = (a[1].index(op)?, a[2].index(op)?);
        on_domain(op, a, |l| take(l, begin, end))
    }),
    op("select", (2, 64), "layout, index...", |op, a| {
        let indices: Vec<usize> = a[1..].iter().map(|i| i.index(op)).collect::<Result<_, _>>()?;
        on_domain(op, a, |l| select(l, &indices))
    }),
    op("dice", (2, 2), "layout, coordinate", |op, a| {
        let coord = a[1].tuple(op)?;
        on_domain(op, a, |l| dice(coord, l))
    }),
    op("sorted", (1, 1), "layout", |op, a| some(sorted(a[0].plain(op)?)?)),
];

fn by(
    op: &'static str,
    a: &[Value],
    whole: fn(&Layout) -> Result<Layout, LayoutError>,
    at_profile: fn(&Layout, &IntTuple) -> Result<Layout, LayoutError>,
) -> Answer {
    match a.get(1) {
        None => on_domain(op, a, whole),
        Some(profile) => {
            let profile = profile.shape(op)?;
            on_domain(op, a, |layout| at_profile(layout, profile))
        }
    }
}

fn pad(op: &'static str, a: &[Value], apply: fn(&Layout, usize, &Layout) -> Result<Layout, LayoutError>) -> Answer {
    let rank = a[1].index(op)?;
    let mode = a.get(2).map_or(Ok(Layout::unit()), |mode| mode.plain(op).cloned())?;
    on_domain(op, a, |layout| apply(layout, rank, &mode))
}
