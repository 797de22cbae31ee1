//! Division: a layout cut into tiles and the rest.

use super::coalesce::coalesce;
use super::complement::complement_in_layout;
use super::composition::{composition, too_many};
use super::construct::make_layout;
use super::core::Layout;
use super::error::{Class, LayoutError};
use super::tiler::{Tiler, TilerModes};

/// Each mode becomes `(tile, rest)` (CuTe's `logical_divide`). A layout divides the whole; a shape or a tuple of tilers
/// divides mode by mode, and keeps the modes past it; `_` keeps a mode.
///
/// *Law.* For a layout `T`: `result(i) == layout((T, complement(T, size))(i))`. Where T does not divide the layout, the
/// result is padded past its end, as in CuTe.
///
/// *Source.* `cute/layout.hpp`, `logical_divide`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298.
///
/// # Errors
/// The complement or the composition is refused; the tiler has too many modes.
///
/// ```
/// use cute_layout::layout::{Layout, logical_divide};
/// let layout: Layout = "(4,2,3):(2,1,8)".parse()?;
/// let result = logical_divide(&layout, &"4:2".parse::<Layout>()?.into())?;
/// assert_eq!(result.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn logical_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    by_tiler("logical_divide", layout, tiler, &|layout, tile| {
        complement_in_layout(tile, &coalesce(layout)?)
            .and_then(|rest| composition(layout, &Layout::from_modes([tile.clone(), rest])?))
            .map_err(|e| e.within("logical_divide", &[("layout", layout), ("tiler", tile)]))
    })
}

/// Applies an operation to a layout and what tiles it: the whole, or mode by mode; modes past the tiler are kept.
pub(super) fn by_tiler(
    op: &'static str,
    layout: &Layout,
    tiler: &Tiler,
    apply: &dyn Fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
) -> Result<Layout, LayoutError> {
    match tiler.modes() {
        TilerModes::Keep => return Ok(layout.clone()),
        TilerModes::Extent(extent) => return apply(layout, &make_layout(extent)?),
        TilerModes::Terminal(tile) => return apply(layout, tile),
        TilerModes::ByMode(entries) if entries > layout.rank() => return Err(too_many(op, layout, tiler)),
        TilerModes::ByMode(_) => {}
    }
    let mut entries = tiler.entries();
    Layout::of_modes(layout.modes().map(|mode| match entries.next() {
        Some(entry) => by_tiler(op, &mode, &entry, apply),
        None => Ok(mode),
    }))
}

/// Tiles and rests gathered: `((tile, tile, ..), (rest, rest, .., kept modes))` (CuTe's `zipped_divide`).
///
/// *Law.* The modes of [`logical_divide`], regrouped.
///
/// *Source.* `cute/layout.hpp`, `zipped_divide`.
///
/// # Errors
/// As for [`logical_divide`]; and a `_` in the tiler needs a mode of rank 2, which is then taken for a tile and its rest,
/// as in CuTe.
///
/// ```
/// use cute_layout::layout::{IntTuple, Layout, zipped_divide};
/// let layout: Layout = "(2048,2048):(2048,1)".parse()?;
/// let result = zipped_divide(&layout, &IntTuple::from((1, 8)).into())?;
/// assert_eq!(result.to_string(), "((1,8),(2048,256)):((0,1),(2048,8))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn zipped_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    tile_unzip(&logical_divide(layout, tiler)?, tiler)
        .map_err(|e| e.within("zipped_divide", &[("layout", layout), ("tiler", tiler)]))
}

/// Like [`zipped_divide`], with the rests as modes of their own: `((tile, ..), rest, rest, ..)` (CuTe's `tiled_divide`).
///
/// *Law.* `result((t, r..)) == zipped_divide(layout, tiler)((t, r))`: the rest's modes stand at the top.
///
/// *Source.* `cute/layout.hpp`, `tiled_divide`.
///
/// # Errors
/// As for [`zipped_divide`].
///
/// ```
/// use cute_layout::layout::{IntTuple, Layout, tiled_divide};
/// let result = tiled_divide(&"(8,6):(6,1)".parse::<Layout>()?, &IntTuple::from((4, 2)).into())?;
/// assert_eq!(result.to_string(), "((4,2),2,3):((6,1),24,2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn tiled_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    spread(&zipped_divide(layout, tiler)?, false)
}

/// Like [`zipped_divide`], flat at the top: `(tile, .., rest, ..)` (CuTe's `flat_divide`).
///
/// *Law.* `result(t.., r..) == zipped_divide(layout, tiler)((t, r))`: all modes stand at the top.
///
/// *Source.* `cute/layout.hpp`, `flat_divide`.
///
/// # Errors
/// As for [`zipped_divide`].
///
/// ```
/// use cute_layout::layout::{Tiler, flat_divide};
/// let result = flat_divide(&"(9,(4,8)):(59,(13,1))".parse()?, &"[3:3,(2,4):(1,8)]".parse::<Tiler>()?)?;
/// assert_eq!(result.to_string(), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn flat_divide(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    spread(&zipped_divide(layout, tiler)?, true)
}

/// Unpacks the second mode of a zipped result, and the first one as well where asked.
pub(super) fn spread(zipped: &Layout, both: bool) -> Result<Layout, LayoutError> {
    let mut out = Layout::empty();
    for (i, mode) in zipped.modes().enumerate() {
        if (i == 1 || both) && mode.rank() > 1 {
            mode.modes().for_each(|mode| out.push_mode(&mode));
        } else {
            out.push_mode(&mode);
        }
    }
    out.wrap_modes()?;
    Ok(out)
}

/// Regroups `((a, A), (b, B), c)` to `((a, b), (A, B, c))`, guided by the tiler (CuTe's `tile_unzip`).
pub(super) fn tile_unzip(layout: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    let (tiles, rests) = unzip(layout, tiler)?;
    Layout::from_modes([tiles, rests])
}

fn unzip(layout: &Layout, tiler: &Tiler) -> Result<(Layout, Layout), LayoutError> {
    let TilerModes::ByMode(_) = tiler.modes() else {
        let mut modes = layout.modes();
        return match (modes.next(), modes.next(), modes.next()) {
            (Some(tile), Some(rest), None) => Ok((tile, rest)),
            _ => Err(LayoutError::new("zipped_divide", Class::MismatchedRanks)
                .found(format!("mode {layout} of rank {} for `{tiler}`", layout.rank()))
                .required("a mode of rank 2: a tile and its rest")
                .because("`_` keeps a mode as it is, and there is nothing to tell its tile from its rest")
                .help("give the mode's extent instead of `_`: the whole mode is the tile then")
                .cute("refuses: Mismatched ranks")),
        };
    };
    let mut entries = tiler.entries();
    let (mut tiles, mut rests) = (Layout::empty(), Layout::empty());
    for mode in layout.modes() {
        match entries.next() {
            Some(entry) => {
                let (tile, rest) = unzip(&mode, &entry)?;
                tiles.push_mode(&tile);
                rests.push_mode(&rest);
            }
            None => rests.push_mode(&mode),
        }
    }
    tiles.wrap_modes()?;
    rests.wrap_modes()?;
    Ok((tiles, rests))
}

/// Transposes a layout of layouts: `((a, b), (x, y))` to `((a, x), (b, y))` (CuTe's `zip`).
///
/// *Law.* `zip(L)((x, y)) == L(transposed)`: mode `(i, j)` of the result is mode `(j, i)` of the layout.
///
/// *Source.* `cute/layout.hpp`, `zip`.
///
/// # Errors
/// The modes do not have the same rank.
///
/// ```
/// use cute_layout::layout::{Layout, zip};
/// assert_eq!(zip(&"((2,3),(4,5)):((1,2),(6,24))".parse()?)?.to_string(), "((2,4),(3,5)):((1,6),(2,24))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn zip(layout: &Layout) -> Result<Layout, LayoutError> {
    if layout.shape().is_leaf() {
        return Ok(layout.clone());
    }
    let Some(first) = layout.mode(0).filter(|first| !first.shape().is_leaf()) else {
        return Layout::from_modes([layout.clone()]);
    };
    let rank = first.rank();
    if let Some(other) = layout.modes().find(|mode| mode.shape().is_leaf() || mode.rank() != rank) {
        return Err(LayoutError::on("zip", Class::MismatchedRanks, &[("layout", layout)])
            .found(format!("{first} beside {other}"))
            .required(format!("modes that all have rank {rank}")));
    }
    Layout::of_modes((0..rank).map(|j| Layout::from_modes(layout.modes().filter_map(|mode| mode.mode(j)))))
}

/// The modes with these indices, in this order (CuTe's `select`).
///
/// *Law.* Mode `k` of the result is mode `indices[k]` of the layout.
///
/// *Source.* `cute/layout.hpp`, `select`.
///
/// # Errors
/// An index is past the rank, or there is none.
///
/// ```
/// use cute_layout::layout::{Layout, select};
/// let layout: Layout = "(2,3,5):(1,2,6)".parse()?;
/// assert_eq!(select(&layout, &[2, 0])?.to_string(), "(5,2):(6,1)");
/// assert_eq!(select(&layout, &[1])?.to_string(), "(3):(2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn select(layout: &Layout, indices: &[usize]) -> Result<Layout, LayoutError> {
    let modes: Option<Vec<Layout>> = indices.iter().map(|&i| layout.mode(i)).collect();
    match modes {
        Some(modes) if !modes.is_empty() => Layout::from_modes(modes),
        _ => Err(LayoutError::on("select", Class::Argument, &[("layout", layout)])
            .found(format!("indices {indices:?}"))
            .required(format!("indices below the rank {}", layout.rank()))),
    }
}

/// The modes from `begin` to before `end` (CuTe's `take`).
///
/// *Law.* Mode `k` of the result is mode `begin + k` of the layout.
///
/// *Source.* `cute/layout.hpp`, `take`.
///
/// # Errors
/// The range is empty or goes past the rank.
///
/// ```
/// use cute_layout::layout::{Layout, take};
/// assert_eq!(take(&"(2,3,5):(1,2,6)".parse()?, 1, 3)?.to_string(), "(3,5):(2,6)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn take(layout: &Layout, begin: usize, end: usize) -> Result<Layout, LayoutError> {
    check_range("take", layout, begin, end)?;
    Layout::from_modes(layout.modes().take(end).skip(begin))
}

/// Groups the modes from `begin` to before `end` into one mode (CuTe's `group`).
///
/// *Law.* The same function of an index.
///
/// *Source.* `cute/layout.hpp`, `group`.
///
/// # Errors
/// The range is empty or goes past the rank.
///
/// ```
/// use cute_layout::layout::{Layout, group};
/// let result = group(&"(2,3,5,7):(1,2,6,30)".parse()?, 0, 2)?;
/// assert_eq!(result.to_string(), "((2,3),5,7):((1,2),6,30)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn group(layout: &Layout, begin: usize, end: usize) -> Result<Layout, LayoutError> {
    check_range("group", layout, begin, end)?;
    let modes: Vec<Layout> = layout.modes().collect();
    let grouped = Layout::from_modes(modes[begin..end].iter().cloned())?;
    let all = modes[..begin].iter().cloned().chain([grouped]).chain(modes[end..].iter().cloned());
    Layout::from_modes(all)
}

fn check_range(op: &'static str, layout: &Layout, begin: usize, end: usize) -> Result<(), LayoutError> {
    if begin < end && end <= layout.rank() {
        return Ok(());
    }
    Err(LayoutError::on(op, Class::Argument, &[("layout", layout)])
        .found(format!("modes {begin} to {end}"))
        .required(format!("a range that is not empty, up to the rank {}", layout.rank())))
}

/// Replaces one mode (CuTe's `replace`).
///
/// *Law.* Mode `index` is the given one, every other is the layout's.
///
/// *Source.* `cute/layout.hpp`, `replace`.
///
/// # Errors
/// The index is past the rank.
///
/// ```
/// use cute_layout::layout::{Layout, replace};
/// let result = replace(&"(2,3):(1,2)".parse()?, 1, &"(4,4):(8,2)".parse()?)?;
/// assert_eq!(result.to_string(), "(2,(4,4)):(1,(8,2))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn replace(layout: &Layout, index: usize, mode: &Layout) -> Result<Layout, LayoutError> {
    if index >= layout.rank() {
        return Err(LayoutError::on("replace", Class::Argument, &[("layout", layout)])
            .found(format!("mode {index}"))
            .required(format!("an index below the rank {}", layout.rank())));
    }
    if layout.shape().is_leaf() {
        return Ok(mode.clone());
    }
    Layout::from_modes(layout.modes().enumerate().map(|(i, old)| if i == index { mode.clone() } else { old }))
}

/// Appends modes until the rank is `rank` (CuTe's `append<N>`); `1:0` where no mode is given.
///
/// *Law.* `result(c, 0, ..) == layout(c)`.
///
/// *Source.* `cute/layout.hpp`, `append`.
///
/// # Errors
/// The layout has a larger rank already, or `rank` is past the limit.
///
/// ```
/// use cute_layout::layout::{Layout, append};
/// assert_eq!(append(&"4:2".parse()?, 3, &Layout::unit())?.to_string(), "(4,1,1):(2,0,0)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn append(layout: &Layout, rank: usize, mode: &Layout) -> Result<Layout, LayoutError> {
    pad("append", layout, rank, mode, false)
}

/// Prepends modes until the rank is `rank` (CuTe's `prepend<N>`).
///
/// *Law.* `result(0, .., c) == layout(c)`.
///
/// *Source.* `cute/layout.hpp`, `prepend`.
///
/// # Errors
/// As for [`append`].
///
/// ```
/// use cute_layout::layout::{Layout, prepend};
/// assert_eq!(prepend(&"4:2".parse()?, 3, &Layout::unit())?.to_string(), "(1,1,4):(0,0,2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn prepend(layout: &Layout, rank: usize, mode: &Layout) -> Result<Layout, LayoutError> {
    pad("prepend", layout, rank, mode, true)
}

fn pad(op: &'static str, layout: &Layout, rank: usize, mode: &Layout, front: bool) -> Result<Layout, LayoutError> {
    let have = layout.rank();
    if have == rank {
        return Ok(layout.clone());
    }
    if rank < have || rank > super::leaf::MAX_LEAVES {
        return Err(LayoutError::on(op, Class::Argument, &[("layout", layout)])
            .found(format!("rank {rank}"))
            .required(format!("a rank from {have} to {}", super::leaf::MAX_LEAVES)));
    }
    let padding = std::iter::repeat_n(mode.clone(), rank - have);
    if front {
        Layout::from_modes(padding.chain(layout.modes()))
    } else {
        Layout::from_modes(layout.modes().chain(padding))
    }
}
