//! Digests: whether bytes are those that they should be.

use core::fmt;
use core::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::diagnostic::debug_as_display;

/// A sha256.
///
/// ```
/// use cutemplate::digest::Digest;
/// let text = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
/// assert_eq!(Digest::of(b"hello").to_string(), text);
/// assert_eq!(text.parse(), Ok(Digest::of(b"hello")));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of several parts, each with its length before it, so that none can run into the next.
    pub(crate) fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(digest.finalize().into())
    }
}

/// A sha256 that was written down before the program was compiled: whoever wrote it vouches for the bytes that have it.
/// Only [`pinned!`](crate::pinned) makes one, and takes nothing that is known at run time only.
///
/// ```
/// #![forbid(unsafe_code)]
/// use cutemplate::digest::{Digest, Pinned};
/// const HELLO: Pinned = cutemplate::pinned!("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
/// assert_eq!(HELLO.digest(), Digest::of(b"hello"));
/// ```
///
/// A digest of bytes that a program reads does not tell their origin, and cannot become one:
/// ```compile_fail,E0308
/// use cutemplate::{bundle::Bundle, digest::Digest};
/// fn load(bytes: Vec<u8>) {
///     let sha256 = Digest::of(&bytes);
///     let _ = Bundle::of(bytes, sha256);
/// }
/// ```
/// ```compile_fail,E0435
/// fn pin(sha256: &'static str) -> cutemplate::digest::Pinned {
///     cutemplate::pinned!(sha256)
/// }
/// ```
/// ```compile_fail,E0423
/// use cutemplate::digest::{Digest, Pinned};
/// fn pin(bytes: &[u8]) -> Pinned {
///     Pinned(Digest::of(bytes))
/// }
/// ```
/// ```compile_fail,E0133
/// use cutemplate::digest::Pinned;
/// fn pin(sha256: &str) -> Pinned {
///     Pinned::at_build(sha256)
/// }
/// ```
/// The macro's argument is not part of its unsafe code:
/// ```compile_fail,E0133
/// const unsafe fn forged() -> &'static str {
///     ""
/// }
/// let _ = cutemplate::pinned!(forged());
/// ```
/// A text that is not a sha256 does not compile:
/// ```compile_fail,E0080
/// let _ = cutemplate::pinned!("2cf24dba");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pinned(Digest);

impl Pinned {
    /// For [`pinned!`](crate::pinned).
    ///
    /// # Safety
    /// The text was known when the program was compiled, and whoever wrote it vouches for the bytes with that sha256.
    ///
    /// # Panics
    /// In a constant, which then does not compile, where the text is no sha256.
    #[doc(hidden)]
    pub const unsafe fn at_build(text: &str) -> Self {
        let text = text.as_bytes();
        assert!(text.len() >= 64, "a sha256 has 64 hexadecimal digits");
        assert!(text.len() == 64 || text[64].is_ascii_whitespace(), "more than the 64 hexadecimal digits of a sha256");
        let (mut bytes, mut at) = ([0; 32], 0);
        while at < 32 {
            bytes[at] = nibble(text[2 * at]) << 4 | nibble(text[2 * at + 1]);
            at += 1;
        }
        Self(Digest(bytes))
    }

    /// The sha256.
    pub const fn digest(self) -> Digest {
        self.0
    }
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => panic!("not a hexadecimal digit"),
    }
}

/// Pins a sha256, in hexadecimal: a constant, such as a literal, or `include_str!` of the output of `sha256sum`. The
/// author of the call vouches for the bytes with that sha256.
#[macro_export]
macro_rules! pinned {
    ($text:expr $(,)?) => {{
        // The caller's expression stays outside of `unsafe`.
        const TEXT: &str = $text;
        // SAFETY: it is a constant, and whoever writes it vouches for the bytes.
        const PINNED: $crate::digest::Pinned = unsafe { $crate::digest::Pinned::at_build(TEXT) };
        PINNED
    }};
}

impl fmt::Display for Digest {
    /// In hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a sha256.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("found `{0}`, required the 64 hexadecimal digits of a sha256")]
pub struct NoDigest(String);

debug_as_display!(NoDigest);

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let none = || NoDigest(text.to_owned());
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(none());
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| none())?;
        }
        Ok(Self(bytes))
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_digits_and_nothing_else() {
        let text = Digest::of(b"").to_string();
        assert_eq!(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(text.to_uppercase().parse(), Ok(Digest::of(b"")));
        for wrong in ["", &text[1..], &format!("{text}0"), &text.replace('e', "g"), &text.replace("e3", "é")] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pinned_text_may_be_what_sha256sum_wrote() {
        const FILE: &str = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938b9824  kernels.bundle\n";
        assert_eq!(crate::pinned!(FILE).digest(), Digest::of(b"hello"));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&[u8]]| Digest::of_parts(parts.iter().copied());
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"abc"]), of(&[b"abc", b""]));
    }
}
