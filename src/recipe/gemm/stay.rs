//! Factors that stay in their stages from tile to tile: where the k-tiles of a tile divide the stages, each has the same one every time.

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

impl Stays {
    /// Of so many tiles of a cluster, which lie in so many columns of them and have so many k-tiles each, where `even` clusters compute one as
    /// often as the other: as many as let each have the same rows of tiles again, or, where there is but one row in a group, the same columns;
    /// at most as many as are resident.
    pub(super) fn new(
        steps: &mut Steps,
        [clusters, columns, k_tiles]: [Int; 3],
        even: Int,
        [stages, group, resident]: [i64; 3],
    ) -> Self {
        let some = k_tiles.clone().op(IntOp::Max, 1);
        let divides = steps.set("stays_in_stages", Int::from(0).less(k_tiles).and((Int::from(stages) % some).is(0)));
        let period = match group {
            1 => columns.op(IntOp::Max, 1),
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
    [clusters, columns, k_tiles, even]: [u64; 4],
    [stages, group, resident]: [u64; 3],
) -> Option<u64> {
    let number = |number: u64| i64::try_from(number).ok();
    let mut steps = Steps::default();
    let [tiles, along_n, of_one, each] = ["clusters", "columns", "k_tiles", "even"].map(|name| steps.input(name));
    let constants = [number(stages)?, number(group)?, number(resident)?];
    let all = Stays::new(&mut steps, [tiles, along_n, of_one], each, constants);
    let values = steps.eval(&[number(clusters)?, number(columns)?, number(k_tiles)?, number(even)?])?;
    (all.again.eval(&values)? != 0).then_some(all.launched.eval(&values)?.unsigned_abs())
}
