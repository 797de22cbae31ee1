//! Code that the families of matrix products share: words, problems, records, and the choice of a kernel for a problem.

mod args;
mod cut;
#[cfg(feature = "emit")]
mod dispatch;
mod epilogue;
mod params;
mod predict;
mod problem;
mod record;
#[cfg(feature = "emit")]
mod text;
mod words;

pub use crate::settings::UnknownWord;
pub(crate) use args::call;
pub use args::{Gives, ProductArgs, Takes};
pub(crate) use cut::{F32, Parts, REDUCE_THREADS};
#[cfg(feature = "emit")]
pub use dispatch::dispatch_module;
pub(crate) use epilogue::Epilogue;
pub(crate) use params::{Fields, aligned, number, stride_params};
pub(crate) use predict::Launch;
pub use problem::Problem;
pub use record::{Measured, Record};
#[cfg(feature = "emit")]
pub(crate) use text::{EpilogueRead, EpilogueText, Tensor};
pub use words::{Extents, Major};
