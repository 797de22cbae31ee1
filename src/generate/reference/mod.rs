//! References of families: products of matrices, functions at each coordinate, sums along rows.

mod baseline;
mod elementwise;
mod product;
mod rows;
mod sums;
pub(crate) mod tf32;

pub use rows::RowSum;
