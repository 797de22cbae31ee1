//! The tiling of the text for sm_90a: TMA fills Q and the rings of K and V, warpgroups multiply 64 queries each by WGMMA.

use super::{ATOM, VECTOR, in_atoms, pair, reduces, rings, stores};
use crate::arch::Arch;
use crate::layout::{IntTuple, Layout, LayoutError, make_layout};
use crate::recipe::attention::{Attention, Mask, Own};
use crate::tiling::{
    Completion, CopyOp, Engine, Factor, Guard, Lives, Place, Proxy, Role, SmemTensor, Task, TileCopy, TileMma, Tiling,
    piece,
};

/// Registers of consumer and producer threads, with two and three warpgroups that multiply. A single one shares none. The producer also
/// looks for sequences, windows and steps that a function empties: with 24 registers nvcc 13.0 spilled 24 bytes.
fn registers(warpgroups: i64, looks: bool) -> [Option<u32>; 2] {
    match (warpgroups, looks) {
        (2, false) => [Some(240), Some(24)],
        (2, true) => [Some(232), Some(40)],
        (3, false) => [Some(160), Some(32)],
        (3, true) => [Some(152), Some(56)],
        _ => [None, None],
    }
}

/// O has memory of its own where there is room, and Q of the next tile arrives while it is stored. Else it lies in the memory of Q: a
/// warpgroup stages the rows that it alone has read.
pub(in super::super) fn sm90a(recipe: &Attention, own: &Own) -> Result<Tiling, LayoutError> {
    let (Own { tile: [m, n], stages, .. }, [d, dv], dtype) = (*own, recipe.padded(), recipe.dtype);
    let (warpgroups, factors, size) = (m / 64, in_atoms(dtype), dtype.bytes().0 as i64);
    let load = |name, what, tensor, tile: [i64; 2], along: usize| {
        let mut extents = tile;
        extents[along] = piece(tile[along], size);
        let mut from = recipe.rows(tensor, along);
        if let (Place::Global(global), Some(page), true) = (&mut from, recipe.page, recipe.paged && tensor != "Q") {
            extents[1 - along] = recipe.box_of(n).unwrap_or(n);
            global.page = page.into();
        }
        let engine = Engine::Tma { extents, sharers: 1, rounds: false };
        let copy = TileCopy::new([name, what], (tile, dtype), [from, Place::Shared(tensor)], engine);
        TileCopy { guard: Guard::TensorMap, completes: Completion::Mbarrier, ..copy }
    };
    let mma = |name, tiles, tile: [i64; 3], factors_from, from| {
        let atoms = make_layout(&IntTuple::tuple([warpgroups, 1, 1].map(IntTuple::int))?)?;
        let atom = format!("SM90_64x{}x{ATOM}_F32{factors}_{from}", tile[1]);
        Ok::<_, LayoutError>(TileMma::new((name, tiles), tile, (atom, atoms), factors_from))
    };
    let tensor = |names, extents, along, lives, proxy| {
        SmemTensor::in_pieces(names, dtype, extents, along, proxy).map(|tensor| SmemTensor { lives, ..tensor })
    };
    // A thread has some rows below each other, so that its warpgroup stores its own rows.
    let lanes = 1 << (dv / VECTOR).trailing_zeros().min(5);
    let rows = 128 / lanes;
    let threads = Layout::new(pair([rows * warpgroups, lanes])?, pair([lanes, 1])?)?;
    let values = Layout::new(pair([64 / rows, VECTOR])?, pair([VECTOR, 1])?)?;
    let [stage, store] = stores(recipe, [m, dv], CopyOp::StMatrix, [threads, values]);
    let q = tensor(["Q", "(BM,D,1)"], [m, d, 1], 1, Lives::Mainloop, Proxy::Async)?;
    let o = tensor(["O", "(BM,DV,1)"], [m, dv, 1], 1, Lives::Epilogue, Proxy::Generic)?;
    let looks = recipe.varlen || recipe.paged || recipe.mask == Mask::Window || recipe.empties();
    let [consumer, producer] = registers(warpgroups, looks);
    let role = |task, threads: i64, registers| Role { task, threads: threads as u32, registers };
    let weights_and_values = [Factor::Accumulators("Scores"), Factor::Shared("V")];
    let mut tiling = Tiling {
        tile: [m, dv, n],
        smem: vec![
            tensor(["K", "(BN,D,STAGES)"], [n, d, stages], 1, Lives::Kernel, Proxy::Async)?,
            tensor(["V", "(DV,BN,STAGES)"], [dv, n, stages], 0, Lives::Kernel, Proxy::Async)?,
            SmemTensor { align: q.align, ..o },
            q,
        ],
        pipelines: rings(stages, Completion::Mbarrier),
        copies: vec![
            load("TmaQ", "copy of Q", "Q", [m, d], 1),
            load("TmaK", "copy of K", "K", [n, d], 1),
            load("TmaV", "copy of V", "V", [dv, n], 0),
            stage,
            store,
        ],
        mmas: vec![
            mma("Scores", ["TileQ", "TileK", "TileS"], [m, n, d], ["Q", "K"].map(Factor::Shared), "SS")?,
            mma("Output", ["TileP", "TileV", "TileO"], [m, dv, n], weights_and_values, "RS")?,
        ],
        reduces: reduces(),
        roles: vec![role(Task::Consume, 128 * warpgroups, consumer), role(Task::Produce, 128, producer)],
        cluster: [1; 3],
        order: recipe.order(own),
    };
    for lives in [Lives::Kernel, Lives::Epilogue] {
        tiling.smem.iter_mut().filter(|tensor| tensor.name == "O").for_each(|o| o.lives = lives);
        if tiling.smem_bytes()? <= Arch::Sm90a.smem_per_block() {
            break;
        }
    }
    Ok(tiling)
}
