//! What the types of factors and of their scales are called, and who shares the work: values of settings.

use crate::dtype::DType;
use crate::plan::Groups;
use crate::recipe::field::as_displayed;
use crate::settings::named;

named! {
    /// The type in which A and B are multiplied.
    #[derive(Default)]
    Factors, "dtype":
    /// IEEE 754 binary16.
    #[default]
    F16 = "f16",
    /// bfloat16.
    Bf16 = "bf16",
    /// f32 in memory, rounded to 10 bits of fraction.
    Tf32 = "tf32",
    /// Floats of 8 bits, 3 of them fraction.
    E4m3 = "e4m3",
    /// Floats of 8 bits, 2 of them fraction.
    E5m2 = "e5m2",
    /// Integers of 8 bits, -128 to 127.
    I8 = "i8",
}

impl Factors {
    /// The type of A and B in memory.
    pub fn dtype(self) -> DType {
        match self {
            Factors::F16 => DType::F16,
            Factors::Bf16 => DType::Bf16,
            Factors::Tf32 => DType::F32,
            Factors::E4m3 => DType::E4m3,
            Factors::E5m2 => DType::E5m2,
            Factors::I8 => DType::I8,
        }
    }

    /// Whether they are floats of 8 bits.
    pub(super) fn is_narrow(self) -> bool {
        matches!(self, Factors::E4m3 | Factors::E5m2)
    }

    /// The type of their sums.
    pub(super) fn sums(self) -> DType {
        if self == Factors::I8 { DType::I32 } else { DType::F32 }
    }

    /// Whether tensor cores take them along K only.
    pub(super) fn lies_along_k(self) -> bool {
        matches!(self, Factors::Tf32 | Factors::I8) || self.is_narrow()
    }

    /// The type that D has unless it is told.
    pub(super) fn usual_out(self) -> DType {
        match self {
            Factors::E4m3 | Factors::E5m2 => DType::Bf16,
            Factors::I8 => self.sums(),
            _ => self.dtype(),
        }
    }

    /// Elements of 16 bytes.
    pub(super) fn vector(self) -> i64 {
        16 / self.dtype().bytes().0 as i64
    }

    /// The part of its name in CuTe's instructions.
    pub(super) fn in_atoms(self) -> &'static str {
        match self {
            Factors::F16 => "F16",
            Factors::Bf16 => "BF16",
            Factors::Tf32 => "TF32",
            Factors::E4m3 => "E4M3",
            Factors::E5m2 => "E5M2",
            Factors::I8 => "S8",
        }
    }

    /// The same of their sums.
    pub(super) fn sums_in_atoms(self) -> &'static str {
        if self.sums() == DType::I32 { "S32" } else { "F32" }
    }
}

named! {
    /// How warpgroups of sm_90a share the work.
    #[derive(Default)]
    Consumers, "schedule":
    /// All compute each tile together, 64 of its rows each at a time.
    #[default]
    Cooperative = "cooperative",
    /// Ping-pong: two warpgroups compute a tile each, and one multiplies while the other stores.
    Pingpong = "pingpong",
}

named! {
    /// The elements of a factor that share a scale: so many of its rows (columns of B), and of K.
    Block, "block":
    /// 128 elements along K.
    Row = "1x128",
    /// 128 x 128.
    Square = "128x128",
}

impl Block {
    /// Rows of A, or columns of B.
    pub fn rows(self) -> i64 {
        match self {
            Block::Row => 1,
            Block::Square => 128,
        }
    }
}

named! {
    /// The type of block scales.
    #[derive(Default)]
    ScaleType, "scale_type":
    /// IEEE 754 binary32.
    #[default]
    F32 = "f32",
    /// 2^(b - 127) for a byte b; 255 is NaN.
    Ue8m0 = "ue8m0",
}

impl ScaleType {
    /// The type of a scale in memory.
    pub fn dtype(self) -> DType {
        match self {
            ScaleType::F32 => DType::F32,
            ScaleType::Ue8m0 => DType::U8,
        }
    }
}

as_displayed!(Block, Consumers, Factors, Groups, ScaleType);
