//! The machine: blocks of warps of 32 lanes that execute the compact form.

mod accesses;
mod asynchronous;
pub(super) mod products;
pub(super) mod races;
pub(super) mod reports;
mod threads;
pub(super) mod undefined;
mod vectors;

pub(super) use threads::block::run_blocks;

use super::allow::Allow;
use super::code::Code;
use super::memory::Memory;
use crate::Finding;

/// Where the generic addresses of shared memory begin: addresses in it are offsets from here.
pub(super) const SHARED_WINDOW: u64 = 0x0100_0000_0000;
/// Where the generic addresses of a thread's local memory begin.
pub(super) const LOCAL_WINDOW: u64 = 0x0200_0000_0000;
/// The addresses of blocks of a cluster in shared memory differ by multiples of this.
pub(super) const SHARED_STRIDE: u64 = 1 << 18;
/// Multiprocessors of an H200.
pub(super) const MULTIPROCESSORS: u32 = 132;
/// Bytes of shared memory that the system reserves in each block (CUDA C++ Programming Guide, "Compute Capabilities": 1 KB).
pub(super) const RESERVED: u64 = 1024;
/// Bytes of either window.
pub(super) const WINDOW: u64 = 1 << 24;

/// The enabled checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    /// Elements of tensors, not only allocations.
    pub(super) bounds: bool,
    /// Reads of uninitialised memory.
    pub(super) init: bool,
    /// Data races.
    pub(super) races: bool,
    /// Happens-before paths between conflicting accesses.
    pub(super) paths: bool,
    /// Counts for each instruction.
    pub(super) profile: bool,
    /// Accesses while the previous kernel may still run.
    pub(super) early: bool,
}

/// A variable of shared memory, placed.
#[derive(Clone, Debug)]
pub(super) struct SharedPlace {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Its block in the cluster.
    pub(super) rank: u32,
}

/// The state that all blocks of a launch share.
pub(super) struct Grid<'a> {
    pub(super) code: &'a Code,
    pub(super) memory: &'a Memory,
    /// Values of constants: row, whether of two rows, value, whether it is an address in shared memory.
    pub(super) constants: Vec<(u32, bool, u64, bool)>,
    pub(super) params: Vec<u8>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Blocks of a cluster.
    pub(super) cluster: [u32; 3],
    pub(super) dynamic_smem: u32,
    /// Shared memory: its variables, and its bytes from offset 0,
    /// of each block of a cluster, one after the other.
    pub(super) shared: Vec<SharedPlace>,
    pub(super) shared_bytes: u64,
    /// Where, in each block, the memory lies that the system reserves, if the entry asks for it.
    pub(super) reserved: Option<u64>,
    /// The address of the workspace of a cooperative launch, or 0.
    pub(super) workspace: u64,
    /// Bytes from one block's to the next.
    pub(super) shared_stride: u64,
    pub(super) checks: Checks,
    /// The shadow entries that the loop checks before each instruction, for the check `init`.
    pub(super) sides: Vec<undefined::shadow::Sides>,
    /// Findings that the launch allows.
    pub(super) allow: &'a [Allow],
    pub(super) seed: u64,
    /// Warp instructions that the launch may take.
    pub(super) budget: u64,
    pub(super) workers: usize,
    /// The tensor core's adder, for sums bit by bit; `None` for sums in f32.
    pub(super) adder: Option<products::sums::Adder>,
    /// Accesses of global memory, where races are looked for.
    pub(super) races: Option<std::sync::Mutex<races::race::Races>>,
    /// Where instructions stand, once that is asked for.
    pub(super) lines: reports::causes::Lines,
    /// Rows of asynchronous operations that have a number.
    pub(super) actors: std::sync::atomic::AtomicU32,
}

impl Grid<'_> {
    pub(super) fn threads(&self) -> u32 {
        self.block[0] * self.block[1] * self.block[2]
    }

    /// Number of rows before the constants.
    pub(super) fn written_rows(&self) -> usize {
        self.constants.iter().map(|(row, ..)| *row).min().unwrap_or(self.code.rows) as usize
    }

    /// Warps of a block.
    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Blocks of a cluster.
    pub(super) fn ranks(&self) -> u32 {
        self.cluster.iter().product()
    }

    pub(super) fn clusters(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product::<u64>() / u64::from(self.ranks())
    }

    /// The index of a block by number. The blocks of a cluster have consecutive numbers.
    pub(super) fn index(&self, number: u64) -> [u32; 3] {
        let (cluster, rank) = (number / u64::from(self.ranks()), number % u64::from(self.ranks()));
        let split = |n: u64, [x, y]: [u32; 2]| {
            let (x, y) = (u64::from(x), u64::from(y));
            [n % x, n / x % y, n / x / y].map(|n| n as u32)
        };
        let [cx, cy, _] = self.cluster;
        let (of, within) = (split(cluster, [self.grid[0] / cx, self.grid[1] / cy]), split(rank, [cx, cy]));
        core::array::from_fn(|i| of[i] * self.cluster[i] + within[i])
    }

    /// A number for a row of asynchronous operations.
    pub(super) fn actor(&self) -> u32 {
        self.actors.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Numbers for a row of each lane of a warp: the first of them.
    pub(super) fn actors_of_warp(&self) -> u32 {
        self.actors.fetch_add(32, std::sync::atomic::Ordering::Relaxed)
    }
}

/// The row of the previous kernel in the stream. It is over for a warp that has executed `griddepcontrol.wait`, and for warps that
/// synchronise with such a warp.
pub(super) const BEFORE: u32 = 0;

/// The results of a launch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<Finding>,
    /// Findings that the launch allows.
    pub(super) allowed: Vec<Finding>,
    /// Number of occurrences without a finding.
    pub(super) dropped: u64,
    pub(super) paths: races::paths::Paths,
    /// Counts of each instruction, on request.
    pub(super) profile: Vec<reports::profile::Count>,
    pub(super) stages: Vec<crate::Stages>,
    /// Output of `printf`.
    pub(super) printed: String,
    /// Blocks that ran to their end.
    pub(super) finished: u64,
    /// Warp instructions, and lanes of them.
    pub(super) instructions: u64,
    pub(super) lane_instructions: u64,
}

/// A small generator of numbers: SplitMix64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}
