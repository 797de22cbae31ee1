//! Layouts written in place, mode by mode. A layout is 272 bytes, and moving it costs as much as a small operation.

use super::core::{Layout, check_size};
use super::error::LayoutError;
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::{Leaf, MAX_LEAVES};

impl Layout {
    /// The layout that `write` makes of one without leaves.
    #[inline(always)]
    pub(crate) fn written(
        write: impl FnOnce(&mut Layout) -> Result<(), LayoutError>,
    ) -> Result<Layout, LayoutError> {
        let mut out = Ok(Layout::empty());
        let done = match &mut out {
            Ok(layout) => write(layout),
            Err(_) => Ok(()),
        };
        if let Err(error) = done {
            out = Err(error);
        }
        out
    }

    /// A layout to be written to: no leaves yet, so not a layout anyone may see.
    #[inline(always)]
    pub(crate) fn empty() -> Layout {
        Layout::from_parts(IntTuple::from_leaves(Leaves::new()), IntTuple::from_leaves(Leaves::new()))
    }

    /// Takes the leaves out, to write others.
    pub(crate) fn clear(&mut self) {
        let (shape, stride) = self.leaves_mut();
        shape.clear();
        stride.clear();
    }

    /// The leaves of shape and stride, to write to.
    #[inline(always)]
    pub(crate) fn leaves_mut(&mut self) -> (&mut Leaves, &mut Leaves) {
        let (shape, stride) = self.parts_mut();
        (shape.leaves_mut(), stride.leaves_mut())
    }

    /// Adds a leaf, without parentheses.
    #[inline(always)]
    pub(crate) fn push(&mut self, s: Leaf, d: Leaf) {
        let (shape, stride) = self.leaves_mut();
        shape.push(s.bare());
        stride.push(d.bare());
    }

    /// The layout of two modes.
    ///
    /// # Errors
    /// The result exceeds a limit.
    #[inline]
    pub(crate) fn pair(first: &Layout, second: &Layout) -> Result<Layout, LayoutError> {
        Layout::written(|out| {
            out.push_mode(first);
            out.push_mode(second);
            out.wrap_modes()
        })
    }

    /// Adds the leaves of a layout, with their parentheses.
    #[inline]
    pub(crate) fn push_mode(&mut self, mode: &Layout) {
        let (shape, stride) = self.leaves_mut();
        shape.extend_from_slice(mode.shape().raw());
        stride.extend_from_slice(mode.stride().raw());
    }

    /// Ends a layout of modes: one pair of parentheses around them.
    ///
    /// # Errors
    /// There is no mode, or the result exceeds a limit.
    #[inline]
    pub(crate) fn wrap_modes(&mut self) -> Result<(), LayoutError> {
        let (shape, stride) = self.parts_mut();
        shape.wrap();
        stride.wrap();
        shape.check_limits()?;
        check_size(shape)
    }

    /// Ends a layout of leaves without parentheses: none become `1:0`, and one stays a leaf.
    ///
    /// # Errors
    /// There are too many leaves.
    #[inline(always)]
    pub(crate) fn wrap_flat(&mut self) -> Result<(), LayoutError> {
        match self.shape().raw().len() {
            0 => self.push(Leaf::int(1), Leaf::int(0)),
            1 => {}
            _ => {
                let (shape, stride) = self.parts_mut();
                shape.wrap();
                stride.wrap();
                if shape.leaf_count() > MAX_LEAVES {
                    shape.check_limits()?;
                }
            }
        }
        Ok(())
    }
}
