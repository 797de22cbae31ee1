//! [`Layout`]: a shape and a stride of the same profile, a function from coordinates to indices.

use smallvec::SmallVec;

use super::error::{Class, LayoutError, abs, add, mul};
use super::int_tuple::{IntTuple, not_integer};
use super::leaf::Leaf;

/// A CuTe layout `S:D`: a shape and a stride of the same profile.
///
/// It maps the coordinate `(c0, c1, ..)` to `c0*d0 + c1*d1 + ..`, and an integer `i` to the value of the `i`-th
/// coordinate in colexicographic order (the first mode fastest). Beyond its size the last leaf goes on without bound, as
/// in CuTe. Extents are positive and their product fits in 64 bits.
///
/// ```
/// use cute_layout::layout::Layout;
/// let layout: Layout = "(2,4):(2,2)".parse()?;
/// let values: Result<Vec<i64>, _> = (0..layout.size()).map(|i| layout.at(i)).collect();
/// assert_eq!(values?, [0, 2, 2, 4, 4, 6, 6, 8]);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: IntTuple,
    stride: IntTuple,
}

impl Layout {
    /// A layout from a shape and a stride.
    ///
    /// # Errors
    /// The profiles differ, an extent is not positive or not an extent at all (a basis element, `_`), or the size does
    /// not fit in 64 bits.
    pub fn new(shape: IntTuple, stride: IntTuple) -> Result<Layout, LayoutError> {
        if !shape.congruent(&stride) {
            return Err(LayoutError::on("layout", Class::MismatchedRanks, &[("shape", &shape), ("stride", &stride)])
                .found(format!("shape {shape} and stride {stride}"))
                .required("a stride of the same profile as the shape")
                .because("every leaf of the shape has one stride"));
        }
        check_shape(&shape)?;
        if let Some(bad) = stride.raw().iter().find(|leaf| leaf.tag().is_any()) {
            return Err(LayoutError::on("layout", Class::Argument, &[("stride", &stride)])
                .found(IntTuple::leaf(*bad).to_string())
                .required("integers, basis elements or symbolic strides"));
        }
        Ok(Layout { shape, stride })
    }

    /// A layout whose parts are known to agree.
    pub(crate) fn from_parts(shape: IntTuple, stride: IntTuple) -> Layout {
        Layout { shape, stride }
    }

    /// The layout `extent:stride` of one leaf.
    ///
    /// # Errors
    /// The extent is not positive.
    pub fn mode_of(extent: i64, stride: i64) -> Result<Layout, LayoutError> {
        Layout::new(IntTuple::int(extent), IntTuple::int(stride))
    }

    /// CuTe's `1:0`, the layout of one element at 0.
    #[must_use]
    pub fn unit() -> Layout {
        Layout { shape: IntTuple::int(1), stride: IntTuple::int(0) }
    }

    /// Shape and stride, to write to.
    pub(super) fn parts_mut(&mut self) -> (&mut IntTuple, &mut IntTuple) {
        (&mut self.shape, &mut self.stride)
    }

    /// The layout with the given layouts as its modes (CuTe's `make_layout(layouts...)`).
    ///
    /// *Law.* `result(c0, c1, ..) == L0(c0) + L1(c1) + ..`.
    ///
    /// *Source.* `cute/layout.hpp`, `make_layout(layouts...)`.
    ///
    /// # Errors
    /// There is no layout, or the result exceeds a limit of [`IntTuple::tuple`].
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// let both = Layout::from_modes(["4:2".parse()?, "(2,3):(1,8)".parse()?])?;
    /// assert_eq!(both.to_string(), "(4,(2,3)):(2,(1,8))");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn from_modes<I>(modes: I) -> Result<Layout, LayoutError>
    where
        I: IntoIterator<Item = Layout>,
    {
        Layout::of_modes(modes.into_iter().map(Ok))
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &IntTuple {
        &self.shape
    }

    /// The stride.
    #[must_use]
    pub fn stride(&self) -> &IntTuple {
        &self.stride
    }

    /// Shape and stride, taken apart.
    #[must_use]
    pub fn into_parts(self) -> (IntTuple, IntTuple) {
        (self.shape, self.stride)
    }

    /// The number of modes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The depth of nesting; 0 for a single leaf.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.shape.depth()
    }

    /// One mode as a layout, or `None` past the rank.
    #[must_use]
    pub fn mode(&self, index: usize) -> Option<Layout> {
        Some(Layout { shape: self.shape.mode(index)?, stride: self.stride.mode(index)? })
    }

    /// The modes, left to right; a leaf is its own only mode.
    pub fn modes(&self) -> impl Iterator<Item = Layout> + Clone {
        self.shape.modes().zip(self.stride.modes()).map(|(shape, stride)| Layout { shape, stride })
    }

    /// The number of coordinates (CuTe's `size`). Where an extent is symbolic this is the product of the known ones.
    ///
    /// *Law.* The product of the extents.
    ///
    /// *Source.* `cute/layout.hpp`, `size`.
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// assert_eq!("((2,2),8):((1,4),2)".parse::<Layout>()?.size(), 32);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn size(&self) -> i64 {
        // The constructor has checked that the product fits.
        self.shape.raw().iter().fold(1, |size, leaf| size.wrapping_mul(leaf.value))
    }

    /// One more than the largest distance of an index from index 0, the size that a buffer must have. As in CuTe,
    /// negative strides count by their magnitude, and for basis strides it is the size of the codomain's shape.
    ///
    /// *Law.* `|layout(i)| < cosize(layout)` for every `i` below the size, and for no smaller number where all strides
    /// have one sign.
    ///
    /// *Source.* `cute/layout.hpp`, `cosize`.
    ///
    /// # Errors
    /// A stride is symbolic, or the result does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// assert_eq!("(4,8):(1,5)".parse::<Layout>()?.cosize()?, 39);
    /// assert_eq!("(4,2):(1,-10)".parse::<Layout>()?.cosize()?, 14);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        if self.int_strides() && self.static_shape() {
            let mut last = 0i64;
            for (s, d) in self.pairs() {
                last = add(last, mul(s.value - 1, abs(d.value)?)?)?;
            }
            return add(last, 1);
        }
        self.coshape()?.size()
    }

    /// The value at the `index`-th coordinate in colexicographic order (CuTe's `layout(i)`).
    ///
    /// *Law.* `layout.at(i) == crd2idx(idx2crd(i, shape), layout)`; past the size the last leaf goes on.
    ///
    /// *Source.* `cute/stride.hpp`, `crd2idx`.
    ///
    /// # Errors
    /// A stride is not an integer, or the value does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// let layout: Layout = "(2,4):(2,2)".parse()?;
    /// let values: Result<Vec<i64>, _> = (0..8).map(|i| layout.at(i)).collect();
    /// assert_eq!(values?, [0, 2, 2, 4, 4, 6, 6, 8]);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        if !self.int_strides() || !self.static_shape() {
            return Err(not_integer("crd2idx", if self.int_strides() { &self.shape } else { &self.stride }));
        }
        let overflow = || LayoutError::overflow("crd2idx", format!("{self} at {index}"));
        let (mut rest, mut value) = (index, 0i64);
        for (i, (s, d)) in self.pairs().enumerate() {
            let last = i + 1 == self.shape.leaf_count();
            let digit = if last { rest } else { rest % s.value };
            value = digit.checked_mul(d.value).and_then(|part| value.checked_add(part)).ok_or_else(overflow)?;
            rest /= s.value;
        }
        Ok(value)
    }

    /// The values at all indices below the size, in one addition each.
    ///
    /// *Law.* `values()[i] == at(i)` for every `i` below the size. CuTe has no such function.
    ///
    /// *Source.* `cute/layout.hpp`, `Layout::operator()`.
    ///
    /// # Errors
    /// As for [`Layout::at`].
    ///
    /// ```
    /// use cute_layout::layout::Layout;
    /// let layout: Layout = "(2,3):(3,1)".parse()?;
    /// assert_eq!(layout.values()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn values(&self) -> Result<Vec<i64>, LayoutError> {
        self.require_ints("values")?;
        let overflow = || LayoutError::overflow("values", self.to_string());
        let mut all = vec![0i64];
        for (s, d) in self.pairs() {
            let below = all.len();
            for step in 1..s.value {
                let moved = step.checked_mul(d.value).ok_or_else(overflow)?;
                all.extend_from_within(..below);
                for value in &mut all[step as usize * below..] {
                    *value = value.checked_add(moved).ok_or_else(overflow)?;
                }
            }
        }
        Ok(all)
    }

    /// The leaves as pairs of extent and stride.
    pub(crate) fn pairs(&self) -> impl DoubleEndedIterator<Item = (Leaf, Leaf)> + ExactSizeIterator {
        self.shape.raw().iter().copied().zip(self.stride.raw().iter().copied())
    }

    /// Every extent is an integer.
    pub(crate) fn static_shape(&self) -> bool {
        self.shape.raw().iter().all(|leaf| leaf.is_int())
    }

    /// Every stride is an integer.
    pub(crate) fn int_strides(&self) -> bool {
        self.stride.raw().iter().all(|leaf| leaf.is_int())
    }

    /// Every extent and stride is an integer, or an error that says which operation needs that.
    pub(crate) fn require_ints(&self, op: &'static str) -> Result<(), LayoutError> {
        if self.static_shape() && self.int_strides() {
            return Ok(());
        }
        Err(LayoutError::on(op, Class::StrideKind, &[("layout", self)])
            .found(format!("{self}"))
            .required("integers at every leaf of shape and stride")
            .because("the result depends on the order of the strides as numbers"))
    }
}

/// Extents must be positive, and their product must fit.
pub(crate) fn check_shape(shape: &IntTuple) -> Result<(), LayoutError> {
    for (i, leaf) in shape.raw().iter().enumerate() {
        if leaf.tag().is_any() || leaf.tag().is_basis() {
            return Err(LayoutError::on("layout", Class::Argument, &[("shape", shape)])
                .leaf(format!("leaf {i}"))
                .found(IntTuple::leaf(*leaf).to_string())
                .required("an extent"));
        }
        if leaf.value < 1 {
            return Err(LayoutError::on("layout", Class::Extent, &[("shape", shape)])
                .leaf(format!("leaf {i}"))
                .found(format!("extent {}", leaf.value))
                .required("an extent of at least 1")
                .because("a layout without coordinates has no values to speak of"));
        }
    }
    check_size(shape)
}

pub(crate) fn check_size(shape: &IntTuple) -> Result<(), LayoutError> {
    let size = shape.raw().iter().try_fold(1i64, |size, leaf| size.checked_mul(leaf.value));
    size.map(|_| ()).ok_or_else(|| LayoutError::overflow("layout", format!("the size of {shape}")))
}

/// Extent and stride of each leaf of a flat layout.
pub(crate) type Flat = SmallVec<[(Leaf, Leaf); 8]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_those_at_each_index() {
        for text in ["1:0", "7:3", "(2,(3,1),4):(5,(-2,9),0)", "((2,2),(4,2)):((1,8),(2,16))"] {
            let layout: Layout = text.parse().expect(text);
            let each: Vec<i64> = (0..layout.size()).map(|i| layout.at(i).expect("small")).collect();
            assert_eq!(layout.values(), Ok(each), "{text}");
        }
        for text in ["(2,M):(1,2)", "(2,3):(1@0,1@1)", "(2,3):(9223372036854775807,9223372036854775807)"] {
            assert!(text.parse::<Layout>().is_ok_and(|layout| layout.values().is_err()), "{text}");
        }
    }
}
