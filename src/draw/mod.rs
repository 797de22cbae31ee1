//! Pictures of layouts, as SVG text.
//!
//! The conventions are CuTe's. Rows are mode 0 and run downwards, columns are mode 1. A layout's cells are grey by
//! `index % 8`; a TV layout's are pastel by `thread % 8` and say `T5` and `V3`. An MMA has C at the origin, A to its
//! left and B above. A copy has its source left and its destination right. Thicker lines are the borders of the nested
//! shape. Colours only help: every fact is also a label.
//!
//! The text is the same on every machine and in every run: no fonts are measured, no numbers of more than integer
//! precision are printed.
//!
//! ```
//! use cutemplate::draw::{self, Options};
//! let svg = draw::layout(&"((2,2),(4,2)):((1,8),(2,16))".parse()?, &Options::default())?;
//! assert!(svg.starts_with("<svg "));
//! // A picture of a million cells is refused, and the error says what would be right.
//! let error = draw::layout(&"(1024,1024):(1,1024)".parse()?, &Options::default()).unwrap_err();
//! assert!(error.to_string().contains("at most 16384 cells"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod atoms;
mod bars;
mod error;
mod grid;
mod layout;
mod operation;
mod palette;
mod request;
mod sheet;
mod steps;
mod swizzle;
mod tv;

pub use self::atoms::{mma, tiled_copy, tiled_mma};
pub use self::bars::{Bar, Bars, Mark, bars};
pub use self::error::DrawError;
pub use self::layout::layout;
pub use self::operation::operation;
pub use self::request::request;
pub use self::steps::{Series, Steps, steps};
pub use self::swizzle::{SharedAccess, swizzle};
pub use self::tv::tv;

/// How much a picture may hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The most cells of all grids of a picture together. A cell is about 100 bytes of SVG.
    pub most_cells: i64,
}

impl Options {
    /// The most that [`Options::most_cells`] can ask for.
    pub const LIMIT: i64 = 1 << 16;
}

impl Default for Options {
    /// At most 16384 cells: a 128 x 128 layout, and about 2 MB.
    fn default() -> Options {
        Options { most_cells: 1 << 14 }
    }
}

/// Whether grids of this many cells may be drawn.
fn allow(picture: &'static str, what: &str, grids: &[(i64, i64)], options: &Options) -> Result<(), DrawError> {
    let most = options.most_cells.clamp(0, Options::LIMIT);
    let cells = grids.iter().try_fold(0i64, |sum, (rows, columns)| sum.checked_add(rows.checked_mul(*columns)?));
    if cells.is_some_and(|cells| cells <= most) {
        return Ok(());
    }
    let sizes: Vec<String> = grids.iter().map(|(rows, columns)| format!("{rows} x {columns}")).collect();
    Err(DrawError::Refused {
        picture,
        found: format!("{what}: {} cells", sizes.join(" and ")),
        required: format!("at most {most} cells in a picture"),
        because: "a person cannot read more, and viewers slow down on files of many megabytes".into(),
        help: format!(
            "draw one tile of it (zipped_divide, then mode 0), or raise Options::most_cells (at most {})",
            Options::LIMIT
        ),
    })
}

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/layouts.md")]
struct LayoutsForReadersOfCute;
