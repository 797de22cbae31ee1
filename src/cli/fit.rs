//! `cutemplate bench --fit`: the cost of a launch and of an epilogue of a persistent kernel.

use std::process::ExitCode;

use cutemplate::arch::Arch;
use cutemplate::launch::Gpu;
use cutemplate::plan::Plan;
use cutemplate::recipe::product::Extents;
use cutemplate::settings::Settings;
use serde_json::json;

use crate::cli::args::Problem;
use crate::cli::device;
use crate::cli::lab::{Fit, Timed};
use crate::cli::output::{Failure, Output};
use crate::cli::product::{Measurement, Trials};

/// Tiles that each CTA computes.
const TURNS: [u64; 2] = [1, 4];

/// K, in tiles.
const DEPTHS: [u64; 4] = [8, 16, 32, 64];

/// M, N and K of a problem, and the tiles of its CTAs.
#[derive(Debug, PartialEq, Eq)]
struct Wave {
    turns: u64,
    extents: [u64; 3],
}

/// Problems that keep all clusters of a recipe equally busy.
fn waves(settings: &Settings) -> Option<Vec<Wave>> {
    let numbers = |key| settings.get(key)?.parse().ok();
    let [bm, bn, bk] = settings.get("tile")?.parse::<Extents<3>>().ok()?.0.map(u64::from);
    let [along_m, along_n] = settings.get("cluster")?.parse::<Extents<2>>().ok()?.0.map(u64::from);
    let ctas: u64 = numbers("ctas")?;
    let clusters = (ctas / (along_m * along_n)).max(1);
    // As square as their number allows.
    let rows = (1..=clusters).filter(|rows| clusters.is_multiple_of(*rows) && rows * rows <= clusters).max()?;
    let [m, n] = [rows * along_m * bm, clusters / rows * along_n * bn];
    let wave = |turns: u64, depth: u64| {
        let more = turns.isqrt();
        Wave { turns, extents: [m * more, n * (turns / more), depth * bk] }
    };
    Some(TURNS.iter().flat_map(|turns| DEPTHS.map(|depth| wave(*turns, depth))).collect())
}

/// Measures the plan on its waves and prints the fit.
pub(crate) fn run(
    measurement: &Measurement<'_>,
    gpu: Result<Gpu, Failure>,
    plan: &Plan,
    out: &Output,
) -> Result<ExitCode, Failure> {
    let refused =
        || Failure::message(format_args!("--fit: `{}` is not persistent: no tile, cluster and ctas", plan.family()));
    let waves = waves(plan.settings()).ok_or_else(refused)?;
    let gpu = gpu?;
    let here = device::text_on(&gpu, plan);
    if !here.targets().archs().contains(&Arch::Sm90a) {
        // Its waves are of the settings for sm_90a.
        return Err(Failure::message(format_args!("--fit: found {}, required the text for sm_90a", here.name())));
    }
    let mut trials = Trials::default();
    for wave in &waves {
        trials.add(&Problem(wave.extents.map(|extent| extent as i64).to_vec()), [plan.clone()]);
    }
    let reports = measurement.run(&gpu, trials, "bench", out)?;
    if let Some(wrong) = reports.iter().find(|report| report.kernels.is_empty()) {
        return Err(Failure::message(format_args!("--fit: the kernel is wrong on {:?}", wrong.problem)));
    }
    let timed: Vec<Timed> = waves
        .iter()
        .zip(&reports)
        .map(|(wave, report)| Timed { turns: wave.turns, k: wave.extents[2], seconds: report.kernels[0].seconds })
        .collect();
    let fit =
        Fit::of(&timed).ok_or_else(|| Failure::message("--fit: the times do not tell launch and epilogue apart"))?;
    let us = |seconds: f64| seconds * 1e6;
    out.text(format_args!(
        "{}: t = L + T * (a * K + E), T tiles a CTA\n  L {:.3} us: launch and fill\n  E {:.3} us: exposed epilogue of a tile\n  \
         a {:.4} us for 1024 of K\n  within {:.2} % of every time",
        plan.name(),
        us(fit.launch_seconds),
        us(fit.epilogue_seconds),
        us(fit.seconds_per_k * 1024.0),
        fit.largest_error * 100.0
    ));
    out.object(json!({ "fit": { "kernel": plan.name(), "fit": fit, "timed": timed } }));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_fill_every_cta_as_often() {
        let settings = |text: &str| Settings::parse_lines(text);
        let usual = waves(&settings("tile=128x256x64\ncluster=2x1\nctas=132")).expect("persistent");
        assert_eq!(usual.len(), 8);
        // 66 clusters are 6 by 11.
        assert_eq!(usual[0], Wave { turns: 1, extents: [6 * 256, 11 * 256, 512] });
        assert_eq!(usual[7], Wave { turns: 4, extents: [12 * 256, 22 * 256, 4096] });
        for Wave { turns, extents: [m, n, _] } in usual {
            assert_eq!(m / 128 * (n / 256), 132 * turns);
        }
        assert_eq!(waves(&settings("tile=128x256x64\ncluster=2x1")), None);
        assert_eq!(waves(&settings("tile=wide\ncluster=2x1\nctas=132")), None);
    }
}
