//! A profile: counts for each instruction of an entry, by PTX line and by source line.

use std::fmt;

use super::finding::{Site, SourceLine};

/// Counts of an instruction, or of a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Executions by warps.
    pub executions: u64,
    /// Active lanes, summed over the executions.
    pub lanes: u64,
    /// Requests of global memory: executions of a load, store, atomic or copy with an active lane.
    pub requests: u64,
    /// Distinct sectors of 32 bytes in each request.
    pub sectors: u64,
    /// Requests of shared memory.
    pub shared_requests: u64,
    /// Passes over the banks of shared memory.
    pub wavefronts: u64,
    /// Bytes that bulk and tensor copies move.
    pub bulk_bytes: u64,
    /// Products and sums of `wgmma`.
    pub wgmma_flops: u64,
}

impl Counts {
    pub(super) fn join(&mut self, c: &Counts) {
        self.executions += c.executions;
        self.lanes += c.lanes;
        self.requests += c.requests;
        self.sectors += c.sectors;
        self.shared_requests += c.shared_requests;
        self.wavefronts += c.wavefronts;
        self.bulk_bytes += c.bulk_bytes;
        self.wgmma_flops += c.wgmma_flops;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = |of: u64, by: u64| of as f64 / by.max(1) as f64;
        write!(f, "{} executions, {:.1} lanes each", self.executions, mean(self.lanes, self.executions))?;
        if self.requests > 0 {
            write!(f, ", {} requests, {:.2} sectors each", self.requests, mean(self.sectors, self.requests))?;
        }
        if self.shared_requests > 0 {
            let each = mean(self.wavefronts, self.shared_requests);
            write!(f, ", {} requests of shared memory, {each:.2} wavefronts each", self.shared_requests)?;
        }
        if self.bulk_bytes > 0 {
            write!(f, ", {} B by bulk copies", self.bulk_bytes)?;
        }
        if self.wgmma_flops > 0 {
            write!(f, ", {} flops of wgmma", self.wgmma_flops)?;
        }
        Ok(())
    }
}

/// An instruction that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiled {
    /// The instruction.
    pub site: Site,
    /// Its counts.
    pub counts: Counts,
}

/// Counts for the instructions of a launch, in the order of the PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The executed instructions. An instruction that expands to several, such as a `mov` of a vector, is one entry.
    pub instructions: Vec<Profiled>,
    /// The work in flight in the first block or its cluster, one entry for each change.
    pub stages: Vec<Stages>,
}

/// The work in flight in a block, after a turn of one of its warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stages {
    /// Number of warp turns before.
    pub turn: u64,
    /// Number of `mbarrier`s that still expect bytes: stages that copies fill.
    pub filling: u32,
    /// Number of `wgmma` that a warp has in flight, the most of any warp.
    pub products: u32,
}

impl Profile {
    /// The sums of the instructions whose opcode begins so, as `ld.global`.
    pub fn total(&self, opcode: &str) -> Counts {
        let mut sum = Counts::default();
        self.instructions.iter().filter(|p| p.site.opcode.starts_with(opcode)).for_each(|p| sum.join(&p.counts));
        sum
    }

    /// The sums of each source line: of the line itself where the function was inlined somewhere.
    pub fn by_source(&self) -> Vec<(SourceLine, Counts)> {
        let mut lines: Vec<(SourceLine, Counts)> = Vec::new();
        for p in &self.instructions {
            let Some(line) = p.site.source.first() else { continue };
            match lines.iter_mut().find(|(known, _)| known == line) {
                Some((_, counts)) => counts.join(&p.counts),
                None => lines.push((line.clone(), p.counts)),
            }
        }
        lines.sort_by(|(a, _), (b, _)| (&a.file, a.line).cmp(&(&b.file, b.line)));
        lines
    }
}
