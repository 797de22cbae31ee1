//! Cases of the line protocol, answered by the library.

use cute_layout::algebra_tool::{Value, apply};
use cute_layout::layout::{AnyLayout, LayoutError};

use crate::cpp::Case;

/// An answer: its text, and the layout where it is one.
pub(crate) struct Ours {
    pub(crate) text: String,
    pub(crate) layout: Option<AnyLayout>,
}

/// The library's answer.
pub(crate) fn ours(case: &Case) -> Result<Ours, LayoutError> {
    let arguments: Result<Vec<Value>, LayoutError> = case.inputs.iter().map(|input| input.parse()).collect();
    let value = apply(&case.op, &arguments?)?;
    let text = value.to_string();
    let layout = match value {
        Value::Layout(layout) => Some(layout),
        _ => None,
    };
    Ok(Ours { text, layout })
}
