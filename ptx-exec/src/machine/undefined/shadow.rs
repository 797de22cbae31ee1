//! Undefined bits of the registers and predicates of a warp.

use super::origin::From;
use crate::code::{Class, Code, Inst, NONE, Op};
use crate::machine::Grid;
use crate::machine::threads::warp::refill;
use crate::machine::vectors::vector::Row;
use crate::proof::classes;

/// The uninitialised bits of registers. Lanes that do not exist, or have exited, do not count.
#[derive(Default)]
pub(crate) struct Shadow {
    rows: Vec<Row>,
    preds: Vec<u32>,
    /// Whether a bit of each row, then of each predicate, may be undefined. For a register of two rows the first counts. Then an entry
    /// that never is, and one that always is.
    dirty: Vec<u8>,
    /// The origin of each lane's undefined bits, by row and then by predicate. For a register of two rows the first counts.
    from: Vec<From>,
    /// Whether any of these is known.
    has_from: bool,
}

/// The entries of `dirty` that the loop checks before an instruction runs.
pub(crate) type Sides = [u32; 6];

impl Shadow {
    /// Before the first instruction only constants are initialised.
    pub(crate) fn begin(&mut self, g: &Grid<'_>) {
        if !g.checks.init {
            return;
        }
        let (rows, preds, written) = (g.code.rows as usize, g.code.preds as usize, g.written_rows());
        self.rows.resize(rows, Row([0; 32]));
        self.rows[..written].fill(Row([u32::MAX; 32]));
        self.rows[written..].fill(Row([0; 32]));
        refill(&mut self.preds, u32::MAX, preds);
        if core::mem::take(&mut self.has_from) || self.from.len() != rows + preds {
            refill(&mut self.from, [0; 32], rows + preds);
        }
        refill(&mut self.dirty, 1, rows + preds + 2);
        self.dirty[written..rows].fill(0);
        self.dirty[rows + preds] = 0;
    }

    /// Whether an instruction needs a check.
    ///
    /// # Safety
    /// The places were made by [`sides`] of the same entry.
    #[inline(always)]
    pub(crate) unsafe fn any(&self, sides: &Sides) -> bool {
        let d = self.dirty.as_ptr();
        // SAFETY: the caller says so.
        unsafe { sides.iter().fold(0, |any, at| any | *d.add(*at as usize)) != 0 }
    }

    /// Whether one of the registers may have undefined bits.
    pub(crate) fn any_of(&self, registers: &[u32]) -> bool {
        registers.iter().any(|r| *r != NONE && self.dirty[*r as usize] != 0)
    }

    pub(crate) fn is_dirty(&self, class: Class, at: u32) -> bool {
        match class {
            _ if at == NONE => false,
            Class::Pred => self.preds[at as usize] != 0,
            Class::W32 | Class::W64 => self.dirty[at as usize] != 0,
        }
    }

    /// Undefined bits of an operand.
    pub(crate) fn get(&self, class: Class, at: u32) -> [u64; 32] {
        let i = at as usize;
        match class {
            _ if at == NONE => [0; 32],
            Class::Pred => core::array::from_fn(|l| u64::from(self.preds[i] >> l & 1)),
            Class::W32 => widen(&self.rows[i]),
            Class::W64 => pair(&self.rows[i..]),
        }
    }

    /// The origin of each lane's undefined bits.
    pub(crate) fn from(&self, class: Class, at: u32) -> From {
        match class {
            _ if at == NONE => [0; 32],
            Class::Pred => self.from[self.rows.len() + at as usize],
            Class::W32 | Class::W64 => self.from[at as usize],
        }
    }

    /// [`set`](Shadow::set), with origins.
    #[allow(clippy::too_many_arguments, reason = "the parts of a value")]
    pub(crate) fn set_from(&mut self, class: Class, at: u32, value: &[u64; 32], from: &From, mask: u32, live: u32) {
        self.set(class, at, value, mask, live);
        if at == NONE || *from == [0; 32] {
            return;
        }
        let at = if class == Class::Pred { self.rows.len() + at as usize } else { at as usize };
        for l in (0..32).filter(|l| mask >> l & 1 != 0) {
            self.from[at][l] = from[l];
        }
        self.has_from = true;
    }

    pub(crate) fn pred(&self, at: u32) -> u32 {
        self.preds[at as usize]
    }

    pub(crate) fn set_pred(&mut self, at: u32, bits: u32) {
        self.preds[at as usize] = bits;
        let at = self.rows.len() + at as usize;
        self.dirty[at] = u8::from(bits != 0);
    }

    /// Sets the lanes of a mask; those that are not `live` become defined.
    pub(crate) fn set(&mut self, class: Class, at: u32, value: &[u64; 32], mask: u32, live: u32) {
        let i = at as usize;
        if at == NONE {
            return;
        }
        if self.has_from {
            let of = if class == Class::Pred { self.rows.len() + i } else { i };
            (0..32).filter(|l| mask >> l & 1 != 0).for_each(|l| self.from[of][l] = 0);
        }
        let take = |l: usize, old: u64| {
            if live >> l & 1 == 0 {
                0
            } else if mask >> l & 1 != 0 {
                value[l]
            } else {
                old
            }
        };
        match class {
            Class::Pred => {
                let old = self.preds[i];
                let bits = (0..32).fold(0, |m, l| m | u32::from(take(l, u64::from(old >> l & 1)) & 1 != 0) << l);
                self.set_pred(at, bits);
            }
            Class::W32 => {
                let row = &mut self.rows[i].0;
                let mut any = 0;
                for (l, word) in row.iter_mut().enumerate() {
                    *word = take(l, u64::from(*word)) as u32;
                    any |= *word;
                }
                self.dirty[i] = u8::from(any != 0);
            }
            Class::W64 => {
                let old = pair(&self.rows[i..]);
                let mut any = 0;
                for (l, old) in old.iter().enumerate() {
                    let new = take(l, *old);
                    let row = &mut self.rows[i + l / 16].0;
                    (row[l % 16 * 2], row[l % 16 * 2 + 1]) = (new as u32, (new >> 32) as u32);
                    any |= new;
                }
                self.dirty[i] = u8::from(any != 0);
            }
        }
    }

    /// Lanes of a mask become defined.
    pub(crate) fn clean(&mut self, class: Class, at: u32, mask: u32, live: u32) {
        if !self.is_dirty(class, at) {
            return;
        }
        if mask | !live != u32::MAX {
            return self.set(class, at, &[0; 32], mask, live);
        }
        match class {
            Class::Pred => self.set_pred(at, 0),
            Class::W32 | Class::W64 => {
                let rows = if class == Class::W64 { 2 } else { 1 };
                self.rows[at as usize..at as usize + rows].fill(Row([0; 32]));
                self.dirty[at as usize] = 0;
            }
        }
    }
}

/// The lanes of a row.
pub(crate) fn widen(row: &Row) -> [u64; 32] {
    core::array::from_fn(|l| u64::from(row.0[l]))
}

/// The lanes of two rows: 64 bits each, low word first.
pub(crate) fn pair(rows: &[Row]) -> [u64; 32] {
    core::array::from_fn(|l| {
        let row = &rows[l / 16].0;
        u64::from(row[l % 16 * 2]) | u64::from(row[l % 16 * 2 + 1]) << 32
    })
}

/// The shadow entries that the loop checks before each instruction of an entry.
pub(crate) fn sides(code: &Code) -> Vec<Sides> {
    let never = code.rows + code.preds;
    let always = never + 1;
    let slot = |class: Class, at: u32| match class {
        _ if at == NONE => never,
        Class::Pred => code.rows + at,
        Class::W32 | Class::W64 => at,
    };
    let row = |at: u32| slot(Class::W32, at);
    let of = |inst: &Inst| {
        let guard = if inst.guard == NONE { never } else { slot(Class::Pred, inst.guard >> 1) };
        let [a, b, c, d, e] = match inst.op {
            Op::Nop
            | Op::Bra
            | Op::Exit
            | Op::Trap
            | Op::CpCommit
            | Op::CpWait
            | Op::Fence
            | Op::WarpSync
            | Op::Sleep
            | Op::Converge
            | Op::GridWait => [never; 5],
            Op::Ld | Op::St | Op::Discard | Op::Atom | Op::LdMatrix | Op::StMatrix | Op::Brx => {
                [row(inst.a), never, never, never, never]
            }
            Op::CpAsync => [row(inst.a), row(inst.b), never, never, never],
            Op::LdParam | Op::Mma | Op::Bulk | Op::Wgmma => [always; 5],
            _ => {
                let [d, e, a, b, c] = classes(code, inst);
                [slot(a, inst.a), slot(b, inst.b), slot(c, inst.c), slot(d, inst.d), slot(e, inst.e)]
            }
        };
        [a, b, c, d, e, guard]
    };
    code.insts.iter().map(of).collect()
}
