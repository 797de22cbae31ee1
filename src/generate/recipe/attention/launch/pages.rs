//! The grids of keys in pages: how many splits, CTAs and rows there are.

use super::MOST;
use crate::plan::{Int, IntOp, Rule};
use crate::recipe::attention::decide::Decision;

/// Shared memory of a multiprocessor of sm_90a.
const SHARED: i64 = 228 << 10;

/// CTAs of a multiprocessor at once that are enough. On an H200 more of them, of fewer keys each, took 1.02 to 1.2 times as long.
const AT_ONCE: i64 = 8;

/// The fewest steps of a split that is chosen: a CTA loads the entries of its pages first, and leaves a row for `combine`.
const FEWEST: i64 = 4;

/// Rounds of CTAs, where one is not enough: what is left for the last one is less.
const ROUNDS: i64 = 4;

impl Decision {
    /// Steps of a split where none is given: for as many CTAs as multiprocessors have at once, which then end together.
    fn steps_of_split(&self, units: &Int, steps: &Int) -> Int {
        let own = self.smem.0 + self.recipe.offsets(&self.own).0;
        // The driver takes 1 KiB of each block's.
        let at_once = (SHARED / (own as i64 + 1024)).clamp(1, AT_ONCE) * i64::from(self.recipe.ctas);
        let units = units.clone().op(IntOp::Max, 1);
        let several = Int::from(ROUNDS * at_once).ceil_div(units.clone());
        let splits = units.clone().at_most(at_once).select(Int::from(at_once) / units, several);
        steps.clone().ceil_div(splits).op(IntOp::Max, FEWEST)
    }
}

/// A CTA for each tile of rows, key head, split and batch; then one for each row of O.
pub(super) fn split(rule: &mut Rule, of: &Decision, [b, sq, hq, hk]: [&Int; 4], keys: Int) {
    let (recipe, [rows, values, step]) = (&of.recipe, of.tiling.tile);
    let group = hq.clone() / hk.clone().op(IntOp::Max, 1);
    let of_queries = sq.clone() * group;
    let (tiles, outputs) = if recipe.varlen {
        // As without pages.
        (of_queries / rows + b.clone() + 1, sq.clone() * hq.clone())
    } else {
        (of_queries.ceil_div(rows), sq.clone() * hq.clone() * b.clone())
    };
    let tiles = rule.steps.set("tiles", tiles);
    let units = rule.steps.set("units", tiles * hk.clone() * if recipe.varlen { 1.into() } else { b.clone() });
    let outputs = rule.steps.set("outputs", outputs);
    let splits = match recipe.split {
        Some(split) => keys.ceil_div(i64::from(split)),
        None => {
            let all = rule.steps.set("steps_of_keys", keys.ceil_div(step));
            let steps = rule.steps.set("steps_of_split", of.steps_of_split(&units, &all));
            rule.derive_if_any("steps", steps.clone());
            all.ceil_div(steps)
        }
    };
    let splits = rule.steps.set("splits_of_keys", splits);
    rule.derive_if_any("splits", splits.clone());
    let works = rule.steps.set("works", Int::from(0).less(outputs.clone()).select(units * splits.clone(), 0));
    for number in [works.clone(), outputs.clone(), outputs.clone() * splits.clone()] {
        rule.steps.require(number.at_most(MOST), "works and rows are numbered by 32 bits");
    }
    // O, the largest score and the sum of each row, in f32.
    rule.workspace = outputs.clone() * splits * (4 * (values + 2));
    rule.grid(Int::from(0).less(works.clone()), [works, 1.into(), 1.into()]);
    if let Some(combine) = &of.combine {
        let blocks = combine.order.extents(&combine.order.pieces, |name| rule.steps.find(name));
        rule.grid(Int::from(0).less(outputs), blocks);
    }
}
