//! A tile of D that is kept in registers. Its slices are stored while the next tile is multiplied.

use super::budget::Needs;
use super::tilings::parts_of_tile;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout};
use crate::plan::Groups;
use crate::tiling::SmemTensor;

/// Registers of a thread besides accumulators and elements of D, for products and the store of a slice at the same
/// time.
pub(super) const BESIDES: u64 = 40;

/// The most operations of an epilogue, and of tensors that it reads, that leave enough registers: nvcc 13.0 spills with
/// gelu and a bias, or with two tensors.
const OPERATIONS: usize = 4;
const TENSORS: u64 = 1;

/// A thread's registers: the given number, else the most that there may be.
pub(super) fn most(given: Option<u32>) -> u64 {
    given.map_or(Arch::MAX_REGISTERS_PER_THREAD, u64::from)
}

/// Registers that a thread's elements of D take.
pub(super) fn registers(needs: &Needs<'_>) -> u64 {
    needs.accumulators() * needs.recipe.out.bytes().0 / DType::F32.bytes().0
}

/// Whether a tile's elements of D fit beside the next tile's accumulators, in the registers of a thread. Ping-pong does
/// not need it: another tile is multiplied anyway while this one is stored. With a buffer for each slice, stores do not
/// wait.
fn keeps(needs: &Needs<'_>, staged: &SmemTensor, given: Option<u32>) -> bool {
    let [_, _, buffers] = staged.extents();
    needs.recipe.groups == Groups::None
        && !needs.recipe.scatter
        && !needs.recipe.pairs
        && needs.recipe.epilogue.is_short(OPERATIONS)
        && needs.recipe.epilogue.outputs() == 1
        && needs.tensors() <= TENSORS
        && needs.tiling.teams() == 1
        && needs.tiling.splits() == 1
        // What a thread copies at a time is whole registers.
        && needs.recipe.out.bytes().0 > 1
        && i64::from(parts_of_tile(needs.tiling, staged)) > buffers
        && needs.held() + registers(needs) + BESIDES <= most(given)
}

/// For a kept tile: the buffers of D, followed by the stages of A as slices of D. After the mainloop, a warpgroup
/// writes slices without a buffer to the stages of its own rows of A. Only the buffers, if its rows of a slice and of A
/// differ in bytes.
pub(super) fn lent(needs: &Needs<'_>, given: Option<u32>) -> Option<SmemTensor> {
    let [staged, a] = [needs.tiling.smem("D")?, needs.tiling.smem("A")?];
    if !keeps(needs, staged, given) {
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
