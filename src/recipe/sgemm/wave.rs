//! The tiles of the last wave, cut along K so that its blocks end together.

/// How the tiles of D become blocks: `whole` of them as they are, `cut` of them in `parts` along K, each of `k_part` tiles of A
/// and B but the last, which takes what is left. The blocks are numbered so: whole tiles, first parts, second parts, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) whole: i64,
    pub(super) cut: i64,
    pub(super) parts: i64,
    pub(super) k_part: i64,
}

/// Parts of a tile, at most.
const PARTS: i64 = 64;
/// What a block takes before its first product and after its last, in steps along K: a load from device memory, stores of D.
const ENDS: i64 = 2;
/// Products that a multiprocessor adds in the time that one sum of 4 bytes takes to L2 or back: 128 in a cycle, against 21 bytes
/// in a cycle, which is 5.5 TB/s for 132 multiprocessors at 1.98 GHz.
const SUM: i64 = 24;

impl Cut {
    /// For so many tiles of D, each with `k_tiles` steps along K of `bk` products, where `wave` blocks run at a time.
    pub(super) fn new(wave: i64, tiles: i64, k_tiles: i64, bk: i64) -> Self {
        let none = Cut { whole: tiles, cut: 0, parts: 1, k_part: k_tiles };
        let cut = if wave > 0 { tiles % wave } else { 0 };
        if cut == 0 || k_tiles < 2 {
            return none;
        }
        let plain = (k_tiles + ENDS, none);
        let equal = wave / cut;
        let all = [Self::equal(equal, k_tiles), Self::unequal(equal, wave, cut, k_tiles)];
        let priced = |(parts, k_part): (i64, i64)| {
            // Each part is written and read once, and the sum is written.
            let sums = (2 * parts + 1) * cut * SUM / (wave * bk) + 1;
            (k_part + ENDS + sums, Cut { whole: tiles - cut, cut, parts, k_part })
        };
        let tried = all.into_iter().flatten().map(priced);
        core::iter::once(plain).chain(tried).min_by_key(|(steps, _)| *steps).unwrap_or(plain).1
    }

    /// So many equal parts: all of them run at once.
    fn equal(parts: i64, k_tiles: i64) -> Option<(i64, i64)> {
        let k_part = div_ceil(k_tiles, parts.min(PARTS));
        (k_part < k_tiles).then(|| (div_ceil(k_tiles, k_part), k_part))
    }

    /// So many long parts run at once, and one short part of each tile after the other where there is room besides.
    fn unequal(long: i64, wave: i64, cut: i64, k_tiles: i64) -> Option<(i64, i64)> {
        let room = wave - long * cut;
        (room > 0 && long < PARTS).then_some(())?;
        // The least with turns * (k_tiles - long * k_part + ENDS) <= k_part + ENDS.
        let turns = div_ceil(cut, room);
        let enough = div_ceil(turns.checked_mul(k_tiles + ENDS)? - ENDS, 1 + turns * long);
        let k_part = enough.max(div_ceil(k_tiles, long + 1));
        (long * k_part < k_tiles).then_some((long + 1, k_part))
    }

    /// Blocks of the launch.
    pub(super) fn blocks(&self) -> Option<i64> {
        self.cut.checked_mul(self.parts)?.checked_add(self.whole)
    }
}

fn div_ceil(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps until the last block has ended, each block on the slot that is free first: what the hardware does.
    fn makespan(cut: &Cut, wave: i64, k_tiles: i64) -> i64 {
        let mut slots = vec![0; wave as usize];
        let mut run = |steps: i64| {
            let first = slots.iter_mut().min().expect("a slot");
            *first += steps + ENDS;
        };
        (0..cut.whole).for_each(|_| run(k_tiles));
        for part in 0..cut.parts {
            let steps = (k_tiles - part * cut.k_part).min(cut.k_part);
            (0..cut.cut).for_each(|_| run(steps));
        }
        slots.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn parts_make_the_whole_and_never_take_longer() {
        let mut cuts = 0;
        for wave in [1, 2, 3, 7, 24, 132, 264, 528] {
            for tiles in (0..40).chain([64, 100, 131, 256, 265, 500, 576, 1024]) {
                for k_tiles in [0, 1, 2, 3, 5, 31, 32, 64, 128, 129, 2048] {
                    let cut = Cut::new(wave, tiles, k_tiles, 32);
                    let Cut { whole, cut: number, parts, k_part } = cut;
                    assert_eq!(whole + number, tiles, "{cut:?}");
                    assert!(number == 0 || (2..=PARTS).contains(&parts), "{cut:?}");
                    // Every part has a step.
                    assert!((parts - 1) * k_part < k_tiles.max(1) && parts * k_part >= k_tiles, "{k_tiles}: {cut:?}");
                    let plain = Cut { whole: tiles, cut: 0, parts: 1, k_part: k_tiles };
                    assert!(
                        makespan(&cut, wave, k_tiles) <= makespan(&plain, wave, k_tiles),
                        "{wave} {tiles}: {cut:?}"
                    );
                    cuts += usize::from(number > 0);
                }
            }
        }
        assert!(cuts > 500, "{cuts}");
    }

    #[test]
    fn a_wave_that_is_not_full_is_filled() {
        // 4096 x 4096 in tiles of 64 x 256, two blocks on each of 132 multiprocessors: 3.88 waves.
        let cut = Cut::new(264, 1024, 128, 32);
        assert_eq!(cut, Cut { whole: 792, cut: 232, parts: 2, k_part: 116 });
        let even = 1024 * (128 + ENDS) / 264;
        assert!(makespan(&cut, 264, 128) * 100 <= even * 102, "{} of {even}", makespan(&cut, 264, 128));
        // Little of D, much of K: all tiles are cut.
        let cut = Cut::new(264, 4, 4096, 32);
        assert_eq!((cut.whole, cut.parts, cut.k_part), (0, 64, 64));
        // Where nothing is to be won, nothing is cut.
        assert_eq!(Cut::new(264, 528, 128, 32).cut, 0);
        assert_eq!(Cut::new(264, 256, 64, 32).cut, 0);
    }
}
