//! Bundles: compiled kernels in one file, with all that a launch needs, for machines and crates without nvcc.
//!
//! `cutemplate bundle` writes one. [`Config::bundle`](crate::build::Config::bundle) uses it instead of compiling if it
//! exists. `embed` puts its kernels into a crate whose build script has no generator at all:
//!
//! ```no_run
//! // build.rs, with cutemplate's feature `bundle`.
//! // The crate then says cutemplate::include_kernels!();
//! # #[cfg(feature = "bundle")]
//! cutemplate::bundle::embed("kernels.bundle").recipes("kernels.txt");
//! ```
//!
//! `recipes` names the file that the bundle was made of, and fails the build where that has changed since.
//!
//! An embedded bundle is pinned: the crate's binary holds the kernels and their sha256. A file that is read at run time
//! is only as trustworthy as its author. [`Bundle::read`] requires a sha256 that was [pinned](crate::pinned) when the
//! program was compiled. [`Bundle::read_unchecked`] takes any file, and is unsafe.

mod archive;
mod contents;
#[cfg(feature = "bundle")]
mod embed;
mod error;
#[cfg(feature = "bundle")]
pub(crate) mod files;
mod manifest;
#[cfg(feature = "bundle")]
mod module;
#[cfg(feature = "build")]
mod pack;
#[cfg(feature = "bundle")]
mod recipes;

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use archive::Archive;
pub use contents::{Contents, KernelRow, Licence, Runs, TextRow};
#[cfg(feature = "bundle")]
pub use embed::{EmbedError, Embedding, embed, embed_as, try_embed};
#[cfg(feature = "build")]
pub(crate) use embed::{MODULES, included, open, unpack};
pub use error::{BundleError, BundleErrorKind};
pub use manifest::{FileDigest, Manifest, Resources};
#[cfg(feature = "bundle")]
pub use module::Embedded;
#[cfg(feature = "build")]
pub(crate) use module::plan_module;
#[cfg(feature = "build")]
pub use module::rust_module;
#[cfg(feature = "build")]
pub(crate) use pack::{Packed, no_licence, pack};

#[cfg(feature = "bundle")]
pub use recipes::{Difference, RecipesError, StaleBundle};
#[cfg(feature = "build")]
pub(crate) use recipes::{Listed, differences, read_recipes, superfluous};

use crate::artifact::{Artifact, Code, Parts, Ptx, Text};
use crate::digest::{Digest, Pinned};
use crate::plan::Abi;

/// A bundle whose kernels may be loaded: somebody vouches for it.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    archive: Archive<'a>,
    /// For each text, in hexadecimal: its digest and the sha256 of its fatbin.
    sums: Vec<Vec<[String; 2]>>,
}

fn file_error(path: &Path, error: &std::io::Error) -> BundleError {
    BundleError::new(BundleErrorKind::File, format!("cannot read {}", path.display()))
        .found(error.to_string())
        .help("name a file that `cutemplate bundle` wrote")
}

/// The description of a bundle. It cannot load any kernel.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Its contents.
    pub contents: Contents,
    /// Its sha256.
    pub sha256: Digest,
    /// For each kernel, the reason why this version of the crate does not launch it, if any.
    pub refused: Vec<Option<String>>,
    /// The text of each of [`Contents::licences`] that the bundle carries.
    pub licence_texts: Vec<Option<String>>,
}

/// Looks into a bundle.
///
/// # Errors
/// The file cannot be read, or is not a whole bundle of this version's format.
pub fn inspect(path: &Path) -> Result<Inspected, BundleError> {
    let bytes = fs::read(path).map_err(|e| file_error(path, &e))?;
    let archive = Archive::read(bytes.into())?;
    let refused = |kernel: &KernelRow| -> Option<String> {
        let open = |text: &TextRow| match archive.text(&text.abi_file()) {
            Ok(abi) => Abi::open(abi, text.digest).err().map(|e| e.to_string()),
            Err(error) => Some(error.to_string()),
        };
        kernel.texts.iter().find_map(open)
    };
    let refused = archive.contents.kernels.iter().map(refused).collect();
    let text =
        |licence: &Licence| licence.file.as_deref().map(|file| archive.text(file).map(str::to_owned)).transpose();
    let licence_texts = archive.contents.licences.iter().map(text).collect::<Result<_, _>>()?;
    Ok(Inspected { refused, licence_texts, sha256: archive.digest, contents: archive.contents })
}

impl Bundle<'static> {
    /// Reads a bundle that has this sha256. Whoever pins the sha256 vouches for its kernels.
    ///
    /// # Errors
    /// It has another, cannot be read, or is not a whole bundle of this version's format.
    pub fn read(path: &Path, sha256: Pinned) -> Result<Self, BundleError> {
        let bytes = fs::read(path).map_err(|e| file_error(path, &e))?;
        Self::of(bytes, sha256)
    }

    /// Reads a bundle, whatever its sha256.
    ///
    /// # Safety
    /// Its kernels are what nvcc made of the texts of its recipes: a GPU runs their machine code, which can read and
    /// write all memory that a context knows.
    ///
    /// # Errors
    /// It cannot be read, or is not a whole bundle of this version's format.
    pub unsafe fn read_unchecked(path: &Path) -> Result<Self, BundleError> {
        let bytes = fs::read(path).map_err(|e| file_error(path, &e))?;
        // SAFETY: as for this function.
        unsafe { Self::of_unchecked(bytes) }
    }
}

impl<'a> Bundle<'a> {
    /// The bundle of these bytes, which have this sha256. Whoever pins the sha256 vouches for its kernels.
    ///
    /// # Errors
    /// They have another, or are not a whole bundle of this version's format.
    pub fn of(bytes: impl Into<Cow<'a, [u8]>>, sha256: Pinned) -> Result<Self, BundleError> {
        let bytes = bytes.into();
        let (found, sha256) = (Digest::of(&bytes), sha256.digest());
        if found != sha256 {
            return Err(BundleError::new(BundleErrorKind::Hash, "the bundle is not the one that is asked for")
                .found(format!("sha256 {found}"))
                .required(format!("sha256 {sha256}"))
                .because("the GPU runs whatever is loaded"));
        }
        Ok(Self::whole(Archive::read(bytes)?))
    }

    /// The bundle of these bytes, whatever their sha256, which [`Bundle::sha256`] tells.
    ///
    /// # Safety
    /// As for [`Bundle::read_unchecked`].
    ///
    /// # Errors
    /// They are not a whole bundle of this version's format.
    pub unsafe fn of_unchecked(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, BundleError> {
        Ok(Self::whole(Archive::read(bytes.into())?))
    }

    fn whole(archive: Archive<'a>) -> Self {
        let sums = |text: &TextRow| [text.digest.to_string(), text.manifest.fatbin.sha256.to_string()];
        let sums = archive.contents.kernels.iter().map(|kernel| kernel.texts.iter().map(sums).collect()).collect();
        Self { archive, sums }
    }

    /// Its contents.
    pub fn contents(&self) -> &Contents {
        &self.archive.contents
    }

    /// Its sha256.
    pub fn sha256(&self) -> Digest {
        self.archive.digest
    }

    /// A kernel, to be loaded on a GPU or an executor as one that a build script embeds.
    ///
    /// # Errors
    /// No kernel has that name.
    pub fn kernel(&self, name: &str) -> Result<Artifact<'_>, BundleError> {
        let kernels = &self.contents().kernels;
        let found = kernels.iter().zip(&self.sums).find(|(kernel, _)| kernel.name == name);
        let Some((kernel, sums)) = found else {
            let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            return Err(BundleError::new(BundleErrorKind::Kernel, format!("the bundle has no kernel `{name}`"))
                .required(names.join(", "))
                .help("`cutemplate inspect` lists its kernels"));
        };
        let mut texts = Vec::new();
        for (text, [digest, sha256]) in kernel.texts.iter().zip(sums) {
            let ptx = Ptx::Packed { bytes: self.archive.file(&text.file(".ptx.z"))?, len: text.ptx_bytes };
            let code = Code::Fatbin { bytes: self.archive.file(&text.file(".fatbin"))?, sha256, ptx };
            texts.push(Text { abi: self.archive.text(&text.abi_file())?, digest, code });
        }
        // SAFETY: whoever pinned the bundle's sha256, or read it unchecked, vouches for its contents. Each file
        // has the sha256 that the contents say.
        Ok(unsafe { Artifact::new(Parts { family: &kernel.family, name: &kernel.name, texts: texts.into() }) })
    }
}
