//! Loads, stores and atomics: the addresses of lanes, and the bytes.

pub(super) mod access;
pub(super) mod addresses;
pub(super) mod atomics;
pub(super) mod banks;
pub(super) mod bulk;
mod moves;
pub(super) mod places;
