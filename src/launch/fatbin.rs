//! The header of a fatbin. The driver trusts the sizes that it finds there, so they are looked at first.
//!
//! Layout, little-endian, as `fatbinary` of CUDA 12 and 13 writes it: magic `0xba55ed50` (u32), version 1 (u16), size of
//! this header (u16, 16), bytes after it (u64).

/// A fatbin that the driver is not asked to load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FatbinError {
    /// There is none.
    #[error(
        "it has no fatbin\n  \
         because: it was generated where no CUDA toolkit was found\n  \
         help:    set NVCC or CUDA_HOME, or CUTEMPLATE_FETCH=1 to fetch one, and build again; or run it on the CPU"
    )]
    Empty,
    /// Another kind of file.
    #[error("found {found:02x?} at the start of its fatbin, required {:02x?}\n  help: build it again", MAGIC)]
    Magic {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A format that this version does not know.
    #[error(
        "found fatbin format {version} with a header of {header} bytes, required format 1 with 16\n  help: build it again"
    )]
    Version {
        /// Its version.
        version: u16,
        /// The size of its header.
        header: u16,
    },
    /// Bytes are missing, or too many.
    #[error("found a fatbin of {found} bytes, required {required} by its header: it is {}\n  help: build it again", damage(*.found, *.required))]
    Size {
        /// What there is.
        found: u64,
        /// What the header promises.
        required: u64,
    },
}

fn damage(found: u64, required: u64) -> &'static str {
    if found < required { "truncated" } else { "longer than it says" }
}

const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const HEADER: usize = 16;

/// Checks that the bytes are a whole fatbin.
pub(crate) fn check(bytes: &[u8]) -> Result<(), FatbinError> {
    if bytes.is_empty() {
        return Err(FatbinError::Empty);
    }
    if bytes.iter().zip(MAGIC).any(|(found, required)| *found != required) {
        return Err(FatbinError::Magic { found: bytes.iter().take(MAGIC.len()).copied().collect() });
    }
    let found = bytes.len() as u64;
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Err(FatbinError::Size { found, required: HEADER as u64 });
    };
    let [.., v0, v1, h0, h1, s0, s1, s2, s3, s4, s5, s6, s7] = *header;
    let (version, size) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([h0, h1]));
    if (version, usize::from(size)) != (1, HEADER) {
        return Err(FatbinError::Version { version, header: size });
    }
    // A payload of 2^64 bytes is a size that no file has.
    let required = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]).saturating_add(HEADER as u64);
    if found == required { Ok(()) } else { Err(FatbinError::Size { found, required }) }
}

/// A copy at an address that is a multiple of 8, as nvcc places the fatbins that it embeds.
pub(crate) fn aligned(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A fatbin of `payload` bytes whose header promises `size`.
    fn fatbin(size: u64, payload: usize) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(HEADER + payload, 0);
        bytes
    }

    fn refused(bytes: &[u8], expected: Expect) {
        expected.assert_eq(&check(bytes).expect_err("damaged").to_string());
    }

    #[test]
    fn damaged_fatbins_are_refused_in_words() {
        assert_eq!(check(&fatbin(80, 80)), Ok(()));
        refused(
            &[],
            expect![[r#"
            it has no fatbin
              because: it was generated where no CUDA toolkit was found
              help:    set NVCC or CUDA_HOME, or CUTEMPLATE_FETCH=1 to fetch one, and build again; or run it on the CPU"#]],
        );
        refused(
            b"\x7fELF and more",
            expect![[r#"
            found [7f, 45, 4c, 46] at the start of its fatbin, required [50, ed, 55, ba]
              help: build it again"#]],
        );
        refused(
            &fatbin(80, 79),
            expect![[r#"
            found a fatbin of 95 bytes, required 96 by its header: it is truncated
              help: build it again"#]],
        );
        refused(
            &fatbin(80, 0)[..9],
            expect![[r#"
            found a fatbin of 9 bytes, required 16 by its header: it is truncated
              help: build it again"#]],
        );
        refused(
            &fatbin(80, 81),
            expect![[r#"
            found a fatbin of 97 bytes, required 96 by its header: it is longer than it says
              help: build it again"#]],
        );
        refused(
            &fatbin(u64::MAX, 8),
            expect![[r#"
            found a fatbin of 24 bytes, required 18446744073709551615 by its header: it is truncated
              help: build it again"#]],
        );
        let mut newer = fatbin(0, 0);
        newer[4] = 2;
        refused(
            &newer,
            expect![[r#"
            found fatbin format 2 with a header of 16 bytes, required format 1 with 16
              help: build it again"#]],
        );
    }

    #[test]
    fn the_aligned_copy_has_the_same_bytes() {
        let bytes = fatbin(5, 5);
        let words = aligned(&bytes);
        let copied: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(copied[..bytes.len()], bytes);
        assert_eq!(copied.len(), 24);
    }
}
