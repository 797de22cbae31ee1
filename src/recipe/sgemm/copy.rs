//! The way of a tile from global memory through shared memory into registers: threads, vectors, padding, banks.

use super::spec::{Major, SmemLayout};
use crate::layout::{Layout, Swizzle};
use crate::plan::Code;
use crate::plan::banks::{self, WARP};
use crate::plan::checks::Checks;
use crate::units::Bytes;

/// Bytes of an element.
pub(super) const F32: i64 = 4;

/// The passes over the banks of the worst access of a warp, and the least that such an access takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passes {
    pub(super) worst: u32,
    pub(super) least: u32,
}

/// What a thread reads of the tile for its products: `vec` neighbours along M or N at a time.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    /// The first element along M or N of each thread.
    pub(super) first: Vec<i64>,
    /// Elements at a time.
    pub(super) vec: i64,
    /// Further vectors of a thread, in elements from its first.
    pub(super) rest: Vec<i64>,
}

/// A tile `(BX,BK)` of A or B, X being M or N.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// `A` or `B`.
    pub(super) name: &'static str,
    pub(super) x: i64,
    pub(super) k: i64,
    /// Whether the matrix is contiguous along K.
    pub(super) global_k: bool,
    /// Whether the tile in shared memory is contiguous along K.
    pub(super) smem_k: bool,
    /// Elements of one load of global memory.
    pub(super) vec: i64,
    /// Threads along the mode that is contiguous in global memory, and along the other.
    pub(super) lanes: [i64; 2],
    /// Elements between columns of the tile in shared memory.
    pub(super) pad: i64,
    pub(super) swizzle: Option<Swizzle>,
    pub(super) store: Passes,
    pub(super) load: Passes,
}

/// What is asked of a tile.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) x: i64,
    pub(super) k: i64,
    pub(super) major: Major,
    pub(super) smem_k: bool,
    pub(super) vec: i64,
    pub(super) smem: SmemLayout,
    pub(super) threads: u32,
}

impl Wanted {
    /// A is contiguous along K in rows, B in columns.
    fn global_k(&self) -> bool {
        (self.major == Major::Row) == (self.name == "A")
    }
}

/// Threads along the contiguous extent, in vectors, and along the other: as many as fit along the contiguous one, up to
/// `most`; every thread moves whole vectors, as many as any other.
pub(super) fn lanes(contiguous: i64, other: i64, vec: i64, threads: i64, most: i64) -> Option<[i64; 2]> {
    let vectors = (contiguous % vec == 0).then_some(contiguous / vec)?;
    let fits = |fast: &i64| vectors % fast == 0 && threads % fast == 0 && other % (threads / fast) == 0;
    (1..=vectors.min(threads).min(most)).rev().find(fits).map(|fast| [fast, threads / fast])
}

impl Tile {
    /// Chooses the threads, and the padding where it is left open.
    pub(super) fn new(wanted: &Wanted, reads: &Reads, checks: &mut Checks) -> Option<Tile> {
        let (name, threads) = (wanted.name, i64::from(wanted.threads));
        let global_k = wanted.global_k();
        let (contiguous, other) = if global_k { (wanted.k, wanted.x) } else { (wanted.x, wanted.k) };
        let turned = global_k != wanted.smem_k;
        // A tile that is turned is read in whole sectors of 32 bytes and no longer, so that the stores spread over the banks.
        let most = if turned { (8 / wanted.vec).max(1) } else { threads };
        let found = (0..).map(|halvings| wanted.vec >> halvings).take_while(|vec| *vec > 0);
        let chosen = found.into_iter().find_map(|vec| Some((vec, lanes(contiguous, other, vec, threads, most)?)));
        let Some((vec, lanes)) = chosen else {
            checks.push(
                Code::TileDivides,
                format!("{name}: a tile of {contiguous} x {other} elements, {threads} threads"),
                "threads that divide the tile, each with as many elements".into(),
                "every thread copies the same number of elements; those that no thread copies would be stale",
                format!(
                    "a tile of {name} whose extents are multiples of powers of two, such as 128x128x16 with thread=8x8"
                ),
            );
            return None;
        };
        let passes = Passes { worst: 0, least: 0 };
        let (store, load) = (passes, passes);
        let tile = Tile {
            name,
            x: wanted.x,
            k: wanted.k,
            global_k,
            smem_k: wanted.smem_k,
            vec,
            lanes,
            pad: 0,
            swizzle: None,
            store,
            load,
        };
        tile.laid_out(wanted, reads, checks)
    }

    /// With the padding or swizzle that is asked for; `Auto` takes the smallest padding with the fewest extra passes.
    fn laid_out(self, wanted: &Wanted, reads: &Reads, checks: &mut Checks) -> Option<Tile> {
        let vector = self.smem_vector().max(if self.smem_k { 1 } else { reads.vec });
        match wanted.smem {
            SmemLayout::Auto => {
                let padded = (0..8).map(|i| Tile { pad: i * vector, ..self.clone() }.counted(reads));
                padded.min_by_key(|t| (t.store.extra() + t.load.extra(), t.pad))
            }
            SmemLayout::Pad(pad) => {
                let tile = Tile { pad: i64::from(pad), ..self };
                if tile.pitch() % vector != 0 {
                    checks.push(
                        Code::VectorAlignment,
                        format!("smem_{} = pad{pad}: columns {} elements apart", tile.param(), tile.pitch()),
                        format!("a multiple of {vector} elements"),
                        "the GPU faults on a vector whose address is not a multiple of its size (CUDA C++ Programming \
                         Guide, \"Device Memory Accesses\")",
                        format!("smem_{}=auto, or padding in multiples of {vector}", tile.param()),
                    );
                    return None;
                }
                Some(tile.counted(reads))
            }
            SmemLayout::Swizzled(swizzle) => {
                let tile = Tile { swizzle: Some(swizzle), ..self };
                let period = 1_i64 << (swizzle.bits() + swizzle.base() + swizzle.shift().abs()).clamp(0, 62);
                let keeps = 1_i64 << swizzle.base().clamp(0, 62);
                let stage = tile.pitch() * tile.columns();
                if stage % period != 0 || keeps % vector != 0 {
                    checks.push(
                        Code::BadSwizzle,
                        format!("smem_{} = {swizzle}, a tile of {stage} elements, vectors of {vector}", tile.param()),
                        format!(
                            "a period of {period} elements that divides the tile, and {vector} neighbours that stay"
                        ),
                        "the swizzle would put elements outside the tile, or tear vectors apart",
                        format!("smem_{}=auto, or a swizzle Sw<B,M,S> with 2^M a multiple of {vector}", tile.param()),
                    );
                    return None;
                }
                Some(tile.counted(reads))
            }
        }
    }

    /// The parameter that holds the matrix's address.
    pub(super) fn param(&self) -> &'static str {
        if self.name == "A" { "a" } else { "b" }
    }

    /// Elements from one column of the tile to the next, columns being contiguous.
    pub(super) fn pitch(&self) -> i64 {
        self.pad + if self.smem_k { self.k } else { self.x }
    }

    pub(super) fn columns(&self) -> i64 {
        if self.smem_k { self.x } else { self.k }
    }

    /// Elements that one store of the copy moves: vectors where the tile is not turned.
    pub(super) fn smem_vector(&self) -> i64 {
        if self.global_k == self.smem_k { self.vec } else { 1 }
    }

    /// Elements from the first to the last of one stage, as CuTe's `cosize` counts them.
    pub(super) fn cosize(&self, stages: i64) -> i64 {
        self.pitch() * self.columns() * stages - self.pad
    }

    fn index(&self, x: i64, k: i64) -> i64 {
        let plain = if self.smem_k { x * self.pitch() + k } else { k * self.pitch() + x };
        self.swizzle.map_or(plain, |s| s.apply(plain))
    }

    /// Counts the passes of the copy's stores and of the reads.
    fn counted(mut self, reads: &Reads) -> Tile {
        let threads = self.lanes[0] * self.lanes[1];
        let [fast, slow] = self.lanes;
        let per_store = self.smem_vector();
        let elements = self.vec / per_store;
        let (contiguous, other) = if self.global_k { (self.k, self.x) } else { (self.x, self.k) };
        let (along, across) = (contiguous / (self.vec * fast), other / slow);
        let place = |thread: i64, step: i64| {
            let (element, step) = (step % elements, step / elements);
            let c = self.vec * (thread % fast + fast * (step % along)) + element;
            let o = thread / fast + slow * (step / along);
            if self.global_k { self.index(o, c) } else { self.index(c, o) }
        };
        let stores = banks::warps(threads as u32, elements * along * across, place);
        let chunks = reads.rest.len() as i64;
        let read = |thread: i64, step: i64| {
            let x = reads.first[thread as usize] + reads.rest[(step % chunks) as usize];
            self.index(x, step / chunks)
        };
        let loads = banks::warps(reads.first.len() as u32, chunks * self.k, read);
        // Vectors of what is contiguous along K are single elements along X.
        let per_load = if self.smem_k { 1 } else { reads.vec };
        self.store = passes(&stores, per_store);
        self.load = passes(&loads, per_load);
        self
    }

    /// `(BX,BK)` or `(BX,BK,STAGES)` with the strides of shared memory; B of the rungs without an MMA is `(BK,BX)`.
    pub(super) fn layout(&self, stages: Option<i64>, k_first: bool) -> Layout {
        let pitch = self.pitch();
        let (sx, sk) = if self.smem_k { (pitch, 1) } else { (1, pitch) };
        let (x, k) = (self.x, self.k);
        let text = match stages {
            Some(stages) => format!("({x},{k},{stages}):({sx},{sk},{})", pitch * self.columns()),
            None if k_first => format!("({k},{x}):({sk},{sx})"),
            None => format!("({x},{k}):({sx},{sk})"),
        };
        text.parse().unwrap_or_else(|defect| unreachable!("{text} is a layout: {defect}"))
    }
}

impl Passes {
    pub(super) fn extra(self) -> u32 {
        self.worst.saturating_sub(self.least)
    }
}

fn passes(warps: &[Vec<i64>], vec: i64) -> Passes {
    let bytes = Bytes((vec * F32) as u64);
    let count = |warp: &Vec<i64>| {
        let addresses: Vec<i64> = warp.iter().map(|index| index * F32).collect();
        crate::plan::wavefronts(&addresses, bytes)
    };
    let lanes = warps.first().map_or(WARP, Vec::len);
    Passes { worst: warps.iter().map(count).max().unwrap_or(0), least: banks::ideal(lanes, bytes) }
}
