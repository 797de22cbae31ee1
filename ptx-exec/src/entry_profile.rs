//! The profile of an entry: its counts by PTX line.

use std::collections::BTreeMap;

use super::code::Code;
use super::machine::reports::profile::Count;
use super::machine::reports::report::site;
use crate::{Counts, Profile, Profiled, Stages};

fn counts(c: &Count) -> Counts {
    Counts {
        executions: c.executions,
        lanes: c.lanes,
        requests: c.requests,
        sectors: c.sectors,
        shared_requests: c.shared_requests,
        wavefronts: c.wavefronts,
        bulk_bytes: c.bulk_bytes,
        wgmma_flops: c.wgmma_flops,
    }
}

/// Steps of one PTX instruction, which count as one execution.
fn take_part(sum: &mut Counts, step: &Counts) {
    let (executions, lanes) = (sum.executions.max(step.executions), sum.lanes.max(step.lanes));
    sum.join(step);
    (sum.executions, sum.lanes) = (executions, lanes);
}

/// The profile of an entry's instructions.
pub(super) fn profile(code: &Code, all_counts: &[Count], stages: Vec<Stages>) -> Profile {
    let mut all: BTreeMap<(u32, u32), Profiled> = BTreeMap::new();
    let mut pc = 0;
    while pc < all_counts.len() {
        let position = code.places[pc].0;
        let mut sum = Counts::default();
        let first = pc;
        while pc < all_counts.len() && code.places[pc].0 == position {
            take_part(&mut sum, &counts(&all_counts[pc]));
            pc += 1;
        }
        if sum.executions > 0 {
            // A function is inlined at each of its calls.
            let known = all.entry((position.line, position.column));
            let site = || Profiled { site: site(code, first as u32), counts: Counts::default() };
            known.or_insert_with(site).counts.join(&sum);
        }
    }
    Profile { instructions: all.into_values().collect(), stages }
}
