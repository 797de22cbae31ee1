//! The operations by name: for expressions, and for a line protocol that other tools can drive.
//!
//! A request is one JSON object a line, `{"op": "...", "inputs": ["...", ..]}`; the answer is one line, `{"ok": "text"}`
//! or `{"error": {"class": "...", "message": "..."}}`. Numbers and truth values are text as well (`"15"`, `"1"`). A line
//! that is not such an object gets an error for an answer.

use crate::layout::LayoutError;
mod explain;
mod explain_laws;
mod expr;
mod json;
mod ops;
mod table;
mod value;

pub use explain::explain;
pub use expr::{Step, evaluate, evaluate_steps};
pub(crate) use ops::find;
pub use ops::{MOST_LISTED, Op, apply, ops};
pub use table::{MOST_CELLS, table};
pub use value::Value;

use std::fmt::Write;

/// The longest line that is looked at, in bytes.
pub const MOST_LINE: usize = 1 << 20;

/// Answers one line of the protocol; the answer is appended to `out`, with a line end.
///
/// ```
/// use cutemplate::algebra_tool::answer;
/// let mut out = String::new();
/// answer(r#"{"op": "coalesce", "inputs": ["(2,3,4):(2,4,12)"]}"#, &mut out);
/// assert_eq!(out, "{\"ok\": \"24:2\"}\n");
/// ```
pub fn answer(line: &str, out: &mut String) {
    answer_with(line, out, |_, _| None);
}

/// An operation that is known elsewhere: its answer to these inputs, or `None` where it is not known there either.
pub type Elsewhere = fn(&str, &[String]) -> Option<Result<String, LayoutError>>;

/// The same, and operations that are not of this module are asked for elsewhere.
pub fn answer_with(line: &str, out: &mut String, elsewhere: Elsewhere) {
    match respond(line, elsewhere) {
        Ok(value) => {
            out.push_str("{\"ok\": \"");
            // The text of a value needs no escapes: digits, punctuation and names.
            let start = out.len();
            if write!(out, "{value}").is_err() {
                out.truncate(start);
            }
            out.push_str("\"}\n");
        }
        Err((class, message)) => {
            out.push_str("{\"error\": {\"class\": ");
            json::write_string(out, &class);
            out.push_str(", \"message\": ");
            json::write_string(out, &message);
            out.push_str("}}\n");
        }
    }
}

fn respond(line: &str, elsewhere: Elsewhere) -> Result<Value, (String, String)> {
    let failed = |error: LayoutError| (error.class().to_string(), error.to_string());
    if line.len() > MOST_LINE {
        return Err(("Limit".to_owned(), format!("a line of {} bytes; at most {MOST_LINE} are read", line.len())));
    }
    let request = json::request(line).map_err(|why| ("Request".to_owned(), format!("not a request: {why}")))?;
    if ops::known(&request.op).is_none() {
        let inputs: Vec<String> = request.inputs.iter().map(|input| input.to_string()).collect();
        if let Some(found) = elsewhere(&request.op, &inputs) {
            return found.map(Value::Word).map_err(failed);
        }
    }
    let mut arguments = Vec::with_capacity(request.inputs.len());
    for input in &request.inputs {
        arguments.push(input.parse::<Value>().map_err(failed)?);
    }
    apply(&request.op, &arguments).map_err(failed)
}
