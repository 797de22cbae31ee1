//! What a copy costs: passes over the banks of shared memory, sectors of global memory.

use std::collections::BTreeSet;

use super::cover::Sides;
use super::{CopyOp, Engine, Place, SmemTensor, TileCopy, Tiling};
use crate::layout::Layout;
use crate::model::{SECTOR, SharedAnalysis, SharedError, SharedOp, SharedTensor, WarpAccess};
use crate::units::Bytes;

impl Tiling {
    /// The tensors in shared memory with the passes over the banks that the threads' accesses to one stage take. TMA and WGMMA
    /// are not accesses of threads: of them it is proved that they find the swizzle that they are told.
    ///
    /// # Errors
    /// An access that [`Tiling::flaws`] refuses.
    pub fn shared(&self) -> Result<Vec<SharedAnalysis>, SharedError> {
        self.smem.iter().map(|tensor| self.shared_of(tensor)).collect()
    }

    fn shared_of(&self, tensor: &SmemTensor) -> Result<SharedAnalysis, SharedError> {
        let stage = [0, 1].map(|mode| tensor.layout.mode(mode).unwrap_or_else(Layout::unit));
        let stage = Layout::from_modes(stage).unwrap_or_else(|_| Layout::unit());
        let mut shared = SharedTensor::new(&format!("s{}", tensor.name), tensor.dtype.bytes(), stage)?;
        if let Some(swizzle) = tensor.swizzle {
            shared = shared.with_swizzle(swizzle)?;
        }
        for copy in &self.copies {
            let Engine::Threads { op, copy: tiled } = &copy.engine else { continue };
            let Ok(sides) = copy.elements(tiled) else { continue };
            if copy.to == Place::Shared(tensor.name) {
                shared = shared.with_access(copy.written(*op, &sides));
            }
            if copy.from == Place::Shared(tensor.name) {
                shared =
                    shared.with_access(access(&format!("{} of a warp", copy.what), SharedOp::Load, copy, &sides.from));
            }
        }
        shared.analyze()
    }
}

/// One request for each warp and each of the threads' instructions.
fn access(what: &str, op: SharedOp, copy: &TileCopy, side: &[Vec<Vec<i64>>]) -> WarpAccess {
    let steps = side.first().map_or(0, Vec::len) as i64;
    WarpAccess::new(what, op, width(copy, side), side.len() as u32, steps, |thread, step| first(side, thread, step))
}

/// The first element that a thread moves with an instruction.
fn first(side: &[Vec<Vec<i64>>], thread: i64, step: i64) -> Option<i64> {
    side.get(thread as usize)?.get(step as usize)?.first().copied()
}

/// Bytes that a thread moves with one instruction.
pub(super) fn width(copy: &TileCopy, side: &[Vec<Vec<i64>>]) -> Bytes {
    let elements = side.first().and_then(|thread| thread.first()).map_or(0, Vec::len) as u64;
    Bytes(elements * copy.dtype.bytes().0)
}

impl TileCopy {
    /// The writes to shared memory.
    fn written(&self, op: CopyOp, sides: &Sides) -> WarpAccess {
        let what = format!("{} of a warp", self.what);
        if op != CopyOp::CpAsync {
            return access(&what, SharedOp::Store, self, &sides.to);
        }
        let steps = sides.to.first().map_or(0, Vec::len) as i64;
        let (rows, size) = (self.tile[0], self.dtype.bytes().0 as i64);
        WarpAccess::copy(
            &what,
            width(self, &sides.to),
            sides.to.len() as u32,
            steps,
            |thread, step| first(&sides.to, thread, step),
            // Rows begin at multiples of a line.
            |thread, step| first(&sides.from, thread, step).map_or(0, |at| at % rows * (1 << 20) + at / rows * size),
        )
    }

    /// Sectors of 32 bytes that the requests of all warps for one tile touch in global memory, each row from a sector's begin on.
    pub(super) fn sectors(&self, side: &[Vec<Vec<i64>>], contiguous: usize) -> u64 {
        let (rows, size) = (self.tile[0], self.dtype.bytes().0);
        let sector = |index: i64| {
            let (row, column) = (index % rows, index / rows);
            let (line, along) = if contiguous == 1 { (row, column) } else { (column, row) };
            (line, along as u64 * size / SECTOR)
        };
        let steps = side.first().map_or(0, Vec::len);
        let request = |(warp, step): (&[Vec<Vec<i64>>], usize)| {
            let all = warp.iter().filter_map(|thread| thread.get(step)).flatten();
            all.map(|index| sector(*index)).collect::<BTreeSet<_>>().len() as u64
        };
        side.chunks(32).flat_map(|warp| (0..steps).map(move |step| (warp, step))).map(request).sum()
    }
}
