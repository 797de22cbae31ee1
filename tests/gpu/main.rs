//! Contract: launches are refused or right: against a stand-in for the driver, and on a GPU where there is one.
#![cfg(feature = "cuda")]

mod append;
mod apply;
mod attention;
mod baseline;
mod elementwise;
mod emitted;
mod foreign;
mod gemm;
mod launch;
mod lent;
mod load;
mod own;
mod products;
mod ptxas;
mod rows;
mod sanitize;
mod sgemm;
mod streams;
mod sum;
mod top_k;
mod w4a16;

#[cfg(feature = "build")]
#[path = "../support/gpu_batch.rs"]
mod batch;
#[cfg(target_os = "linux")]
#[path = "../support/driver.rs"]
mod driver;
#[path = "../support/expr/mod.rs"]
mod expr;
#[cfg(feature = "build")]
#[path = "../support/gpu.rs"]
mod gpu;
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[cfg(feature = "cli")]
#[path = "../../src/cli/lab/mod.rs"]
#[expect(unused_imports, reason = "the tool uses more of it")]
mod lab;
#[cfg(target_os = "linux")]
#[path = "../support/order.rs"]
mod order;
#[path = "../support/projection.rs"]
mod projection;
#[path = "../support/rows/mod.rs"]
#[expect(unused_imports, reason = "`plans` takes more of it")]
mod row_programs;
#[path = "../support/rows/recipes.rs"]
mod row_recipes;
#[path = "../support/variables.rs"]
mod variables;
