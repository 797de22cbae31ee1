//! Copies and barriers that work while threads go on.

pub(super) mod copies;
pub(super) mod flight;
pub(super) mod hopper;
mod maps;
mod mbarrier;
pub(super) mod mbarrier_wait;
mod st_async;
mod tma;
mod tma_move;
mod tracked;
