//! Which number of a launch is out of range, in the words of its declaration.

use super::super::given::Tensors;
use super::super::params::{ParamStruct, ParamType};
use super::Rule;
use crate::arch::Arch;
use crate::int::{Int, Step};
use crate::view::ViewRef;

impl Rule {
    /// The first number that does not fit, with its expression; `None` where all do, or none can be computed.
    pub(crate) fn out_of_range(&self, params: &ParamStruct, views: &[ViewRef], scalars: &[f64]) -> Option<String> {
        let tensors = Tensors::new(self.merging.as_ref(), views)?;
        let given = params.fields().iter().map(|field| &field.given).chain(&self.inputs);
        let mut values: Vec<i64> = given.map(|given| given.integer(&tensors, scalars)).collect::<Option<_>>()?;
        values.resize(self.steps.names.len(), 0);
        for step in &self.steps.steps {
            if let Step::Let(index, value) = step {
                let Some(value) = value.eval(&values) else { return Some(beyond(self.steps.names.get(*index)?)) };
                *values.get_mut(*index)? = value;
            }
        }
        let parameter = || {
            params.fields().iter().zip(&self.derived).find_map(|(field, derived)| {
                let what = format!("{} = {}", field.name, field.doc);
                match derived.as_ref()?.eval(&values) {
                    None => Some(beyond(&what)),
                    Some(value) if field.ty == ParamType::I32 && i32::try_from(value).is_err() => {
                        Some(format!("{what} is {value}, and int32_t ends at {}", i32::MAX))
                    }
                    Some(_) => None,
                }
            })
        };
        let most = [Arch::MAX_GRID_X, Arch::MAX_GRID_YZ, Arch::MAX_GRID_YZ];
        let blocks = || {
            self.grids.iter().flat_map(|grid| grid.blocks.iter().zip(most).zip(["x", "y", "z"])).find_map(
                |((blocks, most), axis)| match blocks.eval(&values) {
                    None => Some(beyond(&format!("the number of blocks along {axis}"))),
                    Some(count) if u64::try_from(count).is_ok_and(|count| count > most) => {
                        Some(format!("{count} blocks along {axis}, and a grid has {most} at most"))
                    }
                    Some(_) => None,
                },
            )
        };
        let others = || {
            let shared = self.grids.iter().filter_map(|grid| grid.shared.as_ref()).map(|of| ("shared memory", of));
            let bytes = shared.chain([("the workspace", &self.workspace)]);
            let beyond = |(what, of): (&str, &Int)| match of.eval(&values) {
                None => Some(beyond(what)),
                Some(bytes) if bytes < 0 => Some(format!("{bytes} bytes of {what}")),
                Some(_) => None,
            };
            bytes.into_iter().find_map(beyond)
        };
        parameter().or_else(blocks).or_else(others)
    }
}

fn beyond(what: &str) -> String {
    format!("{what} overflows 64 bits")
}
