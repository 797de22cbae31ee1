//! Scalar expressions.

pub mod round;
