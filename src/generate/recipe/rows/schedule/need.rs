//! What a thread holds of a row.

use super::super::tensors::Tensor;
use super::Hold;
use crate::arch::Arch;
use crate::expr::rows::{Along, Level, Made, Passes};
use crate::model::banks::WARP;

/// What a thread holds, in bytes for each of its elements.
pub(super) struct Need {
    /// The most that lives at once: inputs that are still read, and results that are kept for later traversals.
    pub(super) held: i64,
    /// Rows that stand for all and are only read in the last traversal.
    pub(super) weights: i64,
    /// Rows that stand for all and are read before, of those `held`.
    pub(super) resident: i64,
    /// Results of columns, of those `held`.
    pub(super) columns: i64,
    /// Outputs.
    pub(super) at_once: i64,
    /// Inputs that wait in shared memory, where rows do.
    pub(super) staged: i64,
    /// Values of groups, for each chunk.
    pub(super) groups: i64,
}

impl Need {
    pub(super) fn of(tensors: &[Tensor], passes: &Passes, hold: Hold) -> Self {
        let traversals = passes.traversals().count();
        let last = traversals.saturating_sub(1);
        let bytes = |of: &dyn Fn(&Tensor) -> bool| {
            let those = tensors.iter().filter(|t| t.of_elements() && of(t));
            those.map(|t| t.spec.dtype.bytes().0 as i64).sum::<i64>()
        };
        let value = passes.compute().dtype().bytes().0 as i64;
        let kept = |traversal: usize| {
            let made = passes.traversals().take(traversal).flat_map(|of| &of.makes);
            made.filter(|made| matches!(made, Made::Kept(_))).count() as i64 * value
        };
        // An element that is read for the last time makes room for what is kept of it.
        let lives =
            |[from, until]: [usize; 2], traversal| until >= traversal && (hold == Hold::Registers || from <= traversal);
        let before = |traversal: usize| {
            bytes(&|t| !t.waits(last) && t.read.is_some_and(|read| lives(read, traversal))) + kept(traversal)
        };
        let of_groups = passes.values().iter().filter(|value| matches!(value.level, Level::Group(_))).count();
        let columns = passes.columns().count() as i64 * value;
        Self {
            held: (0..traversals).map(before).max().unwrap_or(0) + columns,
            columns,
            weights: bytes(&|t| t.waits(last)),
            resident: bytes(&|t| t.is_weight() && !t.waits(last)),
            at_once: bytes(&|t| t.output),
            staged: bytes(&|t| !t.output && !t.is_weight()),
            groups: of_groups as i64 * value,
        }
    }
}

impl Tensor {
    /// Whether it may be loaded late: one row for all, from the caches, that only the last traversal reads.
    pub(in super::super) fn waits(&self, last: usize) -> bool {
        self.is_weight() && last > 0 && self.read.is_some_and(|[first, _]| first == last)
    }
}

/// Neighbours of a thread: 16 bytes of the widest matrix, and at least a lane's part of the largest group.
pub(super) fn vector(tensors: &[Tensor], passes: &Passes) -> i64 {
    let widest = |of: &dyn Fn(&&Tensor) -> bool| {
        tensors.iter().filter(|t| t.is_contiguous()).filter(of).map(|t| t.spec.dtype.bytes().0).max()
    };
    let widest = widest(&|t| !t.output && !t.is_weight()).or_else(|| widest(&|_| true)).unwrap_or(4);
    let groups = passes.values().iter().filter_map(|value| match (value.level, value.reduction) {
        (Level::Group(size), _) | (_, Some((_, Along::Group(size)))) => Some(i64::from(size) / WARP as i64),
        _ => None,
    });
    groups.max().unwrap_or(1).max((Arch::MAX_VECTOR.0 / widest) as i64)
}

/// Threads that a group needs side by side.
pub(super) fn least_threads(passes: &Passes, vec: i64) -> i64 {
    let sizes = passes.values().iter().filter_map(|value| match value.level {
        Level::Group(size) => Some(i64::from(size) / vec),
        _ => None,
    });
    sizes.max().unwrap_or(1).max(1)
}
