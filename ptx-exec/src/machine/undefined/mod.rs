//! Uninitialised memory and values.

pub(super) mod check;
pub(super) mod defined;
pub(super) mod discard;
pub(super) mod origin;
pub(crate) mod shadow;
