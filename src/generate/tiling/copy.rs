//! Copies of tiles: source, destination, the threads or engine, and the guard at the edges.

use crate::atom::{CopyAtom, Operand};
use crate::dtype::DType;
use crate::layout::{Layout, LayoutError};
use crate::units::Bytes;

/// Where a tile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A matrix in global memory.
    Global(Global),
    /// The tensor of that name in shared memory.
    Shared(&'static str),
    /// The registers of the threads that copy.
    Threads,
    /// The fragments of this MMA's operand.
    Fragments(&'static str, Operand),
    /// What this MMA's accumulators give two by two: one element for neighbours along N, which a thread has both of.
    Pairs(&'static str),
}

/// Properties of a matrix in global memory that hold for all extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// The operand, by its name in the text.
    pub tensor: &'static str,
    /// The modes of the operand that rows and columns of the tile lie along: 1 and 0 for B, which is (K,N) and has tiles (N,K).
    pub modes: [usize; 2],
    /// The mode whose neighbours are neighbours in memory: 0 for M- or N-major, 1 for K-major.
    pub contiguous: usize,
    /// What the address of each row of that mode is a multiple of; the rule of the launch demands it of base and leading dimension.
    pub align: Bytes,
    /// What the extent along that mode is a multiple of, in elements; the rule of the launch demands it, or pads rows with zeros.
    pub multiple: i64,
    /// Further modes, such as batches and heads: a matrix for each of their coordinates, at any distance.
    pub outer: usize,
    /// Whether it is whole tiles, each in memory of its own, as a workspace holds them: nothing lies outside.
    pub whole: bool,
    /// Lines along the other mode that lie in one page, where they lie in pages of so many, anywhere; 0 where they do not.
    pub page: i64,
}

/// How a copy is done, by an instruction of CuTe's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOp {
    /// `ld` or `st` of so many bytes.
    Universal(Bytes),
    /// A load into registers and a store from them, with widths of their own.
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

impl Global {
    /// A row-major matrix of any extents at any address, so copied byte by byte: for wider copies set `align` to their bytes.
    pub const fn matrix(tensor: &'static str) -> Self {
        Self { tensor, modes: [0, 1], contiguous: 1, align: Bytes(1), multiple: 1, outer: 0, whole: false, page: 0 }
    }
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

    /// Bytes that a thread moves with one instruction.
    pub(crate) fn width(self) -> Bytes {
        match self {
            CopyOp::Universal(bytes) | CopyOp::CpAsync(bytes) => bytes,
            CopyOp::Through { load, store } => load.max(store),
            CopyOp::LdMatrix | CopyOp::LdMatrixT | CopyOp::StMatrix => Bytes(16),
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
        /// Extents of the box, in elements. A tile whose lines lie in pages is filled by several, each from one page.
        extents: [i64; 2],
        /// Of a load, the CTAs of a cluster that all receive the tile; of a store, the warpgroups that write it.
        sharers: u32,
        /// Whether a load rounds f32 to tf32.
        rounds: bool,
    },
}

/// How elements outside of a matrix are guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// There are none: both sides are tiles.
    None,
    /// Each instruction has a predicate; where it is false, zeros are written in place of all of its elements.
    ZeroFill,
    /// Each instruction has a predicate; where it is false, nothing is done.
    Predicate,
    /// What lies across the end of a row, or is not aligned, is moved element by element, or in vectors that are narrow enough: those
    /// outside are zeros where they are read, and are not written.
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
    /// How elements outside of a matrix are guarded.
    pub guard: Guard,
    /// When it is done.
    pub completes: Completion,
    /// The mode of a larger tile that CTAs share, where this is one CTA's part of it, and the mode of the cluster that shares it.
    pub split: Option<(usize, usize)>,
}

impl TileCopy {
    /// One without a guard, which is done with its instructions, of a whole tile.
    pub fn new(
        [name, what]: [&'static str; 2],
        (tile, dtype): ([i64; 2], DType),
        [from, to]: [Place; 2],
        engine: Engine,
    ) -> Self {
        let (guard, completes) = (Guard::None, Completion::Program);
        Self { name, what, tile, dtype, from, to, engine, guard, completes, split: None }
    }

    /// The matrix in global memory that it reads or writes.
    pub fn global(&self) -> Option<Global> {
        [self.from, self.to].into_iter().find_map(|place| match place {
            Place::Global(global) => Some(global),
            _ => None,
        })
    }

    /// Whether it brings a factor nearer to the MMAs, and so is done for each k-tile.
    pub(crate) fn is_of_k_tile(&self) -> bool {
        !matches!(self.to, Place::Global(_)) && !matches!(self.from, Place::Fragments(_, Operand::C) | Place::Pairs(_))
    }

    /// Where an element of the tile is, in messages.
    pub(super) fn coordinate(&self, element: i64) -> String {
        let rows = self.tile[0].max(1);
        format!("({},{})", element % rows, element / rows)
    }

    /// The instruction of the threads; TMA has none of theirs.
    pub(crate) fn op(&self) -> Option<CopyOp> {
        match self.engine {
            Engine::Threads { op, .. } | Engine::Fragments(op) => Some(op),
            Engine::Tma { .. } => None,
        }
    }
}
