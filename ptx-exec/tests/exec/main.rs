//! Contract: PTX runs as on a GPU, bit by bit where IEEE 754 or the manual define the result. Every planted defect is found and named.
//! Correct kernels give no finding. Malformed and unsupported texts are refused with their line.

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
mod ptxas_forms;
mod ratios;
mod rules;
mod safety;
mod speed;
mod tensor_cores;
mod text;
mod tma;
mod tracked;
#[path = "../../../tests/support/variables.rs"]
mod variables;
mod wgmma;
