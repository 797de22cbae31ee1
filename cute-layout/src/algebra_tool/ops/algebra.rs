//! Composition, complement, inverses, division, product, casts and slices.

use super::super::value::{Value, expected};
use super::{Answer, Op, any, on_domain, op, some};
use crate::layout::{
    AnyLayout, CoordKind, IntTuple, Layout, LayoutError, Tiler, blocked_product, complement, complement_in_cosize,
    compose_any, compose_any_by, downcast, flat_divide, flat_product, left_inverse_any, logical_divide,
    logical_product, logical_product_any, make_layout, nullspace, raked_product, recast_any, right_inverse_any, slice,
    slice_and_offset, slice_and_offset_any, tile_to_shape, tiled_divide, tiled_product, upcast, zipped_divide,
    zipped_product,
};

pub(super) static OPS: &[Op] = &[
    op("composition", (2, 2), "layout or swizzle, layout or tiler or swizzle", composition_op),
    op("with_shape", (2, 2), "layout, shape", |op, a| {
        let shape = AnyLayout::Plain(make_layout(a[1].shape(op)?)?);
        any(compose_any(a[0].any(op)?, &shape)?)
    }),
    op("complement", (1, 2), "layout [, integer or shape]", complement_op),
    op("right_inverse", (1, 1), "layout", |op, a| any(right_inverse_any(a[0].any(op)?)?)),
    op("left_inverse", (1, 1), "layout", |op, a| any(left_inverse_any(a[0].any(op)?)?)),
    op("nullspace", (1, 1), "layout", |op, a| match a[0].any(op)? {
        AnyLayout::Plain(layout) => some(nullspace(layout)?),
        _ => some(Layout::unit()),
    }),
    op("logical_divide", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, logical_divide)),
    op("zipped_divide", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, zipped_divide)),
    op("tiled_divide", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, tiled_divide)),
    op("flat_divide", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, flat_divide)),
    op("logical_product", (2, 2), "layout, tiler", |op, a| match &a[1] {
        Value::Layout(tiler @ AnyLayout::Composed(_)) => any(logical_product_any(a[0].any(op)?, tiler)?),
        _ => on_tiler(op, a, logical_product),
    }),
    op("zipped_product", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, zipped_product)),
    op("tiled_product", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, tiled_product)),
    op("flat_product", (2, 2), "layout, tiler", |op, a| on_tiler(op, a, flat_product)),
    op("blocked_product", (2, 2), "layout, layout", |op, a| product(op, a, blocked_product)),
    op("raked_product", (2, 2), "layout, layout", |op, a| product(op, a, raked_product)),
    op("tile_to_shape", (2, 3), "layout, shape [, order]", |op, a| {
        let target = a[1].shape(op)?;
        let order = a.get(2).map(|order| order.tuple(op)).transpose()?;
        on_domain(op, a, |l| tile_to_shape(l, target, order))
    }),
    op("upcast", (2, 2), "layout, factor", |op, a| cast(op, a, upcast, |l, n| recast_any(l, 1, n))),
    op("downcast", (2, 2), "layout, factor", |op, a| cast(op, a, downcast, |l, n| recast_any(l, n, 1))),
    op("recast_layout", (3, 3), "layout, old bits, new bits", |op, a| {
        any(recast_any(a[0].any(op)?, a[1].integer(op)?, a[2].integer(op)?)?)
    }),
    op("slice", (2, 2), "layout, coordinate with _", slice_op),
    op("slice_and_offset", (2, 3), "layout, coordinate [, static coord or dynamic coord]", slice_and_offset_op),
];

fn on_tiler(op: &'static str, a: &[Value], apply: fn(&Layout, &Tiler) -> Result<Layout, LayoutError>) -> Answer {
    let tiler = a[1].tiler(op)?;
    on_domain(op, a, |layout| apply(layout, &tiler))
}

fn product(op: &'static str, a: &[Value], apply: fn(&Layout, &Layout) -> Result<Layout, LayoutError>) -> Answer {
    let tiler = match &a[1] {
        // An integer or a shape stands for its compact layout.
        Value::Tuple(shape) => make_layout(shape)?,
        other => other.plain(op)?.clone(),
    };
    on_domain(op, a, |layout| apply(layout, &tiler))
}

fn cast(
    op: &'static str,
    a: &[Value],
    plain: fn(&Layout, i64) -> Result<Layout, LayoutError>,
    other: fn(&AnyLayout, i64) -> Result<AnyLayout, LayoutError>,
) -> Answer {
    let factor = a[1].integer(op)?;
    match a[0].any(op)? {
        AnyLayout::Plain(layout) => some(plain(layout, factor)?),
        layout => any(other(layout, factor)?),
    }
}

fn complement_op(op: &'static str, a: &[Value]) -> Answer {
    let layout = a[0].any(op)?;
    let domain = layout.domain()?;
    match (a.get(1), layout) {
        (Some(cotarget), _) => some(complement(domain, cotarget.shape(op)?)?),
        (None, AnyLayout::Plain(_)) => some(complement_in_cosize(domain)?),
        (None, _) => some(complement(domain, &IntTuple::int(domain.cosize()?))?),
    }
}

fn composition_op(op: &'static str, a: &[Value]) -> Answer {
    let left = a[0].any(op)?;
    match &a[1] {
        Value::Layout(right) => any(compose_any(left, right)?),
        other => any(compose_any_by(left, &other.tiler(op)?)?),
    }
}

fn slice_op(op: &'static str, a: &[Value]) -> Answer {
    let coord = a[1].tuple(op)?;
    match a[0].any(op)? {
        AnyLayout::Plain(layout) => some(slice(coord, layout)?),
        layout => any(slice_and_offset_any(coord, layout, CoordKind::Static)?.0),
    }
}

fn slice_and_offset_op(op: &'static str, a: &[Value]) -> Answer {
    let kind = match a.get(2) {
        None => CoordKind::Static,
        Some(Value::Word(word)) if word == "static coord" => CoordKind::Static,
        Some(Value::Word(word)) if word == "dynamic coord" => CoordKind::Dynamic,
        Some(other) => return Err(expected(op, "`static coord` or `dynamic coord`", other)),
    };
    let coord = a[1].tuple(op)?;
    let (slice, offset) = match a[0].any(op)? {
        AnyLayout::Plain(layout) => {
            let (slice, offset) = slice_and_offset(coord, layout)?;
            (AnyLayout::Plain(slice), Value::Tuple(offset))
        }
        layout => {
            let (slice, offset) = slice_and_offset_any(coord, layout, kind)?;
            (slice, Value::int(offset))
        }
    };
    Ok(Value::List(vec![Value::Layout(slice), offset], ';'))
}
