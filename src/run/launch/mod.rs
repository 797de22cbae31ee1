//! Kernels on a GPU: find it, load a fatbin, launch with typed views.
//!
//! The CUDA driver is loaded on first use. So this module compiles without one, and says what is missing. [`Gpu::find`]
//! is the way in. A program that has a context uses [`Gpu::with_context`] or [`Gpu::from_raw_context`].
//!
//! ```
//! use cutemplate::launch::Gpu;
//!
//! match Gpu::find() {
//!     Ok(gpu) => println!("{gpu}"),
//!     Err(none) => println!("{none}"),
//! }
//! ```
//!
//! A launch is safe. [`Kernel::launch`] takes views of borrowed memory, checks each of them against the plan, and orders
//! the kernel after earlier work on that memory and later work after the kernel:
//!
//! ```no_run
//! use cutemplate::artifact::Artifact;
//! use cutemplate::launch::{Gpu, Kernel};
//! use cutemplate::recipe::ElementwiseAdd;
//! use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
//! use cutemplate::view::{View, ViewMut};
//!
//! # fn run(artifact: &Artifact<'_>) -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = Gpu::find()?;
//! let kernel = Kernel::<ElementwiseAdd>::load(&gpu, artifact)?;
//! let stream = gpu.stream();
//! let a = stream.clone_htod(&[1.0_f32; 6])?;
//! let b = stream.clone_htod(&[2.0_f32; 6])?;
//! let mut c = stream.alloc_zeros::<f32>(6)?;
//! kernel.launch(
//!     &stream,
//!     ElementwiseAddArgs {
//!         a: View::device(&a, [2, 3], 3),
//!         b: View::device(&b, [2, 3], 3),
//!         c: ViewMut::device(&mut c, [2, 3], 3),
//!     },
//! )?;
//! assert_eq!(stream.clone_dtoh(&c)?, [3.0; 6]);
//! # Ok(())
//! # }
//! ```

mod buffer;
mod entry;
mod error;
mod gpu;
#[cfg(feature = "dlpack")]
mod in_stream;
mod kernel;
mod library;
mod loaded;
mod tensor_map;
mod timing;
mod view;
mod workspace;

pub use buffer::DeviceTensor;
pub use entry::Resources;
pub use error::{DriverError, LaunchError, LoadError};
pub use gpu::{Gpu, NoGpu};
#[cfg(feature = "dlpack")]
pub(crate) use in_stream::InStream;
pub use kernel::{AnyKernel, Kernel};
pub use library::has_library;
pub use loaded::Loaded;
pub use timing::{Protocol, Samples, Subject, interleave};
pub use view::{Fence, FenceMut, Guard, Memory, MemoryMut};

/// The driver's Rust bindings, in the version that this module's types come from.
pub use cudarc;
