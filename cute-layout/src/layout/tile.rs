//! Tiles of a tensor for a block, and elements of a tile for a thread: `local_tile`, `local_partition`.

use super::core::Layout;
use super::divide::{select, zipped_divide};
use super::error::{Class, LayoutError, mul};
use super::int_tuple::{Coord, IntTuple};
use super::shape::product_each;
use super::sliced::slice_and_offset;
use super::tiler::{Tiler, TilerModes};

/// The tile of a tensor at a coordinate of tiles (CuTe's `local_tile(tensor, tiler, coord)`): the layout of the tile, and
/// the offset of its first element. `_` in the coordinate keeps a mode of tiles.
///
/// *Law.* `zipped_divide(layout, tiler)` at `(i, coord)` is `offset + result(i)`, with `_` filled by the result's own modes.
///
/// *Source.* `cute/tensor_impl.hpp`, `local_tile`.
///
/// # Errors
/// The division is refused, or the coordinate does not fit the tiles.
///
/// ```
/// use cute_layout::layout::{IntTuple, Layout, local_tile};
/// let matrix: Layout = "(128,64):(64,1)".parse()?;
/// let (tile, offset) = local_tile(&matrix, &IntTuple::from((32, 16)).into(), &"(1,_)".parse()?)?;
/// assert_eq!(tile.to_string(), "(32,16,4):(64,1,16)");
/// assert_eq!(offset.as_int(), Some(2048));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn local_tile(layout: &Layout, tiler: &Tiler, coord: &Coord) -> Result<(Layout, IntTuple), LayoutError> {
    inner_partition(layout, tiler, coord)
        .map_err(|e| e.within("local_tile", &[("layout", layout), ("tiler", tiler), ("coord", coord)]))
}

/// [`local_tile`] with a Step: an entry `_` of the step takes the mode away from the tiler and the coordinate, which are
/// written for all of M, N and K and here serve a tensor of two of them (CuTe's `local_tile(tensor, tiler, coord, step)`).
///
/// *Law.* `local_tile` with the entries of tiler and coordinate that the step does not mark with `_`.
///
/// *Source.* `cute/tensor_impl.hpp`, `local_tile` with a projection.
///
/// # Errors
/// As for [`local_tile`]; the step has another number of entries than the tiler or the coordinate.
///
/// ```
/// use cute_layout::layout::{IntTuple, Layout, local_tile_step};
/// let a: Layout = "(256,64):(64,1)".parse()?;                       // M x K
/// let tiler = IntTuple::from((128, 128, 8)).into();
/// let (tile, offset) = local_tile_step(&a, &tiler, &"(1,0,_)".parse()?, &"(1,_,1)".parse()?)?;
/// assert_eq!(tile.to_string(), "(128,8,8):(64,1,8)");
/// assert_eq!(offset.as_int(), Some(128 * 64));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn local_tile_step(
    layout: &Layout,
    tiler: &Tiler,
    coord: &Coord,
    step: &IntTuple,
) -> Result<(Layout, IntTuple), LayoutError> {
    let by_mode = matches!(tiler.modes(), TilerModes::ByMode(entries) if entries == step.rank());
    if !by_mode || step.is_leaf() || coord.rank() != step.rank() {
        return Err(LayoutError::new("local_tile", Class::MismatchedRanks)
            .of(&[("tiler", tiler), ("coord", coord), ("step", step)])
            .found(format!("a coordinate of rank {} and a step of rank {}", coord.rank(), step.rank()))
            .required("one entry of tiler, coordinate and step for each mode"));
    }
    let kept = kept(step);
    let taken = tiler.entries().enumerate().filter(|(i, _)| kept.contains(i));
    let tiler = Tiler::Tuple(taken.map(|(_, entry)| entry).collect());
    let coord = IntTuple::tuple(kept.iter().filter_map(|&i| coord.mode(i)))?;
    local_tile(layout, &tiler, &coord)
}

/// The modes that a step does not mark with `_`.
fn kept(step: &IntTuple) -> Vec<usize> {
    step.modes().enumerate().filter(|(_, entry)| !entry.has_underscore()).map(|(i, _)| i).collect()
}

/// The tile at a coordinate of the rest (CuTe's `inner_partition`).
///
/// *Law.* `offset + result(i) == zipped_divide(layout, tiler)((i, coord))`.
///
/// *Source.* `cute/tensor_impl.hpp`, `inner_partition`.
///
/// # Errors
/// As for [`local_tile`].
///
/// ```
/// use cute_layout::layout::{IntTuple, inner_partition};
/// let (tile, offset) = inner_partition(&"(8,8):(8,1)".parse()?, &IntTuple::from((4, 4)).into(), &(1, 0).into())?;
/// assert_eq!((tile.to_string(), offset.to_string()), ("(4,4):(8,1)".into(), "32".into()));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn inner_partition(layout: &Layout, tiler: &Tiler, coord: &Coord) -> Result<(Layout, IntTuple), LayoutError> {
    partition(layout, tiler, coord, 1)
}

/// The elements of all tiles at a coordinate inside the tile (CuTe's `outer_partition`).
///
/// *Law.* `offset + result(j) == zipped_divide(layout, tiler)((coord, j))`.
///
/// *Source.* `cute/tensor_impl.hpp`, `outer_partition`.
///
/// # Errors
/// As for [`local_tile`].
///
/// ```
/// use cute_layout::layout::{IntTuple, outer_partition};
/// let (own, offset) = outer_partition(&"(8,8):(8,1)".parse()?, &IntTuple::from((4, 4)).into(), &(1, 2).into())?;
/// assert_eq!((own.to_string(), offset.to_string()), ("(2,2):(32,4)".into(), "10".into()));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn outer_partition(layout: &Layout, tiler: &Tiler, coord: &Coord) -> Result<(Layout, IntTuple), LayoutError> {
    partition(layout, tiler, coord, 0)
}

/// The division into tiles and rests. Mode `at` is taken at a coordinate, the other mode is kept.
fn partition(layout: &Layout, tiler: &Tiler, coord: &Coord, at: usize) -> Result<(Layout, IntTuple), LayoutError> {
    let tiled = zipped_divide(layout, tiler)?;
    let modes = tiled.modes().enumerate().map(|(i, mode)| {
        if i == at {
            return padded(coord, mode.rank());
        }
        IntTuple::tuple(std::iter::repeat_n(IntTuple::any(), mode.rank())).map(unwrapped)
    });
    slice_and_offset(&IntTuple::tuple(modes.collect::<Result<Vec<_>, _>>()?)?, &tiled)
}

/// CuTe's `repeat<1>(_)` is `_` and not `(_)`.
fn unwrapped(tuple: IntTuple) -> IntTuple {
    if tuple.rank() == 1 { tuple.mode(0).unwrap_or(tuple) } else { tuple }
}

/// The coordinate with `_` for the modes that it leaves out (CuTe's `append<R>(coord, _)`).
fn padded(coord: &Coord, rank: usize) -> Result<Coord, LayoutError> {
    if coord.is_leaf() && (rank == 1 || !coord.has_underscore()) || coord.rank() >= rank {
        return Ok(coord.clone());
    }
    IntTuple::tuple(coord.modes().chain(std::iter::repeat_n(IntTuple::any(), rank - coord.rank())))
}

/// The elements of a tile that one thread of a thread layout owns (CuTe's `local_partition(tensor, threads, index)`).
///
/// *Law.* Over all thread indices the partitions cover the tile, each element once, where the thread layout is compact and
/// divides the tile.
///
/// *Source.* `cute/tensor_impl.hpp`, `local_partition`.
///
/// # Errors
/// The division is refused; the index is not that of a thread.
///
/// ```
/// use cute_layout::layout::{Layout, local_partition};
/// let tile: Layout = "(128,8):(1,128)".parse()?;
/// let threads: Layout = "(32,8):(1,32)".parse()?;
/// let (own, offset) = local_partition(&tile, &threads, 33)?;
/// assert_eq!(own.to_string(), "(4,1):(32,0)");
/// assert_eq!(offset.as_int(), Some(1 + 128));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn local_partition(layout: &Layout, threads: &Layout, index: i64) -> Result<(Layout, IntTuple), LayoutError> {
    let context =
        |e: LayoutError| e.within("local_partition", &[("layout", layout), ("threads", threads), ("index", &index)]);
    let shape = product_each(threads.shape()).map_err(context)?;
    let coord = thread_coord(threads, index).map_err(context)?;
    outer_partition(layout, &Tiler::Shape(shape), &coord).map_err(context)
}

/// [`local_partition`] with a Step: an entry `_` of the step takes the mode away from the thread layout, so that the
/// threads of that mode share elements (CuTe's `local_partition(tensor, threads, index, step)`).
///
/// *Law.* `local_partition` by the modes of the thread layout that the step does not mark with `_`.
///
/// *Source.* `cute/tensor_impl.hpp`, `local_partition` with a projection.
///
/// # Errors
/// As for [`local_partition`]; the step has another rank than the thread layout.
///
/// ```
/// use cute_layout::layout::{Layout, local_partition_step};
/// let tile: Layout = "(128,8):(1,128)".parse()?;                    // sA: M x K
/// let threads: Layout = "(16,16):(1,16)".parse()?;                  // M x N
/// let (own, _) = local_partition_step(&tile, &threads, 17, &"(1,_)".parse()?)?;
/// assert_eq!(own.to_string(), "(8,8):(16,128)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn local_partition_step(
    layout: &Layout,
    threads: &Layout,
    index: i64,
    step: &IntTuple,
) -> Result<(Layout, IntTuple), LayoutError> {
    if step.is_leaf() || step.rank() != threads.rank() {
        return Err(LayoutError::new("local_partition", Class::MismatchedRanks)
            .of(&[("threads", threads), ("step", step)])
            .found(format!("rank {} and rank {}", threads.rank(), step.rank()))
            .required("one entry of the step for each mode of the thread layout"));
    }
    local_partition(layout, &select(threads, &kept(step))?, index)
}

/// The coordinate, in the shape of the thread layout's modes, of the thread with an index: CuTe's `get_flat_coord`, which
/// takes `(index / stride) % extent` at each leaf.
fn thread_coord(threads: &Layout, index: i64) -> Result<Coord, LayoutError> {
    threads.require_ints("local_partition")?;
    if index < 0 {
        return Err(LayoutError::new("local_partition", Class::Argument)
            .found(format!("thread {index}"))
            .required("an index that is not negative"));
    }
    let mut coord = Vec::new();
    for mode in threads.modes() {
        let (mut digit, mut weight) = (0i64, 1i64);
        for (s, d) in mode.pairs() {
            if s.value > 1 {
                if d.value < 1 {
                    return Err(LayoutError::on("local_partition", Class::StrideKind, &[("threads", threads)])
                        .found(format!("stride {}", d.value))
                        .required("positive strides")
                        .because("the thread's coordinate is its index divided by the stride"));
                }
                digit = super::error::add(digit, mul((index / d.value) % s.value, weight)?)?;
            }
            weight = mul(weight, s.value)?;
        }
        coord.push(IntTuple::int(digit));
    }
    IntTuple::tuple(coord)
}
