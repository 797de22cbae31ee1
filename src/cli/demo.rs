//! `cutemplate demo`: a race that is found without a GPU, then the whole path once, from a recipe to verified elements.

mod barrier;

use std::path::Path;
use std::process::ExitCode;

use cutemplate::arch::Targets;
use cutemplate::build::write_if_changed;
use cutemplate::emit::{Unit, render};
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use serde_json::json;

use crate::cli::args::{DemoArgs, On};
use crate::cli::check;
use crate::cli::device::{self, Device};
use crate::cli::output::{self, Failure, Output};
use crate::cli::run::{self, Run};

/// Ragged in both directions: the last tile of each row and column is cut off.
const ROWS: u64 = 1023;
const COLS: u64 = 511;

pub(crate) fn run(args: &DemoArgs, out: &Output) -> Result<ExitCode, Failure> {
    barrier::show(out)?;
    let recipe = ElementwiseAdd::default();
    out.section("The recipe", format_args!("  {recipe:?}\n"));

    let plan = recipe.plan(&Targets::default())?;
    out.section("The plan: every check passed", format_args!("{plan}\n"));
    out.object(json!({ "plan": check::object(&plan) }));

    let unit = render(&plan);
    let files = write(&unit, &args.out).map_err(|e| Failure::message(format_args!("{}: {e}", args.out.display())))?;
    out.section(
        "The C++, as a CuTe engineer would write it",
        format_args!("  {}\n\n{}\n", files.join("\n  "), kernel(&unit)),
    );
    out.object(json!({ "files": files }));

    let compiled = device::fatbin(&plan, &unit, out)?;
    out.section("What nvcc made of it", format_args!("  {}\n  {}\n", compiled.path().display(), compiled.manifest()));
    out.object(json!({ "fatbin": output::path(compiled.path()), "manifest": compiled.manifest() }));

    let inputs = ["a.npy", "b.npy"].iter().zip(1..).map(|(name, seed)| {
        let path = args.out.join(name);
        let mut matrix = Tensor::new(recipe.dtype, TensorLayout::contiguous(ROWS, COLS)).map_err(Failure::message)?;
        matrix.fill(Fill::Normal, seed);
        npy::write(&path, &matrix).map_err(Failure::message)?;
        npy::read(&path, recipe.dtype).map_err(Failure::message)
    });
    let inputs: Vec<Tensor> = inputs.collect::<Result<_, _>>()?;
    let (device, why) = Device::choose(On::Auto, None, false, out)?;
    out.section("The run: C = A + B, 1023 x 511, from a.npy and b.npy to c.npy", "");
    if let Some(why) = why {
        out.text(format_args!("no GPU: {why}; {device}, runs it"));
    }
    let run = Run { device: &device, problem: &[ROWS as i64, COLS as i64], ld: None, scalars: &[], stages: None };
    run::verified(&plan, inputs, &run, &[args.out.join("c.npy")], out)
}

/// The function that computes, of the whole text.
fn kernel(unit: &Unit) -> &str {
    let text = &unit.header().text;
    let from = text.find("\nkernel(").and_then(|at| text[..at].rfind("\n\n")).map_or(0, |at| at + 2);
    text[from..].split_inclusive("\n}\n").next().unwrap_or(text)
}

fn write(unit: &Unit, folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let mut paths = Vec::new();
    for file in unit.files() {
        let path = folder.join(&file.name);
        write_if_changed(&path, file.text.as_bytes())?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}
