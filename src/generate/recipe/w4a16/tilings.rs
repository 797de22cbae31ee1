//! The tilings: of a slice of K, of the sum of a CTA's slices, and of the sum of several CTAs.

use super::W4a16;
use super::pack::{COLUMNS, PER_WORD, ROWS};
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Tiler, make_layout};
use crate::plan::{Int, IntOp};
use crate::tiling::{
    Axis, Completion, CopyOp, Engine, Factor, Global, Guard, Inner, Lives, Order, Pipeline, Place, Proxy, Role,
    SmemTensor, Task, TileCopy, TileMma, Tiling, flat,
};
use crate::units::Bytes;

/// Words of a block of 64 x 16 weights: 16 bytes for each lane of a warp.
const WORDS: i64 = ROWS * COLUMNS / PER_WORD;
/// Rows of a tile whose sums are added up at a time: those of an atom.
pub(super) const PART: i64 = 16;
/// Elements of D that a thread adds up at once.
pub(super) const VECTOR: i64 = 4;
/// Threads of the kernel that adds the sums of CTAs, and what they have of D.
pub(super) const REDUCE: i64 = 256;
pub(super) const REDUCE_TILE: [i64; 2] = [16, 64];

impl W4a16 {
    pub(super) fn extents(&self) -> [i64; 3] {
        self.tile.0.map(i64::from)
    }

    /// Warps of a slice: each has 64 columns of D.
    pub(super) fn warps(&self) -> i64 {
        self.extents()[1] / ROWS
    }

    /// Rows of scales of a k-tile.
    pub(super) fn rows_of_scales(&self) -> i64 {
        (self.extents()[2] / i64::from(self.group.max(1))).max(1)
    }
}

fn pair([rows, columns]: [i64; 2]) -> Result<IntTuple, LayoutError> {
    IntTuple::tuple([rows, columns].map(IntTuple::int))
}

/// (rows, columns) of threads, numbered along columns first.
fn lanes([rows, columns]: [i64; 2]) -> Result<Layout, LayoutError> {
    Layout::new(pair([rows, columns])?, pair([columns, 1])?)
}

/// A vector of so many columns for each thread.
fn vectors(op: CopyOp, threads: [i64; 2], vector: i64) -> Result<Engine, LayoutError> {
    Ok(Engine::Threads { op, threads: lanes(threads)?, values: Layout::new(pair([1, vector])?, pair([0, 1])?)? })
}

/// The MMA of a slice. Column c of MMA j of a warp is column `c % 2 + 2 * j + 16 * (c / 2)` of its 64, so that a thread multiplies by
/// 8 of 16 neighbours, and accumulates 16.
pub(super) fn mma(recipe: &W4a16) -> Result<TileMma, LayoutError> {
    let (warps, ty) = (recipe.warps(), if recipe.dtype == DType::F16 { "F16" } else { "BF16" });
    let along_n: Layout = format!("((2,4),{warps},8):((1,16),64,2)").parse()?;
    let shape = |extent| Tiler::Shape(IntTuple::int(extent));
    Ok(TileMma {
        name: "Mma",
        tiles: ["TileA", "TileB", "TileD"],
        tile: recipe.extents(),
        atom: format!("SM80_16x8x16_F32{ty}{ty}F32_TN"),
        atoms: make_layout(&IntTuple::tuple([1, warps, 1].map(IntTuple::int))?)?,
        permutation: Some(Tiler::Tuple(vec![shape(PART), Tiler::Layout(along_n), shape(COLUMNS)])),
        a: Factor::Fragments,
        b: Factor::Fragments,
        promotion: None,
    })
}

/// A tensor of (rows, columns) for each stage, rows without gaps.
fn staged(name: &'static str, modes: &'static str, dtype: DType, extents: [i64; 3]) -> Result<SmemTensor, LayoutError> {
    let [rows, columns, stages] = extents;
    let layout = flat([(rows, columns), (columns, 1), (stages, rows * columns)])?;
    Ok(SmemTensor { lives: Lives::Mainloop, ..SmemTensor::plain([name, modes], dtype, layout, Bytes(16)) })
}

/// The sums of all slices for some rows of a tile; rows begin in different banks.
fn sums(recipe: &W4a16, lives: Lives) -> Result<SmemTensor, LayoutError> {
    let ([_, n, _], slices) = (recipe.extents(), i64::from(recipe.slices));
    let (pitch, int) = (n + VECTOR, IntTuple::int);
    let layout =
        Layout::new(IntTuple::tuple([PART, n, slices].map(int))?, IntTuple::tuple([pitch, 1, PART * pitch].map(int))?)?;
    let tensor = staged("Sums", "(PART,BN,SLICES)", DType::F32, [PART, n, slices])?;
    Ok(SmemTensor { layout, lives, ..tensor })
}

/// From global to shared memory by cp.async, zeros for what lies outside.
fn load(
    [name, what]: [&'static str; 2],
    (tensor, shared): (Global, &'static str),
    tile: [i64; 2],
    dtype: DType,
    engine: Engine,
) -> TileCopy {
    TileCopy {
        name,
        what,
        tile,
        dtype,
        from: Place::Global(tensor),
        to: Place::Shared(shared),
        engine,
        guard: Guard::ZeroFill,
        completes: Completion::CpAsyncGroup,
        split: None,
    }
}

/// The largest power of two that divides an extent, at most so much.
fn power(extent: i64, most: i64) -> i64 {
    (1_i64 << extent.max(1).trailing_zeros()).min(most.max(1))
}

/// A slice of K: the warps that multiply it, and what they copy. Each slice has stages of its own.
pub(super) fn slice(recipe: &W4a16) -> Result<Tiling, LayoutError> {
    let ([m, n, k], stages, warps) = (recipe.extents(), i64::from(recipe.stages), recipe.warps());
    let (threads, dtype, rows) = (32 * warps, recipe.dtype, recipe.rows_of_scales());
    let (blocks, words) = (n / ROWS, k / COLUMNS * WORDS);
    let global = |tensor, align: u64, multiple| Global { align: Bytes(align), multiple, ..Global::matrix(tensor) };
    let across = |columns: i64, rows: i64| {
        let along = power(columns, threads);
        [power(rows, threads / along), along]
    };
    let by = |bytes, threads, vector| vectors(CopyOp::CpAsync(Bytes(bytes)), threads, vector);
    let mut smem = vec![
        SmemTensor {
            lives: Lives::Mainloop,
            ..SmemTensor::in_pieces(["A", "(BM,BK,STAGES)"], dtype, [m, k, stages], 1, Proxy::Generic)?
        },
        staged("W", "(BN/64,WORDS,STAGES)", DType::I32, [blocks, words, stages])?,
        staged("S", "(GROUPS,BN,STAGES)", dtype, [rows, n, stages])?,
    ];
    let mut copies = vec![
        load(["CopyA", "copy of A"], (global("A", 16, 8), "A"), [m, k], dtype, by(16, across(k / 8, m), 8)?),
        load(["CopyW", "copy of W"], (global("W", 16, 4), "W"), [blocks, words], DType::I32, by(16, [warps, 32], 4)?),
        load(
            ["CopyS", "copy of the scales"],
            (global("Scales", 16, 8), "S"),
            [rows, n],
            dtype,
            by(16, across(n / 8, rows), 8)?,
        ),
    ];
    if recipe.zeros {
        smem.push(staged("Z", "(GROUPS,BN,STAGES)", DType::U8, [rows, n, stages])?);
        copies.push(load(
            ["CopyZ", "copy of the zero points"],
            (global("Zeros", 8, 8), "Z"),
            [rows, n],
            DType::U8,
            by(8, across(n / 8, rows), 8)?,
        ));
    }
    let tensors = smem.iter().map(|tensor| tensor.name).collect();
    smem.push(sums(recipe, Lives::Epilogue)?);
    let inside = |name, what, tile, dtype, from, to, engine| TileCopy {
        name,
        what,
        tile,
        dtype,
        from,
        to,
        engine,
        guard: Guard::None,
        completes: Completion::Program,
        split: None,
    };
    copies.extend([
        inside(
            "LdsmA",
            "ldmatrix of A",
            [m, k],
            dtype,
            Place::Shared("A"),
            Place::Fragments("Mma", Operand::A),
            Engine::Fragments(CopyOp::LdMatrix),
        ),
        // Each thread reads what it has copied.
        inside(
            "LoadW",
            "load of W",
            [blocks, words],
            DType::I32,
            Place::Shared("W"),
            Place::Threads,
            vectors(CopyOp::Universal(Bytes(16)), [warps, 32], 4)?,
        ),
        inside(
            "GiveSums",
            "sums of a slice",
            [PART, n],
            DType::F32,
            Place::Fragments("Mma", Operand::C),
            Place::Shared("Sums"),
            Engine::Fragments(CopyOp::Universal(Bytes(8))),
        ),
    ]);
    Ok(Tiling {
        tile: [m, n, k],
        smem,
        pipelines: vec![Pipeline { name: "mainloop", tensors, stages, completes: Completion::CpAsyncGroup }],
        copies,
        mmas: vec![mma(recipe)?],
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: threads as u32, registers: None }],
        cluster: [1; 3],
        order: order(recipe),
    })
}

/// Steps of the inner loop that the slices of a CTA have together: k-tiles of each.
pub(super) fn units(recipe: &W4a16, k: Int) -> Int {
    let [_, _, bk] = recipe.extents();
    k.ceil_div(bk * i64::from(recipe.slices.max(1))).op(IntOp::Max, 1)
}

/// A CTA has `k_share` units, a tile after the other: the pieces of a CTA are its tiles, and the slices of each.
fn order(recipe: &W4a16) -> Order {
    let ([bm, bn, bk], slices) = (recipe.extents(), i64::from(recipe.slices.max(1)));
    let known = [("m", bm), ("n", bn), ("k", bk), ("k_share", 1)];
    let (mut order, [m, n, k, share], [cta, turn, slice]) = Order::new(known, ["cta", "turn", "slice"]);
    let (tiles_m, tiles_n, k_tiles) = (m.ceil_div(bm), n.ceil_div(bn), k.clone().ceil_div(bk));
    let units = order.steps.set("units", units(recipe, k));
    let tiles = order.steps.set("tiles", tiles_m.clone() * tiles_n.clone());
    let all = tiles.clone() * units.clone();
    let begin = order.steps.set("begin", cta.clone() * share.clone());
    let end = order.steps.set("end", (begin.clone() + share.clone()).op(IntOp::Min, all.clone()));
    let tile = begin.clone() / units.clone() + turn.clone();
    let has_work = (tile.clone() * units.clone()).less(end.clone());
    let tile = order.steps.set("tile", has_work.clone().select(tile, tiles));
    let of_tile = tile.clone() * units.clone();
    let first = order.steps.set("first", begin.op(IntOp::Max, of_tile.clone()) - of_tile.clone());
    let last = (end - of_tile).op(IntOp::Min, units.clone());
    let count = order.steps.set("count", has_work.select(last - first.clone(), 0));
    let of_slice = (first * slices + slice.clone() * count.clone()).op(IntOp::Min, k_tiles.clone());
    let behind = (of_slice.clone() + count).op(IntOp::Min, k_tiles.clone());
    order.inner = Inner { first: of_slice.clone(), trips: behind - of_slice, tile: [0.into(), k_tiles] };
    let turns = (share.clone() - 1).ceil_div(units) + 1;
    let piece = |at: Int, extent: Int| Axis { at, extent };
    order.pieces = vec![piece(cta, all.ceil_div(share)), piece(turn, turns), piece(slice, slices.into())];
    order.tile = vec![piece(tile.clone() % tiles_m.clone(), tiles_m.clone()), piece(tile / tiles_m, tiles_n)];
    order
}

/// Sums become elements of D, four neighbours of a thread at a time.
fn added(
    names: [&'static str; 2],
    from: (Place, Guard),
    tile: [i64; 2],
    threads: [i64; 2],
    dtype: DType,
) -> Result<Vec<TileCopy>, LayoutError> {
    let [add, store] = names;
    let (place, guard) = from;
    let copy = |name, what, dtype: DType, from, to, op, guard| {
        Ok::<_, LayoutError>(TileCopy {
            name,
            what,
            tile,
            dtype,
            from,
            to,
            engine: vectors(op, threads, VECTOR)?,
            guard,
            completes: Completion::Program,
            split: None,
        })
    };
    let d = Place::Global(Global { align: dtype.bytes(), ..Global::matrix("D") });
    let sums = CopyOp::Universal(Bytes(16));
    Ok(vec![
        copy(add, "the sum of all parts", DType::F32, place, Place::Threads, sums, guard)?,
        copy(store, "store of D", dtype, Place::Threads, d, CopyOp::Universal(dtype.bytes()), Guard::Elements)?,
    ])
}

fn without_mma(tile: [i64; 2], threads: i64, smem: Vec<SmemTensor>, copies: Vec<TileCopy>) -> Tiling {
    let [rows, columns] = tile;
    let order = Order::numbered(&[("n", columns), ("m", rows)], None);
    Tiling { smem, ..Tiling::of_copies(tile, threads, copies, order) }
}

/// The sum of a CTA's slices.
pub(super) fn finish(recipe: &W4a16) -> Result<Tiling, LayoutError> {
    let ([_, n, _], threads) = (recipe.extents(), 32 * recipe.warps() * i64::from(recipe.slices));
    let along = n / VECTOR;
    let rows = power(PART, threads / along);
    let copies =
        added(["AddSlices", "StoreD"], (Place::Shared("Sums"), Guard::None), [PART, n], [rows, along], recipe.out())?;
    Ok(without_mma([PART, n], threads, vec![sums(recipe, Lives::Kernel)?], copies))
}

/// The sum of several CTAs, from the workspace.
pub(super) fn reduce(recipe: &W4a16) -> Result<Tiling, LayoutError> {
    let [rows, columns] = REDUCE_TILE;
    let along = columns / VECTOR;
    let parts = Global { align: Bytes(16), multiple: VECTOR, whole: true, ..Global::matrix("Parts") };
    let copies = added(
        ["AddParts", "StoreSums"],
        (Place::Global(parts), Guard::None),
        REDUCE_TILE,
        [REDUCE / along, along],
        recipe.out(),
    )?;
    debug_assert!(rows * columns == REDUCE * VECTOR);
    Ok(without_mma(REDUCE_TILE, REDUCE, Vec::new(), copies))
}
