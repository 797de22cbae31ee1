//! Numbers, names and calls.

use super::cursor::nearest;
use super::{Parser, Value};
use crate::dtype::DType;
use crate::expr::error::ExprError;
use crate::expr::names;
use crate::expr::op::{Binary, Constant, Id, Node, Unary};

impl<'a> Parser<'a> {
    pub(super) fn atom(&mut self) -> Result<Value, ExprError> {
        let start = self.start();
        match self.peek() {
            Some(b'0'..=b'9' | b'.') => self.number(),
            Some(b'(') => {
                self.at += 1;
                let value = self.value()?;
                self.expect(")")?;
                Ok(value)
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let word = self.word();
                if self.eat("(") { self.call(word, start) } else { self.name(word, start) }
            }
            _ => Err(self.fail("a number, a name, a function or `(`")),
        }
    }

    fn number(&mut self) -> Result<Value, ExprError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |at: &mut usize| {
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
        };
        digits(&mut self.at);
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            digits(&mut self.at);
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            digits(&mut self.at);
        }
        let word_follows = bytes.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.');
        match self.text[start..self.at].parse::<f64>() {
            Ok(value) if value.is_finite() && !word_follows => Ok(self.constant(value)),
            _ => {
                self.at = start;
                Err(self.fail("a decimal number that a 64-bit float holds, as in 0.5 or 1e-3"))
            }
        }
    }

    fn name(&mut self, word: &'a str, start: usize) -> Result<Value, ExprError> {
        if let Some(part) = self.lets.iter_mut().find(|part| part.name == word) {
            part.used = true;
            return Ok(part.value);
        }
        if let Some(input) = self.inputs.iter().position(|name| *name == word) {
            return self.input(input as u8, start);
        }
        if let Some(node) = self.scalar(word) {
            return Ok(Value::Number(self.add(node)));
        }
        match word {
            "inf" => return Ok(self.constant(f64::INFINITY)),
            "nan" => return Ok(self.constant(f64::NAN)),
            _ => {}
        }
        self.at = start;
        let inputs = match self.inputs == names::INPUTS {
            true => "a to h".to_owned(),
            false => self.inputs.join(", "),
        };
        let required = match self.nodes.scalars.as_slice() {
            [] => format!("an input ({inputs}), a part named by `let`, or a function with `(`"),
            scalars => format!("an input ({inputs}), a part named by `let`, or a scalar: {}", scalars.join(", ")),
        };
        let own = self.inputs.iter().copied().filter(|name| name.len() > 1);
        let parts = own.chain(self.lets.iter().map(|part| part.name));
        let known = self.nodes.scalars.iter().map(String::as_str).chain(parts).chain(names::functions());
        let help = match nearest(word, known) {
            nothing if nothing.is_empty() => self.undeclared(word),
            near => near,
        };
        Err(ExprError { help, ..self.fail(required) })
    }

    /// Suggestions for an undeclared name.
    fn undeclared(&self, word: &str) -> String {
        if word != word.to_ascii_lowercase() && self.inputs.contains(&word.to_ascii_lowercase().as_str()) {
            return "inputs are small letters, a for the first".to_owned();
        }
        if names::check_inputs(&[word]).is_err() {
            return String::new();
        }
        // Without a declaration those that the text has used so far, the first at least.
        let used = usize::from(self.declared.inputs.unwrap_or(self.highest.max(1)));
        let (inputs, scalars) = (self.inputs.iter().take(used), self.nodes.scalars.iter().map(String::as_str));
        let declared = |inputs: Vec<&str>, scalars: Vec<&str>| match &scalars[..] {
            [] => format!("|{}| ..", inputs.join(", ")),
            scalars => format!("|{}; {}| ..", inputs.join(", "), scalars.join(", ")),
        };
        let as_input = declared(inputs.clone().copied().chain([word]).collect(), scalars.clone().collect());
        if names::check_scalars(&[word]).is_err() {
            return format!("inputs are declared in front: {as_input}");
        }
        let as_scalar = declared(inputs.copied().collect(), scalars.chain([word]).collect());
        format!("inputs and run-time scalars are declared in front: {as_input} or {as_scalar}")
    }

    fn input(&mut self, input: u8, start: usize) -> Result<Value, ExprError> {
        if let Some(inputs) = self.declared.inputs
            && input >= inputs
        {
            self.at = start;
            let required = match usize::from(inputs) {
                0 => "no inputs: the function is declared with none".to_owned(),
                count => format!("one of the {count} declared inputs: {}", self.inputs[..count].join(", ")),
            };
            return Err(self.fail(required));
        }
        self.highest = self.highest.max(input + 1);
        Ok(Value::Number(self.add(Node::Input(input))))
    }

    /// A function's arguments, behind the parenthesis.
    fn call(&mut self, word: &'a str, start: usize) -> Result<Value, ExprError> {
        if let Some(value) = self.call_of_rows(word, start)? {
            return Ok(value);
        }
        let number = |node: Node, parser: &mut Parser<'a>| Ok(Value::Number(parser.add(node)));
        if let Some(op) = Unary::ALL.iter().copied().find(|op| op.text() == word) {
            let ids = self.numbers()?;
            return number(Node::Unary(op, ids), self);
        }
        if let Some(op) = Binary::ALL.iter().copied().find(|op| op.text() == word) {
            let ids = self.numbers()?;
            return number(Node::Binary(op, ids), self);
        }
        match word {
            "fma" => {
                let ids = self.numbers()?;
                number(Node::Fma(ids), self)
            }
            "recip" => {
                let [x] = self.numbers()?;
                let one = self.add(Node::Constant(Constant::new(1.0)));
                number(Node::Binary(Binary::Div, [one, x]), self)
            }
            "clamp" => {
                let [x, low, high] = self.numbers()?;
                let raised = self.add(Node::Binary(Binary::Max, [x, low]));
                number(Node::Binary(Binary::Min, [raised, high]), self)
            }
            "cast" | "saturate" => {
                let dtype = self.dtype()?;
                self.expect(",")?;
                let ids = self.numbers()?;
                let node = if word == "cast" { Node::Cast(dtype, ids) } else { Node::Saturate(dtype, ids) };
                number(node, self)
            }
            "select" => {
                let at = self.start();
                let condition = self.value()?;
                let condition = self.condition_of(condition, at)?;
                self.expect(",")?;
                let [yes, no] = self.numbers()?;
                number(Node::Select([condition, yes, no]), self)
            }
            _ => {
                self.at = start;
                let known: Vec<&str> = names::functions().collect();
                let required = format!("one of the functions {}", known.join(", "));
                let known = known.into_iter().chain(names::functions_of_rows());
                Err(ExprError { help: nearest(word, known), ..self.fail(required) })
            }
        }
    }

    /// `N` numbers, and the parenthesis that closes.
    pub(super) fn numbers<const N: usize>(&mut self) -> Result<[Id; N], ExprError> {
        let mut ids = [Id(0); N];
        for (index, id) in ids.iter_mut().enumerate() {
            if index > 0 && !self.eat(",") {
                return Err(self.fail(format!("`,`: {} more of {N} arguments", N - index)));
            }
            let start = self.start();
            let value = self.value()?;
            *id = self.number_of(value, start)?;
        }
        if !self.eat(")") {
            return Err(self.fail("`)`"));
        }
        Ok(ids)
    }

    fn dtype(&mut self) -> Result<DType, ExprError> {
        let start = self.start();
        self.word().parse().map_err(|_| {
            self.at = start;
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            self.fail(format!("an element type: {}", names.join(", ")))
        })
    }

    pub(super) fn scalar(&self, word: &str) -> Option<Node> {
        let index = self.nodes.scalars.iter().position(|name| name == word)?;
        Some(Node::Scalar(index as u8))
    }

    fn constant(&mut self, value: f64) -> Value {
        Value::Number(self.add(Node::Constant(Constant::new(value))))
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        self.nodes.add(node)
    }

    pub(super) fn number_of(&mut self, value: Value, start: usize) -> Result<Id, ExprError> {
        match value {
            Value::Number(id) => Ok(id),
            Value::Condition(_) => {
                self.at = start;
                let help = "select(condition, 1, 0) makes a number of a condition".to_owned();
                Err(ExprError { help, ..self.fail("a number, not a condition") })
            }
        }
    }

    pub(super) fn condition_of(&mut self, value: Value, start: usize) -> Result<Id, ExprError> {
        match value {
            Value::Condition(id) => Ok(id),
            Value::Number(_) => {
                self.at = start;
                let help = "compare it: `x != 0`".to_owned();
                Err(ExprError { help, ..self.fail("a condition, not a number") })
            }
        }
    }
}
