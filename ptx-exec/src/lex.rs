//! PTX text as tokens. One pass, no copies: a token borrows the text.

use super::error::{Error, Position};

/// One token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// An identifier: `%r1`, `add`, `$L__BB0_1`, `_`.
    Word(&'a str),
    /// A modifier or directive without its dot: `.f32`, `.L2::128B`, `.loc`.
    Dot(&'a str),
    /// An integer; negative numbers are a minus sign and a number.
    Int(u64),
    /// An integer with the suffix `U`.
    Unsigned(u64),
    /// A floating-point number, as the bits of an f64, and whether it was written as the bits of an f32.
    Float(u64, bool),
    /// A string, without its quotes; escapes stay as they are.
    Str(&'a str),
    /// One character of punctuation.
    Punct(u8),
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) at: Position,
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

/// Whether a character begins a name and cannot begin the exponent of a number.
fn is_name(c: u8) -> bool {
    is_word(c) && !c.is_ascii_digit() && !matches!(c, b'e' | b'E')
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Lexer<'a> {
    fn position(&self, at: usize) -> Position {
        Position { line: self.line, column: u32::try_from(at - self.line_start + 1).unwrap_or(u32::MAX) }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn while_at(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.bytes.len() && keep(self.bytes[self.at]) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn blank(&mut self) -> Result<(), Error> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.at += 1;
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at;
                }
                (b' ' | b'\t' | b'\r' | 0x0c, _) => self.at += 1,
                (b'/', b'/') => {
                    self.while_at(|c| c != b'\n');
                }
                (b'/', b'*') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<(), Error> {
        let start = self.position(self.at);
        self.at += 2;
        while self.at < self.bytes.len() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                return Ok(());
            }
            if self.peek(0) == b'\n' {
                self.line = self.line.saturating_add(1);
                self.line_start = self.at + 1;
            }
            self.at += 1;
        }
        Err(Error::syntax(start, "a comment does not end").required("`*/`"))
    }

    fn dot(&mut self) -> Token<'a> {
        self.at += 1;
        let start = self.at;
        loop {
            self.while_at(is_word);
            // `L2::128B`, `shared::cluster`; PTX has no other use of colons inside a modifier.
            if self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) && self.at > start {
                self.at += 2;
            } else {
                break;
            }
        }
        if self.at == start { Token::Punct(b'.') } else { Token::Dot(&self.text[start..self.at]) }
    }

    fn number(&mut self) -> Result<Token<'a>, Error> {
        let at = self.position(self.at);
        let bad = |text: &str| {
            Error::syntax(at, "a number cannot be read")
                .found(text.chars().take(40).collect::<String>())
                .required("decimal, 0x, 0b or octal digits, or the bits of a float as 0f or 0d and 8 or 16 hex digits")
        };
        let lower = self.peek(1).to_ascii_lowercase();
        if self.peek(0) == b'0' && matches!(lower, b'f' | b'd') && self.peek(2).is_ascii_hexdigit() {
            self.at += 2;
            let digits = self.while_at(|c| c.is_ascii_hexdigit());
            let (want, single) = if lower == b'f' { (8, true) } else { (16, false) };
            let bits =
                u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == want).ok_or_else(|| bad(digits))?;
            let bits = if single { f64::from(f32::from_bits(bits as u32)).to_bits() } else { bits };
            return Ok(Token::Float(bits, single));
        }
        let start = self.at;
        let text = self.while_at(is_word);
        if let Some(number) = self.decimal(start, text) {
            // PTX has no constant that overflows a double.
            let value = number.parse::<f64>().ok().filter(|v| v.is_finite());
            return value.map(|v| Token::Float(v.to_bits(), false)).ok_or_else(|| bad(number));
        }
        let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
        let prefixed = |p: [&str; 2]| digits.strip_prefix(p[0]).or_else(|| digits.strip_prefix(p[1]));
        let value = if let Some(hex) = prefixed(["0x", "0X"]) {
            u64::from_str_radix(hex, 16)
        } else if let Some(binary) = prefixed(["0b", "0B"]) {
            u64::from_str_radix(binary, 2)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(&digits[1..], 8)
        } else {
            digits.parse()
        };
        let token = if digits.len() == text.len() { Token::Int } else { Token::Unsigned };
        value.map(token).map_err(|_| bad(text))
    }

    /// The text of `1.5`, `.5`, `1.` or `1.5e-3`, of which `whole` was read; `None` for an integer.
    fn decimal(&mut self, start: usize, whole: &str) -> Option<&'a str> {
        let digits = |c: u8| c.is_ascii_digit();
        let exponent = whole.to_ascii_lowercase().find('e').filter(|at| whole[..*at].bytes().all(digits));
        let is_integer = whole.bytes().all(digits);
        if exponent.is_none_or(|at| at == 0) && !(is_integer && self.peek(0) == b'.' && !is_name(self.peek(1))) {
            return None;
        }
        let mut ends_in_e = exponent.is_some_and(|at| at + 1 == whole.len());
        if is_integer {
            self.at += 1;
            self.while_at(digits);
            if matches!(self.peek(0), b'e' | b'E') {
                self.at += 1;
                ends_in_e = true;
            }
        }
        if ends_in_e {
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            self.while_at(digits);
        }
        self.text.get(start..self.at)
    }

    fn string(&mut self) -> Result<Token<'a>, Error> {
        let at = self.position(self.at);
        self.at += 1;
        let start = self.at;
        while self.at < self.bytes.len() && !matches!(self.bytes[self.at], b'"' | b'\n') {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        if self.peek(0) != b'"' {
            return Err(Error::syntax(at, "a string does not end").required("a closing quote on the same line"));
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(Token::Str(text))
    }

    /// Skips debug information, which is most of a text with line tables.
    fn section(&mut self, at: Position) -> Result<(), Error> {
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at + 1;
                }
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(Error::syntax(at, "a section does not end").required("`}`"))
    }

    fn token(&mut self) -> Result<Token<'a>, Error> {
        let c = self.peek(0);
        match c {
            // A modifier follows its instruction at once; `.5` is a number.
            b'.' if self.peek(1).is_ascii_digit() && (self.at == 0 || !is_word(self.bytes[self.at - 1])) => {
                self.number()
            }
            b'.' => Ok(self.dot()),
            b'%' if !is_word(self.peek(1)) => {
                self.at += 1;
                Ok(Token::Punct(c))
            }
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'%' | b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' => {
                let start = self.at;
                self.at += 1;
                self.while_at(is_word);
                Ok(Token::Word(&self.text[start..self.at]))
            }
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b',' | b';' | b':' | b'=' | b'+' | b'-' | b'!'
            | b'|' | b'@' | b'*' | b'/' | b'^' | b'?' | b'~' | b'&' => {
                self.at += 1;
                Ok(Token::Punct(c))
            }
            _ => {
                let found = self.text.get(self.at..).and_then(|t| t.chars().next());
                let found = found.map_or_else(|| format!("byte {c:#04x}"), |c| format!("{c:?}"));
                Err(Error::syntax(self.position(self.at), "a character that PTX does not have").found(found))
            }
        }
    }
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned<'_>>, Error> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, line_start: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 6);
    loop {
        lexer.blank()?;
        if lexer.at >= text.len() {
            return Ok(tokens);
        }
        let at = lexer.position(lexer.at);
        let token = lexer.token()?;
        if token == Token::Dot("section") {
            lexer.section(at)?;
            continue;
        }
        tokens.push(Spanned { token, at });
    }
}
