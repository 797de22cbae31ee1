//! A tile of D in registers, whose parts are stored while the next tile is computed.

use super::decide::Part;
use super::tilings::parts_of_tile;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout};
use crate::tiling::SmemTensor;

/// Registers of a thread besides accumulators and elements of D, where products are computed and a part of D is stored meanwhile.
pub(super) const BESIDES: u64 = 40;

/// Operations of an epilogue, and tensors that it reads, for which there are registers besides: nvcc 13.0 spills with gelu and a bias,
/// or two tensors.
const OPERATIONS: usize = 4;
const TENSORS: u64 = 1;

/// A thread's registers: the given number, else the most that there may be.
pub(super) fn most(given: Option<u32>) -> u64 {
    given.map_or(Arch::MAX_REGISTERS_PER_THREAD, u64::from)
}

/// Accumulators of a thread.
pub(super) fn accumulators(part: &Part) -> u64 {
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
fn keeps(part: &Part, staged: &SmemTensor, given: Option<u32>) -> bool {
    let [_, _, buffers] = staged.extents();
    part.recipe.epilogue.is_short(OPERATIONS)
        && part.recipe.epilogue.outputs() == 1
        && part.tensors() <= TENSORS
        && part.tiling.teams() == 1
        && part.tiling.splits() == 1
        && i64::from(parts_of_tile(&part.tiling, staged)) > buffers
        && accumulators(part) + registers(part) + BESIDES <= most(given)
}

/// Where a tile is kept: the buffers of D, and behind them the stages of A, as parts of D. Where nothing is multiplied any more, a
/// warpgroup writes what has no buffer where its own rows of A were. Only the buffers, where its rows of a part and those of A do not
/// take as many bytes.
pub(super) fn lent(part: &Part, given: Option<u32>) -> Option<SmemTensor> {
    let [staged, a] = [part.tiling.smem("D")?, part.tiling.smem("A")?];
    if !keeps(part, staged, given) {
        return None;
    }
    let ([rows, columns, buffers], [rows_a, columns_a, stages]) = (staged.extents(), a.extents());
    let bytes = |columns: i64, tensor: &SmemTensor| columns.unsigned_abs() * tensor.dtype.bytes().0;
    let alike = rows_a % rows.max(1) == 0 && bytes(columns_a, a) == bytes(columns, staged);
    let lent = if alike { rows_a / rows.max(1) * stages } else { 0 };
    let [row, column] = [staged.layout.mode(0)?, staged.layout.mode(1)?];
    let shape = IntTuple::tuple([rows, columns, buffers + lent].map(IntTuple::int)).ok()?;
    let stride = [row.stride().clone(), column.stride().clone(), IntTuple::int(rows * columns)];
    let layout = Layout::new(shape, IntTuple::tuple(stride).ok()?).ok()?;
    Some(SmemTensor { name: "DA", layout, ..staged.clone() })
}
