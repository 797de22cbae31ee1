//! Packs compiled kernels into a bundle.

use std::path::Path;

use super::archive;
use super::contents::{Contents, KernelRow, Licence, TextRow};
use super::error::{BundleError, BundleErrorKind};
use super::manifest::{FileDigest, Manifest};
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::plan::Plan;

/// How hard PTX is packed, of 10.
const LEVEL: u8 = 9;

/// The compiled form of a text.
pub(crate) struct Packed<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) fatbin: &'a [u8],
    pub(crate) ptx: &'a str,
}

/// The file with CUTLASS's licence, which must be reproduced with compiled code.
const CUTLASS: &str = "CUTLASS_LICENSE.txt";

/// A bundle's bytes, and its sha256. The bundle holds the compiled form of each [text](Plan::texts) of each kernel, and
/// CUTLASS's licence, where code has it in. The same kernels give the same bytes.
pub(crate) fn pack(kernels: &[(Plan, Vec<Packed<'_>>)], cutlass: Option<&str>) -> (Vec<u8>, Digest) {
    let mut files: Vec<(FileDigest, Vec<u8>)> = Vec::new();
    let mut rows = Vec::new();
    let mut sorted: Vec<_> = kernels.iter().collect();
    sorted.sort_by_key(|(plan, _)| plan.name());
    for (plan, made) in sorted {
        let mut texts = Vec::new();
        for (part, made) in plan.texts().iter().zip(made) {
            let (name, stem) = (part.name(), part.stem());
            let mut add = |name: &str, suffix: &str, bytes: Vec<u8>| {
                let file = FileDigest::of(&format!("{name}{suffix}"), &bytes);
                // Kernels of one's own share a text.
                if !files.iter().any(|(known, _)| known.name == file.name) {
                    files.push((file, bytes));
                }
            };
            add(stem, ".fatbin", made.fatbin.to_vec());
            add(stem, ".ptx.z", miniz_oxide::deflate::compress_to_vec_zlib(made.ptx.as_bytes(), LEVEL));
            add(name, ".abi.json", part.abi().to_json().into_bytes());
            // Its author decides whether a text of one's own is handed on.
            let unit: Option<Unit> = part.kernel.own().is_none().then(|| emit::render(part));
            files.extend(unit.iter().flat_map(Unit::files).map(|file| {
                let bytes = file.text.clone().into_bytes();
                (FileDigest::of(&file.name, &bytes), bytes)
            }));
            let (major, minor) = version(&made.manifest.nvcc);
            texts.push(TextRow {
                digest: part.abi().digest(),
                targets: part.targets().clone(),
                ptx_bytes: made.ptx.len() as u64,
                driver: (major, 0),
                ptx_driver: (major, minor),
                manifest: made.manifest.clone(),
                abi: (name != stem).then(|| name.to_owned()),
            });
        }
        rows.push(KernelRow {
            name: plan.name().to_owned(),
            family: plan.family().to_owned(),
            recipe: plan.recipe().to_owned(),
            settings: plan.settings().to_string(),
            texts,
        });
    }
    files.extend(cutlass.map(|licence| (FileDigest::of(CUTLASS, licence.as_bytes()), licence.as_bytes().to_vec())));
    let contents = Contents {
        cutemplate: emit::VERSION.to_owned(),
        licences: licences(cutlass.is_some()),
        kernels: rows,
        files: files.iter().map(|(digest, _)| digest.clone()).collect(),
    };
    let bytes = archive::write(&contents, files.iter().map(|(_, bytes)| bytes.as_slice()));
    let digest = Digest::of(&bytes);
    (bytes, digest)
}

/// A copy of CUTLASS has no text of its licence.
pub(crate) fn no_licence(include: &Path) -> BundleError {
    BundleError::new(BundleErrorKind::File, "CUTLASS's licence was not found")
        .found(format!("neither a file nor a remark in the headers of {}", include.display()))
        .required("LICENSE.txt beside `include`")
        .because("BSD-3-Clause requires its text with code that is compiled with CUTLASS")
        .help("put LICENSE.txt of CUTLASS there, or set CUTLASS_PATH to a checkout")
}

/// Major and minor version of a tool.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn licences(has_cutlass: bool) -> Vec<Licence> {
    let cutlass = "CUTLASS and CuTe, compiled into the kernels: copyright NVIDIA CORPORATION & AFFILIATES";
    let of = [
        ("the text that cutemplate wrote", "MIT OR Apache-2.0", None),
        (cutlass, "BSD-3-Clause", Some(CUTLASS.to_owned())),
        ("what nvcc and the CUDA headers add", "CUDA Toolkit End User License Agreement", None),
    ];
    let of = of.into_iter().filter(|(_, _, file)| has_cutlass || file.is_none());
    of.map(|(of, licence, file)| Licence { of: of.to_owned(), licence: licence.to_owned(), file }).collect()
}
