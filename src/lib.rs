//! CuTe layouts and kernel recipes in Rust, proved before they are written as readable CuTe C++, compiled by nvcc,
//! launched with types.
//!
//! # Quick start
//!
//! A recipe is planned, or refused with every reason; the plan prints whole:
//!
//! ```
//! use cutemplate::arch::Targets;
//! use cutemplate::dtype::DType;
//! use cutemplate::recipe::{ElementwiseAdd, Recipe};
//!
//! let recipe = ElementwiseAdd { dtype: DType::F32, ..Default::default() };
//! let plan = recipe.plan(&Targets::default())?;
//! println!("{plan}");
//! # Ok::<(), cutemplate::diagnostic::PlanError>(())
//! ```
//!
//! `build.rs`, with the feature `build`, writes its C++ and compiles it, or says which tool is missing:
//!
//! ```no_run
//! # #[cfg(feature = "build")] {
//! use cutemplate::{build::Config, dtype::DType, recipe::ElementwiseAdd};
//! let recipe = ElementwiseAdd { dtype: DType::F32, ..Default::default() };
//! Config::new().recipe("vector_add", &recipe).compile();
//! # }
//! ```
//!
//! The crate, with the feature `cuda`, includes what that left, one module a kernel, and launches views of memory that
//! it owns:
//!
//! ```ignore
//! cutemplate::include_kernels!();
//!
//! let gpu = Gpu::find()?;
//! let kernel = Kernel::load(&gpu, &vector_add::ARTIFACT)?;
//! kernel.launch(&gpu.stream(), vector_add::args(a, b, c))?;
//! ```
//!
//! Crates without nvcc take compiled kernels from a [`bundle`]; tests run them without a GPU on an executor
//! (`exec::ptx`).
//!
//! # Variables
//!
//! | variable | what it says | where it is not set |
//! |---|---|---|
//! | `CUTEMPLATE_FETCH=1` | missing CUTLASS and nvcc are fetched, once for a user: pinned wheels, 270 MB, by python3 with pip | a build without them fails and says so |
//! | `CUTEMPLATE_STUB=1` | builds make stubs, and look for no tool | kernels are compiled |
//! | `CUTEMPLATE_CACHE_DIR` | where compiled kernels and fetched tools lie | `cutemplate` in the user's directory of caches |
//! | `CUTEMPLATE_CACHE_SIZE` | what kernels in it may take together, `20G` | 10 GiB |
//! | `CUTEMPLATE_NVCC_LAUNCHER` | what starts nvcc where it reads CUDA C++: `sccache` | nothing |
//! | `CUTEMPLATE_BUNDLE=write` | a build compiles and writes its bundle (`build::Config::bundle`) | it takes the one that is there |
//! | `CUTLASS_PATH`, `NVCC`, `CUDA_HOME`, `CUDA_PATH`, `CXX` | where the tools are | `PATH` and the usual places |
//! | `NVCC_PREPEND_FLAGS`, `NVCC_APPEND_FLAGS`, `NVCC_CCBIN`, `CPATH` | what nvcc reads itself; part of every key | |
//! | `NUM_JOBS`, cargo's jobserver | how many compilers run at once, within memory | cores |
#![cfg_attr(not(feature = "build"), allow(dead_code, reason = "some things are decided for texts and builds alone"))]

/// The README's snippets, compiled and run as tests.
#[cfg(all(doctest, feature = "build"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The build script of the chapter on kernels of one's own, compiled.
#[cfg(all(doctest, feature = "build"))]
#[doc = include_str!("../docs/own_kernels.md")]
pub struct OwnKernels;

/// The build scripts of the chapter on dispatch, compiled.
#[cfg(all(doctest, feature = "build"))]
#[doc = include_str!("../docs/dispatch.md")]
pub struct Dispatch;

/// The tutorial's build script, compiled.
#[cfg(all(doctest, feature = "build"))]
#[doc = include_str!("../docs/tutorial.md")]
pub struct Tutorial;

// Generated modules, the command line, and what unit tests share with the others, name this crate as a user's crate does.
#[cfg(any(test, feature = "catalog", feature = "cli"))]
extern crate self as cutemplate;

pub mod build;
#[cfg(feature = "catalog")]
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "draw")]
pub mod draw;
mod generate;
mod ground;
mod run;

#[cfg(feature = "build")]
use build::store;
pub use build::{artifact, bundle, fatbin};
pub use cute_layout::{algebra_tool, atom, layout};
#[cfg(feature = "emit")]
pub use generate::emit;
use generate::int;
pub use generate::{cuda, expr, model, plan, recipe, reference, tensor, tiling};
#[cfg(not(feature = "cuda"))]
use ground::fence;
pub use ground::{arch, diagnostic, digest, dtype, settings, units, view};
use ground::{near, reserved};
#[cfg(feature = "cuda")]
use launch as fence;
#[cfg(all(feature = "cuda", feature = "ptx"))]
pub use run::device;
#[cfg(feature = "ptx")]
pub use run::exec;
#[cfg(any(feature = "dlpack", feature = "ndarray"))]
pub use run::interop;
#[cfg(feature = "cuda")]
pub use run::launch;
pub use run::verify;
