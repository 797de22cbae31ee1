//! Changes of maps in memory that are visible to the tensormap proxy: a release follows the change, and the block then acquires it.
//!
//! Both have scopes, so they are kept by level, as in `release`. An acquire serves its own block only. CUDA C++ Programming Guide, "Using a
//! tensor map in global memory", requires one in each block before its first use.

use rustc_hash::FxHashMap;

use super::order::WarpClock;
use super::proxy::behind;
use super::release::{self, CLUSTER, CTA, DEVICE, level};
use super::word::Access;
use crate::Rule;
use crate::code::{Order, Scope};
use crate::machine::threads::warp::Warp;

/// By warp: up to which epoch, of each lane.
type Epochs = FxHashMap<u32, [u32; 32]>;

/// The changes followed by fences of the tensormap proxy, on every path of the clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapProxy {
    /// By level, the changes followed by a release of that level or a higher one.
    released: FxHashMap<usize, Epochs>,
    /// By block, address of the map and level: the released changes that an acquire of the map has found.
    acquired: FxHashMap<(u32, u64, usize), Epochs>,
}

fn join(of: &mut Epochs, other: &Epochs) {
    for (warp, epochs) in other {
        let known = of.entry(*warp).or_insert([0; 32]);
        known.iter_mut().zip(epochs).for_each(|(a, b)| *a = (*a).max(*b));
    }
}

fn covers(of: Option<&Epochs>, a: &Access) -> bool {
    let known = of.and_then(|of| of.get(&a.warp));
    known.is_some_and(|of| of.iter().enumerate().all(|(l, known)| a.lanes >> l & 1 == 0 || *known >= a.epoch))
}

impl MapProxy {
    pub(crate) fn is_empty(&self) -> bool {
        self.released.is_empty() && self.acquired.is_empty()
    }

    pub(crate) fn join(&mut self, other: &MapProxy) {
        for (level, epochs) in &other.released {
            join(self.released.entry(*level).or_default(), epochs);
        }
        for (key, epochs) in &other.acquired {
            join(self.acquired.entry(*key).or_default(), epochs);
        }
    }
}

/// The least level that orders a warp and a block.
fn needed(clock: &WarpClock, warp: u32) -> usize {
    let (block, other, size) = (clock.id / 32, warp / 32, clock.cluster.max(1));
    match () {
        () if block == other => CTA,
        () if block / size == other / size => CLUSTER,
        () => DEVICE,
    }
}

/// The rule that a use of the map at an address breaks after this change, which happened before.
pub(crate) fn broken(clock: &WarpClock, address: u64, a: &Access) -> Option<Rule> {
    let maps = &clock.seen.proxy.maps;
    let (block, needed) = (clock.id / 32, needed(clock, a.warp));
    let is_acquired = |level: usize| covers(maps.acquired.get(&(block, address, level)), a);
    let is_released = |level: usize| covers(maps.released.get(&level), a);
    Some(match () {
        () if is_acquired(needed) => return None,
        () if is_released(needed) && !(CTA..needed).any(is_acquired) => Rule::MapAcquire,
        () if is_released(CTA) => Rule::Scope,
        () => Rule::MapRelease,
    })
}

/// Whether the block has acquired the map at an address.
pub(crate) fn is_acquired(clock: &WarpClock, address: u64) -> bool {
    clock.seen.proxy.maps.acquired.contains_key(&(clock.id / 32, address, CTA))
}

/// Lanes release their knowledge of maps. This is also a fence of the generic proxy.
pub(crate) fn release(w: &mut Warp, mask: u32, scope: Scope, pc: u32) {
    if !w.clock.on {
        return;
    }
    let all: Epochs = behind(&w.clock, mask).into_iter().collect();
    for level in CTA..=level(scope) {
        join(w.clock.seen.proxy.maps.released.entry(level).or_default(), &all);
    }
    release::fence(w, Order::Release, scope, pc);
}

/// A lane acquires the map at an address.
pub(crate) fn acquire(w: &mut Warp, address: u64, scope: Scope, pc: u32) {
    if !w.clock.on {
        return;
    }
    release::fence(w, Order::Acquire, scope, pc);
    let block = w.clock.id / 32;
    let maps = &mut w.clock.seen.proxy.maps;
    for level in CTA..=level(scope) {
        let found = maps.released.get(&level).cloned().unwrap_or_default();
        join(maps.acquired.entry((block, address, level)).or_default(), &found);
    }
}
