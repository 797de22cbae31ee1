//! How a row program is read.

use super::cones::Graph;
use super::{Along, Level, levels};
use crate::expr::error::{ExprError, ExprErrorKind};
use crate::expr::op::Id;
use crate::expr::{Compute, Function};

/// The levels of a row program's inputs and outputs, the type to compute in, and whether results are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// The level of each input.
    pub inputs: Vec<Level>,
    /// The level that each output is written at; `None` stands for its own level, and for elements if that is the launch.
    pub outputs: Vec<Option<Level>>,
    /// f32 or f64.
    pub compute: Compute,
    /// Whether results of costly operations are kept for later traversals. A schedule that does not hold the row computes them again.
    pub keep: bool,
}

impl Reading {
    /// Inputs of elements, computed in f32 and kept.
    pub fn of(function: &Function) -> Self {
        Self {
            inputs: vec![Level::Element; function.inputs()],
            outputs: vec![None; function.outputs()],
            compute: Compute::F32,
            keep: true,
        }
    }
}

impl Reading {
    pub(super) fn fits(&self, function: &Function) -> Result<(), ExprError> {
        let error = |found: String, required: String, because: &str, help: &str| {
            Err(ExprError::new(ExprErrorKind::Signature, found, required, because, help))
        };
        let counts =
            [("inputs", self.inputs.len(), function.inputs()), ("outputs", self.outputs.len(), function.outputs())];
        for (what, found, required) in counts {
            if found != required {
                let because = format!("the function has {required} {what}");
                return error(format!("{found} {what}"), required.to_string(), &because, "say it for each of them");
            }
        }
        for level in self.inputs.iter().copied().chain(self.outputs.iter().copied().flatten()) {
            if let Level::Group(size) = level {
                levels::exists("operand", Along::Group(size))?;
            }
        }
        if self.inputs.contains(&Level::Column) {
            return error(
                "an input for a column".into(),
                "an input of elements".into(),
                "a row of weights is read with the elements of each row",
                "a matrix whose rows are one: stride 0",
            );
        }
        if self.compute == Compute::I32 {
            return error(
                "a row program in i32".into(),
                "f32 or f64".into(),
                "sums of integers would wrap",
                "compute in f64, which adds integers exactly up to 2^53",
            );
        }
        Ok(())
    }

    /// The level that each output is written at.
    pub(super) fn levels_of_outputs(&self, graph: &Graph<'_>) -> Result<Vec<Level>, Vec<ExprError>> {
        let of = |(number, (id, wanted)): (usize, (&Id, &Option<Level>))| {
            let own = graph.level(*id);
            match wanted {
                None if own == Level::Scalar => Ok(Level::Element),
                None => Ok(own),
                // A column's result has one place, and nothing else has such a place.
                Some(wanted) if *wanted >= own && (*wanted == Level::Column) == (own == Level::Column) => Ok(*wanted),
                Some(wanted) => Err(ExprError::new(
                    ExprErrorKind::Signature,
                    format!("output {number} for {wanted}, with a value for {own}"),
                    format!("one for {own}"),
                    "values that differ cannot be written to one place",
                    "reduce it, or give the output more modes",
                )),
            }
        };
        let all = graph.function.output_ids().iter().zip(&self.outputs).enumerate().map(of);
        let (levels, errors): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
        match errors.is_empty() {
            true => Ok(levels.into_iter().flatten().collect()),
            false => Err(errors.into_iter().filter_map(Result::err).collect()),
        }
    }
}
