//! Bounds of sums of products: every accumulator of a product of matrices.

use super::blocks::Blocks;
use super::grouping::Grouping;
use super::spread::{Spread, Terms};
use super::tf32;
use crate::dtype::DType;
use crate::expr::Bounds;
use crate::plan::{Arithmetic, BlockScales};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Scalar, Tensor, with_scalar};

/// The factors of the sums over k of `A(m,k,l) * B(k,n,l)`.
pub(super) struct Computed {
    /// Elements of A, `(M,K,L)`, those of one m and l side by side.
    a: Vec<f32>,
    /// Elements of B, `(K,N,L)`, those of one k and l side by side.
    pub(super) b: Vec<f32>,
    /// For each element of A and B, the distance to the other way to round it; empty if they are not rounded.
    steps: [Vec<f32>; 2],
    pub(super) n: usize,
    pub(super) k: usize,
    /// Matrices of A.
    of_a: usize,
    /// Matrices of D.
    batches: usize,
    /// Neighbouring columns whose sums are given together.
    together: usize,
    groups: Grouping,
    /// For each l and n, whether all elements of B are integers.
    pub(super) integers: Vec<bool>,
    /// Of A and B, the sizes that what is smaller counts as.
    pub(super) least: [f64; 2],
    arithmetic: Arithmetic,
    pub(super) spread: Spread,
    /// The scales of blocks.
    blocks: Option<Blocks>,
}

/// Bounds of the sums, in row-major order of `(m,n,l)`, where n counts columns that are given together.
pub(super) struct ComputedSums<'a> {
    factors: &'a Computed,
    /// Which m is next, and which n and l.
    m: usize,
    at: usize,
    /// The bounds of one m, `(L,N)`; none where they are still to be computed.
    row: Vec<Bounds>,
}

/// The elements of a tensor `(X,Y)` or `(X,Y,L)`, as `(L,X,Y)`.
pub(super) fn packed(tensor: &Tensor, batches: usize) -> Vec<f32> {
    // Every factor is an f32, or of a type whose values all are.
    let all: Vec<f32> = with_scalar!(tensor.dtype(), T => match tensor.span::<T>() {
        Some(span) => tensor.offsets().map(|at| span[at].value() as f32).collect(),
        None => Vec::new(),
    });
    if batches == 1 {
        return all;
    }
    (0..batches).flat_map(|l| all.iter().skip(l).step_by(batches).copied()).collect()
}

/// Tensor cores align 8-bit floats below the normal numbers as they align the smallest of those: the size that such a one counts as in
/// a sum's error.
pub(super) fn least(dtype: DType, arithmetic: Arithmetic) -> f64 {
    match (arithmetic, dtype) {
        (Arithmetic::Fp8 { .. }, DType::E4m3) => libm::ldexp(1.0, -6),
        (Arithmetic::Fp8 { .. }, DType::E5m2) => libm::ldexp(1.0, -14),
        _ => 0.0,
    }
}

/// The size that an element counts as, at least so large unless it is 0.
pub(super) fn counted(x: f64, least: f64) -> f64 {
    // The comparison is false for NaN.
    if x != 0.0 && x.abs() < least { least } else { x.abs() }
}

pub(super) fn is_integer(x: f32) -> bool {
    x.is_finite() && x.fract() == 0.0
}

impl Computed {
    /// For `[M, N, K, L]`; a K of 0 takes the place of factors that are not read.
    pub(super) fn new(
        a: &Tensor,
        b: &Tensor,
        extents: [i64; 4],
        arithmetic: Arithmetic,
        scales: Option<([&Tensor; 2], BlockScales)>,
    ) -> Self {
        let [_, n, k, batches] = extents.map(|e| e.max(0) as usize);
        let [of_a, of_b] = [a, b].map(|factor| factor.shape().get(2).map_or(1, |l| (*l).max(0) as usize));
        let least = [a, b].map(|factor| least(factor.dtype(), arithmetic));
        let (a, b) = if k == 0 { (Vec::new(), Vec::new()) } else { (packed(a, of_a), packed(b, of_b)) };
        let (mut a, mut b, mut steps) = (a, b, [Vec::new(), Vec::new()]);
        if arithmetic == Arithmetic::Tf32 {
            steps = [&mut a, &mut b].map(|factor| tf32::round_all(factor));
        }
        let mut integers = vec![true; of_b * n];
        for (row, elements) in b.chunks_exact(n.max(1)).enumerate() {
            let flags = &mut integers[row / k * n..][..n];
            flags.iter_mut().zip(elements).for_each(|(flag, x)| *flag &= is_integer(*x));
        }
        let spread = Spread::of(k, arithmetic);
        let blocks = scales.map(|(scales, rows)| Blocks::new(scales, rows));
        let groups = Grouping::None;
        let together = 1;
        Self { a, b, steps, n, k, of_a, batches, together, groups, integers, least, arithmetic, spread, blocks }
    }

    /// The same of groups of rows.
    pub(super) fn grouped(self, groups: Grouping) -> Self {
        Self { groups, ..self }
    }

    /// The same, so many neighbouring columns at a time.
    pub(super) fn given_together(self, together: usize) -> Self {
        Self { together, ..self }
    }

    /// The same with these rows of A; zeros where there is none.
    pub(super) fn gathered(mut self, rows: &[Option<usize>]) -> Self {
        let k = self.k;
        let of = |all: &Vec<f32>| -> Vec<f32> {
            let row = |row: &Option<usize>| row.map_or_else(|| vec![0.0; k], |row| all[row * k..][..k].to_vec());
            rows.iter().flat_map(row).collect()
        };
        for all in [&mut self.a, &mut self.steps[0]].into_iter().filter(|all| !all.is_empty()) {
            *all = of(all);
        }
        self
    }

    pub(super) fn row_of_a(&self, m: usize, l: usize) -> &[f32] {
        self.row(&self.a, m, l)
    }

    fn row<'a>(&self, of: &'a [f32], m: usize, l: usize) -> &'a [f32] {
        let rows = of.len() / (self.k * self.of_a).max(1);
        let l = l.min(self.of_a.saturating_sub(1));
        of.get((l * rows + m) * self.k..).map_or(&[], |rest| &rest[..self.k])
    }

    /// The most that the sums of one m and all n move if values halfway between two factors round the other way.
    fn moved(&self, m: usize, [l, of_b]: [usize; 2]) -> Vec<f64> {
        let mut moved = vec![0.0_f64; self.n];
        let [steps_a, steps_b] = &self.steps;
        if steps_a.is_empty() {
            return moved;
        }
        for (k, (a, step_a)) in self.row_of_a(m, l).iter().zip(self.row(steps_a, m, l)).enumerate() {
            let at = (of_b * self.k + k) * self.n;
            let (a, step_a) = (f64::from(a.abs()), f64::from(*step_a));
            for ((moved, b), step_b) in moved.iter_mut().zip(&self.b[at..]).zip(&steps_b[at..]) {
                let (b, step_b) = (f64::from(b.abs()), f64::from(*step_b));
                *moved += a * step_b + step_a * (b + step_b);
            }
        }
        moved
    }

    pub(super) fn column_of_b(&self, n: usize, l: usize) -> impl Iterator<Item = f32> {
        (0..self.k).map(move |k| self.b[(l * self.k + k) * self.n + n])
    }

    /// How often sums of one m are given, which are computed together.
    fn per_row(&self) -> usize {
        self.n / self.together * self.batches
    }

    /// The least number of whole m whose sums are worth starting a thread.
    pub(super) fn grain(&self) -> u64 {
        let row = self.per_row().max(1) as u64;
        row * (GRAIN / (row * self.k.max(1) as u64)).max(1)
    }

    /// The sums from the `index`-th on.
    pub(super) fn starting_at(&self, index: u64) -> ComputedSums<'_> {
        let (index, per_row) = (index as usize, self.per_row().max(1));
        ComputedSums { factors: self, m: index / per_row, at: index % per_row, row: Vec::new() }
    }

    /// The bounds of all n, NaN where a row is of no group.
    fn bounds_of(&self, m: usize, l: usize) -> Vec<Bounds> {
        let Some(of_b) = self.groups.matrix(m, l) else { return vec![Bounds::point(f64::NAN); self.n] };
        if let Some(blocks) = &self.blocks {
            return self.scaled_bounds_of(blocks, m, [l, of_b]);
        }
        let row = self.row_of_a(m, l);
        let (mut sums, mut sizes) = (vec![0.0_f64; self.n], vec![0.0_f64; self.n]);
        let [least_a, least_b] = self.least;
        let range = self.groups.range(l, row.len());
        for (k, a) in row.iter().enumerate().take(range.end).skip(range.start) {
            let b = &self.b[(of_b * self.k + k) * self.n..][..self.n];
            let a = f64::from(*a);
            let size_a = counted(a, least_a);
            for ((sum, size), b) in sums.iter_mut().zip(&mut sizes).zip(b) {
                // Exact: two significands of 24 bits, and exponents far from the ends of f64.
                let product = a * f64::from(*b);
                *sum += product;
                *size += size_a * counted(f64::from(*b), least_b);
            }
        }
        let integers = row.iter().all(|x| is_integer(*x));
        let whole = range == (0..row.len());
        let spread = if whole { self.spread } else { Spread::of(range.len(), self.arithmetic) };
        let moved = self.moved(m, [l, of_b]);
        let bounds = |(n, (sum, size)): (usize, (&f64, &f64))| {
            // A sum of sums: it adds this many numbers itself.
            let moved = moved[n] * (1.0 + spread.relative);
            let size = size + moved;
            if moved == 0.0 && integers && size <= spread.exact() && self.integers[of_b * self.n + n] {
                // What began with 0 is never -0.
                return Bounds::point(*sum);
            }
            if spread.greatest(size) <= spread.largest() {
                let error = spread.error(size) + moved;
                return Bounds::between(sum - error, sum + error);
            }
            let column = self.column_of_b(n, of_b).take(range.end).skip(range.start);
            beyond(spread, &row[range.clone()], column, moved)
        };
        sums.iter().zip(&sizes).enumerate().map(bounds).collect()
    }
}

impl ComputedSums<'_> {
    /// The factors of the sums that were last given.
    pub(super) fn factors(&self) -> impl Iterator<Item = f32> {
        let (at, batches, together) = (self.at.saturating_sub(1), self.factors.batches.max(1), self.factors.together);
        let (n, l) = (at / batches * together, at % batches);
        let of_b = self.matrix().unwrap_or(0);
        let columns = (n..n + together).flat_map(move |n| self.factors.column_of_b(n, of_b));
        self.factors.row_of_a(self.m, l).iter().copied().chain(columns)
    }

    /// The matrix of B that the sums that were last given are of, if its row is of a group.
    pub(super) fn matrix(&self) -> Option<usize> {
        self.factors.groups.matrix(self.m, self.at.saturating_sub(1) % self.factors.batches.max(1))
    }

    /// The sums of the next columns.
    pub(super) fn next(&mut self) -> &[Bounds] {
        let Computed { n: extent, batches, together, .. } = *self.factors;
        if self.at == self.factors.per_row() {
            self.at = 0;
            self.m += 1;
            self.row.clear();
        }
        if self.row.is_empty() {
            self.row = (0..batches).flat_map(|l| self.factors.bounds_of(self.m, l)).collect();
        }
        let (n, l) = (self.at / batches, self.at % batches);
        self.at += 1;
        &self.row[l * extent + n * together..][..together]
    }
}

/// The bounds where infinities and NaN take part, or where a partial sum may overflow.
fn beyond(spread: Spread, row: &[f32], column: impl Iterator<Item = f32>, moved: f64) -> Bounds {
    let mut terms = Terms::new(false);
    for (a, b) in row.iter().zip(column) {
        let product = f64::from(*a) * f64::from(b);
        terms.add((!product.is_nan()).then_some((product, product)), product.is_nan());
    }
    if moved.is_finite() {
        terms.add(Some((-moved, moved)), false);
    }
    terms.bounds(spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::spread::U;
    use crate::tensor::{Fill, TensorLayout};

    fn factor(rows: u64, cols: u64, fill: Fill, seed: u64) -> Tensor {
        let mut tensor = Tensor::new(DType::F16, TensorLayout::padded(rows, cols, cols + 3)).expect("small");
        tensor.fill(fill, seed);
        tensor
    }

    /// The element as the sums take it.
    fn at(tensor: &Tensor, row: u64, column: u64) -> f32 {
        half::f16::from_bits(tensor.bits(row, column).expect("an element") as u16).to_f32()
    }

    #[test]
    fn factors_of_16_bits_are_summed_exactly() {
        let (m, n, k) = (3, 5, 20);
        let (a, b) = (factor(m, k, Fill::Integers, 1), factor(k, n, Fill::Integers, 2));
        let factors = Computed::new(&a, &b, [m, n, k, 1].map(|e| e as i64), Arithmetic::TensorCores, None);
        let mut sums = factors.starting_at(0);
        for row in 0..m {
            for column in 0..n {
                let sum: f32 = (0..k).map(|i| at(&a, row, i) * at(&b, i, column)).sum();
                assert_eq!(sums.next(), [Bounds::point(sum.into())], "({row},{column})");
            }
        }
    }

    #[test]
    fn what_lies_halfway_between_two_tf32_may_go_either_way() {
        let bounds = |a: f32, b: f32| {
            let [a, b] = [(a, [1, 4]), (b, [4, 1])].map(|(x, shape)| Tensor::of(&[x; 4], &shape).expect("small"));
            Computed::new(&a, &b, [1, 1, 4, 1], Arithmetic::Tf32, None).starting_at(0).next()[0]
        };
        assert_eq!(bounds(3.0, 2048.0), Bounds::point(4.0 * 3.0 * 2048.0));
        // Nearer to 2048 than to 2050.
        let near = bounds(3.0, 2048.5).range().expect("numbers");
        assert!(near.0 < 4.0 * 3.0 * 2048.0 + 1.0 && near.1 < 4.0 * 3.0 * 2048.0 + 1.0, "{near:?}");
        let halfway = bounds(3.0, 2049.0).range().expect("numbers");
        assert!(halfway.0 <= 4.0 * 3.0 * 2048.0 && halfway.1 >= 4.0 * 3.0 * 2050.0, "{halfway:?}");
        assert!(halfway.1 - halfway.0 < 2.1 * 4.0 * 3.0 * 2.0, "{halfway:?}");
    }

    /// A tensor core as bad as the bound allows for: 4 products at a time, each term cut at the exponent of the largest.
    fn truncated(terms: &[f32], k: usize) -> f32 {
        let cut = |x: f64, ulp: f64| (x / ulp).trunc() * ulp;
        let mut sum = 0.0_f64;
        for group in terms[..k].chunks(4) {
            let all = || group.iter().map(|x| f64::from(*x)).chain([sum]);
            let largest = all().fold(0.0_f64, |a, b| a.max(b.abs()));
            let ulp = |x: f64| if x == 0.0 { 1.0 } else { 2.0_f64.powi(x.abs().log2().floor() as i32 - 23) };
            let total: f64 = all().map(|x| cut(x, ulp(largest))).sum();
            sum = cut(total, ulp(total));
        }
        sum as f32
    }

    /// A tensor core's sum of 8-bit floats, 16 products at a time: all terms cut 13 bits below the largest, and the sum to 14 bits; after
    /// each `promoted` of them added to an f32.
    fn of_few_bits(terms: &[f64], promoted: usize) -> f64 {
        let cut = |x: f64, largest: f64| {
            let unit = 2.0_f64.powi(largest.abs().log2().floor() as i32 - 13);
            if x == 0.0 { 0.0 } else { (x / unit).trunc() * unit }
        };
        let mut whole = 0.0_f32;
        for part in terms.chunks(if promoted == 0 { terms.len() } else { promoted }) {
            let mut sum = 0.0_f64;
            for group in part.chunks(16) {
                let all = || group.iter().copied().chain([sum]);
                let largest = all().fold(0.0_f64, |a, b| a.max(b.abs()));
                let total: f64 = all().map(|x| cut(x, largest)).sum();
                sum = cut(total, total);
            }
            whole += sum as f32;
        }
        f64::from(whole)
    }

    #[test]
    fn what_sums_of_8_bit_floats_lose_is_within_their_bound_and_beyond_that_of_16_bits() {
        // The largest first, so that each later one loses most of what it has, or all.
        for (k, promoted) in [(16, 0), (64, 0), (1000, 0), (1000, 128), (4096, 0), (4096, 128), (4096, 32)] {
            for small in [1.999 / 8192.0, 0.999 / 8192.0] {
                let mut terms = vec![small; k];
                terms[0] = 1.0;
                let exact: f64 = terms.iter().sum();
                let error = (of_few_bits(&terms, promoted) - exact).abs();
                let of = |arithmetic| Spread::of(k, arithmetic).error(exact);
                assert!(error <= of(Arithmetic::Fp8 { promoted: promoted as u32 }), "K = {k}, {promoted}: {error:e}");
                assert!(error > of(Arithmetic::TensorCores), "K = {k}, {promoted}: {error:e} is nothing to allow for");
            }
        }
        let of = |promoted| Spread::of(4096, Arithmetic::Fp8 { promoted }).relative;
        assert!(of(128) < of(0) / 20.0 && of(0) < 1.1, "{} and {}", of(128), of(0));
    }

    #[test]
    fn floats_below_the_normal_numbers_count_as_the_smallest_of_those() {
        let spread = |a: f32, dtype| {
            let mut tensor = Tensor::new(dtype, TensorLayout::contiguous(1, 32)).expect("small");
            with_scalar!(dtype, T => tensor.set_each::<T>(|_| T::nearest(a.into())));
            let mut b = Tensor::new(DType::E4m3, TensorLayout::contiguous(32, 1)).expect("small");
            b.set_each::<crate::dtype::E4m3>(|_| Scalar::nearest(1.0));
            let sums = Computed::new(&tensor, &b, [1, 1, 32, 1], Arithmetic::Fp8 { promoted: 0 }, None);
            let (low, high) = sums.starting_at(0).next()[0].range().expect("numbers");
            (high - low) / 2.0
        };
        let [small, normal] = [2.0_f32.powi(-9), 2.0_f32.powi(-6)].map(|a| spread(a, DType::E4m3));
        // The ends of the bounds are at most 1, and rounded.
        let same = |a: f64, b: f64| (a - b).abs() <= f64::EPSILON;
        assert!(same(small, normal) && normal > 1e-3 && same(spread(0.0, DType::E4m3), 0.0), "{small} and {normal}");
        let [small, normal] = [-16, -14].map(|power| spread(2.0_f32.powi(power), DType::E5m2));
        assert!(same(small, normal) && normal > 1e-6, "{small} and {normal}");
    }

    #[test]
    fn what_tensor_cores_cut_off_is_within_their_bound_and_may_be_beyond_that_of_rounding() {
        // The largest product first, so that each later one loses the bits below its last one.
        for k in [4, 5, 16, 64, 1000] {
            let mut terms = vec![1.999_999_f32 * 2.0_f32.powi(-23); k];
            terms[0] = 1.0;
            let exact: f64 = terms.iter().map(|x| f64::from(*x)).sum();
            let error = (f64::from(truncated(&terms, k)) - exact).abs();
            assert!(error <= Spread::of(k, Arithmetic::TensorCores).error(exact), "K = {k}: {error:e}");
            if k >= 16 {
                assert!(
                    error > Spread::of(k, Arithmetic::F32).error(exact) / 2.0,
                    "K = {k}: {error:e} is nothing to allow for"
                );
            }
        }
        // 12 roundings for 4 products, 4 in f32: no wider bound than that.
        for k in [4, 64, 4096] {
            let ratio = Spread::of(k, Arithmetic::TensorCores).relative / Spread::of(k, Arithmetic::F32).relative;
            assert!((2.9..3.1).contains(&ratio), "K = {k}: {ratio}");
            let roundings = Spread::of(k, Arithmetic::F32).relative / U;
            assert!((k as f64..1.01 * k as f64).contains(&roundings), "K = {k}: {roundings}");
        }
    }
}
