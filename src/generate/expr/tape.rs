//! The list that a closure's operations are written to, and the handles that it computes with.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, Div, Mul, Neg, Sub};
use std::collections::HashMap;

use super::op::{Binary, Comparison, Constant, Id, Node, Unary};
use crate::dtype::DType;

/// Nodes in order of creation, each once.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) list: Vec<Node>,
    ids: HashMap<Node, Id>,
    pub(super) scalars: Vec<String>,
}

impl Nodes {
    /// The node's place; a node that is there already is not written twice.
    pub(super) fn add(&mut self, node: Node) -> Id {
        if let Some(id) = self.simpler(node) {
            return id;
        }
        let next = Id(u32::try_from(self.list.len()).expect("memory ends before 2^32 nodes"));
        let id = *self.ids.entry(node).or_insert(next);
        if id == next {
            self.list.push(node);
        }
        id
    }

    /// Signs that cancel, and choices that are none: nothing that could change a rounding, a NaN or a zero's sign.
    fn simpler(&mut self, node: Node) -> Option<Id> {
        match node {
            Node::Unary(Unary::Neg, [x]) => match self.list[x.index()] {
                Node::Unary(Unary::Neg, [y]) => Some(y),
                // The negative of the lowest integer is not an integer constant.
                Node::Constant(c) if c.value().is_sign_positive() => {
                    Some(self.add(Node::Constant(Constant::new(-c.value()))))
                }
                _ => None,
            },
            Node::Not([x]) => match self.list[x.index()] {
                Node::Not([y]) => Some(y),
                _ => None,
            },
            Node::Select([_, x, y]) if x == y => Some(x),
            _ => None,
        }
    }

    /// The scalar's node; a name that is new is declared.
    pub(super) fn scalar(&mut self, name: &str) -> Id {
        let index = self.scalars.iter().position(|known| known == name).unwrap_or_else(|| {
            self.scalars.push(name.to_owned());
            self.scalars.len() - 1
        });
        // A list that is too long for the index is refused when the function is made.
        self.add(Node::Scalar(u8::try_from(index).unwrap_or(u8::MAX)))
    }
}

/// Gives a traced closure constants and run-time scalars, besides its inputs.
///
/// ```
/// use cutemplate::expr::Function;
///
/// let axpby = Function::nary(2, |t, x| [t.scalar("alpha") * x[0] + t.scalar("beta") * x[1]])?;
/// assert_eq!(axpby.scalars(), ["alpha", "beta"]);
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Tape<'t> {
    nodes: &'t RefCell<Nodes>,
    // Invariant, so that handles of two tapes have two types.
    brand: PhantomData<Cell<&'t ()>>,
}

impl<'t> Tape<'t> {
    pub(super) fn new(nodes: &'t RefCell<Nodes>) -> Tape<'t> {
        Tape { nodes, brand: PhantomData }
    }

    pub(super) fn add(self, node: Node) -> Expr<'t> {
        Expr { id: self.nodes.borrow_mut().add(node), tape: self }
    }

    pub(super) fn condition(self, node: Node) -> Cond<'t> {
        Cond { id: self.nodes.borrow_mut().add(node), tape: self }
    }

    /// A constant: rounded to the type that is computed in.
    pub fn constant(self, value: impl Into<f64>) -> Expr<'t> {
        self.add(Node::Constant(Constant::new(value.into())))
    }

    /// A parameter that the launch gives, the same for every element; the same name is the same parameter.
    pub fn scalar(self, name: &str) -> Expr<'t> {
        Expr { id: self.nodes.borrow_mut().scalar(name), tape: self }
    }
}

impl fmt::Debug for Tape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tape")
    }
}

/// A value inside a traced closure: an input, or computed from inputs.
///
/// Operators take another `Expr`, or an `f64`, `f32` or `i32` constant on either side; methods take
/// [`Into<Operand>`](Operand).
///
/// ```
/// use cutemplate::expr::Function;
///
/// let f = Function::binary(|a, b| (a * b + 1).relu().min(6.0));
/// assert_eq!(f.to_string(), "min(relu(a * b + 1), 6)");
/// ```
#[derive(Clone, Copy)]
pub struct Expr<'t> {
    pub(super) id: Id,
    pub(super) tape: Tape<'t>,
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({})", self.id.0)
    }
}

/// A condition inside a traced closure: comparisons give it, and [`select`](Cond::select) decides by it.
///
/// ```
/// use cutemplate::expr::Function;
///
/// let hard_step = Function::unary(|x| x.ge(-1).and(x.le(1)).select(x, 0));
/// assert_eq!(hard_step.to_string(), "select(a >= -1 && a <= 1, a, 0)");
/// ```
#[derive(Clone, Copy)]
pub struct Cond<'t> {
    pub(super) id: Id,
    pub(super) tape: Tape<'t>,
}

impl fmt::Debug for Cond<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cond({})", self.id.0)
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind<'t> {
    Expr(Expr<'t>),
    Constant(f64),
}

/// The operand of an operation: an [`Expr`] or a constant (`f64`, `f32`, `i32`).
#[derive(Clone, Copy, Debug)]
pub struct Operand<'t>(Kind<'t>);

impl<'t> Operand<'t> {
    fn on(self, tape: Tape<'t>) -> Id {
        match self.0 {
            Kind::Expr(expr) => expr.id,
            Kind::Constant(value) => tape.constant(value).id,
        }
    }
}

impl<'t> From<Expr<'t>> for Operand<'t> {
    fn from(expr: Expr<'t>) -> Operand<'t> {
        Operand(Kind::Expr(expr))
    }
}

macro_rules! constants {
    ($($number:ty),*) => {$(
        impl<'t> From<$number> for Operand<'t> {
            fn from(value: $number) -> Operand<'t> {
                Operand(Kind::Constant(f64::from(value)))
            }
        }
    )*};
}
constants!(f64, f32, i32);

macro_rules! operators {
    ($($operator:ident $method:ident $op:ident),*) => {$(
        impl<'t, T: Into<Operand<'t>>> $operator<T> for Expr<'t> {
            type Output = Expr<'t>;

            fn $method(self, other: T) -> Expr<'t> {
                self.binary(Binary::$op, other)
            }
        }

        operators!(@left $operator $method $op f64 f32 i32);
    )*};
    (@left $operator:ident $method:ident $op:ident $($number:ty)*) => {$(
        impl<'t> $operator<Expr<'t>> for $number {
            type Output = Expr<'t>;

            fn $method(self, other: Expr<'t>) -> Expr<'t> {
                other.tape.constant(self).binary(Binary::$op, other)
            }
        }
    )*};
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl<'t> Neg for Expr<'t> {
    type Output = Expr<'t>;

    fn neg(self) -> Expr<'t> {
        self.unary(Unary::Neg)
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self) -> Expr<'t> {
            self.unary(Unary::$op)
        }
    )*};
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, other: impl Into<Operand<'t>>) -> Cond<'t> {
            let other = other.into().on(self.tape);
            self.tape.condition(Node::Compare(Comparison::$op, [self.id, other]))
        }
    )*};
}

impl<'t> Expr<'t> {
    fn unary(self, op: Unary) -> Expr<'t> {
        self.tape.add(Node::Unary(op, [self.id]))
    }

    fn binary(self, op: Binary, other: impl Into<Operand<'t>>) -> Expr<'t> {
        let other = other.into().on(self.tape);
        self.tape.add(Node::Binary(op, [self.id, other]))
    }

    unary! {
        /// The absolute value; `abs(-0)` is 0.
        abs Abs;
        /// The exponential function.
        exp Exp;
        /// Two to the power of it.
        exp2 Exp2;
        /// The natural logarithm: NaN below 0, -inf at 0.
        log Log;
        /// The logarithm to base two: NaN below 0, -inf at 0.
        log2 Log2;
        /// The square root: NaN below 0.
        sqrt Sqrt;
        /// One over the square root, with the error of CUDA's `rsqrt`: NaN below 0, inf at 0, -inf at -0.
        rsqrt Rsqrt;
        /// The sine of radians: NaN at infinities.
        sin Sin;
        /// The cosine of radians: NaN at infinities.
        cos Cos;
        /// The hyperbolic tangent.
        tanh Tanh;
        /// The error function.
        erf Erf;
        /// 0 where `x <= 0`, so at -0 too, else `x`: NaN is passed on.
        relu Relu;
        /// `1 / (1 + exp(-x))`.
        sigmoid Sigmoid;
        /// `x / (1 + exp(-x))`: NaN at -inf.
        silu Silu;
        /// `0.5 x (1 + erf(x / sqrt(2)))`. In f32 without `erf`, from a power of two of a polynomial, with an error of at most `3e-7 |x|`, as by its
        /// definition; 0 at -inf there, NaN in f64.
        gelu Gelu;
        /// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, in f32 as [`gelu`](Expr::gelu) is.
        gelu_tanh GeluTanh;
    }

    comparisons! {
        /// Less than; no order holds with NaN.
        lt Lt;
        /// Less or equal.
        le Le;
        /// Greater than.
        gt Gt;
        /// Greater or equal.
        ge Ge;
        /// Equal: 0 and -0 are, NaN and NaN are not.
        eq Eq;
        /// Not equal: NaN is not equal to anything.
        ne Ne;
    }

    /// The smaller value, as CUDA's `fminf`: where one is NaN, it is the other.
    ///
    /// The minimum of 0 and -0 is either one, and that of -0 and -0 may be 0: PTX `min` orders them, C does not, and
    /// ptxas takes a constant -0 for 0 here.
    pub fn min(self, other: impl Into<Operand<'t>>) -> Expr<'t> {
        self.binary(Binary::Min, other)
    }

    /// The larger value, as CUDA's `fmaxf`: where one is NaN, it is the other.
    ///
    /// The maximum of 0 and -0 is either one, and that of -0 and -0 may be 0: PTX `max` orders them, C does not, and
    /// ptxas takes a constant -0 for 0 here.
    pub fn max(self, other: impl Into<Operand<'t>>) -> Expr<'t> {
        self.binary(Binary::Max, other)
    }

    /// `min(max(self, low), high)`: NaN becomes `low`.
    pub fn clamp(self, low: impl Into<Operand<'t>>, high: impl Into<Operand<'t>>) -> Expr<'t> {
        self.max(low).min(high)
    }

    /// To a power, as C's `pow`.
    pub fn pow(self, exponent: impl Into<Operand<'t>>) -> Expr<'t> {
        self.binary(Binary::Pow, exponent)
    }

    /// `1 / self`.
    pub fn recip(self) -> Expr<'t> {
        self.tape.constant(1) / self
    }

    /// `self * factor + addend`, rounded once. `a * b + c` is rounded twice, on every device.
    pub fn fma(self, factor: impl Into<Operand<'t>>, addend: impl Into<Operand<'t>>) -> Expr<'t> {
        let (factor, addend) = (factor.into().on(self.tape), addend.into().on(self.tape));
        self.tape.add(Node::Fma([self.id, factor, addend]))
    }

    /// To the values of an element type and back, by the rules of Rust's `as`: see [the module](super#conversions).
    pub fn cast(self, dtype: DType) -> Expr<'t> {
        self.tape.add(Node::Cast(dtype, [self.id]))
    }

    /// As [`cast`](Expr::cast), but values out of range become the nearest finite value of the type; NaN behaves as in
    /// a cast.
    pub fn saturate(self, dtype: DType) -> Expr<'t> {
        self.tape.add(Node::Saturate(dtype, [self.id]))
    }
}

impl<'t> Cond<'t> {
    /// Both hold.
    pub fn and(self, other: Cond<'t>) -> Cond<'t> {
        self.tape.condition(Node::And([self.id, other.id]))
    }

    /// At least one holds.
    pub fn or(self, other: Cond<'t>) -> Cond<'t> {
        self.tape.condition(Node::Or([self.id, other.id]))
    }

    /// It does not hold.
    #[allow(clippy::should_implement_trait, reason = "`and`, `or` and `not` are read as one family")]
    pub fn not(self) -> Cond<'t> {
        self.tape.condition(Node::Not([self.id]))
    }

    /// `yes` where the condition holds, `no` elsewhere.
    pub fn select(self, yes: impl Into<Operand<'t>>, no: impl Into<Operand<'t>>) -> Expr<'t> {
        let (yes, no) = (yes.into().on(self.tape), no.into().on(self.tape));
        self.tape.add(Node::Select([self.id, yes, no]))
    }
}
