//! Loops of [`super::tensor`] for processors with AVX2 and F16C, where the compiler does not vectorise them.

use core::arch::x86_64::{
    __m128i, __m256, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm256_blendv_epi8, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps,
    _mm256_permute2f128_ps, _mm256_set1_epi32, _mm256_shuffle_ps, _mm256_slli_epi32, _mm256_storeu_ps,
    _mm256_storeu_si256, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

use super::tensor::COLUMN;
use crate::machine::vectors::vector::Rows;

/// Elements of 16 bits by rows, as `tensor::rows` has them: halves, or `BRAIN`.
///
/// # Safety
/// The registers are registers of the warp, in the number of pairs of halves in 32 lanes.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
pub(crate) unsafe fn rows<const K: usize, const ROWS: usize, const BRAIN: bool>(
    r: Rows,
    registers: &[u32],
) -> [[f32; K]; ROWS] {
    let mut out = [[0.0; K]; ROWS];
    for (i, register) in registers.iter().enumerate().take(K * ROWS / 64) {
        let (first, column) = (8 * (i % (ROWS / 8)), i / (ROWS / 8) * 8);
        // SAFETY: the caller says so; a register has 8 rows of 8 halves.
        let from = unsafe { &*r.lanes::<[[u16; 8]; 8]>(*register) };
        for (row, from) in out[first..first + 8].iter_mut().zip(from) {
            // SAFETY: eight halves.
            let halves = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
            let to: &mut [f32] = &mut row[column..column + 8];
            // SAFETY: eight floats.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), if BRAIN { brains(halves) } else { _mm256_cvtph_ps(halves) }) };
        }
    }
    out
}

/// The f16 next to each, as `tensor::to_half` has it.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
pub(crate) fn to_halves(of: [f32; 8]) -> [u32; 8] {
    let mut out = [0; 8];
    // SAFETY: eight floats.
    let of = unsafe { _mm256_loadu_ps(of.as_ptr()) };
    let halves = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(of));
    let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(of, of));
    let halves = _mm256_blendv_epi8(halves, _mm256_set1_epi32(0x7fff), is_nan);
    // SAFETY: eight words.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), halves) };
    out
}

/// The upper halves of f32.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn brains(of: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(of)))
}

/// Rows of columns, in the order of the sums; `K` is a multiple of 8.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
pub(crate) fn turned<const K: usize>(columns: &[[f32; K]; 8]) -> [[f32; 8]; K] {
    let mut out = [[0.0; 8]; K];
    for (first, out) in (0..K).step_by(8).zip(out.chunks_exact_mut(8)) {
        let of: [__m256; 8] = core::array::from_fn(|j| {
            let part: &[f32] = &columns[COLUMN[j]][first..first + 8];
            // SAFETY: eight floats.
            unsafe { _mm256_loadu_ps(part.as_ptr()) }
        });
        let (mut pairs, mut quads) = (of, of);
        for i in (0..8).step_by(2) {
            pairs[i] = _mm256_unpacklo_ps(of[i], of[i + 1]);
            pairs[i + 1] = _mm256_unpackhi_ps(of[i], of[i + 1]);
        }
        for i in [0, 4] {
            quads[i] = _mm256_shuffle_ps::<0x44>(pairs[i], pairs[i + 2]);
            quads[i + 1] = _mm256_shuffle_ps::<0xee>(pairs[i], pairs[i + 2]);
            quads[i + 2] = _mm256_shuffle_ps::<0x44>(pairs[i + 1], pairs[i + 3]);
            quads[i + 3] = _mm256_shuffle_ps::<0xee>(pairs[i + 1], pairs[i + 3]);
        }
        for i in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(quads[i], quads[i + 4]);
            let high = _mm256_permute2f128_ps::<0x31>(quads[i], quads[i + 4]);
            for (row, v) in [(i, low), (i + 4, high)] {
                // SAFETY: eight floats.
                unsafe { _mm256_storeu_ps(out[row].as_mut_ptr(), v) };
            }
        }
    }
    out
}
