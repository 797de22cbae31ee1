//! Numbers that change at moments: a line of steps for each, one below the other, to one scale of time.

use super::palette::{Colour, pastel};
use super::sheet::{Sheet, Style, text_width};
use super::{DrawError, Options, allow};

/// A number over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// The counted quantity.
    pub label: String,
    /// From when on it is how much: moments that ascend. Before the first it is 0.
    pub points: Vec<(u64, u32)>,
}

/// A chart of steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Above the picture.
    pub title: String,
    /// What time is counted in.
    pub time: String,
    /// When it ends.
    pub end: u64,
    /// From top to bottom.
    pub series: Vec<Series>,
    /// Paragraphs below.
    pub caption: Vec<String>,
}

const LABEL: i64 = 12;
/// Pixels of all of the time.
const WIDTH: i64 = 560;
/// Pixels of one, and of the highest series.
const UNIT: i64 = 14;
const HIGHEST: i64 = 112;
const GAP: i64 = 24;

/// A line of steps for each series, filled, all to one scale of time.
///
/// # Errors
/// No series, moments that do not ascend or lie behind the end, or more of them than the options allow cells.
///
/// ```
/// use cutemplate::draw::{self, Options, Series, Steps};
/// let series = vec![Series { label: "stages".into(), points: vec![(1, 1), (4, 2), (9, 0)] }];
/// let chart = Steps { title: "a pipeline".into(), time: "turns".into(), end: 10, series, caption: Vec::new() };
/// let svg = draw::steps(&chart, &Options::default())?;
/// assert!(svg.contains("stages, at most 2") && svg.contains("10 turns"));
/// # Ok::<(), cutemplate::draw::DrawError>(())
/// ```
pub fn steps(chart: &Steps, options: &Options) -> Result<String, DrawError> {
    let Steps { title, time, end, series, caption } = chart;
    let cells: Vec<(i64, i64)> = series.iter().map(|s| (s.points.len() as i64, 1)).collect();
    allow("steps", title, &cells, options)?;
    let ascends = |s: &Series| s.points.is_sorted_by(|a, b| a.0 < b.0) && s.points.iter().all(|p| p.0 <= *end);
    if series.is_empty() || *end == 0 || !series.iter().all(ascends) {
        return Err(DrawError::Refused {
            picture: "steps",
            found: format!("{} series, the end at {end}", series.len()),
            required: "a series at least, and moments that ascend up to the end".into(),
            because: "a line of steps goes from left to right".into(),
            help: "sort the moments, and leave out what did not happen".into(),
        });
    }
    let at = |moment: u64| (moment as f64 / *end as f64 * WIDTH as f64).round() as i64;
    let mut sheet = Sheet::new();
    let mut labels = Vec::new();
    let mut top = 0;
    for (i, s) in series.iter().enumerate() {
        let most = s.points.iter().map(|p| p.1).max().unwrap_or(0);
        let unit = UNIT.min(HIGHEST / i64::from(most.max(1))).max(1);
        labels.push((0, top + LABEL, format!("{}, at most {most}", s.label)));
        let bottom = top + LABEL + 8 + unit * i64::from(most.max(1));
        let mut outline = format!("M0 {bottom}");
        let mut areas = vec![(0, 0)];
        for (moment, value) in &s.points {
            outline += &format!("H{}V{}", at(*moment), bottom - unit * i64::from(*value));
            areas.push((at(*moment), unit * i64::from(*value)));
        }
        outline += &format!("H{WIDTH}");
        areas.push((WIDTH, 0));
        for pair in areas.windows(2) {
            let ((x, height), (next, _)) = (pair[0], pair[1]);
            if next > x && height > 0 {
                sheet.fill(pastel(i as i64), &[(x, bottom - height)], (next - x, height));
            }
        }
        sheet.lines(2, "#444444", outline);
        sheet.fill(Colour(0, 0, 0), &[(0, bottom)], (WIDTH, 1));
        top = bottom + GAP;
    }
    let style = |anchor| Style { size: LABEL, anchor, bold: false, fill: "#000000" };
    sheet.texts(style("start"), labels);
    sheet.texts(style("end"), vec![(WIDTH, top - GAP + LABEL + 4, format!("{end} {time}"))]);
    sheet.reach(WIDTH.max(text_width(title.chars().count(), LABEL)), top);
    Ok(sheet.finish(title, caption))
}
