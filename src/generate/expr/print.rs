//! The canonical text of a function.

use core::fmt;

use super::function::Function;
use super::op::{Binary, Node, Unary};
use super::write::{self, Piece, Precedence, Style};

/// The shortest decimal number that reads back as the same `f64`.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub(super) fn infix(op: Binary) -> Option<Precedence> {
    match op {
        Binary::Add | Binary::Sub => Some(Precedence::Sum),
        Binary::Mul | Binary::Div => Some(Precedence::Product),
        Binary::Min | Binary::Max | Binary::Pow => None,
    }
}

/// One operation; operands that it has are written already.
pub(super) fn piece(node: &Node, operands: &[Piece], inputs: &[&str], scalars: &[String]) -> Piece {
    match (node, operands) {
        (Node::Input(index), _) => Piece::atom(inputs[usize::from(*index)]),
        (Node::Scalar(index), _) => Piece::atom(scalars[usize::from(*index)].as_str()),
        (Node::Constant(constant), _) => {
            let text = number(constant.value());
            let precedence = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Atom };
            Piece { text, precedence }
        }
        (Node::Unary(Unary::Neg, _), [x]) => Piece::prefix("-", x),
        (Node::Unary(op, _), _) => Piece::call(op.text(), operands),
        (Node::Binary(op, _), [x, y]) => match infix(*op) {
            Some(precedence) => Piece::infix(op.text(), precedence, x, y),
            None => Piece::call(op.text(), operands),
        },
        (Node::Cast(dtype, _), [x]) => Piece::call("cast", &[Piece::atom(dtype.name()), x.clone()]),
        (Node::Saturate(dtype, _), [x]) => Piece::call("saturate", &[Piece::atom(dtype.name()), x.clone()]),
        (Node::Compare(op, _), [x, y]) => Piece::infix(op.text(), Precedence::Comparison, x, y),
        (Node::And(_), [x, y]) => Piece::infix("&&", Precedence::And, x, y),
        (Node::Or(_), [x, y]) => Piece::infix("||", Precedence::Or, x, y),
        (Node::Not(_), [x]) => Piece::prefix("!", x),
        (Node::Select(_), _) => Piece::call("select", operands),
        (Node::Reduce(reduction, along, _), _) => Piece::call(&format!("{}{along}", reduction.name()), operands),
        (Node::Column, _) => Piece::call("col", &[]),
        (Node::Width(along), _) => Piece::call(&format!("width{along}"), &[]),
        _ => Piece::call("fma", operands),
    }
}

struct Text<'a> {
    inputs: Vec<&'a str>,
    scalars: &'a [String],
}

impl Style for Text<'_> {
    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece {
        piece(node, operands, &self.inputs, self.scalars)
    }

    fn is_taken(&self, name: &str) -> bool {
        self.inputs.contains(&name) || self.scalars.iter().any(|scalar| scalar == name)
    }
}

/// One line: `|x, y; alpha| let t0 = x * y; relu(t0) + alpha`. The part between bars stands only where the rest does not
/// say it: where inputs have names of their own, where there are scalars, or where the last input is not used.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last_is_used = self.inputs() == 0 || !self.unused_inputs().contains(&(self.inputs() - 1));
        if !last_is_used || !self.scalars().is_empty() || self.has_names() {
            let inputs: Vec<&str> = self.input_names().collect();
            write!(f, "|{}", inputs.join(", "))?;
            if !self.scalars().is_empty() {
                write!(f, "; {}", self.scalars().join(", "))?;
            }
            f.write_str("| ")?;
        }
        f.write_str(&self.body())
    }
}

impl Function {
    /// The text without the names of inputs and scalars in front.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let f = Function::nary(2, |t, x| [t.scalar("alpha") * x[0]])?;
    /// assert_eq!(f.to_string(), "|a, b; alpha| alpha * a");
    /// assert_eq!(f.body(), "alpha * a");
    /// assert_eq!(Function::parse(&f.body(), f.inputs(), &["alpha"])?, f);
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn body(&self) -> String {
        let mut text = Text { inputs: self.input_names().collect(), scalars: self.scalars() };
        let body = write::body(self, &mut text);
        let parts: String = body.parts.iter().map(|(name, text)| format!("let {name} = {text}; ")).collect();
        let outputs: Vec<String> = body.outputs.into_iter().map(|piece| piece.text).collect();
        format!("{parts}{}", outputs.join(", "))
    }
}
