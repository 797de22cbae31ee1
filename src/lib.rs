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
//! The crate, with the features `cuda` and `ptx`, includes what that left, one module a kernel. It launches views of memory on the
//! GPU, or on the executor where there is none:
//!
//! ```ignore
//! cutemplate::include_kernels!();
//!
//! let device = Device::auto();
//! let kernel = vector_add::load(&device)?;
//! let (on_a, on_b, mut on_c) = (device.put(&a)?, device.put(&b)?, device.zeros::<f32>(a.len())?);
//! let rows = ViewLayout::matrix([m, n], n);
//! kernel.launch(vector_add::args(on_a.view(rows), on_b.view(rows), on_c.view_mut(rows)))?;
//! ```
//!
//! Crates without nvcc take compiled kernels from a [`bundle`].
//!
//! # Chapters
//!
//! - [tutorial](https://github.com/cutemplate/cutemplate/blob/main/docs/tutorial.md): a crate of your own, from zero
//! - [elementwise](https://github.com/cutemplate/cutemplate/blob/main/docs/elementwise.md): fused functions of any tensors
//! - [rows](https://github.com/cutemplate/cutemplate/blob/main/docs/rows.md): functions of whole rows
//! - [gemm](https://github.com/cutemplate/cutemplate/blob/main/docs/gemm.md): products on tensor cores
//! - [lowprec](https://github.com/cutemplate/cutemplate/blob/main/docs/lowprec.md): products of 8-bit types, 4-bit weights
//! - [attention](https://github.com/cutemplate/cutemplate/blob/main/docs/attention.md): attention forward, and keys in pages
//! - [sgemm](https://github.com/cutemplate/cutemplate/blob/main/docs/sgemm.md): products in f32, as a ladder
//! - [dispatch](https://github.com/cutemplate/cutemplate/blob/main/docs/dispatch.md): one product, many problems
//! - [own kernels](https://github.com/cutemplate/cutemplate/blob/main/docs/own_kernels.md): CUDA C++ of your own
//! - [families](https://github.com/cutemplate/cutemplate/blob/main/docs/families.md): kernel families of your own
//! - [executor](https://github.com/cutemplate/cutemplate/blob/main/docs/executor.md): tests without a GPU
//! - [bundles](https://github.com/cutemplate/cutemplate/blob/main/docs/bundles.md): crates that build without nvcc
//! - [interop](https://github.com/cutemplate/cutemplate/blob/main/docs/interop.md): cudarc, ndarray, DLPack, candle
//! - [building](https://github.com/cutemplate/cutemplate/blob/main/docs/building.md): tools, cache and CI
//! - [layouts](https://github.com/cutemplate/cutemplate/blob/main/docs/layouts.md): the layout algebra
//! - [glossary](https://github.com/cutemplate/cutemplate/blob/main/docs/glossary.md): words
//!
//! # Modules
//!
//! | for | modules |
//! |---|---|
//! | describing kernels | [`mod@recipe`]: the families and their settings; [`expr`]: functions; [`cuda`]: C++ of your own; [`settings`], [`dtype`], [`arch`], [`units`] |
//! | deciding and proving | [`plan`]: all decisions, and the rule of a launch; [`tiling`]: what the threads do; [`tensor`], [`mod@reference`]; [`model`]: counts and times; [`diagnostic`]: refusals |
//! | layouts | [`layout`], [`atom`]: CuTe's algebra, its copy and MMA atoms; [`algebra_tool`]: expressions, derivations; [`draw`]: pictures |
//! | building and shipping | [`build`]: for `build.rs`; [`emit`]: C++ text; [`bundle`], [`artifact`], [`fatbin`], [`digest`]: what ships |
//! | running | [`device`]: GPU or executor by one call; [`launch`]: GPUs; [`exec`]: the executor; [`view`]: typed views; [`verify`]: references and comparisons; [`interop`]: tensors of others |
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
//! | `CUTEMPLATE_KERNELS` | a build sets it for the crate: the file that [`include_kernels!`] includes | that macro says so |
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

/// The snippets of the chapter on rows, compiled and run.
#[cfg(all(doctest, feature = "build"))]
#[doc = include_str!("../docs/rows.md")]
pub struct Rows;

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
