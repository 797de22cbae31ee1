//! The container that `fatbinary` writes: whether it is whole, and which code it holds for which architecture.
//!
//! The header is little-endian. It is the toolkit's `fatBinaryHeader`, as CUDA 12 and 13 write it: magic `0xba55ed50`
//! (u32), version 1 (u16), size of this header (u16, 16), bytes after it (u64). The fields of the entries were compared
//! with the output of `cuobjdump -lelf -lptx` for nvcc 13.0.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};

use crate::diagnostic::debug_as_display;
use crate::digest::Digest;

const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const HEADER: usize = 16;
/// The bit of an entry's flags that an architecture-specific target (`sm_90a`) has.
const ARCH_SPECIFIC: u64 = 1 << 20;
/// The bits of an entry's flags that a packed payload has: by LZ4, or by zstd.
const PACKED: u64 = 1 << 13 | 1 << 15;

/// A fatbin that somebody vouches for: nvcc made it of a kernel's text. Loading it lets a GPU run its machine code, so
/// no safe function makes one of arbitrary bytes. [`Compiled::vouched`](crate::build::Compiled::vouched) gives the
/// fatbin of a compiled kernel. An [`Artifact`](crate::artifact::Artifact) gives the fatbin of a kernel that a build
/// script embeds.
#[derive(Clone, Copy, Debug)]
pub struct Vouched<'a> {
    bytes: &'a [u8],
    abi: Digest,
}

impl<'a> Vouched<'a> {
    /// Whoever calls it vouches for it; the digest is that of the kernel's ABI.
    pub(crate) fn new(bytes: &'a [u8], abi: Digest) -> Self {
        Self { bytes, abi }
    }

    /// The fatbin.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The digest of the [`Abi`](crate::plan::Abi) that its text was written for.
    pub fn abi(&self) -> Digest {
        self.abi
    }
}

/// The kind of a fatbin's entry.
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
    /// The architecture: `sm_80`, `sm_90a`; for PTX the virtual architecture's.
    pub arch: String,
    /// The bytes of the entry, which may be compressed.
    pub bytes: &'a [u8],
    /// Whether they are.
    pub packed: bool,
}

/// Bytes that are not a whole fatbin. The driver trusts the sizes in a fatbin.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum FatbinError {
    /// There are none.
    #[error("its fatbin is empty")]
    Empty,
    /// Another kind of file.
    #[error("its fatbin begins with {found:02x?}, and each with {:02x?}", MAGIC)]
    Magic {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A format that this version does not know.
    #[error("its fatbin has format {version} and a header of {header} bytes, and known is format 1 with 16")]
    Version {
        /// Its version.
        version: u16,
        /// The size of its header.
        header: u16,
    },
    /// Bytes are missing, or too many.
    #[error("its fatbin has {found} bytes, and {required} by its header: it is {}", damage(*.found, *.required))]
    Size {
        /// The actual number.
        found: u64,
        /// The number that the header promises.
        required: u64,
    },
    /// An entry is damaged.
    #[error("the entry at byte {at} of its fatbin reaches past the end")]
    Entry {
        /// Where it begins.
        at: usize,
    },
    /// Code is missing.
    #[error("its fatbin has no {what}")]
    Lacks {
        /// Which.
        what: String,
    },
}

debug_as_display!(FatbinError);

fn damage(found: u64, required: u64) -> &'static str {
    if found < required { "truncated" } else { "longer than it says" }
}

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

/// Checks that the bytes are a whole fatbin, by its header and the header of each entry.
///
/// # Errors
/// They are not.
pub fn check(bytes: &[u8]) -> Result<(), FatbinError> {
    images(bytes).map(drop)
}

/// Checks by their header that the bytes are a whole fatbin.
fn header(bytes: &[u8]) -> Result<(), FatbinError> {
    if bytes.is_empty() {
        return Err(FatbinError::Empty);
    }
    if bytes.iter().zip(MAGIC).any(|(found, required)| *found != required) {
        return Err(FatbinError::Magic { found: bytes.iter().take(MAGIC.len()).copied().collect() });
    }
    let (all, found) = (Bytes(bytes), bytes.len() as u64);
    let (Some(version), Some(header), Some(size)) = (all.u16(4), all.u16(6), all.u64(8)) else {
        return Err(FatbinError::Size { found, required: HEADER as u64 });
    };
    if (version, usize::from(header)) != (1, HEADER) {
        return Err(FatbinError::Version { version, header });
    }
    // A payload of 2^64 bytes is a size that no file has.
    let required = size.saturating_add(HEADER as u64);
    if found == required { Ok(()) } else { Err(FatbinError::Size { found, required }) }
}

/// The entries of a fatbin, in order.
///
/// # Errors
/// The bytes are not a fatbin, or not a whole one.
///
/// # Examples
/// ```
/// use cutemplate::fatbin::{FatbinError, images};
/// assert!(matches!(images(b"\x7fELF, or anything else"), Err(FatbinError::Magic { .. })));
/// ```
pub fn images(bytes: &[u8]) -> Result<Vec<Image<'_>>, FatbinError> {
    header(bytes)?;
    let mut images = Vec::new();
    let mut at = HEADER;
    while at < bytes.len() {
        let (image, next) = entry(Bytes(bytes), at).ok_or(FatbinError::Entry { at })?;
        images.extend(image);
        at = next;
    }
    Ok(images)
}

/// Checks that a fatbin has SASS of these entries for each of these architectures, and PTX of that one. Code that is packed is
/// not looked into.
///
/// # Errors
/// It lacks any, or is damaged.
#[cfg(feature = "build")]
pub(crate) fn complete(bytes: &[u8], archs: &[&str], ptx: Option<&str>, entries: &[String]) -> Result<(), FatbinError> {
    let images = images(bytes)?;
    let lacks = |what: String| Err(FatbinError::Lacks { what });
    let find = |kind: Kind, arch: &str| images.iter().find(|image| image.kind == kind && image.arch == arch);
    for arch in archs {
        let Some(image) = find(Kind::Sass, arch) else { return lacks(format!("SASS of {arch}")) };
        let missing = |entry: &&String| image.sass(entry).is_none_or(<[u8]>::is_empty);
        if let Some(entry) = entries.iter().find(missing).filter(|_| !image.packed) {
            return lacks(format!("instructions of {entry} in its SASS of {arch}"));
        }
    }
    match ptx.filter(|arch| find(Kind::Ptx, arch).is_none_or(|image| image.bytes.is_empty())) {
        Some(arch) => lacks(format!("PTX of {arch}")),
        None => Ok(()),
    }
}

/// One fatbin with the images of several, in their order: byte for byte what `fatbinary --create` of nvcc 13.0 makes of them.
///
/// # Errors
/// One of them is damaged.
#[cfg(feature = "build")]
pub(crate) fn joined(fatbins: &[Vec<u8>]) -> Result<Vec<u8>, FatbinError> {
    let mut images = Vec::new();
    for bytes in fatbins {
        self::images(bytes)?;
        images.extend_from_slice(&bytes[HEADER..]);
    }
    let header =
        [&MAGIC[..], &1_u16.to_le_bytes(), &(HEADER as u16).to_le_bytes(), &(images.len() as u64).to_le_bytes()];
    Ok([header.concat(), images].concat())
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
    let packed = flags & PACKED != 0;
    let image = kind.map(|kind| Image { kind, arch: format!("sm_{number}{suffix}"), bytes, packed });
    // An entry without a header would be read for ever.
    (next > offset).then_some((image, next))
}

impl<'a> Image<'a> {
    /// The size of a kernel's instructions in bytes. `None` where the image is compressed or has no such kernel.
    pub fn sass_size(&self, kernel: &str) -> Option<u64> {
        self.sass(kernel).map(|code| code.len() as u64)
    }

    /// A kernel's instructions: its `.text.` section in the 64-bit ELF file of a SASS image. `None` where the image is compressed or
    /// has no such kernel.
    pub fn sass(&self, kernel: &str) -> Option<&'a [u8]> {
        let elf = ElfFile64::<Endianness>::parse(self.bytes).ok()?;
        elf.section_by_name(&format!(".text.{kernel}"))?.data().ok()
    }
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
        [head(body.len() as u64), body].concat()
    }

    /// A header that promises this many bytes.
    fn head(size: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend(size.to_le_bytes());
        bytes
    }

    #[test]
    fn damaged_fatbins_are_refused_in_words() {
        let padded = |size: u64, payload: usize| [head(size), vec![0; payload]].concat();
        assert_eq!(header(&padded(80, 80)), Ok(()));
        assert_eq!(check(&padded(80, 80)), Err(FatbinError::Entry { at: 16 }));
        let mut newer = head(0);
        newer[4] = 2;
        let damaged = [
            vec![],
            b"\x7fELF and more".to_vec(),
            padded(80, 79),
            head(80)[..9].to_vec(),
            padded(80, 81),
            padded(u64::MAX, 8),
            newer,
            padded(4, 4),
        ];
        let told: String = damaged.iter().map(|bytes| images(bytes).expect_err("damaged").to_string() + "\n").collect();
        expect_test::expect![[r#"
            its fatbin is empty
            its fatbin begins with [7f, 45, 4c, 46], and each with [50, ed, 55, ba]
            its fatbin has 95 bytes, and 96 by its header: it is truncated
            its fatbin has 9 bytes, and 16 by its header: it is truncated
            its fatbin has 97 bytes, and 96 by its header: it is longer than it says
            its fatbin has 24 bytes, and 18446744073709551615 by its header: it is truncated
            its fatbin has format 2 and a header of 16 bytes, and known is format 1 with 16
            the entry at byte 16 of its fatbin reaches past the end
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn entries_are_read_with_their_architecture() {
        let bytes = fatbin(&[entry(1, 80, 0x8011, b"ptx"), entry(2, 80, 0x11, b"elf"), entry(2, 90, 0x10_0011, b"")]);
        let read: Vec<(Kind, String, usize)> =
            images(&bytes).expect("whole").into_iter().map(|i| (i.kind, i.arch, i.bytes.len())).collect();
        let expected = [(Kind::Ptx, "sm_80", 3), (Kind::Sass, "sm_80", 3), (Kind::Sass, "sm_90a", 0)];
        assert_eq!(read, expected.map(|(kind, arch, len)| (kind, arch.to_owned(), len)));
    }

    /// An ELF file with the instructions of an entry, as far as they are looked for.
    #[cfg(feature = "build")]
    fn elf(entry: &str, code: &[u8]) -> Vec<u8> {
        let [none, program, strings] = [0_u32, 1, 3];
        let (names, table) = (64, 256);
        let mut bytes = vec![0; table];
        // 64 bits, little-endian, version 1.
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[0x14] = 1;
        bytes[0x28..0x30].copy_from_slice(&(table as u64).to_le_bytes());
        bytes[0x34] = 64;
        bytes[0x3a..0x40].copy_from_slice(&[64, 0, 3, 0, 1, 0]);
        let name = format!("\0.text.{entry}\0");
        bytes[names..names + name.len()].copy_from_slice(name.as_bytes());
        let section = |name: u32, kind: u32, start: u64, size: u64| {
            let mut row = vec![0; 64];
            row[..4].copy_from_slice(&name.to_le_bytes());
            row[4..8].copy_from_slice(&kind.to_le_bytes());
            row[0x18..0x20].copy_from_slice(&start.to_le_bytes());
            row[0x20..0x28].copy_from_slice(&size.to_le_bytes());
            row
        };
        // The first of any file, the names, the code.
        bytes.extend(section(0, none, 0, 0));
        bytes.extend(section(0, strings, names as u64, name.len() as u64));
        bytes.extend(section(1, program, (table + 192) as u64, code.len() as u64));
        bytes.extend(code);
        bytes
    }

    #[cfg(feature = "build")]
    #[test]
    fn instructions_are_read_at_any_address() {
        let sass = elf("add", b"code");
        for shift in 0..8 {
            let bytes = [vec![0; shift], sass.clone()].concat();
            let image = Image { kind: Kind::Sass, arch: "sm_80".to_owned(), bytes: &bytes[shift..], packed: false };
            assert_eq!(image.sass("add"), Some(&b"code"[..]), "{shift}");
            assert_eq!((image.sass("ad"), image.sass("add_pack")), (None, None));
        }
    }

    #[cfg(feature = "build")]
    #[test]
    fn damaged_machine_code_is_no_panic() {
        let whole = elf("add", b"code");
        for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|value| (at, value))) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let image = Image { kind: Kind::Sass, arch: "sm_80".to_owned(), bytes: &bytes, packed: false };
            assert!(image.sass("add").is_none_or(|code| code.len() <= bytes.len()), "{at} {value}");
        }
    }

    #[cfg(feature = "build")]
    #[test]
    fn what_a_fatbin_lacks_is_told() {
        let sass = elf("add", b"code");
        let whole = fatbin(&[entry(1, 80, 0x8011, b"ptx"), entry(2, 80, 0x11, &sass), entry(2, 90, 0x10_8011, b"zip")]);
        let told = |bytes: &[u8], archs: &[&str], ptx: &str, entries: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
            complete(bytes, archs, Some(ptx), &entries).map_err(|why| why.to_string())
        };
        assert_eq!(told(&whole, &["sm_80", "sm_90a"], "sm_80", &["add"]), Ok(()));
        let lacks = |what: &str| Err(format!("its fatbin has no {what}"));
        assert_eq!(told(&whole, &["sm_90"], "sm_80", &["add"]), lacks("SASS of sm_90"));
        assert_eq!(told(&whole, &["sm_80"], "sm_90", &["add"]), lacks("PTX of sm_90"));
        assert_eq!(told(&whole, &["sm_80"], "sm_80", &["sub"]), lacks("instructions of sub in its SASS of sm_80"));
        // Cut off anywhere, under a header that says so.
        for len in 0..sass.len() {
            let cut = fatbin(&[entry(1, 80, 0x8011, b"ptx"), entry(2, 80, 0x11, &sass[..len])]);
            assert!(told(&cut, &["sm_80"], "sm_80", &["add"]).is_err(), "{len}");
        }
        assert!(told(&fatbin(&[]), &["sm_80"], "sm_80", &["add"]).is_err());
    }

    #[cfg(feature = "build")]
    #[test]
    fn joined_fatbins_hold_the_images_of_all() {
        let [first, second] = [entry(1, 80, 0x8011, b"ptx"), entry(2, 90, 0x10_0011, b"elf")];
        let all = joined(&[fatbin(std::slice::from_ref(&first)), fatbin(std::slice::from_ref(&second))]);
        assert_eq!(all, Ok(fatbin(&[first.clone(), second])));
        let cut = joined(&[fatbin(std::slice::from_ref(&first)), fatbin(&[first])[..40].to_vec()]);
        assert!(matches!(cut, Err(FatbinError::Size { .. })), "{cut:?}");
    }

    #[test]
    fn every_truncation_is_seen() {
        let bytes = fatbin(&[entry(1, 80, 0, b"ptx"), entry(2, 80, 0, b"elf")]);
        for len in 1..bytes.len() {
            let error = images(&bytes[..len]).expect_err("cut");
            assert!(matches!(error, FatbinError::Size { found, .. } if found == len as u64), "{len}: {error}");
        }
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
                        assert_eq!(image.sass_size("k"), None);
                    }
                }
            }
        }
    }
}
