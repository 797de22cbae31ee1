//! Problems of matrix products on the command line.

use cutemplate::plan::Plan;
use cutemplate::verify::TensorLayout;

use crate::args::Problem;
use crate::output::Failure;

/// The layout of each operand for a problem MxNxK, or MxNxKxL.
pub(crate) fn layouts(plan: &Plan, problem: &Problem) -> Result<Vec<TensorLayout>, Failure> {
    let (m, n, k, l) = match problem.0[..] {
        [m, n, k] => (m, n, k, 1),
        [m, n, k, l] => (m, n, k, l),
        _ => return Err(Failure::message(format_args!("--problem {problem}: a product has extents MxNxK or MxNxKxL"))),
    };
    let layout = |operand: &cutemplate::plan::Operand| {
        let shape = match operand.name {
            "A" => [m, k, l],
            "B" => [k, n, l],
            _ => [m, n, l],
        };
        let layout = operand.layout(&shape[..operand.strides.len().min(3)], None);
        layout.map(TensorLayout::from).ok_or_else(|| {
            Failure::message(format_args!(
                "--problem {problem} does not fit {} {}",
                operand.name,
                operand.stride_text()
            ))
        })
    };
    plan.operands().iter().map(layout).collect()
}
