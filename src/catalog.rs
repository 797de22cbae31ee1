//! The catalogue: the kernels that every family recommends, compiled by this crate's own build script.
//!
//! ```no_run
//! use cutemplate::launch::{Gpu, Kernel};
//! use cutemplate::recipe::ElementwiseAdd;
//!
//! let gpu = Gpu::find()?;
//! let kernel = Kernel::<ElementwiseAdd>::load(&gpu, &cutemplate::catalog::elementwise_add_bf16::ARTIFACT)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

crate::include_kernels!();
