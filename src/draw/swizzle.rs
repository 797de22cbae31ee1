//! A layout before and after a swizzle, by shared memory bank.

use super::grid::{Cell, Grid, arrange};
use super::layout::{sides, values};
use super::palette::bank;
use super::sheet::{GAP, Sheet};
use crate::model::banks::{BANKS, WORD, crowd};

use super::{DrawError, Options, allow};
use crate::layout::{Class, ComposedLayout, Layout, LayoutError};

/// Bytes that one pass over the banks moves.
const PASS: i64 = BANKS * WORD;

/// The threads' accesses to shared memory: the size of an element, and how many neighbouring elements one thread moves
/// at once.
///
/// ```
/// use cutemplate::draw::SharedAccess;
/// // ldmatrix: each thread names 16 bytes of 16-bit elements.
/// let access = SharedAccess::new(2, 8)?;
/// assert_eq!(access.lanes(), 8);
/// # Ok::<(), cutemplate::draw::DrawError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedAccess {
    element_bytes: i64,
    vector: i64,
}

impl SharedAccess {
    /// Elements of `element_bytes` bytes, `vector` of them at once.
    ///
    /// # Errors
    /// The element is not 1, 2, 4, 8 or 16 bytes, or the access is not of 1, 2, 4, 8 or 16 bytes.
    pub fn new(element_bytes: i64, vector: i64) -> Result<SharedAccess, DrawError> {
        let bytes = element_bytes.checked_mul(vector).unwrap_or(0);
        if [1, 2, 4, 8, 16].contains(&element_bytes) && vector >= 1 && [1, 2, 4, 8, 16].contains(&bytes) {
            return Ok(SharedAccess { element_bytes, vector });
        }
        Err(DrawError::Refused {
            picture: "swizzle",
            found: format!("{vector} elements of {element_bytes} bytes at once"),
            required: "elements and accesses of 1, 2, 4, 8 or 16 bytes".into(),
            because: "those are the widths of loads and stores of one thread (PTX ISA, ld.shared)".into(),
            help: "16-byte vectors of 2-byte elements are (2, 8)".into(),
        })
    }

    /// How many threads one pass over the banks serves: 32, or fewer where each moves more than 4 bytes.
    #[must_use]
    pub fn lanes(self) -> i64 {
        (PASS / (self.element_bytes * self.vector)).min(32)
    }

    /// The 4-byte words that the element at an index covers.
    fn words(self, index: i64) -> Option<(i64, i64)> {
        let first = index.checked_mul(self.element_bytes)?;
        Some((first.div_euclid(WORD), first.checked_add(self.element_bytes - 1)?.div_euclid(WORD)))
    }
}

/// A swizzled layout, before and after the swizzle, the offset added to both. Each cell shows the index in elements
/// and, below it, the bank (`b0` to `b31`) of its first byte, which also colours the cell. The caption counts
/// conflicts: the most passes over the banks that the threads of one pass really need, running down the columns and
/// running along the rows.
///
/// # Errors
/// The outer function is not a swizzle. Or the layout has strides that are not integers, more cells than the options
/// allow, or indices that do not fit. Or the rows are not a multiple of the vector.
///
/// ```
/// use cutemplate::draw::{self, Options, SharedAccess};
/// let tile = "Sw<5,0,5> o 0 o (32,32):(32,1)".parse()?;
/// let svg = draw::swizzle(&tile, SharedAccess::new(4, 1)?, &Options::default())?;
/// assert!(svg.contains("32-way"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn swizzle(swizzled: &ComposedLayout, access: SharedAccess, options: &Options) -> Result<String, DrawError> {
    let layout = swizzled.domain()?;
    let Some(swizzle) = swizzled.swizzle() else {
        return Err(DrawError::Refused {
            picture: "swizzle",
            found: swizzled.to_string(),
            required: "a swizzle as the outer function".into(),
            because: "the picture is of what a swizzle changes".into(),
            help: "draw the layouts by themselves".into(),
        });
    };
    let inner = match swizzled.offset() {
        0 => layout.to_string(),
        offset => format!("{offset} + {layout}"),
    };
    let (rows, columns) = sides(layout)?;
    allow("swizzle", &format!("{swizzle} of {inner}"), &[(rows, columns); 2], options)?;
    if columns % access.vector != 0 {
        return Err(DrawError::Refused {
            picture: "swizzle",
            found: format!("{columns} columns and vectors of {} elements", access.vector),
            required: "whole vectors in each row".into(),
            because: "a thread's vector runs along mode 1".into(),
            help: "swap the modes where mode 0 is contiguous".into(),
        });
    }
    let mut indices = Vec::with_capacity((rows * columns) as usize);
    for row in 0..rows {
        for column in 0..columns {
            let index = layout.at(row + column * rows)?.checked_add(swizzled.offset());
            indices.push(index.ok_or_else(too_large)?);
        }
    }
    let after: Vec<i64> = indices.iter().map(|index| swizzle.apply(*index)).collect();
    let mut sheet = Sheet::new();
    let before_grid = grid(layout, format!("before: {inner}"), &indices, access)?;
    let after_grid = grid(layout, format!("after: {swizzled}"), &after, access)?;
    arrange(&mut sheet, &[before_grid, after_grid], GAP);
    let degree = |indices: &[i64], down| worst(indices, (rows, columns), access, down);
    let (bytes, lanes) = (access.element_bytes * access.vector, access.lanes());
    let line = |name: &str, down| -> Result<String, DrawError> {
        let (before, after) = (degree(&indices, down)?, degree(&after, down)?);
        Ok(format!("{name}: {before}-way before, {after}-way after (1-way means no conflict)."))
    };
    let caption = [
        format!(
            "A cell is the index in elements of {} bytes and, below it, the bank (index * {} / 4) mod 32 that colours it.",
            access.element_bytes, access.element_bytes
        ),
        format!("Worst bank conflicts when {lanes} threads at once move {bytes} bytes each:"),
        line("down the columns", true)?,
        line("along the rows", false)?,
    ];
    Ok(sheet.finish(&format!("{swizzle} of {inner}"), &caption))
}

fn grid(layout: &Layout, heading: String, indices: &[i64], access: SharedAccess) -> Result<Grid, DrawError> {
    let mut grid = values(layout, heading, |_, _| super::palette::WHITE)?;
    for (cell, index) in grid.cells.iter_mut().zip(indices) {
        let word = access.words(*index).ok_or_else(too_large)?.0;
        let number = word.rem_euclid(BANKS);
        *cell = Cell { label: index.to_string(), second: format!("b{number}"), fill: bank(number) };
    }
    Ok(grid)
}

fn too_large() -> LayoutError {
    LayoutError::new("swizzle", Class::Overflow)
        .found("an index in bytes")
        .required("every size, stride and index between -2^63 and 2^63 - 1")
}

/// The most passes that one group of threads needs: the most different words in one bank.
fn worst(indices: &[i64], (rows, columns): (i64, i64), access: SharedAccess, down: bool) -> Result<usize, DrawError> {
    let across = columns / access.vector;
    let count = (rows * across) as usize;
    let lanes = access.lanes() as usize;
    let mut most = 0;
    for first in (0..count).step_by(lanes) {
        let mut words = Vec::new();
        for lane in first..(first + lanes).min(count) {
            let lane = lane as i64;
            let (row, group) = if down { (lane % rows, lane / rows) } else { (lane / across, lane % across) };
            let start = (row * columns + group * access.vector) as usize;
            for index in &indices[start..start + access.vector as usize] {
                let (from, to) = access.words(*index).ok_or_else(too_large)?;
                words.extend(from..=to);
            }
        }
        most = most.max(usize::from(crowd(&words)));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Swizzle;

    fn degrees(swizzle: &str, layout: &str, bytes: i64, vector: i64) -> [usize; 4] {
        let swizzle: Swizzle = swizzle.parse().expect("a swizzle");
        let layout: Layout = layout.parse().expect("a layout");
        let access = SharedAccess::new(bytes, vector).expect("an access");
        let sides = sides(&layout).expect("sides");
        let at = |i: i64| layout.at(i / sides.1 + i % sides.1 * sides.0).expect("a value");
        let before: Vec<i64> = (0..layout.size()).map(at).collect();
        let after: Vec<i64> = before.iter().map(|index| swizzle.apply(*index)).collect();
        let of = |indices: &[i64], down| worst(indices, sides, access, down).expect("a count");
        [of(&before, true), of(&after, true), of(&before, false), of(&after, false)]
    }

    /// Known optima: Sw<5,0,5> for a 32 x 32 tile of floats; the 128-byte swizzle for ldmatrix; the textbook Sw<4,0,5> for
    /// 16 x 32 floats read in columns still meets two ways, Sw<4,1,4> does not.
    #[test]
    fn conflicts_are_counted() {
        assert_eq!(degrees("Sw<5,0,5>", "(32,32):(32,1)", 4, 1), [32, 1, 1, 1]);
        assert_eq!(degrees("Sw<3,3,3>", "(8,64):(64,1)", 2, 8), [8, 1, 1, 1]);
        // A row of padding does as well as a swizzle here, and the identity swizzle changes nothing.
        assert_eq!(degrees("Sw<0,0,0>", "(32,32):(33,1)", 4, 1), [1, 1, 1, 1]);
        assert_eq!(degrees("Sw<4,0,5>", "(16,32):(32,1)", 4, 1)[1], 2);
        assert_eq!(degrees("Sw<4,1,4>", "(16,32):(32,1)", 4, 1)[1], 1);
    }
}
