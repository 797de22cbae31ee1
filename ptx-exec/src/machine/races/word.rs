//! Accesses of a word, and their happens-before order.

use super::order::WarpClock;
use super::paths::Lessons;
use super::proxy::ProxySpace;
use crate::code::Scope;
use crate::machine::threads::warp::Warp;

/// One access of a word by lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub(crate) warp: u32,
    /// Other warps of its block that read the same at the same epoch, by the same lanes of the same instruction.
    pub(crate) also: u32,
    pub(crate) lanes: u32,
    pub(crate) epoch: u32,
    pub(crate) pc: u32,
    /// Bytes of the word.
    pub(crate) bytes: u8,
    pub(crate) write: bool,
    pub(crate) strong: Option<Scope>,
    /// Bytes of an element of a strong access. Two strong accesses are atomic towards each other only if their sizes are equal.
    pub(crate) unit: u8,
    pub(crate) in_flight: bool,
    /// The row of asynchronous operations that it belongs to, with that row's epoch; 0 for other accesses.
    pub(crate) actor: u32,
    /// Whether an asynchronous operation uses the generic proxy, and needs no proxy fence.
    pub(crate) is_generic: bool,
    /// The memory that an asynchronous operation accesses, as proxy fences distinguish it.
    pub(crate) room: ProxySpace,
    /// Whether it operates on an `mbarrier`.
    pub(crate) is_barrier: bool,
    /// Whether it reads through the non-coherent cache.
    pub(crate) is_nc: bool,
}

/// The bit that marks a clock's entry for a row of asynchronous operations, not a warp.
pub(crate) const ACTOR: u32 = 1 << 31;

impl Access {
    pub(crate) fn new(w: &Warp, pc: u32, write: bool) -> Access {
        Access::at(w.clock.id, w.clock.own, pc, write)
    }

    /// One of a warp at an epoch.
    #[inline(always)]
    pub(crate) fn at(warp: u32, epoch: u32, pc: u32, write: bool) -> Access {
        Access {
            warp,
            also: 0,
            lanes: 0,
            epoch,
            pc,
            bytes: 0,
            write,
            strong: None,
            unit: 0,
            in_flight: false,
            actor: 0,
            is_generic: false,
            room: ProxySpace::Global,
            is_barrier: false,
            is_nc: false,
        }
    }

    /// The owners of its epoch: one or more warps, or a row of asynchronous operations.
    fn by(&self) -> impl Iterator<Item = u32> + use<> {
        let (row, base) = (self.actor | ACTOR, self.warp / 32 * 32);
        let mut left = if self.actor == 0 { self.also | 1 << (self.warp % 32) } else { 1 };
        let is_row = self.actor != 0;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(if is_row { row } else { base + bit })
        })
    }

    /// Whether it happened before accesses of a warp's lanes now. If not, returns the warp whose access is unordered.
    #[inline(always)]
    fn happened(&self, w: &WarpClock, mine: u32) -> Result<(), u32> {
        if self.actor != 0 || self.also == 0 {
            let by = if self.actor == 0 { self.warp } else { self.actor | ACTOR };
            return if w.knows(by, self.lanes, self.epoch, mine) { Ok(()) } else { Err(self.warp) };
        }
        self.by().find(|by| !w.knows(*by, self.lanes, self.epoch, mine)).map_or(Ok(()), Err)
    }

    /// Whether it happened before accesses of the whole warp now.
    pub(crate) fn is_known(&self, w: &WarpClock) -> bool {
        self.by().all(|by| by == w.id || w.knows(by, self.lanes, self.epoch, self.lanes))
    }

    /// The instructions by which a warp with these lessons knows of it.
    pub(crate) fn known_by<'l>(&self, lessons: &'l Lessons) -> impl Iterator<Item = u32> + use<'l> {
        let (all, epoch) = (self.by(), self.epoch);
        all.flat_map(move |by| lessons.that_order(by, epoch))
    }

    /// Whether an asynchronous operation is over, as a warp knows.
    pub(crate) fn is_over(&self, w: &WarpClock) -> bool {
        debug_assert!(self.actor != 0, "an access of a thread");
        self.happened(w, 0).is_ok()
    }

    /// Whether it is an asynchronous operation's access of a whole word: many words have had the same.
    pub(crate) fn is_wide(&self) -> bool {
        self.actor != 0 && self.bytes == 0xf && self.strong.is_none()
    }

    #[inline(always)]
    pub(crate) fn is_plain_read(&self) -> bool {
        !self.write && !self.in_flight && self.actor == 0 && self.strong.is_none()
    }

    /// Merges a read into this one, if only the warps differ.
    #[inline(always)]
    pub(crate) fn takes(&mut self, new: &Access) -> bool {
        let of_block = self.warp / 32 == new.warp / 32;
        if !of_block || (self.epoch, self.pc, self.bytes) != (new.epoch, new.pc, new.bytes) {
            return false;
        }
        if self.also == 0 && self.warp == new.warp {
            self.lanes |= new.lanes;
        } else if self.lanes == new.lanes {
            self.also |= 1 << (new.warp % 32) & !(1 << (self.warp % 32));
        } else {
            return false;
        }
        true
    }

    /// Removes a warp. Returns whether others are left.
    pub(crate) fn leave(&mut self, warp: u32) -> bool {
        if self.also == 0 {
            return self.warp != warp;
        }
        if self.warp == warp {
            let next = self.also.trailing_zeros();
            self.warp = self.warp / 32 * 32 + next;
            self.also &= self.also - 1;
        } else {
            self.also &= !(1 << (warp % 32));
        }
        true
    }

    pub(crate) fn is_of(&self, warp: u32) -> bool {
        self.warp == warp || self.warp / 32 == warp / 32 && self.also >> (warp % 32) & 1 != 0
    }
}

/// Why an access is wrong behind an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// They are unordered.
    Unordered,
    /// They are ordered, and only a proxy fence is missing.
    Unfenced,
    /// It reads memory that the kernel wrote through the non-coherent cache.
    Incoherent,
}

/// Whether two accesses are morally strong (PTX ISA, "Morally Strong Operations").
pub(crate) fn both_strong(w: &WarpClock, a: &Access, new: &Access) -> bool {
    match (a.strong, new.strong) {
        (Some(_), Some(_)) if a.unit != new.unit => false,
        (Some(x), Some(y)) => {
            let cluster = |id: u32| id / 32 / w.cluster;
            let both = x.min(y);
            a.warp / 32 == w.id / 32 || both >= Scope::Gpu || both == Scope::Cluster && cluster(a.warp) == cluster(w.id)
        }
        _ => false,
    }
}

/// Whether every access that conflicts with `a` also conflicts with `new`, so that the list can drop `a`.
pub(crate) fn stands_for(new: &Access, a: &Access) -> bool {
    match (new.strong, a.strong) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(x), Some(y)) => x <= y && new.unit == a.unit && new.warp / 32 == a.warp / 32,
    }
}

/// Whether `a` happened before `new`. If not, returns the warp whose access is unordered, and the flaw.
#[inline(always)]
pub(crate) fn ordered(w: &WarpClock, a: &Access, new: &Access) -> (Result<(), u32>, Flaw) {
    if a.actor != 0 {
        let before = a.happened(w, 0);
        let is_stale = new.is_nc && a.write && before.is_ok();
        return if is_stale { (Err(a.warp), Flaw::Incoherent) } else { (before, Flaw::Unordered) };
    }
    let mut before = if a.in_flight { Err(a.warp) } else { a.happened(w, new.lanes) };
    if new.is_nc && a.write && before.is_ok() {
        return (Err(a.warp), Flaw::Incoherent);
    }
    if before.is_err() && a.is_barrier && new.is_barrier && a.warp == w.id && w.have_met(a.lanes, a.epoch, new.lanes) {
        before = Ok(());
    }
    // Writes need a proxy fence before the asynchronous proxy sees them; reads do not.
    let by_proxy = new.actor != 0 && !new.is_generic;
    let unfenced = before.is_ok() && by_proxy && a.write && !w.is_fenced(a.warp, a.lanes, a.epoch, new.room);
    if unfenced { (Err(a.warp), Flaw::Unfenced) } else { (before, Flaw::Unordered) }
}
