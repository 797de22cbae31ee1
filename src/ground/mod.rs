//! Small things that everything stands on.

pub mod arch;
pub mod diagnostic;
pub mod digest;
pub mod dtype;
#[cfg_attr(feature = "cuda", allow(dead_code, reason = "a build script has no GPU"))]
pub(crate) mod fence;
pub(crate) mod near;
pub(crate) mod reserved;
pub mod settings;
pub mod units;
pub mod view;
