//! A tile of D in registers, whose parts are stored while the next tile is computed.

use super::decide::Part;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError};
use crate::tiling::SmemTensor;

/// Registers of a thread besides accumulators and elements of D, where products are computed and a part of D is stored meanwhile.
const BESIDES: u64 = 40;

/// Operations of an epilogue, and tensors that it reads, for which there are registers besides: nvcc 13.0 spills with gelu or three
/// tensors.
const OPERATIONS: usize = 4;
const TENSORS: usize = 1;

/// Parts of a tile that a team stores, and those of which it has buffers.
fn parts(part: &Part, staged: &SmemTensor) -> [u64; 2] {
    let ([m, n, _], [rows, columns, buffers]) = (part.tiling.tile, staged.extents());
    let of_tile = m / rows.max(1) * (n / columns.max(1) / i64::from(part.tiling.splits()).max(1));
    [of_tile, buffers / i64::from(part.tiling.teams()).max(1)].map(i64::unsigned_abs)
}

/// Accumulators of a thread.
fn accumulators(part: &Part) -> u64 {
    let [m, n, _] = part.tiling.tile.map(i64::unsigned_abs);
    m * n / u64::from(part.tiling.threads_of_tile()).max(1)
}

/// Registers that a thread's elements of D take.
pub(super) fn registers(part: &Part) -> u64 {
    accumulators(part) * part.recipe.out.bytes().0 / DType::F32.bytes().0
}

/// Whether a tile's elements of D wait beside the next tile's accumulators, in the registers that a thread is given. Where
/// tiles are computed by turns, another one is computed anyway while this one is stored, and where there is a buffer for each part
/// storing waits for none.
pub(super) fn keeps(part: &Part, given: Option<u32>) -> bool {
    let Some(staged) = part.tiling.smem("D") else { return false };
    let [of_tile, buffers] = parts(part, staged);
    let most = given.map_or(Arch::MAX_REGISTERS_PER_THREAD, u64::from);
    let reads = part.operands().len().saturating_sub(3);
    part.recipe.epilogue.is_short(OPERATIONS)
        && reads <= TENSORS
        && part.tiling.teams() == 1
        && part.tiling.splits() == 1
        && of_tile > buffers
        && accumulators(part) + registers(part) + BESIDES <= most
}

/// The buffers of D, and behind them the stages of A, as parts of D: where nothing is multiplied any more, a warpgroup writes what has no
/// buffer where its own rows of A were. Only the buffers, where its rows of a part and those of A do not take as many bytes.
pub(super) fn with_lent(part: &Part) -> Result<Option<SmemTensor>, LayoutError> {
    let [Some(staged), Some(a)] = ["D", "A"].map(|name| part.tiling.smem(name)) else { return Ok(None) };
    let ([rows, columns, buffers], [rows_a, columns_a, stages]) = (staged.extents(), a.extents());
    let bytes = |columns: i64, tensor: &SmemTensor| columns.unsigned_abs() * tensor.dtype.bytes().0;
    let alike = rows_a % rows.max(1) == 0 && bytes(columns_a, a) == bytes(columns, staged);
    let lent = if alike { rows_a / rows.max(1) * stages } else { 0 };
    let [Some(row), Some(column)] = [0, 1].map(|mode| staged.layout.mode(mode)) else { return Ok(None) };
    let shape = IntTuple::tuple([IntTuple::int(rows), IntTuple::int(columns), IntTuple::int(buffers + lent)])?;
    let stride = IntTuple::tuple([row.stride().clone(), column.stride().clone(), IntTuple::int(rows * columns)])?;
    Ok(Some(SmemTensor { name: "DA", layout: Layout::new(shape, stride)?, ..staged.clone() }))
}
