//! Problems of a matrix product.

use core::fmt;
use core::str::FromStr;

use super::Major;
use crate::plan::Plan;

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

    /// The problem of these extents with A and B, the first two operands, as a plan takes them; `None` if they are not
    /// matrices.
    pub fn of(plan: &Plan, [m, n, k]: [u64; 3]) -> Option<Self> {
        let [a, b, ..] = plan.operands() else { return None };
        Some(Self { m, n, k, a: Major::of(&a.strides)?, b: Major::of(&b.strides)? })
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

    /// The index of the most similar of these problems; among equals the first.
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
        let bad = || format!("`{text}` is not a problem; for example 4096x4096x4096 row row");
        let mut words = text.split_whitespace();
        let extents = words.next().ok_or_else(bad)?.split('x').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let &[m, n, k] = extents.map_err(|_| bad())?.first_chunk::<3>().ok_or_else(bad)?;
        let mut major = || words.next().and_then(|word| word.parse().ok()).ok_or_else(bad);
        Ok(Self { m, n, k, a: major()?, b: major()? })
    }
}
