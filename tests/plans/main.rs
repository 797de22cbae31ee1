//! Contract: what is planned, written, drawn, predicted, verified and quoted, as far as no compiler and no GPU is needed.

mod apply;
mod bank_counters;
mod choose;
mod emptied;
mod empty;
mod expressions;
mod gates;
mod goldens;
mod heads;
mod ladder_data;
mod launch_order;
mod npy_refused;
mod packed;
mod params;
mod pictures;
mod pictures_fuzz;
mod predictions;
mod readme;
mod rejects;
mod row_presets;
mod rows;
mod verify_append;
mod verify_attention;
mod verify_check;
mod verify_npy;
mod verify_product;
mod verify_strided;

#[path = "../support/banks/mod.rs"]
mod banks;
#[path = "../support/expr/mod.rs"]
mod expr;
#[path = "../../cute-layout/tests/algebra/fuzz/grammar.rs"]
#[allow(dead_code, reason = "the fuzz of the algebra uses the rest")]
mod grammar;
#[path = "../support/kernels/mod.rs"]
mod kernels;
#[path = "../support/ladder.rs"]
mod ladder;
#[path = "../../cute-layout/tests/algebra/memory.rs"]
#[allow(dead_code, reason = "the fuzz of the algebra uses the rest")]
mod memory;
#[cfg(feature = "npy")]
#[path = "../support/numpy.rs"]
mod numpy;
#[path = "../../cute-layout/tests/algebra/random.rs"]
mod random;
#[path = "../support/rows/mod.rs"]
mod row_programs;
#[path = "../support/variables.rs"]
mod variables;
#[path = "../../cute-layout/tests/algebra/fuzz/watch.rs"]
mod watch;
#[path = "../support/whole.rs"]
mod whole;

#[global_allocator]
static COUNTED: memory::Counted = memory::Counted;
