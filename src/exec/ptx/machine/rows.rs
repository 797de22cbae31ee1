//! The lane functions that kernels use most, as loops over the lanes of a warp. What they compute is said in `num`.

use super::run;
use super::tensor::{half, to_half};
use super::vector::{Rows, map1, map2, map3};
use crate::exec::ptx::code::Inst;
use crate::exec::ptx::row::Row;

/// # Safety
/// The operands are those of the warp, of the classes that the row has.
pub(super) unsafe fn run(row: Row, r: Rows, inst: &Inst, mask: u32) {
    #[cfg(target_arch = "x86_64")]
    if run::is_x86_64_v3() {
        // SAFETY: the processor has the features, as was just asked; the caller says the rest.
        return unsafe { run_v3(row, r, inst, mask) };
    }
    // SAFETY: the caller says so.
    unsafe { loops(row, r, inst, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn run_v3(row: Row, r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe { loops(row, r, inst, mask) }
}

#[inline(always)]
fn low(v: u32) -> u32 {
    v & 0xffff
}

/// The NaN of conversions to f32.
#[inline(always)]
fn number(v: f32) -> u32 {
    if v.is_nan() { 0x7fff_ffff } else { v.to_bits() }
}

/// The bf16 next to an f32, ties to even.
#[inline(always)]
fn to_brain(v: f32) -> u32 {
    let bits = v.to_bits();
    if v.is_nan() { 0x7fff } else { (bits + 0x7fff + (bits >> 16 & 1)) >> 16 }
}

/// Two results in one register.
#[inline(always)]
fn halves(a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    f(low(a), low(b)) | f(a >> 16, b >> 16) << 16
}

/// Of halves: 24 bits are enough that rounding twice is rounding once.
#[inline(always)]
fn sum(a: u32, b: u32) -> u32 {
    to_half(half(a) + half(b))
}

#[inline(always)]
fn difference(a: u32, b: u32) -> u32 {
    to_half(half(a) - half(b))
}

#[inline(always)]
fn product(a: u32, b: u32) -> u32 {
    to_half(half(a) * half(b))
}

/// The smaller or the larger: NaN loses, and -0 is less than 0.
#[inline(always)]
fn choose(a: u32, b: u32, larger: bool) -> u32 {
    let key = |v: u32| (v ^ ((v as i32 >> 31) as u32 >> 1)) as i32;
    let is_nan = |v: u32| v & 0x7fff_ffff > 0x7f80_0000;
    let first = if (key(a) < key(b)) == larger { b } else { a };
    let number = if is_nan(a) { b } else { first };
    let number = if is_nan(b) { a } else { number };
    if is_nan(number) { 0x7fff_ffff } else { number }
}

#[inline(always)]
fn permuted(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(a) | u64::from(b) << 32;
    let byte = |i: u32| {
        let nibble = selector >> (4 * i) & 0xf;
        let value = (bytes >> (8 * (nibble & 7))) as u32 & 0xff;
        let sign = (value >> 7) * 0xff;
        if nibble & 8 != 0 { sign } else { value }
    };
    byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
}

#[inline(always)]
fn inserted(a: u64, b: u64, at: u64) -> u64 {
    let (position, length) = (at as u32, (at >> 32) as u32);
    let length = length.min(64 - position.min(63));
    let ones = if length > 63 { u64::MAX } else { (1 << (length & 63)) - 1 };
    let mask = if position > 63 { 0 } else { ones << (position & 63) };
    b & !mask | (a << (position & 63)) & mask
}

/// # Safety
/// The operands are those of the warp, of the classes that the row has.
#[inline(always)]
unsafe fn loops(row: Row, r: Rows, inst: &Inst, mask: u32) {
    macro_rules! p1 {
        ($a:ty => $d:ty, $f:expr) => {
            // SAFETY: the caller says so.
            unsafe { map1::<$a, $d>(r.lanes(inst.d), r.lanes(inst.a), mask, $f) }
        };
    }
    macro_rules! p2 {
        ($t:ty, $f:expr) => {
            // SAFETY: the caller says so.
            unsafe { map2::<$t, $t, $t>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), mask, $f) }
        };
    }
    macro_rules! p3 {
        ($t:ty, $f:expr) => {
            // SAFETY: the caller says so.
            unsafe {
                map3::<$t, $t, $t, $t>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), r.lanes(inst.c), mask, $f)
            }
        };
    }
    match row {
        Row::Low16 => p1!(u32 => u32, low),
        Row::Low16Of64 => p1!(u64 => u32, |v| low(v as u32)),
        Row::Low16To64 => p1!(u32 => u64, |v| u64::from(low(v))),
        Row::Sign16 => p1!(u32 => u32, |v| v as i16 as i32 as u32),
        Row::Join16 => p1!(u64 => u32, |v| low(v as u32) | (v >> 16) as u32 & 0xffff_0000),
        Row::Bfi64 => p3!(u64, inserted),
        Row::Prmt => p3!(u32, permuted),
        Row::MulWideU16 => p2!(u32, |x, y| low(x) * low(y)),
        Row::HalfToF32 => p1!(u32 => u32, |v| number(half(v))),
        Row::BrainToF32 => p1!(u32 => u32, |v| v << 16),
        Row::F32ToHalf => p1!(f32 => u32, to_half),
        Row::F32ToBrain => p1!(f32 => u32, to_brain),
        Row::PairHalf => p2!(u32, |x, y| to_half(f32::from_bits(y)) | to_half(f32::from_bits(x)) << 16),
        Row::PairBrain => p2!(u32, |x, y| to_brain(f32::from_bits(y)) | to_brain(f32::from_bits(x)) << 16),
        Row::S32ToF32 => p1!(i32 => f32, |v| v as f32),
        Row::U32ToF32 => p1!(u32 => f32, |v| v as f32),
        Row::F32ToS32 => p1!(f32 => i32, |v| v as i32),
        Row::F32ToU32 => p1!(f32 => u32, |v| v as u32),
        Row::MinF32 => p2!(u32, |x, y| choose(x, y, false)),
        Row::MaxF32 => p2!(u32, |x, y| choose(x, y, true)),
        Row::NegF32 => p1!(u32 => u32, |v| number(f32::from_bits(v ^ 0x8000_0000))),
        Row::AbsF32 => p1!(u32 => u32, |v| number(f32::from_bits(v & 0x7fff_ffff))),
        Row::AddHalf => p2!(u32, |x, y| sum(low(x), low(y))),
        Row::SubHalf => p2!(u32, |x, y| difference(low(x), low(y))),
        Row::MulHalf => p2!(u32, |x, y| product(low(x), low(y))),
        Row::AddHalves => p2!(u32, |x, y| halves(x, y, sum)),
        Row::SubHalves => p2!(u32, |x, y| halves(x, y, difference)),
        Row::MulHalves => p2!(u32, |x, y| halves(x, y, product)),
    }
}
