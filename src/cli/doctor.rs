//! `cutemplate doctor`.

use std::process::ExitCode;

use cutemplate::launch::Gpu;
use serde_json::json;

use crate::cli::output::{self, Failure, Output};

pub(crate) fn run(out: &Output) -> Result<ExitCode, Failure> {
    let report = cutlass_sys::doctor();
    out.text(&report);
    for part in &report.parts {
        out.object(json!({ "part": part }));
    }
    out.object(
        json!({ "cache_dir": report.cache_dir.as_deref().map(output::path), "fetch_allowed": report.fetch_allowed }),
    );
    match Gpu::find() {
        Ok(gpu) => {
            let (major, minor) = gpu.capability();
            out.text(format_args!("GPU: {gpu}"));
            out.object(json!({ "gpu": { "name": gpu.name(), "compute_capability": [major, minor] } }));
        }
        Err(reason) => {
            // A missing GPU is not a fault: the executor runs kernels on the CPU.
            out.text(format_args!(
                "GPU: none, kernels run on the CPU executor: {}\n  help: {}",
                reason.reason, reason.help
            ));
            out.object(json!({ "gpu": null, "because": reason.to_string() }));
        }
    }
    Ok(if report.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
