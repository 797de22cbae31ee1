//! `cutemplate emit`.

use std::process::ExitCode;

use cutemplate::emit::{SourceFile, render};
use serde_json::json;

use crate::cli::args::EmitArgs;
use crate::cli::families::Families;
use crate::cli::output::{self, Failure, Output};

pub(crate) fn run(args: &EmitArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan(families, out)?;
    let units: Vec<_> = plan.texts().iter().map(render).collect();
    for file in units.iter().flat_map(|unit| unit.files()) {
        match &args.out {
            None => {
                out.text(format_args!("// ---- {}\n{}", file.name, file.text));
                out.object(json!({ "file": file.name, "text": file.text }));
            }
            Some(folder) => {
                let path = folder.join(&file.name);
                write(folder, file)
                    .map_err(|e| Failure::message(format_args!("cannot write {}: {e}", path.display())))?;
                out.text(path.display());
                out.object(json!({ "file": file.name, "path": output::path(&path) }));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the file whole or not at all, and leaves it alone where it has that text already.
fn write(folder: &std::path::Path, file: &SourceFile) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    cutemplate::build::write_if_changed(&folder.join(&file.name), file.text.as_bytes()).map(|_| ())
}
