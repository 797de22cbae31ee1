//! A grid of labelled, coloured cells with borders between tiles.

use std::collections::BTreeMap;

use super::palette::{Colour, WHITE};
use super::sheet::{Sheet, Style, text_width};
use crate::layout::IntTuple;

const LABEL: i64 = 11;
const SECOND: i64 = 10;
const NAME: i64 = 10;
const HEADING: i64 = 12;
/// Line widths by level of the border, in halves of a pixel.
const WIDTHS: [i64; 4] = [1, 4, 6, 8];
const FRAME: i64 = 4;

/// One cell: a label, a second one below it or none, and a colour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    pub(super) label: String,
    pub(super) second: String,
    pub(super) fill: Colour,
}

impl Cell {
    pub(super) fn new(label: impl Into<String>, fill: Colour) -> Cell {
        Cell { label: label.into(), second: String::new(), fill }
    }

    pub(super) fn blank() -> Cell {
        Cell::new("", WHITE)
    }
}

/// One direction of a grid: how many cells, their names, and the level of the border before each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub(super) names: Vec<String>,
    pub(super) borders: Vec<usize>,
}

impl Axis {
    /// The coordinates of a shape in colexicographic order, with a border where a leaf of the nest starts again: the
    /// more leaves, the thicker. The size is known to be small.
    pub(super) fn of(prefix: &str, shape: &IntTuple) -> Axis {
        let extents = shape.ints().unwrap_or_default();
        let size: i64 = extents.iter().product();
        let border = |i: i64| {
            let mut period = 1;
            let mut level = 0;
            for extent in extents.iter().filter(|extent| **extent > 1) {
                period *= extent;
                level += usize::from(i > 0 && period < size && i % period == 0);
            }
            level
        };
        Axis { names: (0..size).map(|i| format!("{prefix}{i}")).collect(), borders: (0..size).map(border).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// A grid: rows and columns and a cell for each pair, row by row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    pub(super) heading: String,
    pub(super) rows: Axis,
    pub(super) columns: Axis,
    pub(super) cells: Vec<Cell>,
}

impl Grid {
    /// The size of a cell that every label fits into.
    pub(super) fn cell(&self) -> (i64, i64) {
        let longest = |of: fn(&Cell) -> &String| self.cells.iter().map(|cell| of(cell).chars().count()).max();
        let label = text_width(longest(|cell| &cell.label).unwrap_or(0), LABEL);
        let second = longest(|cell| &cell.second).unwrap_or(0);
        let name = self.columns.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let width = label.max(text_width(second, SECOND)).max(text_width(name, NAME)) + 8;
        (width.max(22), if second > 0 { 30 } else { 20 })
    }

    /// Room to the left of the cells (row names) and above them (heading, column names).
    pub(super) fn margins(&self) -> (i64, i64) {
        let name = self.rows.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let heading = if self.heading.is_empty() { 0 } else { HEADING + 10 };
        (text_width(name, NAME) + 8, heading + NAME + 8)
    }

    /// Width and height with margins, and with room for the heading.
    pub(super) fn extent(&self, (width, height): (i64, i64)) -> (i64, i64) {
        let (left, top) = self.margins();
        let heading = text_width(self.heading.chars().count(), HEADING);
        let cells = left + self.columns.len() as i64 * width;
        (cells.max(heading) + 4, top + self.rows.len() as i64 * height + 4)
    }

    /// Draws the grid with its upper left corner, margins included, at `(x, y)`.
    pub(super) fn draw(&self, sheet: &mut Sheet, (x, y): (i64, i64), cell: (i64, i64)) {
        let (left, top) = self.margins();
        self.draw_cells(sheet, (x + left, y + top), cell);
        let style = Style { size: HEADING, anchor: "start", bold: true, fill: "#000000" };
        sheet.texts(style, vec![(x, y + HEADING, self.heading.clone())]);
        let (width, height) = self.extent(cell);
        sheet.reach(x + width, y + height);
    }

    /// Draws names, cells and lines with the first cell at `(x, y)`.
    pub(super) fn draw_cells(&self, sheet: &mut Sheet, (x, y): (i64, i64), (width, height): (i64, i64)) {
        let place = |i: usize| {
            let (row, column) = (i / self.columns.len().max(1), i % self.columns.len().max(1));
            (x + column as i64 * width, y + row as i64 * height)
        };
        let mut fills: BTreeMap<Colour, Vec<(i64, i64)>> = BTreeMap::new();
        for (i, cell) in self.cells.iter().enumerate() {
            fills.entry(cell.fill).or_default().push(place(i));
        }
        for (colour, cells) in fills {
            sheet.fill(colour, &cells, (width, height));
        }
        self.draw_lines(sheet, (x, y), (width, height));
        let two = self.cells.iter().any(|cell| !cell.second.is_empty());
        for (dark, fill) in [(false, "#000000"), (true, "#ffffff")] {
            let texts = |of: fn(&Cell) -> &String, base: i64| -> Vec<(i64, i64, String)> {
                let cells = self.cells.iter().enumerate().filter(|(_, cell)| cell.fill.is_dark() == dark);
                cells
                    .filter(|(_, cell)| !of(cell).is_empty())
                    .map(|(i, cell)| (place(i).0 + width / 2, place(i).1 + base, of(cell).clone()))
                    .collect()
            };
            let first = Style { size: LABEL, anchor: "middle", bold: two, fill };
            sheet.texts(first, texts(|cell| &cell.label, height / 2 + if two { -2 } else { 4 }));
            let second = Style { size: SECOND, anchor: "middle", bold: false, fill };
            sheet.texts(second, texts(|cell| &cell.second, height / 2 + 10));
        }
        self.draw_names(sheet, (x, y), (width, height));
    }

    fn draw_lines(&self, sheet: &mut Sheet, (x, y): (i64, i64), (width, height): (i64, i64)) {
        let (right, bottom) = (x + self.columns.len() as i64 * width, y + self.rows.len() as i64 * height);
        for (level, thickness) in WIDTHS.into_iter().enumerate() {
            let here = |border: usize| border.min(WIDTHS.len() - 1) == level;
            let mut outline = String::new();
            for (i, border) in self.rows.borders.iter().enumerate().skip(1) {
                if here(*border) {
                    outline += &format!("M{x} {}H{right}", y + i as i64 * height);
                }
            }
            for (i, border) in self.columns.borders.iter().enumerate().skip(1) {
                if here(*border) {
                    outline += &format!("M{} {y}V{bottom}", x + i as i64 * width);
                }
            }
            if !outline.is_empty() {
                sheet.lines(thickness, if level == 0 { "#666666" } else { "#000000" }, outline);
            }
        }
        sheet.lines(FRAME, "#000000", format!("M{x} {y}H{right}V{bottom}H{x}Z"));
        sheet.reach(right + 4, bottom + 4);
    }

    fn draw_names(&self, sheet: &mut Sheet, (x, y): (i64, i64), (width, height): (i64, i64)) {
        let rows = self.rows.names.iter().enumerate();
        let rows = rows.map(|(i, name)| (x - 5, y + i as i64 * height + height / 2 + 4, name.clone()));
        let columns = self.columns.names.iter().enumerate();
        let columns = columns.map(|(i, name)| (x + i as i64 * width + width / 2, y - 5, name.clone()));
        let style = |anchor| Style { size: NAME, anchor, bold: false, fill: "#444444" };
        sheet.texts(style("end"), rows.collect());
        sheet.texts(style("middle"), columns.collect());
    }
}

/// Places grids one beside the other, or one below the other where they would be wider than a screen.
pub(super) fn arrange(sheet: &mut Sheet, grids: &[Grid], gap: i64) {
    const SCREEN: i64 = 1900;
    let extents: Vec<((i64, i64), (i64, i64))> =
        grids.iter().map(|grid| (grid.cell(), grid.extent(grid.cell()))).collect();
    let wide: i64 = extents.iter().map(|(_, (width, _))| width + gap).sum();
    let mut at = (0, 0);
    for (grid, (cell, (width, height))) in grids.iter().zip(extents) {
        grid.draw(sheet, at, cell);
        if wide - gap > SCREEN {
            at.1 += height + gap;
        } else {
            at.0 += width + gap;
        }
    }
}
