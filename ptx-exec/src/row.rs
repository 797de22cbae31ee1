//! Lane functions with a vector loop.

use super::code::Class;

/// The loops: see `machine::rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Low16,
    Low16Of64,
    Low16To64,
    Sign16,
    Join16,
    Bfi64,
    Bfi32,
    Prmt,
    DivS32,
    RemS32,
    DivU32,
    RemU32,
    MulWideU16,
    HalfToF32,
    BrainToF32,
    F32ToHalf,
    F32ToBrain,
    PairHalf,
    PairBrain,
    S32ToF32,
    U32ToF32,
    F32ToS32,
    F32ToU32,
    MinF32,
    MaxF32,
    NegF32,
    AbsF32,
    CopySignF32,
    Ex2F32,
    Ex2FtzF32,
    AddHalf,
    SubHalf,
    MulHalf,
    AddHalves,
    SubHalves,
    MulHalves,
}

impl Row {
    /// The loop of an instruction with one lane function.
    pub(super) fn of(opcode: &str) -> Option<Row> {
        Some(match opcode {
            "cvt.u32.u16" | "cvt.s32.u16" | "cvt.u16.u32" | "cvt.s16.s32" | "cvt.u16.s32" => Row::Low16,
            "cvt.u16.u64" => Row::Low16Of64,
            "cvt.u64.u16" => Row::Low16To64,
            "cvt.s32.s16" => Row::Sign16,
            "bfi.b64" => Row::Bfi64,
            "bfi.b32" => Row::Bfi32,
            "div.s32" => Row::DivS32,
            "rem.s32" => Row::RemS32,
            "div.u32" => Row::DivU32,
            "rem.u32" => Row::RemU32,
            "prmt.b32" => Row::Prmt,
            "mul.wide.u16" => Row::MulWideU16,
            "cvt.f32.f16" => Row::HalfToF32,
            "cvt.f32.bf16" => Row::BrainToF32,
            "cvt.rn.f16.f32" => Row::F32ToHalf,
            "cvt.rn.bf16.f32" => Row::F32ToBrain,
            "cvt.rn.f16x2.f32" => Row::PairHalf,
            "cvt.rn.bf16x2.f32" => Row::PairBrain,
            "cvt.rn.f32.s32" => Row::S32ToF32,
            "cvt.rn.f32.u32" => Row::U32ToF32,
            "cvt.rzi.s32.f32" => Row::F32ToS32,
            "cvt.rzi.u32.f32" => Row::F32ToU32,
            "min.f32" => Row::MinF32,
            "max.f32" => Row::MaxF32,
            "neg.f32" => Row::NegF32,
            "abs.f32" => Row::AbsF32,
            "copysign.f32" => Row::CopySignF32,
            "ex2.approx.f32" => Row::Ex2F32,
            "ex2.approx.ftz.f32" => Row::Ex2FtzF32,
            "add.f16" | "add.rn.f16" => Row::AddHalf,
            "sub.f16" | "sub.rn.f16" => Row::SubHalf,
            "mul.f16" | "mul.rn.f16" => Row::MulHalf,
            "add.f16x2" | "add.rn.f16x2" => Row::AddHalves,
            "sub.f16x2" | "sub.rn.f16x2" => Row::SubHalves,
            "mul.f16x2" | "mul.rn.f16x2" => Row::MulHalves,
            _ => return None,
        })
    }

    /// The classes of its destination and of its operands.
    pub(super) fn classes(self) -> (Class, &'static [Class]) {
        use Class::{W32, W64};
        match self {
            Row::Low16Of64 | Row::Join16 => (W32, &[W64]),
            Row::Low16To64 => (W64, &[W32]),
            Row::Bfi64 => (W64, &[W64; 3]),
            Row::Bfi32 => (W32, &[W32, W32, W64]),
            Row::Prmt => (W32, &[W32; 3]),
            Row::DivS32 | Row::RemS32 | Row::DivU32 | Row::RemU32 => (W32, &[W32; 2]),
            Row::MulWideU16 | Row::PairHalf | Row::PairBrain | Row::MinF32 | Row::MaxF32 | Row::CopySignF32 => {
                (W32, &[W32; 2])
            }
            Row::AddHalf | Row::SubHalf | Row::MulHalf => (W32, &[W32; 2]),
            Row::AddHalves | Row::SubHalves | Row::MulHalves => (W32, &[W32; 2]),
            _ => (W32, &[W32]),
        }
    }
}
