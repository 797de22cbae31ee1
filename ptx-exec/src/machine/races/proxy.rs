//! Writes that are visible to the asynchronous proxy: writes followed by a proxy fence, and published initialisations of `mbarrier`s.

use super::known::{Known, LaneEpochs};
use super::map_proxy::MapProxy;
use super::order::WarpClock;
use crate::code::{PROXY_CLUSTER, PROXY_CTA, PROXY_GLOBAL};
use crate::machine::threads::warp::Warp;

/// A memory, as proxy fences distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProxySpace {
    Global,
    /// A tensor map, which copies read by the tensormap proxy.
    Map,
    /// Shared memory of a block of the cluster.
    Shared(u8),
}

/// The accesses followed by a proxy fence, on every path of the clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxy {
    /// By warp and memory: up to which epoch, of each lane.
    fenced: Known<(u32, ProxySpace), LaneEpochs>,
    /// By warp: up to which epoch its initialisations of barriers are known.
    inits: Known<u32, u32>,
    pub(crate) maps: MapProxy,
}

impl Proxy {
    pub(crate) fn join(&mut self, other: &Proxy) {
        self.fenced.join(&other.fenced);
        self.inits.join(&other.inits);
        self.maps.join(&other.maps);
    }

    /// Whether both share their maps. Different maps may still be equal.
    pub(crate) fn is(&self, other: &Proxy) -> bool {
        self.fenced.is(&other.fenced) && self.inits.is(&other.inits) && self.maps.is_empty() && other.maps.is_empty()
    }

    /// Publishes only the initialisations of barriers.
    pub(crate) fn inits_alone(&self) -> Proxy {
        Proxy { inits: self.inits.clone(), ..Proxy::default() }
    }
}

impl WarpClock {
    /// Whether a proxy fence comes between accesses of a warp's lanes and now.
    pub(crate) fn is_fenced(&self, warp: u32, lanes: u32, epoch: u32, room: ProxySpace) -> bool {
        let known = self.seen.proxy.fenced.get(&(warp, room));
        known.is_some_and(|of| match of {
            LaneEpochs::All(known) => *known >= epoch,
            LaneEpochs::Each(of) => of.iter().enumerate().all(|(l, known)| lanes >> l & 1 == 0 || *known >= epoch),
        })
    }

    /// Whether the initialisation of an `mbarrier` by a lane is visible now: it is published, or happened before. The asynchronous proxy
    /// then sees it too, without a proxy fence; compilers rely on that.
    pub(crate) fn sees_init(&self, warp: u32, lane: u32, epoch: u32, mine: u32) -> bool {
        let published = self.seen.proxy.inits.get(&warp).is_some_and(|known| *known >= epoch);
        published || self.knows(warp, 1 << lane, epoch, mine)
    }
}

/// LaneEpochs execute `fence.proxy.async`: the asynchronous proxy sees the accesses that each lane knows, in the fence's state spaces.
pub(crate) fn fence(w: &mut Warp, mask: u32, spaces: u32) {
    if !w.clock.on {
        return;
    }
    let own = w.clock.rank();
    if spaces & PROXY_GLOBAL != 0 {
        fence_of(&mut w.clock, mask, ProxySpace::Global);
    }
    let is_there = |rank: &u32| spaces & PROXY_CLUSTER != 0 || spaces & PROXY_CTA != 0 && *rank == own;
    for rank in (0..w.clock.cluster).filter(is_there) {
        fence_of(&mut w.clock, mask, ProxySpace::Shared(rank as u8));
    }
    w.clock.own += 1;
}

/// The same of one memory.
pub(crate) fn fence_of(clock: &mut WarpClock, mask: u32, room: ProxySpace) {
    for (warp, epochs) in behind(clock, mask) {
        clock.seen.proxy.fenced.learn((warp, room), LaneEpochs::new(epochs));
    }
}

/// The accesses before a fence of lanes: the last epoch of each lane of each warp.
pub(crate) fn behind(clock: &WarpClock, mask: u32) -> Vec<(u32, [u32; 32])> {
    let others = clock.seen.all(clock.id / 32 * 32).filter(|(w, _)| *w != clock.id);
    let mut all: Vec<(u32, [u32; 32])> = others.map(|(warp, epoch)| (warp, [epoch; 32])).collect();
    let own = core::array::from_fn(|l| {
        let after = |m: usize| if m == l { clock.own } else { clock.after[m][l].max(clock.common) };
        (0..32).filter(|m| mask >> m & 1 != 0).map(after).max().unwrap_or(0)
    });
    all.push((clock.id, own));
    all
}

/// `fence.mbarrier_init`: warps that later synchronise with this warp know the initialisations so far.
pub(crate) fn publish_inits(w: &mut Warp) {
    if w.clock.on {
        let (id, own) = (w.clock.id, w.clock.own);
        w.clock.seen.proxy.inits.learn(id, own);
        w.clock.own += 1;
    }
}
