//! In which order clusters take the tiles of D, and whether they begin while the kernel before them ends: by how long a launch is.

use super::text_settings::TextSettings;
use super::{Factors, choose};
use crate::dtype::DType;
use crate::plan::{Int, IntOp, Steps};

/// Cycles of products in one CTA, about 36 microseconds, up to which a launch is short.
const SHORT: i64 = 1 << 16;

/// Tiles of a cluster in a group: of a short launch with at least twice as many along the mode of groups, and of any
/// other launch.
pub(super) const GROUPS: [i64; 2] = [2, 8];

/// Groups and overlap of a launch.
pub(super) struct Grouping {
    /// Tiles of a cluster along one mode before the next along the other.
    pub(super) group: Int,
    /// Whether the launch begins while the kernel before it ends (PDL), which saves one or two microseconds. On an idle
    /// GPU, clusters fill one GPC after the other. The clusters of a GPC then have the same rows of D, in groups of 8
    /// along M, and L2 presumably gives these rows once. Clusters that begin as others end run anywhere. A cluster with
    /// two CTAs across the mode of the groups shares these rows by multicast instead. Timings of long launches show the
    /// effect; placement on GPCs and the traffic of L2 were not measured.
    pub(super) overlaps: Int,
}

impl Grouping {
    /// Decides both for a launch. A CTA computes at most `turns` tiles, each with `k_tiles` k-tiles. `lines` is the
    /// number of tiles of a cluster along the mode of groups.
    pub(super) fn new(
        steps: &mut Steps,
        factors: Factors,
        own: &TextSettings,
        [turns, k_tiles, lines]: [Int; 3],
    ) -> Self {
        let [bm, bn, bk] = own.tile.0.map(i64::from);
        // Elements twice as wide: half as many products per cycle (NVIDIA H100 Tensor Core GPU Architecture).
        let [wide, half] = [factors.dtype(), DType::F16].map(|dtype| dtype.bytes().0 as i64);
        let cycles = (2 * bm * bn * bk * wide / half / (choose::PER_CYCLE as i64)).max(1);
        let is_short = steps.set("is_short", (turns * k_tiles).at_most(SHORT / cycles));
        let [few, many] = GROUPS;
        let group = match own.group {
            Some(group) => i64::from(group).into(),
            None => is_short.clone().and(Int::from(2 * few).at_most(lines.clone())).select(few, many),
        };
        // No more than there are, so that tiles of a group are numbered by 32 bits as all of them are.
        let group = steps.set("group", group.op(IntOp::Min, lines.op(IntOp::Max, 1)));
        let across = 1 - own.along().mode();
        let overlaps = if own.cluster.0[across] > 1 { 1.into() } else { is_short };
        Self { group, overlaps }
    }
}

/// Tiles of a cluster in a group of a launch that is told as [`Grouping::new`] is.
pub(super) fn group(factors: Factors, own: &TextSettings, launch: [u64; 3]) -> Option<u64> {
    let mut steps = Steps::default();
    let of = ["turns", "k_tiles", "lines"].map(|name| steps.input(name));
    let order = Grouping::new(&mut steps, factors, own, of);
    let given: Vec<i64> = launch.iter().map(|number| i64::try_from(*number).ok()).collect::<Option<_>>()?;
    let values = steps.eval(&given)?;
    u64::try_from(order.group.eval(&values)?).ok()
}
