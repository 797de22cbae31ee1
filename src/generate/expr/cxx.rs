//! A function as C++, as a person would write it.

use super::check::{Checked, Compute};
use super::convert;
use super::function::Function;
use super::helpers::{Expansion, Helper, Helpers};
use super::names;
use super::op::{Binary, Node, Unary};
use super::write::{self, Body, Piece, Precedence, Style};

/// Longer lines are broken.
const MAX_WIDTH: usize = 110;

/// The shortest literal whose value is the constant, rounded to the compute type.
pub(super) fn literal(value: f64, compute: Compute) -> String {
    match compute {
        Compute::I32 => match value as i32 {
            // C++ has no negative literals, and 2147483648 is not an int.
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

/// For each node whether its value may come straight out of a function of the mathematical library, whose last step may be
/// a product: nvcc inlines it and contracts that product with a sum, as in `1.0f + expf(x)`.
fn open_products(function: &Function) -> Vec<bool> {
    let mut open: Vec<bool> = Vec::with_capacity(function.nodes().len());
    for node in function.nodes() {
        let passed_on = node.operands().iter().any(|id| open[id.index()]);
        open.push(match node {
            Node::Unary(op, _) => match op {
                Unary::Neg | Unary::Abs | Unary::Relu => passed_on,
                // An intrinsic, and helpers that end in one.
                Unary::Sqrt | Unary::Sigmoid | Unary::Silu | Unary::Gelu | Unary::GeluTanh => false,
                _ => true,
            },
            Node::Binary(Binary::Pow, _) => true,
            Node::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, _) | Node::Fma(_) => false,
            _ => passed_on,
        });
    }
    open
}

struct Cxx<'a> {
    inputs: &'a [&'a str],
    scalars: &'a [String],
    helpers: &'a mut Helpers,
    /// What [`open_products`] says.
    open: Vec<bool>,
}

impl<'a> Cxx<'a> {
    fn new(function: &Function, inputs: &'a [&'a str], scalars: &'a [String], helpers: &'a mut Helpers) -> Self {
        Cxx { inputs, scalars, helpers, open: open_products(function) }
    }

    /// C's name of a mathematical function in the compute type.
    fn math(&self, name: &str) -> String {
        if self.helpers.compute == Compute::F32 { format!("{name}f") } else { name.to_owned() }
    }

    /// The intrinsic that rounds to nearest, whatever nvcc is told of contraction, division and roots.
    fn rounded(&self, name: &str) -> String {
        match (self.helpers.compute, name) {
            (Compute::F32, "fma") => "__fmaf_rn".to_owned(),
            (Compute::F64, "fma") => "__fma_rn".to_owned(),
            (Compute::F32, _) => format!("__f{name}_rn"),
            _ => format!("__d{name}_rn"),
        }
    }

    fn unary(&mut self, op: Unary, operands: &[Piece], x: &Piece) -> Piece {
        let helper = match op {
            Unary::Exp2 if self.helpers.compute == Compute::F32 => Helper::Exp2,
            Unary::Neg if self.helpers.compute == Compute::I32 => Helper::WrapNeg,
            Unary::Abs if self.helpers.compute == Compute::I32 => Helper::WrapAbs,
            Unary::Relu => Helper::Relu,
            Unary::Sigmoid => Helper::Sigmoid,
            Unary::Silu => Helper::Silu,
            Unary::Gelu => Helper::Gelu,
            Unary::GeluTanh => Helper::GeluTanh,
            Unary::Neg => return Piece::prefix("-", x),
            Unary::Abs => return Piece::call(&self.math("fabs"), operands),
            Unary::Sqrt => return Piece::call(&self.rounded("sqrt"), operands),
            _ => return Piece::call(&self.math(op.text()), operands),
        };
        Piece::call(self.helpers.call(helper), operands)
    }

    /// Operations on integers: sums and products wrap.
    fn integers(&mut self, op: Binary, operands: &[Piece]) -> Piece {
        let name = match op {
            Binary::Add => self.helpers.call(Helper::WrapAdd),
            Binary::Sub => self.helpers.call(Helper::WrapSub),
            Binary::Mul => self.helpers.call(Helper::WrapMul),
            Binary::Min => "cute::min",
            Binary::Max => "cute::max",
            Binary::Div | Binary::Pow => op.text(),
        };
        Piece::call(name, operands)
    }

    /// A choice between two names is an lvalue in C++. nvcc then keeps both in local memory and chooses an address, so one becomes a value.
    fn choice(&self, condition: &Piece, yes: &Piece, no: &Piece) -> Piece {
        let in_names = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let is_name =
            |piece: &Piece| piece.text.chars().all(in_names) && !piece.text.starts_with(|c: char| c.is_ascii_digit());
        match is_name(yes) && is_name(no) {
            true => Piece::choice(condition, &Piece::call(self.helpers.compute.cxx(), std::slice::from_ref(yes)), no),
            false => Piece::choice(condition, yes, no),
        }
    }

    /// `open` where an operand may end in a product that the text does not show.
    fn binary(&mut self, op: Binary, operands: &[Piece], [x, y]: [&Piece; 2], open: bool) -> Piece {
        if self.helpers.compute == Compute::I32 {
            return self.integers(op, operands);
        }
        let name = match op {
            // `+` rounds to nearest, and there is nothing that it could be contracted with.
            Binary::Add | Binary::Sub if !open => return Piece::infix(op.text(), Precedence::Sum, x, y),
            Binary::Add => self.rounded("add"),
            Binary::Sub => self.rounded("sub"),
            Binary::Mul => self.rounded("mul"),
            Binary::Div => self.rounded("div"),
            Binary::Min => self.math("fmin"),
            Binary::Max => self.math("fmax"),
            Binary::Pow => self.math("pow"),
        };
        Piece::call(&name, operands)
    }
}

impl Style for Cxx<'_> {
    // One more call around it, and its name, still fit a line of about 130.
    const WIDEST: usize = 80;

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
            (Node::Binary(op, ids), [x, y]) => {
                let open = ids.iter().any(|id| self.open[id.index()]);
                self.binary(*op, operands, [x, y], open)
            }
            (Node::Cast(dtype, _), [x]) => convert::cast(*dtype, x, self.helpers),
            (Node::Saturate(dtype, _), [x]) => convert::saturate(*dtype, x, self.helpers),
            (Node::Compare(op, _), [x, y]) => Piece::infix(op.text(), Precedence::Comparison, x, y),
            (Node::And(_), [x, y]) => Piece::infix("&&", Precedence::And, x, y),
            (Node::Or(_), [x, y]) => Piece::infix("||", Precedence::Or, x, y),
            (Node::Not(_), [x]) => Piece::prefix("!", x),
            (Node::Select(_), [c, x, y]) => self.choice(c, x, y),
            _ => Piece::call(&self.rounded("fma"), operands),
        }
    }
}

/// The statements of a body, one a line; one that is short stands between its braces.
pub(super) fn braces(body: &Body, indent: &str, before: usize) -> String {
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
pub(super) fn helper(name: &str, expansion: &Expansion, of: &Helpers) -> String {
    let (function, how) = expansion.on(of.compute);
    let definition = write::body(&expansion.is, &mut Formula);
    let formula: Vec<&str> = definition.outputs.iter().map(|piece| piece.text.as_str()).collect();
    // `Helpers::call` notes what expansions call.
    let mut helpers = Helpers::new(of.compute);
    let body = write::body(function, &mut Cxx::new(function, &["x"], &[], &mut helpers));
    let type_ = of.compute.cxx();
    let head = format!("CUTE_DEVICE {type_} {name}({type_} x) ");
    let body = braces(&body, "", head.len());
    format!("// {name}(x) = {}{how}.\n{head}{body}\n", formula.join(", "))
}

/// An expansion in a comment: canonical text, but of `x`.
struct Formula;

impl Style for Formula {
    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece {
        match node {
            Node::Input(_) => Piece::atom("x"),
            _ => super::print::piece(node, operands, &["x"], &[]),
        }
    }
}

impl Checked {
    /// A C++ struct called `name` that computes the function of one element of each input, and keeps the run-time
    /// scalars as members, in order. Several outputs are a `cute::tuple`.
    ///
    /// It needs `cute/tensor.hpp`, and the helpers that were added ahead of it. Its roundings stand in the text: products,
    /// quotients and roots are intrinsics (CUDA Math API, `__fmul_rn`), which nvcc neither contracts into a fused
    /// multiply-add nor replaces by approximations; `+` and `-` stand where no operand can be contracted with them.
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
    ///   CUTE_DEVICE cute::tuple<float, float> operator()(float a, float b) const {
    ///     auto const t0 = __fmul_rn(alpha, a) + b;
    ///     return cute::make_tuple(t0, sigmoid(t0));
    ///   }
    /// };
    /// ");
    /// assert!(helpers.to_string().contains("return __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x)));"));
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn functor(&self, name: &str, helpers: &mut Helpers) -> String {
        let function = self.function();
        let type_ = self.compute().cxx();
        helpers.compute = self.compute();
        let named = function.input_names().chain(function.scalars().iter().map(String::as_str));
        let mut inputs = names::in_cxx(named);
        let scalars = inputs.split_off(function.inputs());
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let body = write::body(function, &mut Cxx::new(function, &inputs, &scalars, helpers));
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
        let mut members: String = scalars.iter().map(|scalar| format!("  {type_} {scalar};\n")).collect();
        if !members.is_empty() {
            members.push('\n');
        }
        let head = format!("  CUTE_DEVICE {result} operator()({}) const ", parameters.join(", "));
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
        assert!(text.contains("__fmul_rn(a < b && !(a == 1.0f) ? a : -b, a - (b - 1.0f))"), "{text}");
    }

    #[test]
    fn a_choice_is_a_value() {
        for (text, right) in [
            ("select(a < b, a, b)", "a < b ? float(a) : b"),
            ("select(a < b, a, 0)", "a < b ? a : 0.0f"),
            ("select(a < b, a + b, b)", "a < b ? a + b : b"),
        ] {
            assert_eq!(returned(text, Compute::F32), right);
        }
    }

    fn returned(text: &str, compute: Compute) -> String {
        let (functor, _) = functor(&text.parse().expect("grammar"), compute);
        let (_, body) = functor.split_once("return ").expect("a result");
        body.split_once(';').expect("a statement").0.to_owned()
    }

    #[test]
    fn roundings_stand_in_the_text() {
        for (text, float, double) in [
            ("a * b + c", "__fmul_rn(a, b) + c", "__dmul_rn(a, b) + c"),
            ("a / b - sqrt(c)", "__fdiv_rn(a, b) - __fsqrt_rn(c)", "__ddiv_rn(a, b) - __dsqrt_rn(c)"),
            ("fma(a, b, c)", "__fmaf_rn(a, b, c)", "__fma_rn(a, b, c)"),
            ("a - (b - c) + 1", "a - (b - c) + 1.0f", "a - (b - c) + 1.0"),
            // The library's functions are inlined down to the operations.
            ("1 + exp(a)", "__fadd_rn(1.0f, expf(a))", "__dadd_rn(1.0, exp(a))"),
            ("a - -abs(pow(a, b))", "__fsub_rn(a, -fabsf(powf(a, b)))", "__dsub_rn(a, -fabs(pow(a, b)))"),
            ("gelu(a) + sigmoid(b)", "gelu(a) + sigmoid(b)", "gelu(a) + sigmoid(b)"),
            ("max(tanh(a), b) + c", "__fadd_rn(fmaxf(tanhf(a), b), c)", "__dadd_rn(fmax(tanh(a), b), c)"),
        ] {
            assert_eq!(returned(text, Compute::F32), float);
            assert_eq!(returned(text, Compute::F64), double);
        }
        // A name hides nothing from the compiler.
        let (text, _) = functor(&"let t0 = exp(a); t0 + t0, b".parse().expect("grammar"), Compute::F32);
        assert!(text.contains("__fadd_rn(t0, t0)"), "{text}");
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
    fn expansions_call_no_helper_but_exp2_and_definitions_are_one_formula() {
        for expansion in Unary::ALL.iter().filter_map(|op| super::super::helpers::expansion(*op)) {
            assert!(write::body(&expansion.is, &mut Formula).parts.is_empty());
            for compute in [Compute::F32, Compute::F64] {
                let mut helpers = Helpers::new(compute);
                let (function, _) = expansion.on(compute);
                write::body(function, &mut Cxx::new(function, &["x"], &[], &mut helpers));
                let text = helpers.to_string();
                let functions = text.matches("CUTE_DEVICE").count();
                assert!(functions == text.matches(" exp2_or_0(").count(), "{function}: {text}");
                assert!(functions <= usize::from(compute == Compute::F32), "{function}: {text}");
            }
        }
    }
}
