//! Tiles that are turned: a thread loads vectors along M, turns them in its registers, and stores rows along N to shared memory.

use super::decide::{Class, Tensor, in_flight};
use super::tilings::{self, Block, Walk};
use crate::arch::Arch;
use crate::diagnostic::Code;
use crate::layout::Swizzle;
use crate::plan::checks::{self, Checks};
use crate::plan::{ConflictLevel, judge};
use crate::tiling::{Engine, Place, Tiling};
use crate::units::Bytes;

/// Bytes of a unit of shared memory that a swizzle moves as a whole: the widest access of a thread.
const UNIT: i64 = 16;

/// Tiles, (TileM,TileN), from the largest on.
const TILES: [[i64; 2]; 8] = [[256, 128], [128, 128], [128, 64], [64, 64], [64, 32], [32, 32], [32, 16], [16, 16]];

/// Most bytes of tiles, so that several blocks are resident.
const SEVERAL_RESIDENT: u64 = 32 << 10;

/// Most elements, and vectors, of each tensor that a thread has in flight on the way out. The function is written out for each, and that
/// once more for each narrower vector, of which two are in flight.
const MOST_IN_FLIGHT: [i64; 2] = [32, 4];
const NARROW_IN_FLIGHT: i64 = 2;

/// Vectors in flight at a level of narrower ones.
pub(super) fn in_flight_at(level: usize, unroll: i64) -> i64 {
    if level == 0 || unroll % NARROW_IN_FLIGHT != 0 { unroll } else { NARROW_IN_FLIGHT }
}

/// How a block of threads turns its tile.
#[derive(Debug)]
pub(super) struct Turned {
    /// With the widest vectors.
    pub(super) tiling: Tiling,
    /// With vectors of half as many elements each, down to one: for tensors that are aligned to no more.
    pub(super) narrower: Vec<Tiling>,
    /// Vectors of each tensor that a thread has in flight on the way out.
    pub(super) unroll: i64,
    /// Bytes of a block before it is turned, and behind.
    pub(super) held: Bytes,
}

/// What a tile is tried for.
struct Asked<'a> {
    tensors: &'a [Tensor],
    /// Elements of a vector along N.
    vec: i64,
    /// Bytes of a vector along M.
    bytes: Bytes,
    threads: i64,
    /// Vectors in flight, or 0 to choose.
    unroll: i64,
}

/// How much a tile has to have.
#[derive(Clone, Copy)]
struct Wanted {
    /// Blocks of whole units, in tiles that leave room for several resident blocks.
    best: bool,
    conflicts: ConflictLevel,
}

fn turned(tensors: &[Tensor]) -> impl Iterator<Item = &Tensor> {
    tensors.iter().filter(|tensor| tensor.class == Class::Transposed)
}

/// Elements of a vector along M and rows of the block that a thread of the tiling turns.
pub(super) fn block(tiling: &Tiling, tensor: &str) -> [i64; 2] {
    let load = tiling.copies.iter().find(|copy| copy.name == tensor && copy.to == Place::Threads);
    match load.map(|load| &load.engine) {
        Some(Engine::Threads { values, .. }) => [0, 1].map(|mode| values.mode(mode).map_or(1, |mode| mode.size())),
        _ => [1, 1],
    }
}

/// Bytes of the tiles in shared memory.
fn tile_bytes(tensors: &[Tensor], [m, n]: [i64; 2]) -> u64 {
    turned(tensors).map(|tensor| (m * n) as u64 * tensor.dtype.bytes().0).sum()
}

/// Rows of a block: a unit of shared memory, half of one for single bytes, whose blocks would take too many registers.
fn rows_wanted(bytes: i64) -> i64 {
    (UNIT / bytes).min(8)
}

/// The tiling of a block that turns a tile. The first tile is the one that was the fastest on an H200 for the narrowest type.
pub(super) fn tiling(
    tensors: &[Tensor],
    [vec, unroll]: [i64; 2],
    bytes: Bytes,
    threads: u32,
    checks: &mut Checks,
) -> Option<Turned> {
    let asked = Asked { tensors, vec, bytes, threads: threads.into(), unroll };
    let first = match turned(tensors).map(|tensor| tensor.dtype.bytes().0).min() {
        Some(1) => 0,
        Some(2) => 1,
        Some(4) => 3,
        _ => 5,
    };
    let (larger, others) = TILES.split_at(first);
    let tiles = || others.iter().chain(larger.iter().rev());
    let tries = [
        Wanted { best: true, conflicts: ConflictLevel::Deny },
        Wanted { best: false, conflicts: ConflictLevel::Deny },
        Wanted { best: false, conflicts: ConflictLevel::Warn },
    ];
    let mut all = tries.iter().flat_map(|wanted| tiles().map(move |tile| (tile, wanted)));
    let found = all.find_map(|(tile, wanted)| checks.attempt(|checks| asked.of(*tile, *wanted, checks)));
    if found.is_none() {
        checks.push(
            Code::Variant,
            format!("{threads} threads, {} turned inputs, vectors of {vec} elements", turned(tensors).count()),
            format!("a tile of (16,16) to (256,128) whose vectors the threads divide, in {}", Arch::STATIC_SMEM),
            "every thread loads equally many whole vectors, and static shared memory has 48 KiB",
            "threads=256, a smaller vector, or variant=vectorized".into(),
        );
    }
    found
}

impl Asked<'_> {
    /// The tiling with this tile, if the threads divide it and it has what is wanted.
    fn of(&self, tile: [i64; 2], wanted: Wanted, checks: &mut Checks) -> Option<Turned> {
        let most = if wanted.best { SEVERAL_RESIDENT } else { Arch::STATIC_SMEM.0 };
        (tile_bytes(self.tensors, tile) <= most).then_some(())?;
        let blocks = turned(self.tensors).map(|tensor| self.block(tensor, tile, wanted.best));
        let blocks: Vec<Block> = blocks.collect::<Option<_>>()?;
        let held = turned(self.tensors).zip(&blocks).map(|(tensor, block)| block.held(tensor)).max()?;
        let unroll = self.unroll_of(tile, held)?;
        let level = |level: u32, checks: &mut Checks| {
            let walk = self.walk(tile, (self.vec >> level).max(1))?;
            let go_out = checks.sound("threads that take out are a layout", walk)?;
            let tiling = tilings::turned(self.tensors, tile, (self.vec >> level).max(1), &go_out, &blocks, level);
            let mut tiling = checks.sound("a turned tile is a layout", tiling)?;
            for (tensor, block) in tiling.smem.iter_mut().zip(&blocks) {
                tensor.swizzle = swizzle(tile, block.vec, tensor.dtype.bytes().0 as i64);
            }
            Some(tiling)
        };
        let mut tiling = level(0, checks)?;
        self.judged(&mut tiling, wanted.conflicts, checks)?;
        let widest = blocks.iter().map(|block| block.vec).chain([self.vec]).max().unwrap_or(1);
        let narrower = (1..=widest.ilog2()).map(|number| {
            let mut narrow = level(number, checks)?;
            narrow.smem.clone_from(&tiling.smem);
            Some(narrow)
        });
        let narrower = narrower.collect::<Option<_>>()?;
        Some(Turned { tiling, narrower, unroll, held })
    }

    /// The block of a tensor that a thread turns at a time: one vector along M for each of its rows.
    fn block(&self, tensor: &Tensor, [m, n]: [i64; 2], best: bool) -> Option<Block> {
        let size = tensor.dtype.bytes().0 as i64;
        let vec = (self.bytes.0 as i64 / size).clamp(1, m);
        let along = (m / vec).min(self.threads);
        let across = self.threads / along;
        let fits = |rows: &i64| n % rows == 0 && (n / rows) % across == 0;
        let divide = m % vec == 0 && self.threads % along == 0 && (m / vec) % along == 0;
        let wanted = rows_wanted(size).min(n);
        let rows = (0..=wanted.ilog2()).map(|half| wanted >> half).find(fits).filter(|_| divide)?;
        (!best || rows == wanted).then_some(Block { vec, rows, threads: [along, across] })
    }

    /// The threads that take vectors of so many elements out, along N first; `None` where the tile is no whole number of their steps.
    fn walk(&self, [m, n]: [i64; 2], vec: i64) -> Option<Result<Walk, crate::layout::LayoutError>> {
        let along = (n / vec.max(1)).min(self.threads);
        let fits = along > 0 && self.threads % along == 0 && (n / vec) % along == 0 && m % (self.threads / along) == 0;
        fits.then(|| Walk::along(1, [self.threads / along, along], vec))
    }

    /// The vectors that a thread has in flight on the way out; `None` where a block takes more registers than a thread has.
    fn unroll_of(&self, [m, n]: [i64; 2], held: Bytes) -> Option<i64> {
        let steps = m * n / (self.vec * self.threads);
        let fits = |bytes: Bytes| {
            let (registers, most) = checks::register_need(bytes, self.threads as u32);
            registers <= most
        };
        let [elements, vectors] = MOST_IN_FLIGHT;
        let wanted = if self.unroll == 0 { vectors.min(elements / self.vec).max(1) } else { self.unroll };
        let unroll = (1..=wanted.min(steps))
            .rev()
            .find(|unroll| steps % unroll == 0 && (*unroll == 1 || fits(in_flight(self.tensors, self.vec, *unroll))))?;
        (steps > 0 && fits(held)).then_some(unroll)
    }

    /// The tiles with the swizzle that spreads a thread's units, or the one with the fewest passes over the banks.
    fn judged(&self, tiling: &mut Tiling, level: ConflictLevel, checks: &mut Checks) -> Option<()> {
        for index in 0..tiling.smem.len() {
            let spread = tiling.shared_tensor(&tiling.smem[index]);
            let free = spread.and_then(|spread| spread.analyze()).is_ok_and(|analysis| analysis.extra() == 0);
            if free {
                continue;
            }
            let plain = tiling.shared_tensor(&tiling.smem[index]);
            let best = checks.sound("a turned tile lies in shared memory", plain)?.swizzles(1);
            let best = checks.sound("a turned tile has swizzles", best)?;
            tiling.smem[index].swizzle = best.first().and_then(|best| best.swizzle);
            let spread = tiling.shared_tensor(&tiling.smem[index]);
            let spread = checks.sound("a swizzle that was found fits", spread)?;
            let help = "another vector or thread count; no swizzle of this tile is free of conflicts";
            judge(checks, &spread, level, |_| help.into())?;
        }
        Some(())
    }
}

/// Which unit of its row each unit lies at: exchanged by the vector along M that the row is of, so that neighbouring threads
/// store to other banks.
fn swizzle([_, n]: [i64; 2], vec: i64, size: i64) -> Option<Swizzle> {
    let units = (n * size / UNIT).max(1);
    let [bits, base, row] = [units.min(8), UNIT / size, n * vec].map(|count| i64::from(count.ilog2()));
    Swizzle::new(bits, base, row - base).ok().filter(|_| bits > 0)
}
