//! The entries of the tables of a [`Draft`](super::code::Draft): what an instruction's `x` refers to.

use super::code::Class;
use super::num::LaneFn;
use super::types::{Space, Ty};
use super::vector_loop::VectorLoop;

/// An enum whose variants are words of PTX.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant:meta])* $word:literal => $case:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum $name { $($(#[$variant])* $case,)* }

        impl $name {
            pub(super) fn parse(word: &str) -> Option<$name> {
                Some(match word { $($word => $name::$case,)* _ => return None })
            }
        }
    };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LaneInfo {
    pub(super) f: LaneFn,
    pub(super) ctl: u32,
    pub(super) d: Class,
    pub(super) a: Class,
    pub(super) b: Class,
    pub(super) c: Class,
    /// Bits of the destination register.
    pub(super) bits: u32,
    /// How many of the operands only move bits: applied to undefined bits, the function says where they go.
    pub(super) moves: u8,
    /// The same as a loop over the lanes, where there is one.
    pub(super) row: Option<VectorLoop>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SetpInfo {
    pub(super) f: LaneFn,
    pub(super) ctl: u32,
    pub(super) wide: bool,
    /// Number of the comparison.
    pub(super) cmp: u32,
    /// None, and, or, xor with the predicate in `c`.
    pub(super) combine: Option<Combine>,
    pub(super) negate_c: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    And,
    Or,
    Xor,
}

/// Memory ordering of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

impl Order {
    pub(super) fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::Sc)
    }
    pub(super) fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::Sc)
    }
}

/// State spaces of a proxy fence.
pub(super) const PROXY_GLOBAL: u32 = 1;
/// Shared memory of the block.
pub(super) const PROXY_CTA: u32 = 2;
/// Shared memory of all blocks of the cluster.
pub(super) const PROXY_CLUSTER: u32 = 4;

words! {
    /// How far an ordering reaches.
    Scope {
        "cta" => Cta,
        "cluster" => Cluster,
        "gpu" => Gpu,
        "sys" => Sys,
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MemInfo {
    pub(super) space: Space,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(super) bytes: u32,
    pub(super) elements: u32,
    /// Whether narrow values are sign-extended into their register.
    pub(super) signed: bool,
    /// Whether the registers have 64 bits.
    pub(super) wide: bool,
    /// Bits of the register that a load writes.
    pub(super) bits: u32,
    /// Whether the address has 64 bits.
    pub(super) address64: bool,
    pub(super) offset: i64,
    pub(super) order: Order,
    pub(super) scope: Scope,
    /// Whether it reads past what keeps caches coherent.
    pub(super) nc: bool,
}

impl MemInfo {
    /// A weak access of so many bytes as a whole, by registers of 32 bits.
    pub(super) fn weak(space: Space, bytes: u32, address64: bool, offset: i64) -> MemInfo {
        MemInfo {
            space,
            bytes,
            elements: 1,
            signed: false,
            wide: false,
            bits: 32,
            address64,
            offset,
            order: Order::Weak,
            scope: Scope::Cta,
            nc: false,
        }
    }
}

/// An order and a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct FenceInfo {
    pub(super) order: Order,
    pub(super) scope: Scope,
}

impl FenceInfo {
    /// The bits of an instruction that say it.
    pub(super) fn bits(self) -> u32 {
        self.scope as u32 | u32::from(self.order.acquires()) << 2 | u32::from(self.order.releases()) << 3
    }

    pub(super) fn of(bits: u32) -> FenceInfo {
        let scope = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys][(bits & 3) as usize];
        let order = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel][(bits >> 2 & 3) as usize];
        FenceInfo { order, scope }
    }
}

words! {
    /// What an atomic or a reduction does.
    AtomOp {
        "and" => And,
        "or" => Or,
        "xor" => Xor,
        "cas" => Cas,
        "exch" => Exch,
        "add" => Add,
        "inc" => Inc,
        "dec" => Dec,
        "min" => Min,
        "max" => Max,
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AtomInfo {
    pub(super) mem: MemInfo,
    pub(super) op: AtomOp,
    pub(super) ty: Ty,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CopyInfo {
    pub(super) bytes: u32,
    /// Offsets of the destination and of the source.
    pub(super) to: i64,
    pub(super) from: i64,
    pub(super) to64: bool,
    /// Whether the source operand is generic-sized; always true today.
    pub(super) ignore_src: bool,
}

words! {
    ShflMode {
        "up" => Up,
        "down" => Down,
        "bfly" => Bfly,
        "idx" => Idx,
    }
}

words! {
    VoteMode {
        "all" => All,
        "any" => Any,
        "uni" => Uni,
        "ballot" => Ballot,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedMode {
    Popc,
    And,
    Or,
    Sync,
}

/// A barrier of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarInfo {
    pub(super) aligned: bool,
    pub(super) red: RedMode,
    pub(super) negate: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixInfo {
    /// Matrices: 1, 2 or 4.
    pub(super) count: u32,
    pub(super) transposed: bool,
    pub(super) mem: MemInfo,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MmaInfo {
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) k: u32,
    pub(super) d: Ty,
    pub(super) a: Ty,
    pub(super) b: Ty,
    pub(super) c: Ty,
    pub(super) a_column: bool,
    pub(super) b_column: bool,
    pub(super) saturate: bool,
    /// `.xor.popc` and `.and.popc` of 1-bit products.
    pub(super) is_and: bool,
    /// How sums of f64 are rounded.
    pub(super) round: u32,
}
