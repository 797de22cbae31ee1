//! Barriers in shared memory: arrivals and bytes of a phase. Waits are in `mbarrier_wait`.

use super::flight::finding;
use super::hopper::{Issue, Next};
use super::{mbarrier_wait, tracked};
use crate::code::{Inst, NONE, Order};
use crate::code_async::{MbarrierInfo, MbarrierOp};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, locate};
use crate::machine::races::order::Far;
use crate::machine::races::race_async;
use crate::machine::races::word::ACTOR;
use crate::machine::reports::report;
use crate::machine::threads::block::Running;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::vectors::vector::{Rows, store};
use crate::types::Space;
use crate::{FindingKind, Rule};

/// The largest count, and the largest number of bytes that may be expected (PTX ISA, "Contents of the mbarrier object").
const MOST: i64 = (1 << 20) - 1;

/// A barrier in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) expected: u32,
    pub(crate) pending: u32,
    /// Arrivals of copies in this phase beyond the expected count.
    added: u32,
    /// Expected bytes that have not arrived.
    pub(crate) tx: i64,
    /// Phases that are over.
    pub(crate) phase: u64,
    /// Its initialisation: instruction, warp, warp of its clock, lane, epoch.
    pub(crate) init_pc: u32,
    init_by: (usize, u32, u32, u32),
    pub(crate) actor: u32,
    /// The knowledge published by arrivals in this phase, and in earlier phases.
    arriving: Far,
    pub(crate) done: Far,
    /// Whether bytes arrived in this phase, and the last phase with bytes.
    has_tx: bool,
    last_tx: Option<u64>,
    /// The last copy whose bytes arrived.
    last_copy: Option<u32>,
    /// Number of phases that a thread has seen end.
    pub(crate) seen: u64,
    /// The arrivals: warp, instruction.
    pub(crate) arrivers: Vec<(usize, u32)>,
}

impl Mbarrier {
    /// The row of copies that are issued now.
    pub(crate) fn row(&self) -> (u32, u32) {
        (self.actor, self.phase as u32 + 1)
    }

    fn turn_if_complete(&mut self) -> bool {
        if self.pending > 0 || self.tx != 0 {
            return false;
        }
        self.phase += 1;
        (self.pending, self.added) = (self.expected, 0);
        let has_tx = core::mem::take(&mut self.has_tx);
        if has_tx {
            self.last_tx = Some(self.phase);
        }
        if has_tx {
            self.arriving.of.learn(ACTOR | self.actor, self.phase as u32);
        }
        let arriving = core::mem::take(&mut self.arriving);
        self.done.join(&arriving);
        true
    }

    pub(crate) fn in_words(&self) -> String {
        let all = self.expected + self.added;
        let arrived = all - self.pending;
        let bytes = match self.tx {
            0 => String::new(),
            n if n > 0 => format!(", {n} B are missing"),
            n => format!(", {} B more than expected arrived", -n),
        };
        format!("phase {}: {arrived} of {all} have arrived{bytes}", self.phase)
    }
}

/// The addresses of an instruction.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn at(r: Rows, inst: &Inst, info: &MbarrierInfo, mask: u32) -> [u64; 32] {
    // SAFETY: the caller says so.
    unsafe { addresses(r, inst.a, info.address64, info.offset, mask) }
}

pub(crate) fn space(info: &MbarrierInfo) -> Space {
    match (info.generic, info.cluster) {
        (true, _) => Space::Generic,
        (_, true) => Space::SharedCluster,
        _ => Space::Shared,
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn step(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) -> Next {
    let Issue { r, inst, pc, mask, .. } = issue;
    let info = g.code.asyncs.mbarriers[inst.x as usize];
    if info.op == MbarrierOp::Pending {
        // SAFETY: the caller says so; a state has the count in its lower half.
        unsafe {
            let states = *r.lanes::<[u64; 32]>(inst.a);
            store(r.lanes(inst.d), &states.map(|s| s as u32), mask);
        }
        return Next::On;
    }
    // SAFETY: the caller says so.
    let at = unsafe { at(r, inst, &info, mask) };
    if let MbarrierOp::Test { parity, tries } = info.op {
        // SAFETY: the caller says so.
        return unsafe { mbarrier_wait::test(g, b, w, issue, (&at, parity, tries)) };
    }
    // SAFETY: the caller says so.
    let values = if inst.b == NONE { [1; 32] } else { unsafe { *r.lanes::<[u32; 32]>(inst.b) } };
    let mut states = [0_u64; 32];
    let (mut tracked, mut barriers) = (0, [0; 32]);
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let address = at[l as usize];
        let place = match locate(g, w, space(&info), address, l, 8, true) {
            Ok(Place::Shared(place)) => place,
            Ok(_) => {
                report::access(g, b, w, FindingKind::OutOfBounds, pc, l, space(&info), address, 8, true);
                continue;
            }
            Err(kind) => {
                report::access(g, b, w, kind, pc, l, space(&info), address, 8, true);
                continue;
            }
        };
        if matches!(info.op, MbarrierOp::ArriveCopies { .. }) && b.flying.mbarriers.contains_key(&place) {
            (tracked, barriers[l as usize]) = (tracked | 1 << l, place);
        }
        states[l as usize] = lane(g, b, w, &info, pc, l, place, values[l as usize]);
    }
    if tracked != 0 {
        tracked::issue(g, b, w, pc, tracked, barriers);
    }
    if inst.d != NONE {
        // SAFETY: the caller says so.
        unsafe { store(r.lanes(inst.d), &states, mask) };
    }
    Next::On
}

/// The operation of one lane on an `mbarrier`. Returns its state before.
#[allow(clippy::too_many_arguments, reason = "the parts of an operation")]
fn lane(g: &Grid<'_>, b: &mut Block, w: &mut Warp, info: &MbarrierInfo, pc: u32, l: u32, at: u64, value: u32) -> u64 {
    if info.op == MbarrierOp::Init {
        init(g, b, w, pc, l, at, value);
        return 0;
    }
    if !is_there(g, b, w, pc, l, at) {
        return 0;
    }
    if info.op == MbarrierOp::Inval {
        b.flying.mbarriers.remove(&at);
        if g.checks.races {
            race_async::mbarrier(g, b, w, pc, l, at, false);
        }
        return 0;
    }
    if g.checks.races {
        race_async::mbarrier(g, b, w, pc, l, at, true);
    }
    let number = (w.rank * g.warps() + w.index) as usize;
    let Some(m) = b.flying.mbarriers.get_mut(&at) else { return 0 };
    let state = m.phase << 32 | u64::from(m.pending);
    let mut wrong = None;
    if matches!(info.op, MbarrierOp::ArriveExpect { .. } | MbarrierOp::ExpectTx) {
        m.tx += i64::from(value);
        m.has_tx = true;
    }
    if info.op == MbarrierOp::CompleteTx {
        m.tx -= i64::from(value);
    }
    if let MbarrierOp::ArriveCopies { counted } = info.op {
        if !counted {
            (m.pending, m.added) = (m.pending + 1, m.added + 1);
        }
        if i64::from(m.pending) > MOST {
            wrong =
                Some((Rule::MbarrierCount, format!("{} arrivals are pending, at most {MOST} are possible", m.pending)));
        }
        // If the thread has waited for its copies, its arrival publishes them as its other accesses.
        if w.clock.on && w.flying.waited >> l & 1 != 0 {
            w.flying.waited &= !(1 << l);
            m.arriving.join(&w.clock.publish_now());
            w.clock.own += 1;
        }
    }
    if m.tx.abs() > MOST {
        wrong = Some((Rule::MbarrierBytes, format!("{} B are expected, at most {MOST} are possible", m.tx)));
    }
    if let MbarrierOp::Arrive { drop } | MbarrierOp::ArriveExpect { drop } = info.op {
        let count = if matches!(info.op, MbarrierOp::Arrive { .. }) { value } else { 1 };
        if count > m.pending || count == 0 {
            let missing = m.pending;
            let detail =
                format!("{count} arrivals, but only {missing} of {} are pending, in phase {}", m.expected, m.phase);
            wrong = Some((Rule::MbarrierCount, detail));
        }
        m.pending -= count.min(m.pending);
        m.expected -= if drop { count.min(m.expected) } else { 0 };
        if m.arrivers.len() < 64 && !m.arrivers.contains(&(number, pc)) {
            m.arrivers.push((number, pc));
        }
        if w.clock.on && info.order != Order::Relaxed {
            m.arriving.join(&w.clock.publish_now());
            w.clock.own += 1;
        }
    }
    m.turn_if_complete();
    b.flying.progress += 1;
    if let Some((rule, detail)) = wrong {
        misuse(g, b, w, rule, pc, l, at, detail);
    }
    state
}

#[allow(clippy::too_many_arguments, reason = "what the finding says")]
fn misuse(g: &Grid<'_>, b: &mut Block, w: &Warp, rule: Rule, pc: u32, l: u32, at: u64, detail: String) {
    let who = report::who(g, w.ctaid, w.index, 1 << l);
    finding(g, b, rule, pc, who, Some(report::target(g, Space::Shared, at)), detail);
}

fn init(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, l: u32, at: u64, count: u32) {
    if !(1..=MOST).contains(&i64::from(count)) {
        let detail = format!("its count is {count}, and must be 1 to {MOST}");
        misuse(g, b, w, Rule::MbarrierCount, pc, l, at, detail);
    }
    if let Some(m) = b.flying.mbarriers.get(&at).filter(|m| m.pending != m.expected || m.tx != 0) {
        let detail = format!("it is initialised in use, in {}", m.in_words());
        misuse(g, b, w, Rule::MbarrierReuse, pc, l, at, detail);
    }
    if g.checks.races {
        race_async::mbarrier(g, b, w, pc, l, at, false);
    }
    if let Some(written) = b.shared_written.get_mut(at as usize..at as usize + 8) {
        written.fill(1);
    }
    let number = (w.rank * g.warps() + w.index) as usize;
    let m = Mbarrier {
        expected: count.max(1),
        pending: count.max(1),
        added: 0,
        tx: 0,
        phase: 0,
        init_pc: pc,
        init_by: (number, w.clock.id, l, w.clock.own),
        actor: if g.checks.races { g.actor() } else { 0 },
        arriving: Far::default(),
        done: Far::default(),
        has_tx: false,
        last_tx: None,
        last_copy: None,
        seen: 0,
        arrivers: Vec::new(),
    };
    b.flying.mbarriers.insert(at, m);
}

/// Whether an `mbarrier` exists, and its initialisation is visible to a lane.
pub(crate) fn is_there(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, l: u32, at: u64) -> bool {
    let Some(m) = b.flying.mbarriers.get(&at) else {
        misuse(g, b, w, Rule::MbarrierInit, pc, l, at, "no mbarrier is initialised there".to_owned());
        return false;
    };
    let (_, warp, lane, epoch) = m.init_by;
    if g.checks.races && !w.clock.sees_init(warp, lane, epoch, 1 << l) {
        let by = report::site(g.code, m.init_pc);
        let fence = if g.ranks() > 1 { " (after fence.mbarrier_init if that barrier is relaxed)" } else { "" };
        let detail = format!("its initialisation by {by} may not be visible yet: a barrier{fence} is missing");
        misuse(g, b, w, Rule::MbarrierInit, pc, l, at, detail);
    }
    true
}

/// Tracked copies have arrived, and so their thread arrives. Returns the fault if that is wrong.
pub(crate) fn arrive_for_copies(m: &mut Mbarrier, warp: usize, pc: u32, (actor, epoch): (u32, u32)) -> Option<String> {
    let Some(pending) = m.pending.checked_sub(1) else {
        return Some(format!("copies arrive, but no arrival is pending, in phase {}", m.phase));
    };
    if m.arrivers.len() < 64 && !m.arrivers.contains(&(warp, pc)) {
        m.arrivers.push((warp, pc));
    }
    m.pending = pending;
    m.arriving.of.learn(ACTOR | actor, epoch);
    m.turn_if_complete();
    None
}

/// Bytes have arrived.
pub(crate) fn complete(b: &mut Block, at: u64, bytes: u32, pc: u32) {
    if let Some(m) = b.flying.mbarriers.get_mut(&at) {
        m.tx -= i64::from(bytes);
        (m.has_tx, m.last_copy) = (true, Some(pc));
        m.turn_if_complete();
    }
}

/// The barriers of a block whose threads have all exited.
pub(crate) fn ended(g: &Grid<'_>, r: &mut Running, rank: u32) {
    let start = u64::from(rank) * g.shared_stride;
    let all: Vec<(u64, Mbarrier)> =
        r.block.flying.mbarriers.range(start..start + g.shared_stride.max(1)).map(|(at, m)| (*at, m.clone())).collect();
    for (at, m) in all {
        let coming = r.block.flying.flights.iter().filter(|f| f.mbarrier == Some(at));
        let coming: i64 = coming.map(|f| i64::from(f.bytes)).sum();
        if coming > 0 && m.tx == coming {
            // Each copy has a finding of its own.
            continue;
        }
        let (rule, pc, what) = if m.tx != 0 {
            let what = format!("its block ends with missing or surplus bytes, in {}", m.in_words());
            (Rule::MbarrierBytes, m.init_pc, what)
        } else if m.last_tx.is_some_and(|phase| phase > m.seen) {
            let what = format!("it arrived in phase {}, without a wait for it", m.last_tx.unwrap_or(0) - 1);
            (Rule::CopyEnd, m.last_copy.unwrap_or(m.init_pc), what)
        } else {
            continue;
        };
        let (number, _, lane, _) = m.init_by;
        let w = &r.warps[number];
        let who = report::who(g, w.ctaid, w.index, 1 << lane);
        let target = Some(report::target(g, Space::Shared, at));
        finding(g, &mut r.block, rule, pc, who, target, what);
    }
}
