//! The way of a tile from global memory through shared memory into registers: threads, vectors, padding, banks.

use super::spec::SmemLayout;
use crate::diagnostic::Code;
use crate::layout::{Layout, Swizzle};
use crate::model::{Proposal, SharedAnalysis, SharedOp, SharedTensor, WarpAccess};
use crate::plan::checks::Checks;
use crate::plan::{ConflictLevel, judge};
use crate::recipe::product::Major;
use crate::units::{Bytes, Elements};

/// Bytes of an element.
pub(super) const F32: i64 = 4;

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
    /// What the threads read of it.
    pub(super) reads: Reads,
    /// What it costs to write one stage and to read it.
    pub(super) analysis: Option<SharedAnalysis>,
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
    pub(super) conflicts: ConflictLevel,
    /// Whether tiles arrive by `cp.async`.
    pub(super) asynchronous: bool,
    /// Tiles in shared memory at a time.
    pub(super) stages: i64,
    /// Whether threads read vectors, and not single elements which nvcc makes vectors of.
    pub(super) mma: bool,
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
        let most = |vec: i64| if turned { (8 / vec).max(1) } else { threads };
        let vectors = || (0..).map(|halvings| wanted.vec >> halvings).take_while(|vec| *vec > 0);
        let sectors = vectors().map(|vec| (vec, most(vec)));
        let chosen = sectors
            .chain(vectors().map(|vec| (vec, threads)))
            .find_map(|(vec, most)| Some((vec, lanes(contiguous, other, vec, threads, most)?)));
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
            reads: reads.clone(),
            analysis: None,
        };
        tile.laid_out(wanted, checks)
    }

    /// With the padding or swizzle that is asked for; `Auto` takes the smallest padding with the fewest extra passes.
    fn laid_out(self, wanted: &Wanted, checks: &mut Checks) -> Option<Tile> {
        let vector = self.smem_vector().max(if self.smem_k { 1 } else { self.reads.vec });
        let tile = match wanted.smem {
            SmemLayout::Auto => {
                let padded = (0..8).map(|i| Tile { pad: i * vector, ..self.clone() });
                padded.min_by_key(|tile| (tile.extra(wanted), tile.pad))?
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
                tile
            }
            // It exchanges nothing.
            SmemLayout::Swizzled(swizzle) if swizzle.bits() == 0 => self,
            SmemLayout::Swizzled(swizzle) => {
                let tile = Tile { swizzle: Some(swizzle), ..self };
                let keeps = 1_i64 << swizzle.base().clamp(0, 62);
                let stage = tile.pitch() * tile.columns();
                // A swizzled layout is sliced by its bits, which a thread's part has to respect.
                let halves = [tile.x, tile.k].into_iter().all(|extent| extent.count_ones() == 1);
                if stage % swizzle.block() != 0 || keeps % vector != 0 || !halves {
                    checks.push(
                        Code::BadSwizzle,
                        format!(
                            "smem_{} = {swizzle}, a tile of {} x {} elements, vectors of {vector}",
                            tile.param(),
                            tile.pitch(),
                            tile.columns()
                        ),
                        format!(
                            "extents that are powers of two, a block of {} elements that divides the tile, and {vector} \
                             neighbours that stay together",
                            swizzle.block()
                        ),
                        "the swizzle would put elements outside the tile, or tear vectors or what a thread copies apart",
                        format!(
                            "smem_{}=auto, or a tile of powers of two and a swizzle Sw<B,M,S> with 2^M a multiple of {vector}",
                            tile.param()
                        ),
                    );
                    return None;
                }
                tile
            }
        };
        let shared = tile.shared(wanted)?;
        let key = format!("smem_{}", tile.param());
        let analysis = judge(checks, &shared, wanted.conflicts, |best| match best {
            Some(best) if tile.gains(best, wanted) => match (best.swizzle, best.padding) {
                (Some(swizzle), _) => format!("{key}={swizzle}"),
                (None, Some((_, added))) => format!("{key}=pad{}", added.0),
                (None, None) => format!("{key}=pad0"),
            },
            _ => "other extents, vectors or threads: no padding or swizzle does better".into(),
        })?;
        Some(Tile { analysis: Some(analysis), ..tile })
    }

    fn extra(&self, wanted: &Wanted) -> u64 {
        let analysis = self.shared(wanted).and_then(|shared| shared.analyze().ok());
        analysis.map_or(u64::MAX, |analysis| analysis.extra())
    }

    /// Whether there are fewer passes with a proposal, whose swizzle may tear loads apart.
    fn gains(&self, best: &Proposal, wanted: &Wanted) -> bool {
        let passes = |tile: &Tile| {
            let analysis = tile.shared(wanted)?.analyze().ok()?;
            Some(analysis.accesses.iter().map(|access| access.wavefronts).sum::<u64>())
        };
        let pad = best.padding.map_or(0, |(_, added)| added.0 as i64);
        let proposed = Tile { swizzle: best.swizzle, pad, ..self.clone() };
        passes(&proposed).zip(passes(self)).is_some_and(|(proposed, now)| proposed < now)
    }

    /// One stage in shared memory, with the copy's stores and the reads.
    fn shared(&self, wanted: &Wanted) -> Option<SharedTensor> {
        let threads = wanted.threads;
        let per_store = self.smem_vector();
        let elements = self.vec / per_store;
        let element = |x: i64, k: i64| Some(x + self.x * k);
        let place = |thread: i64, step: i64| {
            let (x, k) = self.copied(thread, step / elements);
            let further = step % elements;
            if self.global_k { element(x, k + further) } else { element(x + further, k) }
        };
        // What a line of the matrix begins with is taken to lie at a multiple of 128 bytes.
        let source = |thread: i64, step: i64| {
            let (x, k) = self.copied(thread, step / elements);
            F32 * (step % elements + if self.global_k { k } else { x })
        };
        let bytes = |vec: i64| Bytes((vec * F32) as u64);
        let steps = elements * self.copies();
        let store = match wanted.asynchronous {
            true => WarpAccess::copy("store of the copy", bytes(per_store), threads, steps, place, source),
            false => WarpAccess::new("store of the copy", SharedOp::Store, bytes(per_store), threads, steps, place),
        };
        let reads = &self.reads;
        let chunks = reads.rest.len() as i64;
        // nvcc 13.0 makes one load of elements that are neighbours, but not behind a swizzle.
        let (per_load, splits, merged) = match self.smem_k || self.swizzle.is_some() {
            true if !wanted.mma => (1, reads.vec, self.merged()),
            _ => (reads.vec, 1, 1),
        };
        let read = |thread: i64, step: i64| {
            let (split, step) = (step % splits, step / splits);
            let first = reads.first.get(usize::try_from(thread).ok()?)?;
            let chunk = reads.rest.get(usize::try_from(step % chunks).ok()?)?;
            element(first + chunk + split, step / chunks * merged)
        };
        let load = WarpAccess::new(
            "load of the products",
            SharedOp::Load,
            bytes(per_load * merged),
            threads,
            chunks * self.k / merged * splits,
            read,
        );
        let tensor = SharedTensor::new(&format!("s{}", self.name), bytes(1), self.layout(None, false)).ok()?;
        let tensor = match self.swizzle {
            Some(swizzle) => tensor.with_swizzle(swizzle).ok()?,
            None => tensor,
        };
        let apart = Elements((self.pitch() * self.columns()) as u64);
        let tensor = if wanted.stages > 1 { tensor.with_stages(apart) } else { tensor };
        Some(tensor.with_access(store).with_access(load))
    }

    /// Loads of global memory that each thread makes for one tile.
    pub(super) fn copies(&self) -> i64 {
        let [fast, slow] = self.lanes;
        self.x * self.k / (self.vec * fast * slow)
    }

    /// The first element `(x,k)` of a load: along the mode that is contiguous in global memory first, then along the other.
    pub(super) fn copied(&self, thread: i64, step: i64) -> (i64, i64) {
        let [fast, slow] = self.lanes;
        let along = (if self.global_k { self.k } else { self.x }) / (self.vec * fast);
        let contiguous = self.vec * (thread % fast + fast * (step % along));
        let other = thread / fast + slow * (step / along);
        if self.global_k { (other, contiguous) } else { (contiguous, other) }
    }

    /// Neighbours along K that are loaded at once, where the tile is read element by element: as many as are aligned.
    fn merged(&self) -> i64 {
        let together = |vec: &i64| self.k % vec == 0 && self.pitch() % vec == 0;
        let vectors = self.smem_k && self.swizzle.is_none();
        [4, 2].into_iter().filter(|_| vectors).find(together).unwrap_or(1)
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

    /// What its base, its columns and its stages begin at multiples of.
    pub(super) fn alignment(&self) -> Bytes {
        self.analysis.as_ref().map_or(Bytes(F32 as u64), |analysis| analysis.alignment)
    }

    /// Bytes that the text's copies between it and registers may take at once, where it counts on CuTe to make vectors:
    /// those of the described access, and of a tile whose neighbours a thread does not take or whose swizzle hides them, none.
    pub(super) fn at_once(&self, op: SharedOp) -> u64 {
        let access = self.analysis.iter().flat_map(|a| &a.accesses).find(|a| a.op == op).map(|a| a.bytes.0);
        access.filter(|_| !self.smem_k && self.swizzle.is_none()).unwrap_or(F32 as u64)
    }

    /// Elements from the first to the last of one stage, as CuTe's `cosize` counts them.
    pub(super) fn cosize(&self, stages: i64) -> i64 {
        self.pitch() * self.columns() * stages - self.pad
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
