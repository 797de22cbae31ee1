//! Coordinates: to an index, back, between shapes; slicing and dicing.

use super::core::{Layout, div_rem};
use super::error::{Class, LayoutError, abs, add, mul};
use super::int_tuple::{Coord, IntTuple, Leaves, Shape};
use super::leaf::{BasisPath, Leaf};

/// The value of a layout at a coordinate (CuTe's `crd2idx(coord, layout)`).
///
/// Each entry of the coordinate is an integer for a whole mode, split colexicographically, or a tuple for the mode's
/// modes. The last leaf of a mode that is split goes on without bound, as in CuTe. With basis strides the value is a
/// coordinate.
///
/// # Errors
/// The coordinate's profile does not fit the shape, an entry is not an integer, or the value does not fit in 64 bits.
///
/// ```
/// use cutemplate::layout::{Layout, crd2idx};
/// let layout: Layout = "((2,3),4):((1,8),2)".parse()?;
/// assert_eq!(crd2idx(&((1, 2), 3).into(), &layout)?.as_int(), Some(23));
/// assert_eq!(crd2idx(&(5, 3).into(), &layout)?.as_int(), Some(23));
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn crd2idx(coord: &Coord, layout: &Layout) -> Result<IntTuple, LayoutError> {
    if layout.int_strides() {
        return crd2idx_int(coord, layout).map(IntTuple::int);
    }
    let mut value = Value::default();
    digits(coord, layout.shape(), &mut |i, digit| {
        let d = layout.stride().raw()[i];
        value.add(d.tag().path().as_slice(), mul(digit, d.value)?)
    })
    .map_err(|e| e.within("crd2idx", &[("coord", coord), ("layout", layout)]))?;
    if layout.stride().raw().iter().any(|d| d.tag().as_symbol().is_some()) {
        return Err(LayoutError::new("crd2idx", Class::StrideKind)
            .operand("layout", layout)
            .found(format!("strides {}", layout.stride()))
            .required("strides that are known"));
    }
    value.shaped_like(layout.stride())
}

/// The value of a layout with integer strides at a coordinate.
///
/// # Errors
/// As for [`crd2idx`], and where a stride is not an integer.
#[inline]
pub fn crd2idx_int(coord: &Coord, layout: &Layout) -> Result<i64, LayoutError> {
    let strides = layout.stride().raw();
    // The common case in one pass: an integer for each leaf, in the same parentheses.
    if coord.raw().len() == strides.len()
        && let Some(value) = coord.raw().iter().zip(strides).try_fold(0i64, |sum, (c, d)| {
            if c.meta != d.meta || !c.is_int() {
                return None;
            }
            c.value.checked_mul(d.value)?.checked_add(sum)
        })
    {
        return Ok(value);
    }
    crd2idx_mixed(coord, layout)
}

/// Integers for whole modes, beside tuples; and what is refused.
fn crd2idx_mixed(coord: &Coord, layout: &Layout) -> Result<i64, LayoutError> {
    if let Some(index) = coord.as_int() {
        return layout.at(index);
    }
    let strides = layout.stride().raw();
    let mut value = 0i64;
    digits(coord, layout.shape(), &mut |i, digit| {
        if !strides[i].is_int() {
            return Err(LayoutError::new("crd2idx", Class::StrideKind)
                .found(format!("strides {}", layout.stride()))
                .required("integer strides"));
        }
        value = add(value, mul(digit, strides[i].value)?)?;
        Ok(())
    })
    .map_err(|e| e.within("crd2idx", &[("coord", coord), ("layout", layout)]))?;
    Ok(value)
}

/// The index of a coordinate in a shape, colexicographically (CuTe's `crd2idx(coord, shape)`).
///
/// *Law.* `crd2idx_shape(idx2crd(i, shape), shape) == i` for every `i >= 0`.
///
/// # Errors
/// The coordinate's profile does not fit the shape, or the index does not fit in 64 bits.
pub fn crd2idx_shape(coord: &Coord, shape: &Shape) -> Result<i64, LayoutError> {
    let failed = |e: LayoutError| e.within("crd2idx", &[("coord", coord), ("shape", shape)]);
    if let Some(index) = coord.as_int() {
        return Ok(index);
    }
    if shape.is_leaf() {
        return Err(coord_mismatch(coord, shape));
    }
    let mut terms = Vec::new();
    horner(coord, shape, &mut terms).map_err(failed)?;
    let mut index = 0i64;
    for (c, s) in terms.iter().rev() {
        index = mul(index, *s).and_then(|product| add(product, *c)).map_err(failed)?;
    }
    Ok(index)
}

/// Pairs of coordinate and extent at the leaves of the coordinate.
fn horner(coord: &IntTuple, shape: &IntTuple, terms: &mut Vec<(i64, i64)>) -> Result<(), LayoutError> {
    if let Some(c) = coord.as_int() {
        terms.push((c, shape.size()?));
        return Ok(());
    }
    if coord.is_leaf() || shape.is_leaf() || coord.rank() != shape.rank() {
        return Err(coord_mismatch(coord, shape));
    }
    coord.modes().zip(shape.modes()).try_for_each(|(c, s)| horner(&c, &s, terms))
}

/// The coordinate of an index in a shape, colexicographically; the last leaf has no bound (CuTe's `idx2crd`).
///
/// *Law.* Congruent with the shape where the index is an integer, and [`crd2idx_shape`] gives the index back.
///
/// # Errors
/// The index is a tuple that does not fit the shape, or an extent is not positive.
///
/// ```
/// use cutemplate::layout::idx2crd;
/// assert_eq!(idx2crd(&9.into(), &(4, 4).into())?.to_string(), "(1,2)");
/// assert_eq!(idx2crd(&30.into(), &(4, 4).into())?.to_string(), "(2,7)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn idx2crd(index: &IntTuple, shape: &Shape) -> Result<Coord, LayoutError> {
    super::core::check_shape(shape).map_err(|e| e.within("idx2crd", &[("index", index), ("shape", shape)]))?;
    let mut leaves = Leaves::from_slice(shape.raw());
    digits(index, shape, &mut |i, digit| {
        leaves[i] = Leaf::int(digit).nested_like(leaves[i]);
        Ok(())
    })
    .map_err(|e| e.within("idx2crd", &[("index", index), ("shape", shape)]))?;
    Ok(IntTuple::from_leaves(leaves))
}

/// The coordinate in another shape with the same index (CuTe's `crd2crd`).
///
/// # Errors
/// A profile does not fit.
///
/// ```
/// use cutemplate::layout::crd2crd;
/// assert_eq!(crd2crd(&7.into(), &24.into(), &((2, 3), 4).into())?.to_string(), "((1,0),1)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn crd2crd(coord: &Coord, source: &Shape, target: &Shape) -> Result<Coord, LayoutError> {
    if coord.is_leaf() || source.is_leaf() || target.is_leaf() {
        return idx2crd(&IntTuple::int(crd2idx_shape(coord, source)?), target);
    }
    if coord.rank() != source.rank() || coord.rank() != target.rank() {
        return Err(coord_mismatch(coord, source)
            .within("crd2crd", &[("coord", coord), ("source", source), ("target", target)]));
    }
    let modes: Result<Vec<IntTuple>, _> =
        coord.modes().zip(source.modes()).zip(target.modes()).map(|((c, s), t)| crd2crd(&c, &s, &t)).collect();
    IntTuple::tuple(modes?)
}

/// Gives the coordinate of each leaf of the shape, with the number of the leaf.
pub(crate) fn digits(
    coord: &IntTuple,
    shape: &IntTuple,
    each: &mut dyn FnMut(usize, i64) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    digits_from(coord, shape, 0, each)
}

fn digits_from(
    coord: &IntTuple,
    shape: &IntTuple,
    first: usize,
    each: &mut dyn FnMut(usize, i64) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    if let Some(index) = coord.as_int() {
        let leaves = shape.raw();
        let mut rest = index;
        for (i, leaf) in leaves.iter().enumerate() {
            if i + 1 == leaves.len() {
                return each(first + i, rest);
            }
            if !leaf.is_int() || leaf.value == 0 {
                return Err(coord_mismatch(coord, shape));
            }
            let (quotient, digit) = div_rem(rest, leaf.value);
            rest = quotient;
            each(first + i, digit)?;
        }
        return Ok(());
    }
    if coord.is_leaf() || shape.is_leaf() || coord.rank() != shape.rank() {
        return Err(coord_mismatch(coord, shape));
    }
    let mut next = first;
    for (c, s) in coord.modes().zip(shape.modes()) {
        digits_from(&c, &s, next, each)?;
        next += s.leaf_count();
    }
    Ok(())
}

fn coord_mismatch(coord: &IntTuple, shape: &IntTuple) -> LayoutError {
    LayoutError::new("crd2idx", Class::MismatchedRanks)
        .operand("coord", coord)
        .operand("shape", shape)
        .found(format!("coordinate {coord} for shape {shape}"))
        .required("an integer, or a tuple of the same rank with a coordinate for each mode")
}

/// A value of a layout whose strides are basis elements: one integer for each path.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value(std::collections::BTreeMap<Vec<u8>, i64>);

impl Value {
    pub(crate) fn add(&mut self, path: &[u8], term: i64) -> Result<(), LayoutError> {
        let entry = self.0.entry(path.to_vec()).or_insert(0);
        *entry = add(*entry, term)?;
        Ok(())
    }

    /// The value as a tuple whose profile holds every path of the strides.
    pub(crate) fn shaped_like(&self, stride: &IntTuple) -> Result<IntTuple, LayoutError> {
        let paths: Vec<BasisPath> = stride.raw().iter().filter(|d| !d.is_zero()).map(|d| d.tag().path()).collect();
        let paths: Vec<&[u8]> = paths.iter().map(BasisPath::as_slice).collect();
        self.at(&mut Vec::new(), &paths)
    }

    fn at(&self, here: &mut Vec<u8>, paths: &[&[u8]]) -> Result<IntTuple, LayoutError> {
        let below: Vec<&[u8]> =
            paths.iter().copied().filter(|path| path.len() > here.len() && path.starts_with(here)).collect();
        let Some(most) = below.iter().map(|path| path[here.len()]).max() else {
            return Ok(IntTuple::int(self.0.get(here.as_slice()).copied().unwrap_or(0)));
        };
        if paths.contains(&here.as_slice()) {
            return Err(LayoutError::new("crd2idx", Class::StrideKind)
                .found("an integer stride and a basis stride at the same place of the codomain")
                .required("strides that all point to leaves of one codomain"));
        }
        let mut modes = Vec::new();
        for index in 0..=most {
            here.push(index);
            let mode = self.at(here, paths);
            here.pop();
            modes.push(mode?);
        }
        IntTuple::tuple(modes)
    }
}

impl Layout {
    /// The value at a coordinate; see [`crd2idx`].
    ///
    /// # Errors
    /// As for [`crd2idx`].
    pub fn crd2idx(&self, coord: &Coord) -> Result<IntTuple, LayoutError> {
        crd2idx(coord, self)
    }

    /// The smallest shape that holds every value, CuTe's `coshape`: an integer for integer strides, a tuple for basis
    /// strides.
    ///
    /// # Errors
    /// A stride is symbolic, or a number does not fit in 64 bits.
    pub fn coshape(&self) -> Result<Shape, LayoutError> {
        let mut last = Value::default();
        for (s, d) in self.pairs() {
            if d.tag().as_symbol().is_some() || !s.is_int() {
                return Err(LayoutError::new("coshape", Class::StrideKind)
                    .operand("layout", self)
                    .found(format!("mode {}:{}", IntTuple::leaf(s), IntTuple::leaf(d)))
                    .required("extents and strides that are known"));
            }
            last.add(d.tag().path().as_slice(), mul(s.value - 1, abs(d.value)?)?)?;
        }
        let mut shape = last.shaped_like(self.stride())?;
        for leaf in shape.raw_mut() {
            leaf.value = add(leaf.value, 1)?;
        }
        Ok(shape)
    }
}

/// Keeps the modes that the coordinate marks with `_` (CuTe's `slice`).
///
/// # Errors
/// The coordinate's profile does not fit, or it has no `_`.
///
/// ```
/// use cutemplate::layout::{Layout, slice};
/// let layout: Layout = "((3,2),((2,3),2)):((4,1),((2,15),100))".parse()?;
/// assert_eq!(slice(&"(_,1)".parse()?, &layout)?.to_string(), "((3,2)):((4,1))");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn slice(coord: &Coord, layout: &Layout) -> Result<Layout, LayoutError> {
    pick("slice", coord, layout, true)
}

/// Keeps the modes that the coordinate gives an integer for (CuTe's `dice`).
///
/// # Errors
/// The coordinate's profile does not fit, or it has no integer.
///
/// ```
/// use cutemplate::layout::{Layout, dice};
/// let layout: Layout = "((3,2),((2,3),2)):((4,1),((2,15),100))".parse()?;
/// assert_eq!(dice(&"((1,_),((_,0),_))".parse()?, &layout)?.to_string(), "(3,3):(4,15)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn dice(coord: &Coord, layout: &Layout) -> Result<Layout, LayoutError> {
    pick("dice", coord, layout, false)
}

fn pick(op: &'static str, coord: &Coord, layout: &Layout, underscores: bool) -> Result<Layout, LayoutError> {
    if coord.is_leaf() && coord.has_underscore() == underscores {
        return Ok(layout.clone());
    }
    let mut kept = Vec::new();
    lift(coord, layout, underscores, &mut kept).map_err(|e| e.within(op, &[("coord", coord), ("layout", layout)]))?;
    if kept.is_empty() {
        let required = if underscores { "a `_` in the coordinate" } else { "an integer in the coordinate" };
        return Err(LayoutError::new(op, Class::Argument)
            .operand("coord", coord)
            .operand("layout", layout)
            .found(coord.to_string())
            .required(required)
            .because("no mode is left, and there is no empty layout"));
    }
    Layout::from_modes(kept)
}

fn lift(coord: &IntTuple, layout: &Layout, underscores: bool, kept: &mut Vec<Layout>) -> Result<(), LayoutError> {
    if coord.is_leaf() {
        if coord.has_underscore() == underscores {
            kept.push(layout.clone());
        }
        return Ok(());
    }
    if layout.shape().is_leaf() || coord.rank() != layout.rank() {
        return Err(coord_mismatch(coord, layout.shape()));
    }
    coord.modes().zip(layout.modes()).try_for_each(|(c, mode)| lift(&c, &mode, underscores, kept))
}

/// The slice, and the value that the coordinate contributes with `_` as 0 (CuTe's `slice_and_offset`).
///
/// *Law.* The layout at a coordinate that fills the `_` is the offset plus the slice at what was filled in.
///
/// # Errors
/// As for [`slice`] and [`crd2idx`].
///
/// ```
/// use cutemplate::layout::{Layout, slice_and_offset};
/// let (row, offset) = slice_and_offset(&"(2,_)".parse()?, &"(4,8):(8,1)".parse()?)?;
/// assert_eq!((row.to_string(), offset.to_string()), ("(8):(1)".into(), "16".into()));
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn slice_and_offset(coord: &Coord, layout: &Layout) -> Result<(Layout, IntTuple), LayoutError> {
    Ok((slice(coord, layout)?, crd2idx(&zeroed(coord), layout)?))
}

/// The coordinate with 0 for `_`.
pub(crate) fn zeroed(coord: &Coord) -> Coord {
    let leaves =
        coord.raw().iter().map(|leaf| if leaf.tag().is_any() { Leaf::int(0).nested_like(*leaf) } else { *leaf });
    IntTuple::from_leaves(leaves.collect())
}

/// The layout seen from a coordinate on: the same layout, and the offset of its new origin (CuTe's `domain_offset`).
///
/// # Errors
/// As for [`crd2idx`].
pub fn domain_offset(coord: &Coord, layout: &Layout) -> Result<(Layout, IntTuple), LayoutError> {
    Ok((layout.clone(), crd2idx(coord, layout)?))
}
