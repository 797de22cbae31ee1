//! Text: CuTe's output for run-time integers, and reading it back.

use std::fmt;
use std::str::FromStr;

use super::core::Layout;
use super::error::LayoutError;
use super::int_tuple::IntTuple;
use super::leaf::Elem;
use super::reader::Reader;

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, leaf) in self.raw().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            let [open, close] = [("(", leaf.open()), (")", leaf.close())].map(|(p, n)| p.repeat(n.into()));
            write!(f, "{open}{}{close}", leaf.elem())?;
        }
        Ok(())
    }
}

impl fmt::Debug for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Int(value) => write!(f, "{value}"),
            Elem::Any => f.write_str("_"),
            Elem::Symbolic { factor: 1, symbol } => write!(f, "{symbol}"),
            Elem::Symbolic { factor, symbol } => write!(f, "{factor}*{symbol}"),
            Elem::Basis { scale, path } => {
                write!(f, "{scale}")?;
                for index in path.as_slice().iter().rev() {
                    write!(f, "@{index}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape().fmt(f)?;
        f.write_str(":")?;
        self.stride().fmt(f)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for IntTuple {
    type Err = LayoutError;

    /// Reads CuTe's notation: `8`, `(4,(2,2))`, `_`, `1@0@1`, `M`, `M{div=8}`, `64*M`. CuTe's mark of a compile-time
    /// integer, an underscore before digits, may stand and means nothing here.
    fn from_str(text: &str) -> Result<IntTuple, LayoutError> {
        Reader::whole(text, Reader::int_tuple)
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    /// Reads `S:D`; a shape alone is not a layout.
    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        Reader::whole(text, Reader::layout)
    }
}
