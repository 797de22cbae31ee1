//! Values of the protocol and of expressions: inputs and results.

use crate::layout::{AnyLayout, Class, IntTuple, Layout, LayoutError, Reader, Swizzle, Tiler};
use std::fmt;
use std::str::FromStr;

/// An input or a result.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A layout, a composed layout or a swizzle.
    Layout(AnyLayout),
    /// An integer, a shape, a coordinate or a profile.
    Tuple(IntTuple),
    /// A by-mode tiler that is not a shape.
    Tiler(Tiler),
    /// A truth value; prints as `1` or `0`.
    Bool(bool),
    /// A word that an operation knows, such as `static coord`.
    Word(String),
    /// Several values, printed with a separator.
    List(Vec<Value>, char),
}

impl Value {
    pub(crate) fn int(value: i64) -> Value {
        Value::Tuple(IntTuple::int(value))
    }

    /// Reads a value and leaves the cursor behind it.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Value, LayoutError> {
        if Swizzle::begins(reader) {
            return AnyLayout::read(reader).map(Value::Layout);
        }
        match reader.peek() {
            Some(b'[' | b'<') => return Tiler::read(reader, 0).map(Value::Tiler),
            Some(b'0') if reader.starts_with("0b") => {
                let bits = reader.word().get(2..).and_then(|digits| i64::from_str_radix(digits, 2).ok());
                let bits = bits.filter(|bits| bits >> 62 == 0);
                return bits.map(Value::int).ok_or_else(|| reader.fail("a mask of at most 62 bits, `0b...`"));
            }
            _ => {}
        }
        for word in ["static coord", "dynamic coord"] {
            if reader.eat_word(word) {
                return Ok(Value::Word(word.to_owned()));
            }
        }
        let start = reader.position();
        let tuple = reader.int_tuple()?;
        if reader.peek() != Some(b':') {
            return Ok(Value::Tuple(tuple));
        }
        AnyLayout::Plain(reader.layout_of(tuple, start)?).read_rest(reader).map(Value::Layout)
    }

    pub(crate) fn any(&self, op: &'static str) -> Result<&AnyLayout, LayoutError> {
        match self {
            Value::Layout(layout) => Ok(layout),
            other => Err(expected(op, "a layout", other)),
        }
    }

    pub(crate) fn plain(&self, op: &'static str) -> Result<&Layout, LayoutError> {
        self.any(op)?.plain(op)
    }

    pub(crate) fn tuple(&self, op: &'static str) -> Result<&IntTuple, LayoutError> {
        match self {
            Value::Tuple(tuple) => Ok(tuple),
            other => Err(expected(op, "an integer or a tuple", other)),
        }
    }

    /// A shape, or the shape of a layout.
    pub(crate) fn shape(&self, op: &'static str) -> Result<&IntTuple, LayoutError> {
        match self {
            Value::Layout(layout) => Ok(layout.domain()?.shape()),
            other => other.tuple(op),
        }
    }

    pub(crate) fn integer(&self, op: &'static str) -> Result<i64, LayoutError> {
        match self {
            Value::Tuple(tuple) => tuple.as_int(),
            Value::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
        .ok_or_else(|| expected(op, "an integer", self))
    }

    /// An integer that counts something: a mode, a rank.
    pub(crate) fn index(&self, op: &'static str) -> Result<usize, LayoutError> {
        usize::try_from(self.integer(op)?).map_err(|_| expected(op, "an integer that is not negative", self))
    }

    pub(crate) fn tiler(&self, op: &'static str) -> Result<Tiler, LayoutError> {
        match self {
            Value::Layout(layout) => Ok(Tiler::Layout(layout.plain(op)?.clone())),
            Value::Tuple(shape) => Ok(Tiler::Shape(shape.clone())),
            Value::Tiler(tiler) => Ok(tiler.clone()),
            other => Err(expected(op, "a layout, a shape or a tiler", other)),
        }
    }
}

pub(crate) fn expected(op: &'static str, required: &str, found: &Value) -> LayoutError {
    LayoutError::new(op, Class::Argument).found(format!("`{found}`")).required(required)
}

impl FromStr for Value {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Value, LayoutError> {
        let mut reader = Reader::new(text);
        let value = Value::read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Layout(layout) => layout.fmt(f),
            Value::Tuple(tuple) => fmt::Display::fmt(tuple, f),
            Value::Tiler(tiler) => fmt::Display::fmt(tiler, f),
            Value::Bool(value) => f.write_str(if *value { "1" } else { "0" }),
            Value::Word(word) => f.write_str(word),
            Value::List(values, separator) => {
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        write!(f, "{separator}")?;
                    }
                    value.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}
