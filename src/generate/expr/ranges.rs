//! Conditions on bounds as C++: `Range`, with the operations that a text uses, and a functor of ranges.

use std::collections::BTreeSet;

use super::convert;
use super::cxx::{self, braces};
use super::emptied::Emptied;
use super::helpers::{Helper, Helpers};
use super::names;
use super::op::{Binary, Comparison, Node, Unary};
use super::write::{self, Piece, Precedence, Style};

/// What a range is, whatever is done with it.
const RANGE: &str = "\
// Bounds of a number; both are NaN where it may be any number, or NaN. Operations are monotone in each operand, and so is their rounding:
// bounds of a result are results at bounds.
struct Range
{
  float low;
  float high;

  CUTE_DEVICE Range(float x) : low(x), high(x) {}

  // Nothing is known of numbers that overflow.
  CUTE_DEVICE Range(float low, float high) : low(low), high(high)
  {
    if (!(fabsf(low) < INFINITY && fabsf(high) < INFINITY)) {
      this->low = this->high = cute::numeric_limits<float>::quiet_NaN();
    }
  }

  CUTE_DEVICE bool is_known() const { return low <= high; }
";

/// What texts do with ranges. A comparison of two comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Neg,
    Abs,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    AtEnds,
    Compare(Comparison),
}

impl Operation {
    fn text(self) -> String {
        let operator = |op: &str, low: &str, high: &str| {
            format!("  friend CUTE_DEVICE Range operator{op}(Range a, Range b) {{ return {{{low}, {high}}}; }}\n")
        };
        let corners = |op: &str, name: &str, guard: &str| {
            format!(
                "  friend CUTE_DEVICE Range operator{op}(Range a, Range b)\n  {{\n{guard}    \
                 float const ll = {name}(a.low, b.low), lh = {name}(a.low, b.high);\n    \
                 float const hl = {name}(a.high, b.low), hh = {name}(a.high, b.high);\n    \
                 return {{fminf(fminf(ll, lh), fminf(hl, hh)), fmaxf(fmaxf(ll, lh), fmaxf(hl, hh))}};\n  }}\n"
            )
        };
        // fminf and fmaxf would give the other one for NaN.
        let choice = |name: &str| {
            format!(
                "  friend CUTE_DEVICE Range {name}(Range a, Range b)\n  {{\n    \
                 return a.is_known() && b.is_known() ? Range(f{name}f(a.low, b.low), f{name}f(a.high, b.high)) : Range(-INFINITY, INFINITY);\n  }}\n"
            )
        };
        match self {
            Operation::Neg => "  friend CUTE_DEVICE Range operator-(Range x) { return {-x.high, -x.low}; }\n".to_owned(),
            Operation::Abs => "  friend CUTE_DEVICE Range abs(Range x)\n  {\n    \
                 return {fmaxf(0.0f, fmaxf(x.low, -x.high)), fmaxf(-x.low, x.high)};\n  }\n"
                .to_owned(),
            Operation::Add => operator("+", "__fadd_rn(a.low, b.low)", "__fadd_rn(a.high, b.high)"),
            Operation::Sub => operator("-", "__fsub_rn(a.low, b.high)", "__fsub_rn(a.high, b.low)"),
            Operation::Mul => corners("*", "__fmul_rn", ""),
            Operation::Div => corners(
                "/",
                "__fdiv_rn",
                "    if (!(b.low > 0.0f || b.high < 0.0f)) {\n      return {-INFINITY, INFINITY};\n    }\n",
            ),
            Operation::Min => choice("min"),
            Operation::Max => choice("max"),
            Operation::AtEnds => "  // The function does not decrease.\n  template <class F>\n  \
                 friend CUTE_DEVICE Range at_ends(Range x, F const& f) { return x.is_known() ? Range(f(x.low), f(x.high)) : x; }\n"
                .to_owned(),
            Operation::Compare(op) => {
                let holds = match op {
                    Comparison::Le => "a.high <= b.low",
                    Comparison::Lt => "a.high < b.low",
                    Comparison::Ge => "a.low >= b.high",
                    Comparison::Gt => "a.low > b.high",
                    Comparison::Eq => "a.low == b.high && a.high == b.low",
                    Comparison::Ne => "a.high < b.low || a.low > b.high",
                };
                format!("  friend CUTE_DEVICE bool operator{}(Range a, Range b) {{ return {holds}; }}\n", op.text())
            }
        }
    }
}

/// How ranges are written.
struct Ranges<'a> {
    inputs: &'a [String],
    scalars: &'a [String],
    helpers: &'a mut Helpers,
    used: BTreeSet<Operation>,
}

/// What C++ would compute with by itself: a number of the text.
fn is_literal(piece: &Piece) -> bool {
    piece.text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
}

/// The same as a range.
fn ranged(piece: &Piece) -> Piece {
    if is_literal(piece) { Piece::call("Range", core::slice::from_ref(piece)) } else { piece.clone() }
}

impl Ranges<'_> {
    fn infix(&mut self, operation: Operation, text: &str, precedence: Precedence, [x, y]: [&Piece; 2]) -> Piece {
        self.used.insert(operation);
        let x = if is_literal(y) { ranged(x) } else { x.clone() };
        Piece::infix(text, precedence, &x, y)
    }

    /// A function at both ends.
    fn at_ends(&mut self, x: &Piece, of: impl FnOnce(&Piece, &mut Helpers) -> Piece) -> Piece {
        let end = Piece::atom("x");
        let result = of(&end, self.helpers);
        if result.text == end.text {
            return x.clone();
        }
        self.used.insert(Operation::AtEnds);
        Piece::atom(format!("at_ends({}, [](float x) {{ return {}; }})", ranged(x).text, result.text))
    }
}

impl Style for Ranges<'_> {
    const WIDEST: usize = 80;

    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece {
        match (node, operands) {
            (Node::Input(index), _) => Piece::atom(self.inputs[usize::from(*index)].as_str()),
            (Node::Scalar(index), _) => Piece::atom(format!("Range({})", self.scalars[usize::from(*index)])),
            (Node::Constant(constant), _) => {
                let text = cxx::literal(constant.value(), self.helpers.compute);
                let precedence = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Atom };
                Piece { text, precedence }
            }
            (Node::Unary(Unary::Neg, _), [x]) => {
                self.used.insert(Operation::Neg);
                Piece::prefix("-", x)
            }
            (Node::Unary(Unary::Abs, _), [_]) => {
                self.used.insert(Operation::Abs);
                Piece::call("abs", &operands.iter().map(ranged).collect::<Vec<_>>())
            }
            // The only other one that is monotone.
            (Node::Unary(..), [x]) => {
                self.at_ends(x, |x, helpers| Piece::call(helpers.call(Helper::Relu), core::slice::from_ref(x)))
            }
            (Node::Cast(dtype, _), [x]) => self.at_ends(x, |x, helpers| convert::cast(*dtype, x, helpers)),
            (Node::Saturate(dtype, _), [x]) => self.at_ends(x, |x, helpers| convert::saturate(*dtype, x, helpers)),
            (Node::Binary(op, _), [x, y]) => {
                let (operation, precedence) = match op {
                    Binary::Add => (Operation::Add, Precedence::Sum),
                    Binary::Sub => (Operation::Sub, Precedence::Sum),
                    Binary::Mul => (Operation::Mul, Precedence::Product),
                    Binary::Div => (Operation::Div, Precedence::Product),
                    Binary::Min | Binary::Max | Binary::Pow => {
                        self.used.insert(if *op == Binary::Min { Operation::Min } else { Operation::Max });
                        return Piece::call(op.text(), &operands.iter().map(ranged).collect::<Vec<_>>());
                    }
                };
                self.infix(operation, op.text(), precedence, [x, y])
            }
            (Node::Compare(op, _), [x, y]) => {
                self.infix(Operation::Compare(*op), op.text(), Precedence::Comparison, [x, y])
            }
            (Node::And(_), [x, y]) => Piece::infix("&&", Precedence::And, x, y),
            (Node::Or(_), [x, y]) => Piece::infix("||", Precedence::Or, x, y),
            _ => Piece::atom("false"),
        }
    }
}

impl Emptied {
    /// A C++ struct called `name` that says of a range of each known input, in order, whether the condition holds. It keeps the function's
    /// run-time scalars as members, in order. Ahead of it stands the struct `Range`.
    ///
    /// ```
    /// use cutemplate::expr::{Compute, Function, Helpers};
    ///
    /// let window: Function = "|s, q, k; left| select(k <= q && q - k <= left, s, -inf)".parse()?;
    /// let emptied = window.check(Compute::F32).expect("f32 has it").emptied(&[1, 2]).expect("a mask");
    /// let text = emptied.functor("Empties", &mut Helpers::new(Compute::F32));
    /// assert!(text.contains("bool operator()(Range q, Range k) const { return k > q || q - k > Range(left); }"), "{text}");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn functor(&self, name: &str, helpers: &mut Helpers) -> String {
        let function = &self.condition;
        let named = function.input_names().chain(function.scalars().iter().map(String::as_str));
        let mut inputs = names::in_cxx(named);
        let scalars = inputs.split_off(function.inputs());
        let mut style = Ranges { inputs: &inputs, scalars: &scalars, helpers, used: BTreeSet::new() };
        let body = write::body(function, &mut style);
        let operations: String = style.used.iter().map(|operation| operation.text()).collect();
        let (of_all, comparisons) = operations.split_at(operations.find("  friend CUTE_DEVICE bool").unwrap_or(0));
        let unused = function.unused_inputs();
        let parameter = |index: &usize| match unused.contains(index) {
            true => format!("Range /* {} */", inputs[*index]),
            false => format!("Range {}", inputs[*index]),
        };
        let parameters: Vec<String> = self.known.iter().map(parameter).collect();
        let members: String = scalars.iter().map(|scalar| format!("  float {scalar};\n")).collect();
        let apart = if members.is_empty() { "" } else { "\n" };
        let head = format!("  CUTE_DEVICE bool operator()({}) const ", parameters.join(", "));
        let body = braces(&body, "  ", head.len());
        let of_all = if of_all.is_empty() { String::new() } else { format!("\n{of_all}") };
        format!(
            "{RANGE}{of_all}\n  // A comparison holds if it does for all numbers of both.\n{comparisons}}};\n\n\
             struct {name} {{\n{members}{apart}{head}{body}\n}};\n"
        )
    }
}
