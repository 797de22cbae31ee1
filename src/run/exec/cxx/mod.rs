//! The C++ executor: runs the emitted CUDA C++ as it stands, for correctness, where there is no GPU.
//!
//! The text of a kernel is compiled by the host's C++ compiler against the CUTLASS headers and a shim that supplies
//! what CUDA C++ adds to C++: `threadIdx`, `__shared__`, `__syncthreads`, the warp intrinsics, atomics. Each CUDA
//! thread is a fiber, a barrier is a switch, shared memory belongs to the block. Every run is a process of its own, so
//! that a crash or a hang is a verdict and not the caller's end.
//!
//! | [`Mode`] | compiled with | finds |
//! |---|---|---|
//! | [`Mode::Plain`] | `-O2` | wrong results, crashes, deadlocks, hangs, far strays |
//! | [`Mode::Bounds`] | ASan, UBSan | accesses outside elements, variables, register arrays; undefined behaviour |
//! | [`Mode::Races`] | TSan | unordered accesses, in a block or across blocks; accesses outside elements, variables |
//!
//! An element is an element: the gap of a padded leading dimension is outside, whatever its size or alignment. *Races*
//! uses the instrumentation of ThreadSanitizer with a runtime of its own, which knows CUDA's order of accesses exactly;
//! it also finds reads of shared memory, and of a workspace, that nobody wrote. Shared memory is filled with NaN before each
//! block, a workspace before each launch. The entries of a kernel run one after the other.
//!
//! Asynchronous copies (`cp.async`, by CuTe's operations for SM80) arrive as late as PTX lets them: when their thread waits for
//! their group. A wait that is too weak so gives a wrong result, and *races* names the copy that was still on its way.
//!
//! What is not modelled: ordering between blocks by atomics and fences (*races* calls it a race), and whatever else CuTe
//! reaches only through PTX.
//!
//! [`Program`] is a kernel's text compiled for one mode; [`Kernel`] launches a recipe's kernel with typed views.

mod arena;
mod compile;
mod declared;
mod elf;
mod error;
mod headers;
mod options;
mod process;
mod program;
mod report;
mod runtime;
mod symbols;

pub use error::{Failure, FailureKind};
pub use options::{Mode, Options};
pub use program::{Program, Source};

/// A recipe's kernel, compiled for the CPU.
pub type Kernel<R> = super::Kernel<R, Program>;
