//! Happens-before paths: the barriers, fences, waits and commits that order accesses.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::order::WarpClock;
use super::word::Access;

/// Synchronisations with another warp that a warp keeps. Older ones order only accesses that later ones cover.
const KEPT: usize = 128;

/// Three instructions: an access, a later one that conflicts with it or waits for it, and one that orders them. If two instructions order
/// them only together, each has its own path.
pub(crate) type PathLink = (u32, u32, u32);

/// What a warp knows of others, and the instructions where it learnt it.
#[derive(Debug, Default)]
pub(crate) struct Lessons {
    of: FxHashMap<u32, Vec<(u32, u32)>>,
    /// Number of lessons.
    count: u32,
}

impl Lessons {
    /// At `pc` a warp learnt of another's accesses up to an epoch.
    pub(crate) fn learn(&mut self, warp: u32, epoch: u32, pc: u32) {
        let all = self.of.entry(warp).or_default();
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push((epoch, pc));
        self.count += 1;
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Every instruction that orders an access of another warp at an epoch before what happens now.
    pub(crate) fn that_order(&self, warp: u32, epoch: u32) -> impl Iterator<Item = u32> {
        self.of.get(&warp).into_iter().flatten().filter(move |(known, _)| *known >= epoch).map(|(_, pc)| *pc)
    }
}

/// The paths of a launch.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    all: BTreeSet<PathLink>,
    /// The last notes; the words of a row repeat them.
    recent: [Option<Noted>; RECENT],
}

const RECENT: usize = 16;

/// An access without its place, and a later access: its warp, its instruction, and the number of lessons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    first: (u32, u32),
    by: (u32, u32, u32),
    then: (u32, u32),
    lessons: u32,
}

impl Paths {
    /// Notes what orders an access before what a warp does at `then`, where it is asked for.
    pub(crate) fn note(&mut self, first: &Access, then: u32, w: &WarpClock) {
        let Some(lessons) = &w.lessons else { return };
        let noted = Noted {
            first: (first.pc, first.epoch),
            by: (first.warp, first.also, first.actor),
            then: (then, w.id),
            lessons: lessons.count(),
        };
        let recent = &mut self.recent[(first.pc ^ first.warp) as usize % RECENT];
        if *recent != Some(noted) {
            *recent = Some(noted);
            self.all.extend(first.known_by(lessons).map(|by| (first.pc, then, by)));
        }
    }

    /// Notes that a copy is in a group, or has arrived, by an instruction.
    pub(crate) fn note_copy(&mut self, copy: u32, by: u32) {
        self.all.insert((copy, by, by));
    }

    pub(crate) fn join(&mut self, others: Paths) {
        self.all.extend(others.all);
    }

    /// By first and second instruction.
    pub(crate) fn by_pair(&self) -> BTreeMap<(u32, u32), Vec<u32>> {
        let mut pairs: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (first, then, by) in &self.all {
            pairs.entry((*first, *then)).or_default().push(*by);
        }
        pairs
    }
}
