//! A bundle as bytes: named files behind a list of contents.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | [`MAGIC`] |
//! | 4 | the format, little-endian: [`FORMAT`] |
//! | 4 | bytes of the contents, little-endian |
//! | 32 | the sha256 of the contents |
//! | .. | the contents, JSON |
//! | .. | the files that the contents list, in that order, with nothing between or behind them |

use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::contents::Contents;
use super::error::{BundleError, BundleErrorKind as Kind, COPY};
use crate::digest::Digest;

/// What every bundle begins with.
pub(super) const MAGIC: [u8; 16] = *b"cutemplate bundl";
/// The format that this version writes and reads.
pub(super) const FORMAT: u32 = 2;
const HEAD: usize = 56;

/// The files of a bundle. Each has the sha256 that the contents say.
#[derive(Clone, Debug)]
pub(super) struct Archive<'a> {
    pub(super) contents: Contents,
    pub(super) digest: Digest,
    bytes: Cow<'a, [u8]>,
    places: BTreeMap<String, Range<usize>>,
}

/// A name that is one file in whatever folder it is written to.
fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    letters && (1..=255).contains(&name.len()) && !name.starts_with('.')
}

fn size(found: u64, required: impl Into<String>) -> BundleError {
    BundleError::new(Kind::Size, "the bundle is not whole").found(format!("{found} bytes")).required(required)
}

impl<'a> Archive<'a> {
    /// Reads a bundle to its last byte; nothing is copied.
    pub(super) fn read(bytes: Cow<'a, [u8]>) -> Result<Self, BundleError> {
        let (found, begin) = (bytes.len() as u64, &bytes[..bytes.len().min(MAGIC.len())]);
        if !MAGIC.starts_with(begin) || begin.is_empty() {
            let begin: String = begin.iter().flat_map(|b| b.escape_ascii()).map(char::from).collect();
            return Err(BundleError::new(Kind::Foreign, "the file is not a bundle of kernels")
                .found(format!("a file that begins with `{begin}`"))
                .required(format!("`{}`", MAGIC.escape_ascii()))
                .help("name a file that `cutemplate bundle` wrote"));
        }
        let short = || size(found, format!("at least {HEAD}"));
        let Some(start) = bytes.get(..24) else { return Err(short()) };
        let number = |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        if number(16) != FORMAT {
            return Err(BundleError::new(Kind::Format, "the bundle was written by another version of cutemplate")
                .found(format!("format {}", number(16)))
                .required(format!("format {FORMAT}"))
                .help("make it again with `cutemplate bundle` of this version, or use the version that wrote it"));
        }
        let Some(head) = bytes.get(..HEAD) else { return Err(short()) };
        let end = HEAD.saturating_add(number(20) as usize);
        let Some(text) = bytes.get(HEAD..end) else { return Err(size(found, format!("at least {end}"))) };
        let sha256 = Digest::of(text);
        if sha256.bytes() != &head[24..] {
            return Err(BundleError::new(Kind::Hash, "the contents of the bundle are not what they were")
                .found(format!("sha256 {sha256}"))
                .required(format!("sha256 {}", head[24..].iter().map(|b| format!("{b:02x}")).collect::<String>()))
                .because("the contents say what each file is"));
        }
        let contents = Contents::read(text)?;
        let mut places = BTreeMap::new();
        let mut at = end;
        for file in &contents.files {
            let next = usize::try_from(file.bytes).ok().and_then(|len| at.checked_add(len));
            let place = next.map(|next| at..next);
            let Some((place, held)) = place.and_then(|place| Some((place.clone(), bytes.get(place)?))) else {
                let required = at as u128 + u128::from(file.bytes);
                return Err(size(found, format!("at least {required} to the end of {}", file.name)));
            };
            if !is_name(&file.name) || places.contains_key(&file.name) {
                return Err(BundleError::new(Kind::Contents, "a file of the bundle has no name of its own")
                    .found(format!("`{}`", file.name.escape_default()))
                    .required("letters, digits, `_` and `.`, each name once")
                    .because("a bundle is put into a folder, which it must not leave"));
            }
            let sha256 = Digest::of(held);
            if sha256 != file.sha256 {
                return Err(BundleError::new(Kind::Hash, format!("{} of the bundle is not what it was", file.name))
                    .found(format!("sha256 {sha256}"))
                    .required(format!("sha256 {}", file.sha256))
                    .because("the GPU runs whatever is loaded"));
            }
            at = place.end;
            places.insert(file.name.clone(), place);
        }
        if at != bytes.len() {
            return Err(size(found, at.to_string()).because("what no one lists may be anything").help(COPY));
        }
        contents.check(&places)?;
        Ok(Self { digest: Digest::of(&bytes), contents, bytes, places })
    }

    /// The bytes of a file.
    pub(super) fn file(&self, name: &str) -> Result<&[u8], BundleError> {
        let place = self.places.get(name).and_then(|place| self.bytes.get(place.clone()));
        place.ok_or_else(|| {
            BundleError::new(Kind::Contents, format!("the bundle has no file {name}")).required("each file of a kernel")
        })
    }

    /// A file that is text.
    pub(super) fn text(&self, name: &str) -> Result<&str, BundleError> {
        core::str::from_utf8(self.file(name)?)
            .map_err(|e| BundleError::new(Kind::Contents, format!("{name} of the bundle is not text: {e}")))
    }
}

/// The bytes of a bundle: the same contents and files give the same.
pub(super) fn write<'f>(contents: &Contents, files: impl Iterator<Item = &'f [u8]>) -> Vec<u8> {
    let text = contents.write();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(Digest::of(&text).bytes());
    bytes.extend(text);
    files.for_each(|file| bytes.extend(file));
    bytes
}
