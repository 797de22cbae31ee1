//! What was measured: for problems of a device, the fastest recipe among candidates.

use core::fmt;
use core::str::FromStr;

use super::{Major, Sgemm};
use crate::recipe::{Recipe, Settings};

/// M, N, K and how A and B lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Rows of A and D.
    pub m: u64,
    /// Columns of B and D.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Along which mode A is contiguous.
    pub a: Major,
    /// Along which mode B is contiguous.
    pub b: Major,
}

impl Problem {
    /// A problem with A and B in rows.
    pub fn rows(m: u64, n: u64, k: u64) -> Self {
        Self { m, n, k, a: Major::Row, b: Major::Row }
    }

    /// Whether rows without gaps begin at multiples of 16 bytes.
    pub fn is_aligned(&self) -> bool {
        let contiguous = |major: Major, rows: u64, cols: u64| if major == Major::Row { cols } else { rows };
        [contiguous(self.a, self.m, self.k), contiguous(self.b, self.k, self.n), self.n].iter().all(|e| e % 4 == 0)
    }

    /// How different another problem is: the sum of the factors between the extents, as powers of 2; `None` where it lies
    /// otherwise in memory.
    pub fn distance(&self, other: &Problem) -> Option<f64> {
        let alike = (self.a, self.b, self.is_aligned()) == (other.a, other.b, other.is_aligned());
        let factor = |x: u64, y: u64| (x.max(1) as f64 / y.max(1) as f64).log2().abs();
        alike.then(|| factor(self.m, other.m) + factor(self.n, other.n) + factor(self.k, other.k))
    }

    /// Which of these problems is the most similar; among equals the first.
    pub fn nearest(&self, problems: &[Problem]) -> Option<usize> {
        let near = problems.iter().enumerate().filter_map(|(i, other)| Some((self.distance(other)?, i)));
        near.min_by(|(x, _), (y, _)| x.total_cmp(y)).map(|(_, index)| index)
    }
}

impl fmt::Display for Problem {
    /// `4096x4096x4096 row row`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, n, k, a, b } = self;
        write!(f, "{m}x{n}x{k} {a} {b}")
    }
}

impl FromStr for Problem {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no problem; one is 4096x4096x4096 row row");
        let mut words = text.split_whitespace();
        let extents = words.next().ok_or_else(bad)?.split('x').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let &[m, n, k] = extents.map_err(|_| bad())?.first_chunk::<3>().ok_or_else(bad)?;
        let mut major = || words.next().and_then(|word| word.parse().ok()).ok_or_else(bad);
        Ok(Self { m, n, k, a: major()?, b: major()? })
    }
}

/// The fastest recipe for a problem, with its rate then.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The problem.
    pub problem: Problem,
    /// The recipe.
    pub recipe: Sgemm,
    /// Its rate, in 10^12 operations a second.
    pub tflop_per_s: f64,
    /// Its rate divided by that of cuBLAS in the same run.
    pub ratio: f64,
}

/// What was measured on one kind of device.
///
/// ```
/// use cutemplate::recipe::sgemm::{Problem, Record};
///
/// let h200 = Record::h200();
/// let found = h200.nearest(&Problem::rows(4000, 4096, 4096)).expect("aligned problems with rows were measured");
/// assert_eq!(found.problem, Problem::rows(4096, 4096, 4096));
/// // The text is what `cutemplate tune --record` writes.
/// assert_eq!(h200.to_string().parse(), Ok(h200));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The name of the device.
    pub device: String,
    /// A row for each problem.
    pub rows: Vec<Measured>,
}

impl Record {
    /// What was measured on an NVIDIA H200, with nvcc 13.0.
    pub fn h200() -> Self {
        match include_str!("h200.txt").parse() {
            Ok(record) => record,
            Err(defect) => unreachable!("the record of the H200 is one: {defect}"),
        }
    }

    /// The row of the most similar problem; among equals the first.
    pub fn nearest(&self, problem: &Problem) -> Option<&Measured> {
        let problems: Vec<Problem> = self.rows.iter().map(|row| row.problem).collect();
        self.rows.get(problem.nearest(&problems)?)
    }
}

impl fmt::Display for Record {
    /// A line for the device and one for each problem: `512x512x512 row row | tile=32x64x32; .. | 23.38 1.123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.device)?;
        for row in &self.rows {
            let usual = Sgemm::rung(row.recipe.variant).settings();
            let settings = row.recipe.settings();
            let told = settings.iter().filter(|(key, value)| *key == "variant" || usual.get(key) != Some(value));
            let told: Vec<String> = told.map(|(key, value)| format!("{key}={value}")).collect();
            writeln!(f, "{} | {} | {:.2} {:.4}", row.problem, told.join("; "), row.tflop_per_s, row.ratio)?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let device = lines.next().ok_or("a record begins with the name of a device")?.to_owned();
        Ok(Self { device, rows: lines.map(row).collect::<Result<_, _>>()? })
    }
}

fn row(line: &str) -> Result<Measured, String> {
    let parts: Vec<&str> = line.split(" | ").collect();
    let &[problem, settings, rates] = parts.as_slice() else {
        return Err(format!("`{line}` has no three parts with ` | ` between them"));
    };
    let rates: Vec<f64> = rates.split_whitespace().filter_map(|rate| rate.parse().ok()).collect();
    let &[tflop_per_s, ratio] = rates.as_slice() else {
        return Err(format!("`{line}` does not end in a rate and a ratio"));
    };
    let recipe = Sgemm::from_settings(&Settings::parse_lines(&settings.replace("; ", "\n")));
    Ok(Measured { problem: problem.parse()?, recipe: recipe.map_err(|e| e.to_string())?, tflop_per_s, ratio })
}
