//! What a copy costs: passes over the banks of shared memory, sectors of global memory.

use super::cover::FAR;
use super::moves::Moves;
use super::{CopyOp, Engine, Place, SmemTensor, TileCopy, Tiling};
use crate::layout::LayoutError;
use crate::model::{SECTOR, SharedAnalysis, SharedError, SharedOp, SharedTensor, WarpAccess};
use crate::units::{Bytes, Elements};

impl Tiling {
    /// The tensors in shared memory with the passes over the banks that the threads' accesses to one stage take. TMA and WGMMA
    /// are not accesses of threads: of them it is proved that they find the swizzle that they are told.
    ///
    /// # Errors
    /// An access that [`Tiling::flaws`] refuses.
    pub fn shared(&self) -> Result<Vec<SharedAnalysis>, SharedError> {
        self.smem.iter().map(|tensor| self.shared_tensor(tensor)?.analyze()).collect()
    }

    /// One stage of a tensor with the threads' accesses to it.
    pub(crate) fn shared_tensor(&self, tensor: &SmemTensor) -> Result<SharedTensor, SharedError> {
        let mut shared = SharedTensor::new(&format!("s{}", tensor.name), tensor.dtype.bytes(), tensor.stage())?
            .with_alignment(tensor.align);
        if let Some(swizzle) = tensor.swizzle {
            shared = shared.with_swizzle(swizzle)?;
        }
        if let Some(apart) = tensor.layout.mode(2).and_then(|stages| stages.at(1).ok()).filter(|_| self.stages() > 1) {
            shared = shared.with_stages(Elements(apart as u64));
        }
        for copy in self.copies.iter().filter(|copy| copy.is_of(tensor.name)) {
            let Ok(Some(sides)) = self.sides(copy) else { continue };
            if copy.to == Place::Shared(tensor.name) {
                shared = shared.with_access(copy.written(&sides.from, &sides.to));
            }
            if copy.from == Place::Shared(tensor.name) {
                let merged = copy.merged(tensor, &sides.from);
                shared = shared.with_access(copy.access(SharedOp::Load, merged.as_ref().unwrap_or(&sides.from)));
            }
        }
        Ok(shared)
    }
}

impl Tiling {
    /// What a tensor has to begin at a multiple of: the widest access of a thread to it, as the text makes it.
    ///
    /// # Errors
    /// An access that [`Tiling::flaws`] refuses.
    pub fn widest(&self, tensor: &str) -> Result<Bytes, LayoutError> {
        let mut widest = Bytes(1);
        for copy in self.copies.iter().filter(|copy| copy.is_of(tensor)) {
            if let Some(sides) = self.sides(copy)? {
                for (place, side) in [(copy.from, &sides.from), (copy.to, &sides.to)] {
                    if matches!(place, Place::Shared(name) if name == tensor) {
                        widest = widest.max(copy.bytes(side));
                    }
                }
            }
        }
        Ok(widest)
    }
}

impl TileCopy {
    /// Whether it reads or writes the tensor of that name in shared memory.
    fn is_of(&self, tensor: &str) -> bool {
        [self.from, self.to].iter().any(|place| matches!(place, Place::Shared(name) if *name == tensor))
    }

    /// One request for each warp and each of the threads' instructions.
    fn access(&self, op: SharedOp, side: &Moves) -> WarpAccess {
        let threads = side.threads.len() as u32;
        WarpAccess::new(self.what, op, self.bytes(side), threads, side.steps(), |thread, step| side.first(thread, step))
    }

    /// Bytes that a thread moves with one instruction.
    pub(super) fn bytes(&self, side: &Moves) -> Bytes {
        Bytes(side.vector as u64 * self.dtype.bytes().0)
    }

    /// Where a text reads fragments element by element, along columns that are neighbours, nvcc 13.0 makes one load of as many as
    /// are aligned in an array that it aligns itself, but not behind a swizzle.
    fn merged(&self, tensor: &SmemTensor, side: &Moves) -> Option<Moves> {
        let single = matches!(self.engine, Engine::Fragments(CopyOp::Universal(_))) && side.vector == 1;
        let [rows, columns] = self.tile;
        let pitch = tensor.layout.mode(0)?.at(1).ok().filter(|_| tensor.contiguous() == 1)?;
        let together = |vector: &i64| columns % vector == 0 && pitch % vector == 0;
        let vector = [4, 2].into_iter().filter(|_| single && tensor.swizzle.is_none()).find(together)?;
        let column = |value: i64| value / rows;
        let firsts = side.values.iter().filter(|value| column(**value) % vector == 0);
        let values = firsts.flat_map(|first| (0..vector).map(move |next| first + rows * next)).collect();
        Some(Moves { threads: side.threads.clone(), values, vector: vector as usize, leaves: None })
    }

    /// The writes to shared memory.
    fn written(&self, from: &Moves, to: &Moves) -> WarpAccess {
        if !matches!(self.engine, Engine::Threads { op: CopyOp::CpAsync(_), .. }) {
            return self.access(SharedOp::Store, to);
        }
        let size = self.dtype.bytes().0 as i64;
        // Rows begin at multiples of a line.
        let source = |thread: i64, step: i64| {
            let (line, along) = self.line(from.first(thread, step).unwrap_or(0));
            line * FAR + along * size
        };
        let threads = to.threads.len() as u32;
        WarpAccess::copy(self.what, self.bytes(to), threads, to.steps(), |thread, step| to.first(thread, step), source)
    }

    /// Of an element, the line of global memory that it lies in, and where in that.
    fn line(&self, index: i64) -> (i64, i64) {
        let (row, column) = (index % self.tile[0], index / self.tile[0]);
        let along_rows =
            [self.from, self.to].iter().any(|p| matches!(p, Place::Global(global) if global.contiguous == 0));
        if along_rows { (column, row) } else { (row, column) }
    }

    /// Sectors of 32 bytes that the requests of all warps for one tile touch in global memory, each row from a sector's begin on.
    pub(super) fn sectors(&self, side: &Moves) -> u64 {
        let size = self.dtype.bytes().0;
        let sector = |index: i64| {
            let (line, along) = self.line(index);
            (line, along as u64 * size / SECTOR)
        };
        // A vector is no longer than a sector, and aligned.
        let (requests, mut touched) = (side.requests(side.vector()), Vec::new());
        let different = |lanes| {
            touched.clear();
            touched.extend(Iterator::map(lanes, sector));
            touched.sort_unstable();
            touched.dedup();
            touched.len() as u64
        };
        requests.map(different).sum()
    }
}
