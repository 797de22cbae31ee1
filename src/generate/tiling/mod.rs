//! The work of a cluster's threads on tiles, said once, as layouts; everything else is read from it. Every family has one.
//!
//! A [`Tiling`] holds the tensors in shared memory, the copies, the MMAs, the roles of the warps, the cluster and the order of tiles
//! of one kernel on one architecture. Its readers know no kernel family: the C++ types (`Tiling::aliases`), the static_asserts
//! ([`Tiling::assertions`]), the proofs ([`Tiling::flaws`]), the passes over the banks ([`Tiling::shared`]), the counts
//! ([`Tiling::counts`]), and the tensor maps ([`TileCopy::tensor_map`]).

mod access;
mod copy;
mod count;
mod cover;
mod factors;
mod guard;
mod injective;
mod moves;
mod order;
mod pipeline;
mod reduce;
mod roles;
mod smem;
mod sums;
mod tensor_map;
#[cfg(test)]
mod tests;
mod tma;

use core::fmt;

pub use copy::{Completion, CopyOp, Engine, Global, Guard, Place, TileCopy};
pub use count::{CopyCount, Counts};
pub use cover::{Flaw, Law};
pub use moves::Moves;
pub use order::{Axis, Inner, Known, Order, Takes};
pub use pipeline::{Arrivals, Pipeline};
pub use reduce::{ReduceOp, Reduced, Scope, TileReduce};
pub use smem::{Lives, Proxy, SmemTensor};
pub(crate) use smem::{piece, pieces};
pub use tensor_map::{MOST_MAP_MODES, MapSwizzle, MapType, TensorMap, TensorMapSpec};

use crate::arch::Arch;
use crate::atom::{MmaAtom, Operand, TiledMma};
use crate::layout::{IntTuple, Layout, LayoutError, Tiler};
use crate::units::Bytes;

/// One kernel on one architecture: the work of its threads on a CTA tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiling {
    /// The CTA tile, (BM,BN,BK), in elements.
    pub tile: [i64; 3],
    /// Tensors in shared memory, in the order in which they lie there.
    pub smem: Vec<SmemTensor>,
    /// The tensors that are filled together, stage by stage.
    pub pipelines: Vec<Pipeline>,
    /// What moves between memories.
    pub copies: Vec<TileCopy>,
    /// What is multiplied.
    pub mmas: Vec<TileMma>,
    /// Reductions over threads.
    pub reduces: Vec<TileReduce>,
    /// What the threads are for, from thread 0 on.
    pub roles: Vec<Role>,
    /// CTAs of a cluster, along M and N, which share what they read, and along K, whose sums are of one tile.
    pub cluster: [u32; 3],
    /// Which tile of the output each piece of work is, and the trip count of its inner loop.
    pub order: Order,
}

impl Tiling {
    /// A tiling of rows and columns whose copies all threads of a CTA share, without an MMA, pipelines and clusters.
    pub fn of_copies([rows, columns]: [i64; 2], threads: i64, copies: Vec<TileCopy>, order: Order) -> Self {
        Self {
            tile: [rows, columns, 1],
            smem: Vec::new(),
            pipelines: Vec::new(),
            copies,
            mmas: Vec::new(),
            reduces: Vec::new(),
            roles: vec![Role { task: Task::All, threads: threads as u32, registers: None }],
            cluster: [1; 3],
            order,
        }
    }
}

/// A layout whose modes have an extent and a stride each.
///
/// # Errors
/// An extent or a stride is out of range.
pub fn flat<const MODES: usize>(modes: [(i64, i64); MODES]) -> Result<Layout, LayoutError> {
    let modes = modes.into_iter().map(|(extent, stride)| Layout::mode_of(extent, stride));
    Layout::from_modes(modes.collect::<Result<Vec<_>, _>>()?)
}

/// An MMA: D (M,N) += A (M,K) * B (N,K).
#[derive(Clone, Debug, PartialEq)]
pub struct TileMma {
    /// Its name in the text.
    pub name: &'static str,
    /// The names of the tiles of A, B and D in the text.
    pub tiles: [&'static str; 3],
    /// What it multiplies for one k-tile: (M,N,K), in elements.
    pub tile: [i64; 3],
    /// CuTe's name of the instruction: `SM80_16x8x16_F32F16F16F32_TN`.
    pub atom: String,
    /// Atoms along (M,N,K), to their number.
    pub atoms: Layout,
    /// What the atoms are spread over, by mode, where it is more than they cover by themselves, or in another order.
    pub permutation: Option<Tiler>,
    /// Where A is.
    pub a: Factor,
    /// Where B is.
    pub b: Factor,
    /// Whether its sum moves to a second accumulator from time to time.
    pub promotion: Option<Promotion>,
}

/// A sum that moves to a second accumulator, scaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// After how many k-tiles.
    pub every: u32,
    /// The tensors in shared memory with the scales, filled with the factors.
    pub scales: Vec<&'static str>,
}

/// Where an MMA takes A or B from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// From fragments, which a copy fills.
    Fragments,
    /// From this tensor in shared memory, through descriptors.
    Shared(&'static str),
    /// From the accumulators of the MMA of this name, converted to its own type. A thread has to hold what it multiplies.
    Accumulators(&'static str),
}

impl TileMma {
    /// One that is spread over nothing but its own atoms, and keeps its sum.
    pub fn new(
        (name, tiles): (&'static str, [&'static str; 3]),
        tile: [i64; 3],
        (atom, atoms): (String, Layout),
        [a, b]: [Factor; 2],
    ) -> Self {
        Self { name, tiles, tile, atom, atoms, permutation: None, a, b, promotion: None }
    }

    /// A and B, with the operand that each is.
    pub fn factors(&self) -> [(Operand, Factor); 2] {
        [(Operand::A, self.a), (Operand::B, self.b)]
    }

    /// Whether it takes A or B from fragments that a copy fills.
    pub fn has_fragments(&self) -> bool {
        self.factors().iter().any(|(_, factor)| *factor == Factor::Fragments)
    }

    /// The tile of an operand, (rows, columns).
    pub fn tile_of(&self, operand: Operand) -> [i64; 2] {
        let [m, n, k] = self.tile;
        match operand {
            Operand::A => [m, k],
            Operand::B => [n, k],
            Operand::C => [m, n],
        }
    }

    /// The atom with its thread layout and permutation.
    ///
    /// # Errors
    /// There is no such atom, or the atoms do not fit the permutation.
    pub fn tiled(&self) -> Result<TiledMma, LayoutError> {
        let keep = || Tiler::Shape(IntTuple::any());
        let permutation = self.permutation.clone().unwrap_or_else(|| Tiler::Tuple(vec![keep(), keep(), keep()]));
        TiledMma::new(MmaAtom::named(&self.atom)?, &self.atoms, &permutation)
    }
}

/// Threads with one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// What they do.
    pub task: Task,
    /// How many.
    pub threads: u32,
    /// Registers of each, where warpgroups share them out by `setmaxnreg`.
    pub registers: Option<u32>,
}

/// What a warp is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Copies tiles to shared memory.
    Produce,
    /// Computes on them and writes D.
    Consume,
    /// Both.
    All,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Produce => "producer",
            Task::Consume => "consumer",
            Task::All => "producer and consumer",
        })
    }
}

impl Tiling {
    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.roles.iter().map(|role| role.threads).sum()
    }

    /// Threads with a task.
    pub fn threads_of(&self, task: Task) -> u32 {
        self.roles.iter().filter(|role| role.task == task || role.task == Task::All).map(|role| role.threads).sum()
    }

    /// Groups of consumers with a tile each.
    pub fn teams(&self) -> u32 {
        match self.order.takes {
            Takes::One => 1,
            Takes::Turns { teams, .. } => teams.max(1),
        }
    }

    /// Threads that compute one tile.
    pub fn threads_of_tile(&self) -> u32 {
        self.threads_of(Task::Consume) / self.teams()
    }

    /// The tensor of that name in shared memory.
    pub fn smem(&self, name: &str) -> Option<&SmemTensor> {
        self.smem.iter().find(|tensor| tensor.name == name)
    }

    /// The MMA of that name.
    pub fn mma(&self, name: &str) -> Option<&TileMma> {
        self.mmas.iter().find(|mma| mma.name == name)
    }

    /// The copy of that name.
    pub fn copy(&self, name: &str) -> Option<&TileCopy> {
        self.copies.iter().find(|copy| copy.name == name)
    }

    /// The newest instruction of its threads, by CuTe's name, and the architecture that has it first, with which the name begins.
    pub(crate) fn newest_instruction(&self) -> Option<(u32, &str)> {
        let copies = self.copies.iter().filter_map(|copy| Some(copy.op()?.name()));
        let mmas = self.mmas.iter().map(|mma| mma.atom.as_str());
        mmas.chain(copies)
            .filter_map(|name| Some((name.strip_prefix("SM")?.split_once('_')?.0.parse().ok()?, name)))
            .max()
    }

    /// Rows and columns of the tile of D: a column for two of the accumulators', where these give it pairs.
    pub(crate) fn tile_of_d(&self) -> [i64; 2] {
        let [m, n, _] = self.tile;
        let pairs = self.copies.iter().any(|copy| matches!(copy.from, Place::Pairs(_)));
        [m, if pairs { n / 2 } else { n }]
    }

    /// The copies from and to global memory, in order.
    pub fn of_global_memory(&self) -> impl Iterator<Item = &TileCopy> {
        self.copies.iter().filter(|copy| copy.global().is_some())
    }

    /// Stages of the longest pipeline.
    pub fn stages(&self) -> i64 {
        self.pipelines.iter().map(|pipeline| pipeline.stages).max().unwrap_or(1)
    }

    /// The tensors in shared memory that pipelines fill.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &SmemTensor> {
        let filled = |tensor: &&SmemTensor| self.pipelines.iter().any(|p| p.tensors.contains(&tensor.name));
        self.smem.iter().filter(filled)
    }

    /// Registers of a thread that the CTA is launched with, where it has a multiprocessor to itself.
    pub fn launched_registers(&self) -> u32 {
        let each = Arch::REGISTERS_PER_BLOCK / u64::from(self.threads().max(1)) / 8 * 8;
        each.min(Arch::MAX_REGISTERS_PER_THREAD) as u32
    }

    /// Why ptxas refuses a WGMMA with too many accumulators.
    pub(crate) const AT_ONCE: &str =
        "ptxas needs them and a few more within the registers of the launch, even where `setmaxnreg` adds some (C7602)";

    /// The accumulators of a thread in its largest WGMMA, and the most, where it has more: nvcc 13.0 refuses 104 in a thread with 128
    /// registers, as it needs 130, and 112 with 138.
    pub(crate) fn too_many_at_once(&self) -> Option<[u32; 2]> {
        let by_descriptors = self.mmas.iter().filter(|mma| matches!(mma.b, Factor::Shared(_)));
        // 64 rows, shared by 128 threads.
        let accumulators = by_descriptors.map(|mma| mma.tile[1] as u32 / 2).max()?;
        let most = self.launched_registers().saturating_sub(26);
        (accumulators > most).then_some([accumulators, most])
    }

    /// CTAs of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Whether clusters share tiles along K.
    pub fn streams_k(&self) -> bool {
        matches!(self.order.takes, Takes::Turns { stream_k: 1.., .. })
    }

    /// CTAs of a cluster that compute one tile, each of a part of K.
    pub fn splits(&self) -> u32 {
        self.cluster[2].max(1)
    }

    /// Number of mbarriers. A pipeline that completes by mbarrier has a full and an empty one a stage. Teams that take turns have one
    /// each. Split-K within a cluster has a pair for the sums that CTAs exchange.
    pub fn mbarriers(&self) -> u64 {
        let by_turns = if self.teams() > 1 { u64::from(self.teams()) } else { 0 };
        let of_parts = if self.splits() > 1 { 2 } else { 0 };
        let by_mbarrier = self.pipelines.iter().filter(|pipeline| pipeline.completes == Completion::Mbarrier);
        by_mbarrier.map(|pipeline| 2 * pipeline.stages as u64).sum::<u64>() + by_turns + of_parts
    }

    /// Shared memory of a CTA: each tensor at the next multiple of its alignment, mbarriers behind them, the whole a multiple of
    /// the largest alignment, as C++ lays out a struct. Tensors of the epilogue and of the mainloop are a union.
    ///
    /// # Errors
    /// It does not fit in 64 bits.
    pub fn smem_bytes(&self) -> Result<Bytes, LayoutError> {
        let mut align = if self.mbarriers() > 0 { 8_u64 } else { 1 };
        let mut end = |from: u64, lives: Lives| {
            self.smem.iter().filter(|tensor| tensor.lives == lives).try_fold(from, |at, tensor| {
                align = align.max(tensor.align.0);
                Ok::<_, LayoutError>(at.next_multiple_of(tensor.align.0.max(1)) + tensor.bytes()?.0)
            })
        };
        let own = end(0, Lives::Kernel)?;
        let mut all = end(own, Lives::Mainloop)?.max(end(own, Lives::Epilogue)?);
        if self.mbarriers() > 0 {
            all = all.next_multiple_of(8) + 8 * self.mbarriers();
        }
        Ok(Bytes(all.next_multiple_of(align)))
    }
}
