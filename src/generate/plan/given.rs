//! The inputs of a launch: addresses, strides and extents of its tensors, scalars.

use serde::{Deserialize, Serialize};

use super::product::is_zero;
use crate::view::ViewRef;

/// The input of a launch that a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Given {
    /// The address of a tensor.
    Address {
        /// The number of the operand.
        tensor: usize,
    },
    /// The stride of a tensor along one of its modes, in elements.
    Stride {
        /// The number of the operand.
        tensor: usize,
        /// The number of its mode.
        mode: usize,
    },
    /// The extent of a tensor along one of its modes.
    Extent {
        /// The number of the operand.
        tensor: usize,
        /// The number of its mode.
        mode: usize,
    },
    /// The same; 0 where a scalar is 0, as nothing is read of the tensor then.
    ExtentUnless {
        /// The number of the operand.
        tensor: usize,
        /// The number of its mode.
        mode: usize,
        /// The number of the scalar.
        zero: usize,
    },
    /// A run-time scalar.
    Scalar(usize),
    /// Nothing: it follows from the others, or is the workspace, or a tensor map.
    Follows,
}

impl Given {
    /// As an integer; 0 for an input that is not one.
    pub(crate) fn integer(self, tensors: &Tensors<'_>, scalars: &[f64]) -> Option<i64> {
        match self {
            Given::Address { tensor } => tensors.views.get(tensor).map(|view| view.ptr.cast_signed()),
            Given::Stride { tensor, mode } => tensors.stride(tensor, mode),
            Given::Extent { tensor, mode } => tensors.extent(tensor, mode),
            Given::ExtentUnless { zero, .. } if is_zero(scalars, Some(zero)) => Some(0),
            Given::ExtentUnless { tensor, mode, .. } => tensors.extent(tensor, mode),
            // Expressions read only scalars that are integers.
            Given::Scalar(index) => Some(scalars.get(index).map_or(0, |value| *value as i64)),
            Given::Follows => Some(0),
        }
    }
}

/// The tensors of a launch, as their kernel takes them.
pub(crate) struct Tensors<'a> {
    views: &'a [ViewRef],
    merged: Option<Vec<Mode>>,
}

impl<'a> Tensors<'a> {
    /// `None` where the views have too few modes.
    pub(crate) fn new(merging: Option<&Merging>, views: &'a [ViewRef]) -> Option<Self> {
        let merged = match merging {
            Some(merging) => Some(merging.modes(views)?),
            None => None,
        };
        Some(Self { views, merged })
    }

    fn extent(&self, tensor: usize, mode: usize) -> Option<i64> {
        match &self.merged {
            Some(modes) => modes.get(mode).map(|mode| mode.extent),
            None => self.views.get(tensor)?.layout.shape().get(mode).copied(),
        }
    }

    fn stride(&self, tensor: usize, mode: usize) -> Option<i64> {
        match &self.merged {
            Some(modes) => modes.get(mode)?.strides.get(tensor).copied(),
            None => self.views.get(tensor)?.layout.stride().get(mode).copied(),
        }
    }
}

/// A mode of tensors of one shape: its extent, and the stride of each tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) extent: i64,
    pub(crate) strides: Vec<i64>,
}

impl Mode {
    fn of(views: &[ViewRef], mode: usize) -> Option<Self> {
        let extent = *views.first()?.layout.shape().get(mode)?;
        // The stride of a mode of one coordinate is never used; 0 merges with anything.
        let stride = |v: &ViewRef| if extent == 1 { Some(0) } else { v.layout.stride().get(mode).copied() };
        Some(Self { extent, strides: views.iter().map(stride).collect::<Option<_>>()? })
    }

    /// Both as one mode, where `outer` goes on in every tensor where `self` ends and the extent stays below `limit`.
    fn merged(&self, outer: &Mode, limit: i64) -> Option<Mode> {
        let extent = self.extent.checked_mul(outer.extent).filter(|e| *e <= limit)?;
        let goes_on = |(inner, outer): (&i64, &i64)| inner.checked_mul(self.extent) == Some(*outer);
        self.strides.iter().zip(&outer.strides).all(goes_on).then(|| Mode { extent, strides: self.strides.clone() })
    }
}

/// How a kernel of `(M,N)` takes tensors of one shape and any rank: N, and modes of M, which are merged where all tensors go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merging {
    /// The mode that is N.
    pub n: usize,
    /// Those that are M.
    pub m: Vec<usize>,
    /// What each tensor's stride along N is, where the kernel was generated for one: a view whose only coordinate has another stride
    /// lies so all the same.
    pub along_n: Vec<Option<i64>>,
    /// The tensor whose strides put the modes of M in order. Those are known at launch only, so they may stand in any.
    pub by: usize,
    /// Whether modes of M become part of N.
    pub into_n: bool,
    /// The largest extent of a mode.
    pub limit: i64,
    /// Modes of M that the kernel has.
    pub rank: usize,
}

impl Merging {
    /// N, then the modes of M; `None` where the views have other modes.
    pub(crate) fn modes(&self, views: &[ViewRef]) -> Option<Vec<Mode>> {
        let mut n = Mode::of(views, self.n)?;
        for (stride, known) in n.strides.iter_mut().zip(&self.along_n) {
            *stride = known.unwrap_or(*stride);
        }
        let mut m: Vec<Mode> = self.m.iter().map(|mode| Mode::of(views, *mode)).collect::<Option<_>>()?;
        m.retain(|mode| mode.extent != 1);
        m.sort_by_key(|mode| mode.strides.get(self.by).copied());
        if self.into_n {
            while let Some(merged) = m.first().and_then(|inner| n.merged(inner, self.limit)) {
                n = merged;
                m.remove(0);
            }
        }
        let mut i = 0;
        while i + 1 < m.len() {
            match m[i].merged(&m[i + 1], self.limit) {
                Some(merged) => {
                    m[i] = merged;
                    m.remove(i + 1);
                }
                None => i += 1,
            }
        }
        m.resize(self.rank, Mode { extent: 1, strides: vec![0; views.len()] });
        m.insert(0, n);
        Some(m)
    }
}
