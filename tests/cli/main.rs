//! Contract: what the tool prints, writes and returns.
#![cfg(feature = "cli")]

mod arrays;
mod bundle;
mod check;
mod demo;
mod layouts;
mod machine;
mod new;
mod run;
mod shown;
mod streams;
mod tool;
mod typed;
mod words;

#[path = "../support/numpy.rs"]
mod numpy;
#[path = "../../cute-layout/tests/algebra/wrong_input.rs"]
mod wrong_input;
