//! The build script of the README: one kernel, with choices of its own.

use cutemplate::{build::Config, dtype::DType, recipe::ElementwiseAdd};

fn main() {
    let recipe = ElementwiseAdd { dtype: DType::F32, unroll: 4, ..Default::default() };
    Config::new().recipe("vector_add", &recipe).compile();
}
