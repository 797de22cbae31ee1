//! Blocks, warps and lanes: they take turns, meet and wait.

mod barrier;
pub(super) mod block;
mod budget;
pub(super) mod cluster;
pub(super) mod lanes;
mod meeting;
mod parting;
mod polls;
pub(super) mod run;
mod step;
pub(super) mod warp;
