//! `cutemplate layout EXPRESSION [--explain] [--table]`: evaluates an expression of the layout algebra.

use cutemplate::algebra_tool::{Op, Value, evaluate_steps, find, ops};
use cutemplate::algebra_tool::{explain, table};
use cutemplate::layout::LayoutError;

/// What to show besides the value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    /// The derivation of every operation, in the order they are applied.
    pub(crate) explain: bool,
    /// The values of the result as a grid.
    pub(crate) table: bool,
}

/// The value of an expression as text, with the requested details. A list's parts stand on lines of their own.
///
/// # Errors
/// The text is not an expression, an operation refuses, or the table would be too large.
pub(crate) fn evaluate(expression: &str, show: Show) -> Result<String, LayoutError> {
    let (value, steps) = evaluate_steps(expression)?;
    let mut text = String::new();
    if show.explain {
        for step in &steps {
            text.push_str(&explain(&step.op, &step.arguments)?);
            text.push('\n');
        }
    }
    for part in parts(&value) {
        text.push_str(&format!("{part}\n"));
        if let (true, Value::Layout(layout)) = (show.table, part) {
            text.push_str(&table(layout)?);
        }
    }
    Ok(text)
}

/// What `help`, or `help NAME`, says: the operations with their arguments; `None` for any other text.
pub(crate) fn help(text: &str) -> Option<Result<String, LayoutError>> {
    let asked = text.trim().strip_prefix("help")?;
    let line = |op: &Op| format!("{}({})", op.name, op.usage);
    match asked.trim_start() {
        "" => Some(Ok(ops().map(line).collect::<Vec<_>>().join("\n"))),
        name if asked.starts_with(' ') => Some(find(name).map(line)),
        _ => None,
    }
}

fn parts(value: &Value) -> Vec<&Value> {
    match value {
        Value::List(values, ';') => values.iter().collect(),
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_with_everything() {
        let show = Show { explain: true, table: true };
        let text =
            evaluate("let a = (2,4):(4,1); coalesce(composition(a, (2,2):(1,4)))", show).expect("a legal expression");
        assert!(text.starts_with("composition((2,4):(4,1), (2,2):(1,4))\n"), "{text}");
        assert!(text.contains("= (2,2):(4,2)\n") && text.contains("0 |  0  2\n"), "{text}");
    }

    #[test]
    fn a_list_is_shown_in_parts() {
        let text = evaluate("make_layout_tv((4,32):(32,1), (4,8):(8,1))", Show::default()).expect("a legal expression");
        assert_eq!(text, "(16,256)\n((32,4),(8,4)):((128,4),(16,1))\n");
    }
}
