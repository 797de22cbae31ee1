//! Which picture belongs to an expression.

use cutemplate::algebra_tool::{Step, Value, evaluate_steps};
use cutemplate::draw::{self, Options, SharedAccess};
use cutemplate::layout::{AnyLayout, Layout};

use crate::cli::output::Failure;

/// The picture of an expression: a thread-value layout over its tile, a swizzle before and after, the last operation with
/// its inputs beside its result, or a plain grid.
pub(crate) fn picture(expression: &str, element_bytes: i64) -> Result<String, Failure> {
    let (value, steps) = evaluate_steps(expression).map_err(Failure::message)?;
    let options = Options::default();
    let drawn = match (&value, steps.last()) {
        (Value::List(parts, ';'), Some(step)) if step.op == "make_layout_tv" => match &parts[..] {
            [Value::Tuple(tile), Value::Layout(AnyLayout::Plain(tv))] => draw::tv(tv, tile, &options),
            _ => return Err(no_picture(&value)),
        },
        (Value::Layout(AnyLayout::Composed(composed)), _) => {
            let access = SharedAccess::new(element_bytes, 1).map_err(Failure::message)?;
            draw::swizzle(composed, access, &options)
        }
        (Value::Layout(AnyLayout::Plain(result)), Some(step)) if !inputs(step).is_empty() => {
            draw::operation(&step.op, &inputs(step), result, &options)
        }
        (Value::Layout(AnyLayout::Plain(layout)), _) => draw::layout(layout, &options),
        _ => return Err(no_picture(&value)),
    };
    drawn.map_err(Failure::message)
}

/// Those arguments of an operation that are layouts, named as in the documentation.
fn inputs(step: &Step) -> Vec<(&'static str, &Layout)> {
    let layouts = step.arguments.iter().filter_map(|argument| match argument {
        Value::Layout(AnyLayout::Plain(layout)) => Some(layout),
        _ => None,
    });
    ["A", "B"].into_iter().zip(layouts).collect()
}

fn no_picture(value: &Value) -> Failure {
    Failure::message(format_args!(
        "there is no picture of {value}\n  required: a layout, a swizzled layout, or what make_layout_tv gives\n  \
         help:     --table shows the values of a layout"
    ))
}
