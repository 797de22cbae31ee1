//! CuTe layouts and kernel recipes in Rust, proved before they are written as readable CuTe C++, compiled by nvcc,
//! launched with types.
#![cfg_attr(not(feature = "emit"), allow(dead_code, reason = "some things are decided for the text alone"))]

// Generated modules, and what unit tests share with the others, name this crate as a user's crate does.
#[cfg(any(test, feature = "catalog"))]
extern crate self as cutemplate;

pub mod algebra_tool;
pub mod arch;
pub mod artifact;
pub mod atom;
#[cfg(feature = "build")]
pub mod build;
pub mod bundle;
#[cfg(feature = "catalog")]
pub mod catalog;
pub mod diagnostic;
pub mod digest;
#[cfg(feature = "draw")]
pub mod draw;
pub mod dtype;
#[cfg(feature = "emit")]
pub mod emit;
#[cfg(any(feature = "ptx", feature = "host"))]
pub mod exec;
pub mod expr;
pub mod fatbin;
#[cfg(not(feature = "cuda"))]
mod fence;
#[cfg(any(feature = "dlpack", feature = "ndarray"))]
pub mod interop;
#[cfg(feature = "cuda")]
pub mod launch;
pub mod layout;
pub mod model;
mod near;
pub mod plan;
pub mod recipe;
pub mod settings;
#[cfg(feature = "build")]
mod store;
pub mod tiling;
pub mod units;
pub mod verify;
pub mod view;

#[cfg(feature = "cuda")]
use launch as fence;
