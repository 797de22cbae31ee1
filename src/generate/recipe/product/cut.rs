//! How the tiles of D become CTAs: whole, all split along K, or only the last wave split along K, so that its CTAs end
//! together.

use crate::plan::{Int, IntOp, Rule, Steps};
use crate::tiling::{Axis, Inner, Order};

/// Threads of the kernel that adds the parts of K.
pub(crate) const REDUCE_THREADS: u32 = 256;

/// Bytes of a sum of a part of K.
pub(crate) const F32: i64 = 4;

/// How K is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parts {
    /// Each tile is split into this many pieces, which run side by side.
    Each(i64),
    /// So many CTAs run at a time; the tiles that do not fill such a wave are cut.
    Wave(i64),
}

/// How the tiles of D become CTAs: `whole` whole tiles, then `cut` tiles in `parts` pieces along K. A piece has
/// `k_part` k-tiles, but the last one has the rest. The CTAs are numbered: whole tiles, first pieces, second pieces, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) whole: i64,
    pub(crate) cut: i64,
    pub(crate) parts: i64,
    pub(crate) k_part: i64,
}

/// The same as values of a rule.
#[derive(Clone)]
pub(crate) struct CutRule {
    pub(crate) whole: Int,
    pub(crate) cut: Int,
    pub(crate) parts: Int,
    pub(crate) k_part: Int,
}

impl Parts {
    /// For `tiles` tiles of D, each with `k_tiles` steps along K of `bk` products.
    pub(crate) fn cut(self, tiles: i64, k_tiles: i64, bk: i64) -> Cut {
        let mut steps = Steps::default();
        let inputs = [steps.input("tiles"), steps.input("k_tiles")];
        let CutRule { whole, cut, parts, k_part } = self.cut_rule(&mut steps, inputs, bk);
        let values = steps.eval(&[tiles, k_tiles]);
        let all = values.and_then(|values| {
            let [whole, cut, parts, k_part] = [whole, cut, parts, k_part].map(|part| part.eval(&values));
            Some(Cut { whole: whole?, cut: cut?, parts: parts?, k_part: k_part? })
        });
        // So many tiles are at no end of theirs.
        all.unwrap_or(Cut { whole: tiles, cut: 0, parts: 1, k_part: k_tiles })
    }

    fn cut_rule(self, steps: &mut Steps, [tiles, k_tiles]: [Int; 2], bk: i64) -> CutRule {
        match self {
            Parts::Wave(wave) => CutRule::of_wave(steps, wave, [tiles, k_tiles], bk),
            Parts::Each(1) => CutRule { whole: tiles, cut: 0.into(), parts: 1.into(), k_part: k_tiles },
            Parts::Each(parts) => {
                CutRule { whole: 0.into(), cut: tiles, parts: parts.into(), k_part: k_tiles.ceil_div(parts) }
            }
        }
    }

    /// The tile and the k-tiles of a CTA, as the text has them: a CTA for each tile and piece, or as they are numbered.
    pub(crate) fn order(self, [bm, bn, bk]: [i64; 3], batched: bool) -> Order {
        let known = [("m", bm), ("n", bn), ("k", bk)];
        let (mut order, [m, n, k], [x, y, z]) = Order::new(known, ["x", "y", "z"]);
        let l = if batched { order.known("l", 1) } else { 1.into() };
        let (tiles_m, tiles_n, k_tiles) = (m.ceil_div(bm), n.ceil_div(bn), k.ceil_div(bk));
        let (at, extents, [first, end]) = match self {
            Parts::Each(parts) => {
                let k_part = k_tiles.clone().ceil_div(parts);
                let first = (z.clone() % parts * k_part.clone()).op(IntOp::Min, k_tiles.clone());
                let end = (first.clone() + k_part).op(IntOp::Min, k_tiles.clone());
                (
                    [y.clone(), x.clone(), z.clone() / parts],
                    [tiles_n.clone(), tiles_m.clone(), l.clone() * parts],
                    [first, end],
                )
            }
            Parts::Wave(_) => {
                let tiles = order.steps.set("tiles", tiles_m.clone() * tiles_n.clone() * l.clone());
                let CutRule { whole, cut, parts, k_part } =
                    self.cut_rule(&mut order.steps, [tiles, k_tiles.clone()], bk);
                let rest = x.clone() - whole.clone();
                let is_cut = Int::from(0).at_most(rest.clone());
                let of = cut.clone().op(IntOp::Max, 1);
                let tile = is_cut.clone().select(whole.clone() + rest.clone() % of.clone(), x.clone());
                let tile = order.steps.set("tile", tile);
                let first = is_cut.clone().select(rest / of * k_part.clone(), 0);
                let end = (first.clone() + k_part).op(IntOp::Min, k_tiles.clone());
                let end = is_cut.select(end, k_tiles.clone());
                let at_m = tile.clone() / tiles_n.clone() % tiles_m.clone();
                let at = [at_m, tile.clone() % tiles_n.clone(), tile / (tiles_m.clone() * tiles_n.clone())];
                (at, [whole + cut * parts, 1.into(), 1.into()], [first, end])
            }
        };
        order.inner = Inner { first: first.clone(), trips: end - first, tile: [0.into(), k_tiles] };
        order.pieces = [x, y, z].into_iter().zip(extents).map(|(at, extent)| Axis { at, extent }).collect();
        let tiles = at.into_iter().zip([tiles_m, tiles_n, l]);
        order.tile = tiles.map(|(at, extent)| Axis { at, extent }).collect();
        order
    }

    /// Partial sums of the split tiles: of D, or of whole tiles.
    pub(crate) fn sums(self, cut: &Cut, [m, n, l]: [i128; 3], [bm, bn, _]: [i64; 3]) -> i128 {
        match self {
            _ if cut.cut == 0 => 0,
            Parts::Each(_) => m * n * l,
            Parts::Wave(_) => i128::from(cut.cut) * i128::from(bm * bn),
        }
    }

    /// The grids for extents M, N, K and L below 2^31, and the workspace: a CTA for each tile and piece, or as they are
    /// numbered. Then threads for the elements of the split tiles.
    pub(crate) fn grids(self, rule: &mut Rule, [bm, bn, bk]: [i64; 3], order: &Order) {
        let [m, n, k, l] = ["m", "n", "k", "l"].map(|name| rule.param_or_one(name));
        let [along_m, along_n, _] = order.extents(&order.tile, |name| rule.param_or_one(name));
        let steps = &mut rule.steps;
        let (tiles_m, tiles_n) = (steps.set("tiles_m", along_m), steps.set("tiles_n", along_n));
        let something = Int::all([&m, &n, &l].map(|extent| Int::from(0).less(extent.clone())));
        match self {
            Parts::Each(parts) => {
                let [_, _, z] = order.extents(&order.pieces, |name| rule.param_or_one(name));
                rule.grid(something.clone(), [tiles_n, tiles_m, z]);
                if parts > 1 {
                    let blocks = numbered(rule, m.clone() * n.clone());
                    rule.grid(something.clone(), [blocks, 1.into(), l.clone()]);
                    rule.workspace = something.select(m * n * l * (parts * F32), 0);
                }
            }
            Parts::Wave(_) => {
                let of_one = steps.set("tiles_of_one", tiles_m * tiles_n);
                steps.require(of_one.clone().at_most(i64::from(i32::MAX)), "tiles are numbered by 32 bits");
                let tiles = steps.set("tiles", of_one * l);
                let k_tiles = steps.set("k_tiles", k.ceil_div(bk));
                let CutRule { whole, cut, parts, k_part } = self.cut_rule(steps, [tiles, k_tiles], bk);
                for (name, value) in [("whole", &whole), ("cut", &cut), ("parts", &parts), ("k_part", &k_part)] {
                    rule.derive_if_any(name, value.clone());
                }
                rule.grid(something.clone(), [whole + cut.clone() * parts.clone(), 1.into(), 1.into()]);
                let reduces = something.and(Int::from(0).less(cut.clone()));
                let blocks = numbered(rule, Int::from(bm * bn));
                rule.grid(reduces, [blocks, cut.clone(), 1.into()]);
                rule.workspace = cut * parts * (bm * bn * F32);
            }
        }
    }
}

/// CTAs with one thread per element: they are numbered by 32 bits.
fn numbered(rule: &mut Rule, elements: Int) -> Int {
    let blocks = elements.ceil_div(i64::from(REDUCE_THREADS));
    let most = i64::from(i32::MAX) / i64::from(REDUCE_THREADS);
    rule.steps.require(blocks.clone().at_most(most), "threads are numbered by 32 bits");
    blocks
}

/// Parts of a tile, at most.
const PARTS: i64 = 64;
/// A block's time before its first product and after its last, in steps along K: a load from device memory, stores of
/// D.
const ENDS: i64 = 2;
/// Products that a multiprocessor adds in the time that one sum of 4 bytes takes to L2 or back: 128 in a cycle, against 21 bytes
/// in a cycle, which is 5.5 TB/s for 132 multiprocessors at 1.98 GHz.
const SUM: i64 = 24;

impl CutRule {
    /// For `tiles` tiles of D, each with `k_tiles` steps along K of `bk` products, where `wave` CTAs run at a time: the
    /// cheapest of no split, equal pieces and unequal pieces.
    fn of_wave(steps: &mut Steps, wave: i64, [tiles, k_tiles]: [Int; 2], bk: i64) -> Self {
        let left = steps.set("left", tiles.clone() % wave.max(1));
        let can_be_cut = Int::from(0).less(left.clone()).and(Int::from(1).less(k_tiles.clone()));
        // Equal parts: all of them run at once.
        let places = steps.set("places", Int::from(wave) / left.clone().op(IntOp::Max, 1));
        let k_equal = k_tiles.clone().ceil_div(places.clone().op(IntOp::Min, PARTS).op(IntOp::Max, 1));
        let k_equal = steps.set("k_equal", k_equal);
        let equal = steps.set("equal", k_tiles.clone().ceil_div(k_equal.clone().op(IntOp::Max, 1)));
        // Long pieces run at once, and one short piece of each tile follows where there is room: the least with turns *
        // (k_tiles - places * k_long + ENDS) <= k_long + ENDS.
        let room = steps.set("room", Int::from(wave) - places.clone() * left.clone());
        let turns = steps.set("turns", left.clone().ceil_div(room.clone().op(IntOp::Max, 1)));
        let enough = (turns.clone() * (k_tiles.clone() + ENDS) - ENDS).ceil_div(turns * places.clone() + 1);
        let k_long = enough.op(IntOp::Max, k_tiles.clone().ceil_div(places.clone() + 1));
        let k_long = steps.set("k_long", k_long);
        let has_room = Int::from(0).less(room).and(places.clone().less(PARTS));
        // Each part is written and read once, and the sum is written.
        let cost =
            |parts: Int, k_part: Int| k_part + ENDS + (parts * 2 + 1) * left.clone() * SUM / (wave.max(1) * bk) + 1;
        let plain = k_tiles.clone() + ENDS;
        let is_equal = can_be_cut.clone().and(k_equal.clone().less(k_tiles.clone()));
        let is_equal = is_equal.and(cost(equal.clone(), k_equal.clone()).less(plain.clone()));
        let is_equal = steps.set("is_equal", is_equal);
        let best = steps.set("best", is_equal.clone().select(cost(equal.clone(), k_equal.clone()), plain));
        let is_long = can_be_cut.and(has_room).and((places.clone() * k_long.clone()).less(k_tiles.clone()));
        let is_long = is_long.and(cost(places.clone() + 1, k_long.clone()).less(best));
        let is_long = steps.set("is_long", is_long);
        let choose =
            |long: Int, equal: Int, plain: Int| is_long.clone().select(long, is_equal.clone().select(equal, plain));
        let [cut, parts, k_part] = [
            choose(left.clone(), left, 0.into()),
            choose(places + 1, equal, 1.into()),
            choose(k_long, k_equal, k_tiles),
        ];
        let cut = steps.set("cut", cut);
        Self {
            whole: steps.set("whole", tiles - cut.clone()),
            cut,
            parts: steps.set("parts", parts),
            k_part: steps.set("k_part", k_part),
        }
    }
}

impl Cut {
    /// Blocks of the launch.
    pub(crate) fn blocks(&self) -> Option<i64> {
        self.cut.checked_mul(self.parts)?.checked_add(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps until the last block has ended, each block on the first free slot, as the hardware does it.
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
                    let cut = Parts::Wave(wave).cut(tiles, k_tiles, 32);
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
        let cut = Parts::Wave(264).cut(1024, 128, 32);
        assert_eq!(cut, Cut { whole: 792, cut: 232, parts: 2, k_part: 116 });
        let even = 1024 * (128 + ENDS) / 264;
        assert!(makespan(&cut, 264, 128) * 100 <= even * 102, "{} of {even}", makespan(&cut, 264, 128));
        // Little of D, much of K: all tiles are cut.
        let cut = Parts::Wave(264).cut(4, 4096, 32);
        assert_eq!((cut.whole, cut.parts, cut.k_part), (0, 64, 64));
        // Splitting gains nothing here.
        assert_eq!(Parts::Wave(264).cut(528, 128, 32).cut, 0);
        assert_eq!(Parts::Wave(264).cut(256, 64, 32).cut, 0);
    }
}
