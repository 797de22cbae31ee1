//! The loops of [`super::sums`] for processors with AVX2: the compiler makes vectors across products of them, not across columns.

use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_loadu_si256, _mm256_max_epi32, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_sll_epi32, _mm256_srlv_epi32, _mm256_storeu_si256, _mm256_sub_epi32, _mm256_xor_si256,
};

use super::sums::{MOST, Parts};

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
pub(super) fn row(
    n: usize,
    a: &Parts<MOST>,
    b: &[Parts<8>; MOST],
    old: &Parts<8>,
    shifts: [i32; 2],
    out: [&mut [i32; 8]; 3],
) {
    let n = n.min(MOST);
    let [product_shift, old_shift] = shifts.map(|by| _mm_cvtsi32_si128(by));
    let mut largest = load(&old.tops);
    let mut products = [largest; MOST];
    let mut tops = [largest; MOST];
    for x in 0..n {
        let product = _mm256_mullo_epi32(_mm256_set1_epi32(a.significands[x] as i32), load(&b[x].significands));
        products[x] = _mm256_sll_epi32(product, product_shift);
        tops[x] = _mm256_add_epi32(_mm256_set1_epi32(a.tops[x]), load(&b[x].tops));
        largest = _mm256_max_epi32(largest, tops[x]);
    }
    // Shifts of 32 and more give zero.
    let signed = |significand: __m256i, top: __m256i, sign: __m256i| {
        let cut = _mm256_srlv_epi32(significand, _mm256_sub_epi32(largest, top));
        _mm256_sub_epi32(_mm256_xor_si256(cut, sign), sign)
    };
    let significands = _mm256_sll_epi32(load(&old.significands), old_shift);
    let accumulator = signed(significands, load(&old.tops), load(&old.signs));
    let mut sum = _mm256_set1_epi32(0);
    for x in 0..n {
        let sign = _mm256_xor_si256(_mm256_set1_epi32(a.signs[x]), load(&b[x].signs));
        sum = _mm256_add_epi32(sum, signed(products[x], tops[x], sign));
    }
    for (to, v) in out.into_iter().zip([accumulator, sum, largest]) {
        store(to, v);
    }
}
