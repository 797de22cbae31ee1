//! Expressions: nested calls and `let`.
//!
//! ```text
//! let tv = make_layout_tv((4,32):(32,1), (4,8):(8,1));   an expression may be a list; take its parts with get(list, i)
//! composition((16,256):(512,1), get(tv, 1))
//! ```

use crate::layout::{Class, LayoutError, Reader};
use std::collections::BTreeMap;

use super::ops::{apply, find};
use super::spellings;
use super::value::Value;

/// The deepest nesting of calls.
const MOST_NESTED: usize = 64;

/// The longest text that is evaluated, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// The most operations of an expression.
const MOST_STEPS: usize = 256;

/// The most leaves that the steps of an expression hold together; a value in a list counts as many.
const MOST_HELD: usize = 1 << 21;
const LEAVES_OF_VALUE: usize = 30;

/// The record of an evaluation: each applied operation, in order, for `explain`.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The operation.
    pub op: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Its result.
    pub result: Value,
}

/// Evaluates an expression.
///
/// # Errors
/// The text is not an expression, or an operation refuses.
///
/// ```
/// use cute_layout::algebra_tool::evaluate;
/// let value = evaluate("composition((16,256):(512,1), ((32,4),(8,4)):((128,4),(16,1)))")?;
/// assert_eq!(value.to_string(), "((32,4),(8,4)):((8,2048),(1,512))");
/// let value = evaluate("let a = (4,8):(1,4); size(coalesce(a))")?;
/// assert_eq!(value.to_string(), "32");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn evaluate(text: &str) -> Result<Value, LayoutError> {
    Ok(evaluate_steps(text)?.0)
}

/// Evaluates an expression and tells every operation that was applied.
///
/// # Errors
/// As for [`evaluate`].
pub fn evaluate_steps(text: &str) -> Result<(Value, Vec<Step>), LayoutError> {
    if text.len() > MOST_TEXT {
        return Err(LayoutError::new("evaluate", Class::Limit)
            .found(format!("{} bytes", text.len()))
            .required(format!("at most {MOST_TEXT}")));
    }
    steps_of(text).map_err(|error| match spellings::rewritten(text) {
        Some(ours) if is_of_words(&error) && steps_of(&ours).map_or_else(|error| !is_of_words(&error), |_| true) => {
            error.help(format!("here that is written {ours}"))
        }
        _ => error,
    })
}

fn steps_of(text: &str) -> Result<(Value, Vec<Step>), LayoutError> {
    let mut evaluator = Evaluator { reader: Reader::new(text), names: BTreeMap::new(), steps: Vec::new(), held: 0 };
    let value = evaluator.program()?;
    Ok((value, evaluator.steps))
}

/// Whether an error is of the spelling, not of the meaning.
fn is_of_words(error: &LayoutError) -> bool {
    matches!(error.class(), Class::Parse | Class::Argument)
}

struct Evaluator<'a> {
    reader: Reader<'a>,
    names: BTreeMap<&'a str, Value>,
    steps: Vec<Step>,
    held: usize,
}

impl<'a> Evaluator<'a> {
    fn program(&mut self) -> Result<Value, LayoutError> {
        loop {
            let start = self.reader.position();
            if self.reader.word() != "let" {
                self.reader.rewind(start);
                let value = self.expression(0)?;
                self.reader.eat(b';');
                self.reader.end()?;
                return Ok(value);
            }
            let name = self.reader.word();
            let named = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
            if !named {
                return Err(self.reader.fail("a name"));
            }
            self.reader.expect(b'=')?;
            let value = self.expression(0)?;
            self.reader.expect(b';')?;
            self.names.insert(name, value);
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Value, LayoutError> {
        if depth > MOST_NESTED {
            return Err(self.reader.fail(format!("at most {MOST_NESTED} nested calls")));
        }
        let start = self.reader.position();
        let begins_word = self.reader.peek().is_some_and(|byte| byte.is_ascii_alphabetic());
        if begins_word {
            let word = self.reader.word();
            if self.reader.peek() == Some(b'(') {
                return self.call(word, start, depth);
            }
            if let Some(value) = self.names.get(word) {
                return Ok(value.clone());
            }
            self.reader.rewind(start);
        }
        Value::read(&mut self.reader)
    }

    /// A call of an operation, whose name begins at `start`.
    fn call(&mut self, name: &str, start: usize, depth: usize) -> Result<Value, LayoutError> {
        if name != "get" {
            find(name).map_err(|error| {
                let found = format!("{} at position {start}", error.what_was_found());
                error.found(found)
            })?;
        }
        self.reader.expect(b'(')?;
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.expression(depth + 1)?);
            if arguments.len() > 256 {
                return Err(self.reader.fail("fewer arguments"));
            }
            if !self.reader.eat(b',') {
                break;
            }
        }
        self.reader.expect(b')')?;
        if name == "get" {
            return part(&arguments);
        }
        let too_much = |at: usize, required: &str| {
            LayoutError::new("evaluate", Class::Limit)
                .found(format!("operation `{name}`, whose arguments end at position {at}"))
                .required(required)
        };
        let at = self.reader.position();
        if self.steps.len() >= MOST_STEPS {
            return Err(too_much(at, &format!("at most {MOST_STEPS} operations")));
        }
        let result = apply(name, &arguments)?;
        // Every step is kept, so that an explanation can show all of them.
        self.held += arguments.iter().chain([&result]).map(leaves).sum::<usize>();
        if self.held > MOST_HELD {
            return Err(too_much(at, "steps that hold fewer values together"));
        }
        self.steps.push(Step { op: name.to_owned(), arguments, result: result.clone() });
        Ok(result)
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Layout(layout) => layout.domain().map_or(1, |domain| domain.shape().leaf_count()),
        Value::Tuple(tuple) => tuple.leaf_count(),
        Value::List(values, _) => LEAVES_OF_VALUE * values.len(),
        Value::Tiler(_) | Value::Bool(_) | Value::Word(_) => 1,
    }
}

/// `get(list, i)`, or `get(layout, i)` for a mode.
fn part(arguments: &[Value]) -> Result<Value, LayoutError> {
    let [whole, index] = arguments else {
        return Err(LayoutError::new("get", Class::Argument)
            .found(format!("{} arguments", arguments.len()))
            .required("get(list or layout, index)"));
    };
    let index = index.index("get")?;
    let part = match whole {
        Value::List(values, _) => values.get(index).cloned(),
        Value::Tuple(tuple) => tuple.mode(index).map(Value::Tuple),
        Value::Layout(layout) => {
            let mode = layout.domain()?.mode(index);
            mode.map(|mode| layout.map_domain(|_| Ok(mode)).map(Value::Layout)).transpose()?
        }
        _ => None,
    };
    part.ok_or_else(|| {
        LayoutError::new("get", Class::Argument)
            .found(format!("part {index} of `{whole}`"))
            .required("a part that is there")
    })
}
