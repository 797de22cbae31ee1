//! The tiling of a kernel: which thread moves which elements of a CTA's tile, at once or one by one, and how tiles are turned.

use super::decide::{Class, Tensor};
use crate::layout::{Layout, LayoutError};
use crate::tiling::{Completion, CopyOp, Engine, Global, Guard, Order, Place, SmemTensor, TileCopy, Tiling, flat};
use crate::units::Bytes;

/// Which thread has which elements of a tile: `make_tiled_copy`'s layouts.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// `(ThrM,ThrN)` to thread.
    pub(super) threads: Layout,
    /// `(ValM,ValN)` to value of a thread.
    pub(super) values: Layout,
}

impl Walk {
    /// Threads that are numbered along a mode first, with a vector along it each.
    pub(super) fn along(mode: usize, threads: [i64; 2], vec: i64) -> Result<Self, LayoutError> {
        let values = if mode == 0 { [vec, 1] } else { [1, vec] };
        Ok(Self { threads: numbered(threads, mode)?, values: numbered(values, mode)? })
    }

    fn count(&self) -> u32 {
        u32::try_from(self.threads.size()).unwrap_or(u32::MAX)
    }
}

/// (rows, columns) to their numbers, along the mode `fast` first.
pub(super) fn numbered(extents: [i64; 2], fast: usize) -> Result<Layout, LayoutError> {
    let strides = if fast == 0 { [1, extents[0]] } else { [extents[1], 1] };
    flat([(extents[0], strides[0]), (extents[1], strides[1])])
}

/// A copy of a tensor's tile by threads. What lies across an end, or is not aligned, is moved element by element.
fn copy(tensor: &Tensor, what: &'static str, tile: [i64; 2], vec: i64, walk: &Walk, places: [Place; 2]) -> TileCopy {
    let [from, to] = places;
    let global = places.iter().any(|place| matches!(place, Place::Global(_)));
    TileCopy {
        name: tensor.name,
        what,
        tile,
        dtype: tensor.dtype,
        from,
        to,
        engine: Engine::Threads {
            op: CopyOp::Universal(Bytes(vec as u64 * tensor.dtype.bytes().0)),
            threads: walk.threads.clone(),
            values: walk.values.clone(),
        },
        guard: if global { Guard::Elements } else { Guard::None },
        completes: Completion::Program,
        split: None,
    }
}

/// A tensor in global memory, of any extents and at any address: a launch tells whether it is aligned.
fn global(tensor: &Tensor, contiguous: usize) -> Place {
    Place::Global(Global { contiguous, align: tensor.dtype.bytes(), ..Global::matrix(tensor.name) })
}

/// The tile of a CTA: every tensor that lies along N goes by way of the threads' registers, the inputs before the outputs.
pub(super) fn direct(tensors: &[Tensor], tile: [i64; 2], vec: i64, walk: &Walk, order: Order) -> Tiling {
    let moves = |tensor: &Tensor| {
        let vec = if tensor.class == Class::Contiguous { vec } else { 1 };
        let (what, places) = match tensor.output {
            true => ("store of an output", [Place::Threads, global(tensor, 1)]),
            false => ("load of an input", [global(tensor, 1), Place::Threads]),
        };
        copy(tensor, what, tile, vec, walk, places)
    };
    let copies = tensors.iter().filter(|tensor| tensor.class != Class::Transposed).map(moves).collect();
    Tiling::of_copies(tile, walk.count().into(), copies, order)
}

/// What a thread turns at a time in its registers: rows along N of a vector along M each.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Elements of a vector along M.
    pub(super) vec: i64,
    /// Rows along N.
    pub(super) rows: i64,
    /// Threads along M and N.
    pub(super) threads: [i64; 2],
}

/// Neighbouring threads along M: their units of 16 bytes are all the banks of shared memory, and their vectors four whole sectors.
const NEIGHBOURS: i64 = 8;

impl Block {
    /// Bytes before the block is turned, and behind.
    pub(super) fn held(&self, tensor: &Tensor) -> Bytes {
        Bytes(2 * (self.vec * self.rows) as u64 * tensor.dtype.bytes().0)
    }

    /// Which thread has which block: so many neighbours along M, then those along N, then the others along M. The values are
    /// numbered along the mode `fast` first.
    fn walk(&self, fast: usize) -> Result<Walk, LayoutError> {
        let [m, n] = self.threads;
        let near = m.min(NEIGHBOURS);
        let along_m = Layout::from_modes([Layout::mode_of(near, 1)?, Layout::mode_of(m / near, near * n)?])?;
        let along_m = if m == near { Layout::mode_of(m, 1)? } else { along_m };
        let threads = Layout::from_modes([along_m, Layout::mode_of(n, near)?])?;
        Ok(Walk { threads, values: numbered([self.vec, self.rows], fast)? })
    }
}

/// The same with inputs that are turned: loaded in vectors along M, stored to shared memory in rows along N, and taken out in vectors
/// along N. Vectors in global memory have a half of the elements, a quarter, .., by `level`, but one at least.
pub(super) fn turned(
    tensors: &[Tensor],
    tile: [i64; 2],
    vec: i64,
    go_out: &Walk,
    blocks: &[Block],
    level: u32,
) -> Result<Tiling, LayoutError> {
    // Neighbouring CTAs have neighbouring tiles of a row.
    let order = Order::numbered(&[("n", tile[1]), ("m", tile[0]), ("batches", 1)], None);
    let mut tiling = direct(tensors, tile, vec, go_out, order);
    for (tensor, block) in tensors.iter().filter(|tensor| tensor.class == Class::Transposed).zip(blocks) {
        let shared = Place::Shared(tensor.name);
        let (load, store) = (block.walk(0)?, block.walk(1)?);
        let bring = |what, vec, walk, places| copy(tensor, what, tile, vec, walk, places);
        let loaded = (block.vec >> level).max(1);
        tiling.copies.push(bring("load along M", loaded, &load, [global(tensor, 0), Place::Threads]));
        tiling.copies.push(bring("store of a row", block.rows, &store, [Place::Threads, shared]));
        tiling.copies.push(bring("load of a vector", vec, go_out, [shared, Place::Threads]));
        let modes = [tensor.name, "(TileM,TileN)"];
        tiling.smem.push(SmemTensor::plain(modes, tensor.dtype, numbered(tile, 1)?, Bytes(16)));
    }
    Ok(tiling)
}

/// (tid,UNROLL) to the vector of the CTA, where vectors are moved side by side.
pub(super) fn vectors(tiling: &Tiling, vec: i64) -> Result<Layout, LayoutError> {
    let threads = i64::from(tiling.threads());
    numbered([threads, tiling.tile[1] / (vec * threads).max(1)], 0)
}
