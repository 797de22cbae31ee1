//! The loops of [`super::sums`] for processors with AVX2: the compiler makes vectors across products of them, not across columns.

use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_loadu_si256, _mm256_max_epi32, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_sll_epi32, _mm256_srlv_epi32, _mm256_storeu_si256, _mm256_sub_epi32, _mm256_xor_si256,
};

use super::sums::Parts;

#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn load<T>(from: &[T; 8]) -> __m256i {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: eight elements of four bytes.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn store(to: &mut [i32; 8], v: __m256i) {
    // SAFETY: eight elements of four bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
}

/// As `sums::row`.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
pub(crate) fn row<const K: usize, const N: usize>(
    start: usize,
    a: &Parts<K>,
    b: &[Parts<8>; K],
    old: &Parts<8>,
    product_shift: i32,
    out: [&mut [i32; 8]; 3],
) {
    let n = N.min(K);
    let product_shift = _mm_cvtsi32_si128(product_shift);
    let mut largest = load(&old.tops);
    let mut products = [largest; N];
    let mut tops = [largest; N];
    for x in 0..n {
        let (significand, top, b) = (a.significands[start + x], a.tops[start + x], &b[start + x]);
        let product = _mm256_mullo_epi32(_mm256_set1_epi32(significand as i32), load(&b.significands));
        products[x] = _mm256_sll_epi32(product, product_shift);
        tops[x] = _mm256_add_epi32(_mm256_set1_epi32(top), load(&b.tops));
        largest = _mm256_max_epi32(largest, tops[x]);
    }
    // Shifts of 32 and more give zero.
    let signed = |significand: __m256i, top: __m256i, sign: __m256i| {
        let cut = _mm256_srlv_epi32(significand, _mm256_sub_epi32(largest, top));
        _mm256_sub_epi32(_mm256_xor_si256(cut, sign), sign)
    };
    let accumulator = signed(load(&old.significands), load(&old.tops), load(&old.signs));
    let mut sum = _mm256_set1_epi32(0);
    for x in 0..n {
        let sign = _mm256_xor_si256(_mm256_set1_epi32(a.signs[start + x]), load(&b[start + x].signs));
        sum = _mm256_add_epi32(sum, signed(products[x], tops[x], sign));
    }
    for (to, v) in out.into_iter().zip([accumulator, sum, largest]) {
        store(to, v);
    }
}
