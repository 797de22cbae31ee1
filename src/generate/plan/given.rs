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

    /// Takes those modes that go on where it ends, one after the other.
    fn take_from(&mut self, modes: &mut Vec<Mode>, limit: i64) {
        while let Some((at, merged)) =
            modes.iter().enumerate().find_map(|(at, outer)| Some((at, self.merged(outer, limit)?)))
        {
            *self = merged;
            modes.remove(at);
        }
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
    /// Whether the first of them stays the first, as a tile of (M,N) needs it. Modes that go on in every tensor where N or M ends
    /// become part of it; the others are batches of tiles.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub batches: bool,
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
        let mut first = if self.batches && !m.is_empty() { Some(m.remove(0)) } else { None };
        m.retain(|mode| mode.extent != 1);
        m.sort_by_key(|mode| mode.strides.get(self.by).copied());
        if self.into_n {
            while let Some(merged) = m.first().and_then(|inner| n.merged(inner, self.limit)) {
                n = merged;
                m.remove(0);
            }
        }
        if let Some(first) = &mut first {
            n.take_from(&mut m, self.limit);
            first.take_from(&mut m, self.limit);
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
        m.splice(0..0, first);
        m.resize(self.rank, Mode { extent: 1, strides: vec![0; views.len()] });
        m.insert(0, n);
        Some(m)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::units::Elements;
    use crate::view::{Access, ViewLayout};

    fn view(shape: &[i64], stride: &[i64], access: Access) -> ViewRef {
        let layout = ViewLayout::strided(shape, stride).expect("a layout");
        ViewRef { dtype: DType::F16, ptr: 0x1000, available: Elements(1 << 20), layout, access }
    }

    /// The modes that tiles of (M,N) have, of an input and an output: extents, then both strides.
    fn tiles(n: usize, m: &[usize], shape: &[i64], strides: [&[i64]; 2]) -> Vec<(i64, Vec<i64>)> {
        let views = [view(shape, strides[0], Access::Read), view(shape, strides[1], Access::Write)];
        let merging = Merging {
            n,
            m: m.to_vec(),
            batches: true,
            along_n: vec![None, Some(1)],
            by: 1,
            into_n: false,
            limit: 1 << 30,
            rank: m.len(),
        };
        let modes = merging.modes(&views).expect("as many modes");
        modes.into_iter().map(|mode| (mode.extent, mode.strides)).collect()
    }

    const NOTHING: (i64, [i64; 2]) = (1, [0, 0]);

    fn are(found: &[(i64, Vec<i64>)], required: &[(i64, [i64; 2])]) {
        let required: Vec<(i64, Vec<i64>)> = required.iter().map(|(e, s)| (*e, s.to_vec())).collect();
        assert_eq!(found, required);
    }

    #[test]
    fn modes_that_go_on_become_part_of_n_and_of_m_and_others_are_batches() {
        // NHWC to NCHW: as (N,C,H,W) of (2,3,5,7); C is M, and H goes on behind W in both.
        let shape = [2, 3, 5, 7];
        let [nhwc, nchw] = [[105, 1, 21, 3], [105, 35, 7, 1]];
        are(&tiles(3, &[1, 2, 0], &shape, [&nhwc, &nchw]), &[(35, [3, 1]), (3, [1, 35]), (2, [105, 105]), NOTHING]);
        // And back, as (N,H,W,C): W is M, and H goes on behind it.
        let shape = [2, 5, 7, 3];
        let [nchw, nhwc] = [[105, 7, 1, 35], [105, 21, 3, 1]];
        are(&tiles(3, &[2, 1, 0], &shape, [&nchw, &nhwc]), &[(3, [35, 1]), (35, [1, 3]), (2, [105, 105]), NOTHING]);
        // Batches of batches are one mode; with a gap, they are two.
        let (shape, out) = ([4, 3, 8, 16], [384, 128, 16, 1]);
        are(
            &tiles(3, &[2, 1, 0], &shape, [&[384, 128, 1, 8], &out]),
            &[(16, [8, 1]), (8, [1, 16]), (12, [128, 128]), NOTHING],
        );
        let gap = [400, 128, 1, 8];
        let two = [(16, [8, 1]), (8, [1, 16]), (3, [128, 128]), (4, [400, 384])];
        are(&tiles(3, &[2, 1, 0], &shape, [&gap, &out]), &two);
        // M of one coordinate stays M.
        are(&tiles(2, &[1, 0], &[4, 1, 8], [&[8, 5, 1], &[8, 8, 1]]), &[(32, [1, 1]), (1, [0, 0]), NOTHING]);
    }
}
