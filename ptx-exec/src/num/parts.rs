//! Video instructions: arithmetic of bytes and halves of a word, with a second operation on the result. PTX ISA, "Scalar Video
//! Instructions" and "SIMD Video Instructions".

/// Operations on two parts, in the order of [`Part::operation`].
const OPERATIONS: [fn(i64, i64) -> i64; 6] = [
    |a, b| a + b,
    |a, b| a - b,
    |a, b| (a - b).abs(),
    i64::min,
    i64::max,
    // The average, halves away from zero where the sum is positive.
    |a, b| (a + b + i64::from(a + b >= 0)) >> 1,
];
pub(in super::super) const NAMES: [&str; 6] = ["add", "sub", "absdiff", "min", "max", "avrg"];
/// Numbers of further operations.
pub(in super::super) const SHL: u32 = 6;
pub(in super::super) const SHR: u32 = 7;
/// The first of six comparisons: eq ne lt le gt ge.
pub(in super::super) const COMPARE: u32 = 8;

/// The second operation, on the result and the third operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Second {
    None,
    Add,
    Min,
    Max,
    /// The result replaces a part of the third operand.
    Merge,
}

const SECONDS: [Second; 5] = [Second::None, Second::Add, Second::Min, Second::Max, Second::Merge];

/// A part of a word: 0 is all of it, 1 to 4 are bytes, 5 and 6 are halves.
pub(in super::super) type Part = u32;

/// An instruction, as it travels in a control word.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Video {
    pub(in super::super) operation: u32,
    /// Whether D, A and B are signed.
    pub(in super::super) signed: [bool; 3],
    pub(in super::super) saturate: bool,
    pub(in super::super) second: Second,
    /// Parts of D, A and B, of a scalar.
    pub(in super::super) parts: [Part; 3],
    /// Shifts by more than 31 wrap.
    pub(in super::super) wrap: bool,
    /// Lanes of a SIMD instruction: 2 or 4; 1 of a scalar. Which of them are written.
    pub(in super::super) lanes: u32,
    pub(in super::super) mask: u32,
}

impl Video {
    pub(in super::super) fn pack(&self) -> u32 {
        let flag = |yes: bool, at: u32| u32::from(yes) << at;
        let [d, a, b] = self.signed;
        let [pd, pa, pb] = self.parts;
        let flags = flag(d, 4) | flag(a, 5) | flag(b, 6) | flag(self.saturate, 7) | flag(self.wrap, 8);
        self.operation
            | flags
            | (self.second as u32) << 9
            | pd << 12
            | pa << 15
            | pb << 18
            | self.lanes << 21
            | self.mask << 24
    }

    fn unpack(ctl: u32) -> Video {
        let flag = |at: u32| ctl >> at & 1 != 0;
        Video {
            operation: ctl & 15,
            signed: [flag(4), flag(5), flag(6)],
            saturate: flag(7),
            second: SECONDS[(ctl >> 9 & 7).min(4) as usize],
            parts: [ctl >> 12 & 7, ctl >> 15 & 7, ctl >> 18 & 7],
            wrap: flag(8),
            lanes: ctl >> 21 & 7,
            mask: ctl >> 24 & 15,
        }
    }

    fn apply(&self, a: i64, b: i64) -> i64 {
        match self.operation {
            SHL | SHR => {
                let by = if self.wrap { b & 31 } else { b.min(32) };
                if self.operation == SHL { a << by } else { a >> by }
            }
            operation if operation >= COMPARE => i64::from(match operation - COMPARE {
                0 => a == b,
                1 => a != b,
                2 => a < b,
                3 => a <= b,
                4 => a > b,
                _ => a >= b,
            }),
            operation => OPERATIONS.get(operation as usize).map_or(0, |f| f(a, b)),
        }
    }
}

/// First bit and bits of a part.
fn bits(part: Part) -> (u32, u32) {
    match part {
        1..=4 => (8 * (part - 1), 8),
        5 | 6 => (16 * (part - 5), 16),
        _ => (0, 32),
    }
}

fn select(word: u64, (first, bits): (u32, u32), signed: bool) -> i64 {
    let field = (word as u32 >> first) as i64 & ((1_i64 << bits) - 1);
    if signed { field << (64 - bits) >> (64 - bits) } else { field }
}

/// The nearest value that fits.
fn clamp(value: i64, bits: u32, signed: bool) -> i64 {
    if signed { value.clamp(-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { value.clamp(0, (1 << bits) - 1) }
}

fn merge(into: u32, value: i64, (first, bits): (u32, u32)) -> u32 {
    let mask = if bits == 32 { u32::MAX } else { ((1 << bits) - 1) << first };
    into & !mask | ((value as u32) << first) & mask
}

/// `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vset`.
pub(in super::super) fn scalar(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let v = Video::unpack(ctl);
    let part = bits(v.parts[0]);
    let mut value = v.apply(select(a, bits(v.parts[1]), v.signed[1]), select(b, bits(v.parts[2]), v.signed[2]));
    if v.saturate {
        value = clamp(value, part.1, v.signed[0]);
    }
    let with = |f: fn(i64, i64) -> i64| {
        // The result is a word by then.
        let (x, y) = (select(value as u64, (0, 32), v.signed[0]), select(c, (0, 32), v.signed[0]));
        f(x, y) as u32
    };
    u64::from(match v.second {
        Second::None => value as u32,
        Second::Add => (value as u32).wrapping_add(c as u32),
        Second::Min => with(i64::min),
        Second::Max => with(i64::max),
        Second::Merge => merge(c as u32, value, part),
    })
}

/// The same of two halves or of four bytes, which the operands have in their places.
pub(in super::super) fn simd(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let v = Video::unpack(ctl);
    let width = 32 / v.lanes.max(1);
    let mut result = c as u32;
    for lane in (0..v.lanes).filter(|lane| v.mask >> lane & 1 != 0) {
        let part = (lane * width, width);
        let mut value = v.apply(select(a, part, v.signed[1]), select(b, part, v.signed[2]));
        if v.saturate {
            value = clamp(value, width, v.signed[0]);
        }
        result = match v.second {
            Second::Add => result.wrapping_add(value as u32),
            _ => merge(result, value, part),
        };
    }
    u64::from(result)
}

/// Flags of `vmad` in its control word, above the parts.
pub(in super::super) const MAD_NEGATE_PRODUCT: u32 = 1 << 22;
pub(in super::super) const MAD_NEGATE_C: u32 = 1 << 23;
pub(in super::super) const MAD_PLUS_ONE: u32 = 1 << 24;
/// Where the number of bits begins that the result is shifted by.
pub(in super::super) const MAD_SCALE: u32 = 25;

/// `vmad`: a product and a sum of any width, scaled.
pub(in super::super) fn mad(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let v = Video::unpack(ctl & 0x1f_ffff);
    let has = |flag: u32| ctl & flag != 0;
    let signed = v.signed[1] || v.signed[2] || has(MAD_NEGATE_PRODUCT) || has(MAD_NEGATE_C);
    let of = |word: u64, n: usize| i128::from(select(word, bits(v.parts[n]), v.signed[n]));
    let mut product = of(a, 1) * of(b, 2);
    let mut c = c as u32;
    let mut one = has(MAD_PLUS_ONE);
    if has(MAD_NEGATE_PRODUCT) {
        (product, one) = (!product, true);
    } else if has(MAD_NEGATE_C) {
        (c, one) = (!c, true);
    }
    let c = if signed { i128::from(c as i32) } else { i128::from(c) };
    let sum = (product + c + i128::from(one)) >> (ctl >> MAD_SCALE & 15);
    let result = match (v.saturate, signed) {
        (false, _) => sum,
        (true, true) => sum.clamp(i128::from(i32::MIN), i128::from(i32::MAX)),
        (true, false) => sum.clamp(0, i128::from(u32::MAX)),
    };
    u64::from(result as u32)
}

/// `cvt.pack` to halves: a above b, each saturated; the control word says whether they are signed.
pub(in super::super) fn pack_halves(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
    let part = |v: u64| clamp(i64::from(v as u32 as i32), 16, ctl & 1 != 0) as u64 & 0xffff;
    part(a) << 16 | part(b)
}

/// `cvt.pack` to less: a above b, and both below what c is shifted by. Bits of an element stand above the sign.
pub(in super::super) fn pack_small(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let bits = ctl >> 1;
    let part = |v: u64| clamp(i64::from(v as u32 as i32), bits, ctl & 1 != 0) as u64 & ((1 << bits) - 1);
    (c << (2 * bits) | part(a) << bits | part(b)) & 0xffff_ffff
}
