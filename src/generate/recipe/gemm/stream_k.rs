//! Stream-K: how tiles of D that fill no round of clusters are shared along K by all of them.

use crate::plan::{Int, IntOp, Rule, Steps};

/// Which tiles are shared, and how. Each is cut into as many shares of equal length as there are clusters for. If
/// enough is left for the other clusters, the shares are shorter: the others take the rests behind them, one tile after
/// the other. The fields are numbers of a rule, or of one launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares<T> {
    /// Whether there are shared tiles; the other fields are valid only then.
    is_shared: T,
    /// Tiles that one cluster computes as a whole.
    whole: T,
    /// Tiles that are shared.
    left: T,
    /// Parts of each that begin at multiples of `share`.
    parts: T,
    /// K-tiles that a cluster computes of shared tiles, at most.
    share: T,
    /// K-tiles behind the parts of a tile.
    rest: T,
    /// Clusters that take rests.
    taking: T,
    /// Partial sums in the workspace: shares first, then rests. Consecutive rests differ in the cluster or in the tile.
    sums: T,
    /// Clusters that are launched.
    launched: T,
}

impl Shares<Int> {
    /// Decides stream-K for `tiles` tiles of a cluster with `k_tiles` k-tiles each, and `resident` clusters at a time.
    /// Writing and adding up the sums of a piece takes as long as half of `least` k-tiles. So tiles are shared only if
    /// that saves a cluster `least` k-tiles, and no piece is shorter.
    pub(super) fn new(steps: &mut Steps, [tiles, k_tiles]: [Int; 2], resident: i64, least: i64) -> Self {
        let least = least.max(1);
        let left = steps.set("left", tiles.clone() % resident);
        let all = steps.set("k_tiles_left", left.clone() * k_tiles.clone());
        let places = Int::from(resident) / left.clone().op(IntOp::Max, 1);
        let parts = places.op(IntOp::Min, k_tiles.clone() / least).op(IntOp::Max, 1);
        let parts = steps.set("parts_of_one", parts);
        let equal = steps.set("equal", k_tiles.clone().ceil_div(parts.clone()));
        let even = steps.set("even", all.clone().ceil_div(resident).op(IntOp::Max, least));
        let ahead = (parts.clone() * even.clone()).op(IntOp::Min, k_tiles.clone());
        let rest = steps.set("even_rest", (k_tiles.clone() - ahead).op(IntOp::Max, 1));
        // Who takes rests begins and ends within one, and writes the sums of each.
        let pieces = even.clone().ceil_div(rest) + 1;
        let is_even = (even.clone() + pieces * least / 2).at_most(equal.clone());
        let share = steps.set("share", is_even.select(even, equal).op(IntOp::Max, 1));
        // Rounding up may leave nothing for the last.
        let parts = steps.set("parts", parts.op(IntOp::Min, k_tiles.clone().ceil_div(share.clone())));
        // K-tiles of all shared tiles are numbered by 32 bits.
        let numbered = all.at_most(i64::from(i32::MAX));
        let pays = Int::from(0).less(left.clone()).and((share.clone() + least).at_most(k_tiles.clone())).and(numbered);
        let is_shared = steps.set("is_shared", pays);
        let ahead = (parts.clone() * share.clone()).op(IntOp::Min, k_tiles.clone());
        let rest = steps.set("rest", k_tiles - ahead);
        let taking = steps.set("taking", (left.clone() * rest.clone()).ceil_div(share.clone()));
        let of_rests = Int::from(0).less(rest.clone()).select(taking.clone() + left.clone() - 1, 0);
        let sums = is_shared.clone().select(parts.clone() * left.clone() + of_rests, 0);
        let whole = steps.set("whole_tiles", tiles - is_shared.clone().select(left.clone(), 0));
        let sharing = parts.clone() * left.clone() + taking.clone();
        Self {
            launched: Int::from(0).less(whole.clone()).select(resident, sharing),
            sums: steps.set("sums_of_parts", sums),
            is_shared,
            whole,
            left,
            parts,
            share,
            rest,
            taking,
        }
    }

    /// Gives a launch its numbers: how many clusters there are, `launched` where no tile is shared.
    pub(super) fn launch(self, rule: &mut Rule, launched: Int) -> Int {
        let of = |number: Int| self.is_shared.clone().select(number, 0);
        for (name, number) in [("k_parts", of(self.parts)), ("k_share", of(self.share)), ("whole", self.whole)] {
            rule.derive_if_any(name, number);
        }
        rule.derive_if_any("parts", self.sums);
        rule.steps.set("streaming", self.is_shared.select(self.launched, launched))
    }
}

/// The numbers of a launch that decide how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Rounds in which each cluster computes a whole tile.
    pub(super) rounds: u64,
    /// K-tiles that a cluster computes of shared tiles.
    pub(super) share: u64,
    /// Parts that a cluster computes, at most.
    pub(super) pieces: u64,
    /// Tiles of a cluster whose sums are written and read.
    pub(super) sums: u64,
}

impl Load {
    /// `None` where no tile is shared.
    pub(super) fn of(tiles: u64, k_tiles: u64, resident: u64, least: u32) -> Option<Self> {
        let [tiles, k_tiles, resident] = [tiles, k_tiles, resident].map(|number| i64::try_from(number).ok());
        let shares = Shares::of(tiles?, k_tiles?, resident?.max(1), least.into())?;
        let [whole, share, sums] = [shares.whole, shares.share, shares.sums].map(i64::unsigned_abs);
        let pieces = if shares.rest > 0 { share.div_ceil(shares.rest.unsigned_abs()) + 1 } else { 1 };
        (shares.is_shared != 0).then_some(Self { rounds: whole / resident?.max(1).unsigned_abs(), share, pieces, sums })
    }
}

impl Shares<i64> {
    /// Those of one launch.
    fn of(tiles: i64, k_tiles: i64, resident: i64, least: i64) -> Option<Self> {
        let mut steps = Steps::default();
        let inputs = [steps.input("tiles"), steps.input("k_tiles")];
        let all = Shares::new(&mut steps, inputs, resident, least);
        let values = steps.eval(&[tiles, k_tiles])?;
        let of = |number: Int| number.eval(&values);
        Some(Self {
            is_shared: of(all.is_shared)?,
            whole: of(all.whole)?,
            left: of(all.left)?,
            parts: of(all.parts)?,
            share: of(all.share)?,
            rest: of(all.rest)?,
            taking: of(all.taking)?,
            sums: of(all.sums)?,
            launched: of(all.launched)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A part of a shared tile: the tile, its first k-tile, and how many.
    type Piece = (i64, i64, i64);

    /// The pieces of shared tiles that a cluster computes, with the number of each, as the text's scheduler says.
    fn pieces(of: &Shares<i64>, cluster: i64, k_tiles: i64) -> Vec<(i64, Piece)> {
        let first_of_rest = (of.parts * of.share).min(k_tiles);
        if cluster < of.parts * of.left {
            let k_tile = cluster / of.left * of.share;
            return vec![(cluster, (cluster % of.left, k_tile, of.share.min(k_tiles - k_tile)))];
        }
        let rest = k_tiles - first_of_rest;
        let begin = (cluster - of.parts * of.left) * of.share;
        let (mut left, mut all) = ((of.left * rest - begin).clamp(0, of.share), Vec::new());
        let (mut tile, mut k_tile) = if rest > 0 { (begin / rest, first_of_rest + begin % rest) } else { (0, 0) };
        while left > 0 {
            let count = left.min(k_tiles - k_tile);
            all.push((cluster + tile, (tile, k_tile, count)));
            (left, tile, k_tile) = (left - count, tile + 1, first_of_rest);
        }
        all
    }

    /// The parts of a tile, in the order in which the text adds up their sums.
    fn added(of: &Shares<i64>, tile: i64) -> Vec<i64> {
        let parts = (0..of.parts).map(|part| part * of.left + tile);
        if of.rest == 0 {
            return parts.collect();
        }
        let (first, last) = (tile * of.rest / of.share, ((tile + 1) * of.rest - 1) / of.share);
        parts.chain((first..=last).map(|cluster| of.parts * of.left + cluster + tile)).collect()
    }

    #[test]
    fn each_k_tile_of_each_tile_is_computed_once_and_added_once() {
        let (mut shared, mut with_rests) = (0, 0);
        for (tiles, resident) in (1..=30).flat_map(|tiles| [1, 2, 3, 7, 12].map(|resident| (tiles, resident))) {
            for (k_tiles, least) in (0..=40).flat_map(|k_tiles| [1, 2, 5, 16].map(|least| (k_tiles, least))) {
                let of = Shares::of(tiles, k_tiles, resident, least).expect("small numbers");
                let case = format!("{tiles} tiles of {k_tiles} for {resident}, {least}: {of:?}");
                if of.is_shared == 0 {
                    assert_eq!((of.whole, of.sums), (tiles, 0), "{case}");
                    continue;
                }
                shared += 1;
                with_rests += usize::from(of.rest > 0);
                assert!(of.launched <= resident && of.share + least <= k_tiles && of.share >= least, "{case}");
                assert_eq!((of.whole % resident, of.whole + of.left), (0, tiles), "{case}");
                let mut numbered = BTreeMap::new();
                for (number, piece) in (0..of.launched).flat_map(|cluster| pieces(&of, cluster, k_tiles)) {
                    assert!((0..of.sums).contains(&number), "{case}");
                    assert_eq!(numbered.insert(number, piece), None, "{case}: part {number} twice");
                }
                for tile in 0..of.left {
                    let mut at = 0;
                    for number in added(&of, tile) {
                        let (of_tile, k_tile, count) = numbered.remove(&number).expect("a part that was computed");
                        assert_eq!((of_tile, k_tile), (tile, at), "{case}");
                        at += count;
                    }
                    assert_eq!(at, k_tiles, "{case}");
                }
                assert!(numbered.is_empty(), "{case}");
            }
        }
        assert!(shared > 4000 && with_rests > 500, "{shared}, {with_rests}");
    }

    #[test]
    fn what_is_left_is_shared_by_all() {
        // 5576 x 208 x 18040 in tiles of 128 x 224 of clusters of two: three parts for each of 22.
        let load = |tiles, k_tiles, least| Load::of(tiles, k_tiles, 66, least);
        assert_eq!(load(22, 282, 12), Some(Load { rounds: 0, share: 94, pieces: 1, sums: 66 }));
        // 25 tiles for 66: two parts, and 16 clusters take rests.
        assert_eq!(load(25, 297, 10), Some(Load { rounds: 0, share: 113, pieces: 3, sums: 90 }));
        // Nothing is left, or the rest fills the wave.
        assert_eq!((load(132, 64, 10), load(130, 64, 10)), (None, None));
        assert_eq!(load(67, 64, 10).map(|load| (load.rounds, load.share)), Some((1, 11)));
    }
}
