//! The work of a launch's multiprocessors, and a lower bound of its time.

use super::machine::Machine;
use super::traffic::{Limit, Prediction};
use crate::arch::Arch;

/// Bytes that a multiprocessor takes from L2 in a cycle at most.
const L2_BYTES: f64 = 64.0;

/// The work of one block on its multiprocessor, in units of its pipes, and the launch's other work.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Work {
    /// Operations of the launch that count: two for each product that is added.
    pub flop: u64,
    /// Blocks with the work of a whole block; with unequal pieces of K, other blocks do less. If pieces give all
    /// multiprocessors equal work, steps along K.
    pub blocks: u64,
    /// Instructions of the warps of a block that follow from the plan: products, loads, stores, barriers. Addresses, loops and
    /// the arithmetic of the epilogue are not among them.
    pub instructions: u64,
    /// Passes over shared memory, and lines that loads and stores of global memory look up in L1.
    pub wavefronts: u64,
    /// Bytes of the sectors that all blocks bring from L2 and write there.
    pub l2_bytes: u64,
    /// Bytes that other kernels of the launch move, before it or after.
    pub other_bytes: u64,
    /// A block's work for tensor cores, if any.
    pub tensor: Option<TensorWork>,
}

/// A block's work for tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TensorWork {
    /// By which instructions.
    pub op: TensorOp,
    /// Products of 16-bit factors that they add.
    pub products: u64,
}

/// Instructions of tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorOp {
    /// `mma.sync`, of a warp.
    Mma,
    /// `wgmma.mma_async`, of a warpgroup.
    Wgmma,
}

impl TensorOp {
    /// Products of 16-bit factors that a multiprocessor adds in a cycle at most, sums in f32, none of them known to be zero.
    ///
    /// For 7.5: 512 (NVIDIA T4 datasheet: 65 TFLOP/s of 40 multiprocessors at 1.59 GHz).
    /// For 8.0: 1024 (NVIDIA A100 datasheet: 312 TFLOP/s of 108 multiprocessors at 1.41 GHz).
    /// For 8.6 and 8.9: 512 at most (NVIDIA RTX A6000 and L40 datasheets).
    /// For 9.0: 2048 by `wgmma` (NVIDIA H100 datasheet: 989 TFLOP/s of 132 multiprocessors at 1.83 GHz).
    /// There `mma.sync` counts as two thirds of that. It has reached 63 in 100 (Luo et al., "Benchmarking and
    /// Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024).
    /// For 10.0: 4096, which only `tcgen05` may reach
    /// (NVIDIA HGX B200 datasheet: 2.25 PFLOP/s of 148 multiprocessors at 1.98 GHz).
    /// For 12.0: 512 (NVIDIA RTX PRO 6000 Blackwell datasheet:
    /// an eighth of its 4000 TOP/s of 4-bit products, half of which are zero).
    /// No kernel was timed on 10.0 or 12.0.
    pub fn products_per_cycle(self, arch: Arch) -> f64 {
        match (arch, self) {
            (Arch::Sm80, _) => 1024.0,
            (Arch::Sm75 | Arch::Sm86 | Arch::Sm89 | Arch::Sm120, _) => 512.0,
            (Arch::Sm90 | Arch::Sm90a, TensorOp::Mma) => 2048.0 * 2.0 / 3.0,
            (Arch::Sm90 | Arch::Sm90a, TensorOp::Wgmma) => 2048.0,
            (Arch::Sm100, _) => 4096.0,
        }
    }
}

/// What one pipe takes for a launch.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Pipe {
    /// The pipe, as what holds the launch up.
    pub limit: Limit,
    /// Seconds, if nothing else took any.
    pub seconds: f64,
}

impl Work {
    /// Seconds that each pipe takes by itself.
    ///
    /// A scheduler starts one instruction of a warp in a cycle, and a multiprocessor has four (CUDA C++ Programming Guide,
    /// "Compute Capabilities", "Architecture" of 8.x and 9.0; its 128 f32 lanes are one instruction for each scheduler). Shared
    /// memory serves one wavefront in a cycle, and L1 looks up one line (Nsight Compute, Kernel Profiling Guide, "Wavefront" and
    /// "L1TEX"); that the two share one path is assumed. A multiprocessor takes 64 bytes from L2 in a cycle (Jia et al., "Dissecting
    /// the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018), whatever L2 gives. The busiest multiprocessor has
    /// a whole number of blocks, however many of them it holds at a time.
    pub fn pipes(&self, launch: &Prediction, machine: &Machine) -> Vec<Pipe> {
        let busiest = self.blocks.div_ceil(machine.sms) as f64;
        let instructions = busiest * self.instructions as f64 / Arch::PARTITIONS as f64 / machine.clock;
        let wavefronts = busiest * self.wavefronts as f64 / machine.clock;
        let l2 = self.l2_bytes as f64 / (L2_BYTES * machine.sms as f64 * machine.clock);
        let memory = launch.bytes() as f64 / machine.copy;
        let tensor = self.tensor.map(|TensorWork { op, products }| {
            let cycles = busiest * products as f64 / op.products_per_cycle(machine.arch);
            Pipe { limit: Limit::TensorCores, seconds: cycles / machine.clock }
        });
        let others = [
            Pipe { limit: Limit::Instructions, seconds: instructions },
            Pipe { limit: Limit::Wavefronts, seconds: wavefronts },
            Pipe { limit: Limit::L2, seconds: l2 },
            Pipe { limit: Limit::Bandwidth, seconds: memory },
        ];
        tensor.into_iter().chain(others).collect()
    }

    /// Seconds of the busiest pipe and of what comes before and after, which may lie in L2, and that pipe.
    pub(super) fn seconds(&self, launch: &Prediction, machine: &Machine) -> (f64, Limit) {
        let slowest = self.pipes(launch, machine).into_iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let Pipe { limit, seconds } = slowest.unwrap_or(Pipe { limit: Limit::Bandwidth, seconds: 0.0 });
        (seconds + self.other_bytes as f64 / machine.l2, limit)
    }
}
