//! Who knows of which access: clocks, words of memory, and races.

mod broken;
mod cell;
mod known;
pub(super) mod map_proxy;
pub(super) mod order;
pub(super) mod pages;
pub(super) mod paths;
pub(super) mod proxy;
pub(crate) mod race;
pub(super) mod race_async;
pub(super) mod release;
mod tails;
mod touch;
pub(super) mod word;
