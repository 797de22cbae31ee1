//! The proof that a tensor in shared memory has an element for each coordinate, where TMA and WGMMA find it too.

use super::cover::{Flaws, Law};
use super::sums::is_injective;
use super::{Proxy, SmemTensor};
use crate::layout::Layout;
use crate::units::Bytes;

impl SmemTensor {
    /// Elements from one stage to the next, where none reaches into another: then all lie as the first does, and the last has as much
    /// room as all leave it.
    fn stages_of_their_own(&self) -> Option<i64> {
        let apart = self.layout.mode(2)?.stride().as_int()?;
        let block = self.swizzle.map_or(1, |swizzle| swizzle.block());
        // A swizzle exchanges elements within blocks of its own.
        let reach = (self.stage().cosize().ok()? + block - 1) / block * block;
        (apart % block == 0 && apart >= reach).then_some(apart)
    }

    pub(super) fn injective(&self, flaws: &mut Flaws) {
        let Some(cosize) = flaws.take(self.name, self.layout.cosize()) else { return };
        if !is_injective(&self.layout, cosize, self.swizzle) && !self.elements_are_apart(cosize, flaws) {
            return;
        }
        // The swizzle exchanges addresses within a block of its own size.
        let block = self.swizzle.map_or(1, |swizzle| swizzle.block()) as u64 * self.dtype.bytes().0;
        if self.proxy == Proxy::Async && !self.align.0.is_multiple_of(block) {
            flaws.push(
                Law::Swizzle,
                format!("s{} at a multiple of {}", self.name, self.align),
                format!("a multiple of {}", Bytes(block)),
                "TMA and WGMMA exchange bits of the address itself (PTX ISA, \"Swizzling Modes\")",
            );
        }
    }

    /// The same by looking at each element: what no two coordinates have, and which one they have where they do.
    fn elements_are_apart(&self, cosize: i64, flaws: &mut Flaws) -> bool {
        let [rows, columns, stages] = self.extents();
        let (stages, room) =
            self.stages_of_their_own().map_or((stages, cosize), |apart| (1, cosize - (stages - 1) * apart));
        let mut taken = vec![false; room.max(0) as usize];
        let along = [0, 1, 2].map(|mode| self.layout.mode(mode).unwrap_or_else(Layout::unit));
        let offsets = along.map(|mode| (0..mode.size()).filter_map(|i| mode.at(i).ok()).collect::<Vec<_>>());
        for index in 0..rows * columns * stages {
            let at = [index % rows, index / rows % columns, index / rows / columns];
            let at = at.iter().zip(&offsets).try_fold(0, |sum, (i, mode)| Some(sum + mode.get(*i as usize)?));
            let at = at.map(|at| self.swizzle.map_or(at, |swizzle| swizzle.apply(at)));
            let slot = at.and_then(|at| taken.get_mut(usize::try_from(at).ok()?));
            match slot {
                Some(slot) if !*slot => *slot = true,
                found => {
                    let what = if found.is_some() { "has been taken" } else { "lies outside" };
                    flaws.push(
                        Law::Injective,
                        format!("s{}: coordinate {index} at element {at:?}, which {what}", self.name),
                        format!("an element of its own among {cosize}"),
                        "what is written for one coordinate must be there for it alone",
                    );
                    return false;
                }
            }
        }
        true
    }
}
