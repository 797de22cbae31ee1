//! The level of each node, and which reductions have a meaning.

use super::{Along, Level, Reduction};
use crate::expr::error::{ExprError, ExprErrorKind};
use crate::expr::op::Node;

/// The level of a node, from those of its operands.
pub(in super::super) fn joined(node: &Node, inputs: &[Level], operands: impl Iterator<Item = Level>) -> Level {
    match node {
        Node::Input(index) => inputs.get(usize::from(*index)).copied().unwrap_or(Level::Element),
        Node::Column => Level::Element,
        // Every row has as many elements.
        Node::Width(Along::Row) => Level::Scalar,
        Node::Width(along) | Node::Reduce(_, along, _) => along.level(),
        _ => operands.max().unwrap_or(Level::Scalar),
    }
}

/// Refuses a node that reads the result of a column.
pub(in super::super) fn is_known(levels: impl IntoIterator<Item = Level>) -> Result<(), ExprError> {
    if !levels.into_iter().any(|level| level == Level::Column) {
        return Ok(());
    }
    let (found, required) = ("a function of a column's result".to_owned(), "the result as an output of its own");
    let because = "the result of a column is known when all rows are done";
    let help = "`(x * r, sum_column(x))`; a kernel behind this one has functions of the sum";
    Err(ExprError::new(ExprErrorKind::Compute, found, required, because, help))
}

/// Refuses a reduction of a value that is the same for several elements.
pub(in super::super) fn fits(reduction: Reduction, along: Along, level: Level) -> Result<(), ExprError> {
    let name = reduction.name();
    exists(name, along)?;
    is_known([level])?;
    if along == Along::Column && !reduction.is_of_columns() {
        let found = format!("`{name}{along}`");
        let because = "the parts of a column are joined in a second kernel, which has these three";
        let (required, help) =
            ("`sum_column`, `max_column` or `min_column`", "reduce along the row, or one of the three");
        return Err(ExprError::new(ExprErrorKind::Compute, found, required, because, help));
    }
    let once = match level {
        Level::Element | Level::Column => return Ok(()),
        Level::Scalar => "is one value in the launch",
        Level::Row => "is one value in a row",
        Level::Group(_) => "is one value in each group",
    };
    let help = match reduction {
        Reduction::Sum => "times `width()` it is a sum; a reduction of the elements gives both",
        Reduction::Max | Reduction::Min if matches!(level, Level::Group(_)) => "reduce the elements: `max(abs(x))`",
        _ => "use the value as it is, or reduce elements",
    };
    let found = format!("`{name}{along}` of what {once}");
    let required = "a value that each element has of its own";
    let because = "a reduction makes one value of the elements of a row or group";
    Err(ExprError::new(ExprErrorKind::Compute, found, required, because, help))
}

/// Refuses groups whose size does not exist.
pub(in super::super) fn exists(name: &str, along: Along) -> Result<(), ExprError> {
    if along.exists() {
        return Ok(());
    }
    let found = format!("`{name}{along}`");
    let required = "groups of a power of two, from 2 to 1024";
    let because = "groups of two sizes nest, and the threads of a group are a part of a warp or a block";
    let help = format!("`{name}_group128`, or `{name}` for the whole row");
    Err(ExprError::new(ExprErrorKind::Compute, found, required, because, help))
}
