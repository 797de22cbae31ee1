//! What compilers make of a test's own texts, beside the build's other files: of the same texts, command and tools it is made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutemplate::build::Compiler;
use cutemplate::emit::SourceFile;
use cutlass_sys::HostToolchain;

/// nvcc, started as a build starts it: by the launcher that is asked for, which may count.
fn nvcc_of(path: &Path) -> Command {
    match std::env::var_os("CUTEMPLATE_NVCC_LAUNCHER").filter(|launcher| !launcher.is_empty()) {
        Some(launcher) => {
            let mut command = Command::new(launcher);
            command.arg(path);
            command
        }
        None => Command::new(path),
    }
}

/// The file of that name that nvcc makes in a folder with these files.
pub(crate) fn once(
    compiler: &Compiler,
    arguments: &[&str],
    files: &[SourceFile],
    makes: &str,
) -> Result<PathBuf, String> {
    let tools = compiler.toolchain();
    let cutlass = tools.cutlass.as_ref().map(|cutlass| cutlass.version.to_string()).unwrap_or_default();
    let versions = [tools.nvcc.version.to_string(), cutlass, tools.cxx.version.to_string()];
    by(&tools.nvcc.path, nvcc_of(&tools.nvcc.path), &versions, arguments, files, makes)
}

/// The file of that name that the host's C++ compiler makes in a folder with these files.
#[allow(dead_code, reason = "each test file uses a part of it")]
pub(crate) fn by_host(
    tools: &HostToolchain,
    arguments: &[&str],
    files: &[SourceFile],
    makes: &str,
) -> Result<PathBuf, String> {
    let versions = [tools.cutlass.version.to_string(), tools.cuda.version.to_string(), tools.cxx.version.to_string()];
    by(&tools.cxx.path, Command::new(&tools.cxx.path), &versions, arguments, files, makes)
}

fn by(
    program: &Path,
    mut command: Command,
    versions: &[String],
    arguments: &[&str],
    files: &[SourceFile],
    makes: &str,
) -> Result<PathBuf, String> {
    let program = program.to_string_lossy();
    let texts = files.iter().flat_map(|file| [file.name.as_str(), file.text.as_str()]);
    let words =
        texts.chain([&*program, makes]).chain(arguments.iter().copied()).chain(versions.iter().map(String::as_str));
    // A word is told from its neighbours by a byte that no text has.
    let bytes = words.flat_map(|word| word.bytes().chain([0xff]));
    let key = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = all.join(format!("made-{key:016x}"));
    let made = folder.join(makes);
    if made.is_file() {
        return Ok(made);
    }
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    let stage = tempfile::tempdir_in(all).map_err(fail)?;
    for file in files {
        fs::write(stage.path().join(&file.name), &file.text).map_err(fail)?;
    }
    let output = command.args(arguments).current_dir(stage.path()).output().map_err(fail)?;
    if !output.status.success() || !stage.path().join(makes).is_file() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    // Another process may have made the same meanwhile.
    match fs::rename(stage.path(), &folder) {
        Err(error) if !made.is_file() => Err(fail(error)),
        _ => Ok(made),
    }
}
