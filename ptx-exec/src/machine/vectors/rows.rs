//! Vector loops for the most frequent lane functions. `num` defines their results.

use super::vector::{PART, Rows, map1, map2, map3, parts};
use crate::code::Inst;
use crate::machine::products::tensor_formats::{half, to_half};
#[cfg(target_arch = "x86_64")]
use crate::machine::products::tensor_v3;
use crate::vector_loop::VectorLoop;

/// # Safety
/// The operands are those of the warp, of the classes that the row has; with `V3` the processor has AVX2.
#[inline(always)]
pub(crate) unsafe fn run<const V3: bool>(row: VectorLoop, r: Rows, inst: &Inst, mask: u32) {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        // SAFETY: the caller says so.
        return unsafe { run_v3(row, r, inst, mask) };
    }
    // SAFETY: the caller says so.
    unsafe { run_plain(row, r, inst, mask) }
}

/// Not inlined: copies in each instruction loop would make compilation half as long again.
#[inline(never)]
unsafe fn run_plain(row: VectorLoop, r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe { loops::<false>(row, r, inst, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn run_v3(row: VectorLoop, r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe { loops::<true>(row, r, inst, mask) }
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

/// A part of the lanes.
type Part<T> = [T; PART];

/// Each as f16, ties to even.
///
/// # Safety
/// With `V3` the processor has conversions of f16.
#[inline(always)]
unsafe fn narrowed<const V3: bool>(v: Part<f32>) -> Part<u32> {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        // SAFETY: the caller says so.
        return unsafe { tensor_v3::to_halves(v) };
    }
    v.map(to_half)
}

/// Applies `f` to the f16 at a bit of each word. It computes in f32: 24 bits are enough for a second rounding to be exact.
///
/// # Safety
/// As for [`narrowed`].
#[inline(always)]
unsafe fn of_halves<const V3: bool>(a: &Part<u32>, b: &Part<u32>, at: u32, f: impl Fn(f32, f32) -> f32) -> Part<u32> {
    let mut out = [0.0; PART];
    for (l, out) in out.iter_mut().enumerate() {
        *out = f(half(low(a[l] >> at)), half(low(b[l] >> at)));
    }
    // SAFETY: the caller says so.
    unsafe { narrowed::<V3>(out) }
}

/// Two halves in one register.
#[inline(always)]
fn joined(lower: Part<u32>, mut upper: Part<u32>) -> Part<u32> {
    for (upper, lower) in upper.iter_mut().zip(lower) {
        *upper = *upper << 16 | lower;
    }
    upper
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

#[inline(always)]
fn inserted32(a: u32, b: u32, at: u64) -> u32 {
    let (position, length) = (at as u32 & 0xff, (at >> 32) as u32 & 0xff);
    let length = length.min(32 - position.min(31));
    let ones = if length > 31 { u32::MAX } else { (1 << (length & 31)) - 1 };
    let mask = if position > 31 { 0 } else { ones << (position & 31) };
    b & !mask | (a << (position & 31)) & mask
}

/// Divides in f64, which is exact enough for 32 bits and vectorises. A divisor of zero gives all ones.
#[inline(always)]
fn quotient(x: u32, y: u32) -> u32 {
    // Whole numbers stand in the lowest bits of sums with this.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    let whole = |v: u32| f64::from_bits(u64::from(v) | WHOLE.to_bits()) - WHOLE;
    let q = (whole(x) / whole(y)).trunc() + WHOLE;
    if y == 0 { u32::MAX } else { q.to_bits() as u32 }
}

#[inline(always)]
fn quotient_signed(x: u32, y: u32) -> u32 {
    let sign = |v: u32| (v as i32 >> 31) as u32;
    let size = |v: u32| (v ^ sign(v)).wrapping_sub(sign(v));
    let negative = sign(x) ^ sign(y);
    let q = (quotient(size(x), size(y)) ^ negative).wrapping_sub(negative);
    if y == 0 { u32::MAX } else { q }
}

#[inline(always)]
fn remainder(x: u32, y: u32, quotient: u32) -> u32 {
    if y == 0 { u32::MAX } else { x.wrapping_sub(quotient.wrapping_mul(y)) }
}

/// 2^v to nearest, except within 2^-29 of the middle between two f32. It is a whole power times a series for the fraction.
#[inline(always)]
fn power<const V3: bool>(v: f32, flush: bool) -> u32 {
    // Whole numbers stand in the lowest bits of sums with this.
    const WHOLE: f64 = 1.5 * (1_u64 << 52) as f64;
    /// ln(2)^n / n!
    const SERIES: [f64; 13] = {
        let mut all = [1.0; 13];
        let mut n = 1;
        while n < 13 {
            all[n] = all[n - 1] * core::f64::consts::LN_2 / n as f64;
            n += 1;
        }
        all
    };
    let x = f64::from(v).clamp(-200.0, 200.0);
    let whole = x + WHOLE;
    let rest = x - (whole - WHOLE);
    let next = |sum: f64, factor: &f64| if V3 { sum.mul_add(rest, *factor) } else { sum * rest + factor };
    let sum = SERIES.iter().rev().fold(0.0, next);
    let scale = f64::from_bits(whole.to_bits().wrapping_add(1023) << 52);
    let bits = ((sum * scale) as f32).to_bits();
    let bits = if flush && bits < 0x0080_0000 { 0 } else { bits };
    if v.is_nan() { 0x7fff_ffff } else { bits }
}

/// # Safety
/// The operands are those of the warp, of the classes that the row has; with `V3` the processor has AVX2.
#[inline(always)]
unsafe fn loops<const V3: bool>(row: VectorLoop, r: Rows, inst: &Inst, mask: u32) {
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
    macro_rules! halves {
        (|$a:ident, $b:ident: $t:ty| $part:expr) => {
            // SAFETY: the caller says so; a part of the lanes begins at each place.
            unsafe {
                let (a, b) = (r.lanes::<$t>(inst.a), r.lanes::<$t>(inst.b));
                parts!(r.lanes::<u32>(inst.d), mask, first => {
                    let ($a, $b) = (*a.add(first).cast::<Part<$t>>(), *b.add(first).cast::<Part<$t>>());
                    $part
                });
            }
        };
    }
    match row {
        VectorLoop::Low16 => p1!(u32 => u32, low),
        VectorLoop::Low16Of64 => p1!(u64 => u32, |v| low(v as u32)),
        VectorLoop::Low16To64 => p1!(u32 => u64, |v| u64::from(low(v))),
        VectorLoop::Sign16 => p1!(u32 => u32, |v| v as i16 as i32 as u32),
        VectorLoop::Join16 => p1!(u64 => u32, |v| low(v as u32) | (v >> 16) as u32 & 0xffff_0000),
        VectorLoop::Bfi64 => p3!(u64, inserted),
        VectorLoop::Bfi32 => {
            // SAFETY: the caller says so.
            unsafe {
                map3::<u32, u32, u64, u32>(
                    r.lanes(inst.d),
                    r.lanes(inst.a),
                    r.lanes(inst.b),
                    r.lanes(inst.c),
                    mask,
                    inserted32,
                );
            }
        }
        VectorLoop::Prmt => p3!(u32, permuted),
        VectorLoop::DivS32 => p2!(u32, quotient_signed),
        VectorLoop::RemS32 => p2!(u32, |x, y| remainder(x, y, quotient_signed(x, y))),
        VectorLoop::DivU32 => p2!(u32, quotient),
        VectorLoop::RemU32 => p2!(u32, |x, y| remainder(x, y, quotient(x, y))),
        VectorLoop::MulWideU16 => p2!(u32, |x, y| low(x) * low(y)),
        VectorLoop::HalfToF32 => p1!(u32 => u32, |v| number(half(v))),
        VectorLoop::BrainToF32 => p1!(u32 => u32, |v| v << 16),
        // SAFETY: as above.
        VectorLoop::F32ToHalf => unsafe {
            let a = r.lanes::<f32>(inst.a);
            parts!(r.lanes::<u32>(inst.d), mask, first => narrowed::<V3>(*a.add(first).cast::<Part<f32>>()));
        },
        VectorLoop::F32ToBrain => p1!(f32 => u32, to_brain),
        VectorLoop::PairHalf => halves!(|x, y: f32| joined(narrowed::<V3>(y), narrowed::<V3>(x))),
        VectorLoop::PairBrain => p2!(u32, |x, y| to_brain(f32::from_bits(y)) | to_brain(f32::from_bits(x)) << 16),
        VectorLoop::S32ToF32 => p1!(i32 => f32, |v| v as f32),
        VectorLoop::U32ToF32 => p1!(u32 => f32, |v| v as f32),
        VectorLoop::F32ToS32 => p1!(f32 => i32, |v| v as i32),
        VectorLoop::F32ToU32 => p1!(f32 => u32, |v| v as u32),
        VectorLoop::MinF32 => p2!(u32, |x, y| choose(x, y, false)),
        VectorLoop::MaxF32 => p2!(u32, |x, y| choose(x, y, true)),
        VectorLoop::NegF32 => p1!(u32 => u32, |v| number(f32::from_bits(v ^ 0x8000_0000))),
        VectorLoop::AbsF32 => p1!(u32 => u32, |v| number(f32::from_bits(v & 0x7fff_ffff))),
        VectorLoop::CopySignF32 => p2!(u32, |x, y| y & 0x7fff_ffff | x & 0x8000_0000),
        VectorLoop::Ex2F32 => p1!(f32 => u32, |v| power::<V3>(v, false)),
        VectorLoop::Ex2FtzF32 => p1!(f32 => u32, |v| power::<V3>(v, true)),
        VectorLoop::AddHalf => halves!(|x, y: u32| of_halves::<V3>(&x, &y, 0, |x, y| x + y)),
        VectorLoop::SubHalf => halves!(|x, y: u32| of_halves::<V3>(&x, &y, 0, |x, y| x - y)),
        VectorLoop::MulHalf => halves!(|x, y: u32| of_halves::<V3>(&x, &y, 0, |x, y| x * y)),
        VectorLoop::AddHalves => halves!(|x, y: u32| {
            joined(of_halves::<V3>(&x, &y, 0, |x, y| x + y), of_halves::<V3>(&x, &y, 16, |x, y| x + y))
        }),
        VectorLoop::SubHalves => halves!(|x, y: u32| {
            joined(of_halves::<V3>(&x, &y, 0, |x, y| x - y), of_halves::<V3>(&x, &y, 16, |x, y| x - y))
        }),
        VectorLoop::MulHalves => halves!(|x, y: u32| {
            joined(of_halves::<V3>(&x, &y, 0, |x, y| x * y), of_halves::<V3>(&x, &y, 16, |x, y| x * y))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::vector::{Row as Lanes, Rows};
    use super::{loops, run};
    use crate::Module;
    use crate::code::{Inst, NONE, Op};
    use crate::machine::Random;
    use crate::machine::threads::lanes::{read, write};
    use crate::machine::threads::run::is_x86_64_v3;

    /// Opcodes, each with its operands.
    const TEXTS: [&str; 51] = [
        "div.s32 %w0, %w1, %w2",
        "rem.s32 %w0, %w1, %w2",
        "div.u32 %w0, %w1, %w2",
        "rem.u32 %w0, %w1, %w2",
        "bfi.b32 %w0, %w1, %w2, %w3, %w4",
        "bfi.b32 %w0, %w1, %w2, 0, 32",
        "bfi.b32 %w0, %w1, %w2, 5, 0",
        "copysign.f32 %w0, %w1, %w2",
        "ex2.approx.f32 %w0, %w1",
        "ex2.approx.ftz.f32 %w0, %w1",
        "cvt.u32.u16 %w0, %h1",
        "cvt.s32.u16 %w0, %h1",
        "cvt.u16.u32 %h0, %w1",
        "cvt.s16.s32 %h0, %w1",
        "cvt.u16.s32 %h0, %w1",
        "cvt.u16.u64 %h0, %d1",
        "cvt.u64.u16 %d0, %h1",
        "cvt.s32.s16 %w0, %h1",
        "bfi.b64 %d0, %d1, %d2, %w3, %w4",
        "bfi.b64 %d0, %d1, %d2, 0, 64",
        "bfi.b64 %d0, %d1, %d2, 5, 0",
        "prmt.b32 %w0, %w1, %w2, %w3",
        "mul.wide.u16 %w0, %h1, %h2",
        "mov.b32 %w0, {%h1, %h2}",
        "mov.b32 {%h0, %h1}, %w1",
        "mov.b64 {%h0, %h1, %h2, %h3}, %d1",
        "cvt.f32.f16 %w0, %h1",
        "cvt.f32.bf16 %w0, %h1",
        "cvt.rn.f16.f32 %h0, %w1",
        "cvt.rn.bf16.f32 %h0, %w1",
        "cvt.rn.f16x2.f32 %w0, %w1, %w2",
        "cvt.rn.bf16x2.f32 %w0, %w1, %w2",
        "cvt.rn.f32.s32 %w0, %w1",
        "cvt.rn.f32.u32 %w0, %w1",
        "cvt.rzi.s32.f32 %w0, %w1",
        "cvt.rzi.u32.f32 %w0, %w1",
        "min.f32 %w0, %w1, %w2",
        "max.f32 %w0, %w1, %w2",
        "neg.f32 %w0, %w1",
        "abs.f32 %w0, %w1",
        "add.f16 %h0, %h1, %h2",
        "sub.f16 %h0, %h1, %h2",
        "mul.f16 %h0, %h1, %h2",
        "add.rn.f16 %h0, %h1, %h2",
        "sub.rn.f16 %h0, %h1, %h2",
        "mul.rn.f16 %h0, %h1, %h2",
        "add.f16x2 %w0, %w1, %w2",
        "sub.f16x2 %w0, %w1, %w2",
        "mul.f16x2 %w0, %w1, %w2",
        "mul.rn.f16x2 %w0, %w1, %w2",
        "sub.rn.f16x2 %w0, %w1, %w2",
    ];

    /// Numbers around the edges of floats of 16 and of 32 bits, and of bit fields.
    fn operand(random: &mut Random) -> u64 {
        const EDGES: [u64; 24] = [
            0,
            1,
            31,
            32,
            63,
            64,
            0x3ff,
            0x400,
            0x7bff,
            0x7c00,
            0x7e00,
            0x8000,
            0xfc01,
            0xffff,
            0x0080_0000,
            0x3300_0000,
            0x3380_0001,
            0x477f_efff,
            0x477f_f000,
            0x7f7f_8000,
            0x7f80_0000,
            0x7fc0_0001,
            0x8000_0000,
            0xff80_0000,
        ];
        let r = random.next();
        match r % 4 {
            0 => EDGES[random.below(EDGES.len())],
            1 => EDGES[random.below(EDGES.len())] | EDGES[random.below(EDGES.len())] << 16,
            2 => random.next() >> ((r >> 8) % 64),
            _ => random.next(),
        }
    }

    #[test]
    fn loops_compute_what_their_lane_functions_do() {
        let mut random = Random(1);
        for text in TEXTS {
            let whole = format!(
                ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{{\n.reg .b16 %h<5>;\n.reg .b32 %w<5>;\n\
                 .reg .b64 %d<5>;\n{text};\nret;\n}}\n"
            );
            let module = Module::parse(whole).expect("PTX");
            let code = module.code("k").unwrap_or_else(|e| panic!("{text}: {e}"));
            let with_row = |i: &&Inst| i.op == Op::Lane && code.lanes[i.x as usize].row.is_some();
            let found: Vec<&Inst> = code.insts.iter().filter(with_row).collect();
            assert!(!found.is_empty(), "{text} is no loop");
            for inst in found {
                let info = &code.lanes[inst.x as usize];
                for round in 0..400 {
                    let mut rows = vec![Lanes([0; 32]); 8];
                    let at = |operand: u32, place: u32| if operand == NONE { NONE } else { place };
                    let inst = Inst { d: 0, a: 2, b: at(inst.b, 4), c: at(inst.c, 6), ..*inst };
                    let mask = if round % 4 == 0 { random.next() as u32 | 1 } else { u32::MAX };
                    let r = Rows::new(&mut rows);
                    let keep = if info.bits >= 64 { u64::MAX } else { (1 << info.bits) - 1 };
                    // SAFETY: eight rows are enough for four operands of 64 bits.
                    let (found, expected) = unsafe {
                        let none = core::ptr::null_mut();
                        for (class, place) in [(info.a, inst.a), (info.b, inst.b), (info.c, inst.c)] {
                            let lanes = core::array::from_fn(|_| operand(&mut random));
                            if place != NONE {
                                write(r, none, class, place, &lanes, u32::MAX);
                            }
                        }
                        let of = |class, place| read(r, none, class, place);
                        let (a, b, c) = (of(info.a, inst.a), of(info.b, inst.b), of(info.c, inst.c));
                        let of_lane = |l: usize| (info.f)(a[l], b[l], c[l], info.ctl) & keep;
                        let lane = |l: usize| if mask >> l & 1 != 0 { of_lane(l) } else { 0 };
                        let row = info.row.expect("a loop");
                        if round % 2 == 0 && is_x86_64_v3() {
                            run::<true>(row, r, &inst, mask)
                        } else {
                            loops::<false>(row, r, &inst, mask)
                        }
                        (of(info.d, inst.d), core::array::from_fn::<u64, 32, _>(lane))
                    };
                    assert_eq!(found, expected, "{text}");
                }
            }
        }
    }
}
