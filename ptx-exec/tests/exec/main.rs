//! Contract: PTX runs as a GPU runs it, bit by bit where IEEE 754 or the manual determine it; every planted defect is found and
//! named; what is right is silent; what is malformed or not run here is refused with its line.

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
mod rules;
mod safety;
mod tensor_cores;
mod text;
mod tma;
mod tracked;
#[path = "../../../tests/support/variables.rs"]
mod variables;
mod wgmma;
