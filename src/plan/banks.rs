//! Bank conflicts in shared memory, counted from the addresses of a warp.

use crate::layout::Swizzle;
use crate::units::Bytes;

/// Threads of a warp.
pub(crate) const WARP: usize = 32;
/// Banks of shared memory, 4 bytes wide each (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and
/// later).
pub(crate) const BANKS: i64 = 32;
pub(crate) const WORD: i64 = 4;

/// The passes over the banks that one access of a warp takes: `addresses` in bytes, one for each thread, each of `bytes`.
///
/// Threads are served 128 bytes at a time: all 32 where each moves up to 4 bytes, half a warp at 8, a quarter at 16. In one
/// pass a bank gives one word, to any number of threads; what is counted is `l1tex__data_pipe_lsu_wavefronts_mem_shared`.
///
/// ```
/// use cutemplate::plan::wavefronts;
/// use cutemplate::units::Bytes;
///
/// let row: Vec<i64> = (0..32).map(|lane| 4 * lane).collect();
/// let column: Vec<i64> = (0..32).map(|lane| 128 * lane).collect();
/// assert_eq!((wavefronts(&row, Bytes(4)), wavefronts(&column, Bytes(4))), (1, 32));
/// ```
pub fn wavefronts(addresses: &[i64], bytes: Bytes) -> u32 {
    let bytes = bytes.0.max(1) as i64;
    let lanes = (BANKS * WORD / bytes).clamp(1, WARP as i64) as usize;
    addresses.chunks(lanes).map(|group| passes(group, bytes)).sum()
}

fn passes(group: &[i64], bytes: i64) -> u32 {
    let mut words: Vec<i64> =
        group.iter().flat_map(|a| a.div_euclid(WORD)..=(a + bytes - 1).div_euclid(WORD)).collect();
    crowd(&mut words)
}

/// The most different words that lie in one bank: the passes that they take together.
pub(crate) fn crowd(words: &mut Vec<i64>) -> u32 {
    words.sort_unstable();
    words.dedup();
    let mut used = [0_u32; BANKS as usize];
    for word in words.iter() {
        used[word.rem_euclid(BANKS) as usize] += 1;
    }
    used.into_iter().max().unwrap_or(0)
}

/// The passes that an access takes at least: as many as its bytes need.
pub(crate) fn ideal(lanes: usize, bytes: Bytes) -> u32 {
    (lanes as u64 * bytes.0).div_ceil((BANKS * WORD) as u64).max(1) as u32
}

/// What every warp of a block touches: the index of the first element of each thread, one list for each warp and step.
pub(crate) fn warps(threads: u32, steps: i64, index: impl Fn(i64, i64) -> i64) -> Vec<Vec<i64>> {
    let threads = i64::from(threads);
    let firsts = (0..threads).step_by(WARP);
    let lanes = |first: i64| first..(first + WARP as i64).min(threads);
    firsts
        .flat_map(|first| (0..steps).map(move |step| (first, step)))
        .map(|(first, step)| lanes(first).map(|thread| index(thread, step)).collect())
        .collect()
}

/// The most passes over the banks that a warp takes for one access of `bytes` to elements of `element` bytes.
pub(crate) fn worst(warps: &[Vec<i64>], element: i64, bytes: Bytes, swizzle: Swizzle) -> u32 {
    let passes = |warp: &Vec<i64>| {
        let addresses: Vec<i64> = warp.iter().map(|index| swizzle.apply(*index) * element).collect();
        wavefronts(&addresses, bytes)
    };
    warps.iter().map(passes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_serves_any_number_of_threads() {
        assert_eq!(wavefronts(&[64; 32], Bytes(4)), 1);
        let pairs: Vec<i64> = (0..32).map(|lane| 2 * lane).collect();
        assert_eq!(wavefronts(&pairs, Bytes(2)), 1);
    }

    #[test]
    fn wide_accesses_take_as_many_passes_as_their_bytes_need() {
        for (bytes, passes) in [(4, 1), (8, 2), (16, 4)] {
            let row: Vec<i64> = (0..32).map(|lane| bytes * lane).collect();
            assert_eq!((wavefronts(&row, Bytes(bytes as u64)), ideal(32, Bytes(bytes as u64))), (passes, passes));
        }
    }

    #[test]
    fn a_column_of_32_floats_wants_the_swizzle_of_the_textbook() {
        let row = warps(32, 1, |thread, _| 32 * thread);
        let passes = |swizzle: &str| worst(&row, 4, Bytes(4), swizzle.parse().expect("a swizzle"));
        assert_eq!((passes("Sw<0,0,5>"), passes("Sw<5,0,5>")), (32, 1));
    }
}
