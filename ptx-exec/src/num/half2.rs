//! Packed halves: each half of a 32-bit register on its own.

use super::LaneFn;
use super::float::{bf16, f16};

fn each(op: LaneFn, a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let low = op(a & 0xffff, b & 0xffff, c & 0xffff, ctl) & 0xffff;
    let high = op((a >> 16) & 0xffff, (b >> 16) & 0xffff, (c >> 16) & 0xffff, ctl) & 0xffff;
    low | (high << 16)
}

macro_rules! packed {
    ($($module:ident of $one:ident: $($op:ident),*;)*) => {$(
        pub(in super::super) mod $module {
            $(pub(in super::super::super) fn $op(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
                super::each(super::$one::$op, a, b, c, ctl)
            })*
            /// A comparison of the low halves, and of the high ones.
            pub(in super::super::super) fn set_low(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
                super::$one::set(a & 0xffff, b & 0xffff, c, ctl)
            }
            pub(in super::super::super) fn set_high(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
                super::$one::set(a >> 16 & 0xffff, b >> 16 & 0xffff, c, ctl)
            }
        }
    )*};
}
packed! {
    f16x2 of f16: add, sub, mul, fma, min, max, neg, abs;
    bf16x2 of bf16: add, sub, mul, fma, min, max, neg, abs;
}

/// `add.s16x2`, `min.u16x2` and the like.
pub(in super::super) mod i16x2 {
    use super::super::int;
    macro_rules! ops {
        ($($name:ident $op:path),*) => {$(
            pub(in super::super::super) fn $name(a: u64, b: u64, c: u64, ctl: u32) -> u64 { super::each($op, a, b, c, ctl) }
        )*};
    }
    ops!(add int::u16::add, min_u int::u16::min, max_u int::u16::max, min_s int::s16::min, max_s int::s16::max);
}
