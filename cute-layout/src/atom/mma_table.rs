//! The table of MMA atoms. Each row is facts about one instruction, with where they are written down.

use super::mma::ValueType::{self, *};

/// One atom with fixed extents.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) shape: [i64; 3],
    /// D, A, B, C.
    pub(super) types: [ValueType; 4],
    pub(super) thr_id: &'static str,
    pub(super) a: &'static str,
    pub(super) b: &'static str,
    pub(super) c: &'static str,
    /// CUTLASS header, PTX ISA section.
    pub(super) source: (&'static str, &'static str),
}

/// The WGMMA atoms of one type, for every N.
pub(super) struct Family {
    /// D, A, B.
    pub(super) types: [ValueType; 3],
    pub(super) k: i64,
    /// The layout of A in registers; `None` where A is in shared memory.
    pub(super) registers_a: Option<&'static str>,
    /// The end of the name, after the types.
    pub(super) suffix: &'static str,
    pub(super) source: (&'static str, &'static str),
}

impl Family {
    /// Every N that CuTe's headers have without being asked (`cute/arch/mma_sm90_gmma.hpp`).
    pub(super) const USUAL_N: [i64; 8] = [8, 16, 32, 64, 96, 128, 192, 256];

    /// The name with one N.
    pub(super) fn name(&self, n: i64) -> String {
        let [d, a, b] = self.types;
        format!("SM90_64x{n}x{}_{d}{a}{b}{}", self.k, self.suffix)
    }

    /// N, where `name` is one of this family and the instruction has that N.
    pub(super) fn extent_n(&self, name: &str) -> Option<i64> {
        let n = name.strip_prefix("SM90_64x")?.split('x').next()?.parse().ok()?;
        (self.has_n(n) && self.name(n) == name).then_some(n)
    }

    /// Multiples of 8 up to 256; of 16 for integers beyond 32, and 24 (PTX ISA, "wgmma.mma_async", matrix shapes).
    fn has_n(&self, n: i64) -> bool {
        let integer = self.types[0] == S32;
        (8..=256).contains(&n) && n % 8 == 0 && (!integer || n <= 24 || n % 16 == 0)
    }
}

const SM70: (&str, &str) = ("cute/atom/mma_traits_sm70.hpp", "Matrix Fragments for mma.m8n8k4 with .f16");
const SM75: (&str, &str) = ("cute/atom/mma_traits_sm75.hpp", "Matrix Fragments for mma.m16n8k8");
const SM75_S8: (&str, &str) = ("cute/atom/mma_traits_sm75.hpp", "Matrix Fragments for mma.m8n8k16");
const SM80_K4: (&str, &str) = ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m16n8k4");
const SM80_K8: (&str, &str) = ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m16n8k8");
const SM80_K16: (&str, &str) =
    ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m16n8k16 with floating point type");
const SM80_F64: (&str, &str) = ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m8n8k4 with .f64");
const SM80_S8: (&str, &str) = ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m8n8k16");
const SM80_S8_K16: (&str, &str) =
    ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m16n8k16 with integer type");
const SM80_S8_K32: (&str, &str) = ("cute/atom/mma_traits_sm80.hpp", "Matrix Fragments for mma.m16n8k32");
const SM89: (&str, &str) = ("cute/atom/mma_traits_sm89.hpp", "Matrix Fragments for mma.m16n8k32");
const SM90_F64_K4: (&str, &str) = ("cute/atom/mma_traits_sm90.hpp", "Matrix Fragments for mma.m16n8k4");
const SM90_F64_K8: (&str, &str) = ("cute/atom/mma_traits_sm90.hpp", "Matrix Fragments for mma.m16n8k8");
const SM90_F64_K16: (&str, &str) =
    ("cute/atom/mma_traits_sm90.hpp", "Matrix Fragments for mma.m16n8k16 with floating point type");
const GMMA: (&str, &str) = (
    "cute/atom/mma_traits_sm90_gmma.hpp",
    "Register Fragments and Shared Memory Matrix Layouts of wgmma.mma_async.m64nNk",
);
const FMA: (&str, &str) = ("cute/atom/mma_traits.hpp", "");

// Volta: (T8,V4) of an 8 x 4 tile, its rows or its columns in each thread; (T8,V8) of the 8 x 8 accumulator.
const QUADPAIR: &str = "(4,2):(1,16)";
const ROW_8X4: &str = "(8,4):(1,8)";
const COL_8X4: &str = "((4,2),4):((8,4),1)";
const C_8X8_16B: &str = "(8,8):(1,8)";
const C_8X8_32B: &str = "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))";
// Turing and later: rows of four threads, two neighbouring elements in each.
const WARP: &str = "32:1";
const T_8X4: &str = "((4,8),1):((8,1),0)";
const T_8X8: &str = "((4,8),2):((16,1),8)";
const T_8X16: &str = "((4,8),4):((32,1),8)";
const T_16X8: &str = "((4,8),(2,2)):((32,1),(16,8))";
const A_16X16: &str = "((4,8),(2,2,2)):((32,1),(16,8,128))";
const B_8X16: &str = "((4,8),(2,2)):((16,1),(8,64))";
// One value of 32 or 64 bits in each register, so no neighbouring pairs.
const A_16X8_WIDE: &str = "((4,8),(2,2)):((16,1),(8,64))";
const A_16X16_S8: &str = "((4,8),(4,2)):((64,1),(16,8))";
const A_16X32_S8: &str = "((4,8),(4,2,2)):((64,1),(16,8,256))";
const B_8X32_S8: &str = "((4,8),(4,2)):((32,1),(8,128))";
const A_16X4: &str = "((4,8),2):((16,1),8)";
const A_16X16_WIDE: &str = "((4,8),(2,4)):((16,1),(8,64))";
const B_8X8_WIDE: &str = "((4,8),2):((8,1),32)";
const B_8X16_WIDE: &str = "((4,8),4):((8,1),32)";
const ONE: &str = "(1,1):(0,0)";

/// Thread modes and their strides of the 64 x N accumulator, to be completed with N / 8.
pub(super) const GMMA_C: (&str, &str) = ("(4,8,4)", "(128,1,16),(64,8,512)");
const GMMA_A_16B: &str = "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))";
const GMMA_A_8B: &str = "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))";
const GMMA_A_32B: &str = "((4,8,4),(2,2)):((64,1,16),(8,256))";

const fn row(
    name: &'static str,
    shape: [i64; 3],
    types: [ValueType; 4],
    layouts: [&'static str; 4],
    source: (&'static str, &'static str),
) -> Row {
    let [thr_id, a, b, c] = layouts;
    Row { name, shape, types, thr_id, a, b, c, source }
}

const V: [i64; 3] = [8, 8, 4];
const H: [ValueType; 4] = [F16, F16, F16, F16];
const SH: [ValueType; 4] = [F32, F16, F16, F32];
const SB: [ValueType; 4] = [F32, BF16, BF16, F32];
const ST: [ValueType; 4] = [F32, TF32, TF32, F32];
const D: [ValueType; 4] = [F64, F64, F64, F64];
const I: [ValueType; 4] = [S32, S8, S8, S32];
const U: [ValueType; 4] = [S32, U8, U8, S32];
const E4: [ValueType; 4] = [F32, E4M3, E4M3, F32];
const E45: [ValueType; 4] = [F32, E4M3, E5M2, F32];
const E54: [ValueType; 4] = [F32, E5M2, E4M3, F32];
const E5: [ValueType; 4] = [F32, E5M2, E5M2, F32];
const K8: [&str; 4] = [WARP, T_16X8, T_8X8, T_16X8];
const K16: [&str; 4] = [WARP, A_16X16, B_8X16, T_16X8];
const K32: [&str; 4] = [WARP, A_16X32_S8, B_8X32_S8, T_16X8];

pub(super) const ROWS: &[Row] = &[
    row("UniversalFMA<half_t>", [1, 1, 1], H, ["1:0", ONE, ONE, ONE], FMA),
    row("UniversalFMA<float>", [1, 1, 1], [F32; 4], ["1:0", ONE, ONE, ONE], FMA),
    row("UniversalFMA<double>", [1, 1, 1], D, ["1:0", ONE, ONE, ONE], FMA),
    row("SM70_8x8x4_F16F16F16F16_TN", V, H, [QUADPAIR, ROW_8X4, ROW_8X4, C_8X8_16B], SM70),
    row("SM70_8x8x4_F16F16F16F16_NT", V, H, [QUADPAIR, COL_8X4, COL_8X4, C_8X8_16B], SM70),
    row("SM70_8x8x4_F16F16F16F16_NN", V, H, [QUADPAIR, COL_8X4, ROW_8X4, C_8X8_16B], SM70),
    row("SM70_8x8x4_F16F16F16F16_TT", V, H, [QUADPAIR, ROW_8X4, COL_8X4, C_8X8_16B], SM70),
    row("SM70_8x8x4_F32F16F16F32_TN", V, SH, [QUADPAIR, ROW_8X4, ROW_8X4, C_8X8_32B], SM70),
    row("SM70_8x8x4_F32F16F16F32_NT", V, SH, [QUADPAIR, COL_8X4, COL_8X4, C_8X8_32B], SM70),
    row("SM70_8x8x4_F32F16F16F32_NN", V, SH, [QUADPAIR, COL_8X4, ROW_8X4, C_8X8_32B], SM70),
    row("SM70_8x8x4_F32F16F16F32_TT", V, SH, [QUADPAIR, ROW_8X4, COL_8X4, C_8X8_32B], SM70),
    row("SM75_16x8x8_F32F16F16F32_TN", [16, 8, 8], SH, K8, SM75),
    row("SM75_8x8x16_S32S8S8S32_TN", [8, 8, 16], I, [WARP, T_8X16, T_8X16, T_8X8], SM75_S8),
    row("SM80_16x8x8_F16F16F16F16_TN", [16, 8, 8], H, K8, SM80_K8),
    row("SM80_16x8x16_F16F16F16F16_TN", [16, 8, 16], H, K16, SM80_K16),
    row("SM80_16x8x8_F32F16F16F32_TN", [16, 8, 8], SH, K8, SM80_K8),
    row("SM80_16x8x16_F32F16F16F32_TN", [16, 8, 16], SH, K16, SM80_K16),
    row("SM80_16x8x8_F32BF16BF16F32_TN", [16, 8, 8], SB, K8, SM80_K8),
    row("SM80_16x8x16_F32BF16BF16F32_TN", [16, 8, 16], SB, K16, SM80_K16),
    row("SM80_16x8x4_F32TF32TF32F32_TN", [16, 8, 4], ST, [WARP, A_16X4, T_8X4, T_16X8], SM80_K4),
    row("SM80_16x8x8_F32TF32TF32F32_TN", [16, 8, 8], ST, [WARP, A_16X8_WIDE, B_8X8_WIDE, T_16X8], SM80_K8),
    row("SM80_8x8x4_F64F64F64F64_TN", V, D, [WARP, T_8X4, T_8X4, T_8X8], SM80_F64),
    row("SM80_8x8x16_S32S8S8S32_TN", [8, 8, 16], I, [WARP, T_8X16, T_8X16, T_8X8], SM80_S8),
    row("SM80_16x8x16_S32S8S8S32_TN", [16, 8, 16], I, [WARP, A_16X16_S8, T_8X16, T_16X8], SM80_S8_K16),
    row("SM80_16x8x32_S32S8S8S32_TN", [16, 8, 32], I, K32, SM80_S8_K32),
    row("SM80_16x8x16_S32U8U8S32_TN", [16, 8, 16], U, [WARP, A_16X16_S8, T_8X16, T_16X8], SM80_S8_K16),
    row("SM80_16x8x32_S32U8U8S32_TN", [16, 8, 32], U, K32, SM80_S8_K32),
    row("SM89_16x8x32_F32E4M3E4M3F32_TN", [16, 8, 32], E4, K32, SM89),
    row("SM89_16x8x32_F32E4M3E5M2F32_TN", [16, 8, 32], E45, K32, SM89),
    row("SM89_16x8x32_F32E5M2E4M3F32_TN", [16, 8, 32], E54, K32, SM89),
    row("SM89_16x8x32_F32E5M2E5M2F32_TN", [16, 8, 32], E5, K32, SM89),
    row("SM90_16x8x4_F64F64F64F64_TN", [16, 8, 4], D, [WARP, A_16X4, T_8X4, T_16X8], SM90_F64_K4),
    row("SM90_16x8x8_F64F64F64F64_TN", [16, 8, 8], D, [WARP, A_16X8_WIDE, B_8X8_WIDE, T_16X8], SM90_F64_K8),
    row("SM90_16x8x16_F64F64F64F64_TN", [16, 8, 16], D, [WARP, A_16X16_WIDE, B_8X16_WIDE, T_16X8], SM90_F64_K16),
];

const fn family(types: [ValueType; 3], k: i64, registers_a: Option<&'static str>, suffix: &'static str) -> Family {
    Family { types, k, registers_a, suffix, source: GMMA }
}

pub(super) const FAMILIES: &[Family] = &[
    family([F16, F16, F16], 16, None, "_SS"),
    family([F16, F16, F16], 16, Some(GMMA_A_16B), "_RS"),
    family([F32, F16, F16], 16, None, "_SS"),
    family([F32, F16, F16], 16, Some(GMMA_A_16B), "_RS"),
    family([F32, BF16, BF16], 16, None, "_SS"),
    family([F32, BF16, BF16], 16, Some(GMMA_A_16B), "_RS"),
    family([F32, TF32, TF32], 8, None, "_SS_TN"),
    family([F32, TF32, TF32], 8, Some(GMMA_A_32B), "_RS_TN"),
    family([S32, S8, S8], 32, None, "_SS_TN"),
    family([S32, S8, S8], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([S32, U8, U8], 32, None, "_SS_TN"),
    family([S32, U8, U8], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([F16, E4M3, E4M3], 32, None, "_SS_TN"),
    family([F16, E4M3, E4M3], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([F32, E4M3, E4M3], 32, None, "_SS_TN"),
    family([F32, E4M3, E4M3], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([F16, E5M2, E5M2], 32, None, "_SS_TN"),
    family([F16, E5M2, E5M2], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([F32, E5M2, E5M2], 32, None, "_SS_TN"),
    family([F32, E5M2, E5M2], 32, Some(GMMA_A_8B), "_RS_TN"),
    family([F32, E4M3, E5M2], 32, None, "_SS_TN"),
    family([F32, E5M2, E4M3], 32, None, "_SS_TN"),
];
