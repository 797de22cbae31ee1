//! The kernels of a bundle in a crate, by its build script.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{BundleError, BundleErrorKind as Kind};
use super::files::write_if_changed;
use super::module::{Embedded, Part, module};
use super::{Bundle, file_error};
use crate::artifact::Code;
use crate::plan::Draft;

/// The file with the Rust side of all kernels.
pub(crate) const MODULES: &str = "cutemplate.rs";

/// As [`try_embed`]; prints the error and ends the process where that fails, as a build script should.
pub fn embed(path: impl AsRef<Path>) {
    embed_as(path, "cutemplate");
}

/// The same for a crate that gives this one another name in its Cargo.toml.
pub fn embed_as(path: impl AsRef<Path>, crate_name: &str) {
    if let Err(error) = try_embed(path, crate_name) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// For a build script: puts the kernels of a bundle into the crate. It writes `cutemplate.rs` and the included files to
/// `OUT_DIR`, as [`Config::compile`](crate::build::Config::compile) does, and the crate's binary holds them from then
/// on. It needs no nvcc, no CUTLASS and no network. A path begins at the crate's folder. cargo runs the script again if
/// the bundle changes.
///
/// # Errors
/// The bundle cannot be read, or is not whole; the files cannot be written.
pub fn try_embed(path: impl AsRef<Path>, crate_name: &str) -> Result<(), BundleError> {
    let path = path.as_ref();
    println!("cargo::rerun-if-changed={}", path.display());
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else {
        return Err(BundleError::new(Kind::File, "OUT_DIR is not set").help("call this from build.rs"));
    };
    let modules = unpack(&out, &open(path)?, &format!("::{crate_name}"))?;
    put(&out, MODULES, modules.as_bytes())
}

/// Reads a bundle while a crate is built. The crate then holds these bytes.
pub(crate) fn open(path: &Path) -> Result<Bundle<'static>, BundleError> {
    let bytes = fs::read(path).map_err(|e| file_error(path, &e))?;
    Ok(Bundle::whole(super::Archive::read(bytes.into())?))
}

/// Writes the files that the modules of all kernels include. Returns the modules' text, for a crate that calls this one
/// `root`.
pub(crate) fn unpack(out: &Path, bundle: &Bundle<'_>, root: &str) -> Result<String, BundleError> {
    let mut modules = String::new();
    for kernel in &bundle.contents().kernels {
        let artifact = bundle.kernel(&kernel.name)?;
        let mut rows: Vec<Draft> = Vec::new();
        for (text, row) in artifact.texts().iter().zip(&kernel.texts) {
            rows.push(serde_json::from_str(text.abi).map_err(|e| {
                BundleError::new(Kind::Contents, format!("{} cannot be read", row.abi_file())).found(e.to_string())
            })?);
            let Code::Fatbin { bytes, ptx, .. } = text.code else { continue };
            let ptx = ptx.text().map_err(|e| {
                BundleError::new(Kind::Contents, format!("{} cannot be unpacked", row.file(".ptx.z")))
                    .found(e.to_string())
            })?;
            put(out, &row.file(".fatbin"), bytes)?;
            put(out, &row.file(".ptx"), ptx.as_bytes())?;
            put(out, &row.abi_file(), text.abi.as_bytes())?;
        }
        let parts = rows.iter().zip(artifact.texts()).map(|(row, text)| {
            let code = match text.code {
                Code::Fatbin { sha256, .. } => Embedded::Fatbin { sha256 },
                Code::Stub { why } => Embedded::Stub { why },
            };
            (row, text.digest.to_owned(), code)
        });
        let parts = parts.zip(&kernel.texts).map(|((row, digest, code), text)| Part {
            row,
            digest,
            code,
            stem: text.manifest.name.clone(),
        });
        modules += &module(root, &kernel.name, &parts.collect::<Vec<_>>());
    }
    Ok(modules)
}

fn put(out: &Path, name: &str, bytes: &[u8]) -> Result<(), BundleError> {
    let path = out.join(name);
    write_if_changed(&path, bytes).map(|_| ()).map_err(|e| {
        BundleError::new(Kind::File, format!("cannot write {}", path.display())).found(e.to_string()).help("")
    })
}
