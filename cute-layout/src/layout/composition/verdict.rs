//! The behaviour of CuTe C++ (CUTLASS 3.9 and later) for a composition of static layouts.
//!
//! CuTe folds each leaf of B over A's modes with two conditions that are neither necessary nor sufficient. This module
//! says what comes out, so that an error can tell, and a test can compare. Source of the rules:
//! `cute/layout.hpp`, `detail::composition_impl`, CUTLASS 4.2.

use super::super::core::{Flat, Layout};
use super::super::leaf::Leaf;

/// CuTe's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "layouts are kept off the heap")]
pub enum Cute {
    /// Compiles, and is this layout; right or wrong.
    Accepts(Layout),
    /// `static_assert`: "Stride Divisibility Condition".
    StrideDivisibility {
        /// The extent of A's mode.
        extent: i64,
        /// The rest of B's stride there.
        stride: i64,
    },
    /// `static_assert`: "Shape Divisibility Condition".
    ShapeDivisibility {
        /// The extent of the piece.
        extent: i64,
        /// The rest of B's extent there.
        rest: i64,
    },
}

/// CuTe's answer for two layouts with integer strides; `None` where a number does not fit or a stride is not an integer.
///
/// *Law.* The text that compiled CuTe prints for `composition(A, B)`, or the condition that stops its compiler.
///
/// *Source.* `cute/layout.hpp`, `detail::composition_impl`.
///
/// ```
/// use cute_layout::layout::{Cute, Layout, cute_verdict};
/// let verdict = cute_verdict(&"(4,2):(1,100)".parse()?, &"(2,2):(1,3)".parse()?);
/// assert_eq!(verdict, Some(Cute::Accepts("(2,2):(1,3)".parse()?)));   // and A(B(3)) is 100, not 4
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[must_use]
pub fn cute_verdict(a: &Layout, b: &Layout) -> Option<Cute> {
    let lhs = super::super::coalesce::coalesced_unbounded(a).ok()?;
    cute_composition(&lhs, b)
}

/// CuTe's fold over a list of modes that is taken as it is, not coalesced any further.
pub(crate) fn cute_composition(lhs: &Flat, b: &Layout) -> Option<Cute> {
    if !b.int_strides() || !b.static_shape() || lhs.iter().any(|(s, _)| !s.is_int()) {
        return None;
    }
    match Layout::refined(b, |_, t, e, modes| leaf(lhs, t.value, e.value, modes)) {
        Ok(layout) => Some(Cute::Accepts(layout)),
        Err(refused) => refused.map(|cute| *cute),
    }
}

fn leaf(lhs: &Flat, extent: i64, stride: i64, modes: &mut Flat) -> Result<(), Option<Box<Cute>>> {
    if stride == 0 {
        modes.push((Leaf::int(extent), Leaf::int(0)));
        return Ok(());
    }
    let (last, before) = lhs.split_last().ok_or(None)?;
    let (mut rest, mut step) = (extent, stride);
    for (s, d) in before {
        let s = s.value;
        if step % s != 0 && step >= s {
            return Err(Some(Box::new(Cute::StrideDivisibility { extent: s, stride: step })));
        }
        let size = step.checked_abs().ok_or(None)?;
        let next_extent = s.checked_add(size - 1).ok_or(None)? / size;
        let next_step = size.checked_add(s - 1).ok_or(None)? / s * step.signum();
        if next_extent != 1 && rest != 1 {
            let piece = next_extent.min(rest);
            if rest % piece != 0 {
                return Err(Some(Box::new(Cute::ShapeDivisibility { extent: piece, rest })));
            }
            modes.push((Leaf::int(piece), d.scaled(step).ok_or(None)?));
            rest /= piece;
        }
        step = next_step;
    }
    if modes.is_empty() || rest != 1 {
        modes.push((Leaf::int(rest), last.1.scaled(step).ok_or(None)?));
    }
    Ok(())
}
