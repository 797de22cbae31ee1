//! Lane functions with a vector loop.

use super::code::Class;

/// The loops: see `machine::vectors::rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VectorLoop {
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

impl VectorLoop {
    /// The loop of an instruction with one lane function.
    pub(super) fn of(opcode: &str) -> Option<VectorLoop> {
        Some(match opcode {
            "cvt.u32.u16" | "cvt.s32.u16" | "cvt.u16.u32" | "cvt.s16.s32" | "cvt.u16.s32" => VectorLoop::Low16,
            "cvt.u16.u64" => VectorLoop::Low16Of64,
            "cvt.u64.u16" => VectorLoop::Low16To64,
            "cvt.s32.s16" => VectorLoop::Sign16,
            "bfi.b64" => VectorLoop::Bfi64,
            "bfi.b32" => VectorLoop::Bfi32,
            "div.s32" => VectorLoop::DivS32,
            "rem.s32" => VectorLoop::RemS32,
            "div.u32" => VectorLoop::DivU32,
            "rem.u32" => VectorLoop::RemU32,
            "prmt.b32" => VectorLoop::Prmt,
            "mul.wide.u16" => VectorLoop::MulWideU16,
            "cvt.f32.f16" => VectorLoop::HalfToF32,
            "cvt.f32.bf16" => VectorLoop::BrainToF32,
            "cvt.rn.f16.f32" => VectorLoop::F32ToHalf,
            "cvt.rn.bf16.f32" => VectorLoop::F32ToBrain,
            "cvt.rn.f16x2.f32" => VectorLoop::PairHalf,
            "cvt.rn.bf16x2.f32" => VectorLoop::PairBrain,
            "cvt.rn.f32.s32" => VectorLoop::S32ToF32,
            "cvt.rn.f32.u32" => VectorLoop::U32ToF32,
            "cvt.rzi.s32.f32" => VectorLoop::F32ToS32,
            "cvt.rzi.u32.f32" => VectorLoop::F32ToU32,
            "min.f32" => VectorLoop::MinF32,
            "max.f32" => VectorLoop::MaxF32,
            "neg.f32" => VectorLoop::NegF32,
            "abs.f32" => VectorLoop::AbsF32,
            "copysign.f32" => VectorLoop::CopySignF32,
            "ex2.approx.f32" => VectorLoop::Ex2F32,
            "ex2.approx.ftz.f32" => VectorLoop::Ex2FtzF32,
            "add.f16" | "add.rn.f16" => VectorLoop::AddHalf,
            "sub.f16" | "sub.rn.f16" => VectorLoop::SubHalf,
            "mul.f16" | "mul.rn.f16" => VectorLoop::MulHalf,
            "add.f16x2" | "add.rn.f16x2" => VectorLoop::AddHalves,
            "sub.f16x2" | "sub.rn.f16x2" => VectorLoop::SubHalves,
            "mul.f16x2" | "mul.rn.f16x2" => VectorLoop::MulHalves,
            _ => return None,
        })
    }

    /// The classes of its destination and of its operands.
    pub(super) fn classes(self) -> (Class, &'static [Class]) {
        use Class::{W32, W64};
        match self {
            VectorLoop::Low16Of64 | VectorLoop::Join16 => (W32, &[W64]),
            VectorLoop::Low16To64 => (W64, &[W32]),
            VectorLoop::Bfi64 => (W64, &[W64; 3]),
            VectorLoop::Bfi32 => (W32, &[W32, W32, W64]),
            VectorLoop::Prmt => (W32, &[W32; 3]),
            VectorLoop::DivS32 | VectorLoop::RemS32 | VectorLoop::DivU32 | VectorLoop::RemU32 => (W32, &[W32; 2]),
            VectorLoop::MulWideU16
            | VectorLoop::PairHalf
            | VectorLoop::PairBrain
            | VectorLoop::MinF32
            | VectorLoop::MaxF32
            | VectorLoop::CopySignF32 => (W32, &[W32; 2]),
            VectorLoop::AddHalf | VectorLoop::SubHalf | VectorLoop::MulHalf => (W32, &[W32; 2]),
            VectorLoop::AddHalves | VectorLoop::SubHalves | VectorLoop::MulHalves => (W32, &[W32; 2]),
            _ => (W32, &[W32]),
        }
    }
}
