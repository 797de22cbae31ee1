//! Contract: what is planned, written, drawn, predicted, verified and quoted, as far as no compiler and no GPU is needed.

mod apply;
mod bank_counters;
mod choose;
mod expressions;
mod gates;
mod goldens;
mod ladder_data;
mod launch_order;
mod npy_refused;
mod packed;
mod params;
mod pictures;
mod predictions;
mod readme;
mod rejects;
mod verify_check;
mod verify_npy;
mod verify_product;
mod verify_strided;

#[path = "../support/banks/mod.rs"]
mod banks;
#[path = "../support/expr/mod.rs"]
mod expr;
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[path = "../support/ladder.rs"]
mod ladder;
#[cfg(feature = "npy")]
#[path = "../support/numpy.rs"]
mod numpy;
#[path = "../support/variables.rs"]
mod variables;
#[path = "../support/whole.rs"]
mod whole;
