//! Factors that stay in their stages from tile to tile: where the k-tiles of a tile divide the stages, each has the same one every time.

use super::Gemm;
use crate::plan::{Int, IntOp, Steps};

/// What a launch does for it.
pub(super) struct Stays {
    /// Whether a tile's k-tiles divide the stages.
    pub(super) divides: Int,
    /// Clusters that are launched.
    pub(super) launched: Int,
    /// Whether so many let each have the same rows of tiles again, or the same columns.
    again: Int,
}

impl Gemm {
    /// The factor that may stay, 0 for A and 1 for B: that of the mode which groups are of, where several tiles are in one, else the other.
    pub(super) fn stays(&self) -> usize {
        let along = self.raster.mode();
        if self.group > 1 { along } else { 1 - along }
    }
}

impl Stays {
    /// Of so many tiles of a cluster, `others` along the mode that groups are not of, with so many k-tiles each, where `even` clusters compute
    /// one as often as the other: as many as let each have the same ones of a group again, or, where a group is but one row or column, the
    /// same place in it; at most as many as are resident.
    pub(super) fn new(
        steps: &mut Steps,
        [clusters, others, k_tiles]: [Int; 3],
        even: Int,
        [stages, group, resident]: [i64; 3],
    ) -> Self {
        let some = k_tiles.clone().op(IntOp::Max, 1);
        let divides = steps.set("stays_in_stages", Int::from(0).less(k_tiles).and((Int::from(stages) % some).is(0)));
        let period = match group {
            1 => others.op(IntOp::Max, 1),
            group => group.into(),
        };
        let period = steps.set("period", period);
        let whole = steps.set("whole_periods", even.clone().ceil_div(period.clone()) * period);
        let fits = whole.clone().at_most(clusters.op(IntOp::Min, resident));
        let again = divides.clone().and(fits);
        Self { launched: steps.set("launched", again.clone().select(whole, even)), divides, again }
    }
}

/// How many clusters are launched where a factor stays; `None` where none does.
pub(super) fn launched(
    [clusters, others, k_tiles, even]: [u64; 4],
    [stages, group, resident]: [u64; 3],
) -> Option<u64> {
    let number = |number: u64| i64::try_from(number).ok();
    let mut steps = Steps::default();
    let [tiles, across, of_one, each] = ["clusters", "others", "k_tiles", "even"].map(|name| steps.input(name));
    let constants = [number(stages)?, number(group)?, number(resident)?];
    let all = Stays::new(&mut steps, [tiles, across, of_one], each, constants);
    let values = steps.eval(&[number(clusters)?, number(others)?, number(k_tiles)?, number(even)?])?;
    (all.again.eval(&values)? != 0).then_some(all.launched.eval(&values)?.unsigned_abs())
}
