//! Tensors of other crates as views, and the other way round, without copying.
//!
//! A launch needs a [`View`](crate::view::View) of each tensor: element type, address, extents, strides. This module
//! makes views of other libraries' data: [`ndarray`](mod@ndarray)'s views, and [DLPack](dlpack)'s tensors, which NumPy,
//! PyTorch, JAX, CuPy and many others export and import. For contexts and streams of other libraries see
//! [`launch::Gpu`](crate::launch::Gpu).

use core::fmt;

use crate::diagnostic::{debug_as_display, field};
use crate::view::{MAX_RANK, ViewLayout};

#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(feature = "ndarray")]
pub mod ndarray;

/// A tensor that cannot become a view, or the other way round: what, found, required, because, help.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused {
    /// The problem, in one line.
    pub what: &'static str,
    /// The actual value.
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: &'static str,
    /// What to do.
    pub help: &'static str,
}

debug_as_display!(Refused);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[interop]: {}", self.what)?;
        field(f, "found:", &self.found)?;
        field(f, "required:", &self.required)?;
        field(f, "because:", self.because)?;
        field(f, "help:", self.help)
    }
}

impl core::error::Error for Refused {}

/// The layout of a tensor with these extents and strides, in elements: of rank 1 where it has none, and with strides
/// that mean nothing made harmless: along a mode of one element, or of none at all.
fn layout(shape: &[i64], strides: &[i64]) -> Result<ViewLayout, Refused> {
    let text = || format!("({}):({})", list(shape), list(strides));
    if shape.is_empty() {
        return ViewLayout::strided(&[1], &[1]).ok_or_else(|| rank(0));
    }
    if shape.len() > MAX_RANK {
        return Err(rank(shape.len()));
    }
    let is_empty = shape.contains(&0);
    let mut harmless = strides.to_vec();
    for (mode, (extent, stride)) in shape.iter().zip(&mut harmless).enumerate() {
        if *stride >= 0 {
            continue;
        }
        if *extent > 1 && !is_empty {
            return Err(Refused {
                what: "the tensor runs backwards",
                found: format!("stride {stride} along mode {mode} of {}", text()),
                required: "strides of at least 0".into(),
                because: "a view begins at its lowest address; vectors and bulk copies of a kernel go forwards from there",
                help: "copy the tensor into memory in its own order first, or pass the one that it is the reverse of",
            });
        }
        *stride = 0;
    }
    let layout = ViewLayout::strided(shape, &harmless).filter(|l| l.span().is_some());
    layout.ok_or_else(|| Refused {
        what: "the tensor is larger than memory",
        found: text(),
        required: "extents of at least 0 and a last element that a 64-bit address reaches".into(),
        because: "the memory of a view is counted in bytes",
        help: "pass the shape and strides of memory that is there",
    })
}

fn rank(found: usize) -> Refused {
    Refused {
        what: "the tensor has too many modes",
        found: format!("rank {found}"),
        required: format!("rank 1 to {MAX_RANK}"),
        because: "kernels are generated for tensors of at most that rank",
        help: "merge modes that are contiguous, by a reshape, or pass one slice after the other",
    }
}

fn list(of: &[i64]) -> String {
    of.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

// The chapter's examples are tests.
#[cfg(all(doctest, feature = "dlpack", feature = "ndarray", feature = "ptx", feature = "cuda"))]
#[doc = include_str!("../../../docs/interop.md")]
struct TheChapter;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_that_mean_nothing_are_harmless_and_the_others_are_told() {
        let text = |shape: &[i64], strides: &[i64]| match layout(shape, strides) {
            Ok(layout) => layout.to_string(),
            Err(refused) => format!("{}: {}", refused.what, refused.found),
        };
        assert_eq!(text(&[], &[]), "1:1");
        assert_eq!(text(&[4, 1, 3], &[3, -7, 1]), "(4,1,3):(3,0,1)");
        assert_eq!(text(&[4, 0], &[-1, -1]), "(4,0):(0,0)");
        assert_eq!(text(&[4, 3], &[0, 1]), "(4,3):(0,1)");
        assert_eq!(text(&[4, 3], &[-3, 1]), "the tensor runs backwards: stride -3 along mode 0 of (4,3):(-3,1)");
        assert_eq!(text(&[1; 6], &[1; 6]), "the tensor has too many modes: rank 6");
        let huge = i64::MAX;
        assert!(text(&[huge, 2], &[2, 1]).starts_with("the tensor is larger than memory: (9223372036854775807,2)"));
        assert!(text(&[-2, 2], &[2, 1]).starts_with("the tensor is larger than memory: (-2,2)"));
    }
}
