//! The results of an analysis.

use core::fmt;
use std::borrow::Cow;

use super::access::{Touch, WarpAccess};
use super::conflict::Conflict;
use super::{Offsets, SharedError, SharedTensor, error};
use crate::layout::Swizzle;
use crate::model::banks::{Request, SharedOp, WARP, count};
use crate::units::Bytes;

/// One access: its requests and the passes over the banks that they take, over all warps and steps of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Its name: `load of the compute`.
    pub what: String,
    /// Its operation.
    pub op: SharedOp,
    /// Bytes that each thread moves with one instruction.
    pub bytes: Bytes,
    /// Requests: one for each warp and step.
    pub requests: u64,
    /// Passes of all requests together.
    pub wavefronts: u64,
    /// The passes that they take at least, with any layout that keeps the elements apart.
    pub least: u64,
    /// The passes of the worst request.
    pub worst: u32,
    /// The first request that takes more than it has to.
    pub conflict: Option<Conflict>,
}

impl AccessReport {
    /// Passes that a better layout would save, of all requests together.
    pub fn extra(&self) -> u64 {
        self.wavefronts.saturating_sub(self.least)
    }

    /// Passes of a request on average.
    pub fn mean(&self) -> f64 {
        self.wavefronts as f64 / self.requests.max(1) as f64
    }
}

impl fmt::Display for AccessReport {
    /// `load of the compute: 4 B a lane, 64 requests of 1.00 wavefronts (worst 1), least 1.00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, bytes, requests, worst, .. } = self;
        let least = self.least as f64 / (*requests).max(1) as f64;
        let mean = self.mean();
        write!(
            f,
            "{what}: {bytes} a lane, {requests} requests of {mean:.2} wavefronts (worst {worst}), least {least:.2}"
        )
    }
}

/// A tensor in shared memory with the cost of its accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAnalysis {
    /// Its name: `sA`.
    pub name: String,
    /// Its layout, as CuTe prints it.
    pub layout: String,
    /// The memory that it takes, or one stage of it.
    pub memory: Bytes,
    /// The alignment of its address.
    pub alignment: Bytes,
    /// From one stage to the next, where there are several.
    pub stage: Option<Bytes>,
    /// Its accesses, in the order in which they were described.
    pub accesses: Vec<AccessReport>,
}

impl SharedAnalysis {
    /// Passes that a better layout could save, over all accesses.
    pub fn extra(&self) -> u64 {
        self.accesses.iter().map(AccessReport::extra).sum()
    }
}

impl fmt::Display for SharedAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}, aligned to {}", self.name, self.layout, self.memory, self.alignment)?;
        for access in &self.accesses {
            write!(f, "\n  {access}")?;
            if let Some(conflict) = &access.conflict {
                write!(f, "\n    {conflict}")?;
            }
        }
        Ok(())
    }
}

impl SharedTensor {
    /// The cost of its accesses.
    ///
    /// # Errors
    /// An access of an unknown width, to an element that does not exist, or to an address that is not a multiple of the
    /// access's bytes.
    pub fn analyze(&self) -> Result<SharedAnalysis, SharedError> {
        let block = self.swizzle.map_or(1, Swizzle::block);
        let requests = self.accesses.iter().map(|access| (access, self.requests(access, self.swizzle, block)));
        let requests: Vec<_> = requests.collect();
        let offsets = Offsets::of(&self.layout, requests.iter().map(|(_, touches)| touches.len() * WARP).sum());
        let (layout, memory, alignment) = (self.layout_text(), self.memory(), self.alignment());
        let report =
            |(access, touches): &(&WarpAccess, Cow<'_, [Touch]>)| self.report(access, touches, &offsets, memory);
        let accesses = requests.iter().map(report).collect::<Result<_, _>>()?;
        let stage = self.stage.map(|apart| Bytes(apart.0 * self.element.0));
        if let Some(apart) = stage.filter(|apart| !apart.0.is_multiple_of(alignment.0)) {
            return Err(error::stages(&self.name, apart, alignment));
        }
        Ok(SharedAnalysis { name: self.name.clone(), layout, memory, alignment, stage, accesses })
    }

    fn report(
        &self,
        access: &WarpAccess,
        touches: &[Touch],
        offsets: &Offsets<'_>,
        memory: Bytes,
    ) -> Result<AccessReport, SharedError> {
        let (op, bytes) = (access.op(), access.bytes());
        if !bytes.0.is_power_of_two() || bytes.0 > 16 || bytes < self.element {
            return Err(error::width(&self.name, access.what(), bytes, self.element));
        }
        let mut report = AccessReport {
            what: access.what().to_owned(),
            op,
            bytes,
            requests: access.requests(),
            wavefronts: 0,
            least: 0,
            worst: 0,
            conflict: None,
        };
        for touch in touches {
            let mut addresses = Vec::with_capacity(touch.lanes.len());
            for (lane, index) in touch.lanes.iter().enumerate() {
                let place = || format!("lane {lane} of warp {} in step {}", touch.warp, touch.step);
                addresses.push(match index {
                    Some(index) => Some(self.checked(access, *index, offsets, memory, place)?),
                    None => None,
                });
            }
            let counted = count(op, bytes, &addresses, &touch.sources);
            report.wavefronts += u64::from(counted.wavefronts) * touch.times;
            report.least += u64::from(counted.least) * touch.times;
            report.worst = report.worst.max(counted.wavefronts);
            if report.conflict.is_none() && counted.wavefronts > counted.least {
                let request = Request { op, bytes, addresses, sources: touch.sources.clone() };
                report.conflict = Some(Conflict::of(touch.warp, touch.step, request));
            }
        }
        Ok(report)
    }

    /// The address in bytes of an element that a lane touches.
    fn checked(
        &self,
        access: &WarpAccess,
        index: i64,
        offsets: &Offsets<'_>,
        memory: Bytes,
        place: impl Fn() -> String,
    ) -> Result<i64, SharedError> {
        let size = self.layout.size();
        let Some(offset) = offsets.at(index).filter(|_| (0..size).contains(&index)) else {
            return Err(error::outside(&self.name, access.what(), &place(), index, size));
        };
        let offset = self.swizzle.map_or(offset, |swizzle| swizzle.apply(offset));
        let address = offset * self.element.0 as i64;
        let bytes = access.bytes();
        if address % bytes.0 as i64 != 0 {
            return Err(error::unaligned(&self.name, access.what(), &place(), address, bytes));
        }
        if address + bytes.0 as i64 > memory.0 as i64 {
            let past = index + (bytes.0 / self.element.0) as i64 - 1;
            return Err(error::outside(&self.name, access.what(), &place(), past, size));
        }
        Ok(address)
    }
}
