//! The table of operations: a name, the number of arguments, and the function.

use crate::layout::{AnyLayout, Class, Layout, LayoutError};
use crate::near;
mod algebra;
mod inspect;
mod make;
mod modes;

use super::value::Value;

pub use inspect::MOST_LISTED;

/// An operation of the protocol.
pub struct Op {
    /// CuTe's name.
    pub name: &'static str,
    /// The least number of arguments.
    pub least: usize,
    /// The largest number of arguments.
    pub most: usize,
    /// The arguments, for people.
    pub usage: &'static str,
    run: fn(&'static str, &[Value]) -> Answer,
}

type Answer = Result<Value, LayoutError>;

const fn op(
    name: &'static str,
    (least, most): (usize, usize),
    usage: &'static str,
    run: fn(&'static str, &[Value]) -> Answer,
) -> Op {
    Op { name, least, most, usage, run }
}

/// All operations, group by group.
///
/// ```
/// assert!(cute_layout::algebra_tool::ops().any(|op| op.name == "complement"));
/// ```
pub fn ops() -> impl Iterator<Item = &'static Op> {
    algebra::OPS.iter().chain(modes::OPS).chain(make::OPS).chain(inspect::OPS)
}

/// Applies an operation by its name.
///
/// # Errors
/// There is no such operation, the number or kind of arguments is wrong, or the operation refuses.
///
/// ```
/// use cute_layout::algebra_tool::apply;
/// let result = apply("complement", &["4:2".parse()?, "19".parse()?])?;
/// assert_eq!(result.to_string(), "(2,3):(1,8)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn apply(name: &str, arguments: &[Value]) -> Result<Value, LayoutError> {
    let op = find(name)?;
    if arguments.len() < op.least || arguments.len() > op.most {
        return Err(LayoutError::new(op.name, Class::Argument)
            .found(format!("{} arguments", arguments.len()))
            .required(format!("{}({})", op.name, op.usage)));
    }
    (op.run)(op.name, arguments).map_err(|error| swapped(op, arguments, named(op, arguments, error)))
}

/// Where the first two arguments would do the other way round, as for `slice`, which has the coordinate first in CuTe,
/// that is said.
#[cold]
fn swapped(op: &'static Op, arguments: &[Value], error: LayoutError) -> LayoutError {
    let [first, second, rest @ ..] = arguments else { return error };
    if error.class() != Class::Argument || std::mem::discriminant(first) == std::mem::discriminant(second) {
        return error;
    }
    let turned: Vec<Value> = [second, first].into_iter().chain(rest).cloned().collect();
    match (op.run)(op.name, &turned) {
        Ok(_) => {
            let turned: Vec<String> = turned.iter().map(Value::to_string).collect();
            error.help(format!("the other way round here: {}({})", op.name, turned.join(", ")))
        }
        Err(_) => error,
    }
}

/// The operation of this name.
pub(crate) fn known(name: &str) -> Option<&'static Op> {
    ops().find(|op| op.name == name)
}

/// The operation of this name, or an error that suggests the nearest one.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Op, LayoutError> {
    known(name).ok_or_else(|| {
        let nearest = near::nearest(name, ops().map(|op| op.name));
        LayoutError::new("apply", Class::Argument)
            .found(format!("operation `{name}`"))
            .required("the name of an operation")
            .help(nearest.map_or(String::new(), |name| format!("the nearest name is `{name}`")))
    })
}

fn some(layout: Layout) -> Answer {
    Ok(Value::Layout(AnyLayout::Plain(layout)))
}

fn any(layout: AnyLayout) -> Answer {
    Ok(Value::Layout(layout))
}

/// Applies an operation of plain layouts to the domain, as CuTe does for composed layouts.
fn on_domain(op: &'static str, a: &[Value], apply: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Answer {
    any(a[0].any(op)?.map_domain(apply)?)
}

/// The error under the name of the operation that was asked for: one that comes from below has its own.
#[cold]
fn named(op: &'static Op, arguments: &[Value], error: LayoutError) -> LayoutError {
    if error.operation() == op.name {
        return error;
    }
    let usage = op.usage.split([',', '[']).map(|part| part.trim_matches([' ', ']']));
    let mut roles = usage.filter(|role| !role.is_empty());
    let operands: Vec<(&'static str, &dyn std::fmt::Display)> =
        arguments.iter().map(|argument| (roles.next().unwrap_or("and"), argument as &dyn std::fmt::Display)).collect();
    error.within(op.name, &operands)
}
