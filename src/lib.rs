//! CuTe layouts and kernel recipes in Rust, proved before they are written as CuTe C++.

pub mod layout;
