//! Bounds of sums of products: every accumulator of a product of matrices.

use crate::expr::Bounds;
use crate::verify::tensor::Tensor;

/// Half the distance between 1 and the next f32: the largest relative error of one rounding.
const U: f64 = 1.0 / 16_777_216.0;
/// Up to here, every integer is an f32.
pub(super) const EXACT: f64 = 16_777_216.0;

/// Bounds of the sums over k of `A(m,k,l) * B(k,n,l)`, in row-major order of `(m,n,l)`.
pub(super) struct Computed {
    /// Elements of A, `(M,K,L)`, those of one m and l side by side.
    a: Vec<f32>,
    /// Elements of B, `(K,N,L)`, those of one k and l side by side.
    b: Vec<f32>,
    n: usize,
    k: usize,
    batches: usize,
    /// Of the elements of B, for each l and n: whether all are integers.
    integers: Vec<bool>,
    /// Which m, n and l is next.
    m: usize,
    at: usize,
    /// The bounds of one m, `(L,N)`.
    row: Vec<Bounds>,
}

/// The elements of a tensor `(X,Y)` or `(X,Y,L)`, as `(L,X,Y)`.
fn packed(tensor: &Tensor, batches: usize) -> Vec<f32> {
    let all = tensor.span::<f32>().map_or(Vec::new(), |span| tensor.offsets().map(|at| span[at]).collect::<Vec<_>>());
    if batches == 1 {
        return all;
    }
    (0..batches).flat_map(|l| all.iter().skip(l).step_by(batches).copied()).collect()
}

pub(super) fn is_integer(x: f32) -> bool {
    x.is_finite() && x.fract() == 0.0
}

impl Computed {
    /// For `[M, N, K, L]`; a K of 0 takes the place of factors that are not read.
    pub(super) fn new(a: &Tensor, b: &Tensor, extents: [i64; 4]) -> Self {
        let [_, n, k, batches] = extents.map(|e| e.max(0) as usize);
        let (a, b) = if k == 0 { (Vec::new(), Vec::new()) } else { (packed(a, batches), packed(b, batches)) };
        let mut integers = vec![true; batches * n];
        for (row, elements) in b.chunks_exact(n.max(1)).enumerate() {
            let flags = &mut integers[row / k * n..][..n];
            flags.iter_mut().zip(elements).for_each(|(flag, x)| *flag &= is_integer(*x));
        }
        Self { a, b, n, k, batches, integers, m: 0, at: 0, row: Vec::new() }
    }

    fn row_of_a(&self, m: usize, l: usize) -> &[f32] {
        let rows = self.a.len() / (self.k * self.batches).max(1);
        self.a.get((l * rows + m) * self.k..).map_or(&[], |rest| &rest[..self.k])
    }

    fn column_of_b(&self, n: usize, l: usize) -> impl Iterator<Item = f32> {
        (0..self.k).map(move |k| self.b[(l * self.k + k) * self.n + n])
    }

    /// The factors of the sum that was last given.
    pub(super) fn factors(&self) -> impl Iterator<Item = f32> {
        let at = self.at.saturating_sub(1);
        let (n, l) = (at / self.batches.max(1), at % self.batches.max(1));
        self.row_of_a(self.m, l).iter().copied().chain(self.column_of_b(n, l))
    }

    pub(super) fn next(&mut self) -> Bounds {
        let per_row = self.n * self.batches;
        if self.at == per_row {
            self.at = 0;
            self.m += 1;
        }
        if self.at == 0 {
            self.row = (0..self.batches).flat_map(|l| self.bounds_of(self.m, l)).collect();
        }
        let (n, l) = (self.at / self.batches, self.at % self.batches);
        self.at += 1;
        self.row[l * self.n + n]
    }

    /// The bounds of all n.
    fn bounds_of(&self, m: usize, l: usize) -> Vec<Bounds> {
        let row = self.row_of_a(m, l);
        let (mut sums, mut sizes) = (vec![0.0_f64; self.n], vec![0.0_f64; self.n]);
        for (k, a) in row.iter().enumerate() {
            let b = &self.b[(l * self.k + k) * self.n..][..self.n];
            let a = f64::from(*a);
            for ((sum, size), b) in sums.iter_mut().zip(&mut sizes).zip(b) {
                // Exact: two significands of 24 bits, and exponents far from the ends of f64.
                let product = a * f64::from(*b);
                *sum += product;
                *size += product.abs();
            }
        }
        let integers = row.iter().all(|x| is_integer(*x));
        let spread = Spread::new(self.k);
        let bounds = |(n, (sum, size)): (usize, (&f64, &f64))| {
            if integers && *size <= EXACT && self.integers[l * self.n + n] {
                // What began with 0 is never -0.
                return Bounds::point(*sum);
            }
            if spread.greatest(*size) <= f64::from(f32::MAX) {
                let error = spread.error(*size);
                return Bounds::between(sum - error, sum + error);
            }
            beyond(spread, row, self.column_of_b(n, l))
        };
        sums.iter().zip(&sizes).enumerate().map(bounds).collect()
    }
}

/// How far rounded sums of so many products may be from exact ones.
///
/// In a tree of K products with any shape, each product is rounded once and takes part in at most K - 1 additions that are
/// rounded; adding 0 is exact, so that parts of K, and zeros beyond the edge of a matrix, add nothing. So the sum is one of
/// `a * b * (1 + d)` with `|d| <= (1 + u)^K - 1 <= e^(K u) - 1`. A product below the normal numbers is off by at most half of
/// the smallest subnormal, 2^-150, which grows no more than twice where K u is below ln 2, and else by e^(K u).
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) relative: f64,
    pub(super) absolute: f64,
}

impl Spread {
    pub(super) fn new(k: usize) -> Self {
        let k = k as f64;
        // The reference and the sum of sizes are sums of K numbers in f64 themselves: each is off by (1 + 2^-53)^K - 1. Some
        // roundings more are those of the lines here; twice as many are taken.
        let reference = 4.0 * (k + 16.0) / 9_007_199_254_740_992.0;
        let relative = (libm::expm1(k * U) + reference) * (1.0 + 2.0 * reference);
        let smallest = f64::from(f32::from_bits(1));
        Self { relative, absolute: k * smallest * (1.0 + relative) }
    }

    pub(super) fn error(self, size: f64) -> f64 {
        size * self.relative + self.absolute
    }

    /// The largest rounded sum of products that sum up to `size` in absolute value.
    pub(super) fn greatest(self, size: f64) -> f64 {
        size + self.error(size)
    }
}

/// The bounds where infinities and NaN take part, or where a partial sum may overflow.
fn beyond(spread: Spread, row: &[f32], column: impl Iterator<Item = f32>) -> Bounds {
    let (mut nan, mut up, mut down) = (false, false, false);
    let (mut positive, mut negative) = (0.0, 0.0);
    for (a, b) in row.iter().zip(column) {
        match f64::from(*a) * f64::from(b) {
            x if x.is_nan() => nan = true,
            f64::INFINITY => up = true,
            f64::NEG_INFINITY => down = true,
            x if x > 0.0 => positive += x,
            x => negative -= x,
        }
    }
    // What is NaN stays so, and infinities of both signs meet in one addition or another.
    if nan || (up && down) {
        return Bounds::point(f64::NAN);
    }
    let largest = f64::from(f32::MAX);
    let overflows = |size: f64| spread.greatest(size) > largest;
    // Every partial sum lies between those of all positive and of all negative products.
    let (may_rise, may_fall) = (overflows(positive), overflows(negative));
    if up || down {
        let other = if up { may_fall } else { may_rise };
        return Bounds::point(if up { f64::INFINITY } else { f64::NEG_INFINITY }).or_nan(other);
    }
    let (sum, error) = (positive - negative, spread.error(positive + negative));
    let low = if may_fall { f64::NEG_INFINITY } else { sum - error };
    let high = if may_rise { f64::INFINITY } else { sum + error };
    Bounds::between(low, high).or_nan(may_rise && may_fall)
}
