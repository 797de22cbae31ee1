//! What one k-tile asks for: instructions, bytes, sectors, passes over the banks.

use super::{Engine, Factor, TileCopy, TileMma, Tiling};
use crate::atom::Operand;
use crate::layout::LayoutError;
use crate::model::SECTOR;
use crate::units::Bytes;

/// What one copy of a tile asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyCount {
    /// What it is: `copy of A`.
    pub what: &'static str,
    /// Instructions: of all warps, or boxes that one thread asks TMA for.
    pub instructions: u64,
    /// Bytes that a thread, or a box, moves with one.
    pub width: Bytes,
    /// Bytes of the tile.
    pub bytes: Bytes,
    /// Sectors of 32 bytes in global memory; 0 where it has no side there.
    pub sectors: u64,
}

/// What a CTA does for a k-tile, and for its tile of D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The copies, in order.
    pub copies: Vec<CopyCount>,
    /// MMA instructions of a k-tile, of all warps, or warpgroups.
    pub mmas: u64,
    /// Products of a k-tile.
    pub products: u64,
    /// Accumulators of one thread, in registers of 32 bits.
    pub accumulators: u64,
    /// Bytes that are on their way at most, while one stage is computed on.
    pub in_flight: Bytes,
}

impl Tiling {
    /// What a CTA does for a k-tile.
    ///
    /// # Errors
    /// A copy or an MMA that [`Tiling::flaws`] refuses.
    pub fn counts(&self) -> Result<Counts, LayoutError> {
        let copies = self.copies.iter().map(|copy| self.copy_count(copy)).collect::<Result<_, _>>()?;
        let products_of = |mma: &TileMma| mma.tile.iter().product::<i64>() as u64;
        let mut mmas = 0;
        for mma in &self.mmas {
            let (products, mma) = (products_of(mma), mma.tiled()?);
            let ([m, n, k], own) = (mma.atom().shape_mnk(), mma.atom().thr_id().size());
            // Those of a group of threads, and the groups: a warp where an atom is of fewer threads.
            let groups = (mma.threads() / own.max(1)).max(1);
            let each = products / (m * n * k * groups).max(1) as u64;
            mmas += each * (mma.threads() as u64).div_ceil(own.max(32) as u64);
        }
        let stage: u64 = self.operands().map(|tensor| tensor.stage_bytes().0).sum();
        Ok(Counts {
            copies,
            mmas,
            products: self.mmas.iter().map(products_of).sum(),
            accumulators: self.accumulators(),
            in_flight: Bytes(stage * (self.stages() - 1).max(0) as u64),
        })
    }

    /// Accumulators of one thread, in registers of 32 bits: of all MMAs, and of sums that are promoted. Those that are promoted after each
    /// k-tile are of as many rows as all warpgroups multiply by one instruction.
    pub(crate) fn accumulators(&self) -> u64 {
        let threads = u64::from(self.threads_of_tile()).max(1);
        let of = |mma: &TileMma| {
            let [m, n] = mma.tile_of(Operand::C);
            let promoted =
                mma.promotion.as_ref().map_or(0, |promotion| match mma.tiled().and_then(|mma| mma.tile_mnk()) {
                    Ok([rows, _, _]) if promotion.every == 1 => rows,
                    _ => m,
                });
            ((m + promoted) * n) as u64 / threads
        };
        self.mmas.iter().map(of).sum()
    }

    /// Registers of one thread that hold accumulators and fragments of the MMAs.
    ///
    /// # Errors
    /// As [`Tiling::counts`].
    pub fn registers(&self) -> Result<u64, LayoutError> {
        let mut registers = self.accumulators();
        for mma in &self.mmas {
            let tiled = mma.tiled()?;
            let [_, _, k] = tiled.tile_mnk()?;
            let [m, n, _] = mma.tile;
            let [lanes, threads_m, threads_n, _] =
                [0, 1, 2, 3].map(|mode| tiled.thr_layout_vmnk().mode(mode).map_or(1, |mode| mode.size()));
            let bytes = self.operands().map(|tensor| tensor.dtype.bytes().0 as i64).max().unwrap_or(4);
            // The rows and columns of an atom's threads, of one k of the MMA.
            let rows = if mma.a == Factor::Fragments { m / threads_m } else { 0 };
            let columns = if mma.b == Factor::Fragments { n / threads_n } else { 0 };
            registers += ((rows + columns) * k * bytes / (4 * lanes)) as u64;
            // A converted accumulator is a copy, two halves in a register.
            registers += mma.factors().iter().filter(|(_, f)| matches!(f, Factor::Accumulators(_))).count() as u64
                * (m * mma.tile[2]) as u64
                / (2 * tiled.threads() as u64).max(1);
        }
        Ok(registers)
    }

    fn copy_count(&self, copy: &TileCopy) -> Result<CopyCount, LayoutError> {
        let [rows, columns] = copy.tile;
        let bytes = Bytes((rows * columns) as u64 * copy.dtype.bytes().0);
        let count = |instructions, width, sectors| CopyCount { what: copy.what, instructions, width, bytes, sectors };
        match &copy.engine {
            Engine::Tma { extents: [box_rows, box_columns], .. } => {
                let boxes = (rows / box_rows.max(&1) * (columns / box_columns.max(&1))) as u64;
                let width = Bytes(bytes.0 / boxes.max(1));
                Ok(count(boxes, width, bytes.0.div_ceil(SECTOR)))
            }
            Engine::Threads { .. } | Engine::Fragments(_) => {
                let Some(moves) = self.moves(copy)? else { return Ok(count(0, Bytes(0), 0)) };
                let global = copy.global().is_some();
                let sectors = if global { copy.sectors(&moves)? } else { 0 };
                Ok(count(moves.instructions(), copy.bytes(&moves), sectors))
            }
        }
    }
}
