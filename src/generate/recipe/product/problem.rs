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
        alike.then(|| self.factors(other))
    }

    /// The sum of the factors between the extents, as powers of 2.
    fn factors(&self, other: &Problem) -> f64 {
        let factor = |x: u64, y: u64| (x.max(1) as f64 / y.max(1) as f64).log2().abs();
        factor(self.m, other.m) + factor(self.n, other.n) + factor(self.k, other.k)
    }

    /// The index of the most similar of these problems; among equals the first.
    pub fn nearest(&self, problems: &[Problem]) -> Option<usize> {
        let near = problems.iter().enumerate().filter_map(|(i, other)| Some((self.distance(other)?, i)));
        near.min_by(|(x, _), (y, _)| x.total_cmp(y)).map(|(_, index)| index)
    }

    /// The index of the problem whose kernel serves this one: the most similar; one with other rows, if none has rows that begin at
    /// multiples of 16 bytes as this one's do, or do not. A kernel runs both.
    pub fn served_by(&self, problems: &[Problem]) -> Option<usize> {
        let others = problems.iter().enumerate().filter(|(_, other)| (other.a, other.b) == (self.a, self.b));
        let nearest = || others.min_by(|(_, x), (_, y)| self.factors(x).total_cmp(&self.factors(y)));
        self.nearest(problems).or_else(|| nearest().map(|(index, _)| index))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that begin anywhere are no reason to have no kernel; other majors are.
    #[test]
    fn a_problem_is_served_by_the_kernels_of_its_majors() {
        let all = [Problem::rows(64, 64, 64), Problem::rows(4096, 4096, 4096)];
        assert_eq!(Problem::rows(63, 61, 67).served_by(&all), Some(0));
        assert_eq!(Problem::rows(4000, 4001, 5003).served_by(&all), Some(1));
        assert_eq!(Problem { b: Major::Col, ..all[0] }.served_by(&all), None);
        let other = Problem::rows(4097, 4097, 4097);
        assert_eq!(Problem::rows(63, 61, 67).served_by(&[all[0], other]), Some(1), "alike in memory comes first");
    }
}
