//! The elements of a tensor, one after the other.

use crate::view::{MAX_RANK, ViewLayout};

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
}
