//! Integer expressions as a person writes them, for grids, shared memory, parameters and demands.
//!
//! They become the expressions that the rules of every kernel are made of: 64-bit, checked, and kept in bundles.

use std::collections::BTreeMap;

use crate::plan::{Given, Int, IntOp};

/// Expressions within each other, at most.
const DEEPEST: usize = 64;

/// Operations within each other, at most, with those of the names in an expression: an ABI is read with few more.
const DEEPEST_VALUE: usize = 200;

/// Letters of an expression, at most.
const LONGEST: usize = 1000;

/// What expressions may name.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Tensors: name and rank, in the order of the operands.
    pub(super) tensors: Vec<(String, usize)>,
    /// Scalars: name, number, and whether they are integers.
    pub(super) scalars: Vec<(String, usize, bool)>,
    /// Values by name.
    pub(super) names: BTreeMap<String, Int>,
    /// Values before the inputs: one for each field of the parameter struct.
    pub(super) fields: usize,
    /// The inputs that expressions read.
    pub(super) inputs: Vec<Given>,
}

impl Scope {
    /// The value of an input, which counts once.
    pub(super) fn input(&mut self, given: Given) -> Int {
        let at = self.inputs.iter().position(|known| *known == given).unwrap_or_else(|| {
            self.inputs.push(given);
            self.inputs.len() - 1
        });
        Int::Value(self.fields + at)
    }

    /// Reads a whole expression; `Err` says what is wrong with it, and where.
    pub(super) fn read(&mut self, text: &str) -> Result<Int, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} letters, and at most {LONGEST} are read", text.len()));
        }
        let mut reader = Reader { scope: self, text, at: 0, depth: 0 };
        let value = reader.choice()?;
        match reader.peek() {
            None if value.depth() > DEEPEST_VALUE => {
                Err(format!("`{text}` has more than {DEEPEST_VALUE} operations within each other"))
            }
            None => Ok(value),
            Some(_) => Err(reader.wrong("the end, or an operator")),
        }
    }

    /// The inputs that a value is made of, as expressions name them.
    pub(super) fn inputs_of(&self, value: &Int) -> Vec<(String, Int)> {
        let mut numbers = Vec::new();
        value.values(&mut numbers);
        numbers.sort_unstable();
        numbers.dedup();
        let input = |number: usize| {
            let given = self.inputs.get(number.checked_sub(self.fields)?)?;
            let tensor = |tensor: usize| self.tensors.get(tensor).map_or("", |(name, _)| name);
            let name = match *given {
                Given::Extent { tensor: of, mode } | Given::ExtentUnless { tensor: of, mode, .. } => {
                    format!("{}.{mode}", tensor(of))
                }
                Given::Stride { tensor: of, mode } => format!("stride({}, {mode})", tensor(of)),
                Given::Address { tensor: of } => format!("address({})", tensor(of)),
                Given::Scalar(of) => self.scalars.iter().find(|(_, number, _)| *number == of)?.0.clone(),
                Given::Follows => return None,
            };
            Some((name, Int::Value(number)))
        };
        numbers.into_iter().filter_map(input).collect()
    }

    fn known(&self) -> String {
        let names = self.names.keys().cloned();
        let scalars = self.scalars.iter().filter(|(_, _, is_integer)| *is_integer).map(|(name, ..)| name.clone());
        let extents = self.tensors.iter().map(|(name, rank)| match rank {
            0 | 1 => format!("{name}.0"),
            rank => format!("{name}.0 to {name}.{}", rank - 1),
        });
        names.chain(scalars).chain(extents).collect::<Vec<_>>().join(", ")
    }
}

struct Reader<'a> {
    scope: &'a mut Scope,
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn takes(&mut self, sign: &str) -> bool {
        let _ = self.peek();
        let is = self.text[self.at..].starts_with(sign);
        self.at += if is { sign.len() } else { 0 };
        is
    }

    fn wrong(&mut self, required: &str) -> String {
        let _ = self.peek();
        let rest: String = self.text[self.at..].chars().take(20).collect();
        let found = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        format!("`{}`: found {found} at letter {}, required {required}", self.text, self.at + 1)
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            Err(self.wrong(&format!("at most {DEEPEST} expressions within each other")))
        } else {
            Ok(())
        }
    }

    /// `a ? b : c`
    fn choice(&mut self) -> Result<Int, String> {
        self.deeper()?;
        let condition = self.binary(0)?;
        let value = if self.takes("?") {
            let yes = self.choice()?;
            if !self.takes(":") {
                return Err(self.wrong("`:`"));
            }
            condition.select(yes, self.choice()?)
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Operators that bind at least as much as `level`: `||`, `&&`, comparisons, sums, products.
    fn binary(&mut self, level: usize) -> Result<Int, String> {
        const LEVELS: [&[&str]; 5] =
            [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = signs.iter().find(|sign| self.takes(sign)) {
            let right = self.binary(level + 1)?;
            left = match *sign {
                "||" => left.op(IntOp::Or, right),
                "&&" => left.and(right),
                "==" => left.is(right),
                "!=" => left.is(right).is(0),
                "<=" => left.at_most(right),
                ">=" => right.at_most(left),
                "<" => left.less(right),
                ">" => right.less(left),
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => left % right,
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Int, String> {
        self.deeper()?;
        let value = if self.takes("-") {
            Int::from(0) - self.unary()?
        } else if self.takes("!") {
            self.unary()?.is(0)
        } else if self.takes("(") {
            let value = self.choice()?;
            self.close()?;
            value
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn close(&mut self) -> Result<(), String> {
        if self.takes(")") { Ok(()) } else { Err(self.wrong("`)`")) }
    }

    fn word(&mut self) -> Option<String> {
        let _ = self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    fn atom(&mut self) -> Result<Int, String> {
        let start = self.at;
        let Some(word) = self.word() else { return Err(self.wrong("a number, a name or `(`")) };
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map(Int::Const).map_err(|_| {
                self.at = start;
                self.wrong("a decimal number below 2^63")
            });
        }
        if self.takes("(") {
            return self.call(&word, start);
        }
        if self.takes(".") {
            let mode = self.word();
            return self.extent(&word, mode.as_deref(), start);
        }
        if let Some(value) = self.scope.names.get(&word) {
            return Ok(value.clone());
        }
        match self.scope.scalars.iter().find(|(name, ..)| *name == word) {
            Some((_, number, true)) => {
                let given = Given::Scalar(*number);
                Ok(self.scope.input(given))
            }
            _ => {
                self.at = start;
                let known = self.scope.known();
                Err(self.wrong(&format!("one of {known}")))
            }
        }
    }

    fn tensor(&mut self, name: &str, start: usize) -> Result<(usize, usize), String> {
        let found = self.scope.tensors.iter().enumerate().find(|(_, (known, _))| known == name);
        found.map(|(tensor, (_, rank))| (tensor, *rank)).ok_or_else(|| {
            self.at = start;
            let known: Vec<&str> = self.scope.tensors.iter().map(|(name, _)| name.as_str()).collect();
            let known = known.join(", ");
            self.wrong(&format!("an operand: {known}"))
        })
    }

    fn mode(&mut self, rank: usize, mode: Option<&str>, start: usize) -> Result<usize, String> {
        mode.and_then(|mode| mode.parse().ok()).filter(|mode| *mode < rank).ok_or_else(|| {
            self.at = start;
            self.wrong(&format!("a mode below {rank}"))
        })
    }

    /// `x.0`
    fn extent(&mut self, name: &str, mode: Option<&str>, start: usize) -> Result<Int, String> {
        let (tensor, rank) = self.tensor(name, start)?;
        let mode = self.mode(rank, mode, start)?;
        Ok(self.scope.input(Given::Extent { tensor, mode }))
    }

    fn call(&mut self, function: &str, start: usize) -> Result<Int, String> {
        match function {
            "ceil_div" | "min" | "max" | "round_up" => {
                let a = self.choice()?;
                if !self.takes(",") {
                    return Err(self.wrong("`,`"));
                }
                let b = self.choice()?;
                self.close()?;
                Ok(match function {
                    "ceil_div" => a.ceil_div(b),
                    "min" => a.op(IntOp::Min, b),
                    "max" => a.op(IntOp::Max, b),
                    _ => a.ceil_div(b.clone()) * b,
                })
            }
            "size" | "stride" | "cosize" | "address" => {
                let at = self.at;
                let name = self.word().unwrap_or_default();
                let (tensor, rank) = self.tensor(&name, at)?;
                let one = if matches!(function, "size" | "stride") && self.takes(",") {
                    let (at, mode) = (self.at, self.word());
                    Some(self.mode(rank, mode.as_deref(), at)?)
                } else {
                    None
                };
                let value = self.of_tensor(function, tensor, rank, one)?;
                self.close()?;
                Ok(value)
            }
            _ => {
                self.at = start;
                Err(self.wrong("ceil_div, round_up, min, max, size, stride, cosize or address"))
            }
        }
    }

    fn of_tensor(&mut self, function: &str, tensor: usize, rank: usize, one: Option<usize>) -> Result<Int, String> {
        let scope = &mut *self.scope;
        Ok(match (function, one) {
            ("size", Some(mode)) => scope.input(Given::Extent { tensor, mode }),
            ("stride", Some(mode)) => scope.input(Given::Stride { tensor, mode }),
            ("size", None) => {
                let extents = (0..rank).map(|mode| scope.input(Given::Extent { tensor, mode }));
                extents.reduce(|size, extent| size * extent).unwrap_or(Int::Const(1))
            }
            ("cosize", _) => {
                let extents: Vec<Int> = (0..rank).map(|mode| scope.input(Given::Extent { tensor, mode })).collect();
                let strides = (0..rank).map(|mode| scope.input(Given::Stride { tensor, mode }));
                let last = extents.iter().cloned().zip(strides).map(|(extent, stride)| (extent - 1) * stride);
                let cosize = last.fold(Int::Const(1), |sum, offset| sum + offset);
                // Strides of an empty tensor mean nothing.
                Int::all(extents.into_iter().map(|extent| Int::from(0).less(extent))).select(cosize, 0)
            }
            ("address", _) => scope.input(Given::Address { tensor }),
            _ => return Err(self.wrong("`,` and a mode")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let mut scope = Scope { tensors: vec![("x".into(), 2), ("y".into(), 1)], fields: 3, ..Scope::default() };
        scope.scalars = vec![("theta".into(), 0, false), ("steps".into(), 1, true)];
        let rows = scope.input(Given::Extent { tensor: 0, mode: 0 });
        scope.names.insert("rows".into(), rows);
        scope
    }

    #[test]
    fn expressions_are_read_as_c_reads_them() {
        let mut scope = scope();
        let mut value = |text: &str| {
            let int = scope.read(text).expect(text);
            // Three fields, then rows = 100; others in the order of their first use.
            let values: Vec<i64> = [0, 0, 0, 100, 7, 5, 8, 3, 64].to_vec();
            int.eval(&values)
        };
        for (text, required) in [
            ("ceil_div(rows, 4)", 25),
            ("rows < 64 ? 0 : 8192", 8192),
            ("x.0 * 2 + 1 - -3", 204),
            ("2 + 3 * 4 % 5 / 1", 4),
            ("10 - 4 - 3", 3),
            ("!(rows != 100) && rows >= 100 || 0", 1),
            ("round_up(rows, 64)", 128),
            ("min(rows, 3) + max(rows, 3)", 103),
            ("rows == 100 ? rows > 5 ? 1 : 2 : 3", 1),
            ("size(x, 0)", 100),
        ] {
            assert_eq!(value(text), Some(required), "{text}");
        }
        assert_eq!(scope.read("steps").expect("an integer").to_string(), "$4");
        assert_eq!(scope.read("stride(x, 0)").expect("a stride").to_string(), "$5");
        assert_eq!(scope.inputs.len(), 3);
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        let mut scope = scope();
        let mut told: Vec<String> = Vec::new();
        for text in [
            "",
            "rows +",
            "rows 4",
            "x",
            "x.2",
            "z.0",
            "theta",
            "ceil_div(rows)",
            "pow(2, 3)",
            "(rows",
            "1 ? 2",
            "stride(x)",
            "9999999999999999999",
        ] {
            told.push(scope.read(text).expect_err(text));
        }
        told.push(scope.read(&"(".repeat(500)).expect_err("deep")[500..].to_owned());
        told.push(scope.read(&"1+".repeat(500)).expect_err("long")[..30].to_owned());
        told.push(scope.read(&"x.0+".repeat(201)).expect_err("no end")[..30].to_owned());
        told.push(scope.read(&format!("{}1", "x.0+".repeat(201))).expect_err("deep")[800..].to_owned());
        expect_test::expect![[r#"
            ``: found the end at letter 1, required a number, a name or `(`
            `rows +`: found the end at letter 7, required a number, a name or `(`
            `rows 4`: found `4` at letter 6, required the end, or an operator
            `x`: found `x` at letter 1, required one of rows, steps, x.0 to x.1, y.0
            `x.2`: found `x.2` at letter 1, required a mode below 2
            `z.0`: found `z.0` at letter 1, required an operand: x, y
            `theta`: found `theta` at letter 1, required one of rows, steps, x.0 to x.1, y.0
            `ceil_div(rows)`: found `)` at letter 14, required `,`
            `pow(2, 3)`: found `pow(2, 3)` at letter 1, required ceil_div, round_up, min, max, size, stride, cosize or address
            `(rows`: found the end at letter 6, required `)`
            `1 ? 2`: found the end at letter 6, required `:`
            `stride(x)`: found `)` at letter 9, required `,` and a mode
            `9999999999999999999`: found `9999999999999999999` at letter 1, required a decimal number below 2^63
            (`: found `((((((((((((((((((((` at letter 33, required at most 64 expressions within each other
            `1+1+1+1+1+1+1+1+1+1+1+1+1+1+1
            `x.0+x.0+x.0+x.0+x.0+x.0+x.0+x
            +x.0+1` has more than 200 operations within each other"#]].assert_eq(&told.join("\n"));
    }
}
