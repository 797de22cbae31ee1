//! The scalar types and the state spaces of PTX.

/// A fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "PTX's own names")]
pub enum Ty {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    U16x2,
    S16x2,
    U8x4,
    S8x4,
    U4,
    S4,
    B1,
    F32x2,
    Ue8m0x2,
    Pred,
}

impl Ty {
    pub(super) fn parse(word: &str) -> Option<Ty> {
        use Ty::*;
        Some(match word {
            "b8" => B8,
            "b16" => B16,
            "b32" => B32,
            "b64" => B64,
            "b128" => B128,
            "u8" => U8,
            "u16" => U16,
            "u32" => U32,
            "u64" => U64,
            "s8" => S8,
            "s16" => S16,
            "s32" => S32,
            "s64" => S64,
            "f16" => F16,
            "f16x2" => F16x2,
            "bf16" => Bf16,
            "bf16x2" => Bf16x2,
            "tf32" => Tf32,
            "f32" => F32,
            "f64" => F64,
            "e4m3" => E4m3,
            "e5m2" => E5m2,
            "e4m3x2" => E4m3x2,
            "e5m2x2" => E5m2x2,
            "u16x2" => U16x2,
            "s16x2" => S16x2,
            "u8x4" => U8x4,
            "s8x4" => S8x4,
            "u4" => U4,
            "s4" => S4,
            "b1" => B1,
            "f32x2" => F32x2,
            "ue8m0x2" => Ue8m0x2,
            "pred" => Pred,
            _ => return None,
        })
    }

    /// Bytes of an element in memory; types smaller than a byte have 1.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Bits of a value.
    pub fn bits(self) -> u32 {
        use Ty::*;
        match self {
            B1 | Pred => 1,
            U4 | S4 => 4,
            B8 | U8 | S8 | E4m3 | E5m2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | Ue8m0x2 => 16,
            B32 | U32 | S32 | F32 | F16x2 | Bf16x2 | Tf32 | U16x2 | S16x2 | U8x4 | S8x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
        }
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    pub(super) fn is_float(self) -> bool {
        use Ty::*;
        matches!(self, F16 | F16x2 | Bf16 | Bf16x2 | Tf32 | F32 | F64 | F32x2)
    }
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "PTX's own names")]
pub enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
    /// Shared memory of a block of the cluster.
    SharedCluster,
}

impl Space {
    pub(super) fn parse(word: &str) -> Option<Space> {
        Some(match word {
            "global" => Space::Global,
            "shared" | "shared::cta" => Space::Shared,
            "shared::cluster" => Space::SharedCluster,
            "local" => Space::Local,
            "const" => Space::Const,
            "param" | "param::entry" | "param::func" => Space::Param,
            _ => return None,
        })
    }

    /// Its name in PTX.
    pub fn as_str(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
            Space::SharedCluster => "shared::cluster",
        }
    }
}
