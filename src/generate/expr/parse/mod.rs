//! Reading the text of a function.

mod atom;
mod cursor;
mod row;

use core::str::FromStr;

use super::error::ExprError;
use super::function::{Function, MAX_OUTPUTS, input_count};
use super::names;
use super::op::{Binary, Comparison, Id, Node, Unary};
use super::rows::Level;
use super::tape::Nodes;

/// How deep parentheses, calls and signs may be nested.
const MAX_DEPTH: usize = 64;

/// What part of an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(Id),
    Condition(Id),
}

/// The caller's declarations of inputs and scalars. Anything undeclared follows from the text.
#[derive(Clone, Copy)]
struct Declared<'a> {
    inputs: Option<u8>,
    scalars: Option<&'a [&'a str]>,
}

impl Function {
    /// Reads an expression of `inputs` inputs, called a to h or as the text names them in front, and of the scalars that are named.
    ///
    /// ```text
    /// text       = [ "|" [ name { "," name } ] [ ";" name { "," name } ] "|" ] ( body | "{" body "}" )
    /// body       = { "let" name "=" value ";" } ( value { "," value } | "(" value { "," value } ")" )
    /// value      = conditions joined by "||", then "&&"; "!" before one
    /// condition  = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
    /// sum        = products joined by "+" and "-", then "*" and "/"; "-" before one
    /// atom       = number | name | function "(" [ value { "," value } ] ")" | "(" value ")"
    /// ```
    /// In braces, and where rows are reduced, every part named by `let` has to be used.
    ///
    /// Functions are the methods of [`Expr`](super::Expr), and `select(condition, x, y)`, `cast(f16, x)`,
    /// `saturate(i8, x)`. Numbers are decimal, `inf` or `nan`.
    ///
    /// # Errors
    /// The text does not follow the grammar, or uses an input that does not exist or a name that is not declared. The
    /// error gives the position, what was found and what is required.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let f = Function::parse("let s = a * b; relu(s) + alpha", 2, &["alpha"])?;
    /// assert_eq!(f.to_string(), "|a, b; alpha| relu(a * b) + alpha");
    /// let refused = Function::parse("|a; alpha| alpha * a", 2, &[]).unwrap_err();
    /// assert_eq!(refused.required, "the inputs and scalars that the caller has declared");
    /// assert_eq!(Function::parse("|x, y; alpha| relu(x * y) + alpha", 2, &["alpha"])?, f);
    ///
    /// let refused = Function::parse("rellu(a)", 1, &[]).unwrap_err();
    /// assert_eq!(refused.position, Some(0));
    /// assert_eq!(refused.help, "the nearest name is `relu`");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn parse(text: &str, inputs: usize, scalars: &[&str]) -> Result<Function, ExprError> {
        let inputs = Some(input_count(inputs)?);
        names::check_scalars(scalars)?;
        Parser::new(text, Declared { inputs, scalars: Some(scalars) }).function()
    }
}

/// The names between the bars at the beginning are the inputs and scalars. Without bars, inputs are called a to h and reach
/// to the last one that is used, and there are no scalars.
impl FromStr for Function {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Function, ExprError> {
        Parser::new(text, Declared { inputs: None, scalars: None }).function()
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    declared: Declared<'a>,
    /// The names of the inputs.
    inputs: Vec<&'a str>,
    nodes: Nodes,
    lets: Vec<Part<'a>>,
    /// Whether the text has what only texts of rows have.
    of_rows: bool,
    /// The levels of the nodes so far.
    levels: Vec<Level>,
    highest: u8,
}

/// A part that is named by `let`.
struct Part<'a> {
    name: &'a str,
    at: usize,
    value: Value,
    used: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, declared: Declared<'a>) -> Parser<'a> {
        let inputs = names::INPUTS.to_vec();
        Parser {
            text,
            at: 0,
            depth: 0,
            declared,
            inputs,
            nodes: Nodes::default(),
            lets: Vec::new(),
            of_rows: false,
            levels: Vec::new(),
            highest: 0,
        }
    }

    fn function(mut self) -> Result<Function, ExprError> {
        if let Some(scalars) = self.declared.scalars {
            self.nodes.scalars.extend(scalars.iter().map(|&name| name.to_owned()));
        }
        if self.eat("|") {
            self.signature()?;
        }
        let in_braces = self.eat("{");
        self.of_rows |= in_braces;
        while self.eat_word("let") {
            self.part()?;
        }
        let outputs = self.outputs()?;
        if in_braces {
            self.expect("}")?;
        }
        if self.start() < self.text.len() {
            let more = if in_braces { "the end of the text" } else { "an operator, `,` or the end of the text" };
            return Err(self.fail(more));
        }
        self.all_used()?;
        let inputs = self.declared.inputs.unwrap_or(self.highest);
        let mut function = Function::from_nodes(self.nodes, inputs, &outputs);
        let names = &self.inputs[..usize::from(inputs)];
        let scalars: Vec<&str> = function.scalars().iter().map(String::as_str).collect();
        names::check_apart(names, &scalars)?;
        function.set_names(names);
        Ok(function)
    }

    /// Reads the inputs between the bars, after the first bar.
    fn signature(&mut self) -> Result<(), ExprError> {
        let start = self.at;
        let inputs = match self.peek() {
            Some(b';' | b'|') => Vec::new(),
            _ => self.words(names::check_inputs)?,
        };
        let scalars = if self.eat(";") { self.words(names::check_scalars)? } else { Vec::new() };
        self.expect("|")?;
        names::check_apart(&inputs, &scalars).map_err(|error| error.at(start))?;
        let as_declared = self.declared.inputs.is_none_or(|declared| usize::from(declared) == inputs.len())
            && self.declared.scalars.is_none_or(|declared| declared == scalars);
        if !as_declared {
            self.at = start;
            return Err(self.fail("the inputs and scalars that the caller has declared"));
        }
        self.declared.inputs = Some(input_count(inputs.len())?);
        self.inputs = inputs;
        self.nodes.scalars = scalars.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// Names with commas between them.
    fn words(&mut self, check: impl Fn(&[&'a str]) -> Result<(), ExprError>) -> Result<Vec<&'a str>, ExprError> {
        let mut words = Vec::new();
        loop {
            let at = self.start();
            words.push(self.word());
            check(&words).map_err(|error| error.at(at))?;
            if !self.eat(",") {
                return Ok(words);
            }
        }
    }

    /// Values with commas between them, in parentheses or not.
    fn outputs(&mut self) -> Result<Vec<Id>, ExprError> {
        let in_parentheses = self.is_tuple() && self.eat("(");
        let mut outputs = Vec::new();
        loop {
            let start = self.start();
            let value = self.value()?;
            outputs.push(self.number_of(value, start)?);
            if !self.eat(",") || in_parentheses && self.peek() == Some(b')') {
                break;
            }
            if outputs.len() == MAX_OUTPUTS {
                return Err(self.fail(format!("at most {MAX_OUTPUTS} outputs")));
            }
        }
        if in_parentheses {
            self.expect(")")?;
        }
        Ok(outputs)
    }

    /// Whether what begins here is values in parentheses, with commas between them.
    fn is_tuple(&mut self) -> bool {
        let start = self.start();
        let mut depth = 0usize;
        for byte in self.text[start..].bytes() {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b',' if depth == 1 => return true,
                _ => {}
            }
            if depth == 0 {
                return false;
            }
        }
        false
    }

    /// A named part, behind `let`.
    fn part(&mut self) -> Result<(), ExprError> {
        let at = self.start();
        let name = self.word();
        let refused = match name {
            _ if self.lets.iter().any(|part| part.name == name) => format!("`{name}` is a part already"),
            _ if self.inputs.contains(&name) && self.declared.inputs.is_none() => {
                format!("`{name}` is an input where none is declared in front: |x| ..")
            }
            _ if self.inputs.contains(&name) => format!("`{name}` is an input"),
            _ if self.scalar(name).is_some() => format!("`{name}` is a run-time scalar"),
            _ if !name.is_empty() && !names::is_free(name) => format!("`{name}` means something already"),
            "" => String::new(),
            _ => {
                self.expect("=")?;
                let value = self.value()?;
                self.expect(";")?;
                self.lets.push(Part { name, at, value, used: false });
                return Ok(());
            }
        };
        self.at = at;
        Err(ExprError { help: refused, ..self.fail("a new name, such as `t0`") })
    }

    /// That no part is forgotten. Texts of elements alone may have such parts.
    fn all_used(&mut self) -> Result<(), ExprError> {
        match self.lets.iter().find(|part| self.of_rows && !part.used) {
            Some(&Part { name, at, .. }) => {
                self.at = at;
                let help = format!("use `{name}`, or leave it out");
                Err(ExprError { help, ..self.fail("a part that is used") })
            }
            None => Ok(()),
        }
    }

    fn value(&mut self) -> Result<Value, ExprError> {
        let start = self.start();
        let mut left = self.conjunction()?;
        while self.eat("||") {
            let right_start = self.start();
            let right = self.conjunction()?;
            let ids = [self.condition_of(left, start)?, self.condition_of(right, right_start)?];
            left = Value::Condition(self.add(Node::Or(ids)));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Value, ExprError> {
        let start = self.start();
        let mut left = self.comparison()?;
        while self.eat("&&") {
            let right_start = self.start();
            let right = self.comparison()?;
            let ids = [self.condition_of(left, start)?, self.condition_of(right, right_start)?];
            left = Value::Condition(self.add(Node::And(ids)));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Value, ExprError> {
        let start = self.start();
        let left = self.sum()?;
        let Some(op) = Comparison::ALL.iter().copied().find(|op| self.eat(op.text())) else {
            return Ok(left);
        };
        let right_start = self.start();
        let right = self.sum()?;
        let ids = [self.number_of(left, start)?, self.number_of(right, right_start)?];
        Ok(Value::Condition(self.add(Node::Compare(op, ids))))
    }

    fn sum(&mut self) -> Result<Value, ExprError> {
        self.chain(&[Binary::Add, Binary::Sub], Parser::product)
    }

    fn product(&mut self) -> Result<Value, ExprError> {
        self.chain(&[Binary::Mul, Binary::Div], Parser::signed)
    }

    /// Operators of one precedence, grouped from the left.
    fn chain(
        &mut self,
        ops: &[Binary],
        operand: fn(&mut Parser<'a>) -> Result<Value, ExprError>,
    ) -> Result<Value, ExprError> {
        let start = self.start();
        let mut left = operand(self)?;
        while let Some(op) = ops.iter().copied().find(|op| self.eat(op.text())) {
            let right_start = self.start();
            let right = operand(self)?;
            let ids = [self.number_of(left, start)?, self.number_of(right, right_start)?];
            left = Value::Number(self.add(Node::Binary(op, ids)));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Value, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail(format!("at most {MAX_DEPTH} levels of nesting; name parts by `let`")));
        }
        let start = self.start();
        let value = if self.eat("-") {
            let operand = self.signed()?;
            let operand = self.number_of(operand, start)?;
            Value::Number(self.add(Node::Unary(Unary::Neg, [operand])))
        } else if self.peek() == Some(b'!') {
            self.at += 1;
            let operand = self.signed()?;
            let operand = self.condition_of(operand, start)?;
            Value::Condition(self.add(Node::Not([operand])))
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(value)
    }
}
