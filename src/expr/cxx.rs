//! A function as C++, as a person would write it.

use super::check::{Checked, Compute};
use super::convert;
use super::function::Function;
use super::helpers::{Helper, Helpers};
use super::op::{Binary, Node, Unary};
use super::print::infix;
use super::write::{self, Body, Piece, Precedence, Style};

/// Longer lines are broken.
const MAX_WIDTH: usize = 110;

/// The shortest literal whose value is the constant, rounded to the compute type.
pub(super) fn literal(value: f64, compute: Compute) -> String {
    match compute {
        Compute::I32 => match value as i32 {
            // C++ has no negative literals, and 2147483648 is no int.
            i32::MIN => "(-2147483647 - 1)".to_owned(),
            value => value.to_string(),
        },
        Compute::F32 if value.is_finite() => format!("{:?}f", value as f32),
        Compute::F64 if value.is_finite() => format!("{value:?}"),
        _ => {
            let limits = format!("cute::numeric_limits<{}>", compute.cxx());
            let sign = if value == f64::NEG_INFINITY { "-" } else { "" };
            if value.is_nan() { format!("{limits}::quiet_NaN()") } else { format!("{sign}{limits}::infinity()") }
        }
    }
}

struct Cxx<'a> {
    inputs: &'a [&'a str],
    scalars: &'a [String],
    helpers: &'a mut Helpers,
}

impl Cxx<'_> {
    /// C's name of a mathematical function in the compute type.
    fn math(&self, name: &str) -> String {
        if self.helpers.compute == Compute::F32 { format!("{name}f") } else { name.to_owned() }
    }

    fn unary(&mut self, op: Unary, operands: &[Piece], x: &Piece) -> Piece {
        let helper = match op {
            Unary::Neg if self.helpers.compute == Compute::I32 => Helper::WrapNeg,
            Unary::Abs if self.helpers.compute == Compute::I32 => Helper::WrapAbs,
            Unary::Relu => Helper::Relu,
            Unary::Sigmoid => Helper::Sigmoid,
            Unary::Silu => Helper::Silu,
            Unary::Gelu => Helper::Gelu,
            Unary::GeluTanh => Helper::GeluTanh,
            Unary::Neg => return Piece::prefix("-", x),
            Unary::Abs => return Piece::call(&self.math("fabs"), operands),
            _ => return Piece::call(&self.math(op.text()), operands),
        };
        Piece::call(self.helpers.call(helper), operands)
    }

    fn binary(&mut self, op: Binary, operands: &[Piece], x: &Piece, y: &Piece) -> Piece {
        if self.helpers.compute == Compute::I32 {
            let name = match op {
                Binary::Add => self.helpers.call(Helper::WrapAdd),
                Binary::Sub => self.helpers.call(Helper::WrapSub),
                Binary::Mul => self.helpers.call(Helper::WrapMul),
                Binary::Min => "cute::min",
                Binary::Max => "cute::max",
                Binary::Div | Binary::Pow => op.text(),
            };
            return Piece::call(name, operands);
        }
        if op == Binary::Mul && self.helpers.contracted {
            let name = if self.helpers.compute == Compute::F32 { "__fmul_rn" } else { "__dmul_rn" };
            return Piece::call(name, operands);
        }
        match (infix(op), op) {
            (Some(precedence), _) => Piece::infix(op.text(), precedence, x, y),
            (None, Binary::Min) => Piece::call(&self.math("fmin"), operands),
            (None, Binary::Max) => Piece::call(&self.math("fmax"), operands),
            (None, _) => Piece::call(&self.math(op.text()), operands),
        }
    }
}

impl Style for Cxx<'_> {
    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece {
        match (node, operands) {
            (Node::Input(index), _) => Piece::atom(self.inputs[usize::from(*index)]),
            (Node::Scalar(index), _) => Piece::atom(self.scalars[usize::from(*index)].as_str()),
            (Node::Constant(constant), _) => {
                let text = literal(constant.value(), self.helpers.compute);
                let precedence = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Atom };
                Piece { text, precedence }
            }
            (Node::Unary(op, _), [x]) => self.unary(*op, operands, x),
            (Node::Binary(op, _), [x, y]) => self.binary(*op, operands, x, y),
            (Node::Cast(dtype, _), [x]) => convert::cast(*dtype, x, self.helpers),
            (Node::Saturate(dtype, _), [x]) => convert::saturate(*dtype, x, self.helpers),
            (Node::Compare(op, _), [x, y]) => Piece::infix(op.text(), Precedence::Comparison, x, y),
            (Node::And(_), [x, y]) => Piece::infix("&&", Precedence::And, x, y),
            (Node::Or(_), [x, y]) => Piece::infix("||", Precedence::Or, x, y),
            (Node::Not(_), [x]) => Piece::prefix("!", x),
            (Node::Select(_), [c, x, y]) => Piece::choice(c, x, y),
            _ => Piece::call(&self.math("fma"), operands),
        }
    }
}

/// The statements of a body, one a line; one that is short stands between its braces.
fn braces(body: &Body, indent: &str, before: usize) -> String {
    let outputs: Vec<&str> = body.outputs.iter().map(|piece| piece.text.as_str()).collect();
    let result = match outputs.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("cute::make_tuple({})", several.join(", ")),
    };
    if body.parts.is_empty() && before + result.len() + "{ return ; }".len() <= MAX_WIDTH {
        return format!("{{ return {result}; }}");
    }
    let parts: String =
        body.parts.iter().map(|(name, text)| format!("{indent}  auto const {name} = {text};\n")).collect();
    format!("{{\n{parts}{indent}  return {result};\n{indent}}}")
}

/// A function of one input as a helper of its own.
pub(super) fn helper(name: &str, function: &Function, of: &Helpers) -> String {
    let definition = write::body(function, &mut Formula);
    let formula: Vec<&str> = definition.outputs.iter().map(|piece| piece.text.as_str()).collect();
    // Expansions call nothing but C's mathematics, so that no further helper is noted.
    let mut helpers = Helpers::new(of.compute);
    helpers.contracted = of.contracted;
    let body = write::body(function, &mut Cxx { inputs: &["x"], scalars: &[], helpers: &mut helpers });
    let type_ = of.compute.cxx();
    let head = format!("{} {type_} {name}({type_} x) ", of.target());
    let body = braces(&body, "", head.len());
    format!("// {name}(x) = {}.\n{head}{body}\n", formula.join(", "))
}

/// An expansion in a comment: canonical text, but of `x`.
struct Formula;

impl Style for Formula {
    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece {
        match node {
            Node::Input(_) => Piece::atom("x"),
            _ => super::print::piece(node, operands, &[]),
        }
    }
}

impl Checked {
    /// A C++ struct called `name` that computes the function of one element of each input, and keeps the run-time
    /// scalars as members, in order. Several outputs are a `cute::tuple`.
    ///
    /// It needs `cute/tensor.hpp`, and the helpers that were added ahead of it.
    ///
    /// ```
    /// use cutemplate::expr::{Compute, Function, Helpers};
    ///
    /// let f = Function::nary(2, |t, x| {
    ///     let s = t.scalar("alpha") * x[0] + x[1];
    ///     [s, s.sigmoid()]
    /// })?;
    /// let mut helpers = Helpers::new(Compute::F32);
    /// let text = f.check(Compute::F32).expect("f32 has everything").functor("Op", &mut helpers);
    /// assert_eq!(text, "\
    /// struct Op {
    ///   float alpha;
    ///
    ///   CUTE_HOST_DEVICE cute::tuple<float, float> operator()(float a, float b) const {
    ///     auto const t0 = alpha * a + b;
    ///     return cute::make_tuple(t0, sigmoid(t0));
    ///   }
    /// };
    /// ");
    /// assert!(helpers.to_string().contains("return 1.0f / (1.0f + expf(-x));"));
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn functor(&self, name: &str, helpers: &mut Helpers) -> String {
        let function = self.function();
        let type_ = self.compute().cxx();
        helpers.compute = self.compute();
        let inputs: Vec<&str> = function.input_names().collect();
        let body = write::body(function, &mut Cxx { inputs: &inputs, scalars: function.scalars(), helpers });
        let target = helpers.target();
        let unused = function.unused_inputs();
        let parameters: Vec<String> = (0..)
            .zip(&inputs)
            .map(
                |(i, name)| {
                    if unused.contains(&i) { format!("{type_} /* {name} */") } else { format!("{type_} {name}") }
                },
            )
            .collect();
        let result = match function.outputs() {
            1 => type_.to_owned(),
            several => format!("cute::tuple<{}>", vec![type_; several].join(", ")),
        };
        let mut members: String = function.scalars().iter().map(|scalar| format!("  {type_} {scalar};\n")).collect();
        if !members.is_empty() {
            members.push('\n');
        }
        let head = format!("  {target} {result} operator()({}) const ", parameters.join(", "));
        let body = braces(&body, "  ", head.len());
        format!("struct {name} {{\n{members}{head}{body}\n}};\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functor(f: &Function, compute: Compute) -> (String, String) {
        let mut helpers = Helpers::new(compute);
        let text = f.check(compute).expect("the compute type has it").functor("Op", &mut helpers);
        (text, helpers.to_string())
    }

    #[test]
    fn literals_are_the_shortest_that_read_back() {
        assert_eq!(literal(0.1, Compute::F32), "0.1f");
        assert_eq!(literal(1.0, Compute::F32), "1.0f");
        assert_eq!(literal(1e-30, Compute::F32), "1e-30f");
        assert_eq!(literal(-0.0, Compute::F64), "-0.0");
        assert_eq!(literal(f64::NEG_INFINITY, Compute::F32), "-cute::numeric_limits<float>::infinity()");
        assert_eq!(literal(-2147483648.0, Compute::I32), "(-2147483647 - 1)");
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let (text, _) =
            functor(&"select(a < b && !(a == 1), a, -b) * (a - (b - 1))".parse().expect("grammar"), Compute::F32);
        assert!(text.contains("(a < b && !(a == 1.0f) ? a : -b) * (a - (b - 1.0f))"), "{text}");
    }

    #[test]
    fn integers_wrap_through_helpers() {
        let (text, helpers) = functor(&"abs(a * b - 1)".parse().expect("grammar"), Compute::I32);
        assert!(text.contains("return wrap_abs(wrap_sub(wrap_mul(a, b), 1));"), "{text}");
        let order: Vec<usize> = ["int32_t wrap_neg(", "int32_t wrap_abs(", "int32_t wrap_sub(", "int32_t wrap_mul("]
            .map(|n| helpers.find(n).expect(n))
            .into();
        assert!(order.is_sorted(), "{helpers}");
    }

    #[test]
    fn expansions_call_no_helper_and_need_no_parts() {
        for op in Unary::ALL {
            if let Some(function) = super::super::helpers::expansion(*op) {
                let mut helpers = Helpers::new(Compute::F32);
                let body = write::body(function, &mut Cxx { inputs: &["x"], scalars: &[], helpers: &mut helpers });
                assert!(helpers.is_empty() && body.parts.is_empty(), "{op:?}");
            }
        }
    }
}
