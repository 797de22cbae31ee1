//! Layouts written mode by mode.

use super::core::{Flat, Layout, check_size};
use super::error::LayoutError;
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::{Leaf, nest_pieces};

impl Layout {
    /// The layout with these modes, unless one of them is an error.
    ///
    /// # Errors
    /// There is no mode, or the result exceeds a limit.
    pub(crate) fn of_modes(modes: impl Iterator<Item = Result<Layout, LayoutError>>) -> Result<Layout, LayoutError> {
        let mut out = Layout::empty();
        for mode in modes {
            out.push_mode(&mode?);
        }
        out.wrap_modes()?;
        Ok(out)
    }

    /// A layout to be written to: no leaves yet, so not a layout anyone may see.
    pub(crate) fn empty() -> Layout {
        Layout::from_parts(IntTuple::from_leaves(Leaves::new()), IntTuple::from_leaves(Leaves::new()))
    }

    /// Flat lists of extents and strides, `1:0` for none.
    pub(crate) fn from_flat(modes: &[(Leaf, Leaf)]) -> Result<Layout, LayoutError> {
        match modes {
            [] => Ok(Layout::unit()),
            [(s, d)] => Ok(Layout::from_parts(IntTuple::leaf(*s), IntTuple::leaf(*d))),
            _ => {
                let mut out = Layout::empty();
                modes.iter().for_each(|(s, d)| out.push(*s, *d));
                out.wrap_modes()?;
                Ok(out)
            }
        }
    }

    /// The layout that has, in the place of each leaf of `like`, the pieces that `pieces` gives for it.
    pub(crate) fn refined<E>(
        like: &Layout,
        mut pieces: impl FnMut(usize, Leaf, Leaf, &mut Flat) -> Result<(), E>,
    ) -> Result<Layout, E> {
        let mut out = Layout::empty();
        let mut own = Flat::new();
        for (leaf, (s, d)) in like.pairs().enumerate() {
            own.clear();
            pieces(leaf, s, d, &mut own)?;
            let first = out.shape().leaf_count();
            own.iter().for_each(|(s, d)| out.push(*s, *d));
            let (shape, stride) = out.parts_mut();
            nest_pieces(&mut shape.raw_mut()[first..], s);
            nest_pieces(&mut stride.raw_mut()[first..], s);
        }
        Ok(out)
    }

    /// Adds a leaf, without parentheses.
    fn push(&mut self, s: Leaf, d: Leaf) {
        let (shape, stride) = self.parts_mut();
        shape.leaves_mut().push(s.bare());
        stride.leaves_mut().push(d.bare());
    }

    /// Adds the leaves of a layout, with their parentheses.
    pub(crate) fn push_mode(&mut self, mode: &Layout) {
        let (shape, stride) = self.parts_mut();
        shape.leaves_mut().extend_from_slice(mode.shape().raw());
        stride.leaves_mut().extend_from_slice(mode.stride().raw());
    }

    /// Ends a layout of modes: one pair of parentheses around them.
    ///
    /// # Errors
    /// There is no mode, or the result exceeds a limit.
    pub(crate) fn wrap_modes(&mut self) -> Result<(), LayoutError> {
        let (shape, stride) = self.parts_mut();
        shape.wrap();
        stride.wrap();
        shape.check_limits()?;
        check_size(shape)
    }
}
