//! Scales of blocks: what multiplies each sum over 128 of K, and the bounds of such sums together.

use super::spread::{EXACT, Terms};
use super::sums::{Computed, counted, is_integer, packed};
use crate::dtype::DType;
use crate::expr::Bounds;
use crate::plan::{BlockScales, SCALED_K};
use crate::tensor::{Tensor, power_of_two};

/// Elements of K that share a scale.
const BLOCK: usize = SCALED_K as usize;

/// The scales of A and B.
pub(super) struct Blocks {
    /// Those of A, `(L,BLOCKS_M,BLOCKS_K)`, and of B, `(L,BLOCKS_K,BLOCKS_N)`.
    scales: [Vec<f32>; 2],
    /// Rows of A, and columns of B, that share one.
    rows: [usize; 2],
    /// BLOCKS_M, BLOCKS_K and BLOCKS_N.
    counts: [usize; 3],
}

impl Blocks {
    /// For the scales of blocks with so many rows of A and columns of B.
    pub(super) fn new(scales: [&Tensor; 2], rows: BlockScales) -> Self {
        let extent = |of: usize, mode: usize| scales[of].shape().get(mode).map_or(0, |e| e.unsigned_abs() as usize);
        Self {
            counts: [extent(0, 0), extent(0, 1), extent(1, 1)],
            rows: rows.map(|rows| rows.unsigned_abs().max(1) as usize),
            scales: scales.map(|of| {
                let mut all = packed(of, of.shape().get(2).map_or(1, |l| l.unsigned_abs() as usize));
                if of.dtype() == DType::U8 {
                    all.iter_mut().for_each(|exponent| *exponent = power_of_two(*exponent as u8));
                }
                all
            }),
        }
    }

    /// What multiplies the sum of A's row m and B's column n over block `k`, of these matrices of A and B.
    pub(super) fn scale(&self, [m, n, k]: [usize; 3], [l, of_b]: [usize; 2]) -> f32 {
        let ([a, b], [of_m, of_n], [all_m, all_k, all_n]) = (&self.scales, self.rows, self.counts);
        let of = |scales: &[f32], at: usize| scales.get(at).copied().unwrap_or(f32::NAN);
        of(a, (l * all_m + m / of_m) * all_k + k) * of(b, (of_b * all_k + k) * all_n + n / of_n)
    }
}

impl Computed {
    /// The bounds of all n of a row of A, whose sums over blocks are scaled. A block's scale is exact: the kernel rounds the product of
    /// the two scales as it is rounded here. So what `Spread` says of a term's size holds of the scaled term: the sum of a block is cut
    /// in proportion to its size, which the scale multiplies, and each addition in f32 rounds once.
    pub(super) fn scaled_bounds_of(&self, blocks: &Blocks, m: usize, [l, of_b]: [usize; 2]) -> Vec<Bounds> {
        let row = self.row_of_a(m, l);
        let (mut sums, mut sizes, mut exact) = (vec![0.0_f64; self.n], vec![0.0_f64; self.n], vec![true; self.n]);
        let [least_a, least_b] = self.least;
        for (block, of_a) in row.chunks(BLOCK).enumerate() {
            let (mut sum, mut size) = (vec![0.0_f64; self.n], vec![0.0_f64; self.n]);
            for (k, a) in (block * BLOCK..).zip(of_a) {
                let (a, size_a) = (f64::from(*a), counted(f64::from(*a), least_a));
                for ((sum, size), b) in sum.iter_mut().zip(&mut size).zip(&self.b[(of_b * self.k + k) * self.n..]) {
                    *sum += a * f64::from(*b);
                    *size += size_a * counted(f64::from(*b), least_b);
                }
            }
            for n in 0..self.n {
                let scale = blocks.scale([m, n, block], [l, of_b]);
                exact[n] &= size[n] <= self.spread.exact() && is_integer(scale);
                sums[n] += f64::from(scale) * sum[n];
                sizes[n] += f64::from(scale.abs()) * size[n];
            }
        }
        let integers = row.iter().all(|x| is_integer(*x));
        let bounds = |n: usize| {
            if integers && exact[n] && sizes[n] <= EXACT && self.integers[of_b * self.n + n] {
                // What began with 0 is never -0.
                return Bounds::point(sums[n] + 0.0);
            }
            if self.spread.greatest(sizes[n]) <= self.spread.largest() {
                let error = self.spread.error(sizes[n]);
                return Bounds::between(sums[n] - error, sums[n] + error);
            }
            self.beyond_blocks(blocks, [m, n], [l, of_b])
        };
        (0..self.n).map(bounds).collect()
    }

    /// The same of one sum where infinities and NaN take part, or where it may overflow: of each block what its sum may be, scaled.
    fn beyond_blocks(&self, blocks: &Blocks, [m, n]: [usize; 2], [l, of_b]: [usize; 2]) -> Bounds {
        let column: Vec<f32> = self.column_of_b(n, of_b).collect();
        let mut all = Terms::new(false);
        for (block, (a, b)) in self.row_of_a(m, l).chunks(BLOCK).zip(column.chunks(BLOCK)).enumerate() {
            let mut terms = Terms::new(false);
            for (a, b) in a.iter().zip(b) {
                let product = f64::from(*a) * f64::from(*b);
                terms.add((!product.is_nan()).then_some((product, product)), product.is_nan());
            }
            let (sum, scale) = (terms.bounds(self.spread), f64::from(blocks.scale([m, n, block], [l, of_b])));
            let (range, nan) = scaled(sum, scale);
            all.add(range, nan);
        }
        all.bounds(self.spread)
    }
}

/// A sum in these bounds times a scale: the range, `None` where it is NaN only, and whether it may be NaN.
fn scaled(sum: Bounds, scale: f64) -> (Option<(f64, f64)>, bool) {
    let Some((low, high)) = sum.range().filter(|_| !scale.is_nan()) else { return (None, true) };
    let ends = [low * scale, high * scale];
    let has_zero = low <= 0.0 && high >= 0.0;
    let nan = sum.may_be_nan() || scale.is_infinite() && has_zero || ends.iter().any(|end| end.is_nan());
    let known: Vec<f64> = ends.into_iter().filter(|end| !end.is_nan()).collect();
    match known[..] {
        [] => (None, true),
        _ if scale.is_infinite() && has_zero && low < high => (Some((f64::NEG_INFINITY, f64::INFINITY)), nan),
        [one] => (Some((one.min(0.0), one.max(0.0))), nan),
        _ => (Some((ends[0].min(ends[1]), ends[0].max(ends[1]))), nan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::E4m3;
    use crate::plan::Arithmetic;

    /// Ones: (3,200) times (200,130), with scales of A for each row, and of B for 128 columns.
    #[test]
    fn each_block_is_scaled_by_its_own_scales() {
        let ones =
            |shape: [i64; 2]| Tensor::of(&vec![E4m3(0x38); (shape[0] * shape[1]) as usize], &shape).expect("small");
        let of_a = Tensor::of(&[1.0_f32, 2.0, 4.0, 8.0, 16.0, 0.25], &[3, 2]).expect("six");
        let of_b = Tensor::of(&[3.0_f32, 5.0, 7.0, 9.0], &[2, 2]).expect("four");
        let (a, b, arithmetic) = (ones([3, 200]), ones([200, 130]), Arithmetic::Fp8 { promoted: 128 });
        let all = Computed::new(&a, &b, [3, 130, 200, 1], arithmetic, Some(([&of_a, &of_b], [1, 128])));
        let mut sums = all.starting_at(0);
        for (m, of_a) in [[1.0, 2.0], [4.0, 8.0], [16.0, 0.25]].into_iter().enumerate() {
            for n in 0..130 {
                let of_b = if n < 128 { [3.0, 7.0] } else { [5.0, 9.0] };
                let sum = 128.0 * of_a[0] * of_b[0] + 72.0 * of_a[1] * of_b[1];
                let bounds = sums.next()[0];
                if m < 2 {
                    assert_eq!(bounds, Bounds::point(sum), "({m},{n})");
                } else {
                    // No integer: rounding is allowed for, but little of it.
                    let (low, high) = bounds.range().expect("numbers");
                    assert!(low < sum && sum < high && high - low < 0.04 * sum, "({m},{n}): {bounds:?}");
                }
            }
        }
    }

    #[test]
    fn scales_of_a_byte_are_powers_of_two() {
        let all: Vec<f32> = (0..=u8::MAX).map(power_of_two).collect();
        assert!(all[..255].windows(2).all(|pair| pair[1] == 2.0 * pair[0]) && all[127] == 1.0 && all[255].is_nan());
        assert_eq!((all[0].to_bits(), all[254].to_bits()), (1 << 22, 254 << 23));
        let ones = |shape: &[i64]| Tensor::of(&[E4m3(0x38); 200], shape).expect("small");
        let scales = |bytes: [u8; 2], shape: &[i64]| Tensor::of(&bytes, shape).expect("two");
        let (of_a, of_b) = (scales([128, 130], &[1, 2]), scales([127, 129], &[2, 1]));
        let scales = Some(([&of_a, &of_b], [1, 1]));
        let all = Computed::new(
            &ones(&[1, 200]),
            &ones(&[200, 1]),
            [1, 1, 200, 1],
            Arithmetic::Fp8 { promoted: 128 },
            scales,
        );
        assert_eq!(all.starting_at(0).next(), [Bounds::point(128.0 * 2.0 + 72.0 * 8.0 * 4.0)]);
    }

    #[test]
    fn what_scales_make_of_a_sum_is_all_that_it_may_be() {
        let of = |low: f64, high: f64, scale: f64| scaled(Bounds::between(low, high), scale);
        assert_eq!(of(1.0, 2.0, -3.0), (Some((-6.0, -3.0)), false));
        assert_eq!(of(1.0, 2.0, f64::INFINITY), (Some((f64::INFINITY, f64::INFINITY)), false));
        assert_eq!(of(-1.0, 2.0, f64::INFINITY), (Some((f64::NEG_INFINITY, f64::INFINITY)), true));
        assert_eq!(of(0.0, 0.0, f64::NEG_INFINITY), (None, true));
        assert_eq!(of(1.0, f64::INFINITY, 0.0), (Some((0.0, 0.0)), true));
        assert_eq!(of(1.0, 1.0, f64::NAN), (None, true));
        assert_eq!(scaled(Bounds::point(f64::NAN), 2.0), (None, true));
    }
}
