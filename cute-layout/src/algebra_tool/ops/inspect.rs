//! Operations whose results are numbers, truth values, coordinates and shapes.

use super::super::value::{Value, expected};
use super::{Answer, Op, op};
use crate::layout::{
    AnyLayout, Class, Layout, LayoutError, ceil_div, ceil_div_layout, compatible, crd2crd, crd2idx, crd2idx_shape,
    evenly_divides, idx2crd, is_admissible_for_complement, is_bijective, is_compact, is_injective, is_tractable,
    max_alignment_any, max_common_vector_any, round_up, shape_div, weakly_congruent,
};

/// The most values that `vals` and `swizzle_vals` list.
pub const MOST_LISTED: i64 = 1 << 16;

pub(super) static OPS: &[Op] = &[
    op("size", (1, 1), "layout", |op, a| Ok(Value::Tuple(a[0].shape(op)?.product()?))),
    op("rank", (1, 1), "layout", |op, a| Ok(count(a[0].shape(op)?.rank()))),
    op("depth", (1, 1), "layout", |op, a| Ok(count(a[0].shape(op)?.depth()))),
    op("cosize", (1, 1), "layout", |op, a| match a[0].any(op)? {
        AnyLayout::Composed(layout) => Ok(Value::int(layout.cosize()?)),
        layout => Ok(Value::Tuple(layout.domain()?.coshape()?.product()?)),
    }),
    op("coshape", (1, 1), "layout", |op, a| Ok(Value::Tuple(a[0].plain(op)?.coshape()?))),
    op("max_alignment", (1, 1), "layout", |op, a| Ok(Value::int(max_alignment_any(a[0].any(op)?)?))),
    op("max_common_vector", (2, 2), "layout, layout", |op, a| {
        Ok(Value::int(max_common_vector_any(a[0].any(op)?, a[1].any(op)?)?))
    }),
    op("crd2idx", (2, 2), "coordinate, layout or shape", |op, a| value_at(op, &a[1], &a[0])),
    op("eval", (2, 2), "layout, coordinate", |op, a| value_at(op, &a[0], &a[1])),
    op("idx2crd", (2, 2), "index, shape", |op, a| Ok(Value::Tuple(idx2crd(a[0].tuple(op)?, a[1].shape(op)?)?))),
    op("crd2crd", (3, 3), "coordinate, source shape, target shape", |op, a| {
        Ok(Value::Tuple(crd2crd(a[0].tuple(op)?, a[1].shape(op)?, a[2].shape(op)?)?))
    }),
    op("vals", (1, 1), "layout", |op, a| {
        let size = a[0].any(op)?.domain()?.shape().size()?;
        list(op, size, |i| value_at(op, &a[0], &Value::int(i)))
    }),
    op("swizzle_vals", (2, 2), "swizzle, count", |op, a| match a[0].any(op)? {
        AnyLayout::Swizzle(swizzle) => list(op, a[1].integer(op)?, |i| Ok(Value::int(swizzle.apply(i)))),
        _ => Err(expected(op, "a swizzle", &a[0])),
    }),
    op("compatible", (2, 2), "shape, shape", |op, a| Ok(Value::Bool(compatible(a[0].shape(op)?, a[1].shape(op)?)?))),
    op("congruent", (2, 2), "shape, shape", |op, a| Ok(Value::Bool(a[0].shape(op)?.congruent(a[1].shape(op)?)))),
    op("weakly_congruent", (2, 2), "shape, shape", |op, a| {
        Ok(Value::Bool(weakly_congruent(a[0].shape(op)?, a[1].shape(op)?)))
    }),
    op("evenly_divides", (2, 2), "shape, shape or layout or tiler", |op, a| {
        Ok(Value::Bool(evenly_divides(a[0].shape(op)?, &a[1].tiler(op)?)?))
    }),
    op("ceil_div", (2, 2), "shape, shape or layout", |op, a| match &a[1] {
        Value::Layout(tiler) => Ok(Value::Tuple(ceil_div_layout(a[0].shape(op)?, tiler.plain(op)?)?)),
        divisor => Ok(Value::Tuple(ceil_div(a[0].shape(op)?, divisor.tuple(op)?)?)),
    }),
    op("shape_div", (2, 2), "shape, shape", |op, a| Ok(Value::Tuple(shape_div(a[0].shape(op)?, a[1].shape(op)?)?))),
    op("round_up", (2, 2), "shape, shape", |op, a| Ok(Value::Tuple(round_up(a[0].shape(op)?, a[1].shape(op)?)?))),
    op("is_injective", (1, 1), "layout", |op, a| decide(op, a, is_injective)),
    op("is_bijective", (1, 1), "layout", |op, a| decide(op, a, is_bijective)),
    op("is_compact", (1, 1), "layout", |op, a| decide(op, a, is_compact)),
    op("is_tractable", (1, 1), "layout", |op, a| decide(op, a, is_tractable)),
    op("is_admissible_for_complement", (2, 2), "layout, size", |op, a| {
        match is_admissible_for_complement(a[0].plain(op)?, a[1].integer(op)?) {
            Err(error) if error.class() != Class::NonInjective => Err(error),
            judged => Ok(Value::Bool(judged.is_ok())),
        }
    }),
];

fn count(value: usize) -> Value {
    Value::int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn decide(op: &'static str, a: &[Value], is: fn(&Layout) -> Result<bool, LayoutError>) -> Answer {
    Ok(Value::Bool(is(a[0].plain(op)?)?))
}

/// The value of a layout, or the index in a shape, at a coordinate.
fn value_at(op: &'static str, layout: &Value, coord: &Value) -> Answer {
    let coord = coord.tuple(op)?;
    match layout {
        Value::Layout(AnyLayout::Plain(layout)) => Ok(Value::Tuple(crd2idx(coord, layout)?)),
        Value::Layout(AnyLayout::Composed(layout)) => Ok(Value::int(layout.crd2idx(coord)?)),
        Value::Layout(AnyLayout::Swizzle(swizzle)) => match coord.as_int() {
            Some(index) => Ok(Value::int(swizzle.apply(index))),
            None => Err(expected(op, "an integer", &Value::Tuple(coord.clone()))),
        },
        other => Ok(Value::int(crd2idx_shape(coord, other.tuple(op)?)?)),
    }
}

fn list(op: &'static str, count: i64, each: impl Fn(i64) -> Answer) -> Answer {
    if !(1..=MOST_LISTED).contains(&count) {
        return Err(LayoutError::new(op, Class::Limit)
            .found(format!("{count} values"))
            .required(format!("from 1 to {MOST_LISTED}")));
    }
    Ok(Value::List((0..count).map(each).collect::<Result<_, _>>()?, ','))
}
