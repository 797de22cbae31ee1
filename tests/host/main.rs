//! Contract: the emitted text is right on the C++ executor, and as PTX, and what is wrong with a text is found there.
#![cfg(all(feature = "host", feature = "ptx"))]

mod apply;
mod asynchronous;
mod bounds;
mod by_hand;
mod elementwise;
mod entries;
mod errors;
mod expressions;
mod races;
mod sgemm;
mod stuck;
mod sum;
mod together;
mod typed;
mod variations;

#[path = "../support/host/batch.rs"]
mod batch;
#[path = "../support/expr/mod.rs"]
mod expr;
#[path = "../support/host/mod.rs"]
mod host_common;
#[path = "../support/host/judge.rs"]
mod judge;
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[path = "../support/made.rs"]
mod made;
#[path = "../support/host/ptx_batch.rs"]
mod ptx_batch;
#[path = "../support/host/ptx_set.rs"]
mod ptx_set;
#[path = "../support/variables.rs"]
mod variables;
#[path = "../support/whole.rs"]
mod whole;
