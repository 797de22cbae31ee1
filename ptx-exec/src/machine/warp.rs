//! The state of a warp, and of a block.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::barrier::Absent;
use super::causes::Findings;
use super::flight::{Flying, WarpFlying};
use super::order::WarpClock;
use super::origin::Origins;
use super::parting::Parting;
use super::profile::Count;
use super::race::Races;
use super::shadow::Shadow;
use super::vector::{Row, Rows};
use super::{Grid, Random};
use crate::memory::Memory;

/// The event that lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing.
    Ready,
    /// A barrier of the block, by number.
    Barrier(u32),
    /// Lanes of the warp at the same instruction.
    Lanes(u32),
    /// Lanes of the warp at any `bar.warp.sync`.
    WarpSync(u32),
    /// The end of a phase of a barrier in shared memory.
    Mbarrier,
    /// All threads of the cluster.
    Cluster,
    /// Registers that other warps give back.
    Registers,
    /// Products of all four warps of its warpgroup.
    Warpgroup,
}

/// Lanes that are at one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) pc: u32,
    pub(super) mask: u32,
    pub(super) wait: Wait,
    /// Lanes that it waits for, and that have executed the same instruction with another mask.
    pub(super) crossed: u32,
}

impl Group {
    /// Lanes that can go on.
    pub(super) fn ready(pc: u32, mask: u32) -> Group {
        Group { pc, mask, wait: Wait::Ready, crossed: 0 }
    }
}

/// A `cp.async` of some lanes that has not arrived.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) mask: u32,
    pub(super) pc: u32,
    /// Its number among the warp's copies.
    pub(super) number: u64,
    pub(super) bytes: u32,
    pub(super) to: [u32; 32],
    pub(super) from: [u64; 32],
    /// Number of bytes that are read; the rest is zeros.
    pub(super) read: [u8; 32],
    /// The group of each lane's copy; `u32::MAX` before the lane commits it.
    pub(super) group: [u32; 32],
    /// The first arrival that tracks each lane's copy, by its number; 0 where none does.
    pub(super) tracked: [u32; 32],
    /// The lanes whose copy has arrived.
    pub(super) done: u32,
    /// Whether the source is read-only.
    pub(super) is_fixed: bool,
}

impl Copy {
    /// Number of bytes of all lanes.
    pub(super) fn all_bytes(&self) -> u64 {
        u64::from(self.mask.count_ones()) * u64::from(self.bytes)
    }

    /// An arrival tracks the lanes' copies that no earlier arrival tracks.
    pub(super) fn track(&mut self, mask: u32, number: u32) {
        for l in (0..32).filter(|l| self.mask & mask & !self.done >> l & 1 != 0) {
            if self.tracked[l] == 0 {
                self.tracked[l] = number;
            }
        }
    }
}

/// An allocation, by its number: first address, and the one after the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocated {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) index: usize,
}

impl Allocated {
    /// None.
    const NOWHERE: Allocated = Allocated { start: 1, end: 0, index: 0 };

    #[inline(always)]
    pub(super) fn has(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }
}

/// How many allocations a warp remembers.
pub(super) const NEARS: usize = 8;

/// A shuffle from a lane that does not execute it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stray {
    pub(super) pc: u32,
    pub(super) lane: u32,
    pub(super) from: u32,
}

pub(super) struct Warp {
    /// Its index in the block, and the block's rank in the cluster.
    pub(super) index: u32,
    pub(super) rank: u32,
    pub(super) ctaid: [u32; 3],
    pub(super) rows: Vec<Row>,
    pub(super) preds: Vec<u32>,
    /// Lanes that exist and have not exited.
    pub(super) live: u32,
    pub(super) groups: Vec<Group>,
    /// Local memory, lane after lane.
    pub(super) local: Vec<u8>,
    pub(super) copies: VecDeque<Copy>,
    /// Groups that each lane has committed.
    pub(super) committed: [u32; 32],
    pub(super) steps: u64,
    pub(super) lane_steps: u64,
    /// The allocation of the last access.
    pub(super) near: Allocated,
    /// The last allocation of each instruction, by the lowest bits of the instruction's number.
    pub(super) nears: [Allocated; NEARS],
    /// Undefined bits of registers and predicates, for the check `init`.
    pub(super) shadow: Shadow,
    pub(super) local_written: Vec<u8>,
    /// The origin of an uninitialised value in local memory, by word.
    pub(super) local_origins: FxHashMap<u64, u32>,
    /// Branches around a barrier where lanes have diverged.
    pub(super) partings: Vec<Parting>,
    /// The last stray shuffle, for the check `init`.
    pub(super) stray: Option<Stray>,
    pub(super) clock: WarpClock,
    pub(super) flying: WarpFlying,
}

impl Warp {
    /// A warp of block `rank` of a cluster. It reuses the memory of the same warp in an ended cluster.
    pub(super) fn new(grid: &Grid<'_>, cluster: u64, rank: u32, index: u32, old: Option<Warp>) -> Warp {
        let block = cluster * u64::from(grid.ranks()) + u64::from(rank);
        let shared = u64::from(rank) * grid.shared_stride;
        let threads = grid.threads();
        let lanes = (threads - index * 32).min(32);
        let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        let code = grid.code;
        // Both warps are of one launch, so the cached allocations are still valid.
        let (near, nears) =
            old.as_ref().map_or((Allocated::NOWHERE, [Allocated::NOWHERE; NEARS]), |w| (w.near, w.nears));
        let (mut rows, mut preds, mut local, mut local_written, mut shadow) =
            old.map(|w| (w.rows, w.preds, w.local, w.local_written, w.shadow)).unwrap_or_default();
        if rows.is_empty() {
            rows.resize(code.rows as usize, Row([0; 32]));
            for (row, wide, value, is_shared) in &grid.constants {
                let value = if *is_shared { value + shared } else { *value };
                set_constant(&mut rows[*row as usize..], *wide, value);
            }
        } else if let Some(alive) = code.alive.as_ref().filter(|_| !grid.checks.init) {
            alive.iter().for_each(|row| rows[*row as usize] = Row([0; 32]));
        } else {
            // Constants are never written.
            rows[..grid.written_rows()].fill(Row([0; 32]));
        }
        let local_bytes = code.local_bytes as usize * 32;
        refill(&mut preds, 0, code.preds as usize);
        refill(&mut local, 0, local_bytes);
        refill(&mut local_written, 0, if grid.checks.init { local_bytes } else { 0 });
        shadow.begin(grid);
        Warp {
            index,
            rank,
            ctaid: grid.index(block),
            rows,
            preds,
            live,
            groups: vec![Group::ready(0, live)],
            local,
            copies: VecDeque::new(),
            committed: [0; 32],
            steps: 0,
            lane_steps: 0,
            near,
            nears,
            shadow,
            local_written,
            local_origins: FxHashMap::default(),
            partings: Vec::new(),
            stray: None,
            clock: WarpClock::new(grid, block, index, live),
            flying: WarpFlying::new(grid),
        }
    }

    /// The allocation of an address, which becomes the last one. `number` is the instruction's.
    #[inline(always)]
    pub(super) fn approach(&mut self, memory: &Memory, address: u64, number: u32) -> Option<Allocated> {
        if !self.near.has(address) {
            let known = &mut self.nears[number as usize % NEARS];
            if !known.has(address) {
                let index = memory.find(address)?;
                let a = &memory.allocations[index];
                *known = Allocated { start: a.start, end: a.end, index };
            }
            self.near = *known;
        }
        Some(self.near)
    }

    pub(super) fn rows(&mut self) -> Rows {
        Rows::new(&mut self.rows)
    }

    pub(super) fn is_done(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Fills the rows of a constant: two of them hold 32 words of 64 bits, low half first.
fn set_constant(rows: &mut [Row], wide: bool, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    if wide {
        let both = core::array::from_fn(|l| if l % 2 == 0 { low } else { high });
        rows[..2].fill(Row(both));
    } else {
        rows[0].0 = [low; 32];
    }
}

/// Fills a vector with `n` copies of a value, and keeps its memory.
pub(super) fn refill<T: Clone>(of: &mut Vec<T>, value: T, n: usize) {
    of.clear();
    of.resize(n, value);
}

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// Threads that have arrived.
    pub(super) arrived: u32,
    /// Threads that it waits for; `None` for all live threads.
    pub(super) count: Option<u32>,
    /// Result of a reduction: the number of true predicates, and of all predicates.
    pub(super) holds: u32,
    pub(super) of: u32,
    /// Groups that wait for a result: warp, instruction, lanes.
    pub(super) results: Vec<(u32, u32, u32)>,
    pub(super) in_use: bool,
}

/// The state that the warps of a block share, or of all blocks of a cluster.
pub(super) struct Block {
    /// Number of the block, or of the cluster.
    pub(super) number: u64,
    pub(super) shared: Vec<u8>,
    pub(super) shared_written: Vec<u8>,
    /// 16 barriers for each block.
    pub(super) barriers: Vec<Barrier>,
    pub(super) random: Random,
    pub(super) findings: Findings,
    pub(super) origins: Origins,
    pub(super) printed: String,
    /// The threads of each block that had exited when its last barrier opened, for the race check.
    pub(super) absent: Vec<Option<Absent>>,
    /// Whether the block cannot continue.
    pub(super) stopped: bool,
    pub(super) races: Option<Box<Races>>,
    /// Counts of each instruction, for the profile.
    pub(super) profile: Vec<Count>,
    pub(super) flying: Flying,
}
