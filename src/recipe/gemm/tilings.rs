//! The tilings: one recipe, a description for each group of architectures.

use super::Gemm;
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Swizzle, Tiler, make_layout};
use crate::recipe::product::Extents;
use crate::tiling::{
    Completion, CopyOp, Engine, Global, Guard, MmaOperands, Place, Proxy, Role, Schedule, SmemTensor, Task, TileCopy,
    TileMma, Tiling,
};
use crate::units::Bytes;

/// Elements of 16 bytes: what rows of A and B are multiples of.
pub(super) const VECTOR: i64 = 8;
/// What a row of A or B in global memory begins at a multiple of.
pub(super) const ALIGN: Bytes = Bytes(16);

/// Parts of D in shared memory at a time: one is stored while another is written.
const BUFFERS: u32 = 2;

fn extents(tile: Extents<3>) -> [i64; 3] {
    tile.0.map(i64::from)
}

/// Tiles of rows as long as a swizzle spans; chunks of 16 bytes are exchanged within a row's length, so that 8 rows of one chunk
/// lie in 8 different groups of banks.
fn tile(
    dtype: DType,
    name: &'static str,
    modes: &'static str,
    [rows, columns]: [i64; 2],
    stages: u32,
    proxy: Proxy,
) -> Result<SmemTensor, LayoutError> {
    let vector = (16 / dtype.bytes().0) as i64;
    let swizzle = Swizzle::new(i64::from((columns / vector).max(1).ilog2()), vector.ilog2().into(), 3)?;
    let shape = [rows, columns, stages.into()].map(IntTuple::int);
    let stride = [columns, 1, rows * columns].map(IntTuple::int);
    let block = Bytes(swizzle.block() as u64 * dtype.bytes().0);
    Ok(SmemTensor {
        name,
        modes,
        dtype,
        swizzle: Some(swizzle),
        layout: Layout::new(IntTuple::tuple(shape)?, IntTuple::tuple(stride)?)?,
        align: if proxy == Proxy::Async { block.max(Bytes(128)) } else { Bytes(128) },
        proxy,
    })
}

/// A and B, K-major.
fn tensors(recipe: &Gemm, cta: Extents<3>, stages: u32, proxy: Proxy) -> Result<Vec<SmemTensor>, LayoutError> {
    let [m, n, k] = extents(cta);
    Ok(vec![
        tile(recipe.dtype, "A", "(BM,BK,STAGES)", [m, k], stages, proxy)?,
        tile(recipe.dtype, "B", "(BN,BK,STAGES)", [n, k], stages, proxy)?,
    ])
}

/// A factor in global memory.
fn factor() -> Place {
    Place::Global(Global { contiguous: 1, align: ALIGN, multiple: VECTOR })
}

/// Accumulators to D, element by element: any leading dimension.
fn store(recipe: &Gemm, cta: Extents<3>) -> TileCopy {
    let [m, n, _] = extents(cta);
    TileCopy {
        name: "StoreD",
        what: "store of D",
        tile: [m, n],
        dtype: recipe.out,
        from: Place::Registers(Operand::C),
        to: Place::Global(Global { contiguous: 1, align: recipe.out.bytes(), multiple: 1 }),
        engine: Engine::Fragments(CopyOp::Universal(recipe.out.bytes())),
        guard: Guard::Predicate,
        completes: Completion::Program,
    }
}

/// (m,n,1) atoms, numbered along M first.
fn atoms([m, n]: [i64; 2]) -> Result<Layout, LayoutError> {
    make_layout(&IntTuple::tuple([m, n, 1].map(IntTuple::int))?)
}

/// `cp.async`, `ldmatrix`, `mma.sync`: every warp copies and computes.
pub(super) fn sm80(recipe: &Gemm) -> Result<Tiling, LayoutError> {
    let [m, n, k] = extents(recipe.sm80_tile);
    // Up to 128 accumulators a thread.
    let warps = match m * n {
        ..=16384 => [2, 2],
        _ if m > n => [4, 2],
        _ => [2, 4],
    };
    let threads = 32 * warps[0] * warps[1];
    let mma = TileMma {
        atom: (if recipe.dtype == DType::Bf16 {
            "SM80_16x8x16_F32BF16BF16F32_TN"
        } else {
            "SM80_16x8x16_F32F16F16F32_TN"
        })
        .to_owned(),
        atoms: atoms(warps)?,
        // Two atoms along N, so that ldmatrix.x4 fills whole fragments of B.
        permutation: Some(Tiler::Tuple(
            [16 * warps[0], 16 * warps[1], 16].map(|e| Tiler::Shape(IntTuple::int(e))).into(),
        )),
        operands: MmaOperands::Registers,
    };
    // Neighbouring threads along K, with 16 bytes each.
    let along_k = k / VECTOR;
    let shape = IntTuple::tuple([threads / along_k, along_k].map(IntTuple::int))?;
    let lanes = Layout::new(shape, IntTuple::tuple([along_k, 1].map(IntTuple::int))?)?;
    let vector =
        Layout::new(IntTuple::tuple([1, VECTOR].map(IntTuple::int))?, IntTuple::tuple([0, 1].map(IntTuple::int))?)?;
    let load = |name, what, tensor, x| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype: recipe.dtype,
        from: factor(),
        to: Place::Shared(tensor),
        engine: Engine::Threads { op: CopyOp::CpAsync(ALIGN), threads: lanes.clone(), values: vector.clone() },
        guard: Guard::ZeroFill,
        completes: Completion::CpAsyncGroup,
    };
    let fragment = |name, what, tensor, x, operand| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype: recipe.dtype,
        from: Place::Shared(tensor),
        to: Place::Registers(operand),
        engine: Engine::Fragments(CopyOp::LdMatrix),
        guard: Guard::None,
        completes: Completion::Program,
    };
    Ok(Tiling {
        tile: [m, n, k],
        smem: tensors(recipe, recipe.sm80_tile, recipe.sm80_stages, Proxy::Generic)?,
        copies: vec![
            load("CopyA", "copy of A", "A", m),
            load("CopyB", "copy of B", "B", n),
            fragment("LdsmA", "ldmatrix of A", "A", m, Operand::A),
            fragment("LdsmB", "ldmatrix of B", "B", n, Operand::B),
            store(recipe, recipe.sm80_tile),
        ],
        mmas: vec![mma],
        roles: vec![Role { task: Task::All, threads: threads as u32, registers: None }],
        cluster: [1, 1, 1],
        schedule: Schedule::OneTileACta,
    })
}

/// TMA and WGMMA: warpgroups that compute, and one whose first thread asks for tiles.
pub(super) fn sm90a(recipe: &Gemm) -> Result<Tiling, LayoutError> {
    let [m, n, k] = extents(recipe.tile);
    let warpgroups = consumers(m);
    let [along_m, along_n] = recipe.cluster.0;
    let load = |name, what, tensor, x: i64, sharers: u32| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype: recipe.dtype,
        from: factor(),
        to: Place::Shared(tensor),
        engine: Engine::Tma { extents: [x / i64::from(sharers.max(1)), k], sharers },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
    };
    // What lies in a row of D's part: as much as a swizzle spans.
    let size = recipe.out.bytes().0 as i64;
    let columns = [128, 64, 32].into_iter().map(|span| span / size).find(|part| n % part == 0).unwrap_or(n);
    let part = [64 * warpgroups, columns];
    let stage = TileCopy {
        name: "StageD",
        what: "staging of D",
        tile: part,
        dtype: recipe.out,
        from: Place::Registers(Operand::C),
        to: Place::Shared("D"),
        engine: Engine::Fragments(if size == 2 { CopyOp::StMatrix } else { CopyOp::Universal(Bytes(8)) }),
        guard: Guard::None,
        completes: Completion::Program,
    };
    let store = TileCopy {
        name: "TmaD",
        what: "store of D",
        from: Place::Shared("D"),
        to: Place::Global(Global { contiguous: 1, align: ALIGN, multiple: 1 }),
        engine: Engine::Tma { extents: [64, columns], sharers: warpgroups as u32 },
        guard: Guard::TensorMap,
        completes: Completion::BulkGroup,
        ..stage.clone()
    };
    let mut smem = tensors(recipe, recipe.tile, recipe.stages, Proxy::Async)?;
    smem.push(tile(recipe.out, "D", "(PART_M,PART_N,BUFFERS)", part, BUFFERS, Proxy::Async)?);
    let role = |task, threads: i64, registers| Role { task, threads: threads as u32, registers };
    let [own, producers] = match warpgroups {
        2 => [Some(240), Some(24)],
        3 => [Some(160), Some(32)],
        _ => [None, None],
    };
    let (element, out) = (if recipe.dtype == DType::Bf16 { "BF16" } else { "F16" }, "F32");
    Ok(Tiling {
        tile: [m, n, k],
        smem,
        copies: vec![
            load("TmaA", "copy of A", "A", m, along_n),
            load("TmaB", "copy of B", "B", n, along_m),
            stage,
            store,
        ],
        mmas: vec![TileMma {
            atom: format!("SM90_64x{n}x16_{out}{element}{element}_SS"),
            atoms: atoms([warpgroups, 1])?,
            permutation: None,
            operands: MmaOperands::Descriptors,
        }],
        roles: vec![role(Task::Consume, 128 * warpgroups, own), role(Task::Produce, 128, producers)],
        cluster: [along_m, along_n, 1],
        schedule: Schedule::Persistent { group: recipe.group },
    })
}

/// Warpgroups that compute a tile of so many rows: of 64 each, twice where there would be four.
pub(super) fn consumers(m: i64) -> i64 {
    if m > 192 { 2 } else { m / 64 }
}

/// The same for a D that lies anywhere: a part is stored element by element, by as many threads as are a power of two, so that
/// rows of theirs divide the swizzle's.
pub(super) fn direct(recipe: &Gemm, tiling: &Tiling) -> Result<Tiling, LayoutError> {
    let threads = 1_i64 << tiling.threads_of(Task::Consume).max(1).ilog2();
    let size = recipe.out.bytes();
    let mut direct = tiling.clone();
    for copy in direct.copies.iter_mut().filter(|copy| copy.from == Place::Shared("D")) {
        let columns = copy.tile[1];
        let shape = IntTuple::tuple([threads / columns, columns].map(IntTuple::int))?;
        let lanes = Layout::new(shape, IntTuple::tuple([columns, 1].map(IntTuple::int))?)?;
        copy.name = "CopyD";
        copy.to = Place::Global(Global { contiguous: 1, align: size, multiple: 1 });
        copy.engine = Engine::Threads { op: CopyOp::Universal(size), threads: lanes, values: Layout::unit() };
        copy.guard = Guard::Predicate;
        copy.completes = Completion::Program;
    }
    Ok(direct)
}
