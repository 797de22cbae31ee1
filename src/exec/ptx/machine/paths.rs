//! By what accesses were ordered: the barriers, fences, waits and commits that a happens-before path goes through.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Occurrences that are kept of a warp's meetings with another; older ones order what is long covered.
const KEPT: usize = 128;

/// An access, one that conflicts with it or waits for it, and what stands between them: instructions. Where two instructions on a
/// path only order together, each is on it.
pub(in super::super) type Path = (u32, u32, u32);

/// What a warp has learnt of others, and where.
#[derive(Debug, Default)]
pub(super) struct Lessons {
    of: HashMap<u32, Vec<(u32, u32)>>,
}

impl Lessons {
    /// At `pc` a warp learnt of another's accesses up to an epoch.
    pub(super) fn learn(&mut self, warp: u32, epoch: u32, pc: u32) {
        let all = self.of.entry(warp).or_default();
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push((epoch, pc));
    }

    /// Every instruction that orders an access of another warp at an epoch before what happens now.
    pub(super) fn that_order(&self, warp: u32, epoch: u32) -> impl Iterator<Item = u32> {
        self.of.get(&warp).into_iter().flatten().filter(move |(known, _)| *known >= epoch).map(|(_, pc)| *pc)
    }
}

/// The paths of a launch.
#[derive(Debug, Default)]
pub(in super::super) struct Paths {
    all: BTreeSet<Path>,
}

impl Paths {
    pub(super) fn note(&mut self, first: u32, then: u32, by: impl Iterator<Item = u32>) {
        self.all.extend(by.map(|by| (first, then, by)));
    }

    pub(in super::super) fn join(&mut self, others: Paths) {
        self.all.extend(others.all);
    }

    /// By first and second instruction.
    pub(in super::super) fn by_pair(&self) -> BTreeMap<(u32, u32), Vec<u32>> {
        let mut pairs: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (first, then, by) in &self.all {
            pairs.entry((*first, *then)).or_default().push(*by);
        }
        pairs
    }
}
