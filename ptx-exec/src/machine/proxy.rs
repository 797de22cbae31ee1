//! What the asynchronous proxy sees: writes of threads that a proxy fence followed, and barriers whose initialisation was published.

use super::known::{Known, Lanes};
use super::map_proxy::MapProxy;
use super::order::WarpClock;
use super::warp::Warp;
use crate::code::{PROXY_CLUSTER, PROXY_CTA, PROXY_GLOBAL};

/// A memory, as proxy fences tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Room {
    Global,
    /// A tensor map, which copies read by the tensormap proxy.
    Map,
    /// That of a block of the cluster.
    Shared(u8),
}

/// The accesses that a proxy fence stands behind, on every path that the clock has come by.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Proxy {
    /// By warp and memory: up to which epoch, of each lane.
    fenced: Known<(u32, Room), Lanes>,
    /// By warp: up to which epoch its initialisations of barriers are known.
    inits: Known<u32, u32>,
    pub(super) maps: MapProxy,
}

impl Proxy {
    pub(super) fn join(&mut self, other: &Proxy) {
        self.fenced.join(&other.fenced);
        self.inits.join(&other.inits);
        self.maps.join(&other.maps);
    }

    /// Whether both are one. Where they are not, they may say the same all the same.
    pub(super) fn is(&self, other: &Proxy) -> bool {
        self.fenced.is(&other.fenced) && self.inits.is(&other.inits) && self.maps.is_empty() && other.maps.is_empty()
    }

    /// What is published where nothing but initialisations is.
    pub(super) fn inits_alone(&self) -> Proxy {
        Proxy { inits: self.inits.clone(), ..Proxy::default() }
    }
}

impl WarpClock {
    /// Whether a proxy fence stands between what lanes of a warp did and now.
    pub(super) fn is_fenced(&self, warp: u32, lanes: u32, epoch: u32, room: Room) -> bool {
        let known = self.seen.proxy.fenced.get(&(warp, room));
        known.is_some_and(|of| match of {
            Lanes::All(known) => *known >= epoch,
            Lanes::Each(of) => of.iter().enumerate().all(|(l, known)| lanes >> l & 1 == 0 || *known >= epoch),
        })
    }

    /// Whether the initialisation of a barrier by a lane of a warp is visible now: it was published, or has happened before. Then the
    /// asynchronous proxy sees it too, without a fence of its own, as compilers rely on.
    pub(super) fn sees_init(&self, warp: u32, lane: u32, epoch: u32, mine: u32) -> bool {
        let published = self.seen.proxy.inits.get(&warp).is_some_and(|known| *known >= epoch);
        published || self.knows(warp, 1 << lane, epoch, mine)
    }
}

/// Lanes execute `fence.proxy.async`: what each of them knows of its state spaces, the asynchronous proxy sees.
pub(super) fn fence(w: &mut Warp, mask: u32, spaces: u32) {
    if !w.clock.on {
        return;
    }
    let own = w.clock.rank();
    if spaces & PROXY_GLOBAL != 0 {
        fence_of(&mut w.clock, mask, Room::Global);
    }
    let is_there = |rank: &u32| spaces & PROXY_CLUSTER != 0 || spaces & PROXY_CTA != 0 && *rank == own;
    for rank in (0..w.clock.cluster).filter(is_there) {
        fence_of(&mut w.clock, mask, Room::Shared(rank as u8));
    }
    w.clock.own += 1;
}

/// The same of one memory.
pub(super) fn fence_of(clock: &mut WarpClock, mask: u32, room: Room) {
    for (warp, epochs) in behind(clock, mask) {
        clock.seen.proxy.fenced.learn((warp, room), Lanes::new(epochs));
    }
}

/// What a fence of lanes stands behind: of each warp up to which epoch, of each lane.
pub(super) fn behind(clock: &WarpClock, mask: u32) -> Vec<(u32, [u32; 32])> {
    let others = clock.seen.all(clock.id / 32 * 32).filter(|(w, _)| *w != clock.id);
    let mut all: Vec<(u32, [u32; 32])> = others.map(|(warp, epoch)| (warp, [epoch; 32])).collect();
    let own = core::array::from_fn(|l| {
        let after = |m: usize| if m == l { clock.own } else { clock.after[m][l].max(clock.common) };
        (0..32).filter(|m| mask >> m & 1 != 0).map(after).max().unwrap_or(0)
    });
    all.push((clock.id, own));
    all
}

/// `fence.mbarrier_init`: initialisations so far are known to whoever meets this warp afterwards.
pub(super) fn publish_inits(w: &mut Warp) {
    if w.clock.on {
        let (id, own) = (w.clock.id, w.clock.own);
        w.clock.seen.proxy.inits.learn(id, own);
        w.clock.own += 1;
    }
}
