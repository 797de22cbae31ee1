//! Sizes with their unit in the type: elements, bytes and bits never mix by accident.

use core::fmt;

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A count of tensor elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Elements(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl core::str::FromStr for Bytes {
    type Err = String;

    /// `2G`, `512M`, `64K`, `4096`: powers of 1024.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (number, shift) = match s.char_indices().next_back() {
            Some((at, 'K' | 'k')) => (&s[..at], 10),
            Some((at, 'M' | 'm')) => (&s[..at], 20),
            Some((at, 'G' | 'g')) => (&s[..at], 30),
            Some((at, 'T' | 't')) => (&s[..at], 40),
            _ => (s, 0),
        };
        let size = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
        size.map(Bytes)
            .ok_or_else(|| format!("found `{s}`, required bytes, or a number with K, M, G or T, for example 2G"))
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements", self.0)
    }
}
