//! What the threads of a CTA do with a tile, said once, as layouts; everything else is read from it.
//!
//! A [`Tiling`] holds the tensors in shared memory, the copies, the MMAs, the roles of the warps, the cluster and the schedule
//! of one kernel on one architecture. Its readers know no kernel family: the C++ types (`Tiling::aliases`), the static_asserts
//! ([`Tiling::assertions`]), the proofs ([`Tiling::flaws`]), the passes over the banks ([`Tiling::shared`]), the counts
//! ([`Tiling::counts`]), and the tensor maps ([`TileCopy::tensor_map`]).

mod access;
mod count;
mod cover;
mod guard;
mod injective;
mod moves;
mod sums;
mod tensor_map;
#[cfg(test)]
mod tests;
mod tma;

use core::fmt;

pub use count::{Arrivals, CopyCount, Counts};
pub use cover::{Flaw, Law};
pub use moves::Moves;
pub use tensor_map::{MOST_MAP_MODES, MapSwizzle, MapType, TensorMap, TensorMapSpec};

use crate::arch::Arch;
use crate::atom::{CopyAtom, MmaAtom, Operand, TiledMma};
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Swizzle, Tiler, take};
use crate::units::Bytes;

/// One kernel on one architecture: what its threads do with a CTA tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiling {
    /// The CTA tile, (BM,BN,BK), in elements.
    pub tile: [i64; 3],
    /// Tensors in shared memory, in the order in which they lie there.
    pub smem: Vec<SmemTensor>,
    /// What moves between memories.
    pub copies: Vec<TileCopy>,
    /// What is multiplied.
    pub mmas: Vec<TileMma>,
    /// What the threads are for, from thread 0 on.
    pub roles: Vec<Role>,
    /// CTAs of a cluster, along M and N, which share what they read, and along K, whose sums are of one tile.
    pub cluster: [u32; 3],
    /// Which CTA computes which tile.
    pub schedule: Schedule,
}

/// A tensor in shared memory: `swizzle o layout`, a tile for each stage.
#[derive(Clone, Debug, PartialEq)]
pub struct SmemTensor {
    /// Its name in the text, without the `s`: `A` for `sA` and `SmemA`.
    pub name: &'static str,
    /// Its modes in the text's words: `(BM,BK,STAGES)`.
    pub modes: &'static str,
    /// Its element type.
    pub dtype: DType,
    /// What exchanges its elements, in elements.
    pub swizzle: Option<Swizzle>,
    /// (rows, columns, stages) to elements, before the swizzle.
    pub layout: Layout,
    /// What the address of its first element is a multiple of.
    pub align: Bytes,
    /// Who finds its elements: threads, which compute their addresses, or the asynchronous proxy, which reads the swizzle off the
    /// bits of an address and is told it with the type of the pointer.
    pub proxy: Proxy,
}

/// Who accesses a tensor in shared memory (PTX ISA, "Proxies").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Threads, by ordinary loads and stores, `cp.async` and `ldmatrix`.
    Generic,
    /// TMA and WGMMA.
    Async,
}

/// Where a tile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A matrix in global memory.
    Global(Global),
    /// The tensor of that name in shared memory.
    Shared(&'static str),
    /// The fragments of an MMA's operand.
    Registers(Operand),
}

/// What is known of a matrix in global memory, whatever its extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// The mode whose neighbours are neighbours in memory: 0 for M- or N-major, 1 for K-major.
    pub contiguous: usize,
    /// What the address of each row of that mode is a multiple of; a launch checks the base and the leading dimension.
    pub align: Bytes,
    /// What the extent along that mode is a multiple of, in elements; a launch checks it, or has rows padded with zeros.
    pub multiple: i64,
    /// Whether there is one for each batch, at any distance.
    pub batched: bool,
    /// Whether it is whole tiles, each in memory of its own, as a workspace holds them: nothing lies outside.
    pub whole: bool,
}

/// How a copy is done, by an instruction of CuTe's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOp {
    /// `ld` or `st` of so many bytes.
    Universal(Bytes),
    /// `ld` of so many bytes into registers, and `st` of so many of them at a time.
    Through {
        /// Bytes of a load.
        load: Bytes,
        /// Bytes of a store.
        store: Bytes,
    },
    /// `cp.async` of 4, 8 or 16 bytes; those of 16 go past L1.
    CpAsync(Bytes),
    /// `ldmatrix.x4`, of rows that are contiguous along K.
    LdMatrix,
    /// `ldmatrix.x4.trans`, of those that are contiguous along M or N.
    LdMatrixT,
    /// `stmatrix.x4`.
    StMatrix,
}

impl CopyOp {
    /// CuTe's name of the instruction that copies everything.
    pub(crate) fn name(self) -> &'static str {
        match self {
            // The wider side of the two tells which elements a thread has at once.
            CopyOp::Through { load, store } => CopyOp::Universal(load.max(store)).name(),
            CopyOp::Universal(bytes) => match bytes {
                Bytes(1) => "UniversalCopy<uint8_t>",
                Bytes(2) => "UniversalCopy<uint16_t>",
                Bytes(4) => "UniversalCopy<uint32_t>",
                Bytes(8) => "UniversalCopy<uint64_t>",
                _ => "UniversalCopy<uint128_t>",
            },
            CopyOp::CpAsync(Bytes(4)) => "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>",
            CopyOp::CpAsync(Bytes(8)) => "SM80_CP_ASYNC_CACHEALWAYS<uint64_t>",
            CopyOp::CpAsync(_) => "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
            CopyOp::LdMatrix => "SM75_U32x4_LDSM_N",
            CopyOp::LdMatrixT => "SM75_U16x8_LDSM_T",
            CopyOp::StMatrix => "SM90_U32x4_STSM_N",
        }
    }

    /// Whether it fills fragments of an MMA from rows of shared memory.
    pub(crate) fn is_ldmatrix(self) -> bool {
        matches!(self, CopyOp::LdMatrix | CopyOp::LdMatrixT)
    }

    /// The same with zeros where a predicate is false; only `cp.async` has it.
    pub(crate) fn zero_filling(self) -> Option<&'static str> {
        match self {
            CopyOp::CpAsync(Bytes(4)) => Some("SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint32_t>"),
            CopyOp::CpAsync(Bytes(8)) => Some("SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint64_t>"),
            CopyOp::CpAsync(_) => Some("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>"),
            _ => None,
        }
    }

    /// The atom, for values of a type.
    ///
    /// # Errors
    /// The instruction does not copy values of that width.
    pub fn atom(self, dtype: DType) -> Result<CopyAtom, LayoutError> {
        CopyAtom::named(self.name(), dtype.bits().into())
    }
}

/// Who does a copy, and of what at a time.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // A tiling has a handful of them.
pub enum Engine {
    /// Threads, as `make_tiled_copy` spreads them over the tile.
    Threads {
        /// The instruction.
        op: CopyOp,
        /// (rows, columns) to thread.
        threads: Layout,
        /// (rows, columns) to value of a thread.
        values: Layout,
    },
    /// The threads of an MMA, each the elements of its own fragments.
    Fragments(CopyOp),
    /// The tensor memory accelerator: one thread asks for a box of (rows, columns) at a time, and each of `sharers` for as many
    /// boxes of the tile as the others.
    Tma {
        /// Extents of the box, in elements.
        extents: [i64; 2],
        /// Of a load, the CTAs of a cluster that all receive the tile; of a store, the warpgroups that write it.
        sharers: u32,
        /// Whether a load rounds f32 to tf32.
        rounds: bool,
    },
}

/// What happens to elements outside of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// There are none: both sides are tiles.
    None,
    /// Each instruction has a predicate; where it is false, zeros are written in place of all of its elements.
    ZeroFill,
    /// Each instruction has a predicate; where it is false, nothing is done.
    Predicate,
    /// What lies across the end of a row, or is not aligned, is moved element by element: those outside are zeros where they are
    /// read, and are not written.
    Elements,
    /// The tensor map has the extents, and TMA writes zeros for what lies outside.
    TensorMap,
}

/// When what was copied may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// With the instruction.
    Program,
    /// After `cp.async.wait_group` and a barrier of the CTA.
    CpAsyncGroup,
    /// After a wait on an mbarrier that expects its bytes.
    Mbarrier,
    /// After `cp.async.bulk.wait_group`, by the thread that asked for it.
    BulkGroup,
}

/// A copy of one tile between two memories.
#[derive(Clone, Debug, PartialEq)]
pub struct TileCopy {
    /// Its name in the text: `A` for `CopyA`.
    pub name: &'static str,
    /// What it is, in messages: `copy of A`.
    pub what: &'static str,
    /// Extents of the tile, (rows, columns).
    pub tile: [i64; 2],
    /// The type of what is copied.
    pub dtype: DType,
    /// From where.
    pub from: Place,
    /// To where.
    pub to: Place,
    /// By whom.
    pub engine: Engine,
    /// What happens outside of a matrix.
    pub guard: Guard,
    /// When it is done.
    pub completes: Completion,
}

/// An MMA of a CTA tile.
#[derive(Clone, Debug, PartialEq)]
pub struct TileMma {
    /// CuTe's name of the instruction: `SM80_16x8x16_F32F16F16F32_TN`.
    pub atom: String,
    /// Atoms along (M,N,K), to their number.
    pub atoms: Layout,
    /// What the atoms are spread over, by mode, where it is more than they cover by themselves, or in another order.
    pub permutation: Option<Tiler>,
    /// Where A and B are.
    pub operands: MmaOperands,
}

/// Where an MMA takes A and B from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaOperands {
    /// From registers.
    Registers,
    /// Through descriptors of shared memory.
    Descriptors,
}

impl TileMma {
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

/// Which CTA computes which tile of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// CTA number i has tile `idx2crd(i, (tiles along M, tiles along N))`.
    OneTileACta,
    /// As many clusters as are resident take tiles by turns. Tiles of a cluster are numbered along M within groups of so many,
    /// then along N, then group by group.
    Persistent {
        /// Tiles of a cluster along M in a group.
        group: u32,
        /// Groups of the consumers, each of which computes a tile of its own: of the tiles of a CTA they take the next by turns.
        teams: u32,
        /// Stream-K: the tiles that fill no round of clusters are shared by all of them along K, where each then computes at least so
        /// many k-tiles less, and not fewer; their sums lie in the workspace. 0: each tile is computed as a whole.
        stream_k: u32,
    },
}

impl TileCopy {
    /// Whether it brings a factor nearer to the MMAs, and so is done for each k-tile.
    pub(crate) fn is_of_k_tile(&self) -> bool {
        !matches!(self.to, Place::Global(_)) && self.from != Place::Registers(Operand::C)
    }

    /// The instruction of the threads; TMA has none of theirs.
    pub(crate) fn op(&self) -> Option<CopyOp> {
        match self.engine {
            Engine::Threads { op, .. } | Engine::Fragments(op) => Some(op),
            Engine::Tma { .. } => None,
        }
    }
}

impl SmemTensor {
    /// Rows, columns and stages.
    pub fn extents(&self) -> [i64; 3] {
        [0, 1, 2].map(|mode| self.layout.mode(mode).map_or(1, |mode| mode.size()))
    }

    /// The element, counted from the first, at which a coordinate lies.
    ///
    /// # Errors
    /// The coordinate is not one of the layout.
    pub fn at(&self, [row, column, stage]: [i64; 3]) -> Result<i64, LayoutError> {
        let [rows, columns, _] = self.extents();
        self.at_index(row + rows * (column + columns * stage))
    }

    /// The same for the coordinate of that number, rows first.
    ///
    /// # Errors
    /// As [`SmemTensor::at`].
    pub fn at_index(&self, index: i64) -> Result<i64, LayoutError> {
        let offset = self.layout.at(index)?;
        Ok(self.swizzle.map_or(offset, |swizzle| swizzle.apply(offset)))
    }

    /// The mode whose neighbours are neighbours in memory: 0 for rows, 1 for columns.
    pub fn contiguous(&self) -> usize {
        usize::from(self.layout.mode(0).and_then(|rows| rows.at(1).ok()) != Some(1))
    }

    /// The memory of all stages.
    ///
    /// # Errors
    /// It does not fit in 64 bits.
    pub fn bytes(&self) -> Result<Bytes, LayoutError> {
        Ok(Bytes(self.layout.cosize()?.max(0) as u64 * self.dtype.bytes().0))
    }

    /// One stage: (rows, columns) to elements, before the swizzle.
    pub fn stage(&self) -> Layout {
        take(&self.layout, 0, 2).unwrap_or_else(|_| self.layout.clone())
    }

    /// The bytes of one stage's elements.
    pub fn stage_bytes(&self) -> Bytes {
        let [rows, columns, _] = self.extents();
        Bytes((rows * columns) as u64 * self.dtype.bytes().0)
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

    /// Groups of the consumers, each of which computes a tile of its own.
    pub fn teams(&self) -> u32 {
        match self.schedule {
            Schedule::OneTileACta => 1,
            Schedule::Persistent { teams, .. } => teams.max(1),
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

    /// The copies from and to global memory, in order.
    pub fn of_global_memory(&self) -> impl Iterator<Item = &TileCopy> {
        let global = |place: &Place| matches!(place, Place::Global(_));
        self.copies.iter().filter(move |copy| [copy.from, copy.to].iter().any(global))
    }

    /// Stages of the tensors in shared memory that the MMAs read.
    pub fn stages(&self) -> i64 {
        self.operands().map(|tensor| tensor.extents()[2]).max().unwrap_or(1)
    }

    /// The tensors in shared memory that are filled from global memory: A and B.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &SmemTensor> {
        let fills = |copy: &TileCopy, tensor: &SmemTensor| {
            matches!(copy.from, Place::Global(_)) && copy.to == Place::Shared(tensor.name)
        };
        self.smem.iter().filter(move |tensor| self.copies.iter().any(|copy| fills(copy, tensor)))
    }

    /// Registers of a thread that the CTA is launched with, where it has a multiprocessor to itself.
    pub fn launched_registers(&self) -> u32 {
        let each = Arch::REGISTERS_PER_BLOCK / u64::from(self.threads().max(1)) / 8 * 8;
        each.min(Arch::MAX_REGISTERS_PER_THREAD) as u32
    }

    /// Whether warpgroups share out the CTA's registers by `setmaxnreg`.
    pub fn shares_out_registers(&self) -> bool {
        self.roles.iter().any(|role| role.registers.is_some())
    }

    /// CTAs of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Whether clusters share tiles along K.
    pub fn streams_k(&self) -> bool {
        matches!(self.schedule, Schedule::Persistent { stream_k: 1.., .. })
    }

    /// CTAs of a cluster that compute one tile, each of a part of K.
    pub fn splits(&self) -> u32 {
        self.cluster[2].max(1)
    }

    /// Mbarriers: a pair for each stage, full and empty, where stages are handed over by them, one for the turn of each team,
    /// where there are several, and a pair for sums of parts of K, where CTAs give them to each other.
    pub fn mbarriers(&self) -> u64 {
        let by_turns = if self.teams() > 1 { u64::from(self.teams()) } else { 0 };
        let of_parts = if self.splits() > 1 { 2 } else { 0 };
        let handed_over = self.copies.iter().any(|copy| copy.completes == Completion::Mbarrier);
        if handed_over { 2 * self.stages() as u64 + by_turns + of_parts } else { by_turns + of_parts }
    }

    /// Shared memory of a CTA: each tensor at the next multiple of its alignment, mbarriers behind them, the whole a multiple of
    /// the largest alignment, as C++ lays out a struct.
    ///
    /// # Errors
    /// It does not fit in 64 bits.
    pub fn smem_bytes(&self) -> Result<Bytes, LayoutError> {
        let mut at = 0_u64;
        let mut align = if self.mbarriers() > 0 { 8_u64 } else { 1 };
        for tensor in &self.smem {
            align = align.max(tensor.align.0);
            at = at.next_multiple_of(tensor.align.0.max(1)) + tensor.bytes()?.0;
        }
        if self.mbarriers() > 0 {
            at = at.next_multiple_of(8) + 8 * self.mbarriers();
        }
        Ok(Bytes(at.next_multiple_of(align)))
    }
}
