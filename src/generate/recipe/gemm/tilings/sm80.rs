//! The tiling of the text for sm_80: every warp copies and multiplies.

use super::{ALIGN, TILES, atoms, extents, mainloop, pair, tensors};
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Tiler};
use crate::recipe::gemm::text_settings::TextSettings;
use crate::recipe::gemm::{Factors, Gemm, raster};
use crate::tiling::{
    Completion, CopyOp, Engine, Factor, Guard, Lives, Place, Proxy, Role, SmemTensor, Task, TileCopy, TileMma, Tiling,
    piece,
};
use crate::units::Bytes;

/// `cp.async`, `ldmatrix`, `mma.sync`: every warp copies and computes.
pub(in super::super) fn sm80(recipe: &Gemm, own: &TextSettings) -> Result<Tiling, LayoutError> {
    let [m, n, k] = extents(own.tile);
    // Up to 128 accumulators a thread.
    let warps = match m * n {
        ..=16384 => [2, 2],
        _ if m > n => [4, 2],
        _ => [2, 4],
    };
    let threads = 32 * warps[0] * warps[1];
    // Two vectors of 16 bytes.
    let (of_k, sums, [of_a, of_b]) = (2 * recipe.dtype.vector(), recipe.dtype.sums_in_atoms(), recipe.factors());
    let ([in_a, in_b], since) = ([of_a, of_b].map(Factors::in_atoms), if of_a.is_narrow() { 89 } else { 80 });
    let mma = TileMma {
        name: "Mma",
        tiles: TILES,
        tile: [m, n, k],
        atom: format!("SM{since}_16x8x{of_k}_{sums}{in_a}{in_b}{sums}_TN"),
        atoms: atoms(warps)?,
        // Two atoms along N, so that ldmatrix.x4 fills whole fragments of B.
        permutation: Some(Tiler::Tuple(
            [16 * warps[0], 16 * warps[1], of_k].map(|e| Tiler::Shape(IntTuple::int(e))).into(),
        )),
        a: Factor::Fragments,
        b: Factor::Fragments,
        promotion: None,
    };
    let load = |[name, what, tensor]: [&'static str; 3], x, k_major, dtype: DType| {
        let [lanes, vector] = spread([x, k], k_major, threads, recipe.dtype.vector())?;
        Ok::<_, LayoutError>(TileCopy {
            name,
            what,
            tile: [x, k],
            dtype,
            from: Place::Global(recipe.factor(tensor, k_major)),
            to: Place::Shared(tensor),
            engine: Engine::Threads { op: CopyOp::CpAsync(ALIGN), threads: lanes, values: vector },
            guard: Guard::ZeroFill,
            completes: Completion::CpAsyncGroup,
            split: None,
        })
    };
    let fragment = |[name, what, tensor]: [&'static str; 3], x, operand, k_major, dtype: DType| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype,
        from: Place::Shared(tensor),
        to: Place::Fragments("Mma", operand),
        engine: Engine::Fragments(if k_major { CopyOp::LdMatrix } else { CopyOp::LdMatrixT }),
        guard: Guard::None,
        completes: Completion::Program,
        split: None,
    };
    let [a, b] = recipe.k_major();
    let (staged, [stage, out]) = by_parts(recipe, [16 * warps[0], n / recipe.sums() as i64], threads)?;
    let mut smem = tensors(recipe, own, Proxy::Generic)?;
    smem.iter_mut().for_each(|tensor| tensor.lives = Lives::Mainloop);
    smem.push(staged);
    Ok(Tiling {
        tile: [m, n, k],
        smem,
        pipelines: vec![mainloop(own, Completion::CpAsyncGroup)],
        copies: vec![
            load(["CopyA", "copy of A", "A"], m, a, of_a.dtype())?,
            load(["CopyB", "copy of B", "B"], n, b, of_b.dtype())?,
            fragment(["LdsmA", "ldmatrix of A", "A"], m, Operand::A, a, of_a.dtype()),
            fragment(["LdsmB", "ldmatrix of B", "B"], n, Operand::B, b, of_b.dtype()),
            stage,
            out,
        ],
        mmas: vec![mma],
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: threads as u32, registers: None }],
        cluster: [1, 1, 1],
        order: raster::order(own, recipe, 1),
    })
}

/// At most `threads` threads, neighbours along the contiguous mode with 16 bytes each: (rows, columns) to thread, and
/// to value.
fn spread([rows, k]: [i64; 2], k_major: bool, threads: i64, vector: i64) -> Result<[Layout; 2], LayoutError> {
    let power = |extent: i64| 1_i64 << extent.trailing_zeros();
    let values = if k_major { [1, vector] } else { [vector, 1] };
    let (shape, stride) = if k_major {
        let along_k = k / vector;
        let others = power(rows).min((threads / along_k).max(1));
        ([others, along_k], [along_k, 1])
    } else {
        let along_k = k.min((threads * vector / piece(rows, 16 / vector)).max(1));
        let others = power(rows / vector).min(threads / along_k);
        ([others, along_k], [1, others])
    };
    let step = if k_major { [0, 1] } else { [1, 0] };
    Ok([Layout::new(pair(shape)?, pair(stride)?)?, Layout::new(pair(values)?, pair(step)?)?])
}

/// A slice of D: the rows of an atom of each warp. Accumulators go to shared memory two neighbours at a time. From
/// there they go to D in vectors of 16 bytes where these are aligned and whole, so that whole sectors are written. Any
/// leading dimension is allowed.
fn by_parts(recipe: &Gemm, part: [i64; 2], threads: i64) -> Result<(SmemTensor, [TileCopy; 2]), LayoutError> {
    let ([rows, columns], size) = (part, recipe.out.bytes().0 as i64);
    let (int, outputs) = (IntTuple::int, recipe.epilogue.outputs() as i64);
    // A row begins behind the banks of the four pairs that an atom has of the row above, and at a multiple of 16 bytes.
    let apart = columns + (16 / size).max(8);
    let shape = IntTuple::tuple([rows, columns, outputs].map(int))?;
    let layout = Layout::new(shape, IntTuple::tuple([apart, 1, rows * apart].map(int))?)?;
    let plain = SmemTensor::plain(["D", "(PART_M,BN,OUTPUTS)"], recipe.out, layout, Bytes(16));
    let staged = SmemTensor { lives: Lives::Epilogue, ..plain };
    let (from, op) = recipe.handed();
    let stage = TileCopy {
        name: "StageD",
        what: "staging of D",
        tile: part,
        dtype: recipe.out,
        from,
        to: Place::Shared("D"),
        engine: Engine::Fragments(op),
        guard: Guard::None,
        completes: Completion::Program,
        split: None,
    };
    let vector = 16 / size;
    let along = 1_i64 << (columns / vector).trailing_zeros();
    let others = (threads / along).min(rows).max(1);
    let lanes = Layout::new(pair([others, along])?, pair([along, 1])?)?;
    let values = Layout::new(pair([1, vector])?, pair([0, 1])?)?;
    let store = TileCopy {
        name: "CopyD",
        what: "store of D",
        from: Place::Shared("D"),
        to: recipe.result(recipe.out.bytes()),
        engine: Engine::Threads { op: CopyOp::Universal(Bytes(16)), threads: lanes, values },
        guard: Guard::Elements,
        ..stage.clone()
    };
    Ok((staged, [stage, store]))
}
