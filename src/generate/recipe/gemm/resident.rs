//! Factors that stay in their stages from tile to tile: where the k-tiles of a tile divide the stages, each has the same one every time.

use super::text_settings::TextSettings;
use crate::plan::{Int, IntOp, Steps};

/// A launch's decisions for resident operands.
pub(super) struct Stays {
    /// Whether a tile's k-tiles divide the stages.
    pub(super) divides: Int,
    /// Clusters that are launched.
    pub(super) launched: Int,
    /// Whether `launched` clusters each get the same rows, or columns, of tiles again.
    again: Int,
}

/// How many clusters later this operand's tile is needed again. That is after a group, or, if a group is a single row or column,
/// after its `others` tiles.
fn period(own: &TextSettings, others: Int, group: Int) -> Int {
    if own.group == Some(1) { others.op(IntOp::Max, 1) } else { group }
}

impl Stays {
    /// Decides how many clusters are launched. There are `clusters` tiles, `others` of them across the mode of groups,
    /// each with `k_tiles` k-tiles. `even` clusters compute equally often. Rounded up to whole periods, each cluster
    /// needs the same tile again; that number is launched if all of them are resident.
    pub(super) fn new(
        steps: &mut Steps,
        own: &TextSettings,
        [clusters, others, k_tiles, even]: [Int; 4],
        [group, resident]: [Int; 2],
    ) -> Self {
        let some = k_tiles.clone().op(IntOp::Max, 1);
        let divides = Int::from(0).less(k_tiles).and((Int::from(i64::from(own.stages)) % some).is(0));
        let divides = steps.set("stays_in_stages", divides);
        let period = steps.set("period", period(own, others, group));
        let whole = steps.set("whole_periods", even.clone().ceil_div(period.clone()) * period);
        let fits = whole.clone().at_most(clusters.op(IntOp::Min, resident));
        let again = divides.clone().and(fits);
        Self { launched: steps.set("launched", again.clone().select(whole, even)), divides, again }
    }
}

/// How many clusters are launched where a factor stays; `None` where none does.
pub(super) fn launched(own: &TextSettings, launch: [u64; 4], [group, resident]: [u64; 2]) -> Option<u64> {
    let mut steps = Steps::default();
    let of = ["clusters", "others", "k_tiles", "even"].map(|name| steps.input(name));
    let also = ["group", "resident"].map(|name| steps.input(name));
    let all = Stays::new(&mut steps, own, of, also);
    let given = launch.into_iter().chain([group, resident]).map(|number| i64::try_from(number).ok());
    let values = steps.eval(&given.collect::<Option<Vec<_>>>()?)?;
    (all.again.eval(&values)? != 0).then_some(all.launched.eval(&values)?.unsigned_abs())
}
