//! Operations that make layouts and swizzles.

use super::super::value::Value;
use super::{Op, any, op, some};
use crate::layout::{
    AnyLayout, Swizzle, domain_distribute, make_fragment_like, make_identity_layout, make_layout, make_layout_like,
    make_layout_right, make_layout_tv, make_ordered_layout, max_common_layout_any,
};

pub(super) static OPS: &[Op] = &[
    op("make_layout", (1, 1), "shape", |op, a| some(make_layout(a[0].shape(op)?)?)),
    op("make_layout_right", (1, 1), "shape", |op, a| some(make_layout_right(a[0].shape(op)?)?)),
    op("make_ordered_layout", (2, 2), "shape, order", |op, a| {
        some(make_ordered_layout(a[0].shape(op)?, a[1].tuple(op)?)?)
    }),
    op("make_layout_like", (1, 1), "layout", |op, a| some(make_layout_like(a[0].plain(op)?)?)),
    op("make_fragment_like", (1, 1), "layout", |op, a| some(make_fragment_like(a[0].any(op)?.domain()?)?)),
    op("make_identity_layout", (1, 1), "shape", |op, a| some(make_identity_layout(a[0].shape(op)?)?)),
    op("make_layout_tv", (2, 2), "thread layout, value layout", |op, a| {
        let (tiler, tv) = make_layout_tv(a[0].plain(op)?, a[1].plain(op)?)?;
        Ok(Value::List(vec![Value::Tuple(tiler), Value::Layout(AnyLayout::Plain(tv))], ';'))
    }),
    op("make_swizzle", (2, 2), "two masks, 0b...", |op, a| {
        any(AnyLayout::Swizzle(Swizzle::from_masks(a[0].integer(op)?, a[1].integer(op)?)?))
    }),
    op("max_common_layout", (2, 2), "layout, layout", |op, a| {
        some(max_common_layout_any(a[0].any(op)?, a[1].any(op)?)?)
    }),
    op("domain_distribute", (2, 2), "shape or layout, size", |op, a| {
        some(domain_distribute(a[0].shape(op)?, a[1].integer(op)?)?)
    }),
];
