//! Tiles that are turned in shared memory: an input comes in along M and goes out along N.

use super::decide::{Class, Tensor, numbered};
use crate::arch::Arch;
use crate::diagnostic::Code;
use crate::layout::{Layout, LayoutError, Swizzle};
use crate::model::{SharedAnalysis, SharedOp, SharedTensor, Sums, WarpAccess, storage};
use crate::plan::checks::Checks;
use crate::plan::{ConflictLevel, judge};
use crate::units::Bytes;

/// Vectors of a row of the tile that neighbouring threads take when they write: 8 of 16 bytes are 128 bytes, all the banks
/// of shared memory and four whole sectors of global memory.
const ROW_THREADS: i64 = 8;

/// One input in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Its index among the tensors.
    pub(super) tensor: usize,
    /// The swizzle that spreads its columns over the banks.
    pub(super) swizzle: Option<Swizzle>,
    /// The cost of writing and reading the tile.
    pub(super) analysis: SharedAnalysis,
}

/// Which thread moves what: `make_tiled_copy`'s layouts.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// `(ThrM,ThrN)` to thread.
    pub(super) threads: Layout,
    /// `(ValM,ValN)` to value of a thread.
    pub(super) values: Layout,
}

impl Walk {
    /// Threads that are numbered along a mode first, with a vector along it each.
    fn along(mode: usize, threads: [i64; 2], vec: i64) -> Result<Self, LayoutError> {
        let values = if mode == 0 { [vec, 1] } else { [1, vec] };
        Ok(Self { threads: numbered(threads, mode)?, values: numbered(values, mode)? })
    }
}

/// How tiles are turned.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// `(TileM,TileN)`.
    pub(super) tile: [i64; 2],
    /// `(TileM,TileN)` in shared memory, before the swizzle: contiguous along M.
    pub(super) layout: Layout,
    /// How a tile is brought in: threads along M first, a vector along M each.
    pub(super) come_in: Walk,
    /// How it is taken out: threads along N first, a vector along N each.
    pub(super) go_out: Walk,
    /// The inputs that are turned.
    pub(super) shared: Vec<Shared>,
}

/// Threads along (M,N).
pub(super) fn extents(threads: &Layout) -> [i64; 2] {
    [0, 1].map(|mode| threads.mode(mode).map_or(1, |mode| mode.size()))
}

impl Turn {
    pub(super) fn new(tensors: &[Tensor], vec: i64, threads: u32, checks: &mut Checks) -> Option<Self> {
        let turned: Vec<(usize, i64)> = (tensors.iter().enumerate())
            .filter(|(_, t)| t.class == Class::Transposed)
            .map(|(i, t)| (i, t.dtype.bytes().0 as i64))
            .collect();
        let bytes = |side: i64| turned.iter().map(|(_, element)| side * side * element).sum::<i64>() as u64;
        let fits = |side: &i64| {
            let vectors = side / vec;
            let whole = |threads: i64, along: i64| threads % along == 0 && side % (threads / along) == 0;
            bytes(*side) <= Arch::STATIC_SMEM.0
                && vectors >= ROW_THREADS
                && whole(threads.into(), vectors)
                && whole(threads.into(), ROW_THREADS)
        };
        // Small tiles leave room for several blocks on a multiprocessor; narrow types need larger ones.
        let sides = [128, 64, 32, 16];
        let small = sides.into_iter().filter(|side| bytes(*side) <= 32 << 10 || *side <= 64).find(fits);
        let Some(side) = small.or_else(|| sides.into_iter().find(fits)) else {
            checks.push(
                Code::Variant,
                format!("{threads} threads, {} turned inputs, vectors of {vec} elements", turned.len()),
                format!("a square tile of 16 to 128 whose vectors the threads divide, in {}", Arch::STATIC_SMEM),
                "every thread loads equally many whole vectors, and static shared memory has 48 KiB",
                "threads=256, a smaller vector, or variant=vectorized".into(),
            );
            return None;
        };
        let layout = checks.sound("a square tile is a layout", numbered([side, side], 0))?;
        let along = side / vec;
        let thr_in = [along, i64::from(threads) / along];
        let thr_out = [i64::from(threads) / ROW_THREADS, ROW_THREADS];
        let come_in = checks.sound("threads that bring in are a layout", Walk::along(0, thr_in, vec))?;
        let go_out = checks.sound("threads that take out are a layout", Walk::along(1, thr_out, vec))?;
        let mut turn = Self { tile: [side, side], layout, come_in, go_out, shared: Vec::new() };
        for (tensor, element) in turned {
            let shared = turn.spread(tensor, element, vec, threads, &format!("s{}", tensors[tensor].name), checks)?;
            turn.shared.push(shared);
        }
        Some(turn)
    }

    /// The tile of an input with the swizzle that has the fewest passes.
    fn spread(
        &self,
        tensor: usize,
        element: i64,
        vec: i64,
        threads: u32,
        name: &str,
        checks: &mut Checks,
    ) -> Option<Shared> {
        let [rows, cols] = self.tile;
        let [in_m, in_n] = extents(&self.come_in.threads);
        // Vectors along M first, then columns.
        let all = || 0..i64::from(threads);
        let bring = Sums {
            threads: all().map(|thread| vec * (thread % in_m) + rows * (thread / in_m)).collect(),
            steps: (0..cols / in_n).map(|step| rows * in_n * step).collect(),
            source: None,
        };
        let [out_m, out_n] = extents(&self.go_out.threads);
        // Element by element of a vector, then down the rows, then along them.
        let loads = rows * cols / i64::from(threads);
        let taken = |step: i64| {
            let (value, step) = (step % vec, step / vec);
            let (down, along) = (step % (rows / out_m), step / (rows / out_m));
            out_m * down + rows * (vec * out_n * along + value)
        };
        let take = Sums {
            threads: all().map(|thread| thread / out_n + rows * vec * (thread % out_n)).collect(),
            steps: (0..loads).map(taken).collect(),
            source: None,
        };
        let (vector, one) = (Bytes((vec * element) as u64), Bytes(element as u64));
        let tile = checks
            .sound("a square tile lies in shared memory", SharedTensor::new(name, one, self.layout.clone()))?
            .with_access(WarpAccess::of_sums("store of a vector", SharedOp::Store, vector, bring))
            .with_access(WarpAccess::of_sums("load of an element", SharedOp::Load, one, take));
        let best = checks.sound("a square tile has swizzles", tile.swizzles(1))?;
        let tile = match best.first().and_then(|best| best.swizzle) {
            Some(swizzle) => checks.sound("a swizzle that was found fits", tile.with_swizzle(swizzle))?,
            None => tile,
        };
        let help = "another vector or thread count; no swizzle of this tile is free of conflicts";
        let analysis = judge(checks, &tile, ConflictLevel::Deny, |_| help.into())?;
        let swizzle = tile.swizzle();
        Some(Shared { tensor, swizzle, analysis })
    }

    /// Shared memory of a block.
    pub(super) fn smem(&self) -> Bytes {
        storage(self.shared.iter().map(|shared| (shared.analysis.memory, shared.analysis.alignment)))
    }

    /// Vectors of a tile that one thread writes.
    pub(super) fn vectors(&self, vec: i64, threads: u32) -> i64 {
        self.tile[0] * self.tile[1] / vec / i64::from(threads)
    }
}
