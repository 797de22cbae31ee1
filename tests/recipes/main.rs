//! Contract: the kernel of any accepted recipe is right as PTX, and what is wrong with a text is found there.
#![cfg(all(feature = "build", feature = "ptx"))]

mod append;
mod apply;
mod attention;
mod expressions;
mod rows;
mod rows_known;
mod rows_random;
mod sgemm;
mod sum;
mod together;
mod top_k;
mod turned;
mod variations;
mod w4a16;

#[path = "../support/expr/mod.rs"]
mod expr;
#[path = "../support/judge/mod.rs"]
mod judge;
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[path = "../support/made.rs"]
mod made;
#[path = "../support/judge/ptx_batch.rs"]
mod ptx_batch;
#[path = "../support/judge/ptx_set.rs"]
mod ptx_set;
#[path = "../support/rows/mod.rs"]
#[expect(unused_imports, reason = "`plans` takes more of it")]
mod row_programs;
#[path = "../support/rows/recipes.rs"]
mod row_recipes;
#[path = "../support/variables.rs"]
mod variables;
#[path = "../support/whole.rs"]
mod whole;
