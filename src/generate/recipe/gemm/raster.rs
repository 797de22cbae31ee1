//! The order in which clusters take tiles of D, from which the text's `Scheduler` is written, and the operands that they read at a
//! time.

use core::ops::Range;

use super::Gemm;
use super::text_settings::TextSettings;
use crate::plan::{Int, IntOp};
use crate::recipe::Raster;
use crate::tiling::{Axis, Inner, Order, Takes};

/// Tiles of a cluster are numbered within groups along one mode, then along the other, group by group, batch by batch. Each CTA of a
/// cluster has its own tile, or with split-K a part of the k-tiles of one. The names are those of the text. Of groups of rows each is
/// numbered so, and M is how many it has.
pub(super) fn order(own: &TextSettings, recipe: &Gemm, teams: u32) -> Order {
    let batched = recipe.has_batches();
    let [bm, bn, bk] = own.tile.0.map(i64::from);
    let [along_m, along_n] = own.cluster.0;
    let ctas = [along_m, along_n, own.split_k.max(1)].map(i64::from);
    let known = [("m", bm), ("n", bn), ("k", bk), ("group", 1)];
    let (mut order, [m, n, k, group], pieces) = Order::new(known, ["index", "rank_m", "rank_n", "rank_k"]);
    let [index, rank_m, rank_n, rank_k] = pieces.clone();
    let l = if batched { order.known("l", 1) } else { 1.into() };
    let (raster, steps) = (own.along(), &mut order.steps);
    let ([first, then], [along, across]) = (raster.modes(), [raster.mode(), 1 - raster.mode()]);
    let is_batched = steps.set("batched", i64::from(batched).into());
    let clusters = [("clusters_m", m.clone().ceil_div(bm * ctas[0])), ("clusters_n", n.clone().ceil_div(bn * ctas[1]))];
    let clusters = clusters.map(|(name, value)| steps.set(name, value));
    let of_matrix = clusters[0].clone() * clusters[1].clone();
    let of_batch = steps.set("of_batch", is_batched.select(index.clone() % of_matrix.clone(), index.clone()));
    let of_group = group.clone() * clusters[across].clone();
    let begin = of_batch.clone() / of_group.clone() * group.clone();
    let begin = steps.set(&format!("first_{first}"), begin);
    let in_group = steps.set("in_group", of_batch % of_group);
    let wide = group.op(IntOp::Min, clusters[along].clone() - begin.clone());
    let wide = steps.set(&format!("group_{first}"), wide);
    let mut at = [Int::default(), Int::default()];
    at[along] = steps.set(&format!("cluster_{first}"), begin + in_group.clone() % wide.clone());
    at[across] = steps.set(&format!("cluster_{then}"), in_group / wide);
    let [at_m, at_n] = at;
    order.tile = vec![
        Axis { at: at_m * ctas[0] + rank_m, extent: m.clone().ceil_div(bm) },
        Axis { at: at_n * ctas[1] + rank_n, extent: n.ceil_div(bn) },
    ];
    if batched {
        order.tile.push(Axis { at: index / of_matrix.clone(), extent: l.clone() });
    }
    // The CTAs of a tile share its k-tiles.
    let of_tile = order.steps.set("of_tile", k.ceil_div(bk));
    let splits = order.steps.set("splits", ctas[2].into());
    let (each, rest) = (of_tile.clone() / splits.clone(), of_tile.clone() % splits.clone());
    order.inner = Inner {
        first: each.clone() * rank_k.clone() + rank_k.clone().op(IntOp::Min, rest.clone()),
        trips: each + rank_k.less(rest).select(1, 0),
        tile: [0.into(), of_tile],
    };
    let [along_m, along_n, splits] = ctas.map(Int::from);
    let extents = [of_matrix * l, along_m, along_n, splits];
    order.pieces = pieces.into_iter().zip(extents).map(|(at, extent)| Axis { at, extent }).collect();
    order.takes = Takes::Turns { teams, stream_k: own.stream_k };
    order.groups = recipe.groups.are_of_rows().then_some(m);
    order
}

/// Tiles of a cluster in one matrix, numbered within groups of `group` along one mode, then along the other, then group by group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    raster: Raster,
    group: u64,
    /// Along M and N.
    extents: [u64; 2],
}

impl Tiles {
    pub(super) fn new(raster: Raster, group: u64, extents: [u64; 2]) -> Self {
        Self { raster, group: group.max(1), extents: extents.map(|extent| extent.max(1)) }
    }

    /// The mode that groups are of, and the other one.
    fn modes(&self) -> [usize; 2] {
        let along = self.raster.mode();
        [along, 1 - along]
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.extents[0].saturating_mul(self.extents[1])
    }

    /// (m,n) of a tile, as the order of tiles says it.
    #[cfg(test)]
    fn crd(&self, index: u64) -> [u64; 2] {
        let recipe = Gemm { raster: Some(self.raster), ..Gemm::default() };
        let own = recipe.sm80();
        let order = order(&own, &recipe, 1);
        let [bm, bn, bk] = own.tile.0.map(u64::from);
        let known = [self.extents[0] * bm, self.extents[1] * bn, bk, self.group].map(|number| number as i64);
        let values = order.eval(&known, &[index as i64, 0, 0, 0]).expect("few tiles");
        [0, 1].map(|mode| order.tile[mode].at.eval(&values).expect("few tiles") as u64)
    }

    /// Rows and columns of tiles that these lie in; no more than all, where they begin in one group and end in another.
    fn lie_in(&self, range: Range<u64>) -> [u64; 2] {
        let [along, across] = self.modes();
        let of_group = self.group.saturating_mul(self.extents[across]);
        let mut lines = [0; 2];
        let mut begin = range.start;
        while begin < range.end {
            let (first, from) = (begin / of_group * self.group, begin % of_group);
            let wide = self.group.min(self.extents[along] - first).max(1);
            let to = (from + (range.end - begin)).min(wide * self.extents[across]);
            lines[along] += wide.min(to - from);
            lines[across] += (to - 1) / wide - from / wide + 1;
            begin += to - from;
        }
        [0, 1].map(|mode| lines[mode].min(self.extents[mode]))
    }

    /// How many rows and columns of tiles come from memory, each counted as often as it comes, with `at_a_time` tiles
    /// at a time. L2 keeps their operands until all of them have read these, and longer if `keeps` says so of the rows
    /// and columns that are read meanwhile.
    pub(super) fn lines_from_memory(&self, at_a_time: u64, keeps: impl Fn([u64; 2]) -> bool) -> [u64; 2] {
        let ([along, across], all, at_a_time) = (self.modes(), self.count(), at_a_time.max(1));
        let mut of_group = self.extents;
        of_group[along] = self.group.min(self.extents[along]);
        if keeps(of_group) {
            return self.extents;
        }
        if keeps(self.lie_in(0..at_a_time.min(all))) {
            let mut lines = self.extents;
            lines[across] = self.extents[across].saturating_mul(self.extents[along].div_ceil(of_group[along]));
            return lines;
        }
        let rounds = (0..all.div_ceil(at_a_time)).map(|round| {
            let begin = round * at_a_time;
            self.lie_in(begin..(begin + at_a_time).min(all))
        });
        rounds.fold([0; 2], |[rows, columns], [m, n]| [rows + m, columns + n])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = Tiles> {
        let extents = (1..=9).flat_map(|m| (1..=9).map(move |n| [m, n])).chain([[64, 47], [1, 100], [100, 1]]);
        extents.flat_map(|extents| {
            [Raster::AlongM, Raster::AlongN]
                .into_iter()
                .flat_map(move |raster| [1, 2, 3, 8, 64].map(|group| Tiles::new(raster, group, extents)))
        })
    }

    #[test]
    fn each_tile_has_one_number() {
        for tiles in all() {
            let crds: BTreeSet<[u64; 2]> = (0..tiles.count()).map(|index| tiles.crd(index)).collect();
            assert_eq!(crds.len() as u64, tiles.count(), "{tiles:?}");
            assert!(crds.iter().all(|[m, n]| *m < tiles.extents[0] && *n < tiles.extents[1]), "{tiles:?}");
        }
    }

    /// A round of clusters reads the rows and columns of its tiles: exactly within one group, and never less.
    #[test]
    fn rounds_read_the_rows_and_columns_of_their_tiles() {
        let (mut exact, mut more) = (0, 0);
        for tiles in all() {
            for (begin, count) in [1, 5, 8, 66].into_iter().flat_map(|count| (0..3).map(move |i| (i * count, count))) {
                let range = begin..(begin + count).min(tiles.count());
                if range.is_empty() {
                    continue;
                }
                let [along, across] = tiles.modes();
                let crds: Vec<[u64; 2]> = range.clone().map(|index| tiles.crd(index)).collect();
                let seen = [0, 1].map(|mode| crds.iter().map(|crd| crd[mode]).collect::<BTreeSet<_>>().len() as u64);
                let said = tiles.lie_in(range.clone());
                let of_group = tiles.group * tiles.extents[across];
                assert_eq!(said[along], seen[along], "{tiles:?} {range:?}");
                if (range.end - 1) / of_group == range.start / of_group {
                    assert_eq!(said[across], seen[across], "{tiles:?} {range:?}");
                    exact += 1;
                } else {
                    assert!(said[across] >= seen[across], "{tiles:?} {range:?}");
                    more += 1;
                }
            }
        }
        assert!(exact > 1000 && more > 1000, "{exact} and {more}");
    }

    /// 8192 x 8192 in tiles of 128x256, clusters of two along M: 16 rounds of 64 take 8 rows of clusters and 8 columns
    /// each. With K = 8192 an H100 read 1,073,867,776 bytes from memory, by ncu's `dram__bytes_read.sum`.
    #[test]
    fn what_l2_does_not_keep_is_read_again() {
        let tiles = Tiles::new(Raster::AlongM, 8, [32, 32]);
        let bytes = |[rows, columns]: [u64; 2]| (rows + columns) * 256 * 8192 * 2;
        assert_eq!(bytes(tiles.lines_from_memory(64, |lines| bytes(lines) <= 50 << 20)), 1_073_741_824);
        // With less K, the operands of a round stay in L2 for the next round, or those of a group for the next group.
        assert_eq!(tiles.lines_from_memory(66, |[rows, columns]| rows + columns < 32), [32, 4 * 32]);
        assert_eq!(tiles.lines_from_memory(66, |[rows, columns]| rows + columns <= 40), [32, 32]);
        // Column by column each round reads all rows, or nearly.
        let [rows, columns] = Tiles::new(Raster::AlongM, 64, [32, 32]).lines_from_memory(66, |_| false);
        assert!(rows > 400 && columns < 64, "{rows} {columns}");
    }
}
