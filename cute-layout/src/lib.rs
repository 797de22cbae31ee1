//! CuTe's layout algebra in Rust, exact: every accepted result satisfies its law at every coordinate.
//!
//! [`layout`] has the operations, under CuTe's names, and their laws as code that checks any result. [`atom`] has the MMA
//! and copy atoms, tiled MMAs and tiled copies. [`algebra_tool`] applies operations by name, explains results, and answers
//! a line protocol that tests of other implementations can drive.
//!
//! ```
//! use cute_layout::layout::{Layout, composition, laws};
//!
//! let (a, b): (Layout, Layout) = ("(8,16):(16,1)".parse()?, "(4,4):(2,16)".parse()?);
//! let r = composition(&a, &b)?;
//! assert_eq!(r.to_string(), "(4,4):(32,2)");
//! // The law by itself: r(c) = a(b(c)) at every coordinate. It judges a result from anywhere.
//! laws::composition(&a, &b, &r)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The README's snippets, compiled and run as tests.
#[cfg(all(doctest, feature = "protocol"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The chapter on cross-validation, compiled.
#[cfg(all(doctest, feature = "protocol"))]
#[doc = include_str!("../docs/cross_validation.md")]
pub struct CrossValidation;

pub mod algebra_tool;
pub mod atom;
pub mod layout;
mod near;
