//! `cutemplate new`: a crate with a kernel of each kind, its tests and its CI, which builds and passes as it is.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cutemplate::reserved;
use serde_json::json;

use crate::cli::args::NewArgs;
use crate::cli::output::{self, Failure, Output};

/// The files of the crate.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("new/manifest.toml")),
    ("build.rs", include_str!("new/build.rs")),
    ("kernels/scale.cu", include_str!("new/scale.cu")),
    ("src/lib.rs", include_str!("new/lib.rs")),
    ("tests/executor.rs", include_str!("new/executor.rs")),
    (".github/workflows/test.yml", include_str!("new/test.yml")),
    (".gitignore", "/target\n"),
];

/// Names that cargo refuses for a package, or that this one depends on.
const TAKEN: [&str; 12] = [
    "alloc",
    "build",
    "core",
    "cutemplate",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "proc_macro",
    "std",
    "test",
    "crate",
];

pub(crate) fn run(args: &NewArgs, out: &Output) -> Result<ExitCode, Failure> {
    let root = &args.path;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    named(&name, root)?;
    empty(root)?;
    let source = source(args.cutemplate.as_deref())?;
    let with = |text: &str| {
        let text = text.replace("@name@", &name).replace("@crate@", &name.replace('-', "_"));
        text.replace("@rust@", env!("CARGO_PKG_RUST_VERSION")).replace("@source@", &source)
    };
    for (file, text) in FILES {
        let path = root.join(file);
        write(&path, &with(text)).map_err(|e| {
            Failure::message(format_args!(
                "error[new]: cannot write {}\n  found:    {e}\n  required: a folder that can be written, and no file of that name\n  \
                 because:  files of yours are never overwritten\n  help:     remove what was written, and name another folder",
                path.display()
            ))
        })?;
    }
    let shown = root.display();
    out.text(format_args!(
        "{shown}: crate `{name}` with kernels row_sums (a recipe), fused (a function) and scale (CUDA C++)\n\n  cd {shown}\n  \
         CUTEMPLATE_FETCH=1 cargo test\n\nThe variable lets the first build download nvcc and CUTLASS's headers: 270 MB, pinned, once for a user. \
         It may be\nleft out where both are installed."
    ));
    if let Some(workspace) = workspace(root) {
        out.text(format_args!("\n{} is a workspace: name the crate among its `members`", workspace.display()));
    }
    let files: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
    out.object(json!({ "new": output::path(root), "name": name, "files": files }));
    Ok(ExitCode::SUCCESS)
}

/// Refuses what cargo, or Rust, would not take as the name of a crate.
fn named(name: &str, path: &Path) -> Result<(), Failure> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if starts && legal && name.len() <= 64 && !TAKEN.contains(&name) && !reserved::in_rust(&name.replace('-', "_")) {
        return Ok(());
    }
    Err(Failure::message(format_args!(
        "error[new]: the crate cannot be called `{}`\n  found:    the last part of {}, or --name\n  required: a letter, then letters, digits, \
         `-` and `_`, at most 64; no keyword of Rust, and no name that cargo keeps for itself\n  because:  it becomes the name of a package \
         and of a crate\n  help:     cutemplate new {} --name my-kernels",
        name.escape_debug(),
        path.display(),
        path.display()
    )))
}

/// Refuses a place that has something in it.
fn empty(root: &Path) -> Result<(), Failure> {
    let found = match fs::read_dir(root) {
        Ok(mut inside) => match inside.next() {
            None => return Ok(()),
            Some(one) => {
                one.map_or_else(|e| e.to_string(), |one| format!("{} in it", one.file_name().to_string_lossy()))
            }
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => e.to_string(),
    };
    Err(Failure::message(format_args!(
        "error[new]: {} is not free\n  found:    {found}\n  required: a folder that is empty, or not there\n  because:  files of yours are \
         never overwritten\n  help:     name another folder: cutemplate new my-kernels",
        root.display()
    )))
}

/// How the crate depends on this one: its repository, or a checkout.
fn source(checkout: Option<&Path>) -> Result<String, Failure> {
    let Some(path) = checkout else { return Ok(format!("git = {:?}", env!("CARGO_PKG_REPOSITORY"))) };
    let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
    let absolute = path.canonicalize().ok().filter(|_| manifest.contains("name = \"cutemplate\""));
    let absolute: Option<String> = absolute.and_then(|path| Some(path.to_str()?.to_owned()));
    match absolute {
        // A string of TOML, where it has neither quotes nor backslashes.
        Some(path) if !path.contains(['\'', '\n']) => Ok(format!("path = '{path}'")),
        _ => Err(Failure::message(format_args!(
            "error[new]: --cutemplate {} is not a checkout of cutemplate\n  found:    no Cargo.toml of the package `cutemplate` there, or a \
             path that TOML cannot hold\n  required: the folder of its Cargo.toml\n  because:  the crate would not build\n  help:     leave --cutemplate out to depend on its repository",
            path.display()
        ))),
    }
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create_new(path)?.write_all(text.as_bytes())
}

/// The manifest of a workspace that the folder lies in.
fn workspace(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let manifests = root.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    manifests.into_iter().find(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("[workspace]")))
}
