//! Contract: what the tool prints, writes and returns.
#![cfg(feature = "cli")]

mod arrays;
mod tool;

#[path = "../support/numpy.rs"]
mod numpy;
