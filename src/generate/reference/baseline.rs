//! Accumulators from another implementation's product.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use super::spread::{Spread, largest};
use super::sums::{is_integer, least};
use super::tf32;
use crate::dtype::{DType, Element};
use crate::expr::Bounds;
use crate::plan::{Arithmetic, Baseline, Product, ReferenceError};
use crate::tensor::{Elements, Scalar, Tensor, parallel, with_scalar};
use crate::view::ViewLayout;

/// Accumulators of another implementation. None of its sums overflows.
pub(super) struct Given<'a> {
    baseline: Baseline<'a>,
    spread: Spread,
    /// How far its own sums may be off.
    library: Spread,
    /// Whether all factors are integers that are multiplied as they are.
    integers: bool,
}

impl<'a> Given<'a> {
    /// For the inputs of a product of `[M, N, K, L]`; the first two are A and B.
    pub(super) fn new(
        baseline: Baseline<'a>,
        inputs: &[&Tensor],
        [m, n, k, l]: [i64; 4],
        of: &Product,
    ) -> Result<Self, ReferenceError> {
        let arithmetic = of.arithmetic();
        let Baseline { product, sizes } = baseline;
        let wrong = |found: String| Err(ReferenceError::Baseline { found });
        let of_scales = of.scales(inputs);
        let factors = || inputs.iter().take(2).flat_map(|t| values(t, 0));
        let spread = Spread::of(k.max(0) as usize, arithmetic);
        let spread = match arithmetic {
            Arithmetic::Tf32 => spread.of_rounded(k.max(0) as usize, factors()),
            Arithmetic::F32 | Arithmetic::TensorCores | Arithmetic::Int8 => spread,
            Arithmetic::Fp8 { .. } => {
                let of = |t: &&Tensor| (largest(values(t, 0)), least(t.dtype(), arithmetic));
                let all: Vec<(f64, f64)> = inputs.iter().take(2).map(of).collect();
                let scale: f64 = of_scales.iter().flatten().map(|t| largest(values(t, 0))).product();
                spread.of_small(k.max(0) as usize, [(all[0].0 * scale, all[0].1 * scale), all[1]])
            }
        };
        let library = match arithmetic {
            Arithmetic::Fp8 { .. } | Arithmetic::Int8 => Spread::of(k.max(0) as usize, Arithmetic::TensorCores),
            _ => spread,
        };
        let exact = |x: f32| is_integer(x) && (arithmetic != Arithmetic::Tf32 || tf32::rounded(x) == x);
        for tensor in [product, sizes] {
            let shape = if tensor.shape().len() == 3 { vec![m, n, l] } else { vec![m, n] };
            if tensor.dtype() != DType::F32 || tensor.shape() != shape || l > 1 && shape.len() == 2 {
                return wrong(format!("{tensor:?}, and a product of f32 ({m},{n},{l})"));
            }
        }
        if library.relative >= 0.5 {
            return wrong(format!("K = {k}: a sum of that many products may have no correct digit"));
        }
        // What scales multiply was rounded by the library.
        let integers = of_scales.is_none()
            && inputs.iter().take(2).all(|t| first(t.size(), |i| values(t, i), |x| !exact(x)).is_none());
        let given = Self { baseline, spread, library, integers };
        let wrong_one = |(product, size): (f32, f32)| {
            // The comparison is false for NaN.
            let right = given.spread.greatest(given.largest(f64::from(size))) <= f64::from(f32::MAX);
            !right || product.is_nan() || product.is_infinite()
        };
        match first(product.size(), |i| values(product, i).zip(values(sizes, i)), wrong_one) {
            Some((product, size)) => wrong(format!("a product of {product:?} with terms of {size:?} in total size")),
            None => Ok(given),
        }
    }

    /// The largest exact sum of sizes whose rounded one is this.
    fn largest(&self, size: f64) -> f64 {
        (size + self.library.absolute) / (1.0 - self.library.relative)
    }

    /// Whether terms of this size are integers that neither the kernel nor the library rounds.
    fn are_exact(&self, size: f64) -> bool {
        self.integers && size < self.spread.exact().min(self.library.exact())
    }

    /// How far the kernel's sum and the library's may be apart, of terms of this size.
    fn error(&self, size: f64) -> f64 {
        let largest = self.largest(size);
        self.spread.error(largest) + self.library.error(largest)
    }

    /// Whether these elements are the accumulators, rounded to their type: between the bounds of each, or equal to its
    /// only value. Elements at a bound, and tensors that are not dense, are left to the slower check.
    pub(super) fn are_right(&self, output: &Tensor, part: &Range<u64>) -> bool {
        let [Some(products), Some(sizes)] = [self.baseline.product, self.baseline.sizes].map(|t| dense::<f32>(t, part))
        else {
            return false;
        };
        // Ends are rounded to f32 when a function is evaluated; an f32 between them stays between them.
        let is_f32 = matches!(output.dtype(), DType::F32 | DType::F16 | DType::Bf16);
        is_f32
            && with_scalar!(output.dtype(), T => {
                let is_right = |((found, product), size): ((&T, &f32), &f32)| {
                    let (product, size) = (f64::from(*product), f64::from(*size));
                    if self.are_exact(size) {
                        return found.bits() == T::nearest(product + 0.0).bits();
                    }
                    let error = self.error(size);
                    let value = found.value();
                    product - error < value && value < product + error
                };
                dense::<T>(output, part).is_some_and(|found| found.iter().zip(products).zip(sizes).all(is_right))
            })
    }

    /// The accumulators from the `index`-th on.
    pub(super) fn starting_at(&self, index: u64) -> GivenSums<'_> {
        let [products, sizes] = [self.baseline.product, self.baseline.sizes].map(|t| Elements::starting_at(t, index));
        GivenSums { given: self, products, sizes }
    }
}

/// Bounds of the accumulators, in row-major order of `(m,n,l)`.
pub(super) struct GivenSums<'a> {
    given: &'a Given<'a>,
    products: Elements<'a>,
    sizes: Elements<'a>,
}

impl GivenSums<'_> {
    pub(super) fn next(&mut self) -> Bounds {
        let (Some((product, _)), Some((size, _))) = (self.products.next(), self.sizes.next()) else {
            return Bounds::point(f64::NAN);
        };
        // Partial sums of integers only grow, so that none before this one was rounded.
        if self.given.are_exact(size) {
            // What began with 0 is never -0.
            return Bounds::point(product + 0.0);
        }
        let error = self.given.error(size);
        Bounds::between(product - error, product + error)
    }
}

/// A part of a tensor whose elements lie in the order of their coordinates, side by side.
fn dense<'a, T: Element>(tensor: &'a Tensor, part: &Range<u64>) -> Option<&'a [T]> {
    let layout = tensor.layout().layout;
    (ViewLayout::row_major(layout.shape()) == Some(layout)).then_some(())?;
    tensor.span()?.get(usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?)
}

/// The elements from the `index`-th on, of f32 or of a type whose values all are f32.
fn values(tensor: &Tensor, index: u64) -> impl Iterator<Item = f32> {
    // Products are looked through once for each kernel: side by side they are not walked over.
    let dense = dense::<f32>(tensor, &(index..tensor.size()));
    let mut elements = dense.is_none().then(|| Elements::starting_at(tensor, index));
    let mut dense = dense.unwrap_or_default().iter();
    core::iter::from_fn(move || match &mut elements {
        Some(elements) => elements.next().map(|(value, _)| value as f32),
        None => dense.next().copied(),
    })
}

/// The first item that matches. Works on all cores.
fn first<T: Copy, I: Iterator<Item = T>>(
    count: u64,
    starting_at: impl Fn(u64) -> I + Sync,
    wanted: impl Fn(T) -> bool + Sync,
) -> Option<T> {
    let least = AtomicU64::new(u64::MAX);
    parallel::ranges(
        count,
        parallel::GRAIN,
        || (),
        |(), part| {
            if part.start < least.load(Ordering::Relaxed) {
                let found = part.clone().zip(starting_at(part.start)).find(|(_, item)| wanted(*item));
                found.map(|(index, _)| least.fetch_min(index, Ordering::Relaxed));
            }
        },
    );
    let least = least.into_inner();
    (least < count).then(|| starting_at(least).next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_in_whatever_part_it_lies() {
        let grain = parallel::GRAIN;
        let count = 3 * grain + 7;
        let last = count - 1;
        for wanted in
            [vec![], vec![0], vec![grain - 1, grain], vec![grain, 2 * grain + 1, last], vec![last], vec![count]]
        {
            // Items after the last one are not looked at.
            let found = first(count, |from| from.., |item: u64| wanted.contains(&item));
            assert_eq!(found, wanted.first().copied().filter(|item| *item < count), "{wanted:?}");
        }
    }
}
