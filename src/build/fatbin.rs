//! Reads the container that `fatbinary` writes: which code it holds for which architecture, and whether it is whole.
//!
//! The outer header (magic, version, header size, size) is that of `fatBinaryHeader` in the toolkit; the fields of the
//! entries were compared with what `cuobjdump -lelf -lptx` prints for nvcc 13.0.

use std::fmt;

const MAGIC: u32 = 0xba55_ed50;
/// The bit of an entry's flags that an architecture-specific target (`sm_90a`) has.
const ARCH_SPECIFIC: u64 = 1 << 20;

/// What an entry of a fatbin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Text for the driver's compiler.
    Ptx,
    /// Machine code, an ELF file.
    Sass,
}

/// One entry of a fatbin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// PTX or SASS.
    pub kind: Kind,
    /// The architecture: `sm_80`, `sm_90a`; for PTX that of the virtual architecture.
    pub arch: String,
    /// The bytes of the entry, which may be compressed.
    pub bytes: &'a [u8],
}

/// Bytes that are no fatbin, or not all of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatbinError {
    /// The first bytes are not those of a fatbin.
    Magic,
    /// A header or an entry says that more bytes follow than do.
    Truncated {
        /// How many bytes there are.
        found: usize,
        /// How many there have to be at least.
        required: u64,
    },
}

impl fmt::Display for FatbinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FatbinError::Magic => write!(f, "these bytes are no fatbin: they do not start with {MAGIC:#x}"),
            FatbinError::Truncated { found, required } => {
                write!(f, "the fatbin is truncated: {found} bytes of at least {required}")
            }
        }
    }
}

impl std::error::Error for FatbinError {}

/// Little-endian fields, checked against the end.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn at<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..offset.checked_add(N)?)?.try_into().ok()
    }

    fn u16(self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_le_bytes)
    }

    fn u32(self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_le_bytes)
    }

    fn u64(self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_le_bytes)
    }

    fn slice(self, start: usize, len: u64) -> Option<&'a [u8]> {
        self.0.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }
}

/// The entries of a fatbin, in order.
///
/// # Errors
/// The bytes are no fatbin, or are cut off.
///
/// # Examples
/// ```
/// use cutemplate::build::fatbin::{FatbinError, images};
/// assert_eq!(images(b"\x7fELF, or anything else"), Err(FatbinError::Magic));
/// ```
pub fn images(bytes: &[u8]) -> Result<Vec<Image<'_>>, FatbinError> {
    let all = Bytes(bytes);
    let truncated = |required: u64| FatbinError::Truncated { found: bytes.len(), required };
    if all.u32(0).is_some_and(|magic| magic != MAGIC) {
        return Err(FatbinError::Magic);
    }
    let (Some(header), Some(size)) = (all.u16(6), all.u64(8)) else { return Err(truncated(16)) };
    let end = u64::from(header).saturating_add(size);
    if end > bytes.len() as u64 {
        return Err(truncated(end));
    }
    let mut images = Vec::new();
    let mut offset = usize::from(header);
    while (offset as u64) < end {
        let (image, next) = entry(all, offset).ok_or_else(|| truncated(end.saturating_add(1)))?;
        images.extend(image);
        offset = next;
    }
    Ok(images)
}

/// The entry at an offset, if it is PTX or SASS, and where the next one starts.
fn entry(all: Bytes<'_>, offset: usize) -> Option<(Option<Image<'_>>, usize)> {
    let header = all.u32(offset.checked_add(4)?)?;
    let size = all.u64(offset.checked_add(8)?)?;
    let number = all.u32(offset.checked_add(28)?)?;
    let flags = all.u64(offset.checked_add(40)?)?;
    let start = offset.checked_add(usize::try_from(header).ok()?)?;
    let bytes = all.slice(start, size)?;
    let next = start.checked_add(bytes.len())?;
    let kind = match all.u16(offset)? {
        1 => Some(Kind::Ptx),
        2 => Some(Kind::Sass),
        _ => None,
    };
    let suffix = if flags & ARCH_SPECIFIC == 0 { "" } else { "a" };
    let image = kind.map(|kind| Image { kind, arch: format!("sm_{number}{suffix}"), bytes });
    // An entry without a header would be read for ever.
    (next > offset).then_some((image, next))
}

/// The size of a kernel's instructions: its `.text.` section in the 64-bit ELF file of a SASS image. `None` where the
/// image is compressed or has no such kernel.
pub(super) fn sass_size(image: &Image<'_>, kernel: &str) -> Option<u64> {
    let elf = Bytes(image.bytes);
    (elf.at(0)? == *b"\x7fELF\x02").then_some(())?;
    let table = usize::try_from(elf.u64(0x28)?).ok()?;
    let entry_size = usize::from(elf.u16(0x3a)?);
    let count = usize::from(elf.u16(0x3c)?);
    let names = usize::from(elf.u16(0x3e)?);
    let section = |index: usize| table.checked_add(index.checked_mul(entry_size)?);
    let names = usize::try_from(elf.u64(section(names)?.checked_add(0x18)?)?).ok()?;
    let wanted = format!(".text.{kernel}\0");
    (0..count).find_map(|index| {
        let at = section(index)?;
        let name = names.checked_add(usize::try_from(elf.u32(at)?).ok()?)?;
        (elf.slice(name, wanted.len() as u64)? == wanted.as_bytes()).then(|| elf.u64(at + 0x20))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry as nvcc 13.0 writes it: a header of 64 bytes, then the payload.
    fn entry(kind: u16, sm: u32, flags: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&sm.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn entries_are_read_with_their_architecture() {
        let bytes = fatbin(&[entry(1, 80, 0x8011, b"ptx"), entry(2, 80, 0x11, b"elf"), entry(2, 90, 0x10_0011, b"")]);
        let read: Vec<(Kind, String, usize)> =
            images(&bytes).expect("whole").into_iter().map(|i| (i.kind, i.arch, i.bytes.len())).collect();
        let expected = [(Kind::Ptx, "sm_80", 3), (Kind::Sass, "sm_80", 3), (Kind::Sass, "sm_90a", 0)];
        assert_eq!(read, expected.map(|(kind, arch, len)| (kind, arch.to_owned(), len)));
    }

    #[test]
    fn every_truncation_is_seen() {
        let bytes = fatbin(&[entry(1, 80, 0, b"ptx"), entry(2, 80, 0, b"elf")]);
        for len in 0..bytes.len() {
            let error = images(&bytes[..len]).expect_err("cut");
            assert!(matches!(error, FatbinError::Truncated { found, .. } if found == len), "{len}: {error}");
        }
        assert_eq!(images(b"no fatbin at all"), Err(FatbinError::Magic));
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let good = fatbin(&[entry(1, 80, 0, b"ptx"), entry(2, 80, 0, b"elf")]);
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                if let Ok(images) = images(&bad) {
                    for image in &images {
                        assert!(image.bytes.len() < bad.len());
                        assert_eq!(sass_size(image, "k"), None);
                    }
                }
            }
        }
    }
}
