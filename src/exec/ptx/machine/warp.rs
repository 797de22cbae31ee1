//! The state of a warp, and of a block.

use std::collections::{BTreeMap, VecDeque};

use super::flight::{Flying, WarpFlying};
use super::order::WarpClock;
use super::paths::Paths;
use super::profile::Count;
use super::race::Races;
use super::shadow::Shadow;
use super::vector::{Row, Rows};
use super::{Grid, Random};
use crate::exec::{Finding, FindingKind};

/// What lanes wait for.
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
}

/// A `cp.async` of some lanes that has not arrived.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) mask: u32,
    pub(super) pc: u32,
    pub(super) bytes: u32,
    pub(super) to: [u32; 32],
    pub(super) from: [u64; 32],
    /// Bytes that are read; the others are zeros.
    pub(super) read: [u8; 32],
    /// The group of each lane's copy; `u32::MAX` before the lane commits it.
    pub(super) group: [u32; 32],
    /// Memory that nobody wrote is copied as such.
    pub(super) done: u32,
}

pub(super) struct Warp {
    /// Of its block, and the block of its cluster.
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
    /// The allocation of the last access: first address, and the one after the last.
    pub(super) near: (u64, u64),
    pub(super) near_index: usize,
    /// Undefined bits of registers and predicates, where they are looked for.
    pub(super) shadow: Shadow,
    pub(super) local_written: Vec<u8>,
    pub(super) clock: WarpClock,
    pub(super) flying: WarpFlying,
}

impl Warp {
    /// A warp of block `rank` of a cluster.
    pub(super) fn new(grid: &Grid<'_>, cluster: u64, rank: u32, index: u32) -> Warp {
        let block = cluster * u64::from(grid.ranks()) + u64::from(rank);
        let shared = u64::from(rank) * grid.shared_stride;
        let threads = grid.threads();
        let lanes = (threads - index * 32).min(32);
        let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        let code = grid.code;
        let mut rows = vec![Row([0; 32]); code.rows as usize];
        for (row, wide, value, is_shared) in &grid.constants {
            let row = *row as usize;
            let value = &(if *is_shared { value + shared } else { *value });
            if *wide {
                // Two rows hold 32 words of 64 bits, low half first.
                for l in 0..32 {
                    rows[row + l / 16].0[l % 16 * 2] = *value as u32;
                    rows[row + l / 16].0[l % 16 * 2 + 1] = (*value >> 32) as u32;
                }
            } else {
                rows[row].0 = [*value as u32; 32];
            }
        }
        let local = code.local_bytes as usize * 32;
        let init = grid.checks.init;
        Warp {
            index,
            rank,
            ctaid: grid.index(block),
            rows,
            preds: vec![0; code.preds as usize],
            live,
            groups: vec![Group { pc: 0, mask: live, wait: Wait::Ready }],
            local: vec![0; local],
            copies: VecDeque::new(),
            committed: [0; 32],
            steps: 0,
            lane_steps: 0,
            near: (1, 0),
            near_index: 0,
            shadow: Shadow::new(grid),
            local_written: vec![0; if init { local } else { 0 }],
            clock: WarpClock::new(grid, block, index, live),
            flying: WarpFlying::new(grid),
        }
    }

    pub(super) fn rows(&mut self) -> Rows {
        Rows::new(&mut self.rows)
    }

    pub(super) fn is_done(&self) -> bool {
        self.groups.is_empty()
    }
}

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// Threads that have arrived.
    pub(super) arrived: u32,
    /// Threads that it waits for; `None` for all that have not exited.
    pub(super) count: Option<u32>,
    /// Result of a reduction: how many predicates hold, and of how many.
    pub(super) holds: u32,
    pub(super) of: u32,
    /// Groups that wait for a result: warp, instruction, lanes.
    pub(super) results: Vec<(u32, u32, u32)>,
    pub(super) in_use: bool,
}

/// What the warps of a block share; of all blocks of a cluster, where there is one.
pub(super) struct Block {
    /// Of the cluster.
    pub(super) number: u64,
    pub(super) shared: Vec<u8>,
    pub(super) shared_written: Vec<u8>,
    /// 16 of each block.
    pub(super) barriers: Vec<Barrier>,
    pub(super) random: Random,
    pub(super) findings: BTreeMap<(FindingKind, u32), Finding>,
    pub(super) printed: String,
    /// Something from which the block cannot go on.
    pub(super) stopped: bool,
    /// Whether the kernel before it in the stream has ended for it: where that may still run, whether it has waited.
    pub(super) waited: bool,
    pub(super) races: Option<Box<Races>>,
    pub(super) paths: Paths,
    /// Of each instruction, where it is counted.
    pub(super) profile: Vec<Count>,
    pub(super) flying: Flying,
}
