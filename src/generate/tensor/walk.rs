//! The elements of a tensor, one after the other.

use super::host::Tensor;
use super::scalar::{Scalar, with_scalar};
use crate::view::{MAX_RANK, ViewLayout};

/// The elements of a tensor as values and bits, in row-major order of their coordinates.
#[derive(Debug)]
pub struct Elements<'a> {
    tensor: &'a Tensor,
    walk: Walk,
}

impl<'a> Elements<'a> {
    /// Those from the `index`-th coordinate on.
    pub fn starting_at(tensor: &'a Tensor, index: u64) -> Self {
        Self { tensor, walk: tensor.offsets().starting_at(index) }
    }

    /// The tensor.
    pub fn tensor(&self) -> &'a Tensor {
        self.tensor
    }
}

impl Iterator for Elements<'_> {
    /// Value and bits, zero-extended.
    type Item = (f64, u64);

    fn next(&mut self) -> Option<(f64, u64)> {
        let at = self.walk.next()?;
        with_scalar!(self.tensor.dtype(), T => self.tensor.span::<T>()?.get(at).map(|v| (v.value(), v.bits())))
    }
}

/// The coordinate of that number in row-major order, of a shape whose extents are positive.
pub(crate) fn coordinate_at(shape: &[i64], mut index: u64) -> Vec<i64> {
    let mut coordinate = vec![0; shape.len()];
    for (slot, extent) in coordinate.iter_mut().zip(shape).rev() {
        let extent = extent.unsigned_abs().max(1);
        *slot = (index % extent).cast_signed();
        index /= extent;
    }
    coordinate
}

/// Offsets of the elements of a tensor in row-major order of their coordinates: the last mode runs fastest.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    shape: [usize; MAX_RANK],
    stride: [usize; MAX_RANK],
    at: [usize; MAX_RANK],
    rank: usize,
    offset: usize,
    left: u64,
}

impl Walk {
    /// All coordinates of a layout whose offsets fit in memory; none where an extent is not positive.
    pub(crate) fn new(layout: &ViewLayout) -> Self {
        let mut walk = Self {
            shape: [1; MAX_RANK],
            stride: [0; MAX_RANK],
            at: [0; MAX_RANK],
            rank: layout.rank(),
            offset: 0,
            left: layout.size().unwrap_or(0),
        };
        for (i, (extent, stride)) in layout.shape().iter().zip(layout.stride()).enumerate() {
            walk.shape[i] = *extent as usize;
            walk.stride[i] = *stride as usize;
        }
        walk
    }

    /// Those from the `index`-th coordinate on, counted from 0.
    pub(crate) fn starting_at(mut self, index: u64) -> Self {
        self.left = self.left.saturating_sub(index);
        if self.left == 0 {
            return self;
        }
        let mut rest = index as usize;
        for i in (0..self.rank).rev() {
            self.at[i] = rest % self.shape[i];
            rest /= self.shape[i];
        }
        self.offset = self.at.iter().zip(&self.stride).map(|(c, d)| c * d).sum();
        self
    }

    /// The coordinate of the next element.
    pub(crate) fn coordinate(&self) -> Vec<u64> {
        self.at[..self.rank].iter().map(|c| *c as u64).collect()
    }

    fn advance(&mut self) {
        for i in (0..self.rank).rev() {
            self.at[i] += 1;
            self.offset += self.stride[i];
            if self.at[i] < self.shape[i] {
                return;
            }
            self.offset -= self.stride[i] * self.shape[i];
            self.at[i] = 0;
        }
    }
}

impl Iterator for Walk {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let offset = self.offset;
        self.advance();
        Some(offset)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The elements of a tensor in the order of memory: offsets ascend, and each occurs once, with the row-major index of
/// its coordinate. A broadcast mode has its last coordinate.
#[derive(Clone, Debug)]
pub(crate) struct InMemory {
    offsets: Walk,
    indices: Walk,
    last_broadcast: u64,
}

impl InMemory {
    /// For a layout in which no two coordinates share an element but by broadcast.
    pub(crate) fn new(layout: &ViewLayout) -> Self {
        let is_empty = layout.size() == Some(0);
        let modes = if is_empty { Vec::new() } else { layout.by_stride() };
        let mut weight = [1_i64; MAX_RANK];
        for i in (1..layout.rank()).rev() {
            weight[i - 1] = weight[i].saturating_mul(layout.shape()[i]);
        }
        let of = |stride: &[i64]| {
            let pick = |from: &[i64]| modes.iter().map(|i| from[*i]).collect::<Vec<_>>();
            let layout = ViewLayout::strided(&pick(layout.shape()), &pick(stride));
            // No mode counts where there is one element, or none.
            Walk::new(&layout.unwrap_or(ViewLayout::matrix([1, i64::from(!is_empty)], 1)))
        };
        let broadcast = (0..layout.rank()).filter(|i| layout.stride()[*i] == 0);
        let last_broadcast = broadcast.map(|i| (layout.shape()[i] - 1).max(0) * weight[i]).sum::<i64>() as u64;
        Self { offsets: of(layout.stride()), indices: of(&weight), last_broadcast }
    }

    /// The number of elements that are left.
    pub(crate) fn left(&self) -> u64 {
        self.offsets.left
    }

    /// Those from the `n`-th on, counted from 0.
    pub(crate) fn starting_at(self, n: u64) -> Self {
        Self { offsets: self.offsets.starting_at(n), indices: self.indices.starting_at(n), ..self }
    }
}

impl Iterator for InMemory {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        let (offset, index) = (self.offsets.next()?, self.indices.next()?);
        Some((offset, index as u64 + self.last_broadcast))
    }
}
