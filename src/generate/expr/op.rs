//! The operations of an expression, one by one.

use core::hash::{Hash, Hasher};

use super::rows::{Along, Reduction};
use crate::dtype::DType;

/// Where a node stands in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) u32);

impl Id {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant; all NaNs are one, and -0 differs from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constant(f64);

impl Constant {
    pub(crate) fn new(value: f64) -> Constant {
        Constant(if value.is_nan() { f64::NAN } else { value })
    }

    pub(crate) fn value(self) -> f64 {
        self.0
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum $name { $($variant,)* }

        impl $name {
            pub(crate) const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The operator, or the function's name, in the text of an expression.
            pub(crate) fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

named! {
    /// One operand.
    Unary {
        Neg = "-",
        Abs = "abs",
        Exp = "exp",
        Exp2 = "exp2",
        Log = "log",
        Log2 = "log2",
        Sqrt = "sqrt",
        Rsqrt = "rsqrt",
        Sin = "sin",
        Cos = "cos",
        Tanh = "tanh",
        Erf = "erf",
        Relu = "relu",
        Sigmoid = "sigmoid",
        Silu = "silu",
        Gelu = "gelu",
        GeluTanh = "gelu_tanh",
    }
}

named! {
    /// Two operands.
    Binary {
        Add = "+",
        Sub = "-",
        Mul = "*",
        Div = "/",
        Min = "min",
        Max = "max",
        Pow = "pow",
    }
}

named! {
    /// Two operands, a condition as the result. A longer operator stands before its prefix.
    Comparison {
        Le = "<=",
        Lt = "<",
        Ge = ">=",
        Gt = ">",
        Eq = "==",
        Ne = "!=",
    }
}

/// One operation, with the nodes that it is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Input(u8),
    Scalar(u8),
    Constant(Constant),
    Unary(Unary, [Id; 1]),
    Binary(Binary, [Id; 2]),
    /// `a * b + c`, rounded once.
    Fma([Id; 3]),
    /// To an element type by the rules of Rust's `as`, and back.
    Cast(DType, [Id; 1]),
    /// As `Cast`, but a value out of range becomes the nearest finite value.
    Saturate(DType, [Id; 1]),
    Compare(Comparison, [Id; 2]),
    And([Id; 2]),
    Or([Id; 2]),
    Not([Id; 1]),
    /// The second where the first, a condition, holds, else the third.
    Select([Id; 3]),
    /// The elements along a row, or along a group of it, as one value. `Any` and `All` take a condition and give one.
    Reduce(Reduction, Along, [Id; 1]),
    /// The element's index in its row.
    Column,
    /// How many elements the row, or the element's group, has.
    Width(Along),
}

impl Node {
    pub(crate) fn operands(&self) -> &[Id] {
        match self {
            Node::Input(_) | Node::Scalar(_) | Node::Constant(_) | Node::Column | Node::Width(_) => &[],
            Node::Unary(_, ids) | Node::Cast(_, ids) | Node::Saturate(_, ids) => ids,
            Node::Not(ids) | Node::Reduce(_, _, ids) => ids,
            Node::Binary(_, ids) | Node::Compare(_, ids) | Node::And(ids) | Node::Or(ids) => ids,
            Node::Fma(ids) | Node::Select(ids) => ids,
        }
    }

    /// The same operation on other nodes.
    pub(crate) fn moved(mut self, mut to: impl FnMut(Id) -> Id) -> Node {
        let ids: &mut [Id] = match &mut self {
            Node::Input(_) | Node::Scalar(_) | Node::Constant(_) | Node::Column | Node::Width(_) => &mut [],
            Node::Unary(_, ids) | Node::Cast(_, ids) | Node::Saturate(_, ids) => ids,
            Node::Not(ids) | Node::Reduce(_, _, ids) => ids,
            Node::Binary(_, ids) | Node::Compare(_, ids) | Node::And(ids) | Node::Or(ids) => ids,
            Node::Fma(ids) | Node::Select(ids) => ids,
        };
        for id in ids {
            *id = to(*id);
        }
        self
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.operands().is_empty()
    }

    /// Whether it gives a condition.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            Node::Compare(..) | Node::And(_) | Node::Or(_) | Node::Not(_) => true,
            Node::Reduce(reduction, ..) => reduction.of_conditions(),
            _ => false,
        }
    }

    /// Whether it takes many instructions.
    pub(crate) fn is_costly(&self) -> bool {
        match self {
            Node::Unary(op, _) => !matches!(op, Unary::Neg | Unary::Abs | Unary::Relu),
            Node::Binary(op, _) => matches!(op, Binary::Div | Binary::Pow),
            _ => false,
        }
    }
}
