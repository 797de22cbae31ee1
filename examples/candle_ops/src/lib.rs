//! Kernels of cutemplate as operations of candle: on its storages as they are, with their offsets and strides, in its
//! own stream on a GPU; on the CPU the PTX that nvcc made of the same kernels runs on cutemplate's executor.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use candle_ops::MulRelu;
//!
//! let a = Tensor::new(&[[1_f32, -2.0], [3.0, 4.0]], &Device::Cpu)?;
//! let y = a.apply_op2(&a.t()?, MulRelu)?;
//! assert_eq!(y.to_vec2::<f32>()?, [[1.0, 0.0], [0.0, 16.0]]);
//! # Ok::<(), candle_core::Error>(())
//! ```

mod kernel;
mod ops;
mod rows;
mod storage;

pub use ops::{LinearRelu, MulRelu, RowSums};
pub use rows::{RmsNorm, Softmax};

#[allow(missing_docs)]
mod generated {
    cutemplate::include_kernels!();
}

#[cfg(test)]
mod tests;
