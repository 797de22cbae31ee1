//! `cutemplate bundle` and `cutemplate inspect`.

use std::path::Path;
use std::process::ExitCode;

use cutemplate::arch::Arch;
use cutemplate::build::{Config, write_if_changed};
use cutemplate::bundle::{self, Difference, Inspected, KernelRow, StaleBundle, TextRow};
use cutemplate::launch::Gpu;
use serde_json::json;

use crate::cli::args::{BundleArgs, Capability, InspectArgs};
use crate::cli::families::Families;
use crate::cli::output::{self, Failure, GOOD, HEADING, Output, counted};
use crate::cli::progress::on_terminal;

/// The architectures of a bundle whose makers name none: those of the GPUs that kernels are compiled for.
const USUAL: [Arch; 6] = [Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90a, Arch::Sm100, Arch::Sm120];

/// The architecture of GPUs without `cp.async`, for kernels that do not need it.
const OLDEST: Arch = Arch::Sm75;

pub(crate) fn write(args: &BundleArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    if args.check {
        return check(args, families, out);
    }
    let (archs, wanted) = if args.arch.is_empty() { (&USUAL[..], Some(OLDEST)) } else { (&args.arch[..], None) };
    let config = archs.iter().fold(families.config(), |config, arch| config.arch(*arch));
    let config = wanted.into_iter().fold(config, Config::arch_if_possible);
    let config = args.recipes.iter().try_fold(config, |config, file| config.recipes(file)).map_err(Failure::message)?;
    let packed = on_terminal(out, "compiles the kernels of the bundle", || config.pack());
    let (bytes, sha256) = packed.map_err(Failure::message)?;
    let failed = |e| Failure::message(format_args!("cannot write {}: {e}", args.file.display()));
    write_if_changed(&args.file, &bytes).map_err(failed)?;
    let Inspected { contents, .. } = bundle::inspect(&args.file).map_err(Failure::message)?;
    let kernels = counted(contents.kernels.len() as u64, "kernel", "kernels");
    out.text(format_args!("{}: {kernels}, {} bytes, sha256 {sha256}", args.file.display(), bytes.len()));
    out.object(
        json!({ "bundle": output::path(&args.file), "kernels": contents.kernels.len(), "bytes": bytes.len(), "sha256": sha256 }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Whether a bundle is of its recipes: for a CI without nvcc.
fn check(args: &BundleArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    let config = args.arch.iter().fold(families.config(), |config, arch| config.arch(*arch));
    let config = args.recipes.iter().try_fold(config, |config, file| config.recipes(file)).map_err(Failure::message)?;
    let differences = config.differences(&args.file).map_err(Failure::message)?;
    let told = differences.iter().map(
        |Difference { kernel, found, required }| json!({ "kernel": kernel, "found": found, "required": required }),
    );
    out.object(json!({ "bundle": output::path(&args.file), "differences": told.collect::<Vec<_>>() }));
    let path = args.file.display();
    if differences.is_empty() {
        out.text(format_args!("{path} is of these recipes"));
        return Ok(ExitCode::SUCCESS);
    }
    let recipes: String = args.recipes.iter().map(|file| format!(" --recipes {}", file.display())).collect();
    let archs: String = args.arch.iter().map(|arch| format!(" --arch {arch}")).collect();
    let help = format!("cutemplate bundle {path}{recipes}{archs}");
    out.text(StaleBundle { path: args.file.clone(), differences, help });
    Ok(ExitCode::FAILURE)
}

/// The GPU that is asked for, by name, compute capability and, where it is there, driver.
type Asked = (String, (u32, u32), Option<(u32, u32)>);

pub(crate) fn inspect(args: &InspectArgs, out: &Output) -> Result<ExitCode, Failure> {
    let inspected = bundle::inspect(&args.file).map_err(Failure::message)?;
    let (asked, why) = match (args.on, Gpu::find()) {
        (Some(Capability(x, y)), _) => (Some((format!("compute capability {x}.{y}"), (x, y), None)), None),
        (None, Ok(gpu)) => (Some((gpu.to_string(), gpu.capability(), Some(gpu.driver()))), None),
        (None, Err(none)) => (None, Some(none)),
    };
    head(&args.file, &inspected, out);
    if args.licences {
        let texts = inspected.contents.licences.iter().zip(&inspected.licence_texts);
        for (licence, text) in texts.filter_map(|(licence, text)| Some((licence, text.as_ref()?))) {
            out.text(format_args!("\n{HEADING}{}: {}{HEADING:#}\n{text}", licence.licence, licence.of));
            out.object(json!({ "licence": licence, "text": text }));
        }
    }
    let mut runs = true;
    for (kernel, refused) in inspected.contents.kernels.iter().zip(&inspected.refused) {
        runs &= tell(kernel, refused.as_deref(), asked.as_ref(), out);
    }
    if why.is_some() {
        out.text("no GPU: --on 9.0 tells whether it runs on one of that compute capability");
    }
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn head(file: &Path, inspected: &Inspected, out: &Output) {
    let Inspected { contents, sha256, .. } = inspected;
    let licences: Vec<String> = contents.licences.iter().map(|l| format!("\n  {}: {}", l.licence, l.of)).collect();
    let (file, by) = (file.display(), &contents.cutemplate);
    out.text(format_args!("{file}: by cutemplate {by}, sha256 {sha256}\nlicences{}", licences.concat()));
    out.object(json!({
        "bundle": file.to_string(), "cutemplate": by, "sha256": sha256, "licences": contents.licences,
        "files": contents.files,
    }));
}

/// Whether the kernel runs there, or was not asked about.
fn tell(kernel: &KernelRow, refused: Option<&str>, asked: Option<&Asked>, out: &Output) -> bool {
    let runs = match (refused, asked) {
        (Some(refused), _) => Some(Err(refused.to_owned())),
        (None, Some((_, capability, Some(driver)))) => Some(kernel.runs(*capability, *driver).map(|runs| (runs, None))),
        (None, Some((_, capability, None))) => {
            Some(kernel.runs_from(*capability).map(|(runs, driver)| (runs, Some(driver))))
        }
        (None, None) => None,
    };
    let on = asked.map_or_else(|| "here".to_owned(), |(name, ..)| format!("on {name}"));
    let mut lines = vec![format!("  {}", kernel.recipe)];
    lines.extend(kernel.texts.iter().map(text));
    lines.extend(runs.as_ref().map(|runs| match runs {
        Ok((runs, None)) => format!("  {GOOD}runs{GOOD:#} {on}: {runs}"),
        Ok((runs, Some((major, minor)))) => {
            format!("  {GOOD}runs{GOOD:#} {on} with a driver for CUDA {major}.{minor} or later: {runs}")
        }
        Err(why) => format!("  does not run {on}: {why}"),
    }));
    out.text(format_args!("{HEADING}{}{HEADING:#}\n{}", kernel.name, lines.join("\n")));
    out.object(json!({
        "kernel": kernel, "on": asked.map(|(name, ..)| name), "runs": runs.as_ref().map(Result::is_ok),
        "by": runs.as_ref().and_then(|runs| runs.as_ref().ok()).map(|(runs, _)| runs), "why_not": runs.as_ref().and_then(|runs| runs.as_ref().err()),
    }));
    !matches!(runs, Some(Err(_)))
}

fn text(text: &TextRow) -> String {
    let ((sass, _), (major, minor)) = (text.driver, text.ptx_driver);
    let rows = text.manifest.to_string().replace('\n', "\n  ");
    format!("  {rows}\n    drivers for CUDA {sass}.0 and later; for PTX {major}.{minor} and later")
}
