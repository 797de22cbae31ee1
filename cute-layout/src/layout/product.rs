//! Products: a block repeated by a layout.

use super::complement::{Gaps, complement, gaps};
use super::composition::composition;
use super::construct::{make_layout, make_ordered_layout};
use super::core::Layout;
use super::divide::{append, by_tiler, spread, tile_unzip, zip};
use super::error::{Class, LayoutError, mul};
use super::int_tuple::{IntTuple, Shape};
use super::number::{quotient, unknown};
use super::shape::{ceil_div, product_each};
use super::tiler::Tiler;

/// The block, and the tiler's layout of copies of it (CuTe's `logical_product`). A layout repeats the whole block; a shape
/// or a tuple of tilers repeats mode by mode.
///
/// *Law.* Mode 0 is the block; `result(0, j) == C(tiler(j))` with `C = complement(block, size(block) * cosize(tiler))`, so
/// that the copies do not meet where the tiler is injective.
///
/// *Source.* `cute/layout.hpp`, `logical_product`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv
/// 2603.02298.
///
/// # Errors
/// The complement or the composition is refused; the tiler has too many modes.
///
/// ```
/// use cute_layout::layout::{Layout, logical_product};
/// let result = logical_product(&"(2,2):(4,1)".parse()?, &"6:1".parse::<Layout>()?.into())?;
/// assert_eq!(result.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn logical_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    by_tiler("logical_product", block, tiler, &|block, tile| {
        copies(block, tile)
            .and_then(|copies| Layout::from_modes([block.clone(), composition(&copies, tile)?]))
            .map_err(|e| e.within("logical_product", &[("block", block), ("tiler", tile)]))
    })
}

/// The offsets of the copies of a block.
fn copies(block: &Layout, tile: &Layout) -> Result<Layout, LayoutError> {
    let numbers = |l: &Layout| l.static_shape() && !l.stride().raw().iter().any(|d| d.tag().as_symbol().is_some());
    if numbers(block) && numbers(tile) {
        return complement(block, &IntTuple::int(mul(block.size(), tile.cosize()?)?));
    }
    if tile.stride().raw().iter().any(|d| d.tag().is_basis()) {
        return Err(unknown("logical_product", format!("the modes between those of {block}"))
            .required("integers at every leaf, where a tiler has basis strides"));
    }
    // The extent of the copies does not matter: their offsets have no bound.
    gaps(block).and_then(Gaps::unbounded)
}

/// Blocks and copies gathered: `((block, ..), (copies, ..))` (CuTe's `zipped_product`).
///
/// *Law.* `result((b, t))`, of `((block..),(copies..))`, is `logical_product` with its modes gathered.
///
/// *Source.* `cute/layout.hpp`, `zipped_product`.
///
/// # Errors
/// As for [`logical_product`].
///
/// ```
/// use cute_layout::layout::{Tiler, zipped_product};
/// let result = zipped_product(&"(2,5):(5,1)".parse()?, &"[3:5,4:6]".parse::<Tiler>()?)?;
/// assert_eq!(result.to_string(), "((2,5),(3,4)):((5,1),(10,30))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn zipped_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    tile_unzip(&logical_product(block, tiler)?, tiler)
        .map_err(|e| e.within("zipped_product", &[("block", block), ("tiler", tiler)]))
}

/// Like [`zipped_product`], with the copies as modes of their own (CuTe's `tiled_product`).
///
/// *Law.* `result(b, t..) == zipped_product(block, tiler)((b, t))`: the copies' modes stand at the top.
///
/// *Source.* `cute/layout.hpp`, `tiled_product`.
///
/// # Errors
/// As for [`logical_product`].
///
/// ```
/// use cute_layout::layout::{Tiler, tiled_product};
/// let result = tiled_product(&"(2,5):(5,1)".parse()?, &"[3:5,4:6]".parse::<Tiler>()?)?;
/// assert_eq!(result.to_string(), "((2,5),3,4):((5,1),10,30)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn tiled_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    spread(&zipped_product(block, tiler)?, false)
}

/// Like [`zipped_product`], flat at the top (CuTe's `flat_product`).
///
/// *Law.* `result(b.., t..) == zipped_product(block, tiler)((b, t))`: all modes stand at the top.
///
/// *Source.* `cute/layout.hpp`, `flat_product`.
///
/// # Errors
/// As for [`logical_product`].
///
/// ```
/// use cute_layout::layout::{Tiler, flat_product};
/// let result = flat_product(&"(2,5):(5,1)".parse()?, &"[3:5,4:6]".parse::<Tiler>()?)?;
/// assert_eq!(result.to_string(), "(2,5,3,4):(5,1,10,30)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn flat_product(block: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    spread(&zipped_product(block, tiler)?, true)
}

/// The block repeated over the tiler, mode by mode: each mode is `(block mode, tiler mode)`, so that copies stand side by
/// side (CuTe's `blocked_product`). The smaller rank is padded with `1:0`.
///
/// *Law.* `result((b0, t0), (b1, t1), ..) == logical_product(block, tiler)((b0, b1, ..), (t0, t1, ..))`.
///
/// *Source.* `cute/layout.hpp`, `blocked_product`.
///
/// # Errors
/// As for [`logical_product`].
///
/// ```
/// use cute_layout::layout::{Layout, blocked_product};
/// let result = blocked_product(&"(2,5):(5,1)".parse()?, &"(3,4):(1,3)".parse()?)?;
/// assert_eq!(result.to_string(), "((2,3),(5,4)):((5,10),(1,30))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn blocked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let (block, copies) = padded_product("blocked_product", block, tiler)?;
    side_by_side(block, copies)
}

/// The block spread over the tiler: each mode is `(tiler mode, block mode)`, so that copies are interleaved (CuTe's
/// `raked_product`).
///
/// *Law.* `result((t0, b0), (t1, b1), ..) == logical_product(block, tiler)((b0, b1, ..), (t0, t1, ..))`.
///
/// *Source.* `cute/layout.hpp`, `raked_product`.
///
/// # Errors
/// As for [`logical_product`].
///
/// ```
/// use cute_layout::layout::{Layout, raked_product};
/// let result = raked_product(&"(4,32):(32,1)".parse()?, &"(4,8):(8,1)".parse()?)?;
/// assert_eq!(result.to_string(), "((4,4),(8,32)):((1024,32),(128,1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn raked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let (block, copies) = padded_product("raked_product", block, tiler)?;
    side_by_side(copies, block)
}

/// Zips two layouts of one mode each, or of as many modes. CuTe refuses a tuple beside a leaf, and a leaf whose image is of several modes
/// beside a tuple; here each of the two is one mode then.
fn side_by_side(first: Layout, second: Layout) -> Result<Layout, LayoutError> {
    let differ = second.shape().is_leaf() || first.rank() != second.rank();
    let (first, second) = match first.shape().is_leaf() {
        false if differ => (one_mode(first)?, one_mode(second)?),
        _ => (first, second),
    };
    zip(&Layout::from_modes([first, second])?)
}

fn one_mode(layout: Layout) -> Result<Layout, LayoutError> {
    if !layout.shape().is_leaf() && layout.rank() == 1 { Ok(layout) } else { Layout::from_modes([layout]) }
}

fn padded_product(op: &'static str, block: &Layout, tiler: &Layout) -> Result<(Layout, Layout), LayoutError> {
    let rank = block.rank().max(tiler.rank());
    let block_padded = append(block, rank, &Layout::unit())?;
    let tiler_padded = append(tiler, rank, &Layout::unit())?;
    let product = logical_product(&block_padded, &Tiler::Layout(tiler_padded))
        .map_err(|e| e.within(op, &[("block", block), ("tiler", tiler)]))?;
    Ok((block_padded, product.mode(1).unwrap_or_else(Layout::unit)))
}

/// Repeats a block until it fills a target shape (CuTe's `tile_to_shape`), the first mode first, or in the given order.
///
/// *Law.* `compatible(target's modes, result)`, and the block is where the copies' coordinates are 0.
///
/// *Source.* `cute/layout.hpp`, `tile_to_shape`.
///
/// # Errors
/// The block's extents do not divide the target's ([`Class::TileToShape`]), or the block has more modes.
///
/// ```
/// use cute_layout::layout::tile_to_shape;
/// let result = tile_to_shape(&"(8,8):(8,1)".parse()?, &(32, 16).into(), Some(&(2, 1).into()))?;
/// assert_eq!(result.to_string(), "((8,4),(8,2)):((8,128),(1,64))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn tile_to_shape(block: &Layout, target: &Shape, order: Option<&IntTuple>) -> Result<Layout, LayoutError> {
    let rank = target.rank();
    if block.rank() > rank {
        return Err(LayoutError::on("tile_to_shape", Class::MismatchedRanks, &[("block", block), ("target", target)])
            .found(format!("a block of rank {} for a target of rank {rank}", block.rank()))
            .required("a block whose rank is at most the target's")
            .cute("refuses: Rank of layout must be <= rank of target shape."));
    }
    let padded = append(block, rank, &Layout::unit())?;
    let block_shape = product_each(padded.shape())?;
    let target_shape = product_each(target)?;
    for (i, (t, b)) in target_shape.raw().iter().zip(block_shape.raw()).enumerate() {
        if t.value >= 1 && quotient(*t, *b).is_some() {
            continue;
        }
        let mut found = format!("block extent {} in target extent {}", IntTuple::leaf(*b), IntTuple::leaf(*t));
        let refused = if t.is_int() && b.is_int() {
            found.push_str(&format!(" ({} mod {} = {})", t.value, b.value, t.value % b.value));
            LayoutError::new("tile_to_shape", Class::TileToShape)
                .cute("refuses: tile_to_shape: block shape does not divide the target shape.")
        } else {
            unknown("tile_to_shape", String::new())
        };
        let refused = refused.of(&[("block", block), ("target", target)]).leaf(format!("mode {i}"));
        return Err(refused.found(found).required("a block extent that divides the target's"));
    }
    let copies = ceil_div(&target_shape, &block_shape)?;
    let copies = match order {
        Some(order) => make_ordered_layout(&copies, order)?,
        None => make_layout(&copies)?,
    };
    blocked_product(&padded, &copies)
}
