//! Compiles one kernel of the family.

use cutemplate::build::Config;
use cutemplate::dtype::DType;
use gated_family::Gated;

fn main() {
    Config::new().recipe("gated", &Gated { dtype: DType::Bf16, ..Gated::default() }).compile();
}
