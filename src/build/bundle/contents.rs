//! The contents of a bundle.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{BundleError, BundleErrorKind as Kind};
use super::manifest::{FileDigest, Manifest};
use crate::arch::{Arch, Targets};
use crate::digest::Digest;

/// The contents of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The version of this crate that made it.
    pub cutemplate: String,
    /// The licences of its contents.
    pub licences: Vec<Licence>,
    /// Its kernels, by name.
    pub kernels: Vec<KernelRow>,
    /// Its files, in order.
    pub files: Vec<FileDigest>,
}

/// A licence, and the software that it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    /// The software.
    pub of: String,
    /// Its SPDX expression, or its name.
    pub licence: String,
    /// The file of the bundle that has its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A kernel of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRow {
    /// Its name, which is its module's.
    pub name: String,
    /// Its family.
    pub family: String,
    /// The recipe in its `Debug` form, its function included.
    pub recipe: String,
    /// The recipe as settings in `key=value` lines.
    pub settings: String,
    /// The compiled texts: one, or one for each group of architectures with its own, oldest first.
    pub texts: Vec<TextRow>,
}

/// A compiled text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRow {
    /// The digest of its [`Abi`](crate::plan::Abi), which is the file `<abi>.abi.json`.
    pub digest: Digest,
    /// The architectures with SASS.
    pub targets: Targets,
    /// Bytes of its PTX, which is the file `<name>.ptx.z`.
    pub ptx_bytes: u64,
    /// The oldest driver that takes its SASS, by the version of CUDA that it supports, (major, minor).
    pub driver: (u32, u32),
    /// The oldest driver that compiles its PTX.
    pub ptx_driver: (u32, u32),
    /// How it was compiled, and its resources.
    pub manifest: Manifest,
    /// The name of its ABI, where that is not the text's: several kernels of [one's own](crate::cuda) share a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<String>,
}

/// How a GPU runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// The SASS of this architecture.
    Sass(Arch),
    /// The PTX of this architecture, which the driver compiles.
    Ptx(Arch),
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Runs::Sass(arch) => write!(f, "SASS of {arch}"),
            Runs::Ptx(arch) => write!(f, "PTX of {arch}, compiled by the driver"),
        }
    }
}

impl TextRow {
    /// The name of the kernel, and the stem of its files.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The file of its ABI.
    pub(super) fn abi_file(&self) -> String {
        format!("{}.abi.json", self.abi.as_deref().unwrap_or(self.name()))
    }

    /// The files of a text, by their suffixes.
    pub(super) fn file(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.name())
    }
}

impl KernelRow {
    /// How a GPU of this compute capability with this driver runs it.
    ///
    /// # Errors
    /// It does not: why.
    pub fn runs(&self, capability: (u32, u32), driver: (u32, u32)) -> Result<Runs, String> {
        let (runs, required) = self.runs_from(capability)?;
        if driver < required {
            let ((found, of), (needed, by)) = (driver, required);
            return Err(format!("the driver is for CUDA {found}.{of}, and {runs} needs one for CUDA {needed}.{by}"));
        }
        Ok(runs)
    }

    /// How a GPU of this compute capability runs it, and the oldest driver that does, by the version of CUDA that it
    /// supports.
    ///
    /// # Errors
    /// No driver does: why.
    pub fn runs_from(&self, capability: (u32, u32)) -> Result<(Runs, (u32, u32)), String> {
        let ((major, minor), all) = (capability, || self.texts.iter().map(|text| &text.targets));
        let archs = || all().flat_map(|targets| targets.archs()).map(|arch| arch.name()).collect::<Vec<_>>().join(", ");
        let Some(text) = Targets::best(all(), capability).and_then(|best| self.texts.get(best)) else {
            return Err(format!("it has code for {}, and the GPU has compute capability {major}.{minor}", archs()));
        };
        let sass = text.targets.archs().iter().rev().find(|arch| arch.sass_runs_on(capability));
        match (sass, text.targets.ptx()) {
            (Some(arch), _) => Ok((Runs::Sass(*arch), text.driver)),
            (None, Some(arch)) => Ok((Runs::Ptx(arch), text.ptx_driver)),
            (None, None) => Err(format!("it has neither SASS nor PTX for compute capability {major}.{minor}")),
        }
    }
}

impl Contents {
    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&KernelRow> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    pub(super) fn read(text: &[u8]) -> Result<Self, BundleError> {
        serde_json::from_slice(text).map_err(|e| {
            BundleError::new(Kind::Contents, "the contents of the bundle cannot be read")
                .found(e.to_string())
                .because("it is damaged, or was written by another version of cutemplate")
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|defect| unreachable!("every field has a text: {defect}"))
    }

    /// Every kernel has its files, and names that belong to it alone.
    pub(super) fn check(&self, places: &BTreeMap<String, Range<usize>>) -> Result<(), BundleError> {
        let texts = self.licences.iter().filter_map(|licence| licence.file.as_ref());
        if let Some(missing) = texts.into_iter().find(|file| !places.contains_key(*file)) {
            let what = format!("{} is not in the bundle", missing.escape_default());
            return Err(BundleError::new(Kind::Contents, what).required("the text of each licence that names a file"));
        }
        let mut names = Vec::new();
        for kernel in &self.kernels {
            let is_word = |name: &str| {
                name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            };
            if !is_word(&kernel.name) || names.contains(&&kernel.name) || kernel.texts.is_empty() {
                let name = kernel.name.escape_default();
                return Err(BundleError::new(Kind::Contents, format!("`{name}` is not a valid kernel of a bundle"))
                    .required("a name of its own, of lower-case letters, digits and `_`, and a text"));
            }
            names.push(&kernel.name);
            for text in &kernel.texts {
                let files = [text.file(".fatbin"), text.file(".ptx.z"), text.abi_file()];
                if let Some(missing) = files.iter().find(|file| !places.contains_key(*file)) {
                    let what = format!("{missing} of kernel `{}` is not in the bundle", kernel.name);
                    return Err(
                        BundleError::new(Kind::Contents, what).required("a fatbin, PTX and an ABI of each text")
                    );
                }
            }
        }
        Ok(())
    }
}
