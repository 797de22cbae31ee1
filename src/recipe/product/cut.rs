//! How the tiles of D become CTAs: as they are, each in as many parts of K, or those of the last wave in parts, so that its CTAs
//! end together.

use crate::arch::Arch;
use crate::units::Bytes;

/// Threads of the kernel that adds the parts of K.
pub(crate) const REDUCE_THREADS: u32 = 256;

/// Bytes of a sum of a part of K.
pub(crate) const F32: i64 = 4;

/// How K is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parts {
    /// Each tile in so many parts, all of which run side by side.
    Each(i64),
    /// So many CTAs run at a time; the tiles that do not fill such a wave are cut.
    Wave(i64),
}

/// How the tiles of D become CTAs: `whole` of them as they are, `cut` of them in `parts` along K, each of `k_part` tiles of A
/// and B but the last, which takes what is left. The CTAs are numbered so: whole tiles, first parts, second parts, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) whole: i64,
    pub(crate) cut: i64,
    pub(crate) parts: i64,
    pub(crate) k_part: i64,
}

/// CTAs of the kernel that multiplies and of the one that adds parts of K, and what lies between them.
pub(crate) struct Grids {
    pub(crate) main: [u32; 3],
    /// `None` where there is nothing to add.
    pub(crate) reduce: Option<[u32; 3]>,
    /// The sums of the parts.
    pub(crate) workspace: Bytes,
    pub(crate) cut: Cut,
}

impl Parts {
    /// For so many tiles of D, each with `k_tiles` steps along K of `bk` products.
    pub(crate) fn cut(self, tiles: i64, k_tiles: i64, bk: i64) -> Cut {
        match self {
            Parts::Wave(wave) => Cut::of_wave(wave, tiles, k_tiles, bk),
            Parts::Each(1) => Cut { whole: tiles, cut: 0, parts: 1, k_part: k_tiles },
            Parts::Each(parts) => Cut { whole: 0, cut: tiles, parts, k_part: div_ceil(k_tiles, parts) },
        }
    }

    /// Sums of each part of the tiles that are cut: those of D, or of whole tiles.
    pub(crate) fn sums(self, cut: &Cut, [m, n, l]: [i128; 3], [bm, bn, _]: [i64; 3]) -> i128 {
        match self {
            _ if cut.cut == 0 => 0,
            Parts::Each(_) => m * n * l,
            Parts::Wave(_) => i128::from(cut.cut) * i128::from(bm * bn),
        }
    }

    /// The grids for extents M, N, K and L below 2^31; `None` where a grid cannot be as large. A CTA for each tile and part, or as
    /// they are numbered; then threads for the elements of what is cut.
    pub(crate) fn grids(self, tile: [i64; 3], [m, n, k, l]: [i64; 4]) -> Option<Grids> {
        let ([bm, bn, bk], threads) = (tile, i64::from(REDUCE_THREADS));
        let (tiles_m, tiles_n) = (div_ceil(m, bm), div_ceil(n, bn));
        let cut = self.cut(tiles_m.checked_mul(tiles_n)?.checked_mul(l)?, div_ceil(k, bk), bk);
        let (main, reduce) = match self {
            Parts::Each(parts) => ([tiles_n, tiles_m, l * parts], [div_ceil(m * n, threads), 1, l]),
            Parts::Wave(_) => ([cut.blocks()?, 1, 1], [div_ceil(bm * bn, threads), cut.cut, 1]),
        };
        // The threads that add are numbered by 32 bits.
        let numbered = cut.cut == 0 || reduce[0] * threads <= i64::from(i32::MAX);
        let sums = self.sums(&cut, [m, n, l].map(i128::from), tile) * i128::from(cut.parts);
        Some(Grids {
            main: grid(main).filter(|_| numbered)?,
            reduce: if cut.cut > 0 { Some(grid(reduce)?) } else { None },
            workspace: Bytes(u64::try_from(sums.checked_mul(F32.into())?).ok()?),
            cut,
        })
    }
}

/// A grid of at most so many CTAs along x, y and z.
fn grid(blocks: [i64; 3]) -> Option<[u32; 3]> {
    let limits = [Arch::MAX_GRID_X, Arch::MAX_GRID_YZ, Arch::MAX_GRID_YZ];
    blocks.iter().zip(limits).all(|(blocks, limit)| blocks.unsigned_abs() <= limit).then(|| blocks.map(|b| b as u32))
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
    fn of_wave(wave: i64, tiles: i64, k_tiles: i64, bk: i64) -> Self {
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
    pub(crate) fn blocks(&self) -> Option<i64> {
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
                    let cut = Cut::of_wave(wave, tiles, k_tiles, 32);
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
        let cut = Cut::of_wave(264, 1024, 128, 32);
        assert_eq!(cut, Cut { whole: 792, cut: 232, parts: 2, k_part: 116 });
        let even = 1024 * (128 + ENDS) / 264;
        assert!(makespan(&cut, 264, 128) * 100 <= even * 102, "{} of {even}", makespan(&cut, 264, 128));
        // Little of D, much of K: all tiles are cut.
        let cut = Cut::of_wave(264, 4, 4096, 32);
        assert_eq!((cut.whole, cut.parts, cut.k_part), (0, 64, 64));
        // Where nothing is to be won, nothing is cut.
        assert_eq!(Cut::of_wave(264, 528, 128, 32).cut, 0);
        assert_eq!(Cut::of_wave(264, 256, 64, 32).cut, 0);
    }
}
