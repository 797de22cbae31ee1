//! Bars: one measured number for each of several kernels, with the least or most that a model allows, and others to compare with.

use super::palette::{Colour, WHITE, pastel};
use super::sheet::{Sheet, Style, text_width};
use super::{DrawError, Options, allow};

/// A bar: a measurement, and the upper bound by a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// The measurement.
    pub value: f64,
    /// The model's bound, if any.
    pub bound: Option<f64>,
}

/// A line across all bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Its name.
    pub label: String,
    /// Where it stands.
    pub value: f64,
}

/// A chart of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// Above the picture.
    pub title: String,
    /// The unit of all numbers.
    pub unit: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// Lines to compare with.
    pub marks: Vec<Mark>,
    /// Paragraphs below.
    pub caption: Vec<String>,
}

const LABEL: i64 = 12;
/// Pixels of the longest bar.
const LONGEST: i64 = 560;
/// From one bar to the next, and the height of one.
const STEP: i64 = 30;
const HEIGHT: i64 = 18;
const LINE: i64 = 17;
const GAP: i64 = 10;
const GREY: &str = "#444444";

/// A bar for each number, from 0, on one scale: filled up to the measurement, outlined up to the bound if there is one.
/// Marks are lines across.
///
/// # Errors
/// No bar, more bars than the options allow cells, or a number that is negative or not finite, or only zeros.
///
/// ```
/// use cutemplate::draw::{self, Bar, Bars, Mark, Options};
/// let bar = |label: &str, value, bound| Bar { label: label.into(), value, bound: Some(bound) };
/// let svg = draw::bars(
///     &Bars {
///         title: "two kernels".into(),
///         unit: "TFLOP/s".into(),
///         bars: vec![bar("naive", 0.5, 0.6), bar("pipelined", 50.0, 60.0)],
///         marks: vec![Mark { label: "library".into(), value: 51.0 }],
///         caption: Vec::new(),
///     },
///     &Options::default(),
/// )?;
/// assert!(svg.contains("pipelined") && svg.contains("library 51.0"));
/// # Ok::<(), cutemplate::draw::DrawError>(())
/// ```
pub fn bars(chart: &Bars, options: &Options) -> Result<String, DrawError> {
    let Bars { title, unit, bars, marks, caption } = chart;
    allow("bars", title, &[(bars.len() as i64, 1)], options)?;
    let numbers = || bars.iter().flat_map(|b| [Some(b.value), b.bound]).flatten().chain(marks.iter().map(|m| m.value));
    let most = numbers().fold(0.0, f64::max);
    if bars.is_empty() || most <= 0.0 || numbers().any(|x| !x.is_finite() || x < 0.0) {
        return Err(DrawError::Refused {
            picture: "bars",
            found: format!("{} bars, numbers {:?}", bars.len(), numbers().collect::<Vec<_>>()),
            required: "a bar at least, and finite numbers from 0 on that are not all 0".into(),
            because: "a bar's length is its number, to the scale of the largest".into(),
            help: "leave out bars that were not measured".into(),
        });
    }
    let widest = bars.iter().map(|b| b.label.chars().count()).max().unwrap_or(0);
    let left = text_width(widest, LABEL) + GAP;
    let at = |x: f64| (x / most * LONGEST as f64).round() as i64;
    // One line of text for each mark and one for the heads of the columns.
    let top = LINE * (marks.len() as i64 + 1) + 4;
    let bottom = top + STEP * bars.len() as i64;
    let row = |i: usize| top + STEP * i as i64 + (STEP - HEIGHT) / 2;
    let columns = [left + LONGEST + 90, left + LONGEST + 180];
    let mut sheet = Sheet::new();
    for (i, bar) in bars.iter().enumerate() {
        let (y, measured) = (row(i), at(bar.value).max(1));
        if let Some(bound) = bar.bound.map(|bound| at(bound).max(1)) {
            sheet.fill(WHITE, &[(left, y)], (bound, HEIGHT));
            sheet.lines(2, "#888888", format!("M{left} {y}h{bound}v{HEIGHT}h-{bound}z"));
        }
        sheet.fill(pastel(0), &[(left, y)], (measured, HEIGHT));
    }
    sheet.fill(Colour(0, 0, 0), &[(left - 1, top)], (1, bottom - top));
    // From right to left: no line begins above the text of a line to its right.
    let mut marks: Vec<&Mark> = marks.iter().collect();
    marks.sort_by(|a, b| b.value.total_cmp(&a.value));
    let mut texts = [Vec::new(), Vec::new()];
    for (i, mark) in marks.iter().enumerate() {
        let (x, y) = (left + at(mark.value), LINE * i as i64);
        sheet.lines(2, "#b00000", format!("M{x} {}V{bottom}", y + 5));
        let text = format!("{} {}", mark.label, number(mark.value));
        // Before the line, where there is room for it.
        let before = text_width(text.chars().count(), LABEL) + 5 <= x;
        texts[usize::from(before)].push((if before { x - 5 } else { x + 5 }, y + 12, text));
    }
    let style = |anchor, bold, fill| Style { size: LABEL, anchor, bold, fill };
    let base = |y: i64| y + HEIGHT - 5;
    let labels = bars.iter().enumerate().map(|(i, bar)| (left - GAP, base(row(i)), bar.label.clone()));
    sheet.texts(style("end", false, "#000000"), labels.collect());
    let bounded = bars.iter().any(|bar| bar.bound.is_some());
    let right = columns[usize::from(bounded)];
    let mut cells = vec![(columns[0], top - 6, "measured".to_owned())];
    if bounded {
        cells.push((columns[1], top - 6, "at most".to_owned()));
    }
    for (i, bar) in bars.iter().enumerate() {
        cells.push((columns[0], base(row(i)), number(bar.value)));
        cells.extend(bar.bound.map(|bound| (columns[1], base(row(i)), number(bound))));
    }
    cells.push((right, top - 6 - LINE, unit.clone()));
    sheet.texts(style("end", false, GREY), cells);
    let [behind, before] = texts;
    sheet.texts(style("end", false, "#b00000"), before);
    sheet.texts(style("start", false, "#b00000"), behind);
    sheet.reach(right + 4, bottom + 4);
    Ok(sheet.finish(title, caption))
}

/// One digit behind the point, two below 10.
fn number(x: f64) -> String {
    if x < 10.0 { format!("{x:.2}") } else { format!("{x:.1}") }
}
