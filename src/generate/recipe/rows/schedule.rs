//! How many threads have a row, and what each of them holds: every decision about registers.

mod choose;
mod fits;
mod need;

pub(super) use choose::schedule;

use super::columns;
use super::tensors::Tensor;
use crate::arch::Arch;
use crate::model::banks::WARP;
use crate::recipe::field::as_displayed;
use crate::settings::named;

named! {
    /// Where a row lies between its traversals.
    Hold, "place of a row":
    /// In the registers of its threads: it is read from memory once.
    Registers = "registers",
    /// In the shared memory of its CTAs: it is read from memory once.
    Shared = "shared",
    /// In memory: each traversal reads it, a tile at a time. Rows have any width.
    Memory = "memory",
}

as_displayed!(Hold);

/// The threads of a row, and the elements of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Rows of a CTA.
    pub(super) rows: i64,
    /// Threads of a row, a power of two.
    pub(super) threads: i64,
    /// Neighbours that a thread has at once, a power of two.
    pub(super) vec: i64,
    /// How often.
    pub(super) chunks: i64,
    /// CTAs of a row, each with as many columns side by side.
    pub(super) cluster: i64,
    /// CTAs that share the rows, where columns are reduced; else 0, and each tile of rows has one.
    pub(super) ctas: i64,
    /// Tiles of rows in shared memory, most of them on their way, where CTAs share the rows; 1 where each is loaded in its turn.
    pub(super) stages: i64,
    /// Tiles that a CTA has of a row; 0 for as many as there are.
    pub(super) tiles: i64,
    /// Whether each tile of a row has a CTA of its own, as many as there are.
    pub(super) cut: bool,
    pub(super) hold: Hold,
    /// Registers of a thread, about.
    pub(super) registers: i64,
    /// Whether rows that stand for all are loaded chunk by chunk: those of the last traversal, or all of them where columns are reduced.
    pub(super) late: bool,
}

/// Registers that a program may take beyond the estimate.
const MARGIN: i64 = 8;

impl Schedule {
    /// Columns of a tile.
    pub(super) fn columns(&self) -> i64 {
        self.threads * self.vec * self.chunks
    }

    /// Columns of the widest row: coordinates past its end are 32-bit integers, too.
    pub(super) fn widest(&self) -> i64 {
        match self.tiles {
            _ if self.cut => i64::from(i32::MAX) - self.columns(),
            0 => i64::from(i32::MAX) - self.columns(),
            tiles => self.columns() * tiles * self.cluster,
        }
    }

    /// Whether that tensor waits in shared memory.
    pub(super) fn queues(&self, tensor: &Tensor) -> bool {
        (self.hold == Hold::Shared || self.stages > 1) && tensor.waits_by_rows()
    }

    /// Whether a traversal loads that tensor chunk by chunk; `last` is the last one.
    pub(super) fn loads_late(&self, tensor: &Tensor, last: usize) -> bool {
        self.late && (tensor.waits(last) || self.ctas > 0 && tensor.is_weight() && tensor.read.is_some())
    }

    /// Tiles that wait there: of one row, or of several.
    pub(super) fn waiting(&self) -> i64 {
        self.tiles.max(self.stages)
    }

    /// Bytes of shared memory for rows: of all tensors up to this one.
    pub(super) fn staged<'t>(&self, tensors: impl IntoIterator<Item = &'t Tensor>) -> i64 {
        let each = |t: &Tensor| self.rows * self.columns() * self.waiting() * t.spec.dtype.bytes().0 as i64;
        tensors.into_iter().filter(|t| self.queues(t)).map(each).sum()
    }

    /// Whether a text has statements for each tile of a row. With rows that stand for all, nvcc 13.0 loads those of several tiles at once,
    /// and spills: a layer norm had 0.549 of a copy on an H200.
    pub(super) fn unrolls<'t>(&self, tensors: impl IntoIterator<Item = &'t Tensor>) -> bool {
        self.hold == Hold::Shared && self.tiles <= 16 && !tensors.into_iter().any(Tensor::is_weight)
    }

    /// CTAs that have tiles of a row, in C++.
    pub(super) fn row_ctas(&self) -> &'static str {
        if self.cut { "ceil_div(params.n, size<1>(Tile{}))" } else { "RowCtas" }
    }

    /// Threads of a CTA.
    pub(super) fn cta(&self) -> i64 {
        self.rows * self.threads
    }

    /// Additions that a term takes part in, beyond a thread's share of the row: the rest of a vector, and those over threads.
    pub(super) fn additions(&self) -> u64 {
        let warps = self.parts().unsigned_abs();
        let of_warps = warps.min(WARP as u64).ilog2() + self.lanes().ilog2();
        self.vec.unsigned_abs() + u64::from(of_warps) + warps / WARP as u64
    }

    /// Warps that have parts of a row.
    pub(super) fn parts(&self) -> i64 {
        self.warps() * self.cluster
    }

    /// Lanes of a warp that have parts of a row.
    pub(super) fn lanes(&self) -> i64 {
        self.threads.min(WARP as i64)
    }

    /// Warps of a CTA that have parts of a row.
    pub(super) fn warps(&self) -> i64 {
        (self.threads / WARP as i64).max(1)
    }

    /// Whether costly results are kept: not where that leaves a multiprocessor few CTAs, which then wait for each other's memory. A
    /// softmax of 4096, 8192, 16384 and 32768 columns that keeps them had 0.984, 0.957, 0.795 and 0.708 of a copy on an H200, with 10, 5,
    /// 2 and 1 CTAs, and 0.962, 0.964, 0.938 and 0.923 without.
    pub(super) fn keeps(kept: Option<&Self>, again: Option<&Self>) -> bool {
        const ENOUGH: i64 = 4;
        match (kept, again) {
            (Some(kept), Some(again)) => kept.resident() >= again.resident().min(ENOUGH),
            (None, Some(_)) => false,
            _ => true,
        }
    }

    /// CTAs that a multiprocessor should have: those that share the rows of columns, or as many as have room in shared memory. Without this
    /// bound ptxas takes more registers, and one CTA less is resident.
    pub(super) fn at_once(&self, staged: i64) -> Option<u32> {
        const ALL: i64 = 228 << 10;
        const RESERVED: i64 = 1 << 10;
        let registers = Arch::REGISTERS_PER_BLOCK as i64 / (self.cta() * pieces(self.registers, 8) * 8);
        let fit = match self.hold {
            _ if self.ctas > 0 => columns::resident(self),
            Hold::Shared => (ALL / (staged + 2 * RESERVED)).min(2048 / self.cta()).min(registers),
            _ => 0,
        };
        u32::try_from(fit).ok().filter(|fit| *fit > 1)
    }

    /// CTAs of a multiprocessor, as far as registers allow.
    pub(super) fn resident(&self) -> i64 {
        Arch::REGISTERS_PER_BLOCK as i64 / (self.registers * self.cta()).max(1)
    }

    /// Whether a thread can have what it needs.
    pub(super) fn has_registers(&self) -> bool {
        self.registers + MARGIN <= self.most_registers()
    }

    /// Registers that a thread can have.
    pub(super) fn most_registers(&self) -> i64 {
        most_registers(self.cta())
    }
}

/// Registers that a thread can have in a CTA of so many.
fn most_registers(threads: i64) -> i64 {
    (Arch::REGISTERS_PER_BLOCK as i64 / threads.max(1)).min(Arch::MAX_REGISTERS_PER_THREAD as i64)
}

/// Pieces of so many. The last one may be shorter.
fn pieces(all: i64, each: i64) -> i64 {
    (all + each - 1) / each
}
