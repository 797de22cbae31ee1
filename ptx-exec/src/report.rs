//! What came of one run.

use core::fmt;

use super::{Finding, Path, Profile};

/// What a run found, and what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What the kernel did wrong, each at its first occurrence: one for each place in its text.
    pub findings: Vec<Finding>,
    /// What the launch allows the kernel to do wrong.
    pub allowed: Vec<Finding>,
    /// Findings beyond those that are kept.
    pub dropped: u64,
    /// What the kernel printed, and, where C++ was run, the sanitizers' own words.
    pub printed: String,
    /// Blocks of all entries that ran to their end.
    pub finished_blocks: u64,
    /// Blocks that were to run, of the entries that were launched; 0 where that is not known. A launch ends early where a block cannot
    /// go on, and where many blocks go wrong: those that are left would say the same.
    pub blocks: u64,
    /// Instructions executed, one for all lanes of a warp; 0 where C++ was run, as the rest.
    pub instructions: u64,
    /// Lanes that were active in them.
    pub lane_instructions: u64,
    /// By what conflicting accesses were ordered, where that was asked for.
    pub paths: Vec<Path>,
    /// What the instructions did, where that was asked for.
    pub profile: Option<Profile>,
}

impl Report {
    /// Blocks that did not run to their end.
    pub fn unfinished(&self) -> u64 {
        self.blocks.saturating_sub(self.finished_blocks)
    }

    /// Whether nothing was found but what is allowed.
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
