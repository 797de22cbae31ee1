//! Contract: the layout algebra is its definition. `README.md` of the tests says what each module holds.

mod alloc;
mod atoms;
mod cases;
mod docs;
mod fuzz;
mod input;
mod laws;
mod memory;
mod random;
mod refusals;
mod seeds;

#[global_allocator]
static COUNTED: memory::Counted = memory::Counted;
#[path = "../../../tests/support/variables.rs"]
mod variables;
mod wrong_input;
