//! The part of a view that orders a launch against other work on its memory. Without a GPU there is nothing to order;
//! with the feature `cuda`, these are the traits of the same name in `launch`.

/// Memory that is read.
pub(crate) trait Fence: core::fmt::Debug + Send + Sync {}

/// Memory that is written.
pub(crate) trait FenceMut: Fence {}
