//! The tiling of the kernel that combines splits: warps share the splits of a row of O, and add up what each has left of it.

use super::VECTOR;
use crate::dtype::DType;
use crate::layout::LayoutError;
use crate::model::banks::WARP;
use crate::recipe::attention::Attention;
use crate::tiling::{CopyOp, Engine, Global, Guard, Order, Place, TileCopy, Tiling, flat};
use crate::units::Bytes;

/// Warps that share the splits of a row. With a warp a row, and its splits one after the other, 64 splits took as long as the keys.
pub(in super::super) const WARPS: i64 = 4;

/// A lane has up to 4 neighbours at a time, of as many as a row has for each lane.
pub(in super::super) fn combine(recipe: &Attention) -> Result<Tiling, LayoutError> {
    let (lanes, value) = (WARP as i64, i64::from(recipe.value()));
    let at_once = match value / lanes {
        ..=1 => 1,
        2..=3 => 2,
        _ => 4,
    };
    let columns = (value as u64).next_multiple_of((lanes * at_once) as u64) as i64;
    let of = |rows, apart, along| flat([(rows, apart), (along, 1)]);
    let copy = |name, what, dtype: DType, from, to| {
        let op = CopyOp::Universal(Bytes(dtype.bytes().0 * at_once as u64));
        let engine = Engine::Threads { op, threads: of(1, lanes, lanes)?, values: of(1, at_once, at_once)? };
        let copy = TileCopy::new([name, what], ([1, columns], dtype), [from, to], engine);
        Ok::<_, LayoutError>(TileCopy { guard: Guard::Predicate, ..copy })
    };
    // Splits leave rows of whole tiles, longer than those of O, if at all.
    let align = Bytes(4 * at_once as u64);
    let parts = Global { align, multiple: VECTOR, outer: 1, ..Global::matrix("Parts") };
    let copies = vec![
        copy("LoadParts", "load of the sums of a split", DType::F32, Place::Global(parts), Place::Threads)?,
        copy("StoreO", "store of O", recipe.dtype, Place::Threads, recipe.rows("O", 1))?,
    ];
    // Rows of O are numbered along heads first; the inner loop runs over all splits, always in the same order.
    let order = Order::numbered(&[("outputs", 1)], Some(("splits", 1)));
    Ok(Tiling::of_copies([1, columns], WARPS * lanes, copies, order))
}
