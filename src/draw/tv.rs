//! A thread-value layout, in both directions.

use super::grid::{Axis, Cell, Grid, arrange};
use super::palette::{WHITE, pastel};
use super::sheet::{GAP, Sheet};
use super::{DrawError, Options, allow};
use crate::layout::{IntTuple, Layout, Shape};

/// The most pairs of a thread and a value that a picture looks at; operands in shared memory have many.
const MOST_PAIRS: i64 = 1 << 20;

/// A TV layout over a tile, as the table that it is and as the picture that people look at.
///
/// Left: for each thread (row) and value (column) the coordinate `m,n` of the element. Right: the tile, and in each
/// element the thread and the value that own it (CuTe's `print_latex_tv(layout_tv, tile)`). The two are inverse to each
/// other, which is why the shape of the layout does not look like the tile.
///
/// An element that several pairs own shows the first, in the order of threads within values.
///
/// # Errors
/// The layout is not of rank 2, the tile not of two extents, an index lies outside the tile, or there are more cells
/// than the options allow.
///
/// ```
/// use cutemplate::draw::{self, Options};
/// let svg = draw::tv(&"((4,8),(2,2)):((32,1),(16,8))".parse()?, &"(16,8)".parse()?, &Options::default())?;
/// assert!(svg.contains(">T31</text>") && svg.contains(">V3</text>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tv(layout: &Layout, tile: &Shape, options: &Options) -> Result<String, DrawError> {
    let (rows, columns) = tile_of("tv", tile)?;
    let (threads, values) = counts("tv", layout)?;
    let what = format!("{layout} over {tile}");
    allow("tv", &what, &[(threads, values), (rows, columns)], options)?;
    let owners = Owners::of("tv", layout, (rows, columns))?;
    let table = owners.table(layout, format!("(thread,value) -> row,column: {layout}"))?;
    let picture = owners.picture(format!("(row,column) -> thread,value: {tile}"), tile, (0, 1));
    let mut sheet = Sheet::new();
    arrange(&mut sheet, &[table, picture], GAP);
    Ok(sheet.finish(&format!("TV layout {layout} over the tile ({rows},{columns})"), &caption(layout, &owners)))
}

fn caption(layout: &Layout, owners: &Owners) -> Vec<String> {
    let (rows, columns) = owners.tile;
    let (thread, value, (row, column)) = owners.example();
    let index = row + column * rows;
    let mut caption = vec![
        format!(
            "A TV layout maps (thread,value) to an element; its table is the first grid. The second grid is the same \
             facts read backwards: at each element of the tile, who owns it. The two are inverse to each other, so the \
             shape {} counts threads and values, the tile ({rows},{columns}) counts rows and columns, and neither has to \
             look like the other.",
            layout.shape()
        ),
        format!(
            "The layout's value is the column-major index row + {rows} * column in the tile, not an address in memory: \
             value {value} of thread {thread} is index {index}, which is row {row}, column {column}."
        ),
    ];
    caption.extend(owners.remarks());
    caption
}

/// Two extents.
pub(super) fn tile_of(picture: &'static str, tile: &Shape) -> Result<(i64, i64), DrawError> {
    let side = |mode: usize| tile.mode(mode).and_then(|side| side.size().ok()).filter(|side| *side > 0);
    match (side(0), side(1), tile.rank()) {
        (Some(rows), Some(columns), 2) => Ok((rows, columns)),
        _ => Err(DrawError::Refused {
            picture,
            found: format!("the tile {tile}"),
            required: "a shape (rows,columns) of positive integers".into(),
            because: "the picture is of rows and columns".into(),
            help: "for a tile of one mode write (n,1)".into(),
        }),
    }
}

/// The numbers of threads and values.
pub(super) fn counts(picture: &'static str, layout: &Layout) -> Result<(i64, i64), DrawError> {
    let ints = layout.shape().ints().is_some() && layout.stride().ints().is_some();
    match (layout.mode(0), layout.mode(1), layout.rank()) {
        (Some(threads), Some(values), 2) if ints => Ok((threads.size(), values.size())),
        _ => Err(DrawError::Refused {
            picture,
            found: layout.to_string(),
            required: "a layout of rank 2 of integers: (threads,values)".into(),
            because: "a TV layout maps a thread and a value to an element".into(),
            help: "group the modes of the threads and those of the values".into(),
        }),
    }
}

/// Which thread owns which element of a tile.
pub(super) struct Owners {
    /// Rows and columns.
    pub(super) tile: (i64, i64),
    threads: i64,
    values: i64,
    /// Column-major: the first `(thread, value)` that owns the element.
    first: Vec<Option<(i64, i64)>>,
    /// How many pairs share an element with an earlier one.
    shared: i64,
    /// Every thread names every element: an operand in shared memory.
    pub(super) in_memory: bool,
}

impl Owners {
    /// Turns a TV layout round. The sizes have been allowed before.
    pub(super) fn of(picture: &'static str, layout: &Layout, tile: (i64, i64)) -> Result<Owners, DrawError> {
        let (threads, values) = counts(picture, layout)?;
        let still = |mode: usize| layout.mode(mode).and_then(|mode| mode.stride().ints()).unwrap_or_default();
        // Where the threads make no difference, the first stands for all.
        let alike = still(0).iter().all(|stride| *stride == 0);
        let size = tile.0 * tile.1;
        let looked_at = if alike { 1 } else { threads };
        if looked_at.checked_mul(values).is_none_or(|pairs| pairs > MOST_PAIRS) {
            return Err(DrawError::Refused {
                picture,
                found: format!("{layout}: {threads} threads with {values} values"),
                required: format!("at most {MOST_PAIRS} pairs (thread,value)"),
                because: "each pair is looked at".into(),
                help: "draw the layout of one atom".into(),
            });
        }
        let mut first = vec![None; size.max(0) as usize];
        let mut shared = (threads - looked_at) * values;
        for value in 0..values {
            for thread in 0..looked_at {
                let index = layout.at(thread + value * threads)?;
                let Some(slot) = usize::try_from(index).ok().and_then(|at| first.get_mut(at)) else {
                    return Err(outside(picture, layout, tile, (thread, value, index)));
                };
                match slot {
                    None => *slot = Some((thread, value)),
                    Some(_) => shared += 1,
                }
            }
        }
        let in_memory = threads > 1 && values == size && alike;
        Ok(Owners { tile, threads, values, first, shared, in_memory })
    }

    /// A pair that is not the first, to be told in words.
    fn example(&self) -> (i64, i64, (i64, i64)) {
        let wanted = (self.threads.min(6) - 1, self.values.min(4) - 1);
        let found = self.first.iter().position(|owner| *owner == Some(wanted));
        let at = found.or_else(|| self.first.iter().rposition(Option::is_some)).unwrap_or(0);
        let (thread, value) = self.first.get(at).copied().flatten().unwrap_or((0, 0));
        (thread, value, (at as i64 % self.tile.0, at as i64 / self.tile.0))
    }

    /// Calls the threads by other numbers, as an atom's `ThrID` does.
    pub(super) fn rename(&mut self, names: &Layout) -> Result<(), DrawError> {
        for (thread, _) in self.first.iter_mut().flatten() {
            *thread = names.at(*thread)?;
        }
        Ok(())
    }

    /// Facts that the picture cannot show.
    pub(super) fn remarks(&self) -> Option<String> {
        let free = self.first.iter().filter(|owner| owner.is_none()).count();
        let mut remarks = Vec::new();
        if self.shared > 0 && !self.in_memory {
            remarks.push(format!(
                "{} of the {} pairs (thread,value) name an element that an earlier one names too; the first is shown.",
                self.shared,
                self.threads * self.values
            ));
        }
        if free > 0 {
            remarks.push(format!("{free} elements are held by no thread and left white."));
        }
        (!remarks.is_empty()).then(|| remarks.join(" "))
    }

    /// The tile with its owners; `orient` is `(0,1)`, or `(1,0)` to let the tile's first mode run to the right.
    pub(super) fn picture(&self, heading: String, tile: &Shape, orient: (usize, usize)) -> Grid {
        let axis = |mode: usize| Axis::of("", &tile.mode(mode).unwrap_or_else(|| IntTuple::int(1)));
        let (rows, columns) = (axis(orient.0), axis(orient.1));
        let mut cells = Vec::with_capacity(self.first.len());
        for row in 0..rows.len() as i64 {
            for column in 0..columns.len() as i64 {
                let (m, n) = if orient.0 == 0 { (row, column) } else { (column, row) };
                let owner = self.first.get((m + n * self.tile.0) as usize).copied().flatten();
                cells.push(self.cell(owner));
            }
        }
        Grid { heading, rows, columns, cells }
    }

    fn cell(&self, owner: Option<(i64, i64)>) -> Cell {
        match owner {
            None => Cell::blank(),
            Some((_, value)) if self.in_memory => Cell::new(format!("V{value}"), WHITE),
            Some((thread, value)) => {
                Cell { label: format!("T{thread}"), second: format!("V{value}"), fill: pastel(thread) }
            }
        }
    }

    /// The layout as a table: a row for each thread, a column for each value.
    fn table(&self, layout: &Layout, heading: String) -> Result<Grid, DrawError> {
        let axis =
            |mode: usize, prefix| Axis::of(prefix, &layout.shape().mode(mode).unwrap_or_else(|| IntTuple::int(1)));
        let mut cells = Vec::with_capacity((self.threads * self.values) as usize);
        for thread in 0..self.threads {
            for value in 0..self.values {
                let index = layout.at(thread + value * self.threads)?;
                let coordinate = format!("{},{}", index % self.tile.0, index / self.tile.0);
                cells.push(Cell::new(coordinate, pastel(thread)));
            }
        }
        Ok(Grid { heading, rows: axis(0, "T"), columns: axis(1, "V"), cells })
    }
}

fn outside(
    picture: &'static str,
    layout: &Layout,
    (rows, columns): (i64, i64),
    (thread, value, index): (i64, i64, i64),
) -> DrawError {
    DrawError::Refused {
        picture,
        found: format!("{layout}: T{thread}/V{value} is index {index}"),
        required: format!("an index from 0 to {} in the tile ({rows},{columns})", rows * columns - 1),
        because: "a TV layout maps (thread,value) to column-major indices of its tile".into(),
        help: "give the tile that the layout was made for, and the TV layout before it was composed with a tensor"
            .into(),
    }
}
