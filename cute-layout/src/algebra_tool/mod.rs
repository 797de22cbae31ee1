//! The operations by name: for expressions, and for a line protocol that other tools can drive.
//!
//! A request is one JSON object a line, `{"op": "...", "inputs": ["...", ..]}`; the answer is one line, `{"ok": "text"}`
//! or `{"error": {"class": "...", "message": "..."}}`. Numbers and truth values are text as well (`"15"`, `"1"`). A line
//! that is not such an object gets an error for an answer.

#[cfg(feature = "protocol")]
use crate::layout::LayoutError;
mod explain;
mod explain_laws;
mod expr;
mod ops;
mod spellings;
mod table;
mod value;

pub use explain::explain;
pub use expr::{Step, evaluate, evaluate_steps};
pub use ops::{MOST_LISTED, Op, apply, find, ops};
pub use table::{MOST_CELLS, table};
pub use value::Value;

/// The longest line that is looked at, in bytes.
#[cfg(feature = "protocol")]
pub const MOST_LINE: usize = 1 << 20;

/// Answers one line of the protocol; the answer is appended to `out`, with a line end.
///
/// ```
/// use cute_layout::algebra_tool::answer;
/// let mut out = String::new();
/// answer(r#"{"op": "coalesce", "inputs": ["(2,3,4):(2,4,12)"]}"#, &mut out);
/// assert_eq!(out, "{\"ok\": \"24:2\"}\n");
/// ```
#[cfg(feature = "protocol")]
pub fn answer(line: &str, out: &mut String) {
    answer_with(line, out, |_, _| None);
}

/// An operation that is known elsewhere: its answer to these inputs, or `None` where it is not known there either.
#[cfg(feature = "protocol")]
pub type Elsewhere = fn(&str, &[String]) -> Option<Result<String, LayoutError>>;

/// The same, and operations that are not of this module are asked for elsewhere.
#[cfg(feature = "protocol")]
pub fn answer_with(line: &str, out: &mut String, elsewhere: Elsewhere) {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    out.push_str(&match respond(line, elsewhere) {
        Ok(value) => format!("{{\"ok\": {}}}\n", text(&value.to_string())),
        Err((class, message)) => {
            format!("{{\"error\": {{\"class\": {}, \"message\": {}}}}}\n", text(&class), text(&message))
        }
    });
}

#[cfg(feature = "protocol")]
fn respond(line: &str, elsewhere: Elsewhere) -> Result<Value, (String, String)> {
    /// Other members are skipped.
    #[derive(serde::Deserialize)]
    struct Request {
        op: String,
        inputs: Vec<String>,
    }
    let failed = |error: LayoutError| (error.class().to_string(), error.to_string());
    if line.len() > MOST_LINE {
        return Err(("Limit".to_owned(), format!("a line of {} bytes; at most {MOST_LINE} are read", line.len())));
    }
    let refused = |why: serde_json::Error| ("Request".to_owned(), format!("not a request: {why}"));
    let Request { op, inputs } = serde_json::from_str(line).map_err(refused)?;
    if ops::known(&op).is_none()
        && let Some(found) = elsewhere(&op, &inputs)
    {
        return found.map(Value::Word).map_err(failed);
    }
    let arguments = inputs.iter().map(|input| input.parse()).collect::<Result<Vec<Value>, _>>().map_err(failed)?;
    apply(&op, &arguments).map_err(failed)
}
