//! `cutemplate bench --chart`: ratios as bars.

use std::path::Path;

use cutemplate::draw::{self, Bar, Bars, Mark, Options};

use crate::cli::lab::{ProductReport, ProductRow};
use crate::cli::output::Failure;

/// The label of one kernel on one problem: `4096x4096x4096 kernel`, with the kernel only if there are several.
fn label(report: &ProductReport, row: &ProductRow, what: &str) -> String {
    let [m, n, k, l] = report.problem;
    let batches = if l == 1 { String::new() } else { format!("x{l}") };
    let kernel = if report.kernels.len() == 1 { String::new() } else { format!(" {}", row.kernel) };
    format!("{m}x{n}x{k}{batches}{kernel}{what}")
}

fn bars(reports: &[ProductReport]) -> Bars {
    let mut bars = Vec::new();
    for report in reports {
        for row in &report.kernels {
            bars.push(Bar { label: label(report, row, ""), value: row.ratio, bound: None });
            if let (Some(own), Some(base)) = (row.sustained, report.baseline.sustained) {
                let value = own.tflop_per_s / base.tflop_per_s;
                bars.push(Bar { label: label(report, row, ", sustained"), value, bound: None });
            }
        }
    }
    let mut libraries: Vec<&str> = reports.iter().map(|report| report.baseline.library.as_str()).collect();
    libraries.dedup();
    let first = reports.first();
    let title = first.map_or(String::new(), |report| format!("{} inputs, {}", report.inputs, report.device));
    let marks = vec![Mark { label: libraries.join(", "), value: 1.0 }];
    Bars { title, unit: "ratio".into(), bars, marks, caption: Vec::new() }
}

/// Draws the ratio of each kernel that was timed.
pub(crate) fn write(path: &Path, reports: &[ProductReport]) -> Result<(), Failure> {
    let svg = draw::bars(&bars(reports), &Options::default()).map_err(Failure::message)?;
    cutemplate::build::write_if_changed(path, svg.as_bytes())
        .map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))
        .map(drop)
}
