//! Integer arithmetic of one lane.

use super::{OWN, RELU, SAT};

macro_rules! integers {
    ($($name:ident $signed:ident $unsigned:ident $t:ident $wide:ident $bits:literal),*) => {$(
        #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one text for all types")]
        pub(in super::super) mod $name {
            use super::*;
            type T = core::primitive::$t;
            type U = core::primitive::$unsigned;
            type W = core::primitive::$wide;
            fn out(v: T) -> u64 { v as U as u64 }
            pub(in super::super::super) fn add(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
                out(if ctl & SAT != 0 { (a as T).saturating_add(b as T) } else { (a as T).wrapping_add(b as T) })
            }
            pub(in super::super::super) fn sub(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
                out(if ctl & SAT != 0 { (a as T).saturating_sub(b as T) } else { (a as T).wrapping_sub(b as T) })
            }
            pub(in super::super::super) fn mul(a: u64, b: u64, _: u64, _: u32) -> u64 { out((a as T).wrapping_mul(b as T)) }
            pub(in super::super::super) fn mul_hi(a: u64, b: u64, _: u64, _: u32) -> u64 {
                out(((a as T as W * b as T as W) >> $bits) as T)
            }
            pub(in super::super::super) fn mul_wide(a: u64, b: u64, _: u64, _: u32) -> u64 {
                (a as T as W * b as T as W) as u64
            }
            pub(in super::super::super) fn mad(a: u64, b: u64, c: u64, _: u32) -> u64 {
                out((a as T).wrapping_mul(b as T).wrapping_add(c as T))
            }
            pub(in super::super::super) fn mad_hi(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
                let high = mul_hi(a, b, 0, 0) as T;
                out(if ctl & SAT != 0 { high.saturating_add(c as T) } else { high.wrapping_add(c as T) })
            }
            pub(in super::super::super) fn mad_wide(a: u64, b: u64, c: u64, _: u32) -> u64 {
                ((a as T as W * b as T as W) as u64).wrapping_add(c)
            }
            /// A divisor of zero gives all ones, as the GPU does.
            pub(in super::super::super) fn div(a: u64, b: u64, _: u64, _: u32) -> u64 {
                out(if b as T == 0 { !0 } else { (a as T).wrapping_div(b as T) })
            }
            pub(in super::super::super) fn rem(a: u64, b: u64, _: u64, _: u32) -> u64 {
                out(if b as T == 0 { !0 } else { (a as T).wrapping_rem(b as T) })
            }
            pub(in super::super::super) fn min(a: u64, b: u64, _: u64, ctl: u32) -> u64 { relu((a as T).min(b as T), ctl) }
            pub(in super::super::super) fn max(a: u64, b: u64, _: u64, ctl: u32) -> u64 { relu((a as T).max(b as T), ctl) }
            #[allow(unused_comparisons, clippy::absurd_extreme_comparisons, reason = "one text for all types")]
            fn relu(v: T, ctl: u32) -> u64 { if ctl & RELU != 0 && v < 0 { 0 } else { out(v) } }
            pub(in super::super::super) fn shr(a: u64, b: u64, _: u64, _: u32) -> u64 {
                let (a, b) = (a as T, b as u32);
                out(if b < $bits { a >> b } else if T::MIN == 0 { 0 } else { a >> ($bits - 1) })
            }
            pub(in super::super::super) fn shl(a: u64, b: u64, _: u64, _: u32) -> u64 {
                if (b as u32) < $bits { out((a as T) << (b as u32)) } else { 0 }
            }
            pub(in super::super::super) fn abs(a: u64, _: u64, _: u64, _: u32) -> u64 {
                (a as core::primitive::$signed).wrapping_abs() as U as u64
            }
            pub(in super::super::super) fn neg(a: u64, _: u64, _: u64, _: u32) -> u64 { out((0 as T).wrapping_sub(a as T)) }
            /// Comparisons by number: eq ne lt le gt ge.
            pub(in super::super::super) fn set(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
                let (a, b) = (a as T, b as T);
                u64::from(match ctl >> OWN { 0 => a == b, 1 => a != b, 2 => a < b, 3 => a <= b, 4 => a > b, _ => a >= b })
            }
            /// |a - b| + c
            pub(in super::super::super) fn sad(a: u64, b: u64, c: u64, _: u32) -> u64 {
                let (a, b) = (a as T, b as T);
                let d = if a > b { a.wrapping_sub(b) } else { b.wrapping_sub(a) };
                out(d.wrapping_add(c as T))
            }
            pub(in super::super::super) fn popc(a: u64, _: u64, _: u64, _: u32) -> u64 { (a as U).count_ones() as u64 }
            pub(in super::super::super) fn clz(a: u64, _: u64, _: u64, _: u32) -> u64 { (a as U).leading_zeros() as u64 }
            pub(in super::super::super) fn brev(a: u64, _: u64, _: u64, _: u32) -> u64 { (a as U).reverse_bits() as u64 }
            /// `bfind`: the highest bit that is not the sign; with `1 << OWN` as a shift amount.
            pub(in super::super::super) fn bfind(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
                #[allow(unused_comparisons, clippy::absurd_extreme_comparisons, reason = "one text for all types")]
                let v = if (a as T) < 0 { !(a as U) } else { a as U };
                let found = if v == 0 { u32::MAX } else { $bits - 1 - v.leading_zeros() };
                u64::from(if found != u32::MAX && ctl >> OWN & 1 != 0 { $bits - 1 - found } else { found })
            }
            pub(in super::super::super) fn bfe(a: u64, b: u64, c: u64, _: u32) -> u64 {
                // The GPU takes 8 bits of either for 32-bit fields, and all for 64-bit ones.
                let (position, length) = if $bits == 64 {
                    ((b as u32).min(255), (c as u32).min(255))
                } else {
                    (b as u32 & 0xff, c as u32 & 0xff)
                };
                #[allow(unused_comparisons, clippy::absurd_extreme_comparisons, reason = "one text for all types")]
                let negative = length > 0 && T::MIN != 0 && {
                    let sign_bit = (position + length - 1).min($bits - 1);
                    (a as U) >> sign_bit & 1 != 0
                };
                let field = if position < $bits { (a as U) >> position } else { 0 };
                let kept = ($bits - position.min($bits)).min(length);
                let mask = if kept >= $bits { !0 } else { ((1 as U) << kept) - 1 };
                let fill = if negative { !mask } else { 0 };
                (field & mask | fill) as u64
            }
        }
    )*};
}
integers!(
    s16 i16 u16 i16 i64 16, u16 i16 u16 u16 u64 16,
    s32 i32 u32 i32 i64 32, u32 i32 u32 u32 u64 32,
    s64 i64 u64 i64 i128 64, u64 i64 u64 u64 u128 64
);

fn mask(ctl: u32) -> u64 {
    match ctl >> OWN {
        1 => 1,
        16 => 0xffff,
        32 => 0xffff_ffff,
        _ => u64::MAX,
    }
}

pub(in super::super) fn and(a: u64, b: u64, _: u64, _: u32) -> u64 {
    a & b
}
/// `ctl >> OWN` is the width.
pub(in super::super) fn not(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    !a & mask(ctl)
}
pub(in super::super) fn cnot(a: u64, _: u64, _: u64, _: u32) -> u64 {
    u64::from(a == 0)
}
/// A move; the width of the destination cuts it.
pub(in super::super) fn mov(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    a & mask(ctl)
}
/// `slct` by a signed integer.
pub(in super::super) fn slct_s32(a: u64, b: u64, c: u64, _: u32) -> u64 {
    if c as i32 >= 0 { a } else { b }
}
/// `slct` by a float: NaN selects b, minus zero a.
pub(in super::super) fn slct_f32(a: u64, b: u64, c: u64, _: u32) -> u64 {
    if f32::from_bits(c as u32) >= 0.0 { a } else { b }
}
pub(in super::super) fn bfi32(a: u64, b: u64, c: u64, _: u32) -> u64 {
    // Position and length are packed: position in c, length in its bits 32 and up.
    let (position, length) = (c as u32 & 0xff, (c >> 32) as u32 & 0xff);
    if position > 31 || length == 0 {
        return b & 0xffff_ffff;
    }
    let length = length.min(32 - position);
    let mask = (((1_u64 << length) - 1) << position) & 0xffff_ffff;
    (b & !mask | (a << position) & mask) & 0xffff_ffff
}
pub(in super::super) fn bfi64(a: u64, b: u64, c: u64, _: u32) -> u64 {
    let (position, length) = (c as u32, (c >> 32) as u32);
    if position > 63 || length == 0 {
        return b;
    }
    let length = length.min(64 - position);
    let mask = if length == 64 { u64::MAX } else { ((1_u64 << length) - 1) << position };
    b & !mask | (a << position) & mask
}
/// `bmsk`: `1 << OWN` is `.wrap`, else clamped.
pub(in super::super) fn bmsk(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
    let (mut start, mut width) = (a as u32, b as u32);
    if ctl >> OWN & 1 != 0 {
        (start, width) = (start & 31, width & 31);
    }
    if start > 31 || width == 0 {
        return 0;
    }
    let ones = if width > 31 { u32::MAX } else { (1 << width) - 1 };
    u64::from(ones << start)
}
/// `szext`: sign when `2 << OWN`, wrap when `1 << OWN`.
pub(in super::super) fn szext(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
    let (wrap, signed) = (ctl >> OWN & 1 != 0, ctl >> OWN & 2 != 0);
    let (a, b) = (a as u32, if wrap { b as u32 & 31 } else { b as u32 });
    if b == 0 {
        return 0;
    }
    if b > 31 {
        return u64::from(a);
    }
    let shift = 32 - b;
    u64::from(if signed { ((a << shift) as i32 >> shift) as u32 } else { a << shift >> shift })
}
/// `fns`: the n-th set bit from a base.
pub(in super::super) fn fns(mask: u64, base: u64, offset: u64, _: u32) -> u64 {
    let (mask, base, offset) = (mask as u32, base as u32, offset as u32 as i32);
    // The GPU's result for the one offset without a negative.
    if offset == i32::MIN {
        return 0;
    }
    if base > 31 {
        return u64::from(u32::MAX);
    }
    if offset == 0 {
        return u64::from(if mask >> base & 1 != 0 { base } else { u32::MAX });
    }
    let step = offset.signum();
    let (mut at, mut left) = (base as i32, offset.unsigned_abs());
    while (0..32).contains(&at) {
        if mask >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u64;
            }
        }
        at += step;
    }
    u64::from(u32::MAX)
}
/// `prmt`: the mode is `ctl >> OWN`, 0 for the general one.
pub(in super::super) fn prmt(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let bytes = a & 0xffff_ffff | b << 32;
    let at = c as u32 & 3;
    let selector = match ctl >> OWN {
        1 => [0x3210, 0x4321, 0x5432, 0x6543][at as usize],
        2 => [0x5670, 0x6701, 0x7012, 0x0123][at as usize],
        3 => [0x0000, 0x1111, 0x2222, 0x3333][at as usize],
        4 => [0x3210, 0x3211, 0x3222, 0x3333][at as usize],
        5 => [0x0000, 0x1110, 0x2210, 0x3210][at as usize],
        6 => [0x1010, 0x3232, 0x1010, 0x3232][at as usize],
        _ => c as u32,
    };
    let byte = |i: u32| {
        let nibble = selector >> (4 * i) & 0xf;
        let value = (bytes >> (8 * (nibble & 7))) & 0xff;
        // The sign of the byte, eight times.
        if ctl >> OWN == 0 && nibble & 8 != 0 { if value & 0x80 != 0 { 0xff } else { 0 } } else { value }
    };
    (0..4).fold(0, |all, i| all | byte(i) << (8 * i))
}
/// `shf`: bit 0 of `ctl >> OWN` is right, bit 1 is wrap.
pub(in super::super) fn shf(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let n = if ctl >> OWN & 2 != 0 { c as u32 & 31 } else { (c as u32).min(32) };
    let both = a & 0xffff_ffff | b << 32;
    let r = if ctl >> OWN & 1 != 0 { both >> n } else { (u128::from(both) << n >> 32) as u64 };
    r & 0xffff_ffff
}
/// `dp4a`: bit 0 of `ctl >> OWN` says that a is signed, bit 1 that b is.
pub(in super::super) fn dp4a(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let byte = |v: u64, i: u32, signed: bool| {
        let x = (v >> (8 * i)) as u8;
        if signed { i32::from(x as i8) } else { i32::from(x) }
    };
    let (sa, sb) = (ctl >> OWN & 1 != 0, ctl >> OWN & 2 != 0);
    let sum = (0..4).fold(c as u32 as i32, |s, i| s.wrapping_add(byte(a, i, sa) * byte(b, i, sb)));
    u64::from(sum as u32)
}
/// `dp2a`: as `dp4a`; bit 2 takes the high bytes of b.
pub(in super::super) fn dp2a(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let (sa, sb, high) = (ctl >> OWN & 1 != 0, ctl >> OWN & 2 != 0, ctl >> OWN & 4 != 0);
    let term = |i: u32| {
        let x = (a >> (16 * i)) as u16;
        let x = if sa { i32::from(x as i16) } else { i32::from(x) };
        let y = (b >> (8 * i + if high { 16 } else { 0 })) as u8;
        let y = if sb { i32::from(y as i8) } else { i32::from(y) };
        x.wrapping_mul(y)
    };
    u64::from((c as u32 as i32).wrapping_add(term(0)).wrapping_add(term(1)) as u32)
}
/// The product of 24-bit integers: bit 0 of `ctl >> OWN` is signed, bit 1 takes bits 47 to 16.
pub(in super::super) fn mul24(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let (signed, high) = (ctl >> OWN & 1 != 0, ctl >> OWN & 2 != 0);
    let cut = |v: u64| if signed { i64::from((v as i32) << 8 >> 8) } else { (v & 0xff_ffff) as i64 };
    let product = cut(a) * cut(b);
    let product = if high { product >> 16 } else { product };
    if ctl & SAT != 0 {
        return u64::from((product as i32).saturating_add(c as i32) as u32);
    }
    u64::from((product as u32).wrapping_add(c as u32))
}
