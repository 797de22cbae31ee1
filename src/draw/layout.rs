//! A layout as a grid of its values.

use super::grid::{Axis, Cell, Grid, arrange};
use super::palette::{Colour, grey};
use super::sheet::{GAP, Sheet};
use super::{DrawError, Options, allow};
use crate::layout::{IntTuple, Layout};

/// A layout: at each coordinate its value, grey by `index % 8` (CuTe's `print_latex(layout)`).
///
/// Rows are mode 0 and columns mode 1; further modes follow to the right. A layout of one mode is one row. Borders are
/// those of the nested shape: thick where a tile ends, thicker where a tile of tiles does.
///
/// # Errors
/// The layout has more cells than the options allow, or symbolic extents; a value does not fit in 64 bits.
///
/// ```
/// use cutemplate::draw::{self, Options};
/// let svg = draw::layout(&"(4,8):(8,1)".parse()?, &Options::default())?;
/// assert!(svg.contains(">31</text>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn layout(layout: &Layout, options: &Options) -> Result<String, DrawError> {
    allow("layout", &layout.to_string(), &[sides(layout)?], options)?;
    let grid = values(layout, String::new(), |_, value| grey(value))?;
    let mut sheet = Sheet::new();
    arrange(&mut sheet, &[grid], GAP);
    Ok(sheet.finish(&layout.to_string(), &[how_to_read(layout)]))
}

/// The meaning of a grid's rows and columns.
pub(super) fn how_to_read(layout: &Layout) -> String {
    let size = layout.size();
    let axes = match layout.rank() {
        1 => "The coordinate runs to the right".to_owned(),
        2 => "Rows are mode 0, columns are mode 1".to_owned(),
        rank => format!("Rows are mode 0, columns are modes 1 to {}, the first of them fastest", rank - 1),
    };
    let nested = if layout.depth() > 1 { "; thick lines are the borders of the nested shape" } else { "" };
    format!("{axes}; a cell is the value at its coordinate ({size} in all){nested}.")
}

/// Rows and columns of a layout's picture.
pub(super) fn sides(layout: &Layout) -> Result<(i64, i64), DrawError> {
    if layout.shape().ints().is_none() {
        return Err(DrawError::Refused {
            picture: "layout",
            found: layout.shape().to_string(),
            required: "integers for extents".into(),
            because: "a picture has a number of cells".into(),
            help: "put numbers in the place of the symbols".into(),
        });
    }
    if layout.rank() == 1 {
        return Ok((1, layout.size()));
    }
    let rows = layout.mode(0).map_or(1, |mode| mode.size());
    Ok((rows, layout.size() / rows))
}

/// The axes of a layout's picture.
fn axes(layout: &Layout) -> Result<(Axis, Axis), DrawError> {
    let shape = layout.shape();
    if layout.rank() == 1 {
        let columns = shape.mode(0).unwrap_or_else(|| shape.clone());
        return Ok((Axis::of("", &IntTuple::int(1)), Axis::of("", &columns)));
    }
    let rows = shape.mode(0).unwrap_or_else(|| IntTuple::int(1));
    let columns = IntTuple::tuple(shape.modes().skip(1))?;
    Ok((Axis::of("", &rows), Axis::of("", &columns)))
}

/// The grid of a layout's values; the colour is made from the number of the coordinate and the value.
pub(super) fn values(layout: &Layout, heading: String, colour: impl Fn(i64, i64) -> Colour) -> Result<Grid, DrawError> {
    let (rows, columns) = sides(layout)?;
    let (row_axis, column_axis) = axes(layout)?;
    let mut cells = Vec::with_capacity((rows * columns).max(0) as usize);
    for row in 0..rows {
        for column in 0..columns {
            let number = row + column * rows;
            cells.push(value_cell(layout, number, &colour)?);
        }
    }
    Ok(Grid { heading, rows: row_axis, columns: column_axis, cells })
}

fn value_cell(layout: &Layout, number: i64, colour: impl Fn(i64, i64) -> Colour) -> Result<Cell, DrawError> {
    if layout.stride().ints().is_some() {
        let value = layout.at(number)?;
        return Ok(Cell::new(value.to_string(), colour(number, value)));
    }
    // Basis strides: the value is a coordinate, and the number of the cell colours it.
    let value = layout.crd2idx(&IntTuple::int(number))?;
    Ok(Cell::new(value.to_string(), colour(number, number)))
}
