//! One product, relu(A @ B + bias), as the kernels that the model chooses for two problems.

use cutemplate::arch::Arch;
use cutemplate::build::Config;
use cutemplate::dtype::DType;
use cutemplate::model::Machine;
use cutemplate::recipe::Gemm;
use cutemplate::recipe::product::{Major, Problem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layer = Gemm::of(DType::F16)?.bias(|x| x.relu());
    // The weights, B, lie as a framework keeps them: (N,K) with K contiguous.
    let problem = |m| Problem { b: Major::Col, ..Problem::rows(m, 4096, 4096) };
    let problems = [16, 4096].map(problem);
    Config::new().arch(Arch::Sm80).dispatch_by_model("layer", &layer, &Machine::of(Arch::Sm80), &problems).compile();
    Ok(())
}
