//! What is proved of sums without adding them up. What thread `t` moves as its value `v` is the sum of what each adds, so that most laws
//! are seen from threads and values by themselves. Each proof here says yes only where all sums, one by one, do; where it cannot say, the
//! caller looks at them, and tells which one is wrong.

use super::moves::Moves;
use crate::layout::{Layout, Swizzle};
use crate::model::apart;

/// Whether the sums of multiples of leaves, (extent, stride), are the numbers below `count`, each once: by ascending strides each leaf
/// begins where those below it end.
fn are_all_below(mut leaves: Vec<(i64, i64)>, count: i64) -> bool {
    leaves.retain(|(extent, _)| *extent != 1);
    leaves.sort_unstable_by_key(|(_, stride)| *stride);
    let ends = leaves.iter().try_fold(
        1_i64,
        |end, (extent, stride)| {
            if *stride == end { end.checked_mul(*extent) } else { None }
        },
    );
    ends == Some(count)
}

/// The least of some values, and all of them counted from it, in order.
fn spread(values: &[i64]) -> (i64, Vec<i64>) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let least = sorted.first().copied().unwrap_or(0);
    sorted.iter_mut().for_each(|value| *value -= least);
    (least, sorted)
}

impl Moves {
    /// Whether all threads together have each element below `count` once.
    pub(super) fn cover(&self, count: i64) -> bool {
        self.leaves.as_ref().is_some_and(|leaves| are_all_below(leaves.clone(), count))
    }

    /// Whether each thread has the elements that the same thread of another has, each once. Sets that are sums are the same where both
    /// begin at the same element and go on alike.
    pub(super) fn are_those_of(&self, other: &Moves) -> bool {
        let ((least, own), (other_least, others)) = (spread(&self.values), spread(&other.values));
        let alike = |(a, b): (&i64, &i64)| a + least >= 0 && a + least == b + other_least;
        own == others
            && own.windows(2).all(|pair| pair[0] != pair[1])
            && self.threads.len() == other.threads.len()
            && self.threads.iter().zip(&other.threads).all(alike)
    }

    /// Whether the elements of each instruction are neighbours, the first at a multiple of their number, where an element of the tile
    /// lies at `swizzle o layout`.
    pub(super) fn are_vectors(&self, layout: &Layout, swizzle: Option<Swizzle>) -> bool {
        let vector = self.vector as i64;
        // A swizzle leaves so many neighbours where they are, from a multiple of their number on.
        if swizzle.is_some_and(|swizzle| swizzle.bits() > 0 && (1_i64 << swizzle.base()) % vector != 0) {
            return false;
        }
        let Some([threads, values]) = apart(layout, &self.threads, &self.values) else { return false };
        let whole = |vector_of: &[i64]| {
            vector_of.len() == self.vector && vector_of.iter().zip(vector_of[0]..).all(|(at, next)| *at == next)
        };
        threads.iter().all(|at| at % vector == 0)
            && values.chunks(self.vector).all(|values| values[0] % vector == 0 && whole(values))
    }

    /// The same elements in a tile of `m` rows, where the moves are of parts of `[rows, columns]` of it, one after the other; `None` where
    /// a row of a thread and a row of a value do not add up to a row of the part.
    pub(super) fn part_by_part(&self, [m, n]: [i64; 2], [rows, columns]: [i64; 2]) -> Option<Moves> {
        let most = |of: &[i64]| of.iter().map(|element| element % rows).max().unwrap_or(0);
        let natural = self.threads.iter().chain(&self.values).all(|element| *element >= 0);
        (natural && most(&self.threads) + most(&self.values) < rows).then_some(())?;
        let in_tile = |element: i64| element % rows + element / rows * m;
        let parts = (0..m / rows).flat_map(|r| (0..n / columns).map(move |c| r * rows + c * columns * m));
        let values = parts.flat_map(|part| self.values.iter().map(move |value| in_tile(*value) + part)).collect();
        let threads = self.threads.iter().map(|thread| in_tile(*thread)).collect();
        Some(Moves { threads, values, vector: 1, leaves: None })
    }
}

/// Whether a layout has an element of its own below `cosize` for each coordinate, before and behind a swizzle: by ascending strides each
/// leaf goes further than those below it reach together.
pub(super) fn is_injective(layout: &Layout, cosize: i64, swizzle: Option<Swizzle>) -> bool {
    let (Some(shape), Some(stride)) = (layout.shape().ints(), layout.stride().ints()) else { return false };
    let mut leaves: Vec<(i64, i64)> = stride.into_iter().zip(shape).filter(|(_, extent)| *extent != 1).collect();
    leaves.sort_unstable();
    let reach = leaves.iter().try_fold(0_i64, |reach, (stride, extent)| {
        (*stride > reach).then_some(())?;
        reach.checked_add(stride.checked_mul(extent - 1)?)
    });
    // A swizzle exchanges elements within its blocks, of which there are whole ones.
    reach.is_some_and(|reach| reach < cosize) && swizzle.is_none_or(|swizzle| cosize % swizzle.block() == 0)
}
