//! References of families: products of matrices, functions at each coordinate, row programs, attention, and any function of
//! coordinates.

mod baseline;
mod blocks;
mod each;
mod elementwise;
mod grouping;
mod indexed;
mod product;
mod quantised;
mod rows;
mod softmax;
mod spread;
mod sums;
pub(crate) mod tf32;

pub use each::{At, Each};
pub use rows::RowProgram;
pub use softmax::{Softmax, Visible};
