//! Executors: kernels run, and are judged, where there is no GPU.

mod bound;
pub mod ptx;

pub use bound::{TensorMemory, bind};
