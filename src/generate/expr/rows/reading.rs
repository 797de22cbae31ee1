//! What the inputs and outputs of a row program belong to.

use super::cones::Graph;
use super::{Along, Level, levels};
use crate::expr::error::{ExprError, ExprErrorKind};
use crate::expr::op::Id;
use crate::expr::{Compute, Function};

/// How a row program is read: what its inputs and outputs belong to, in which type it is computed, what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// What each input has one value for: an element, a group of elements, a row, or the launch.
    pub inputs: Vec<Level>,
    /// What each output is written for; where nothing is said, what it has one value for, and each element where that is the launch.
    pub outputs: Vec<Option<Level>>,
    /// f32 or f64.
    pub compute: Compute,
    /// Whether results of costly operations are kept for later traversals, in registers of a schedule that holds a whole row. Else they
    /// are computed again.
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

    /// What each output is written for.
    pub(super) fn levels_of_outputs(&self, graph: &Graph<'_>) -> Result<Vec<Level>, Vec<ExprError>> {
        let of = |(number, (id, wanted)): (usize, (&Id, &Option<Level>))| {
            let own = graph.level(*id);
            match wanted {
                None if own == Level::Scalar => Ok(Level::Element),
                None => Ok(own),
                Some(wanted) if *wanted >= own => Ok(*wanted),
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
