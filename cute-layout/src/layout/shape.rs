//! Arithmetic and relations of shapes: `ceil_div`, `shape_div`, `compatible`, `congruent`, `evenly_divides`.

use super::complement::complement;
use super::core::Layout;
use super::error::{Class, LayoutError, add, mul};
use super::int_tuple::{IntTuple, Shape};
use super::leaf::Leaf;
use super::number::{self, equal, never_one, quotient, times, unknown};
use super::symbol::Term;
use super::tiler::{Tiler, TilerModes};

/// Division rounded up, as CuTe's `ceil_div` of shapes: tuple by tuple entry by entry (missing entries are 1), tuple by
/// integer from left to right, integer by tuple by its size.
///
/// *Law.* At each leaf the least `q` with `q * b >= a`.
///
/// *Source.* `cute/int_tuple.hpp`, `ceil_div`.
///
/// # Errors
/// The divisor has more modes, or an entry is not positive.
///
/// ```
/// use cute_layout::layout::ceil_div;
/// assert_eq!(ceil_div(&(12, 32).into(), &100.into())?.to_string(), "(1,4)");
/// assert_eq!(ceil_div(&(100, 30).into(), &(32, 8).into())?.to_string(), "(4,4)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn ceil_div(a: &Shape, b: &Shape) -> Result<Shape, LayoutError> {
    divide("ceil_div", a, b, &ceil_div_leaf).map_err(|e| e.within("ceil_div", &[("a", a), ("b", b)]))
}

/// `ceil_div(target, Layout)`: how many tiles of a layout cover a target, CuTe's computation of a grid.
///
/// *Law.* The shape of `complement(tiler, target)`.
///
/// *Source.* `cute/layout.hpp`, `ceil_div(target, layout)`.
///
/// # Errors
/// As for [`complement`].
///
/// ```
/// use cute_layout::layout::ceil_div_layout;
/// // Blocks of 128 elements cover 1000 elements.
/// assert_eq!(ceil_div_layout(&1000.into(), &"128:1".parse()?)?.to_string(), "8");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn ceil_div_layout(target: &Shape, tiler: &Layout) -> Result<Shape, LayoutError> {
    let shape = complement(tiler, target)?.into_parts().0;
    // A part of extent 1 is left out, so the profile depends on the numbers.
    let names = tiler.shape().raw().iter().filter(|extent| !extent.is_int());
    let mut parts = shape.raw().iter().chain(names);
    if let Some(part) = parts.find(|part| !shape.is_leaf() && !never_one(part.bare())) {
        return Err(unknown("ceil_div", format!("{} tiles", IntTuple::leaf(*part)))
            .of(&[("target", target), ("tiler", tiler)])
            .required("more than one tile, always"));
    }
    Ok(shape)
}

/// Division of shapes where one extent divides the other (CuTe's `shape_div`); tuples as in [`ceil_div`].
///
/// *Law.* `size(shape_div(a, b)) * size(b) == size(a)` where `b` divides `a`; 1 where `a` divides `b`.
///
/// *Source.* `cute/int_tuple.hpp`, `shape_div`.
///
/// # Errors
/// Neither extent of a pair divides the other, or the ranks differ.
///
/// ```
/// use cute_layout::layout::shape_div;
/// assert_eq!(shape_div(&(4, 5, 6).into(), &40.into())?.to_string(), "(1,1,3)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn shape_div(a: &Shape, b: &Shape) -> Result<Shape, LayoutError> {
    if !a.is_leaf() && !b.is_leaf() && a.rank() != b.rank() {
        return Err(ranks("shape_div", a, b));
    }
    divide("shape_div", a, b, &|x, y| {
        if quotient(x, y).is_some() || quotient(y, x).is_some() {
            return ceil_div_leaf(x, y);
        }
        if !x.is_int() || !y.is_int() {
            return Err(unknown("shape_div", format!("{} and {}", IntTuple::leaf(x), IntTuple::leaf(y)))
                .required("one that always divides the other"));
        }
        if x.value > 0 && y.value > 0 {
            return Err(LayoutError::on("shape_div", Class::ShapeDiv, &[("a", a), ("b", b)])
                .found(format!("{} and {} ({} mod {} = {})", x.value, y.value, x.value, y.value, x.value % y.value))
                .required("one divides the other"));
        }
        ceil_div_leaf(x, y)
    })
    .map_err(|e| e.within("shape_div", &[("a", a), ("b", b)]))
}

type LeafDivision<'a> = dyn Fn(Leaf, Leaf) -> Result<Leaf, LayoutError> + 'a;

fn divide(op: &'static str, a: &Shape, b: &Shape, by: &LeafDivision<'_>) -> Result<Shape, LayoutError> {
    match (a.is_leaf(), b.is_leaf()) {
        (true, true) => Ok(IntTuple::leaf(by(a.raw()[0], b.raw()[0])?)),
        (true, false) => Ok(IntTuple::leaf(by(a.raw()[0], b.product_leaf()?)?)),
        (false, false) => {
            if a.rank() < b.rank() {
                return Err(ranks(op, a, b));
            }
            let mut divisors = b.modes();
            let modes: Result<Vec<IntTuple>, _> =
                a.modes().map(|x| divide(op, &x, &divisors.next().unwrap_or(IntTuple::int(1)), by)).collect();
            IntTuple::tuple(modes?)
        }
        (false, true) => {
            // The divisor is used up from left to right.
            let mut rest = b.clone();
            let mut modes = Vec::new();
            for x in a.modes() {
                let quotient = divide(op, &x, &rest, by)?;
                rest = divide(op, &rest, &x, by)?;
                modes.push(quotient);
            }
            IntTuple::tuple(modes)
        }
    }
}

fn ceil_div_leaf(a: Leaf, b: Leaf) -> Result<Leaf, LayoutError> {
    if b.value < 1 || a.value < 0 || Term::of(a).is_none() || Term::of(b).is_none() {
        return Err(LayoutError::new("ceil_div", Class::Extent)
            .found(format!("{} / {}", IntTuple::leaf(a), IntTuple::leaf(b)))
            .required("a divisor of at least 1 and a dividend of at least 0"));
    }
    number::ceil_div(a, b)
}

/// Rounds each extent up to a multiple (CuTe's `round_up`).
///
/// *Law.* At each leaf `ceil_div(a, b) * b`.
///
/// *Source.* `cute/int_tuple.hpp`, `round_up`.
///
/// # Errors
/// The ranks differ, an entry is not positive, or a result does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::round_up;
/// assert_eq!(round_up(&(100, 30).into(), &(32, 8).into())?.to_string(), "(128,32)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn round_up(a: &Shape, b: &Shape) -> Result<Shape, LayoutError> {
    divide("round_up", a, b, &|x, y| times(ceil_div_leaf(x, y)?, y))
        .map_err(|e| e.within("round_up", &[("a", a), ("b", b)]))
}

/// Whether two tuples have the same profile (CuTe's `congruent`).
///
/// *Law.* An equivalence: the same parentheses around other numbers.
///
/// *Source.* `cute/int_tuple.hpp`, `congruent`.
///
/// ```
/// use cute_layout::layout::congruent;
/// assert!(congruent(&(4, (2, 3)).into(), &(1, (1, 1)).into()));
/// assert!(!congruent(&(4, (2, 3)).into(), &(4, 6).into()));
/// ```
#[must_use]
pub fn congruent(a: &IntTuple, b: &IntTuple) -> bool {
    a.congruent(b)
}

/// Whether B's profile refines A's: wherever A has a tuple, B has one of the same rank (CuTe's `weakly_congruent`).
///
/// *Law.* A partial order of profiles, with the leaf at its bottom.
///
/// *Source.* `cute/int_tuple.hpp`, `weakly_congruent`.
///
/// ```
/// use cute_layout::layout::weakly_congruent;
/// assert!(weakly_congruent(&(1, 1).into(), &((2, 2), 6).into()));
/// assert!(!weakly_congruent(&((2, 2), 6).into(), &(4, 6).into()));
/// ```
#[must_use]
pub fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> bool {
    if a.is_leaf() {
        return true;
    }
    !b.is_leaf() && a.rank() == b.rank() && a.modes().zip(b.modes()).all(|(x, y)| weakly_congruent(&x, &y))
}

/// Whether every coordinate of A is a coordinate of B: at each leaf of A, B has the same size (CuTe's `compatible`).
///
/// *Law.* A partial order of shapes: `compatible(A, B)` and `compatible(B, A)` only where `A == B`; sizes are equal.
///
/// *Source.* `cute/int_tuple.hpp`, `compatible`.
///
/// ```
/// use cute_layout::layout::compatible;
/// assert_eq!(compatible(&24.into(), &(4, 6).into()), Ok(true));
/// assert_eq!(compatible(&((2, 2), 6).into(), &(4, (2, 3)).into()), Ok(false));
/// ```
pub fn compatible(a: &Shape, b: &Shape) -> Result<bool, LayoutError> {
    if !a.is_leaf() {
        if b.is_leaf() || a.rank() != b.rank() {
            return Ok(false);
        }
        let modes = a.modes().zip(b.modes());
        let all: Result<Vec<bool>, _> = modes.map(|(x, y)| compatible(&x, &y)).collect();
        return Ok(all?.into_iter().all(|same| same));
    }
    same_size("compatible", a.raw()[0].bare(), b.product_leaf()?)
}

/// Whether two numbers are the same, or an error where that depends on the values of names.
fn same_size(op: &'static str, a: Leaf, b: Leaf) -> Result<bool, LayoutError> {
    equal(a, b).ok_or_else(|| {
        unknown(op, format!("{} and {}", IntTuple::leaf(a), IntTuple::leaf(b)))
            .required("sizes that are always the same, or never")
    })
}

/// Whether a tiler divides a shape without a rest (CuTe's `evenly_divides`).
///
/// *Law.* `size(logical_divide(make_layout(shape), tiler)) == size(shape)`.
///
/// *Source.* `cute/layout.hpp`, `evenly_divides`.
///
/// # Errors
/// As for [`ceil_div`].
///
/// ```
/// use cute_layout::layout::{Tiler, evenly_divides};
/// assert!(evenly_divides(&(12, 32).into(), &"(4,8)".parse()?)?);
/// assert!(!evenly_divides(&(12, 32).into(), &"(5,8)".parse()?)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn evenly_divides(shape: &Shape, tiler: &Tiler) -> Result<bool, LayoutError> {
    let (tile, tiles) = match tiler.modes() {
        TilerModes::ByMode(entries) if entries > shape.rank() => return Ok(false),
        TilerModes::ByMode(_) => {
            return shape.modes().zip(tiler.entries()).try_fold(true, |all, (m, t)| Ok(all && evenly_divides(&m, &t)?));
        }
        TilerModes::Keep => return Ok(true),
        TilerModes::Terminal(layout) => (layout.shape(), ceil_div_layout(shape, layout)?),
        TilerModes::Extent(extent) => (extent, ceil_div(shape, extent)?),
    };
    same_size("evenly_divides", shape.product_leaf()?, times(tile.product_leaf()?, tiles.product_leaf()?)?)
}

/// The sum of the products of two tuples of the same profile (CuTe's `inner_product`).
///
/// *Law.* The sum of `a_k * b_k` over the leaves.
///
/// *Source.* `cute/int_tuple.hpp`, `inner_product`.
///
/// # Errors
/// The profiles differ, a leaf is not an integer, or the sum does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::inner_product;
/// assert_eq!(inner_product(&(2, (3, 4)).into(), &(5, (6, 7)).into())?, 56);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn inner_product(a: &IntTuple, b: &IntTuple) -> Result<i64, LayoutError> {
    match (a.ints(), b.ints()) {
        (Some(x), Some(y)) if a.congruent(b) => x.iter().zip(&y).try_fold(0, |sum, (x, y)| add(sum, mul(*x, *y)?)),
        _ => Err(ranks("inner_product", a, b)),
    }
}

/// The product of each mode, as a tuple (CuTe's `product_each`).
///
/// *Law.* Mode `k` of the result is `size(mode k)`.
///
/// *Source.* `cute/int_tuple.hpp`, `product_each`.
///
/// # Errors
/// As for [`IntTuple::size`].
///
/// ```
/// use cute_layout::layout::product_each;
/// assert_eq!(product_each(&((2, 3), 4).into())?.to_string(), "(6,4)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn product_each(shape: &Shape) -> Result<Shape, LayoutError> {
    let modes: Result<Vec<IntTuple>, _> = shape.modes().map(|mode| mode.product()).collect();
    IntTuple::tuple(modes?)
}

fn ranks(op: &'static str, a: &IntTuple, b: &IntTuple) -> LayoutError {
    LayoutError::on(op, Class::MismatchedRanks, &[("a", a), ("b", b)])
        .found(format!("rank {} and rank {}", a.rank(), b.rank()))
        .required("profiles that fit each other")
}
