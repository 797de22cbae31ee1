//! The table of operations: a name, how many arguments it takes, and what it does.

use super::super::coalesce::{
    coalesce, coalesce_by, filter, filter_by, filter_zeros, filter_zeros_by, flatten, unflatten,
};
use super::super::complement::{complement, complement_in_cosize};
use super::super::composed::{AnyLayout, compose_any, compose_any_by};
use super::super::construct::{
    make_fragment_like, make_identity_layout, make_layout, make_layout_like, make_layout_right,
    make_ordered_layout,
};
use super::super::coord::{crd2crd, crd2idx, crd2idx_shape, dice, idx2crd, slice};
use super::super::core::Layout;
use super::super::divide::{
    append, flat_divide, group, logical_divide, prepend, replace, select, take, tiled_divide, zip,
    zipped_divide,
};
use super::super::error::{Class, LayoutError};
use super::super::int_tuple::IntTuple;
use super::super::inverse::{domain_distribute, nullspace};
use super::super::product::{
    blocked_product, flat_product, logical_product, raked_product, tile_to_shape, tiled_product,
    zipped_product,
};
use super::super::properties::{
    is_admissible_for_complement, is_bijective, is_compact, is_injective, is_tractable, sorted,
};
use super::super::recast::{downcast, upcast};
use super::super::shape::{
    ceil_div, ceil_div_layout, compatible, evenly_divides, round_up, shape_div, weakly_congruent,
};
use super::super::swizzle::Swizzle;
use super::super::swizzled::{
    CoordKind, left_inverse_any, logical_product_any, max_alignment_any, max_common_layout_any,
    max_common_vector_any, recast_any, right_inverse_any, slice_and_offset_any,
};
use super::super::tiler::Tiler;
use super::super::tv::make_layout_tv;
use super::value::{Value, expected};

/// The most values that `vals` and `swizzle_vals` list.
pub const MOST_LISTED: i64 = 1 << 16;

/// An operation of the protocol.
pub struct Op {
    /// CuTe's name.
    pub name: &'static str,
    /// The least and the largest number of arguments.
    pub arity: (usize, usize),
    /// What the arguments are, for people.
    pub usage: &'static str,
    run: fn(&[Value]) -> Result<Value, LayoutError>,
}

type Answer = Result<Value, LayoutError>;

fn some(layout: Layout) -> Answer {
    Ok(Value::Layout(AnyLayout::Plain(layout)))
}

fn any(layout: AnyLayout) -> Answer {
    Ok(Value::Layout(layout))
}

/// Applies an operation of plain layouts to the domain, as CuTe does for composed layouts.
fn on_domain(
    op: &'static str,
    a: &[Value],
    apply: impl FnOnce(&Layout) -> Result<Layout, LayoutError>,
) -> Answer {
    any(a[0].any(op)?.map_domain(apply)?)
}

fn on_tiler(
    op: &'static str,
    a: &[Value],
    apply: fn(&Layout, &Tiler) -> Result<Layout, LayoutError>,
) -> Answer {
    let tiler = a[1].tiler(op)?;
    on_domain(op, a, |layout| apply(layout, &tiler))
}

/// All operations, in the order of their names.
pub static OPS: &[Op] = &[
    Op {
        name: "append",
        arity: (2, 3),
        usage: "layout, rank [, layout]",
        run: |a| pad("append", a, append),
    },
    Op {
        name: "blocked_product",
        arity: (2, 2),
        usage: "layout, layout",
        run: |a| product_of_layouts("blocked_product", a, blocked_product),
    },
    Op {
        name: "ceil_div",
        arity: (2, 2),
        usage: "shape, shape or layout",
        run: ceil_div_op,
    },
    Op {
        name: "coalesce",
        arity: (1, 2),
        usage: "layout [, profile]",
        run: |a| match a.get(1) {
            Some(profile) => {
                let profile = profile.shape("coalesce")?;
                on_domain("coalesce", a, |l| coalesce_by(l, profile))
            }
            None => on_domain("coalesce", a, coalesce),
        },
    },
    Op {
        name: "compatible",
        arity: (2, 2),
        usage: "shape, shape",
        run: |a| {
            Ok(Value::Bool(compatible(
                a[0].shape("compatible")?,
                a[1].shape("compatible")?,
            )))
        },
    },
    Op {
        name: "complement",
        arity: (1, 2),
        usage: "layout [, integer or shape]",
        run: complement_op,
    },
    Op {
        name: "composition",
        arity: (2, 2),
        usage: "layout or swizzle, layout or tiler or swizzle",
        run: composition_op,
    },
    Op {
        name: "congruent",
        arity: (2, 2),
        usage: "shape, shape",
        run: |a| {
            Ok(Value::Bool(
                a[0].shape("congruent")?.congruent(a[1].shape("congruent")?),
            ))
        },
    },
    Op {
        name: "coshape",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::Tuple(a[0].plain("coshape")?.coshape()?)),
    },
    Op {
        name: "cosize",
        arity: (1, 1),
        usage: "layout",
        run: |a| match a[0].any("cosize")? {
            AnyLayout::Composed(layout) => Ok(Value::int(layout.cosize()?)),
            layout => Ok(Value::int(layout.domain()?.cosize()?)),
        },
    },
    Op {
        name: "crd2crd",
        arity: (3, 3),
        usage: "coordinate, source shape, target shape",
        run: |a| {
            Ok(Value::Tuple(crd2crd(
                a[0].tuple("crd2crd")?,
                a[1].shape("crd2crd")?,
                a[2].shape("crd2crd")?,
            )?))
        },
    },
    Op {
        name: "crd2idx",
        arity: (2, 2),
        usage: "coordinate, layout or shape",
        run: |a| value_at("crd2idx", &a[1], &a[0]),
    },
    Op {
        name: "depth",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(count(a[0].shape("depth")?.depth())),
    },
    Op {
        name: "dice",
        arity: (2, 2),
        usage: "layout, coordinate",
        run: |a| {
            let c = a[1].tuple("dice")?;
            on_domain("dice", a, |l| dice(c, l))
        },
    },
    Op {
        name: "domain_distribute",
        arity: (2, 2),
        usage: "shape or layout, size",
        run: |a| {
            some(domain_distribute(
                a[0].shape("domain_distribute")?,
                a[1].integer("domain_distribute")?,
            )?)
        },
    },
    Op {
        name: "downcast",
        arity: (2, 2),
        usage: "layout, factor",
        run: |a| cast("downcast", a, downcast, |l, n| recast_any(l, n, 1)),
    },
    Op {
        name: "eval",
        arity: (2, 2),
        usage: "layout, coordinate",
        run: |a| value_at("eval", &a[0], &a[1]),
    },
    Op {
        name: "evenly_divides",
        arity: (2, 2),
        usage: "shape, shape or layout or tiler",
        run: |a| {
            Ok(Value::Bool(evenly_divides(
                a[0].shape("evenly_divides")?,
                &a[1].tiler("evenly_divides")?,
            )?))
        },
    },
    Op {
        name: "filter",
        arity: (1, 2),
        usage: "layout [, profile]",
        run: |a| match a.get(1) {
            Some(profile) => {
                let profile = profile.shape("filter")?;
                on_domain("filter", a, |l| filter_by(l, profile))
            }
            None => on_domain("filter", a, filter),
        },
    },
    Op {
        name: "filter_zeros",
        arity: (1, 2),
        usage: "layout [, profile]",
        run: |a| match a.get(1) {
            Some(profile) => {
                let profile = profile.shape("filter_zeros")?;
                on_domain("filter_zeros", a, |l| filter_zeros_by(l, profile))
            }
            None => on_domain("filter_zeros", a, |l| Ok(filter_zeros(l))),
        },
    },
    Op {
        name: "flat_divide",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("flat_divide", a, flat_divide),
    },
    Op {
        name: "flat_product",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("flat_product", a, flat_product),
    },
    Op {
        name: "flatten",
        arity: (1, 1),
        usage: "layout",
        run: |a| on_domain("flatten", a, |l| Ok(flatten(l))),
    },
    Op {
        name: "group",
        arity: (3, 3),
        usage: "layout, begin, end",
        run: |a| {
            let (b, e) = range("group", a)?;
            on_domain("group", a, |l| group(l, b, e))
        },
    },
    Op {
        name: "idx2crd",
        arity: (2, 2),
        usage: "index, shape",
        run: |a| {
            Ok(Value::Tuple(idx2crd(
                a[0].tuple("idx2crd")?,
                a[1].shape("idx2crd")?,
            )?))
        },
    },
    Op {
        name: "is_admissible_for_complement",
        arity: (2, 2),
        usage: "layout, size",
        run: |a| {
            Ok(Value::Bool(
                is_admissible_for_complement(
                    a[0].plain("is_admissible_for_complement")?,
                    a[1].integer("is_admissible_for_complement")?,
                )
                .is_ok(),
            ))
        },
    },
    Op {
        name: "is_bijective",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::Bool(is_bijective(a[0].plain("is_bijective")?)?)),
    },
    Op {
        name: "is_compact",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::Bool(is_compact(a[0].plain("is_compact")?)?)),
    },
    Op {
        name: "is_injective",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::Bool(is_injective(a[0].plain("is_injective")?)?)),
    },
    Op {
        name: "is_tractable",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::Bool(is_tractable(a[0].plain("is_tractable")?)?)),
    },
    Op {
        name: "left_inverse",
        arity: (1, 1),
        usage: "layout",
        run: |a| any(left_inverse_any(a[0].any("left_inverse")?)?),
    },
    Op {
        name: "logical_divide",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("logical_divide", a, logical_divide),
    },
    Op {
        name: "logical_product",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| match &a[1] {
            Value::Layout(tiler @ AnyLayout::Composed(_)) => {
                any(logical_product_any(a[0].any("logical_product")?, tiler)?)
            }
            _ => on_tiler("logical_product", a, logical_product),
        },
    },
    Op {
        name: "make_fragment_like",
        arity: (1, 1),
        usage: "layout",
        run: |a| {
            some(make_fragment_like(
                a[0].any("make_fragment_like")?.domain()?,
            )?)
        },
    },
    Op {
        name: "make_identity_layout",
        arity: (1, 1),
        usage: "shape",
        run: |a| some(make_identity_layout(a[0].shape("make_identity_layout")?)?),
    },
    Op {
        name: "make_layout",
        arity: (1, 1),
        usage: "shape",
        run: |a| some(make_layout(a[0].shape("make_layout")?)?),
    },
    Op {
        name: "make_layout_like",
        arity: (1, 1),
        usage: "layout",
        run: |a| some(make_layout_like(a[0].plain("make_layout_like")?)?),
    },
    Op {
        name: "make_layout_right",
        arity: (1, 1),
        usage: "shape",
        run: |a| some(make_layout_right(a[0].shape("make_layout_right")?)?),
    },
    Op {
        name: "make_layout_tv",
        arity: (2, 2),
        usage: "thread layout, value layout",
        run: |a| {
            let (tiler, tv) =
                make_layout_tv(a[0].plain("make_layout_tv")?, a[1].plain("make_layout_tv")?)?;
            Ok(Value::List(
                vec![Value::Tuple(tiler), Value::Layout(AnyLayout::Plain(tv))],
                ';',
            ))
        },
    },
    Op {
        name: "make_ordered_layout",
        arity: (2, 2),
        usage: "shape, order",
        run: |a| {
            some(make_ordered_layout(
                a[0].shape("make_ordered_layout")?,
                a[1].tuple("make_ordered_layout")?,
            )?)
        },
    },
    Op {
        name: "make_swizzle",
        arity: (2, 2),
        usage: "two masks, 0b...",
        run: |a| {
            any(AnyLayout::Swizzle(Swizzle::from_masks(
                a[0].integer("make_swizzle")?,
                a[1].integer("make_swizzle")?,
            )?))
        },
    },
    Op {
        name: "max_alignment",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::int(max_alignment_any(a[0].any("max_alignment")?)?)),
    },
    Op {
        name: "max_common_layout",
        arity: (2, 2),
        usage: "layout, layout",
        run: |a| {
            some(max_common_layout_any(
                a[0].any("max_common_layout")?,
                a[1].any("max_common_layout")?,
            )?)
        },
    },
    Op {
        name: "max_common_vector",
        arity: (2, 2),
        usage: "layout, layout",
        run: |a| {
            Ok(Value::int(max_common_vector_any(
                a[0].any("max_common_vector")?,
                a[1].any("max_common_vector")?,
            )?))
        },
    },
    Op {
        name: "nullspace",
        arity: (1, 1),
        usage: "layout",
        run: |a| match a[0].any("nullspace")? {
            AnyLayout::Plain(layout) => some(nullspace(layout)?),
            _ => some(Layout::unit()),
        },
    },
    Op {
        name: "prepend",
        arity: (2, 3),
        usage: "layout, rank [, layout]",
        run: |a| pad("prepend", a, prepend),
    },
    Op {
        name: "raked_product",
        arity: (2, 2),
        usage: "layout, layout",
        run: |a| product_of_layouts("raked_product", a, raked_product),
    },
    Op {
        name: "rank",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(count(a[0].shape("rank")?.rank())),
    },
    Op {
        name: "recast_layout",
        arity: (3, 3),
        usage: "layout, old bits, new bits",
        run: |a| {
            any(recast_any(
                a[0].any("recast_layout")?,
                a[1].integer("recast_layout")?,
                a[2].integer("recast_layout")?,
            )?)
        },
    },
    Op {
        name: "replace",
        arity: (3, 3),
        usage: "layout, index, layout",
        run: |a| {
            let (i, m) = (a[1].index("replace")?, a[2].plain("replace")?);
            on_domain("replace", a, |l| replace(l, i, m))
        },
    },
    Op {
        name: "right_inverse",
        arity: (1, 1),
        usage: "layout",
        run: |a| any(right_inverse_any(a[0].any("right_inverse")?)?),
    },
    Op {
        name: "round_up",
        arity: (2, 2),
        usage: "shape, shape",
        run: |a| {
            Ok(Value::Tuple(round_up(
                a[0].shape("round_up")?,
                a[1].shape("round_up")?,
            )?))
        },
    },
    Op {
        name: "select",
        arity: (2, 64),
        usage: "layout, index...",
        run: |a| {
            let indices: Result<Vec<usize>, _> = a[1..].iter().map(|i| i.index("select")).collect();
            let indices = indices?;
            on_domain("select", a, |l| select(l, &indices))
        },
    },
    Op {
        name: "shape_div",
        arity: (2, 2),
        usage: "shape, shape",
        run: |a| {
            Ok(Value::Tuple(shape_div(
                a[0].shape("shape_div")?,
                a[1].shape("shape_div")?,
            )?))
        },
    },
    Op {
        name: "size",
        arity: (1, 1),
        usage: "layout",
        run: |a| Ok(Value::int(a[0].shape("size")?.size()?)),
    },
    Op {
        name: "slice",
        arity: (2, 2),
        usage: "layout, coordinate with _",
        run: slice_op,
    },
    Op {
        name: "slice_and_offset",
        arity: (2, 3),
        usage: "layout, coordinate [, static coord or dynamic coord]",
        run: slice_and_offset_op,
    },
    Op {
        name: "sorted",
        arity: (1, 1),
        usage: "layout",
        run: |a| some(sorted(a[0].plain("sorted")?)?),
    },
    Op {
        name: "swizzle_vals",
        arity: (2, 2),
        usage: "swizzle, count",
        run: |a| match a[0].any("swizzle_vals")? {
            AnyLayout::Swizzle(swizzle) => list(a[1].integer("swizzle_vals")?, |i| {
                Ok(Value::int(swizzle.apply(i)))
            }),
            _ => Err(expected("swizzle_vals", "a swizzle", &a[0])),
        },
    },
    Op {
        name: "take",
        arity: (3, 3),
        usage: "layout, begin, end",
        run: |a| {
            let (b, e) = range("take", a)?;
            on_domain("take", a, |l| take(l, b, e))
        },
    },
    Op {
        name: "tile_to_shape",
        arity: (2, 3),
        usage: "layout, shape [, order]",
        run: |a| {
            let target = a[1].shape("tile_to_shape")?;
            let order = a
                .get(2)
                .map(|order| order.tuple("tile_to_shape"))
                .transpose()?;
            on_domain("tile_to_shape", a, |l| tile_to_shape(l, target, order))
        },
    },
    Op {
        name: "tiled_divide",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("tiled_divide", a, tiled_divide),
    },
    Op {
        name: "tiled_product",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("tiled_product", a, tiled_product),
    },
    Op {
        name: "unflatten",
        arity: (2, 2),
        usage: "layout, profile",
        run: |a| {
            let p = a[1].shape("unflatten")?;
            on_domain("unflatten", a, |l| unflatten(l, p))
        },
    },
    Op {
        name: "upcast",
        arity: (2, 2),
        usage: "layout, factor",
        run: |a| cast("upcast", a, upcast, |l, n| recast_any(l, 1, n)),
    },
    Op {
        name: "vals",
        arity: (1, 1),
        usage: "layout",
        run: |a| {
            let layout = a[0].any("vals")?;
            let domain = layout.domain()?;
            list(domain.size(), |i| value_at("vals", &a[0], &Value::int(i)))
        },
    },
    Op {
        name: "weakly_congruent",
        arity: (2, 2),
        usage: "shape, shape",
        run: |a| {
            Ok(Value::Bool(weakly_congruent(
                a[0].shape("weakly_congruent")?,
                a[1].shape("weakly_congruent")?,
            )))
        },
    },
    Op {
        name: "zip",
        arity: (1, 1),
        usage: "layout",
        run: |a| on_domain("zip", a, zip),
    },
    Op {
        name: "zipped_divide",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("zipped_divide", a, zipped_divide),
    },
    Op {
        name: "zipped_product",
        arity: (2, 2),
        usage: "layout, tiler",
        run: |a| on_tiler("zipped_product", a, zipped_product),
    },
];

/// Applies an operation by its name.
///
/// # Errors
/// There is no such operation, the number or kind of arguments is wrong, or the operation refuses.
///
/// ```
/// use cutemplate::layout::protocol::apply;
/// let result = apply("complement", &["4:2".parse()?, "19".parse()?])?;
/// assert_eq!(result.to_string(), "(2,3):(1,8)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn apply(name: &str, arguments: &[Value]) -> Result<Value, LayoutError> {
    let Ok(at) = OPS.binary_search_by(|op| op.name.cmp(name)) else {
        let nearest = OPS
            .iter()
            .max_by(|x, y| near(name, x.name).total_cmp(&near(name, y.name)));
        return Err(LayoutError::new("apply", Class::Argument)
            .found(format!("operation `{name}`"))
            .required("the name of an operation")
            .help(nearest.map_or(String::new(), |op| {
                format!("the nearest name is `{}`", op.name)
            })));
    };
    let op = &OPS[at];
    if arguments.len() < op.arity.0 || arguments.len() > op.arity.1 {
        return Err(LayoutError::new(op.name, Class::Argument)
            .found(format!("{} arguments", arguments.len()))
            .required(format!("{}({})", op.name, op.usage)));
    }
    (op.run)(arguments)
}

fn near(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b)
}

fn count(value: usize) -> Value {
    Value::int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn range(op: &'static str, a: &[Value]) -> Result<(usize, usize), LayoutError> {
    Ok((a[1].index(op)?, a[2].index(op)?))
}

fn pad(
    op: &'static str,
    a: &[Value],
    apply: fn(&Layout, usize, &Layout) -> Result<Layout, LayoutError>,
) -> Answer {
    let rank = a[1].index(op)?;
    let mode = a
        .get(2)
        .map_or(Ok(Layout::unit()), |mode| mode.plain(op).cloned())?;
    on_domain(op, a, |layout| apply(layout, rank, &mode))
}

fn product_of_layouts(
    op: &'static str,
    a: &[Value],
    apply: fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
) -> Answer {
    let tiler = match &a[1] {
        // An integer stands for its compact layout.
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

fn ceil_div_op(a: &[Value]) -> Answer {
    let target = a[0].shape("ceil_div")?;
    match &a[1] {
        Value::Layout(tiler) => Ok(Value::Tuple(ceil_div_layout(
            target,
            tiler.plain("ceil_div")?,
        )?)),
        other => Ok(Value::Tuple(ceil_div(target, other.tuple("ceil_div")?)?)),
    }
}

fn complement_op(a: &[Value]) -> Answer {
    let layout = a[0].any("complement")?;
    let domain = layout.domain()?;
    match (a.get(1), layout) {
        (Some(cotarget), _) => some(complement(domain, cotarget.shape("complement")?)?),
        (None, AnyLayout::Plain(_)) => some(complement_in_cosize(domain)?),
        (None, _) => some(complement(domain, &IntTuple::int(domain.cosize()?))?),
    }
}

fn composition_op(a: &[Value]) -> Answer {
    let left = a[0].any("composition")?;
    match &a[1] {
        Value::Layout(right) => any(compose_any(left, right)?),
        other => any(compose_any_by(left, &other.tiler("composition")?)?),
    }
}

fn slice_op(a: &[Value]) -> Answer {
    let coord = a[1].tuple("slice")?;
    match a[0].any("slice")? {
        AnyLayout::Plain(layout) => some(slice(coord, layout)?),
        layout => any(slice_and_offset_any(coord, layout, CoordKind::Static)?.0),
    }
}

fn slice_and_offset_op(a: &[Value]) -> Answer {
    let kind = match a.get(2) {
        None => CoordKind::Static,
        Some(Value::Word(word)) if word == "static coord" => CoordKind::Static,
        Some(Value::Word(word)) if word == "dynamic coord" => CoordKind::Dynamic,
        Some(other) => {
            return Err(expected(
                "slice_and_offset",
                "`static coord` or `dynamic coord`",
                other,
            ));
        }
    };
    let (slice, offset) = slice_and_offset_any(
        a[1].tuple("slice_and_offset")?,
        a[0].any("slice_and_offset")?,
        kind,
    )?;
    Ok(Value::List(
        vec![Value::Layout(slice), Value::int(offset)],
        ';',
    ))
}

/// The value of a layout, or the index in a shape, at a coordinate.
fn value_at(op: &'static str, layout: &Value, coord: &Value) -> Answer {
    let coord = coord.tuple(op)?;
    match layout {
        Value::Layout(AnyLayout::Plain(layout)) => Ok(Value::Tuple(crd2idx(coord, layout)?)),
        Value::Layout(AnyLayout::Composed(layout)) => Ok(Value::int(layout.crd2idx(coord)?)),
        Value::Layout(AnyLayout::Swizzle(swizzle)) => {
            let index = coord
                .as_int()
                .ok_or_else(|| expected(op, "an integer", &Value::Tuple(coord.clone())))?;
            Ok(Value::int(swizzle.apply(index)))
        }
        other => Ok(Value::int(crd2idx_shape(coord, other.tuple(op)?)?)),
    }
}

fn list(count: i64, each: impl Fn(i64) -> Answer) -> Answer {
    if !(0..=MOST_LISTED).contains(&count) {
        return Err(LayoutError::new("vals", Class::Limit)
            .found(format!("{count} values"))
            .required(format!("from 0 to {MOST_LISTED}")));
    }
    Ok(Value::List(
        (0..count).map(each).collect::<Result<_, _>>()?,
        ',',
    ))
}
