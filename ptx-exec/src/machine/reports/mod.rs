//! Findings by cause, counts of instructions, and what a kernel prints.

pub(crate) mod causes;
pub(crate) mod profile;
pub(crate) mod report;
