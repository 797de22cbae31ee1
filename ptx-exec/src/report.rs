//! The report of a run.

use core::fmt;

use super::{Finding, Path, Profile};

/// The findings and counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Faults of the kernel, one for each cause, each at its first occurrence.
    pub findings: Vec<Finding>,
    /// Findings that the launch allows.
    pub allowed: Vec<Finding>,
    /// Number of findings that were not kept.
    pub dropped: u64,
    /// Output of the kernel's `printf`.
    pub printed: String,
    /// Number of blocks that ran to their end, over all entries.
    pub finished_blocks: u64,
    /// Number of blocks of all launched entries; 0 where unknown. A launch ends early where a block cannot continue, and where many blocks
    /// have findings, since further blocks would repeat them.
    pub blocks: u64,
    /// Number of executed warp instructions.
    pub instructions: u64,
    /// Number of active lanes, summed over these instructions.
    pub lane_instructions: u64,
    /// Happens-before paths between conflicting accesses, on request.
    pub paths: Vec<Path>,
    /// The profile of the instructions, on request.
    pub profile: Option<Profile>,
}

impl Report {
    /// Blocks that did not run to their end.
    pub fn unfinished(&self) -> u64 {
        self.blocks.saturating_sub(self.finished_blocks)
    }

    /// Whether every finding is allowed, if there is any.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.dropped == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            write!(f, "{} blocks, no findings", self.finished_blocks)?;
            return match self.allowed.len() {
                0 => Ok(()),
                n => write!(f, " but {n} that are allowed"),
            };
        }
        for (i, finding) in self.findings.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{finding}")?;
        }
        let left = self.unfinished();
        if left > 0 {
            write!(f, "\n{left} of {} blocks did not run to their end", self.blocks)?;
        }
        if self.dropped > 0 {
            write!(f, "\n... and {} more findings", self.dropped)?;
        }
        Ok(())
    }
}
