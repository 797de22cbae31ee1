//! Versions, read from headers so that no program has to be run for them.

use std::fmt;
use std::path::Path;

/// A version of up to three numbers, as in `13.0.88`. Ordered number by number.
///
/// # Examples
/// ```
/// use cutlass_sys::Version;
/// let v: Version = "13.0.88".parse().unwrap();
/// assert!(v > Version::new(12, 8, 0));
/// assert_eq!(v.to_string(), "13.0.88");
/// assert!("13.x".parse::<Version>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number; 0 where it is not known.
    pub patch: u32,
}

impl Version {
    /// `major.minor.patch`.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// CUTLASS's version, from `CUTLASS_MAJOR`, `_MINOR` and `_PATCH` in `include/cutlass/version.h`.
    pub(crate) fn of_cutlass(include: &Path) -> Option<Version> {
        let text = std::fs::read_to_string(include.join("cutlass/version.h")).ok()?;
        let number = |name| defined(&text, name).and_then(|v| u32::try_from(v).ok());
        Some(Version::new(number("CUTLASS_MAJOR")?, number("CUTLASS_MINOR")?, number("CUTLASS_PATCH").unwrap_or(0)))
    }

    /// The CUDA release, from `CUDART_VERSION` (1000 * major + 10 * minor) in `cuda_runtime_api.h`.
    pub(crate) fn of_cuda(include: &Path) -> Option<Version> {
        let text = std::fs::read(include.join("cuda_runtime_api.h")).ok()?;
        let number = defined(&String::from_utf8_lossy(&text), "CUDART_VERSION")?;
        let number = u32::try_from(number).ok()?;
        Some(Version::new(number / 1000, number % 1000 / 10, 0))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl std::str::FromStr for Version {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Version, Self::Err> {
        let mut numbers = [0; 3];
        for (slot, part) in numbers.iter_mut().zip(text.trim().split('.')) {
            *slot = part.parse()?;
        }
        Ok(Version::new(numbers[0], numbers[1], numbers[2]))
    }
}

/// The integer that a header gives a macro by `#define NAME 123`.
pub(crate) fn defined(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("define")?.trim_start();
        let rest = rest.strip_prefix(name)?;
        if !rest.starts_with(char::is_whitespace) {
            return None;
        }
        rest.split_whitespace().next()?.parse().ok()
    })
}
