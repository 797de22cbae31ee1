//! Video instructions, scalar and SIMD, and `cvt.pack`.

use super::{Lower, Result};
use crate::ast::{Instruction, Operand};
use crate::code::Class;
use crate::num::{LaneFn, int, parts};
use crate::types::Ty;
use parts::{Second, Video};

const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const PARTS: [&str; 7] = ["", "b0", "b1", "b2", "b3", "h0", "h1"];

/// An operand with the part that is selected of it: `%r1.b0`.
fn split<'a>(operand: &Operand<'a>) -> (Operand<'a>, &'a str) {
    match operand {
        Operand::Name(name, Some(part)) => (Operand::Name(name, None), part),
        other => (other.clone(), ""),
    }
}

fn part(word: &str) -> Option<parts::Part> {
    PARTS.iter().position(|p| *p == word).map(|p| p as u32)
}

/// Bytes that a selector such as `h32` or `b7654` takes of two words, for `prmt`.
fn selector(word: &str, lanes: u32) -> Option<u32> {
    let digits = word.strip_prefix(if lanes == 2 { 'h' } else { 'b' })?;
    if digits.len() != lanes as usize {
        return None;
    }
    digits.bytes().try_fold(0, |all, digit| {
        let number = u32::from(digit.wrapping_sub(b'0'));
        match (lanes, number) {
            (2, 0..4) => Some(all << 8 | (2 * number + 1) << 4 | (2 * number)),
            (4, 0..8) => Some(all << 4 | number),
            _ => None,
        }
    })
}

/// Lanes that a mask such as `h1` or `b310` names.
fn mask(word: &str, lanes: u32) -> Option<u32> {
    if word.is_empty() {
        return Some((1 << lanes) - 1);
    }
    let digits = word.strip_prefix(if lanes == 2 { 'h' } else { 'b' })?;
    // Digits fall: `b310`, not `b013`.
    let falls = digits.as_bytes().windows(2).all(|pair| pair[0] > pair[1]);
    let bits = digits.bytes().try_fold(0, |all, digit| {
        let number = u32::from(digit.wrapping_sub(b'0'));
        (number < lanes).then_some(all | 1 << number)
    });
    bits.filter(|_| falls && !digits.is_empty())
}

impl<'a> Lower<'a, '_> {
    pub(super) fn is_video(i: &Instruction<'_>) -> bool {
        let name = i.name.strip_suffix(['2', '4']).unwrap_or(i.name);
        let of = name.strip_prefix('v').unwrap_or_default();
        parts::NAMES.contains(&of) || matches!(of, "shl" | "shr" | "set" | "mad")
    }

    pub(super) fn video(&mut self, i: &Instruction<'a>) -> Result<()> {
        let lanes = match i.name.as_bytes().last() {
            Some(b'2') => 2,
            Some(b'4') => 4,
            _ => 1,
        };
        let name = i.name.trim_start_matches('v').trim_end_matches(['2', '4']);
        let mut words = &i.modifiers[..];
        let mut signed = [false; 3];
        // `vset` has no type of its own.
        let first = usize::from(name == "set");
        for is_signed in &mut signed[first..] {
            *is_signed = match words.split_first() {
                Some((ty @ (&"u32" | &"s32"), rest)) => {
                    words = rest;
                    *ty == "s32"
                }
                _ => return Err(self.unsupported(i)),
            };
        }
        if name == "mad" {
            return if lanes == 1 { self.video_mad(i, signed, words) } else { Err(self.unsupported(i)) };
        }
        let mut v = Video {
            operation: 0,
            signed,
            saturate: false,
            second: Second::None,
            parts: [0; 3],
            wrap: false,
            lanes,
            mask: 0,
        };
        let number = parts::NAMES.iter().position(|n| *n == name).map(|n| n as u32);
        v.operation = match (name, words.split_first()) {
            ("set", Some((word, rest))) if COMPARISONS.contains(word) => {
                words = rest;
                // A second operation is that of A's type.
                v.signed[0] = v.signed[1];
                parts::COMPARE + COMPARISONS.iter().position(|c| c == word).unwrap_or(0) as u32
            }
            ("shl", _) if lanes == 1 => parts::SHL,
            ("shr", _) if lanes == 1 => parts::SHR,
            ("avrg", _) if lanes == 1 => return Err(self.unsupported(i)),
            _ => number.ok_or_else(|| self.unsupported(i))?,
        };
        if let Some((&"sat", rest)) = words.split_first().filter(|_| name != "set") {
            (v.saturate, words) = (true, rest);
        }
        if matches!(name, "shl" | "shr") {
            let Some((mode @ (&"clamp" | &"wrap"), rest)) = words.split_first() else {
                return Err(self.unsupported(i));
            };
            (v.wrap, words) = (*mode == "wrap", rest);
            if v.signed[2] {
                return Err(self.unsupported(i));
            }
        }
        v.second = match words {
            [] => Second::None,
            ["add"] if lanes == 1 || !v.saturate => Second::Add,
            ["min"] if lanes == 1 => Second::Min,
            ["max"] if lanes == 1 => Second::Max,
            _ => return Err(self.unsupported(i)),
        };
        if lanes == 1 { self.video_scalar(i, v) } else { self.video_simd(i, v) }
    }

    fn video_scalar(&mut self, i: &Instruction<'a>, mut v: Video) -> Result<()> {
        let ([d, a, b] | [d, a, b, _]) = &i.operands[..] else {
            return Err(self.malformed(i, "a result, two operands and at most one more"));
        };
        let selected = [split(d), split(a), split(b)];
        for (to, (_, word)) in v.parts.iter_mut().zip(&selected) {
            *to = part(word).ok_or_else(|| self.malformed(i, "a part: b0 to b3, h0 or h1"))?;
        }
        if v.parts[0] != 0 {
            // The result takes the place of a part of the third operand.
            if v.second != Second::None {
                return Err(self.malformed(i, "either a part of the result or a second operation"));
            }
            v.second = Second::Merge;
        }
        if (i.operands.len() == 4) != (v.second != Second::None) {
            return Err(self.malformed(i, "a third operand where there is a part of the result or a second operation"));
        }
        let [d, a, b] = selected.map(|(operand, _)| operand);
        let d = self.destination_of(&d, Ty::B32)?;
        let (a, b) = (self.source(&a, Ty::U32)?, self.source(&b, Ty::U32)?);
        let c = match i.operands.get(3) {
            Some(c) => self.source(c, Ty::U32)?,
            None => self.number(0)?,
        };
        self.lane_as(None, parts::scalar, v.pack(), d, &[a, b, c])
    }

    fn video_simd(&mut self, i: &Instruction<'a>, mut v: Video) -> Result<()> {
        self.expect_operands(i, 4)?;
        let [(d, masked), (a, of_a), (b, of_b)] = [0, 1, 2].map(|n| split(&i.operands[n]));
        v.mask = mask(masked, v.lanes).ok_or_else(|| self.malformed(i, "a mask of the parts that are written"))?;
        let d = self.destination_of(&d, Ty::B32)?;
        let (a, b) = (self.source(&a, Ty::U32)?, self.source(&b, Ty::U32)?);
        let c = self.source(&i.operands[3], Ty::U32)?;
        let mut from = [a, b];
        for (to, word) in from.iter_mut().zip([of_a, of_b]).filter(|(_, word)| !word.is_empty()) {
            let bytes =
                selector(word, v.lanes).ok_or_else(|| self.malformed(i, "parts of both operands: h10, b3210"))?;
            let table = self.number(u64::from(bytes))?;
            let moved = self.register(Class::W32, 32)?;
            self.lane_as(None, int::prmt, 0, moved, &[a, b, table])?;
            *to = moved;
        }
        self.lane_as(None, parts::simd, v.pack(), d, &[from[0], from[1], c])
    }

    fn video_mad(&mut self, i: &Instruction<'a>, signed: [bool; 3], words: &[&str]) -> Result<()> {
        let mut ctl = 0;
        let mut words = words.iter().copied().peekable();
        if words.next_if_eq(&"po").is_some() {
            ctl |= parts::MAD_PLUS_ONE;
        }
        let saturate = words.next_if_eq(&"sat").is_some();
        if words.next_if_eq(&"shr7").is_some() {
            ctl |= 7 << parts::MAD_SCALE;
        } else if words.next_if_eq(&"shr15").is_some() {
            ctl |= 15 << parts::MAD_SCALE;
        }
        if words.next().is_some() {
            return Err(self.unsupported(i));
        }
        self.expect_operands(i, 4)?;
        let mut negated = [false; 3];
        let mut from = Vec::new();
        for (operand, negated) in i.operands[1..].iter().zip(&mut negated) {
            from.push(match operand {
                Operand::Negated(inner) => {
                    *negated = true;
                    split(inner)
                }
                other => split(other),
            });
        }
        let [na, nb, nc] = negated;
        let both = (na ^ nb) && nc;
        if both || ctl & parts::MAD_PLUS_ONE != 0 && (na || nb || nc) || !from[2].1.is_empty() {
            return Err(self.malformed(i, "one sign: of the product, of the sum, or .po"));
        }
        ctl |= if na ^ nb { parts::MAD_NEGATE_PRODUCT } else { 0 } | if nc { parts::MAD_NEGATE_C } else { 0 };
        let mut v = Video {
            operation: 0,
            signed,
            saturate,
            second: Second::None,
            parts: [0; 3],
            wrap: false,
            lanes: 0,
            mask: 0,
        };
        for (to, (_, word)) in v.parts[1..].iter_mut().zip(&from) {
            *to = part(word).ok_or_else(|| self.malformed(i, "a part: b0 to b3, h0 or h1"))?;
        }
        let d = self.destination_of(&i.operands[0], Ty::B32)?;
        let mut registers = Vec::new();
        for (operand, _) in &from {
            registers.push(self.source(operand, Ty::U32)?);
        }
        self.lane_as(None, parts::mad, v.pack() | ctl, d, &registers)
    }

    /// `cvt.pack.sat.u8.s32.b32 d, a, b, c`
    pub(super) fn cvt_pack(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (to, n) = match i.modifiers[..] {
            ["pack", "sat", to @ ("u16" | "s16"), "s32"] => (to, 3),
            ["pack", "sat", to @ ("u8" | "s8" | "u4" | "s4" | "u2" | "s2"), "s32", "b32"] => (to, 4),
            _ => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, n)?;
        let d = self.destination_of(&i.operands[0], Ty::B32)?;
        let mut from = Vec::new();
        for operand in &i.operands[1..] {
            from.push(self.source(operand, Ty::S32)?);
        }
        let signed = u32::from(to.starts_with('s'));
        let bits = to[1..].parse::<u32>().unwrap_or(8);
        let f: LaneFn = if n == 3 { parts::pack_halves } else { parts::pack_small };
        self.lane_as(None, f, signed | bits << 1, d, &from)
    }
}
