//! Contract: PTX runs as a GPU runs it, bit by bit where IEEE 754 or the manual determine it; every planted defect is found and
//! named; what is right is silent; what is malformed or not run here is refused with its line.
#![cfg(feature = "ptx")]

mod accepted;
mod bench;
mod clusters;
mod cooperative;
mod covered;
mod defects;
mod files;
mod forms;
mod fuzz;
mod hopper;
mod limits;
mod machine;
mod maps;
mod numbers;
mod opcodes;
mod opcodes_matrix;
mod opcodes_video;
mod order;
mod participation;
mod profile;
mod random;
mod rules;
mod safety;
mod staying;
mod tensor_cores;
mod text;
mod tma;
mod tracked;
mod wgmma;

#[path = "../support/banks/mod.rs"]
#[allow(dead_code, reason = "the program of the experiments is for a GPU")]
mod banks;
#[cfg(feature = "build")]
mod catalogue;
#[cfg(feature = "build")]
#[path = "../support/expr/mod.rs"]
mod expr;
#[cfg(feature = "build")]
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[cfg(feature = "build")]
#[path = "../support/made.rs"]
mod made;
#[cfg(feature = "build")]
mod needed;
#[cfg(feature = "build")]
mod own;
#[cfg(feature = "build")]
mod programs;
#[cfg(feature = "build")]
#[path = "../support/judge/ptx_batch.rs"]
mod ptx_batch;
#[cfg(feature = "build")]
mod together;
#[path = "../support/variables.rs"]
mod variables;
#[cfg(feature = "build")]
#[path = "../support/whole.rs"]
mod whole;
