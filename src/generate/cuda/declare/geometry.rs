//! The grid, the blocks and the shared memory of an entry.

use super::{Draft, USUAL_SHARED, refuse, within};
use crate::plan::checks::{self, Checks};
use crate::plan::{DemandKind, Int, IntOp, Rule};

impl Draft<'_> {
    /// The grid, the blocks, and the shared memory.
    pub(super) fn geometry(&mut self, rule: &mut Rule, checks: &mut Checks) {
        let entry = self.entry;
        let blocks = entry.grid.each_ref().map(|blocks| self.read("grid", blocks, checks));
        let when = Int::all(blocks.iter().map(|blocks| match blocks {
            Int::Const(1..) => Int::Const(1),
            blocks => Int::from(0).less(blocks.clone()),
        }));
        if entry.cluster > 1 {
            let whole = blocks[0].clone().divides_by(i64::from(entry.cluster));
            let required = format!("a multiple of {} blocks along x", entry.cluster);
            let found = vec![("blocks along x".into(), blocks[0].clone())];
            self.demand(DemandKind::Launch, whole, required, "a grid has whole clusters", found);
        }
        rule.grid(when.clone(), blocks);
        self.threads(&when, rule, checks);
        let threads = entry.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let z_fits = u64::from(entry.block[2]) <= 64;
        let fit = checks::thread_count(checks, i64::try_from(threads).unwrap_or(i64::MAX), "block(128)").is_some();
        if fit && !z_fits {
            refuse(checks, format!("{} threads along z", entry.block[2]), "at most 64");
        }
        self.shared(rule, checks);
    }

    /// The threads of a block, where a launch says how many there are.
    fn threads(&mut self, when: &Int, rule: &mut Rule, checks: &mut Checks) {
        let entry = self.entry;
        let Some(threads) = &entry.threads else { return };
        let threads = threads.each_ref().map(|of| self.read("block", of, checks));
        let [x, y, z] = threads.clone();
        let all = x.clone() * y.clone() * z.clone();
        let most = i64::from(entry.block[0]);
        let each = [(&x, most), (&y, most), (&z, 64)].map(|(of, most)| within(of, [1, most]));
        let each = Int::all(each.into_iter().chain([all.at_most(most)]));
        let required = format!("blocks of 1 to {most} threads, at most 64 along z");
        let because = "the kernel is declared for this many: Entry::block_of";
        let found = [("x", x), ("y", y), ("z", z)].map(|(mode, of)| (format!("threads along {mode}"), of)).into();
        self.demand(DemandKind::Launch, when.clone().is(0).op(IntOp::Or, each), required, because, found);
        if let Some(grid) = rule.grids.last_mut() {
            grid.threads = Some(threads);
        }
    }

    /// Dynamic shared memory.
    fn shared(&mut self, rule: &mut Rule, checks: &mut Checks) {
        let Some((bytes, most)) = &self.entry.shared else { return };
        let value = self.read("shared", bytes, checks);
        if !matches!(value, Int::Const(_)) {
            let most = i64::try_from(most.unwrap_or(USUAL_SHARED)).unwrap_or(i64::MAX);
            let required = format!("0 to {most} bytes of dynamic shared memory: {bytes}");
            let because = "more than 48 KiB are asked for when the kernel is loaded: Entry::shared_at_most";
            let found = vec![("bytes".into(), value.clone())];
            self.demand(DemandKind::Launch, within(&value, [0, most]), required, because, found);
        }
        if let Some(grid) = rule.grids.last_mut() {
            grid.shared = Some(value);
        }
    }
}
