//! Reductions of fragments over the threads that hold them.

use super::cover::{Flaws, Law, tile_layout};
use super::moves::{Moves, WARP};
use super::{Lives, TileCopy, Tiling};
use crate::atom::Operand;
use crate::layout::LayoutError;

/// A reduction along one mode of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileReduce {
    /// What it is, in messages: `row maximum`.
    pub what: &'static str,
    /// What holds the elements.
    pub of: Reduced,
    /// The mode that is reduced: 0 for rows, 1 for columns.
    pub mode: usize,
    /// How two become one.
    pub op: ReduceOp,
    /// Over which threads, beside the elements of one thread.
    pub over: Vec<Scope>,
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduced {
    /// The accumulators of this MMA.
    Accumulators(&'static str),
    /// What each thread got by the copy of this name.
    Copied(&'static str),
}

/// How two become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}

/// Threads that reduce together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Lanes of a warp, by butterfly shuffles.
    Lanes,
    /// Warps of a CTA, through this tensor in shared memory: (lines, warps).
    Warps(&'static str),
    /// CTAs of a cluster along this mode of it, through this tensor: (lines, CTAs).
    Cluster(usize, &'static str),
}

/// Which lanes of a warp, and which warps, hold a part of one line.
struct Holders {
    lanes: u32,
    warps: Vec<usize>,
}

impl Tiling {
    pub(super) fn reduce_flaws(&self, flaws: &mut Flaws) {
        for reduce in &self.reduces {
            let Some(held) = self.held(reduce, flaws) else { continue };
            let (tile, moves) = held;
            self.lane_flaws(reduce, tile, &moves, flaws);
            self.through_flaws(reduce, tile, flaws);
            self.split_flaws(reduce, flaws);
        }
    }

    /// The tile, and which thread holds which of its elements.
    fn held(&self, reduce: &TileReduce, flaws: &mut Flaws) -> Option<([i64; 2], Moves)> {
        let moves = match reduce.of {
            Reduced::Accumulators(name) => self.mma(name).map(|mma| {
                let tile = mma.tile_of(Operand::C);
                let own = mma.tiled().and_then(|mma| mma.thread_values(Operand::C, &tile_layout(tile)?));
                own.and_then(|own| Ok((tile, Moves::new(&own, 1)?)))
            }),
            Reduced::Copied(name) => self.copy(name).map(|copy| {
                let sides = self.sides(copy)?;
                Ok((copy.tile, sides.map_or_else(none, |sides| sides.to.clone())))
            }),
        };
        let Some(moves) = moves else {
            let found = format!("{}: of {:?}", reduce.what, reduce.of);
            flaws.push(Law::Reduces, found, "an MMA or a copy that there is", "there is nothing else to reduce");
            return None;
        };
        flaws.take(reduce.what, moves)
    }

    /// Whether all threads that hold a part of a line are reduced over.
    fn lane_flaws(&self, reduce: &TileReduce, tile: [i64; 2], moves: &Moves, flaws: &mut Flaws) {
        let lines = lines(reduce.mode, tile, moves);
        let lanes = reduce.over.contains(&Scope::Lanes);
        let warps = reduce.over.iter().any(|scope| matches!(scope, Scope::Warps(_)));
        for (line, holders) in lines.iter().enumerate() {
            let count = holders.lanes.count_ones();
            let problem = match () {
                () if count == 0 => Some(("no thread".to_owned(), "threads that hold it")),
                () if count > 1 && !lanes => Some((format!("{count} lanes of a warp"), "a scope of lanes")),
                () if holders.warps.len() > 1 && !warps => {
                    Some((format!("{} warps", holders.warps.len()), "a scope of warps"))
                }
                () if !is_butterfly(holders.lanes) => {
                    Some((format!("lanes {:#010x}", holders.lanes), "lanes that differ in some bits, in all ways"))
                }
                () => None,
            };
            if let Some((found, required)) = problem {
                let found = format!("{}: line {line} is held by {found}", reduce.what);
                flaws.push(Law::Reduces, found, required, "what is left out is missing in the result");
                return;
            }
        }
    }

    /// Whether there is room for what warps and CTAs tell each other.
    fn through_flaws(&self, reduce: &TileReduce, tile: [i64; 2], flaws: &mut Flaws) {
        let lines = tile[1 - reduce.mode.min(1)];
        for scope in &reduce.over {
            let (name, parts) = match scope {
                Scope::Lanes => continue,
                Scope::Warps(name) => (name, i64::from(self.threads_of_tile().div_ceil(WARP as u32))),
                Scope::Cluster(mode, name) => (name, i64::from(self.cluster.get(*mode).copied().unwrap_or(1))),
            };
            let tensor = self.smem(name);
            let fits = tensor.is_some_and(|tensor| {
                let [rows, columns, _] = tensor.extents();
                rows >= lines && columns >= parts && tensor.lives == Lives::Kernel
            });
            if !fits {
                let found = format!("{}: through s{name}, {:?}", reduce.what, tensor.map(|t| t.extents()));
                let required = format!("a tensor ({lines},{parts}) of its own memory");
                flaws.push(Law::Reduces, found, required, "each part of each line has a place of its own");
            }
        }
    }

    /// Whether a line that CTAs of a cluster share is reduced over them.
    fn split_flaws(&self, reduce: &TileReduce, flaws: &mut Flaws) {
        let Reduced::Copied(name) = reduce.of else { return };
        let Some(TileCopy { split, .. }) = self.copy(name) else { return };
        let mode = split.filter(|(mode, _)| *mode == reduce.mode).map(|(_, of_cluster)| of_cluster);
        let over = reduce.over.iter().find_map(|scope| match scope {
            Scope::Cluster(mode, _) => Some(*mode),
            _ => None,
        });
        let mode = mode.filter(|mode| self.cluster.get(*mode).is_some_and(|ctas| *ctas > 1));
        if mode != over {
            let found = format!("{}: lines over mode {mode:?} of the cluster, reduced over {over:?}", reduce.what);
            flaws.push(Law::Reduces, found, "the mode that shares them", "what is left out is missing in the result");
        }
    }
}

fn none() -> Moves {
    Moves { threads: Vec::new(), values: Vec::new(), vector: 1, leaves: None }
}

/// The holders of each line, where lines lie along a mode.
fn lines(mode: usize, [rows, columns]: [i64; 2], moves: &Moves) -> Vec<Holders> {
    let count = if mode == 0 { columns } else { rows };
    let mut lines: Vec<Holders> = (0..count).map(|_| Holders { lanes: 0, warps: Vec::new() }).collect();
    for thread in 0..moves.threads.len() {
        for element in moves.of_thread(thread) {
            let line = if mode == 0 { element / rows.max(1) } else { element % rows.max(1) };
            let Some(holders) = usize::try_from(line).ok().and_then(|line| lines.get_mut(line)) else { continue };
            holders.lanes |= 1 << (thread % WARP);
            if !holders.warps.contains(&(thread / WARP)) {
                holders.warps.push(thread / WARP);
            }
        }
    }
    lines
}

/// Whether lanes are those that butterfly shuffles reach from any of them: all that differ in some set of bits.
fn is_butterfly(lanes: u32) -> bool {
    let first = lanes.trailing_zeros();
    let apart = (0..WARP as u32).filter(|lane| lanes >> lane & 1 != 0).fold(0, |bits, lane| bits | (lane ^ first));
    lanes == 0 || lanes.count_ones() == 1 << apart.count_ones()
}

impl TileReduce {
    /// Shuffles of a warp for one line.
    ///
    /// # Errors
    /// As for [`Tiling::flaws`].
    pub fn shuffles(&self, tiling: &Tiling) -> Result<u32, LayoutError> {
        let mut flaws = Flaws(Vec::new());
        let Some((tile, moves)) = tiling.held(self, &mut flaws) else { return Ok(0) };
        let most = lines(self.mode, tile, &moves).iter().map(|line| line.lanes.count_ones()).max().unwrap_or(0);
        Ok(most.max(1).ilog2())
    }
}
