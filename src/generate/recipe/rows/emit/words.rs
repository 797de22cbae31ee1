//! How the text names what a step reads and makes.

use super::super::decide::Decision;
use crate::dtype::DType;
use crate::expr::rows::{Along, Level, Made, Origin, Part, Reduction, Source};
use crate::expr::{Compute, Helpers};

/// Names, for a step that has elements, groups, or one row.
pub(super) struct Words<'a> {
    pub(super) decision: &'a Decision,
    /// Conversions that are called.
    pub(super) helpers: Helpers,
}

/// The C++ name of a reduction.
pub(super) fn op(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "Sum",
        Reduction::Prod => "Product",
        Reduction::Max => "Max",
        Reduction::Min => "Min",
        Reduction::Any => "Any",
        Reduction::All => "All",
        Reduction::ArgMax => "Arg<true>",
        Reduction::ArgMin => "Arg<false>",
    }
}

impl Words<'_> {
    /// Groups of that size in a vector.
    pub(super) fn groups(&self, size: u32) -> i64 {
        (self.decision.schedule.vec / i64::from(size)).max(1)
    }

    /// The coordinate of an element's group.
    pub(super) fn group(&self, size: u32) -> String {
        if self.groups(size) > 1 { format!("v / {size}, c") } else { "_0{}, c".to_owned() }
    }

    /// A value, where elements, groups or rows read it.
    pub(super) fn value(&self, value: usize) -> String {
        match self.decision.passes.values().get(value).map(|value| value.level) {
            Some(Level::Group(size)) => format!("group{value}({})", self.group(size)),
            _ => format!("value{value}"),
        }
    }

    fn source(&mut self, source: Source) -> String {
        match source {
            Source::Input(input) => {
                let tensor = &self.decision.tensors[input];
                let of = match tensor.level {
                    Level::Element => format!("r{}(v, _0{{}}, c)", tensor.name),
                    _ => format!("row{}", tensor.name),
                };
                self.helpers.load(tensor.spec.dtype, &of)
            }
            Source::Column => "Number(column)".to_owned(),
            Source::Width(Along::Row | Along::Column) => "Number(params.n)".to_owned(),
            Source::Width(Along::Group(size)) => {
                format!("Number(cute::min({size}, params.n - column / {size} * {size}))")
            }
            Source::Kept(kept) => format!("kept{kept}(v, c)"),
            Source::Value(value) => self.value(value),
        }
    }

    /// The arguments of a step's function.
    pub(super) fn arguments(&mut self, part: &Part) -> String {
        let all: Vec<String> = part.reads.iter().map(|source| self.source(*source)).collect();
        all.join(", ")
    }

    /// The scalars that a step's function keeps.
    pub(super) fn scalars(&self, part: &Part) -> String {
        let name = |scalar: &usize| format!("params.{}", self.decision.scalars[*scalar]);
        part.scalars.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The type that it is stored as, and read as no other.
    pub(super) fn stored_type(&self, made: &Made) -> Option<DType> {
        match *made {
            Made::Output(output) if matches!(self.decision.passes.outputs()[output].from, Origin::Elements) => {
                Some(self.decision.output(output).spec.dtype)
            }
            _ => None,
        }
    }

    /// Whether an instruction rounds two numbers at once to an output's type.
    pub(super) fn rounds_pairs(&self, output: usize) -> bool {
        let halves = matches!(self.decision.output(output).spec.dtype, DType::F16 | DType::Bf16);
        halves && self.decision.passes.compute() == Compute::F32 && self.decision.schedule.vec % 2 == 0
    }

    /// An output's value in its own type.
    pub(super) fn stored(&mut self, output: usize, value: &str) -> String {
        self.helpers.store(self.decision.output(output).spec.dtype, value)
    }
}

/// What a step's function gives as one of so many outputs.
pub(super) fn result(step: usize, outputs: usize, output: usize) -> String {
    if outputs == 1 { format!("y{step}") } else { format!("get<{output}>(y{step})") }
}
