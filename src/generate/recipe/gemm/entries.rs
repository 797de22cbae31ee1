//! The tilings of a text's further entries: for a D that lies anywhere, for sums of shared tiles, for factors that are packed.

use super::Gemm;
use super::tilings::pair;
use crate::atom::Operand;
use crate::layout::{Layout, LayoutError, Swizzle};
use crate::tiling::{
    Completion, CopyOp, Engine, Global, Guard, Lives, Order, Place, Proxy, SmemTensor, TileCopy, Tiling,
};
use crate::units::Bytes;

/// The tiling of the kernel for a D of any alignment. A slice is stored element by element, by a power of two of
/// threads, so that their rows divide the swizzle's.
pub(super) fn direct(recipe: &Gemm, tiling: &Tiling) -> Result<Tiling, LayoutError> {
    let threads = 1_i64 << tiling.threads_of_tile().max(1).ilog2();
    let size = recipe.out.bytes();
    let mut direct = tiling.clone();
    for copy in direct.copies.iter_mut().filter(|copy| copy.from == Place::Shared("D")) {
        let columns = copy.tile[1];
        let lanes = Layout::new(pair([threads / columns, columns])?, pair([columns, 1])?)?;
        copy.name = "CopyD";
        copy.to = recipe.result(size);
        copy.engine = Engine::Threads { op: CopyOp::Universal(size), threads: lanes, values: Layout::unit() };
        copy.guard = Guard::Predicate;
        copy.completes = Completion::Program;
    }
    Ok(direct)
}

/// The tiling of the kernel for a D whose rows an index names. Each row is stored in vectors of 16 bytes where these are aligned and whole.
pub(super) fn scattered(recipe: &Gemm, tiling: Tiling) -> Result<Tiling, LayoutError> {
    let (threads, size) = (1_i64 << tiling.threads_of_tile().max(1).ilog2(), recipe.out.bytes());
    let (mut scattered, vector) = (tiling, VECTOR / size.0 as i64);
    for copy in scattered.copies.iter_mut().filter(|copy| copy.from == Place::Shared("D")) {
        let [rows, columns] = copy.tile;
        let along = 1_i64 << (columns / vector).trailing_zeros();
        copy.name = "CopyD";
        copy.to = recipe.result(size);
        copy.engine = by_vectors([(threads / along).min(rows), along], vector)?;
        copy.guard = Guard::Elements;
        copy.completes = Completion::Program;
    }
    Ok(scattered)
}

/// Bytes of a vector.
const VECTOR: i64 = 16;

/// So many rows of threads, each with a vector.
fn by_vectors([rows, along]: [i64; 2], vector: i64) -> Result<Engine, LayoutError> {
    let threads = Layout::new(pair([rows, along])?, pair([along, 1])?)?;
    let values = Layout::new(pair([1, vector])?, pair([0, 1])?)?;
    Ok(Engine::Threads { op: CopyOp::Universal(Bytes(VECTOR as u64)), threads, values })
}

/// Sums of a part of K: a tile of its own for each part, which the threads that have accumulated it write to the workspace.
fn sums() -> Place {
    Place::Global(Global { align: Bytes(8), multiple: 2, whole: true, ..Global::matrix("W") })
}

/// Threads of a CTA that adds up, and elements of each.
const ADDS: [i64; 2] = [256, 4];

/// Stream-K: the tilings of the partial sums of a shared tile, and of the entry that adds them up. A CTA of that entry
/// takes some rows of a tile. Their width is a power of two, so that neighbours of a warp read and write neighbours.
pub(super) fn stream_k(recipe: &Gemm, tiling: &Tiling) -> Result<[Tiling; 2], LayoutError> {
    let ([m, n, k], [threads, each]) = (tiling.tile, ADDS);
    let give = TileCopy {
        name: "GiveSums",
        what: "sums of a part of K",
        tile: [m, n],
        dtype: recipe.dtype.sums(),
        from: Place::Fragments("Mma", Operand::C),
        to: sums(),
        engine: Engine::Fragments(CopyOp::Universal(Bytes(8))),
        guard: Guard::None,
        completes: Completion::Program,
        split: None,
    };
    // This tiling begins behind the mainloop, so it has no pipeline.
    let (smem, pipelines) = (Vec::new(), Vec::new());
    let give = Tiling { tile: [m, n, k], smem, pipelines, copies: vec![give], ..tiling.clone() };
    let columns = 1_i64 << n.trailing_zeros();
    let rows = (each * threads / columns).min(m);
    let lanes = Layout::new(pair([threads / columns, columns])?, pair([columns, 1])?)?;
    let add_up = TileCopy {
        name: "AddUp",
        what: "the sum of all parts",
        tile: [rows, columns],
        dtype: recipe.out,
        from: sums(),
        to: recipe.result(recipe.out.bytes()),
        engine: Engine::Threads { op: CopyOp::Universal(recipe.out.bytes()), threads: lanes, values: Layout::unit() },
        guard: Guard::Predicate,
        completes: Completion::Program,
        split: None,
    };
    let order = Order::numbered(&[("n", columns), ("m", rows), ("tiles", 1)], None);
    let add_up = Tiling::of_copies([rows, columns], threads, vec![add_up], order);
    Ok([give, add_up])
}

/// Threads of a CTA that packs.
const PACKS: i64 = 256;

/// Packs an operand into the workspace, in rows along its contiguous mode. A warp reads and writes 32 neighbours at a
/// time. The rows that it reads begin anywhere. The rows that it writes begin at multiples of 128 bytes, so that whole
/// sectors are written. Each thread has sixteen elements in flight. If the kernel multiplies rows along the other mode,
/// a tile is transposed through shared memory.
pub(super) fn pack(recipe: &Gemm) -> Result<Tiling, LayoutError> {
    let [rows, columns] = [64, 64];
    let lanes = Layout::new(pair([PACKS / columns, columns])?, pair([columns, 1])?)?;
    let bytes = recipe.dtype.dtype().bytes();
    let place = |contiguous, align| {
        Place::Global(Global { contiguous, align, outer: recipe.have_l("B").into(), ..Global::matrix("S") })
    };
    let pack = TileCopy {
        name: "Pack",
        what: "packing of a factor",
        tile: [rows, columns],
        dtype: recipe.dtype.dtype(),
        from: place(1, bytes),
        to: place(1, Bytes(columns as u64 * bytes.0)),
        engine: Engine::Threads { op: CopyOp::Universal(bytes), threads: lanes, values: Layout::unit() },
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    let (mut smem, mut copies) = (Vec::new(), vec![pack.clone()]);
    if recipe.gather {
        let vector = recipe.dtype.vector();
        let engine = by_vectors([PACKS / (columns / vector), columns / vector], vector)?;
        copies.push(TileCopy { name: "Gather", what: "packing of rows that an index names", engine, ..pack.clone() });
    }
    if recipe.turns().contains(&true) {
        // Neighbours along either mode lie in different banks.
        smem.push(SmemTensor {
            name: "T",
            modes: "(ROWS,COLUMNS)",
            dtype: pack.dtype,
            swizzle: Some(Swizzle::new(5, 0, columns.ilog2().into())?),
            layout: Layout::new(pair([rows, columns])?, pair([columns, 1])?)?,
            align: bytes,
            proxy: Proxy::Generic,
            lives: Lives::Kernel,
        });
        let across = Layout::new(pair([rows, PACKS / rows])?, pair([1, rows])?)?;
        let engine = Engine::Threads { op: CopyOp::Universal(bytes), threads: across, values: Layout::unit() };
        let (what, turned) = ("turning of a factor", Place::Shared("T"));
        copies.push(TileCopy { name: "Turn", what, from: place(0, bytes), to: turned, engine, ..pack.clone() });
        copies.push(TileCopy { name: "Turned", what, from: turned, ..pack });
    }
    let order = Order::numbered(&[("columns", columns), ("rows", rows), ("l", 1)], None);
    Ok(Tiling { smem, ..Tiling::of_copies([rows, columns], PACKS, copies, order) })
}
