//! Pictures of the executor's counts.

use std::path::Path;

use cutemplate::draw::{self, Series, Steps};
use cutemplate::exec::{Profile, Stages};

use crate::cli::output::Failure;

/// Draws the work in flight in the first block.
pub(crate) fn draw_stages(path: &Path, name: &str, profile: &Profile) -> Result<(), Failure> {
    let Some(last) = profile.stages.last() else {
        return Err(Failure::message(format_args!(
            "{name} fills no stages by bulk copies, and has no wgmma products to draw"
        )));
    };
    let series = |label: &str, of: fn(&Stages) -> u32| {
        let mut points: Vec<(u64, u32)> = profile.stages.iter().map(|s| (s.turn, of(s))).collect();
        points.dedup_by_key(|p| p.1);
        Series { label: label.to_owned(), points }
    };
    let chart = Steps {
        title: format!("{name}: work in flight in its first block or cluster"),
        time: "turns of warps".to_owned(),
        end: last.turn + 1,
        series: vec![series("stages being filled", |s| s.filling), series("wgmma products of a warp", |s| s.products)],
        caption: vec![
            "Copies and products finish as late as the rules allow: when something waits for them.".to_owned(),
        ],
    };
    let options = draw::Options { most_cells: draw::Options::LIMIT };
    let svg = draw::steps(&chart, &options).map_err(Failure::message)?;
    std::fs::write(path, svg).map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))
}
