//! What a copy costs: passes over the banks of shared memory, sectors of global memory.

use super::cover::FAR;
use super::moves::{Moves, WARP};
use super::{CopyOp, Engine, Place, SmemTensor, TileCopy, Tiling};
use crate::layout::{Layout, LayoutError};
use crate::model::{SECTOR, SharedAnalysis, SharedError, SharedOp, SharedTensor, Source, Sums, WarpAccess, apart};
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
    pub(super) fn is_of(&self, tensor: &str) -> bool {
        [self.from, self.to].iter().any(|place| matches!(place, Place::Shared(name) if *name == tensor))
    }

    /// One request for each warp and each of the threads' instructions.
    fn access(&self, op: SharedOp, side: &Moves) -> WarpAccess {
        let sums = Sums { threads: side.threads.clone(), steps: side.firsts(), source: None };
        WarpAccess::of_sums(self.what, op, self.bytes(side), sums)
    }

    /// Bytes that a thread moves with one instruction.
    pub(super) fn bytes(&self, side: &Moves) -> Bytes {
        Bytes(side.vector as u64 * self.dtype.bytes().0)
    }

    /// nvcc 13.0 merges loads of single elements along neighbouring columns into vectors, as far as the array is aligned. It does not
    /// merge them behind a swizzle.
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
        let Ok(layout) = self.lines() else { return self.access(SharedOp::Copy, to) };
        let source = Source { layout, threads: from.threads.clone(), steps: from.firsts() };
        let sums = Sums { threads: to.threads.clone(), steps: to.firsts(), source: Some(source) };
        WarpAccess::of_sums(self.what, SharedOp::Copy, self.bytes(to), sums)
    }

    /// (rows, columns) to bytes in global memory: lines begin at multiples of a line of L1, far apart.
    fn lines(&self) -> Result<Layout, LayoutError> {
        let size = self.dtype.bytes().0 as i64;
        let along_rows = self.global().is_some_and(|global| global.contiguous == 0);
        let strides = if along_rows { [size, FAR] } else { [FAR, size] };
        let modes = [0, 1].map(|mode| Layout::mode_of(self.tile[mode], strides[mode]));
        Layout::from_modes(modes.into_iter().collect::<Result<Vec<_>, _>>()?)
    }

    /// Sectors of 32 bytes that the requests of all warps for one tile touch in global memory, each row from a sector's begin on.
    pub(super) fn sectors(&self, side: &Moves) -> Result<u64, LayoutError> {
        let (lines, sector) = (self.lines()?, SECTOR as i64);
        let mut touched = Vec::new();
        // A vector is no longer than a sector, and aligned.
        let mut different = |bytes: &mut dyn Iterator<Item = i64>| {
            touched.clear();
            touched.extend(bytes.map(|at| at / sector));
            touched.sort_unstable();
            touched.dedup();
            touched.len() as u64
        };
        let firsts = side.firsts();
        let Some([threads, steps]) = apart(&lines, &side.threads, &firsts) else {
            let requests = side.requests(side.vector()).map(|lanes| {
                let bytes: Vec<i64> = lanes.map(|element| lines.at(element)).collect::<Result<_, _>>()?;
                Ok(different(&mut bytes.into_iter()))
            });
            return requests.sum();
        };
        // Steps that begin at the same byte of a sector touch as many.
        let mut begins = [0_u64; SECTOR as usize];
        steps.iter().for_each(|step| begins[(step % sector) as usize] += 1);
        let begins: Vec<(i64, u64)> = (0..).zip(begins).filter(|(_, times)| *times > 0).collect();
        let of_warp = |warp: &[i64]| {
            let of_begin = |(begin, times): &(i64, u64)| times * different(&mut warp.iter().map(|at| at + begin));
            begins.iter().map(of_begin).sum::<u64>()
        };
        Ok(threads.chunks(WARP).map(of_warp).sum())
    }
}
