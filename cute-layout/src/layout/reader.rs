//! Reading CuTe's notation, with positions in every error.

use super::core::Layout;
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::{Leaf, MAX_BASIS, MAX_DEPTH, MAX_LEAVES, Tag};
use super::symbol::Term;

/// A cursor over text that reads tuples and layouts and knows where it stands.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    /// What `read` makes of the whole text.
    pub(crate) fn whole<T>(
        text: &'a str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, LayoutError>,
    ) -> Result<T, LayoutError> {
        let mut reader = Reader::new(text);
        let value = read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to a position that [`Reader::position`] gave.
    pub(crate) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    pub(crate) fn fail(&self, required: impl Into<String>) -> LayoutError {
        let rest: String = self.text.get(self.at..).unwrap_or("").chars().take(24).collect();
        let found = if rest.is_empty() { "the end of the text".to_owned() } else { format!("`{rest}`") };
        LayoutError::on("parse", Class::Parse, &[("text", &self.text)])
            .found(format!("{found} at position {}", self.at))
            .required(required)
    }

    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// The byte at the cursor, white space not skipped.
    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), LayoutError> {
        if self.eat(byte) { Ok(()) } else { Err(self.fail(format!("`{}`", char::from(byte)))) }
    }

    /// Whether the text goes on with a word.
    pub(crate) fn starts_with(&mut self, word: &str) -> bool {
        self.peek();
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word))
    }

    /// A decimal integer after white space.
    pub(crate) fn number(&mut self) -> Result<i64, LayoutError> {
        self.peek();
        if self.here() == Some(b'_') {
            self.at += 1;
        }
        self.integer()
    }

    /// Takes a word where the text goes on with it.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    pub(crate) fn end(&mut self) -> Result<(), LayoutError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.fail("the end of the text")) }
    }

    pub(crate) fn layout(&mut self) -> Result<Layout, LayoutError> {
        let start = self.at;
        let shape = self.int_tuple()?;
        self.layout_of(shape, start)
    }

    /// The rest of a layout behind its shape, which was read from `start` on.
    pub(crate) fn layout_of(&mut self, shape: IntTuple, start: usize) -> Result<Layout, LayoutError> {
        self.expect(b':')?;
        let stride = self.int_tuple()?;
        Layout::new(shape, stride).map_err(|error| self.no_layout(start, error))
    }

    /// Where in the text the shape and stride from `start` on cannot be those of a layout.
    fn no_layout(&self, start: usize, error: LayoutError) -> LayoutError {
        let mut again = Reader { text: self.text, at: start };
        let (mut size, mut place, mut in_stride) = (1i64, start, false);
        // The first leaf that is not an extent or stride, or that makes the size too large; else the whole layout.
        while error.class() != Class::MismatchedRanks {
            while again.eat(b'(') || again.eat(b')') || again.eat(b',') {}
            in_stride |= again.eat(b':');
            while again.eat(b'(') {}
            let here = again.at;
            let Ok(leaf) = again.leaf() else { break };
            size = size.saturating_mul(leaf.value);
            let no_extent = leaf.value < 1 || size == i64::MAX || leaf.tag().is_basis();
            if leaf.tag().is_any() || no_extent && !in_stride {
                place = here;
                break;
            }
        }
        let found = format!("{} at position {place}", error.what_was_found());
        error.of(&[("text", &self.text)]).found(found)
    }

    /// Reads one tuple; nesting is a counter, so that no text can exhaust the stack.
    pub(crate) fn int_tuple(&mut self) -> Result<IntTuple, LayoutError> {
        let mut leaves = Leaves::new();
        let mut depth = 0usize;
        loop {
            let mut opened = 0u8;
            while self.eat(b'(') {
                depth += 1;
                opened += 1;
                if depth > MAX_DEPTH {
                    return Err(self.fail(format!("at most {MAX_DEPTH} levels of nesting")));
                }
            }
            if opened > 0 && self.peek() == Some(b')') {
                return Err(self.fail("a mode: a tuple is not empty"));
            }
            let mut leaf = self.leaf()?;
            leaf.set_open(opened);
            while depth > 0 && self.eat(b')') {
                depth -= 1;
                leaf.close_more(1);
            }
            leaves.push(leaf);
            if leaves.len() > MAX_LEAVES {
                return Err(self.fail(format!("at most {MAX_LEAVES} leaves")));
            }
            if depth == 0 {
                return Ok(IntTuple::from_leaves(leaves));
            }
            if !self.eat(b',') {
                return Err(self.fail("`,` or `)`"));
            }
        }
    }

    /// An integer, a basis element, `_` or a symbolic extent.
    fn leaf(&mut self) -> Result<Leaf, LayoutError> {
        match self.peek() {
            Some(b'_') => {
                self.at += 1;
                if !self.here().is_some_and(|next| next.is_ascii_digit()) {
                    return Ok(Leaf::tagged(0, Tag::ANY));
                }
                let value = self.integer()?;
                self.scaled(value)
            }
            Some(b'0'..=b'9' | b'-') => {
                let value = self.integer()?;
                self.scaled(value)
            }
            Some(byte) if byte.is_ascii_alphabetic() => self.symbol(1, 0)?.leaf(),
            _ => Err(self.fail("an integer, `_`, a basis element or a name")),
        }
    }

    /// What may follow an integer: basis indices, or a product with names.
    fn scaled(&mut self, value: i64) -> Result<Leaf, LayoutError> {
        match self.here() {
            Some(b'@') => {
                let mut path = Vec::new();
                while self.here() == Some(b'@') {
                    self.at += 1;
                    let start = self.at;
                    let index = self.integer()?;
                    match u8::try_from(index) {
                        Ok(index) if path.len() < MAX_BASIS => path.insert(0, index),
                        _ => {
                            self.at = start;
                            return Err(self.fail("at most five basis indices, each from 0 to 255"));
                        }
                    }
                }
                let tag = Tag::basis(&path).ok_or_else(|| self.fail("at most five basis indices"))?;
                Ok(Leaf::tagged(value, tag))
            }
            Some(b'*') => {
                self.at += 1;
                self.symbol(value, 0)?.leaf()
            }
            _ => Ok(Leaf::int(value)),
        }
    }

    /// A product of names, each perhaps with `{div=N}`, and of `ceil_div(product,product)`.
    fn symbol(&mut self, factor: i64, depth: usize) -> Result<Term, LayoutError> {
        let mut product = Term::int(factor);
        loop {
            product = product.times(&self.factor(depth)?)?;
            if self.here() != Some(b'*') {
                return Ok(product);
            }
            self.at += 1;
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Term, LayoutError> {
        let name = self.word().to_owned();
        if name != "ceil_div" || self.here() != Some(b'(') {
            let divisor = if self.here() == Some(b'{') { self.divisor()? } else { 1 };
            return Term::named(&name, divisor).map_err(
                |error| {
                    if name.is_empty() { self.fail("a name") } else { error }
                },
            );
        }
        if depth >= MAX_BASIS {
            return Err(self.fail("less nesting of ceil_div"));
        }
        self.at += 1;
        let inner = self.positive(depth + 1)?;
        self.expect(b',')?;
        let by = self.positive(depth + 1)?;
        self.expect(b')')?;
        inner.ceil_div(&by)
    }

    /// A positive number, names, or a positive number times names.
    fn positive(&mut self, depth: usize) -> Result<Term, LayoutError> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return self.symbol(1, depth);
        }
        let factor = self.integer()?;
        if factor < 1 {
            return Err(self.fail("a positive number"));
        }
        if self.peek() != Some(b'*') {
            return Ok(Term::int(factor));
        }
        self.at += 1;
        self.peek();
        self.symbol(factor, depth)
    }

    fn divisor(&mut self) -> Result<i64, LayoutError> {
        if !self.eat_word("{div=") {
            return Err(self.fail("`{div=N}`"));
        }
        let value = self.integer()?;
        self.expect(b'}')?;
        Ok(value)
    }

    /// Letters, digits and underscores from here on.
    pub(crate) fn word(&mut self) -> &'a str {
        self.peek();
        let start = self.at;
        while self.here().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    /// A decimal 64-bit integer.
    pub(crate) fn integer(&mut self) -> Result<i64, LayoutError> {
        let start = self.at;
        if self.here() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        while self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == first {
            return Err(self.fail("a digit"));
        }
        let digits = self.text.get(start..self.at).unwrap_or("");
        let value = digits.parse().map_err(|_| {
            let text: String = self.text.get(start..).unwrap_or("").chars().take(40).collect();
            LayoutError::overflow("parse", format!("`{text}` at position {start}"))
        })?;
        if matches!(self.here(), Some(b'.')) {
            return Err(self.fail("an integer; fractions are not values of a layout"));
        }
        Ok(value)
    }
}
