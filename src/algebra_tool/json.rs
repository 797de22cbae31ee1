//! Just enough JSON for the line protocol: one object a line, read without a tree.

use std::borrow::Cow;

/// The two members of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) op: Cow<'a, str>,
    pub(crate) inputs: Vec<Cow<'a, str>>,
}

/// The deepest nesting of values that are skipped.
const MOST_NESTED: usize = 64;

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// Reads a request; other members of the object are skipped. The error says what was expected and where.
pub(crate) fn request(line: &str) -> Result<Request<'_>, String> {
    let mut cursor = Cursor { text: line, at: 0 };
    let mut op = None;
    let mut inputs = None;
    cursor.expect(b'{')?;
    if !cursor.eat(b'}') {
        loop {
            let key = cursor.string()?;
            cursor.expect(b':')?;
            match key.as_ref() {
                "op" => op = Some(cursor.string()?),
                "inputs" => inputs = Some(cursor.strings()?),
                _ => cursor.skip()?,
            }
            if !cursor.eat(b',') {
                break;
            }
        }
        cursor.expect(b'}')?;
    }
    if cursor.peek().is_some() {
        return Err(cursor.fail("the end of the line"));
    }
    match (op, inputs) {
        (Some(op), Some(inputs)) => Ok(Request { op, inputs }),
        (None, _) => Err("no member \"op\" with a string".to_owned()),
        (_, None) => Err("no member \"inputs\" with a list of strings".to_owned()),
    }
}

impl<'a> Cursor<'a> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn fail(&self, expected: &str) -> String {
        format!("expected {expected} at position {}", self.at)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.eat(byte) { Ok(()) } else { Err(self.fail(&format!("`{}`", char::from(byte)))) }
    }

    fn strings(&mut self) -> Result<Vec<Cow<'a, str>>, String> {
        self.expect(b'[')?;
        let mut strings = Vec::new();
        if self.eat(b']') {
            return Ok(strings);
        }
        loop {
            strings.push(self.string()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(strings)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        if !self.eat(b'"') {
            return Err(self.fail("a string"));
        }
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut copied = start;
        loop {
            let byte = *self.text.as_bytes().get(self.at).ok_or_else(|| self.fail("the end of the string"))?;
            match byte {
                b'"' => {
                    let rest = self.text.get(copied..self.at).unwrap_or("");
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_with(String::new);
                    text.push_str(self.text.get(copied..self.at).unwrap_or(""));
                    self.at += 1;
                    let escaped = self.escape()?;
                    owned.get_or_insert_with(String::new).push(escaped);
                    copied = self.at;
                }
                0..=0x1f => return Err(self.fail("no control character in a string")),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let byte = self.text.as_bytes().get(self.at).copied().ok_or_else(|| self.fail("an escape"))?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                let code = if (0xd800..0xdc00).contains(&first)
                    && self.text.get(self.at..).is_some_and(|t| t.starts_with("\\u"))
                {
                    self.at += 2;
                    let second = self.hex()?;
                    0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff)
                } else {
                    first
                };
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.fail("an escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let code =
            digits.and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or_else(|| self.fail("four hex digits"))?;
        self.at += 4;
        Ok(code)
    }

    /// Skips a value of any kind.
    fn skip(&mut self) -> Result<(), String> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => {
                    self.at += 1;
                    depth += 1;
                    if depth > MOST_NESTED {
                        return Err(self.fail("less nesting"));
                    }
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => self.scalar()?,
                _ => return Err(self.fail("a value")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn scalar(&mut self) -> Result<(), String> {
        let start = self.at;
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        while self.text.as_bytes().get(self.at).is_some_and(part) {
            self.at += 1;
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        let number = text.parse::<f64>().is_ok() && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        if number || matches!(text, "true" | "false" | "null") {
            return Ok(());
        }
        self.at = start;
        Err(self.fail("a value"))
    }
}

/// Writes a JSON string.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut copied = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[copied..i]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        copied = i + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}
