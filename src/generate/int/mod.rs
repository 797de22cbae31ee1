//! Expressions of integers: the computations of a launch, and of the order of its tiles, as data.

mod steps;

use core::fmt;
use core::str::{FromStr, SplitAsciiWhitespace};

use serde::{Deserialize, Serialize};

use crate::diagnostic::debug_as_display;
pub use steps::{Step, Steps};

/// An operation on 64-bit integers; true is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntOp {
    /// 1 where any is not 0.
    Or,
    /// 1 where both are not 0.
    And,
    /// 1 where both are the same.
    Equal,
    /// 1 where the first is less.
    Less,
    /// 1 where the first is not greater.
    AtMost,
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient, cut off.
    Div,
    /// The remainder.
    Rem,
    /// The quotient, rounded up.
    CeilDiv,
    /// The less.
    Min,
    /// The greater.
    Max,
}

/// Operations, as an ABI has them.
const WORDS: [(IntOp, &str); 13] = [
    (IntOp::Or, "or"),
    (IntOp::And, "and"),
    (IntOp::Equal, "eq"),
    (IntOp::Less, "lt"),
    (IntOp::AtMost, "le"),
    (IntOp::Add, "add"),
    (IntOp::Sub, "sub"),
    (IntOp::Mul, "mul"),
    (IntOp::Div, "div"),
    (IntOp::Rem, "rem"),
    (IntOp::CeilDiv, "ceil_div"),
    (IntOp::Min, "min"),
    (IntOp::Max, "max"),
];

/// The prefix of the number of a value.
const VALUE: char = '$';

/// The prefix of a condition and two expressions.
const SELECT: &str = "select";

/// Operations within each other, at most: more than any rule has, and far less than a stack holds.
const DEEPEST: usize = 256;

impl IntOp {
    fn word(self) -> &'static str {
        WORDS.iter().find(|(op, _)| *op == self).map_or("", |(_, word)| word)
    }

    /// `None` where the result is none of 64 bits.
    fn apply(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            IntOp::Or => (a != 0 || b != 0).into(),
            IntOp::And => (a != 0 && b != 0).into(),
            IntOp::Equal => (a == b).into(),
            IntOp::Less => (a < b).into(),
            IntOp::AtMost => (a <= b).into(),
            IntOp::Add => a.checked_add(b)?,
            IntOp::Sub => a.checked_sub(b)?,
            IntOp::Mul => a.checked_mul(b)?,
            IntOp::Div => a.checked_div(b)?,
            IntOp::Rem => a.checked_rem(b)?,
            IntOp::CeilDiv => a.checked_div(b)? + i64::from(a.checked_rem(b)? != 0),
            IntOp::Min => a.min(b),
            IntOp::Max => a.max(b),
        })
    }
}

/// An integer that a launch computes, on extents, strides and addresses that are not negative.
///
/// An ABI has it as words, operations before their operands: `add $3 mul $1 8`.
///
/// ```
/// use cutemplate::plan::Int;
///
/// let rows = Int::Value(0);
/// let blocks = rows.clone().ceil_div(4);
/// assert_eq!(blocks.to_string(), "ceil_div $0 4");
/// assert_eq!(blocks.eval(&[9]), Some(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Int {
    /// A number.
    Const(i64),
    /// One that is given or was computed before, by its number.
    Value(usize),
    /// An operation on two.
    Binary(IntOp, Box<[Int; 2]>),
    /// A condition, and what holds where it is true, and elsewhere.
    Select(Box<[Int; 3]>),
}

impl Default for Int {
    fn default() -> Self {
        Int::Const(0)
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Int::Const(value)
    }
}

impl Int {
    /// The result of an operation, computed at once where it can be.
    pub fn op(self, op: IntOp, other: impl Into<Int>) -> Int {
        let other = other.into();
        match (op, &self, &other) {
            (IntOp::And, Int::Const(1), _) => other,
            (IntOp::Or, _, Int::Const(1)) => other,
            (IntOp::And, _, Int::Const(1)) | (IntOp::Mul | IntOp::CeilDiv, _, Int::Const(1)) => self,
            (_, Int::Const(a), Int::Const(b)) if op.apply(*a, *b).is_some() => {
                op.apply(*a, *b).map_or(other, Int::Const)
            }
            _ => Int::Binary(op, Box::new([self, other])),
        }
    }

    /// The quotient, rounded up.
    pub fn ceil_div(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::CeilDiv, other)
    }

    /// Whether both are the same: 1 or 0.
    pub fn is(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::Equal, other)
    }

    /// Whether this is less.
    pub fn less(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::Less, other)
    }

    /// Whether this is not greater.
    pub fn at_most(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::AtMost, other)
    }

    /// Whether both hold.
    pub fn and(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::And, other)
    }

    /// Whether it is a multiple.
    pub fn divides_by(self, other: i64) -> Int {
        if other == 1 { Int::Const(1) } else { (self % other).is(0) }
    }

    /// `yes` where this is true, and `no` elsewhere.
    pub fn select(self, yes: impl Into<Int>, no: impl Into<Int>) -> Int {
        Int::Select(Box::new([self, yes.into(), no.into()]))
    }

    /// Whether all hold.
    pub fn all(conditions: impl IntoIterator<Item = Int>) -> Int {
        conditions.into_iter().fold(Int::Const(1), Int::and)
    }

    /// The numbers of the values that it is made of.
    pub(crate) fn values(&self, all: &mut Vec<usize>) {
        match self {
            Int::Const(_) => {}
            Int::Value(index) => all.push(*index),
            Int::Binary(_, sides) => sides.iter().for_each(|side| side.values(all)),
            Int::Select(of) => of.iter().for_each(|part| part.values(all)),
        }
    }

    /// The same with other expressions in place of its values, computed at once where it can be.
    pub fn with(&self, value: &dyn Fn(usize) -> Int) -> Int {
        match self {
            Int::Const(_) => self.clone(),
            Int::Value(index) => value(*index),
            Int::Binary(op, sides) => sides[0].with(value).op(*op, sides[1].with(value)),
            Int::Select(of) => of[0].with(value).select(of[1].with(value), of[2].with(value)),
        }
    }

    /// How many operations lie within each other.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Int::Const(_) | Int::Value(_) => 0,
            Int::Binary(_, sides) => 1 + sides.iter().map(Int::depth).max().unwrap_or(0),
            Int::Select(of) => 1 + of.iter().map(Int::depth).max().unwrap_or(0),
        }
    }

    /// Its value, where these are known.
    pub fn eval(&self, values: &[i64]) -> Option<i64> {
        match self {
            Int::Const(value) => Some(*value),
            Int::Value(index) => values.get(*index).copied(),
            Int::Binary(op, sides) => op.apply(sides[0].eval(values)?, sides[1].eval(values)?),
            Int::Select(of) => of[if of[0].eval(values)? != 0 { 1 } else { 2 }].eval(values),
        }
    }
}

macro_rules! operators {
    ($($name:ident $method:ident)*) => {$(
        impl<T: Into<Int>> core::ops::$name<T> for Int {
            type Output = Int;
            fn $method(self, other: T) -> Int {
                self.op(IntOp::$name, other)
            }
        }
    )*};
}

operators!(Add add Sub sub Mul mul Div div Rem rem);

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int::Const(value) => write!(f, "{value}"),
            Int::Value(index) => write!(f, "{VALUE}{index}"),
            Int::Binary(op, sides) => write!(f, "{} {} {}", op.word(), sides[0], sides[1]),
            Int::Select(of) => write!(f, "{SELECT} {} {} {}", of[0], of[1], of[2]),
        }
    }
}

impl From<Int> for String {
    fn from(int: Int) -> String {
        int.to_string()
    }
}

/// The words are not an expression.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an integer expression")]
pub struct NoInt(String);

debug_as_display!(NoInt);

impl Int {
    fn read(words: &mut SplitAsciiWhitespace<'_>, depth: usize) -> Option<Int> {
        let word = words.next().filter(|_| depth <= DEEPEST)?;
        let mut next = || Int::read(words, depth + 1);
        if let Some(index) = word.strip_prefix(VALUE) {
            return index.parse().ok().map(Int::Value);
        }
        if let Ok(value) = word.parse() {
            return Some(Int::Const(value));
        }
        if word == SELECT {
            return Some(Int::Select(Box::new([next()?, next()?, next()?])));
        }
        let (op, _) = WORDS.iter().find(|(_, known)| *known == word)?;
        Some(Int::Binary(*op, Box::new([next()?, next()?])))
    }
}

impl FromStr for Int {
    type Err = NoInt;

    fn from_str(text: &str) -> Result<Self, NoInt> {
        let mut words = text.split_ascii_whitespace();
        let int = Int::read(&mut words, 0).filter(|_| words.next().is_none());
        int.ok_or_else(|| NoInt(text.chars().take(60).collect()))
    }
}

impl TryFrom<String> for Int {
    type Error = NoInt;

    fn try_from(text: String) -> Result<Self, NoInt> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        let [a, b] = [Int::Value(0), Int::Value(12)];
        let mut all = a.clone().divides_by(16).and(b.clone().at_most(-1)).select(a.clone().ceil_div(b.clone()), 7);
        assert_eq!(all.to_string(), "select and eq rem $0 16 0 le $12 -1 ceil_div $0 $12 7");
        for (op, _) in WORDS {
            all = all.op(op, b.clone() - a.clone());
        }
        assert_eq!(all.to_string().parse(), Ok(all));
    }

    #[test]
    fn other_words_are_refused() {
        let deep = "add 1 ".repeat(DEEPEST);
        assert!(format!("{deep} 1").parse::<Int>().is_ok());
        for text in [
            "",
            "$",
            "$-1",
            "$x",
            "add",
            "add 1",
            "add 1 2 3",
            "select 1 2",
            "pow 1 2",
            "1.5",
            &format!("{deep} add 1 1"),
        ] {
            assert!(text.parse::<Int>().is_err(), "{text}");
        }
        assert_eq!(
            "add 1".parse::<Int>().map_err(|e| e.to_string()),
            Err("`add 1` is not an integer expression".into())
        );
    }
}
