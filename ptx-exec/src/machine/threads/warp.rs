//! The state of a warp, and of a block.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::barrier::Absent;
use super::parting::Parting;
use crate::machine::asynchronous::flight::{Flying, WarpFlying};
use crate::machine::races::order::WarpClock;
use crate::machine::races::race::Races;
use crate::machine::reports::causes::Findings;
use crate::machine::reports::profile::Count;
use crate::machine::undefined::origin::Origins;
use crate::machine::undefined::shadow::Shadow;
use crate::machine::vectors::vector::{Row, Rows};
use crate::machine::{Grid, Random};
use crate::memory::Memory;

/// The event that lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
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
pub(crate) struct Group {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) wait: Wait,
    /// Lanes that it waits for, and that have executed the same instruction with another mask.
    pub(crate) crossed: u32,
}

impl Group {
    /// Lanes that can go on.
    pub(crate) fn ready(pc: u32, mask: u32) -> Group {
        Group { pc, mask, wait: Wait::Ready, crossed: 0 }
    }
}

/// A `cp.async` of some lanes that has not arrived.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    /// Its number among the warp's copies.
    pub(crate) number: u64,
    pub(crate) bytes: u32,
    pub(crate) to: [u32; 32],
    pub(crate) from: [u64; 32],
    /// Number of bytes that are read; the rest is zeros.
    pub(crate) read: [u8; 32],
    /// The group of each lane's copy; `u32::MAX` before the lane commits it.
    pub(crate) group: [u32; 32],
    /// The first arrival that tracks each lane's copy, by its number; 0 where none does.
    pub(crate) tracked: [u32; 32],
    /// The lanes whose copy has arrived.
    pub(crate) done: u32,
    /// Whether the source is read-only.
    pub(crate) is_fixed: bool,
}

impl Copy {
    /// Number of bytes of all lanes.
    pub(crate) fn all_bytes(&self) -> u64 {
        u64::from(self.mask.count_ones()) * u64::from(self.bytes)
    }

    /// An arrival tracks the lanes' copies that no earlier arrival tracks.
    pub(crate) fn track(&mut self, mask: u32, number: u32) {
        for l in (0..32).filter(|l| self.mask & mask & !self.done >> l & 1 != 0) {
            if self.tracked[l] == 0 {
                self.tracked[l] = number;
            }
        }
    }
}

/// An allocation, by its number: first address, and the one after the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocated {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) index: usize,
}

impl Allocated {
    /// None.
    const NOWHERE: Allocated = Allocated { start: 1, end: 0, index: 0 };

    #[inline(always)]
    pub(crate) fn has(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }
}

/// How many allocations a warp remembers.
pub(crate) const NEARS: usize = 8;

/// A shuffle from a lane that does not execute it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stray {
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    pub(crate) from: u32,
}

pub(crate) struct Warp {
    /// Its index in the block, and the block's rank in the cluster.
    pub(crate) index: u32,
    pub(crate) rank: u32,
    pub(crate) ctaid: [u32; 3],
    pub(crate) rows: Vec<Row>,
    pub(crate) preds: Vec<u32>,
    /// Lanes that exist and have not exited.
    pub(crate) live: u32,
    pub(crate) groups: Vec<Group>,
    /// Local memory, lane after lane.
    pub(crate) local: Vec<u8>,
    pub(crate) copies: VecDeque<Copy>,
    /// Groups that each lane has committed.
    pub(crate) committed: [u32; 32],
    pub(crate) steps: u64,
    pub(crate) lane_steps: u64,
    /// The allocation of the last access.
    pub(crate) near: Allocated,
    /// The last allocation of each instruction, by the lowest bits of the instruction's number.
    pub(crate) nears: [Allocated; NEARS],
    /// Undefined bits of registers and predicates, for the check `init`.
    pub(crate) shadow: Shadow,
    pub(crate) local_written: Vec<u8>,
    /// The origin of an uninitialised value in local memory, by word.
    pub(crate) local_origins: FxHashMap<u64, u32>,
    /// Branches around a barrier where lanes have diverged.
    pub(crate) partings: Vec<Parting>,
    /// The last stray shuffle, for the check `init`.
    pub(crate) stray: Option<Stray>,
    pub(crate) clock: WarpClock,
    pub(crate) flying: WarpFlying,
}

impl Warp {
    /// A warp of block `rank` of a cluster. It reuses the memory of the same warp in an ended cluster.
    pub(crate) fn new(grid: &Grid<'_>, cluster: u64, rank: u32, index: u32, old: Option<Warp>) -> Warp {
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
    pub(crate) fn approach(&mut self, memory: &Memory, address: u64, number: u32) -> Option<Allocated> {
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

    pub(crate) fn rows(&mut self) -> Rows {
        Rows::new(&mut self.rows)
    }

    pub(crate) fn is_done(&self) -> bool {
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
pub(crate) fn refill<T: Clone>(of: &mut Vec<T>, value: T, n: usize) {
    of.clear();
    of.resize(n, value);
}

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that have arrived.
    pub(crate) arrived: u32,
    /// Threads that it waits for; `None` for all live threads.
    pub(crate) count: Option<u32>,
    /// Result of a reduction: the number of true predicates, and of all predicates.
    pub(crate) holds: u32,
    pub(crate) of: u32,
    /// Groups that wait for a result: warp, instruction, lanes.
    pub(crate) results: Vec<(u32, u32, u32)>,
    pub(crate) in_use: bool,
}

/// The state that the warps of a block share, or of all blocks of a cluster.
pub(crate) struct Block {
    /// Number of the block, or of the cluster.
    pub(crate) number: u64,
    pub(crate) shared: Vec<u8>,
    pub(crate) shared_written: Vec<u8>,
    /// 16 barriers for each block.
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) random: Random,
    pub(crate) findings: Findings,
    pub(crate) origins: Origins,
    pub(crate) printed: String,
    /// The threads of each block that had exited when its last barrier opened, for the race check.
    pub(crate) absent: Vec<Option<Absent>>,
    /// Whether the block cannot continue.
    pub(crate) stopped: bool,
    pub(crate) races: Option<Box<Races>>,
    /// Counts of each instruction, for the profile.
    pub(crate) profile: Vec<Count>,
    pub(crate) flying: Flying,
}
