//! Patterns in the addresses of a warp's lanes.

use super::places::Pattern;
use crate::machine::races::pages::Form;

/// The form of consecutive lanes. In global memory lanes may also have a stride (half of each vector), or come in consecutive groups
/// (rows of a tile).
#[inline(always)]
pub(crate) fn form(at: &[u64; 32], bytes: u32, pattern: Pattern, is_global: bool) -> Option<Form> {
    if pattern == Pattern::One || bytes > 16 || !at[0].is_multiple_of(4) {
        return None;
    }
    let own = Form { lanes: 32, unit: bytes as u8, stride: bytes as u8 };
    if pattern == Pattern::Row {
        return Some(own);
    }
    if !is_global || bytes < 4 {
        return None;
    }
    let stride = at[1].wrapping_sub(at[0]);
    if stride < u64::from(bytes) || stride != u64::from(bytes) && !matches!(stride, 8 | 16) {
        return None;
    }
    let follow = |at: &[u64]| (0..).zip(at).fold(0, |all, (l, a)| all | (a ^ (at[0] + l * stride))) == 0;
    let lanes = (1..32).find(|l| at[*l] != at[0] + *l as u64 * stride).unwrap_or(32);
    // No two lanes may have one place: their order would be lost.
    let is_behind = |l: usize| at[l] >= at[l - 1] + u64::from(bytes);
    let is_it =
        matches!(lanes, 8 | 16 | 32) && at.chunks_exact(lanes).all(follow) && (lanes..32).step_by(lanes).all(is_behind);
    is_it.then_some(Form { lanes: lanes as u8, stride: stride as u8, ..own })
}

/// Whether each lane's address is above that of the lane before.
#[inline(always)]
fn ascend(at: &[u64; 32]) -> bool {
    at.windows(2).fold(0, |any, pair| any | pair[1].wrapping_sub(pair[0]).wrapping_sub(1)) >> 63 == 0
}

/// Whether the lanes are at 32 of the 64 places of a region.
#[inline(always)]
fn are_near_and_apart(at: &[u64; 32], bytes: u32) -> bool {
    let unit = bytes.trailing_zeros();
    let places = at.iter().fold(0_u64, |places, address| places | 1 << (address >> unit & 63));
    places.count_ones() == 32 && at.iter().fold(0, |far, address| far | (address ^ at[0])) >> unit >> 6 == 0
}

/// Groups the lanes of a mask by address. Returns the first lane of each group; `groups` gets the lanes of that group. Addresses are
/// multiples of `bytes`.
#[inline(always)]
pub(crate) fn by_address(at: &[u64; 32], bytes: u32, mask: u32, groups: &mut [u32; 32]) -> u32 {
    // Most often all addresses differ: they ascend, or are 32 of 64 consecutive places.
    if mask == u32::MAX && at[0] != at[1] && (ascend(at) || are_near_and_apart(at, bytes)) {
        *groups = core::array::from_fn(|l| 1 << l);
        return mask;
    }
    // A hash table of first lanes, by address, with twice as many slots as lanes.
    *groups = [0; 32];
    let (mut places, mut firsts, mut left) = ([u8::MAX; 64], 0, mask);
    while left != 0 {
        let l = left.trailing_zeros() as usize;
        left &= left - 1;
        let mut place = ((at[l] >> 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
        let first = loop {
            let first = usize::from(places[place]);
            if first > 31 {
                places[place] = l as u8;
                firsts |= 1 << l;
                break l;
            }
            if at[first] == at[l] {
                break first;
            }
            place = (place + 1) % 64;
        };
        groups[first] |= 1 << l;
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::super::places::Pattern;
    use super::{by_address, form};
    use crate::machine::Random;

    #[test]
    fn lanes_of_one_address_are_together() {
        let mut random = Random(1);
        for round in 0..4000 {
            let (many, step) = (1 + random.below(70), 1 << random.below(5));
            let mut at: [u64; 32] = core::array::from_fn(|_| (random.below(many) * step) as u64);
            let mask = if round % 2 == 0 { u32::MAX } else { random.next() as u32 | 1 << random.below(32) };
            if round % 3 == 0 {
                at.sort_unstable();
            }
            if round % 5 == 0 {
                // All apart, in an order that does not ascend.
                let (turn, start) = (random.below(32), random.below(64));
                at = core::array::from_fn(|l| (((l ^ turn) + start) * step) as u64);
            }
            if round % 9 == 0 {
                at = core::array::from_fn(|l| at[0] + (l * step) as u64);
            }
            let own = at[mask.trailing_zeros() as usize];
            at = core::array::from_fn(|l| if mask >> l & 1 != 0 { at[l] } else { own });
            let mut groups = [0; 32];
            let firsts = by_address(&at, step as u32, mask, &mut groups);
            for l in 0..32 {
                let same = (0..32).filter(|m| mask >> m & 1 != 0 && at[*m] == at[l]).fold(0_u32, |all, m| all | 1 << m);
                let is_first = mask >> l & 1 != 0 && same.trailing_zeros() as usize == l;
                assert_eq!(firsts >> l & 1 != 0, is_first, "{at:?} {mask:#x}");
                assert!(!is_first || groups[l] == same, "{at:?} {mask:#x}");
            }
        }
    }

    #[test]
    fn forms_are_those_of_lanes_that_are_apart() {
        let (mut random, mut found) = (Random(1), [0; 4]);
        for _ in 0..20_000 {
            let (bytes, stride) = ([4, 8, 16][random.below(3)], [4, 8, 16, 16][random.below(4)]);
            let (part, far) = ([1, 4, 8, 16, 32][random.below(5)], [0, 8, 64, 128, 256, 4096][random.below(6)]);
            let start = 4096 + 4 * random.below(4) as u64;
            let at: [u64; 32] = core::array::from_fn(|l| start + l as u64 % part * stride + l as u64 / part * far);
            let Some(form) = form(&at, bytes, Pattern::Any, true) else { continue };
            assert_eq!(u32::from(form.unit), bytes);
            let lanes = usize::from(form.lanes);
            for (l, a) in at.iter().enumerate() {
                assert_eq!(*a, at[l / lanes * lanes] + (l % lanes) as u64 * u64::from(form.stride), "{at:?}");
                assert!(at[..l].iter().all(|b| b + u64::from(bytes) <= *a), "{at:?}");
            }
            found[lanes.ilog2() as usize - 2] += 1;
        }
        assert!(found[1..].iter().all(|n| *n > 100), "{found:?}");
    }
}
