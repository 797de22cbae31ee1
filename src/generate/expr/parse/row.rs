//! Calls that are about a row: reductions, the column, the width.

use super::{Parser, Value};
use crate::expr::error::ExprError;
use crate::expr::op::{Binary, Id, Node};
use crate::expr::rows::{Along, Level, Reduction, exists, fits, joined};

impl<'a> Parser<'a> {
    /// The call, behind its parenthesis, where its word is one of rows. `max` and `min` of two values are not.
    pub(super) fn call_of_rows(&mut self, word: &'a str, start: usize) -> Result<Option<Value>, ExprError> {
        let (name, along) = match word.split_once("_group") {
            // A number beyond 32 bits is no size either.
            Some((name, size)) if !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()) => {
                (name, Along::Group(size.parse().unwrap_or(u32::MAX)))
            }
            Some(_) => return Ok(None),
            None => word.strip_suffix("_column").map_or((word, Along::Row), |name| (name, Along::Column)),
        };
        match name {
            "col" if along == Along::Row => {
                self.of_rows = true;
                self.expect(")")?;
                Ok(Some(Value::Number(self.add(Node::Column))))
            }
            "width" if along != Along::Column => {
                self.of_rows = true;
                self.expect(")")?;
                exists(name, along).map_err(|error| error.in_text(start))?;
                Ok(Some(Value::Number(self.add(Node::Width(along)))))
            }
            "mean" if along != Along::Column => {
                let sum = self.reduction(Reduction::Sum, along, start)?;
                let width = self.add(Node::Width(along));
                Ok(Some(Value::Number(self.add(Node::Binary(Binary::Div, [sum, width])))))
            }
            _ => match Reduction::ALL.iter().copied().find(|reduction| reduction.name() == name) {
                Some(Reduction::Max) if along == Along::Row => self.extremum(Reduction::Max, Binary::Max, start),
                Some(Reduction::Min) if along == Along::Row => self.extremum(Reduction::Min, Binary::Min, start),
                Some(reduction) => {
                    let id = self.reduction(reduction, along, start)?;
                    Ok(Some(if reduction.of_conditions() { Value::Condition(id) } else { Value::Number(id) }))
                }
                None => Ok(None),
            },
        }
    }

    /// Of one value along the row, or of two for each element.
    fn extremum(&mut self, of_row: Reduction, of_two: Binary, start: usize) -> Result<Option<Value>, ExprError> {
        let at = self.start();
        let value = self.value()?;
        let x = self.number_of(value, at)?;
        if !self.eat(",") {
            self.expect(")")?;
            return Ok(Some(Value::Number(self.reduced(of_row, Along::Row, x, start)?)));
        }
        let [y] = self.numbers()?;
        Ok(Some(Value::Number(self.add(Node::Binary(of_two, [x, y])))))
    }

    /// A reduction's operand, and the parenthesis that closes.
    fn reduction(&mut self, reduction: Reduction, along: Along, start: usize) -> Result<Id, ExprError> {
        let at = self.start();
        let value = self.value()?;
        let x = if reduction.of_conditions() { self.condition_of(value, at)? } else { self.number_of(value, at)? };
        self.expect(")")?;
        self.reduced(reduction, along, x, start)
    }

    fn reduced(&mut self, reduction: Reduction, along: Along, x: Id, start: usize) -> Result<Id, ExprError> {
        self.of_rows = true;
        let level = self.level(x);
        fits(reduction, along, level).map_err(|error| error.in_text(start))?;
        Ok(self.add(Node::Reduce(reduction, along, [x])))
    }

    /// What the node belongs to, its inputs being of elements.
    fn level(&mut self, id: Id) -> Level {
        for node in &self.nodes.list[self.levels.len()..] {
            let level = joined(node, &[], node.operands().iter().map(|id| self.levels[id.index()]));
            self.levels.push(level);
        }
        self.levels[id.index()]
    }
}
