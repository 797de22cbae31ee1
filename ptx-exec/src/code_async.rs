//! The compact form of instructions for the asynchronous proxy and for clusters.

use super::code::{AtomOp, Order, Scope};
use super::map_image::Field;
use super::types::{Space, Ty};

/// Tables of [`Draft`] that only entries for Hopper chips fill.
#[derive(Clone, Debug, Default)]
pub(super) struct AsyncTables {
    pub(super) mbarriers: Vec<MbarrierInfo>,
    pub(super) bulks: Vec<BulkInfo>,
    pub(super) wgmmas: Vec<WgmmaInfo>,
    pub(super) stores: Vec<StoreInfo>,
    pub(super) maps: Vec<MapInfo>,
    /// Whether each instruction reads (1) or writes (2) a register of a `wgmma`; empty in entries without `wgmma`.
    pub(super) touches: Vec<u8>,
}

/// Operations on an `mbarrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MbarrierOp {
    Init,
    Inval,
    /// Each lane arrives `b` times, or once. With `drop`, the expected count of later phases falls too.
    Arrive {
        drop: bool,
    },
    /// Lanes arrive once each, and `b` bytes are expected.
    ArriveExpect {
        drop: bool,
    },
    /// The lane arrives after all its earlier copies. A `counted` arrival is part of the count of `mbarrier.init`; another raises the
    /// count of pending arrivals first.
    ArriveCopies {
        counted: bool,
    },
    ExpectTx,
    CompleteTx,
    /// Tests whether a phase is over, by its parity or by the state that an arrival returned. With `tries` it may wait.
    Test {
        parity: bool,
        tries: bool,
    },
    /// Number of arrivals that were pending in a state.
    Pending,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MbarrierInfo {
    pub(super) op: MbarrierOp,
    pub(super) address64: bool,
    /// Whether the address is generic, and whether it may be another block's.
    pub(super) generic: bool,
    pub(super) cluster: bool,
    pub(super) offset: i64,
    pub(super) order: Order,
    pub(super) scope: Scope,
}

/// Source and destination of a bulk copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkWay {
    /// Global to shared memory, of the block or of another of its cluster.
    Load,
    /// Shared to global memory.
    Store,
    /// Shared memory of the block to shared memory of a peer in its cluster.
    Peer,
    /// Registers to shared memory of a block of the cluster.
    Registers,
    /// Global memory into the cache.
    Prefetch,
}

/// A bulk copy. `a` is the address in shared memory, `b` the global address or the tensor map, `c` the `mbarrier`. The list holds the
/// coordinates of a tensor copy or the bytes of a plain one, and then the mask of a multicast.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkInfo {
    pub(super) way: BulkWay,
    /// Modes of a tensor copy; 0 for plain bytes.
    pub(super) modes: u32,
    pub(super) red: Option<(AtomOp, Ty)>,
    pub(super) multicast: bool,
    /// Whether a bulk group completes it; otherwise an `mbarrier` does.
    pub(super) grouped: bool,
    /// Whether the addresses `a` and `c` in shared memory have 64 bits, and their offsets.
    pub(super) near64: [bool; 2],
    pub(super) near_offset: [i64; 2],
    pub(super) far_offset: i64,
}

/// An asynchronous store. `a` is the address, `c` the `mbarrier`; the list holds the elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreInfo {
    /// Bytes of an element.
    pub(super) bytes: u32,
    /// What `red.async` does with what is there.
    pub(super) red: Option<(AtomOp, Ty)>,
    /// As [`BulkInfo`] has them.
    pub(super) near64: [bool; 2],
    pub(super) near_offset: [i64; 2],
}

/// Operations on a tensor map in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapOp {
    Replace {
        field: Field,
        mode: u32,
        space: Space,
    },
    /// From shared to global memory, by a whole warp, and released.
    Copy(Scope),
    Release(Scope),
    Acquire(Scope),
    Prefetch,
}

/// `a` is the address of the map; `b` is the new value of a field, or the source of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapInfo {
    pub(super) op: MapOp,
    pub(super) address64: bool,
    pub(super) b64: bool,
    pub(super) offset: i64,
    pub(super) from_offset: i64,
}

impl MapInfo {
    pub(super) fn new(op: MapOp) -> MapInfo {
        MapInfo { op, address64: true, b64: false, offset: 0, from_offset: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WgmmaInfo {
    pub(super) n: u32,
    pub(super) k: u32,
    pub(super) d: Ty,
    pub(super) a: Ty,
    pub(super) b: Ty,
    /// Whether A and B lie with M or N contiguous.
    pub(super) a_mn: bool,
    pub(super) b_mn: bool,
    pub(super) negate_a: bool,
    pub(super) negate_b: bool,
    pub(super) saturate: bool,
    /// Registers of D, then of A; A has none where it is in shared memory.
    pub(super) d_registers: u32,
    pub(super) a_registers: u32,
}
