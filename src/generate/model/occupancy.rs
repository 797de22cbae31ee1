//! How many blocks of a kernel a multiprocessor holds at once.

use core::fmt;

use crate::arch::Arch;
use crate::units::Bytes;

/// What one block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// Threads of the block.
    pub threads: u32,
    /// 32-bit registers of a thread.
    pub registers: u64,
    /// Shared memory of the block, static and dynamic.
    pub smem: Bytes,
}

/// The resource that keeps another block from a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OccupancyLimit {
    /// The registers of a multiprocessor.
    Registers,
    /// Its shared memory.
    SharedMemory,
    /// Its threads.
    Threads,
    /// Its blocks.
    Blocks,
}

impl fmt::Display for OccupancyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OccupancyLimit::Registers => "registers",
            OccupancyLimit::SharedMemory => "shared memory",
            OccupancyLimit::Threads => "threads",
            OccupancyLimit::Blocks => "blocks",
        })
    }
}

/// The blocks of one kernel that a multiprocessor holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupancy {
    /// Blocks; 0 where not even one fits.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// Warps that a multiprocessor can hold.
    pub most_warps: u32,
    /// What keeps another block away.
    pub limit: OccupancyLimit,
}

impl Occupancy {
    /// The number of waves of `blocks` blocks on `sms` multiprocessors, the last one counted by its share; `None` if a
    /// multiprocessor holds no block.
    ///
    /// ```
    /// use cutemplate::arch::Arch;
    /// use cutemplate::model::Footprint;
    /// use cutemplate::units::Bytes;
    ///
    /// let two = Footprint { threads: 256, registers: 128, smem: Bytes(81 << 10) }.occupancy(Arch::Sm90a);
    /// assert_eq!(two.waves(1024, 132), Some(1024.0 / 264.0));
    /// ```
    pub fn waves(&self, blocks: u64, sms: u64) -> Option<f64> {
        let at_a_time = u64::from(self.blocks) * sms;
        (at_a_time > 0).then(|| blocks as f64 / at_a_time as f64)
    }
}

impl fmt::Display for Occupancy {
    /// `3 blocks, 24 of 64 warps on a multiprocessor, limited by registers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, warps, most_warps, limit } = self;
        let plural = if *blocks == 1 { "" } else { "s" };
        write!(f, "{blocks} block{plural}, {warps} of {most_warps} warps on a multiprocessor, limited by {limit}")
    }
}

impl Footprint {
    /// The blocks that a multiprocessor of this architecture holds at once: what
    /// `cuOccupancyMaxActiveBlocksPerMultiprocessor` answers where all shared memory is left to shared memory.
    ///
    /// Threads take whole warps. A warp takes registers in units of 256, of the quarter of the multiprocessor that it lives
    /// in. A block takes shared memory in units, and some more than it asks for: [`Arch::smem_of_block`]. (CUDA Occupancy Calculator.)
    ///
    /// ```
    /// use cutemplate::arch::Arch;
    /// use cutemplate::model::{Footprint, OccupancyLimit};
    /// use cutemplate::units::Bytes;
    ///
    /// let block = Footprint { threads: 256, registers: 96, smem: Bytes(16 << 10) };
    /// let on_h200 = block.occupancy(Arch::Sm90a);
    /// assert_eq!((on_h200.blocks, on_h200.warps, on_h200.limit), (2, 16, OccupancyLimit::Registers));
    /// let more_room = Footprint { registers: 80, ..block };
    /// assert_eq!(more_room.occupancy(Arch::Sm90a).blocks, 3);
    /// ```
    pub fn occupancy(&self, arch: Arch) -> Occupancy {
        let warps = u64::from(self.threads).div_ceil(Arch::WARP).max(1);
        let most_warps = u64::from(arch.threads_per_sm()) / Arch::WARP;
        let by_registers = match (self.registers * Arch::WARP).next_multiple_of(Arch::REGISTER_UNIT) {
            _ if self.registers > Arch::MAX_REGISTERS_PER_THREAD => 0,
            0 => most_warps / warps,
            of_a_warp => Arch::REGISTERS_PER_SM / Arch::PARTITIONS / of_a_warp * Arch::PARTITIONS / warps,
        };
        let by_smem = match arch.smem_of_block(self.smem).0 {
            _ if self.smem > arch.smem_per_block() => 0,
            0 => arch.blocks_per_sm().into(),
            taken => arch.smem_per_sm().0 / taken,
        };
        let by_threads = if u64::from(self.threads) > Arch::MAX_THREADS { 0 } else { most_warps / warps };
        let limits = [
            (by_registers, OccupancyLimit::Registers),
            (by_smem, OccupancyLimit::SharedMemory),
            (by_threads, OccupancyLimit::Threads),
            (u64::from(arch.blocks_per_sm()), OccupancyLimit::Blocks),
        ];
        // Among equal limits, the first one is the one that a kernel can do something about.
        let (blocks, limit) = limits.into_iter().min().unwrap_or((0, OccupancyLimit::Blocks));
        Occupancy { blocks: blocks as u32, warps: (blocks * warps) as u32, most_warps: most_warps as u32, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::test_runner::{Config as ProptestConfig, RngSeed};

    fn of(arch: Arch, threads: u32, registers: u64, smem: u64) -> (u32, u32, OccupancyLimit) {
        let found = Footprint { threads, registers, smem: Bytes(smem) }.occupancy(arch);
        (found.blocks, found.warps, found.limit)
    }

    /// Cases whose answers follow from the tables of the guide by hand.
    #[test]
    fn each_resource_can_be_the_limit() {
        use OccupancyLimit::{Blocks, Registers, SharedMemory, Threads};
        // 1024 registers a warp: 16 of them in each quarter, 64 warps.
        assert_eq!(of(Arch::Sm80, 256, 32, 0), (8, 64, Registers));
        assert_eq!(of(Arch::Sm80, 256, 24, 0), (8, 64, Threads));
        assert_eq!(of(Arch::Sm80, 32, 16, 0), (32, 32, Blocks));
        assert_eq!(of(Arch::Sm86, 32, 16, 0), (16, 16, Blocks));
        assert_eq!(of(Arch::Sm89, 32, 16, 0), (24, 24, Blocks));
        assert_eq!(of(Arch::Sm89, 256, 24, 0), (6, 48, Threads));
        // 255 registers are 8192 a warp, two warps in each quarter.
        assert_eq!(of(Arch::Sm90a, 256, 255, 0), (1, 8, Registers));
        assert_eq!(of(Arch::Sm90a, 512, 255, 0), (0, 0, Registers));
        // 113 KiB and the reserved one are half of 228; one byte more is not.
        assert_eq!(of(Arch::Sm90a, 128, 32, 113 << 10), (2, 8, SharedMemory));
        assert_eq!(of(Arch::Sm90a, 128, 32, (113 << 10) + 1), (1, 4, SharedMemory));
        assert_eq!(of(Arch::Sm80, 128, 32, 163 << 10), (1, 4, SharedMemory));
        assert_eq!(of(Arch::Sm80, 128, 32, (163 << 10) + 1), (0, 0, SharedMemory));
        // 33 registers are 1056 a warp, of which it gets 1280, in units of 256: 12 of them in each quarter.
        assert_eq!(of(Arch::Sm80, 128, 33, 0), (12, 48, Registers));
        assert_eq!(of(Arch::Sm80, 128, 40, 0), (12, 48, Registers));
        assert_eq!(of(Arch::Sm80, 128, 41, 0), (10, 40, Registers));
        // A part of a warp takes a whole one.
        assert_eq!(of(Arch::Sm90, 33, 128, 0), (8, 16, Registers));
    }

    proptest::proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(0x5eed_0cc0),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Less of any resource leaves room for at least as many blocks, and no resource is promised twice.
        #[test]
        fn what_is_held_fits(
            arch in 0..Arch::ALL.len(),
            threads in 1_u32..1025,
            registers in 1_u64..256,
            smem in 0_u64..(230 << 10),
        ) {
            let arch = Arch::ALL[arch];
            let block = Footprint { threads, registers, smem: Bytes(smem) };
            let held = block.occupancy(arch);
            let warps = u64::from(threads.div_ceil(32));
            proptest::prop_assert!(held.warps <= held.most_warps && held.blocks <= arch.blocks_per_sm());
            proptest::prop_assert!(u64::from(held.blocks) * warps * 32 * registers <= Arch::REGISTERS_PER_SM);
            proptest::prop_assert!(u64::from(held.blocks) * arch.smem_of_block(Bytes(smem)).0 <= arch.smem_per_sm().0);
            let smaller = Footprint { threads, registers: registers - 1, smem: Bytes(smem / 2) };
            proptest::prop_assert!(smaller.occupancy(arch).blocks >= held.blocks);
        }
    }
}
