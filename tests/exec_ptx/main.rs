//! Contract: our kernels' PTX is right on the executor in every mode, by jobs and by typed views; each of their barriers and waits is
//! needed; what the plans predict is what the executor counts; asked for, programs of others are right and silent, too.
#![cfg(feature = "ptx")]

#[cfg(feature = "build")]
mod attention;
mod profile;
mod random;
mod staying;

#[path = "../support/banks/mod.rs"]
#[allow(dead_code, reason = "the program of the experiments is for a GPU")]
mod banks;
#[cfg(feature = "build")]
#[path = "../../ptx-exec/tests/exec/bench.rs"]
mod bench;
#[cfg(feature = "build")]
mod catalogue;
#[cfg(feature = "build")]
#[path = "../support/expr/mod.rs"]
mod expr;
#[cfg(feature = "build")]
mod grouped;
#[cfg(feature = "build")]
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[cfg(feature = "build")]
#[path = "../support/made.rs"]
mod made;
#[cfg(feature = "build")]
mod narrow;
#[cfg(feature = "build")]
mod needed;
#[cfg(feature = "build")]
mod own;
#[cfg(feature = "build")]
mod pairs;
#[cfg(feature = "build")]
mod programs;
#[cfg(feature = "build")]
#[path = "../support/judge/ptx_batch.rs"]
mod ptx_batch;
#[cfg(feature = "build")]
#[path = "../../ptx-exec/tests/exec/ratios.rs"]
mod ratios;
#[cfg(feature = "build")]
mod speed;
#[cfg(feature = "build")]
mod together;
#[path = "../support/variables.rs"]
mod variables;
#[cfg(feature = "build")]
#[path = "../support/whole.rs"]
mod whole;
