//! The settings of a launch file, besides arguments.

use super::bad;
use super::check::Checked;
use super::json::Json;
use crate::FindingKind;
use crate::{Allow, Error, Launch, Modes, Placement, TensorCores};

/// Kinds of findings that a file may name.
const KINDS: [FindingKind; 8] = [
    FindingKind::OutOfBounds,
    FindingKind::Misaligned,
    FindingKind::WriteToInput,
    FindingKind::Uninitialized,
    FindingKind::Race,
    FindingKind::BarrierMisuse,
    FindingKind::Asynchrony,
    FindingKind::TensorMap,
];

/// Sets the grid and the checks of a launch from the file.
pub(super) fn tell<'a>(mut launch: Launch<'a>, said: &Checked<'_>) -> Launch<'a> {
    let sizes = |key: &str| {
        said.numbers(key).map(|all| all.into_iter().map(|n| u32::try_from(n).unwrap_or(u32::MAX)).collect::<Vec<_>>())
    };
    launch = launch.modes(modes(said));
    launch = launch.grid(&sizes("grid").unwrap_or_default()).block(&sizes("block").unwrap_or_default());
    if let Some(cluster) = sizes("cluster") {
        launch = launch.cluster(&cluster);
    }
    if let Some(programmatic) = said.flag("programmatic") {
        launch = launch.programmatic(programmatic);
    }
    if let Some(cooperative) = said.flag("cooperative") {
        launch = launch.cooperative(cooperative);
    }
    if let Some(bytes) = said.whole("dynamic_smem") {
        launch = launch.dynamic_smem(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    if let Some(budget) = said.whole("step_budget") {
        launch = launch.step_budget(budget);
    }
    if said.text("placement") == Some("exact") {
        launch = launch.placement(Placement::Exact);
    }
    match said.text("tensor_cores") {
        Some("hopper") => launch.tensor_cores(TensorCores::Hopper),
        Some("ampere") => launch.tensor_cores(TensorCores::Ampere),
        _ => launch,
    }
}

fn modes(said: &Checked<'_>) -> Modes {
    let mut modes = Modes::PLAIN;
    for word in said.get("modes").map_or(&[][..], Json::items).iter().filter_map(Json::text) {
        match word {
            "bounds" => modes.bounds = true,
            "init" => modes.init = true,
            "races" => modes.races = true,
            "all" => modes = Modes::ALL,
            _ => {}
        }
    }
    modes
}

/// A rule of the key `allow`.
pub(super) fn allow(said: &Checked<'_>) -> Result<Allow, Error> {
    let places = [
        said.text("source").map(|source| line(said, source)).transpose()?,
        said.whole("ptx_line").map(|line| Allow::ptx_line(u32::try_from(line).unwrap_or(u32::MAX))),
        said.text("entry").filter(|entry| !entry.is_empty()).map(Allow::entry),
    ];
    let Some(mut rule) = places.into_iter().flatten().reduce(Allow::and) else {
        return Err(bad(format!("`{}` allows everything", said.path))
            .found(said.value.to_string())
            .required("`source`, `ptx_line` or `entry`, to say where"));
    };
    if let Some(kind) = said.text("finding").and_then(|word| KINDS.into_iter().find(|kind| kind.as_str() == word)) {
        rule = rule.kind(kind);
    }
    Ok(rule.because(said.text("because").unwrap_or_default()))
}

/// `k.cu:12`
fn line(said: &Checked<'_>, source: &str) -> Result<Allow, Error> {
    let parts = source.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
    match parts.filter(|(file, line)| !file.is_empty() && *line > 0) {
        Some((file, line)) => Ok(Allow::source(file, line)),
        None => Err(bad(format!("`{}` cannot be read", said.at("source")))
            .found(format!("{source:?}"))
            .required("a file and a line, as \"k.cu:12\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::ALLOWED;
    use super::KINDS;

    #[test]
    fn every_kind_has_its_word() {
        assert_eq!(KINDS.map(crate::FindingKind::as_str), ALLOWED);
    }
}
