//! Layouts written in place, mode by mode. A layout is 272 bytes, and moving it costs as much as a small operation.

use std::mem::MaybeUninit;

use super::core::{Flat, Layout, check_size};
use super::error::LayoutError;
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::{Leaf, nest_pieces};

/// How many leaves are kept without allocation.
pub(crate) const INLINE: usize = 8;

/// Where modes are written one after the other, each perhaps more than once before it is kept.
pub(crate) trait Sink {
    /// Writes a mode at `at`: over one that is there, or next to the last. `None` where there is no room.
    fn put(&mut self, at: usize, s: Leaf, d: Leaf) -> Option<()>;

    /// Gives the modes from `first` to before `end`, which have none, the parentheses of the leaf that they replace, and
    /// one more pair where there are several.
    fn nest(&mut self, first: usize, end: usize, like: Leaf);
}

/// Places for as many leaves as a layout keeps without allocation.
pub(crate) struct Slots<'a> {
    shape: &'a mut [Leaf; INLINE],
    stride: &'a mut [Leaf; INLINE],
}

impl Sink for Slots<'_> {
    #[inline(always)]
    fn put(&mut self, at: usize, s: Leaf, d: Leaf) -> Option<()> {
        *self.shape.get_mut(at)? = s;
        *self.stride.get_mut(at)? = d;
        Some(())
    }

    #[inline(always)]
    fn nest(&mut self, first: usize, end: usize, like: Leaf) {
        let more = u64::from(first + 1 < end);
        let open = u64::from(like.open()) + more;
        let close = (u64::from(like.close()) + more) << 8;
        for leaves in [&mut *self.shape, &mut *self.stride] {
            leaves[first % INLINE].meta |= open;
            leaves[(end - 1) % INLINE].meta |= close;
        }
    }
}

impl Sink for Flat {
    fn put(&mut self, at: usize, s: Leaf, d: Leaf) -> Option<()> {
        self.truncate(at);
        self.push((s, d));
        Some(())
    }

    /// A flat list has no parentheses.
    fn nest(&mut self, _first: usize, _end: usize, _like: Leaf) {}
}

impl Sink for Layout {
    fn put(&mut self, at: usize, s: Leaf, d: Leaf) -> Option<()> {
        let (shape, stride) = self.leaves_mut();
        shape.truncate(at);
        stride.truncate(at);
        shape.push(s);
        stride.push(d);
        Some(())
    }

    fn nest(&mut self, first: usize, end: usize, like: Leaf) {
        let (shape, stride) = self.leaves_mut();
        nest_pieces(&mut shape[first..end], like);
        nest_pieces(&mut stride[first..end], like);
    }
}

#[inline(never)]
fn fill(
    out: &mut MaybeUninit<Result<Layout, LayoutError>>,
    write: impl FnOnce(&mut Layout) -> Result<(), LayoutError>,
) {
    let out = out.write(Ok(Layout::empty()));
    if let Ok(layout) = out
        && let Err(error) = write(layout)
    {
        *out = Err(error);
    }
}

impl Layout {
    /// The layout that `write` makes of one without leaves.
    ///
    /// What a function returns is moved to the caller's place; what it writes behind a pointer is there already. A place
    /// that nothing but one call has written is handed through to that call, so that the result is never moved.
    #[inline(always)]
    pub(crate) fn written(write: impl FnOnce(&mut Layout) -> Result<(), LayoutError>) -> Result<Layout, LayoutError> {
        let mut out = MaybeUninit::uninit();
        fill(&mut out, write);
        // SAFETY: `fill` writes a value before it does anything else, and never takes it away.
        unsafe { out.assume_init() }
    }

    /// Places for the leaves of a layout that has none yet; [`Layout::truncate`] ends the writing.
    #[inline(always)]
    pub(crate) fn slots(&mut self) -> Option<Slots<'_>> {
        let (shape, stride) = self.leaves_mut();
        *shape = Leaves::from_buf([Leaf::int(0); INLINE]);
        *stride = Leaves::from_buf([Leaf::int(0); INLINE]);
        Some(Slots { shape: shape.first_chunk_mut()?, stride: stride.first_chunk_mut()? })
    }

    /// Ends what was written to the slots.
    #[inline(always)]
    pub(crate) fn truncate(&mut self, len: usize) {
        let (shape, stride) = self.leaves_mut();
        shape.truncate(len);
        stride.truncate(len);
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
        for (s, d) in mode.pairs() {
            shape.push(s);
            stride.push(d);
        }
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
    #[inline(always)]
    pub(crate) fn wrap_flat(&mut self) {
        match self.shape().raw().len() {
            0 => self.push(Leaf::int(1), Leaf::int(0)),
            1 => {}
            _ => {
                let (shape, stride) = self.parts_mut();
                shape.wrap();
                stride.wrap();
            }
        }
    }
}
