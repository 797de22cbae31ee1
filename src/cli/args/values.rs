//! The values of arguments.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

/// A compute capability, (major, minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capability(pub(crate) u32, pub(crate) u32);

impl FromStr for Capability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('.').and_then(|(x, y)| Some(Self(x.parse().ok()?, y.parse().ok()?)));
        numbers.ok_or_else(|| format!("`{text}` is not a compute capability; for example 8.6"))
    }
}

/// Where to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The GPU if there is one, else as `cpu`.
    Auto,
    /// The executor: it runs the PTX that nvcc makes.
    Cpu,
    /// The GPU, or fail.
    Gpu,
}

/// The checks of the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Accesses outside of all memory, misaligned ones, and deadlocks: the fastest.
    Plain,
    /// Also gaps of tensors and uninitialised reads.
    Bounds,
    /// Also races.
    Races,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Plain => "plain",
            Mode::Bounds => "bounds",
            Mode::Races => "races",
        })
    }
}

/// A problem size: one extent for each mode of the kernel's tensors, `ROWSxCOLS`, and `MxNxK` for a product of
/// matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem(pub(crate) Vec<i64>);

impl FromStr for Problem {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let extent = |text: &str| {
            let extent =
                text.parse::<i64>().map_err(|e| format!("`{text}`: {e}; required ROWSxCOLS, for example 1023x511"));
            extent.and_then(|e| match e {
                0.. => Ok(e),
                _ => Err(format!("`{text}`: an extent must be at least 0")),
            })
        };
        Ok(Problem(s.split('x').map(extent).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"))
    }
}

/// The value of a run-time scalar, `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scalar {
    pub(crate) name: String,
    pub(crate) value: f64,
}

impl FromStr for Scalar {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (name, value) = s.split_once('=').ok_or("required NAME=VALUE, for example alpha=0.5")?;
        let value = value.trim().parse().map_err(|e| format!("`{value}`: {e}; required a number"))?;
        Ok(Scalar { name: name.trim().to_owned(), value })
    }
}

/// A time of at most an hour.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "seconds, 0 to 3600, such as 0.5".to_owned())
}

/// A file whose name gives its format.
pub(super) fn svg_file(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return Ok(path);
    }
    let help = path.with_extension("svg");
    Err(format!("a picture is SVG, and its name ends in .svg: {}", help.display()))
}
