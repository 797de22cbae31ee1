//! Loops over the 32 lanes of a warp.

pub(super) mod predicates;
pub(super) mod rows;
pub(super) mod vector;
