//! The kernels of a bundle in a crate, by its build script.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{BundleError, BundleErrorKind as Kind};
use super::files::write_if_changed;
use super::module::{Embedded, Part, module};
use super::recipes::{RecipesError, StaleBundle, differences, read_recipes};
use super::{Bundle, Contents, file_error};
use crate::artifact::Code;
use crate::diagnostic::debug_as_display;
use crate::plan::Draft;
use crate::recipe::{FAMILIES, Family};

/// The file with the Rust side of all kernels.
pub(crate) const MODULES: &str = "cutemplate.rs";

/// The directive by which `include_kernels!` finds that file, of this output directory.
pub(crate) fn included(out: &Path) -> String {
    format!("rustc-env=CUTEMPLATE_KERNELS={}", out.join(MODULES).display())
}

/// As [`try_embed`]; prints the error and ends the process where that fails, as a build script should.
///
/// ```no_run
/// // build.rs
/// cutemplate::bundle::embed("kernels.bundle").recipes("kernels.txt");
/// ```
pub fn embed(path: impl AsRef<Path>) -> Embedding {
    embed_as(path, "cutemplate")
}

/// The same for a crate that gives this one another name in its Cargo.toml.
pub fn embed_as(path: impl AsRef<Path>, crate_name: &str) -> Embedding {
    or_end(try_embed(path, crate_name))
}

fn or_end<T, E: fmt::Display>(done: Result<T, E>) -> T {
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    })
}

/// A bundle whose kernels were put into a crate.
#[derive(Clone, Debug)]
pub struct Embedding {
    path: PathBuf,
    contents: Contents,
    /// Families that files of recipes may name.
    families: Vec<Family>,
}

/// A bundle is not of a file of recipes, or the file cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The file cannot be used.
    #[error(transparent)]
    Recipes(#[from] RecipesError),
    /// The bundle was made of other recipes.
    #[error(transparent)]
    Stale(#[from] StaleBundle),
}

debug_as_display!(EmbedError);

impl Embedding {
    /// Adds a family of another crate to those that files of recipes may name. Comes before [`Embedding::recipes`].
    #[must_use]
    pub fn family(mut self, family: Family) -> Self {
        self.families.push(family);
        self
    }

    /// Compares the bundle with the file of recipes that it was made of: a bundle that is older than its recipes is not used
    /// silently. Prints the kernels that differ and ends the process, as a build script should. cargo runs the script again if
    /// the file changes. Several files are compared one after the other.
    pub fn recipes(self, path: impl AsRef<Path>) -> Self {
        or_end(self.try_recipes(path));
        self
    }

    /// The same, for whoever handles the error.
    ///
    /// # Errors
    /// A kernel of the file is missing in the bundle, or has other settings there; the file cannot be read, or has a line that is no
    /// recipe.
    pub fn try_recipes(&self, path: impl AsRef<Path>) -> Result<(), EmbedError> {
        let path = path.as_ref();
        println!("cargo::rerun-if-changed={}", path.display());
        let listed = read_recipes(path, &self.families)?;
        let asked = listed.iter().map(|kernel| (kernel.name.as_str(), Some((kernel.family.name, &kernel.whole))));
        let differences = differences(&self.contents, asked, &[]);
        if differences.is_empty() {
            return Ok(());
        }
        let help = format!("cutemplate bundle {} --recipes {}", self.path.display(), path.display());
        Err(StaleBundle { path: self.path.clone(), differences, help }.into())
    }
}

/// For a build script: puts the kernels of a bundle into the crate. It writes `cutemplate.rs` and the included files to
/// `OUT_DIR`, as [`Config::compile`](crate::build::Config::compile) does, and the crate's binary holds them from then
/// on. It needs no nvcc, no CUTLASS and no network. A path begins at the crate's folder. cargo runs the script again if
/// the bundle changes.
///
/// # Errors
/// The bundle cannot be read, or is not whole; the files cannot be written.
pub fn try_embed(path: impl AsRef<Path>, crate_name: &str) -> Result<Embedding, BundleError> {
    let path = path.as_ref();
    println!("cargo::rerun-if-changed={}", path.display());
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else {
        return Err(BundleError::new(Kind::File, "OUT_DIR is not set").help("call this from build.rs"));
    };
    let bundle = open(path)?;
    let modules = unpack(&out, &bundle, &format!("::{crate_name}"))?;
    put(&out, MODULES, modules.as_bytes())?;
    println!("cargo::{}", included(&out));
    Ok(Embedding { path: path.to_owned(), contents: bundle.contents().clone(), families: FAMILIES.to_vec() })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The bundle and the recipes of an example: unchanged, changed, and a file that is none.
    #[test]
    fn a_bundle_that_is_older_than_its_recipes_is_told_with_what_differs() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/row_sums");
        let bundle = open(&example.join("kernels.bundle")).expect("it is shipped");
        let embedding = Embedding {
            path: "kernels.bundle".into(),
            contents: bundle.contents().clone(),
            families: FAMILIES.to_vec(),
        };
        embedding.try_recipes(example.join("kernels.txt")).expect("it was made of them");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kernels.txt");
        let told = |text: &str| {
            fs::write(&path, text).expect("written");
            let error = embedding.try_recipes(&path).expect_err("it is of others");
            format!("{error:?}").replace(&path.display().to_string(), "kernels.txt")
        };
        assert_eq!(
            told("row_sums sum expr=|x; scale| scale * x; in=f32:(?,1); threads=128"),
            "error[bundle]: kernels.bundle is not of this crate's recipes\n  \
               kernel `row_sums`\n    \
                 found:    expr=|a; alpha| alpha * a\n    \
                 required: expr=|x; scale| scale * x\n  \
               because:  what is asked for, and what is launched, would be two kernels\n  \
               help:     `cutemplate bundle kernels.bundle --recipes kernels.txt` makes it again, where nvcc is"
        );
        assert!(told("row_sums").starts_with("error[recipes]: kernels.txt:1 is not a recipe\n  found:    `row_sums`"));
        fs::remove_file(&path).expect("it was there");
        let missing = embedding.try_recipes(&path).expect_err("there is no file").to_string();
        assert!(
            missing.starts_with("error[recipes]: cannot read ") && missing.contains("begins at the crate's folder"),
            "{missing}"
        );
    }
}
