//! Constant expressions: C's, of integers of 64 bits and of doubles. PTX ISA, "Constant Expressions".

use super::error::{Error, Position};
use super::lex::Token;
use super::parse::{Parser, clip};

/// Parentheses, signs and `?` in each other.
const MAX_DEPTH: u32 = 64;

/// A constant with its type: `.s64`, `.u64` or `.f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Constant {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

use Constant::{Float, Signed, Unsigned};

/// A binary operator: its characters, and how tightly it binds.
const BINARY: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// The precedence of a product, for a term of an offset.
const PRODUCT: u8 = 10;

impl<'a> Parser<'a> {
    /// Whether a constant begins here.
    pub(super) fn is_constant(&self) -> bool {
        match self.peek() {
            Some(Token::Int(_) | Token::Unsigned(_) | Token::Float(..)) => true,
            Some(Token::Word("WARP_SZ")) => true,
            Some(Token::Punct(b'-' | b'+' | b'~' | b'(')) => true,
            Some(Token::Punct(b'!')) => !matches!(self.peek_at(1), Some(Token::Word(w)) if w != "WARP_SZ"),
            _ => false,
        }
    }

    pub(super) fn constant(&mut self, what: &str) -> Result<Constant, Error> {
        self.conditional(what, 0)
    }

    /// A constant of an integer type.
    pub(super) fn constant_int(&mut self, what: &str) -> Result<i128, Error> {
        let at = self.position();
        let value = self.constant(what)?;
        integer(value, at, what)
    }

    /// `+ 4 * 2`, `- 4`, as often as they come, or nothing.
    pub(super) fn offset(&mut self) -> Result<i64, Error> {
        let at = self.position();
        let mut sum = 0_i128;
        loop {
            let negative = match self.peek() {
                Some(Token::Punct(b'+')) => false,
                Some(Token::Punct(b'-')) => true,
                _ => break,
            };
            self.at += 1;
            let term_at = self.position();
            let term = self.binary("an offset", PRODUCT, 0)?;
            let term = integer(term, term_at, "an offset")?;
            sum += if negative { -term } else { term };
        }
        // Addresses are taken modulo 2^64.
        i64::try_from(sum)
            .or_else(|_| u64::try_from(sum).map(|v| v as i64))
            .map_err(|_| Error::syntax(at, "an offset is out of range").found(sum.to_string()))
    }

    fn conditional(&mut self, what: &str, depth: u32) -> Result<Constant, Error> {
        let at = self.position();
        let condition = self.binary(what, 1, depth)?;
        if !self.is(b'?') {
            return Ok(condition);
        }
        let holds = integer(condition, at, "a condition")? != 0;
        let yes = self.conditional(what, self.deeper(depth)?)?;
        self.expect(b':')?;
        let no = self.conditional(what, self.deeper(depth)?)?;
        let (yes, no) = alike(yes, no, at)?;
        Ok(if holds { yes } else { no })
    }

    fn deeper(&self, depth: u32) -> Result<u32, Error> {
        if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(self.unexpected("an expression that is nested less deeply")) }
    }

    /// The operator that stands here.
    fn operator(&self) -> Option<(&'static str, u8)> {
        let Some(Token::Punct(first)) = self.peek() else { return None };
        let next = match (self.tokens.get(self.at), self.tokens.get(self.at + 1)) {
            (Some(a), Some(b)) if a.at.line == b.at.line && a.at.column + 1 == b.at.column => match b.token {
                Token::Punct(c) => Some(c),
                _ => None,
            },
            _ => None,
        };
        let is = |text: &str| match text.as_bytes() {
            [a] => *a == first,
            [a, b] => *a == first && Some(*b) == next,
            _ => false,
        };
        // Those of two characters first: `1 << 2` is no comparison.
        let found = |length: usize| BINARY.iter().copied().find(|(text, _)| text.len() == length && is(text));
        found(2).or_else(|| found(1))
    }

    /// Operators that bind at least as tightly as `least`, from the left.
    fn binary(&mut self, what: &str, least: u8, depth: u32) -> Result<Constant, Error> {
        let mut left = self.unary(what, depth)?;
        while let Some((operator, binds)) = self.operator().filter(|(_, binds)| *binds >= least) {
            let at = self.position();
            self.at += operator.len();
            let right = self.binary(what, binds + 1, self.deeper(depth)?)?;
            left = apply(operator, left, right, at)?;
        }
        Ok(left)
    }

    fn unary(&mut self, what: &str, depth: u32) -> Result<Constant, Error> {
        let at = self.position();
        let operator = match self.peek() {
            Some(Token::Punct(c @ (b'-' | b'+' | b'~' | b'!'))) => c,
            Some(Token::Punct(b'(')) => return self.parenthesised(what, depth),
            _ => return self.literal(what),
        };
        self.at += 1;
        let value = self.unary(what, self.deeper(depth)?)?;
        match (operator, value) {
            (b'-', Signed(v)) => Ok(Signed(v.wrapping_neg())),
            (b'-', Unsigned(v)) => Ok(Unsigned(v.wrapping_neg())),
            (b'-', Float(v)) => Ok(Float(-v)),
            (b'+', value) => Ok(value),
            (b'~', value) => Ok(Unsigned(!bits(value, at)?)),
            (_, value) => Ok(Signed(i64::from(bits(value, at)? == 0))),
        }
    }

    /// `(1 + 2)`, or the conversion `(.u64) 1`.
    fn parenthesised(&mut self, what: &str, depth: u32) -> Result<Constant, Error> {
        self.at += 1;
        let at = self.position();
        let depth = self.deeper(depth)?;
        for (word, signed) in [("s64", true), ("u64", false)] {
            if self.is_dot(word) {
                self.expect(b')')?;
                let value = bits(self.unary(what, depth)?, at)?;
                return Ok(if signed { Signed(value as i64) } else { Unsigned(value) });
            }
        }
        let value = self.conditional(what, depth)?;
        self.expect(b')')?;
        Ok(value)
    }

    fn literal(&mut self, what: &str) -> Result<Constant, Error> {
        let value = match self.peek() {
            Some(Token::Int(v)) => i64::try_from(v).map_or(Unsigned(v), Signed),
            Some(Token::Unsigned(v)) => Unsigned(v),
            Some(Token::Float(bits, _)) => Float(f64::from_bits(bits)),
            // PTX ISA, "WARP_SZ": the number of threads of a warp.
            Some(Token::Word("WARP_SZ")) => Signed(32),
            _ => return Err(self.unexpected(what)),
        };
        self.at += 1;
        Ok(value)
    }
}

fn integer(value: Constant, at: Position, what: &str) -> Result<i128, Error> {
    match value {
        Signed(v) => Ok(i128::from(v)),
        Unsigned(v) => Ok(i128::from(v)),
        Float(v) => Err(Error::syntax(at, "a floating-point number stands where an integer has to")
            .found(clip(&v.to_string()))
            .required(what)),
    }
}

fn bits(value: Constant, at: Position) -> Result<u64, Error> {
    integer(value, at, "an integer").map(|v| v as u64)
}

/// The usual conversions: signed becomes unsigned where the other operand is.
fn alike(a: Constant, b: Constant, at: Position) -> Result<(Constant, Constant), Error> {
    match (a, b) {
        (Signed(_), Signed(_)) | (Float(_), Float(_)) => Ok((a, b)),
        (Float(_), _) | (_, Float(_)) => {
            Err(Error::syntax(at, "a constant expression mixes integers and floating-point numbers"))
        }
        _ => Ok((Unsigned(bits(a, at)?), Unsigned(bits(b, at)?))),
    }
}

fn apply(operator: &str, a: Constant, b: Constant, at: Position) -> Result<Constant, Error> {
    match operator {
        "||" => Ok(Signed(i64::from(bits(a, at)? != 0 || bits(b, at)? != 0))),
        "&&" => Ok(Signed(i64::from(bits(a, at)? != 0 && bits(b, at)? != 0))),
        "|" => Ok(Unsigned(bits(a, at)? | bits(b, at)?)),
        "^" => Ok(Unsigned(bits(a, at)? ^ bits(b, at)?)),
        "&" => Ok(Unsigned(bits(a, at)? & bits(b, at)?)),
        // ptxas shifts as x86 does: by the low six bits.
        "<<" | ">>" => {
            let by = bits(b, at)? as u32;
            match (operator, a) {
                ("<<", Signed(v)) => Ok(Signed(v.wrapping_shl(by))),
                ("<<", v) => Ok(Unsigned(bits(v, at)?.wrapping_shl(by))),
                (_, Signed(v)) => Ok(Signed(v.wrapping_shr(by))),
                (_, v) => Ok(Unsigned(bits(v, at)?.wrapping_shr(by))),
            }
        }
        "%" => {
            let by = bits(b, at)?;
            bits(a, at)?.checked_rem(by).map(Unsigned).ok_or_else(|| by_zero(at))
        }
        "+" | "-" | "*" | "/" => arithmetic(operator, a, b, at),
        _ => compare(operator, a, b, at),
    }
}

fn by_zero(at: Position) -> Error {
    Error::syntax(at, "a constant expression divides by zero").required("a divisor other than 0")
}

fn arithmetic(operator: &str, a: Constant, b: Constant, at: Position) -> Result<Constant, Error> {
    let value = match (operator, alike(a, b, at)?) {
        ("+", (Signed(a), Signed(b))) => Signed(a.wrapping_add(b)),
        ("+", (Float(a), Float(b))) => Float(a + b),
        ("-", (Signed(a), Signed(b))) => Signed(a.wrapping_sub(b)),
        ("-", (Float(a), Float(b))) => Float(a - b),
        ("*", (Signed(a), Signed(b))) => Signed(a.wrapping_mul(b)),
        ("*", (Float(a), Float(b))) => Float(a * b),
        ("/", (Signed(_), Signed(0)) | (Unsigned(_), Unsigned(0))) => return Err(by_zero(at)),
        ("/", (Float(_), Float(0.0))) => return Err(by_zero(at)),
        ("/", (Signed(a), Signed(b))) => Signed(a.wrapping_div(b)),
        ("/", (Float(a), Float(b))) => Float(a / b),
        (operator, (a, b)) => {
            let (a, b) = (bits(a, at)?, bits(b, at)?);
            Unsigned(match operator {
                "+" => a.wrapping_add(b),
                "-" => a.wrapping_sub(b),
                "*" => a.wrapping_mul(b),
                _ => a.checked_div(b).ok_or_else(|| by_zero(at))?,
            })
        }
    };
    Ok(value)
}

fn compare(operator: &str, a: Constant, b: Constant, at: Position) -> Result<Constant, Error> {
    use core::cmp::Ordering::{Equal, Greater, Less};
    let order = match alike(a, b, at)? {
        (Signed(a), Signed(b)) => Some(a.cmp(&b)),
        (Unsigned(a), Unsigned(b)) => Some(a.cmp(&b)),
        (Float(a), Float(b)) => a.partial_cmp(&b),
        _ => None,
    };
    let holds = match operator {
        "==" => order == Some(Equal),
        "!=" => order != Some(Equal),
        "<" => order == Some(Less),
        ">" => order == Some(Greater),
        "<=" => matches!(order, Some(Less | Equal)),
        _ => matches!(order, Some(Greater | Equal)),
    };
    Ok(Signed(i64::from(holds)))
}
