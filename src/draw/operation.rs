//! An operation: its inputs and its result side by side, in linked colours.

use std::collections::BTreeMap;

use super::grid::arrange;
use super::layout::{how_to_read, sides, values};
use super::palette::{Colour, WHITE, link as link_colour};
use super::sheet::{GAP, Sheet};
use super::{DrawError, Options, allow};
use crate::layout::Layout;

/// The common property of cells with the same colour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// The same index.
    Value,
    /// `R = A o B`: the cell of B, the coordinate of A that its value names, and the cell of the result.
    Composition,
    /// `R` is an inverse of `A`: the coordinate of R is the index of A.
    Inverse,
    /// The same tile; `nested` where every mode of the result is (tile, rest) and not the result itself.
    Tile { nested: bool, rest: usize, product: bool },
}

impl Link {
    fn of(op: &str, inputs: usize) -> Link {
        let tile = |nested, rest| Link::Tile { nested, rest, product: op.ends_with("product") };
        match op {
            "composition" if inputs == 2 => Link::Composition,
            "right_inverse" | "left_inverse" => Link::Inverse,
            // By mode, if the tiler is not a layout, each mode of the result is (tile, rest).
            "logical_divide" | "logical_product" if inputs == 1 => tile(true, 1),
            "blocked_product" => tile(true, 1),
            "raked_product" => tile(true, 0),
            "logical_divide" | "zipped_divide" | "tiled_divide" | "logical_product" | "zipped_product"
            | "tiled_product" => tile(false, 1),
            _ => Link::Value,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Link::Value => "Cells of one colour have the same index.",
            Link::Composition => {
                "Colours follow a coordinate through both layouts: B's value is the coordinate of A with the same colour, \
                 and A's value there is the result's."
            }
            Link::Inverse => "An index of the input and the coordinate of the result that it is have the same colour.",
            Link::Tile { .. } => "Cells of one colour belong to the same tile, or are the tile's number.",
        }
    }
}

/// An operation's inputs and its result, side by side. Colours say which cells belong together: in a composition the
/// cells that one coordinate passes through, in a division or a product the cells of one tile, elsewhere the cells of
/// one index.
///
/// `op` is CuTe's name (`composition`, `zipped_divide`, ...). `inputs` are the layouts among its operands, each with
/// the name to print. Operands that are not layouts (a shape, a tiler by mode) are left out.
///
/// # Errors
/// There are more cells than the options allow, or a stride is not an integer.
///
/// ```
/// use cutemplate::{draw::{self, Options}, layout::{Layout, composition}};
/// let (a, b): (Layout, Layout) = ("(6,2):(8,2)".parse()?, "(4,3):(3,1)".parse()?);
/// let result = composition(&a, &b)?;
/// let svg = draw::operation("composition", &[("A", &a), ("B", &b)], &result, &Options::default())?;
/// assert!(svg.contains("A = (6,2):(8,2)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn operation(
    op: &str,
    inputs: &[(&str, &Layout)],
    result: &Layout,
    options: &Options,
) -> Result<String, DrawError> {
    let all: Vec<&Layout> = inputs.iter().map(|(_, layout)| *layout).chain([result]).collect();
    let mut grid_sizes = Vec::with_capacity(all.len());
    for layout in &all {
        grid_sizes.push(sides(layout)?);
        check_strides(layout)?;
    }
    allow("operation", op, &grid_sizes, options)?;
    let link = Link::of(op, inputs.len());
    let tiles = tiles_of(link, result)?;
    let mut grids = Vec::with_capacity(all.len());
    for (number, (name, layout)) in inputs.iter().enumerate() {
        grids.push(values(layout, format!("{name} = {layout}"), input_colour(link, number, &tiles))?);
    }
    let tile_colour = |number: i64, value: i64| match link {
        Link::Value => link_colour(value),
        Link::Inverse => link_colour(number),
        Link::Composition => match inputs.get(1) {
            // B's value, where B is drawn too; its coordinates are the result's.
            Some((_, b)) => b.at(number).map_or(WHITE, link_colour),
            None => link_colour(number),
        },
        Link::Tile { .. } => tiles.get(&value).map_or(WHITE, |tile| link_colour(*tile)),
    };
    grids.push(values(result, format!("{op} = {result}"), tile_colour)?);
    let names: Vec<String> = inputs.iter().map(|(_, layout)| layout.to_string()).collect();
    let mut sheet = Sheet::new();
    arrange(&mut sheet, &grids, GAP);
    let title = format!("{op}: {} -> {result}", names.join(", "));
    Ok(sheet.finish(&title, &[link.in_words().to_owned(), how_to_read(result)]))
}

/// The colour of an input's cell from its number and its value.
fn input_colour(link: Link, number: usize, tiles: &BTreeMap<i64, i64>) -> impl Fn(i64, i64) -> Colour {
    move |cell, value| match (link, number) {
        (Link::Composition, 0) => link_colour(cell),
        (Link::Tile { .. }, 0) => tiles.get(&value).map_or(WHITE, |tile| link_colour(*tile)),
        // The tiler of a product numbers the tiles; that of a division names the elements of the first.
        (Link::Tile { product, .. }, _) => link_colour(if product { cell } else { 0 }),
        _ => link_colour(value),
    }
}

/// From an index of the result to the number of its tile.
fn tiles_of(link: Link, result: &Layout) -> Result<BTreeMap<i64, i64>, DrawError> {
    let mut tiles = BTreeMap::new();
    let Link::Tile { nested, rest, .. } = link else { return Ok(tiles) };
    // Extents of the leaves, and for each leaf whether it counts tiles.
    let mut leaves: Vec<(i64, bool)> = Vec::new();
    for (mode, shape) in result.shape().modes().enumerate() {
        let parts: Vec<_> = if nested { shape.modes().collect() } else { vec![shape] };
        for (part, shape) in parts.iter().enumerate() {
            let counts = if nested && parts.len() > 1 { part == rest } else { !nested && mode >= rest };
            leaves.extend(shape.ints().unwrap_or_default().into_iter().map(|extent| (extent, counts)));
        }
    }
    for number in 0..result.size() {
        let (mut left, mut tile, mut scale) = (number, 0, 1);
        for (extent, counts) in &leaves {
            if *counts {
                tile += left % extent * scale;
                scale *= extent;
            }
            left /= extent;
        }
        tiles.entry(result.at(number)?).or_insert(tile);
    }
    Ok(tiles)
}

fn check_strides(layout: &Layout) -> Result<(), DrawError> {
    if layout.stride().ints().is_some() {
        return Ok(());
    }
    Err(DrawError::Refused {
        picture: "operation",
        found: layout.to_string(),
        required: "integers for strides".into(),
        because: "colours link equal indices".into(),
        help: "draw::layout draws basis strides".into(),
    })
}
