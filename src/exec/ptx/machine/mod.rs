//! The machine: blocks of warps of 32 lanes that execute the compact form.

mod access;
mod atomics;
mod barrier;
mod block;
mod bulk;
mod check;
mod copies;
mod defined;
mod lanes;
mod matrix;
pub(super) mod mma;
mod order;
pub(super) mod paths;
pub(super) mod profile;
pub(super) mod race;
pub(super) mod report;
mod rows;
mod run;
pub(super) mod shadow;
mod step;
pub(super) mod sums;
#[cfg(target_arch = "x86_64")]
mod sums_v3;
mod tensor;
mod vector;
mod warp;

pub(super) use block::run_blocks;

use super::code::Code;
use super::memory::Memory;
use crate::exec::Finding;

/// Where the generic addresses of shared memory begin: addresses in it are offsets from here.
pub(super) const SHARED_WINDOW: u64 = 0x0100_0000_0000;
/// Where the generic addresses of a thread's local memory begin.
pub(super) const LOCAL_WINDOW: u64 = 0x0200_0000_0000;
/// Bytes of either window.
pub(super) const WINDOW: u64 = 1 << 24;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    /// Elements of tensors, not only allocations.
    pub(super) bounds: bool,
    /// Reads of what nobody wrote.
    pub(super) init: bool,
    /// Accesses that nothing orders.
    pub(super) races: bool,
    /// By what the others are ordered.
    pub(super) paths: bool,
    /// What instructions do is counted.
    pub(super) profile: bool,
}

/// A variable of shared memory, placed.
#[derive(Clone, Debug)]
pub(super) struct SharedPlace {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// What all blocks of a launch see.
pub(super) struct Grid<'a> {
    pub(super) code: &'a Code,
    pub(super) memory: &'a Memory,
    /// Values of constants: row, whether of two rows, value.
    pub(super) constants: Vec<(u32, bool, u64)>,
    pub(super) params: Vec<u8>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_smem: u32,
    /// Shared memory: its variables, and its bytes from offset 0.
    pub(super) shared: Vec<SharedPlace>,
    pub(super) shared_bytes: u64,
    pub(super) checks: Checks,
    /// What the loop looks at before each instruction, where what nobody wrote is looked for.
    pub(super) sides: Vec<shadow::Sides>,
    pub(super) seed: u64,
    /// Warp instructions that the launch may take.
    pub(super) budget: u64,
    pub(super) workers: usize,
    /// How sums of tensor cores are made bit by bit; else in f32.
    pub(super) adder: Option<sums::Adder>,
    /// Accesses of global memory, where races are looked for.
    pub(super) races: Option<std::sync::Mutex<race::Races>>,
}

impl Grid<'_> {
    pub(super) fn threads(&self) -> u32 {
        self.block[0] * self.block[1] * self.block[2]
    }

    pub(super) fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }
}

/// What came of a launch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<Finding>,
    pub(super) paths: paths::Paths,
    /// Of each instruction, where it is asked for.
    pub(super) profile: Vec<profile::Count>,
    /// What the kernel printed.
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
