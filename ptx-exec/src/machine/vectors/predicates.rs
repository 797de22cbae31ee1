//! Predicates of a warp: a bit for each lane.

use crate::code::{Combine, Inst, NONE};
use crate::machine::Grid;

/// Writes the lanes of a mask of a predicate.
///
/// # Safety
/// `d` is a predicate of the warp.
#[inline(always)]
pub(crate) unsafe fn blend(preds: *mut u32, d: u32, value: u32, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let p = preds.add(d as usize);
        *p = *p & !mask | value & mask;
    }
}

/// The results of a comparison, combined with a predicate.
///
/// # Safety
/// The operands are predicates of the warp.
#[inline(always)]
pub(crate) unsafe fn set_predicates(g: &Grid<'_>, preds: *mut u32, inst: &Inst, result: u32, mask: u32) {
    // SAFETY: the caller says so; in a `Code` the entry lies in its table (5).
    unsafe {
        let info = g.code.setps.get_unchecked(inst.x as usize);
        let (mut p, mut q) = (result, !result);
        if let Some(combine) = info.combine {
            let c = *preds.add(inst.c as usize) ^ 0_u32.wrapping_sub(u32::from(info.negate_c));
            let with = |v: u32| match combine {
                Combine::And => v & c,
                Combine::Or => v | c,
                Combine::Xor => v ^ c,
            };
            (p, q) = (with(p), with(q));
        }
        blend(preds, inst.d, p, mask);
        if inst.e != NONE {
            blend(preds, inst.e, q, mask);
        }
    }
}
