//! Coordinates: to an index, back, between shapes.

use super::core::Layout;
use super::error::{Class, LayoutError, add, mul};
use super::int_tuple::{Coord, IntTuple, Leaves, Shape, not_integer};
use super::leaf::{BasisPath, Leaf};
use super::number::{Sum, below, magnitude, unknown};

/// The value of a layout at a coordinate (CuTe's `crd2idx(coord, layout)`).
///
/// Each entry of the coordinate is an integer for a whole mode, split colexicographically, or a tuple for the mode's
/// modes. The last leaf of a mode that is split goes on without bound, as in CuTe. With basis strides the value is a
/// coordinate.
///
/// *Law.* `crd2idx(c, S:D)` is the sum of each leaf's coordinate times its stride.
///
/// *Source.* `cute/stride.hpp`, `crd2idx`.
///
/// # Errors
/// The coordinate's profile does not fit the shape, an entry is not an integer, or the value does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::{Layout, crd2idx};
/// let layout: Layout = "((2,3),4):((1,8),2)".parse()?;
/// assert_eq!(crd2idx(&((1, 2), 3).into(), &layout)?.as_int(), Some(23));
/// assert_eq!(crd2idx(&(5, 3).into(), &layout)?.as_int(), Some(23));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn crd2idx(coord: &Coord, layout: &Layout) -> Result<IntTuple, LayoutError> {
    if layout.int_strides() {
        return crd2idx_int(coord, layout).map(IntTuple::int);
    }
    let mut value = Value::default();
    digits(coord, layout.shape(), 0, &mut |i, digit| value.add(layout.stride().raw()[i], &[Leaf::int(digit)], 1))
        .and_then(|()| value.shaped_like(layout.stride(), 0))
        .map_err(|e| e.within("crd2idx", &[("coord", coord), ("layout", layout)]))
}

/// The value of a layout with integer strides at a coordinate (CuTe's `crd2idx`, and `layout(coord)`).
///
/// *Law.* `crd2idx_int(c, L) == sum of c_k * d_k` over the leaves.
///
/// *Source.* `cute/stride.hpp`, `crd2idx`.
///
/// # Errors
/// As for [`crd2idx`], and where a stride is not an integer.
///
/// ```
/// use cute_layout::layout::{Layout, crd2idx_int};
/// let layout: Layout = "(3,(2,3)):(3,(12,1))".parse()?;
/// // One element by its index, its coordinate in two modes, and its natural coordinate.
/// assert_eq!(crd2idx_int(&16.into(), &layout)?, 17);
/// assert_eq!(crd2idx_int(&(1, 5).into(), &layout)?, 17);
/// assert_eq!(crd2idx_int(&(1, (1, 2)).into(), &layout)?, 17);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn crd2idx_int(coord: &Coord, layout: &Layout) -> Result<i64, LayoutError> {
    if let Some(index) = coord.as_int() {
        return layout.at(index);
    }
    let strides = layout.stride().raw();
    let mut value = 0i64;
    digits(coord, layout.shape(), 0, &mut |i, digit| {
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
/// *Source.* `cute/stride.hpp`, `crd2idx(coord, shape)`.
///
/// # Errors
/// The coordinate's profile does not fit the shape, or the index does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::crd2idx_shape;
/// assert_eq!(crd2idx_shape(&(1, (1, 2)).into(), &(3, (2, 3)).into())?, 16);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn crd2idx_shape(coord: &Coord, shape: &Shape) -> Result<i64, LayoutError> {
    let failed = |e: LayoutError| e.within("crd2idx", &[("coord", coord), ("shape", shape)]);
    if let Some(index) = coord.as_int() {
        return Ok(index);
    }
    let (mut index, mut weight) = (0i128, 1i128);
    digits(coord, shape, 0, &mut |i, digit| {
        let leaf = shape.raw()[i];
        if !leaf.is_int() {
            return Err(not_integer("size", shape));
        }
        let part = weight.checked_mul(digit.into()).and_then(|part| index.checked_add(part));
        index = part.ok_or_else(|| LayoutError::overflow("crd2idx", format!("{digit} * {weight}")))?;
        weight = weight.saturating_mul(leaf.value.into());
        Ok(())
    })
    .map_err(failed)?;
    i64::try_from(index).map_err(|_| failed(LayoutError::overflow("crd2idx", format!("index {index}"))))
}

/// The coordinate of an index in a shape, colexicographically; the last leaf has no bound (CuTe's `idx2crd`).
///
/// *Law.* Congruent with the shape where the index is an integer, and [`crd2idx_shape`] gives the index back.
///
/// *Source.* `cute/stride.hpp`, `idx2crd`.
///
/// # Errors
/// The index is a tuple that does not fit the shape, or an extent is not positive.
///
/// ```
/// use cute_layout::layout::idx2crd;
/// assert_eq!(idx2crd(&9.into(), &(4, 4).into())?.to_string(), "(1,2)");
/// assert_eq!(idx2crd(&30.into(), &(4, 4).into())?.to_string(), "(2,7)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn idx2crd(index: &IntTuple, shape: &Shape) -> Result<Coord, LayoutError> {
    super::core::check_shape(shape).map_err(|e| e.within("idx2crd", &[("index", index), ("shape", shape)]))?;
    let mut leaves = Leaves::from_slice(shape.raw());
    digits(index, shape, 0, &mut |i, digit| {
        leaves[i] = Leaf::int(digit).nested_like(leaves[i]);
        Ok(())
    })
    .map_err(|e| e.within("idx2crd", &[("index", index), ("shape", shape)]))?;
    Ok(IntTuple::from_leaves(leaves))
}

/// The coordinate in another shape with the same index (CuTe's `crd2crd`).
///
/// *Law.* `crd2idx_shape(crd2crd(c, S, T), T) == crd2idx_shape(c, S)`.
///
/// *Source.* `cute/stride.hpp`, `crd2crd`.
///
/// # Errors
/// A profile does not fit.
///
/// ```
/// use cute_layout::layout::crd2crd;
/// assert_eq!(crd2crd(&7.into(), &24.into(), &((2, 3), 4).into())?.to_string(), "((1,0),1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
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

/// Gives the coordinate of each leaf of the shape, with the number of the leaf from `first` on.
pub(crate) fn digits(
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
            if !leaf.is_int() {
                // An index that is always inside the mode.
                if rest < 0 || !below(Leaf::int(rest), leaf.bare()) {
                    return Err(unknown(
                        "crd2idx",
                        format!("index {rest} in a mode of extent {}", IntTuple::leaf(*leaf)),
                    )
                    .required("a coordinate for each leaf, or an index that is always inside"));
                }
                each(first + i, rest)?;
                rest = 0;
                continue;
            }
            if leaf.value == 0 {
                return Err(coord_mismatch(coord, shape));
            }
            each(first + i, rest % leaf.value)?;
            rest /= leaf.value;
        }
        return Ok(());
    }
    if coord.is_leaf() || shape.is_leaf() || coord.rank() != shape.rank() {
        return Err(coord_mismatch(coord, shape));
    }
    let mut next = first;
    for (c, s) in coord.modes().zip(shape.modes()) {
        digits(&c, &s, next, each)?;
        next += s.leaf_count();
    }
    Ok(())
}

pub(super) fn coord_mismatch(coord: &IntTuple, shape: &IntTuple) -> LayoutError {
    LayoutError::on("crd2idx", Class::MismatchedRanks, &[("coord", coord), ("shape", shape)])
        .found(format!("coordinate {coord} for shape {shape}"))
        .required("an integer, or a tuple of the same rank with a coordinate for each mode")
}

/// A value of a layout whose strides are basis elements: one integer for each path.
#[derive(Default)]
struct Value(std::collections::BTreeMap<Vec<u8>, Sum>);

impl Value {
    /// Adds `sign` times a product to the place that a stride points to.
    fn add(&mut self, stride: Leaf, factors: &[Leaf], sign: i64) -> Result<(), LayoutError> {
        let number = if stride.tag().is_basis() { Leaf::int(stride.value) } else { stride.bare() };
        let product = super::number::product(factors.iter().copied().chain([number]))?;
        self.0.entry(stride.tag().path().as_slice().to_vec()).or_default().add(&[product], sign)
    }

    /// The value as a tuple whose profile holds every path of the strides.
    fn shaped_like(&self, stride: &IntTuple, more: i64) -> Result<IntTuple, LayoutError> {
        let paths: Vec<BasisPath> = stride.raw().iter().filter(|d| !d.is_zero()).map(|d| d.tag().path()).collect();
        let paths: Vec<&[u8]> = paths.iter().map(BasisPath::as_slice).collect();
        self.at(&mut Vec::new(), &paths, more)
    }

    fn at(&self, here: &mut Vec<u8>, paths: &[&[u8]], more: i64) -> Result<IntTuple, LayoutError> {
        let below: Vec<&[u8]> =
            paths.iter().copied().filter(|path| path.len() > here.len() && path.starts_with(here)).collect();
        let Some(most) = below.iter().map(|path| path[here.len()]).max() else {
            let mut sum = self.0.get(here.as_slice()).cloned().unwrap_or_default();
            sum.add(&[Leaf::int(more)], 1)?;
            return sum.leaf().map(IntTuple::leaf).ok_or_else(|| {
                LayoutError::new("crd2idx", Class::StrideKind)
                    .found(format!("the sum {sum}"))
                    .required("a number or a product")
                    .because("a leaf of a tuple is not a sum")
            });
        };
        if paths.contains(&here.as_slice()) {
            return Err(LayoutError::new("crd2idx", Class::StrideKind)
                .found("an integer stride and a basis stride at the same place of the codomain")
                .required("strides that all point to leaves of one codomain"));
        }
        let mut modes = Vec::new();
        for index in 0..=most {
            here.push(index);
            let mode = self.at(here, paths, more);
            here.pop();
            modes.push(mode?);
        }
        IntTuple::tuple(modes)
    }
}

impl Layout {
    /// The value at a coordinate; see [`crd2idx`].
    ///
    /// *Law.* `crd2idx(c, S:D)` is the sum of each leaf's coordinate times its stride.
    ///
    /// *Source.* `cute/stride.hpp`, `crd2idx`.
    ///
    /// # Errors
    /// As for [`crd2idx`].
    pub fn crd2idx(&self, coord: &Coord) -> Result<IntTuple, LayoutError> {
        crd2idx(coord, self)
    }

    /// The smallest shape that holds every value, CuTe's `coshape`: an integer for integer strides, a tuple for basis
    /// strides.
    ///
    /// *Law.* `0 <= layout(c) < coshape(layout)` at every coordinate, leaf by leaf, where no stride is negative.
    ///
    /// *Source.* `cute/layout.hpp`, `coshape`.
    ///
    /// # Errors
    /// It is a sum of symbols, or a number does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// assert_eq!("(4,M):(1,4)".parse::<Layout>()?.coshape()?.to_string(), "4*M");
    /// assert_eq!("(4,8):(1,5)".parse::<Layout>()?.coshape()?.to_string(), "39");
    /// assert_eq!("(4,8):(1@0,2@1)".parse::<Layout>()?.coshape()?.to_string(), "(4,15)");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn coshape(&self) -> Result<Shape, LayoutError> {
        let mut last = Value::default();
        let mut reach = || -> Result<IntTuple, LayoutError> {
            for (s, d) in self.pairs() {
                let size = magnitude(d)?;
                last.add(size, &[s.bare()], 1)?;
                last.add(size, &[], -1)?;
            }
            last.shaped_like(self.stride(), 1)
        };
        reach().map_err(|e| e.within("coshape", &[("layout", self)]))
    }
}
