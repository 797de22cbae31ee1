//! Values of a layout as a grid, as CuTe's `print_layout` shows them.

use crate::layout::{AnyLayout, Class, IntTuple, LayoutError, crd2idx};
use std::fmt::Write;

/// The most cells of a table.
pub const MOST_CELLS: i64 = 1 << 14;

/// The values of a layout as a grid: mode 0 downwards, mode 1 to the right, with the indices of both. A layout of rank 1 is
/// one column; modes past the second make one grid each, headed by their coordinate.
///
/// # Errors
/// The layout has no domain or more than [`MOST_CELLS`] coordinates; a number does not fit in 64 bits.
///
/// ```
/// use cute_layout::algebra_tool::table;
/// let text = table(&"(2,3):(3,1)".parse()?)?;
/// assert_eq!(text, "     0  1  2\n  +---------\n0 |  0  1  2\n1 |  3  4  5\n");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn table(layout: &AnyLayout) -> Result<String, LayoutError> {
    let domain = layout.domain()?;
    if domain.size() > MOST_CELLS {
        return Err(LayoutError::on("table", Class::Limit, &[("layout", layout)])
            .found(format!("{} coordinates", domain.size()))
            .required(format!("at most {MOST_CELLS}")));
    }
    let modes: Vec<i64> = domain.modes().map(|mode| mode.size()).collect();
    let (rows, columns) = (modes[0], modes.get(1).copied().unwrap_or(1));
    let mut cells = Vec::new();
    for i in 0..domain.size() {
        cells.push(match layout {
            AnyLayout::Plain(plain) => crd2idx(&IntTuple::int(i), plain)?.to_string(),
            other => other.at(i)?.to_string(),
        });
    }
    let width = cells.iter().map(String::len).max().unwrap_or(1).max(columns.to_string().len());
    let head = rows.to_string().len().max((rows - 1).to_string().len());
    let mut text = String::new();
    for (grid, values) in cells.chunks((rows * columns) as usize).enumerate() {
        if modes.len() > 2 {
            let _ = writeln!(text, "(_,_,{})", outer_coord(grid as i64, &modes[2..]));
        }
        let _ = write!(text, "{:head$}  ", "");
        for j in 0..columns {
            let _ = write!(text, "  {j:>width$}");
        }
        let _ = writeln!(text, "\n{:head$} +{}", "", "-".repeat(columns as usize * (width + 2)));
        for i in 0..rows {
            let _ = write!(text, "{i:>head$} |");
            for j in 0..columns {
                let _ = write!(text, "  {:>width$}", values[(i + j * rows) as usize]);
            }
            text.push('\n');
        }
    }
    Ok(text)
}

fn outer_coord(mut index: i64, extents: &[i64]) -> String {
    let mut parts = Vec::new();
    for extent in extents {
        parts.push((index % extent).to_string());
        index /= extent;
    }
    parts.join(",")
}
