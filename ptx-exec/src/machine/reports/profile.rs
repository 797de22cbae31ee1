//! Counts for each instruction: executions, active lanes, and memory requests.
//!
//! The cost of a warp's request is counted as GPU profilers count it.

use crate::code::{Inst, Op};
use crate::machine::accesses::access::addresses;
use crate::machine::accesses::banks::{SharedOp, wavefronts};
use crate::machine::vectors::vector::Rows;
use crate::machine::{Grid, LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::types::Space;

/// Bytes of global memory that are fetched together.
const SECTOR: u64 = 32;

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) executions: u64,
    pub(crate) lanes: u64,
    /// Requests of global memory, and the sectors that they ask for.
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    /// Requests of shared memory, and the passes over its banks.
    pub(crate) shared_requests: u64,
    pub(crate) wavefronts: u64,
    /// Bytes of bulk copies, and products and sums of `wgmma`.
    pub(crate) bulk_bytes: u64,
    pub(crate) wgmma_flops: u64,
}

impl Count {
    pub(crate) fn join(&mut self, other: &Count) {
        self.executions += other.executions;
        self.lanes += other.lanes;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.shared_requests += other.shared_requests;
        self.wavefronts += other.wavefronts;
        self.bulk_bytes += other.bulk_bytes;
        self.wgmma_flops += other.wgmma_flops;
    }

    fn global(&mut self, lanes: impl Iterator<Item = u64>, bytes: u64) {
        let mut sectors: Vec<u64> = lanes.flat_map(|at| at / SECTOR..=at.saturating_add(bytes - 1) / SECTOR).collect();
        if sectors.is_empty() {
            return;
        }
        sectors.sort_unstable();
        sectors.dedup();
        self.requests += 1;
        self.sectors += sectors.len() as u64;
    }

    fn shared(&mut self, op: SharedOp, at: &[u64], mask: u32, bytes: u64, sources: &[u64]) {
        let address = |l: usize| (mask >> l & 1 != 0).then_some(at[l]);
        let addresses: Vec<Option<u64>> = (0..at.len()).map(address).collect();
        if addresses.iter().all(Option::is_none) {
            return;
        }
        self.shared_requests += 1;
        self.wavefronts += wavefronts(op, bytes, &addresses, sources);
    }
}

/// Counts the memory requests of an instruction, before it runs.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn memory(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32, count: &mut Count) {
    let code = g.code;
    let active = |at: &[u64; 32]| (0..32).filter(|l| mask >> l & 1 != 0).map(|l| at[l]).collect::<Vec<u64>>();
    match inst.op {
        Op::Ld | Op::St | Op::Atom => {
            let mem = if inst.op == Op::Atom { &code.atoms[inst.x as usize].mem } else { &code.mems[inst.x as usize] };
            let bytes = u64::from(mem.bytes * mem.elements);
            // SAFETY: the caller says so.
            let mut at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
            let within = |base: u64| at.iter().all(|a| a.wrapping_sub(base) < WINDOW);
            let space = match mem.space {
                Space::Generic if within(SHARED_WINDOW) => {
                    at.iter_mut().for_each(|a| *a -= SHARED_WINDOW);
                    Space::Shared
                }
                Space::Generic if within(LOCAL_WINDOW) => Space::Local,
                space => space,
            };
            match space {
                Space::Shared => {
                    let op = if inst.op == Op::Ld { SharedOp::Load } else { SharedOp::Store };
                    count.shared(op, &at, mask, bytes, &[]);
                }
                Space::Global | Space::Generic => count.global(active(&at).into_iter(), bytes),
                _ => {}
            }
        }
        Op::CpAsync => {
            let info = &code.copies[inst.x as usize];
            // SAFETY: the caller says so.
            let (to, from) = unsafe {
                (addresses(r, inst.a, info.to64, info.to, mask), addresses(r, inst.b, true, info.from, mask))
            };
            let bytes = u64::from(info.bytes);
            count.global(active(&from).into_iter(), bytes);
            count.shared(SharedOp::Copy, &to, mask, bytes, &from);
        }
        Op::LdMatrix | Op::StMatrix => {
            let info = &code.matrices[inst.x as usize];
            // SAFETY: the caller says so.
            let at = unsafe { addresses(r, inst.a, info.mem.address64, info.mem.offset, mask) };
            let op = if inst.op == Op::LdMatrix { SharedOp::Load } else { SharedOp::Store };
            let requests = count.shared_requests;
            // A matrix at a time: its eight rows are 128 bytes.
            for rows in at[..8 * info.count as usize].chunks(8) {
                count.shared(op, rows, 0xff, 16, &[]);
            }
            count.shared_requests = requests + 1;
        }
        _ => {}
    }
}
