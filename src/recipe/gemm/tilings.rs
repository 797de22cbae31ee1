//! The tilings: one recipe, a description for each group of architectures.

use super::Gemm;
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Swizzle, Tiler, make_layout};
use crate::tiling::{
    Completion, CopyOp, Engine, Global, Guard, MmaOperands, Place, Proxy, Role, Schedule, SmemTensor, Task, TileCopy,
    TileMma, Tiling,
};
use crate::units::Bytes;

/// The type of A and B.
pub(super) const FACTOR: DType = DType::F16;
/// Elements of 16 bytes: what rows of A and B are multiples of.
pub(super) const VECTOR: i64 = 8;
/// What a row of A or B in global memory begins at a multiple of.
const ALIGN: Bytes = Bytes(16);

fn extents(recipe: &Gemm) -> [i64; 3] {
    recipe.tile.0.map(i64::from)
}

/// A K-major tile for each stage; chunks of 16 bytes are exchanged within a row's length, so that 8 rows of one chunk lie in 8
/// different groups of banks.
fn smem(
    recipe: &Gemm,
    name: &'static str,
    modes: &'static str,
    x: i64,
    proxy: Proxy,
) -> Result<SmemTensor, LayoutError> {
    let [_, _, k] = extents(recipe);
    let swizzle = Swizzle::new(i64::from((k / VECTOR).max(1).ilog2()), 3, 3)?;
    let shape = [x, k, recipe.stages.into()].map(IntTuple::int);
    let stride = [k, 1, x * k].map(IntTuple::int);
    let block = Bytes(swizzle.block() as u64 * FACTOR.bytes().0);
    Ok(SmemTensor {
        name,
        modes,
        dtype: FACTOR,
        swizzle: Some(swizzle),
        layout: Layout::new(IntTuple::tuple(shape)?, IntTuple::tuple(stride)?)?,
        align: if proxy == Proxy::Async { block.max(Bytes(128)) } else { Bytes(128) },
        proxy,
    })
}

fn tensors(recipe: &Gemm, proxy: Proxy) -> Result<Vec<SmemTensor>, LayoutError> {
    let [m, n, _] = extents(recipe);
    Ok(vec![smem(recipe, "A", "(BM,BK,STAGES)", m, proxy)?, smem(recipe, "B", "(BN,BK,STAGES)", n, proxy)?])
}

/// A factor in global memory.
fn factor() -> Place {
    Place::Global(Global { contiguous: 1, align: ALIGN, multiple: VECTOR })
}

/// Accumulators to D, element by element: any leading dimension.
fn store(recipe: &Gemm) -> TileCopy {
    let [m, n, _] = extents(recipe);
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
    let [m, n, k] = extents(recipe);
    // Up to 128 accumulators a thread.
    let warps = match m * n {
        ..=16384 => [2, 2],
        _ if m > n => [4, 2],
        _ => [2, 4],
    };
    let threads = 32 * warps[0] * warps[1];
    let mma = TileMma {
        atom: "SM80_16x8x16_F32F16F16F32_TN".to_owned(),
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
        dtype: FACTOR,
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
        dtype: FACTOR,
        from: Place::Shared(tensor),
        to: Place::Registers(operand),
        engine: Engine::Fragments(CopyOp::LdMatrix),
        guard: Guard::None,
        completes: Completion::Program,
    };
    Ok(Tiling {
        tile: [m, n, k],
        smem: tensors(recipe, Proxy::Generic)?,
        copies: vec![
            load("CopyA", "copy of A", "A", m),
            load("CopyB", "copy of B", "B", n),
            fragment("LdsmA", "ldmatrix of A", "A", m, Operand::A),
            fragment("LdsmB", "ldmatrix of B", "B", n, Operand::B),
            store(recipe),
        ],
        mmas: vec![mma],
        roles: vec![Role { task: Task::All, threads: threads as u32 }],
        cluster: [1, 1, 1],
        schedule: Schedule::OneTileACta,
    })
}

/// TMA and WGMMA: a warpgroup for each 64 rows, and a warp that asks for tiles.
pub(super) fn sm90a(recipe: &Gemm) -> Result<Tiling, LayoutError> {
    let [m, n, k] = extents(recipe);
    let warpgroups = m / 64;
    let load = |name, what, tensor, x| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype: FACTOR,
        from: factor(),
        to: Place::Shared(tensor),
        engine: Engine::Tma { extents: [x, k] },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
    };
    Ok(Tiling {
        tile: [m, n, k],
        smem: tensors(recipe, Proxy::Async)?,
        copies: vec![load("TmaA", "copy of A", "A", m), load("TmaB", "copy of B", "B", n), store(recipe)],
        mmas: vec![TileMma {
            atom: format!("SM90_64x{n}x16_F32F16F16_SS"),
            atoms: atoms([warpgroups, 1])?,
            permutation: None,
            operands: MmaOperands::Descriptors,
        }],
        roles: vec![
            Role { task: Task::Consume, threads: 128 * warpgroups as u32 },
            Role { task: Task::Produce, threads: 32 },
        ],
        cluster: [1, 1, 1],
        schedule: Schedule::OneTileACta,
    })
}
