//! Problems of matrix products on the command line.

use cutemplate::plan::Plan;
use cutemplate::verify::TensorLayout;

use crate::args::Problem;
use crate::output::Failure;

/// M, N, K and L of a problem MxNxK, or MxNxKxL.
fn all(problem: &Problem) -> Result<[i64; 4], Failure> {
    match problem.0[..] {
        [m, n, k] => Ok([m, n, k, 1]),
        [m, n, k, l] => Ok([m, n, k, l]),
        _ => Err(Failure::message(format_args!("--problem {problem}: a product has extents MxNxK or MxNxKxL"))),
    }
}

/// M, N and K, which are positive.
pub(crate) fn extents(problem: &Problem) -> Result<[u64; 3], Failure> {
    let [m, n, k, _] = all(problem)?;
    Ok([m, n, k].map(i64::unsigned_abs))
}

/// The layout of each operand.
pub(crate) fn layouts(plan: &Plan, problem: &Problem) -> Result<Vec<TensorLayout>, Failure> {
    let [m, n, k, l] = all(problem)?;
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
