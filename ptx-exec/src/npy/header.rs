//! The header of a `.npy` file: magic, version, length, and a Python dict of three keys.
//!
//! Only what `numpy.lib.format` writes is read: a flat dict of a string, a bool and a tuple of integers. Arrays of records
//! have a list for `descr` and are refused by type.

use std::io::{self, Read};

/// The longest header that NumPy reads without being told to (`max_header_size` of `numpy.load`).
const MAX_HEADER: u32 = 10_000;

/// A header that cannot be read.
#[derive(thiserror::Error)]
pub enum HeaderError {
    /// The file ends before its header does.
    #[error("the file ends inside the header")]
    Truncated,
    /// The operating system refuses.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The file does not begin with the format's magic bytes.
    #[error("found \"{}\" at the start, required \"\\x93NUMPY\"", found.escape_ascii())]
    Magic {
        /// The first bytes of the file.
        found: Vec<u8>,
    },
    /// A version that does not exist.
    #[error("found format version {0}.{1}, required 1.0, 2.0 or 3.0")]
    Version(u8, u8),
    /// A header longer than any array of numbers needs.
    #[error("found a header of {0} bytes, required at most {MAX_HEADER}, as numpy.load requires")]
    TooLong(u32),
    /// The dict is not one.
    #[error("found {found} at byte {at} of the header dict, required {required}")]
    Syntax {
        /// Bytes from the start of the dict.
        at: usize,
        /// The text there.
        found: String,
        /// The required text.
        required: &'static str,
    },
    /// The dict has other keys.
    #[error("the header dict has {0}, required are descr, fortran_order and shape, once each")]
    Keys(String),
}

impl core::fmt::Debug for HeaderError {
    /// As `Display`: `fn main() -> Result<(), _>` shows a message and not a struct.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// The contents of a header.
#[derive(Clone, Debug)]
pub struct Header {
    /// The type descriptor: the string, or the text of another value.
    pub descr: String,
    /// Whether the first index runs fastest.
    pub fortran_order: bool,
    /// The extents, the slowest index first unless the order is Fortran's.
    pub shape: Vec<u64>,
    /// Bytes of the whole header, from the start of the file.
    pub len: u64,
}

fn fill(from: &mut impl Read, to: &mut [u8]) -> Result<(), HeaderError> {
    from.read_exact(to).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => HeaderError::Truncated,
        _ => HeaderError::Io(e),
    })
}

impl Header {
    /// Reads a header, up to its end.
    ///
    /// # Errors
    /// The header is missing or damaged.
    pub fn read(from: &mut impl Read) -> Result<Self, HeaderError> {
        let mut start = Vec::new();
        from.take(8).read_to_end(&mut start).map_err(HeaderError::Io)?;
        let [magic @ .., major, minor] = &start[..] else { return Err(HeaderError::Magic { found: start }) };
        if magic != b"\x93NUMPY" {
            return Err(HeaderError::Magic { found: start });
        }
        let (len, before) = match (major, minor) {
            (1, 0) => {
                let mut len = [0; 2];
                fill(from, &mut len)?;
                (u32::from(u16::from_le_bytes(len)), 10)
            }
            (2 | 3, 0) => {
                let mut len = [0; 4];
                fill(from, &mut len)?;
                (u32::from_le_bytes(len), 12)
            }
            _ => return Err(HeaderError::Version(*major, *minor)),
        };
        if len > MAX_HEADER {
            return Err(HeaderError::TooLong(len));
        }
        let mut text = vec![0; len as usize];
        fill(from, &mut text)?;
        // Versions 1.0 and 2.0 are latin-1, 3.0 is UTF-8. The keys and values below are ASCII in all of them.
        let mut header = Dict { text: &String::from_utf8_lossy(&text), at: 0 }.parse()?;
        header.len = before + u64::from(len);
        Ok(header)
    }

    /// The shape as Python writes it.
    pub fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }
}

fn shape_text<N: ToString>(shape: &[N]) -> String {
    match shape {
        [n] => format!("({},)", n.to_string()),
        _ => format!("({})", shape.iter().map(N::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A cursor over the dict. No recursion: depth is fixed by the format.
struct Dict<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Dict<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error<T>(&self, required: &'static str) -> Result<T, HeaderError> {
        let found = match self.rest().trim_end() {
            "" => "the end".to_owned(),
            rest => format!("{:?}", rest.chars().take(24).collect::<String>()),
        };
        Err(HeaderError::Syntax { at: self.at, found, required })
    }

    /// Takes `token` if it is next.
    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expect(&mut self, token: &str, required: &'static str) -> Result<(), HeaderError> {
        if self.take(token) { Ok(()) } else { self.error(required) }
    }

    fn string(&mut self) -> Option<&'a str> {
        self.skip();
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (text, _) = rest[1..].split_once(quote)?;
        self.at += text.len() + 2;
        Some(text)
    }

    fn integer(&mut self) -> Result<u64, HeaderError> {
        self.skip();
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(value) = rest[..digits].parse() else { return self.error("an extent from 0 to 2^64 - 1") };
        self.at += digits;
        // Python 2 marked long integers.
        self.at += usize::from(self.rest().starts_with('L'));
        Ok(value)
    }

    fn shape(&mut self) -> Result<Vec<u64>, HeaderError> {
        self.expect("(", "the tuple of the shape")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            shape.push(self.integer()?);
            if !self.take(",") {
                self.expect(")", "`,` or `)`")?;
                break;
            }
        }
        Ok(shape)
    }

    /// A descriptor string, or, for records, the text up to the next key.
    fn descr(&mut self) -> Result<String, HeaderError> {
        if let Some(text) = self.string() {
            return Ok(text.to_owned());
        }
        let rest = self.rest();
        match rest.find("'fortran_order'").filter(|_| rest.starts_with('[')) {
            Some(end) => {
                self.at += rest[..end].trim_end().trim_end_matches(',').len();
                Ok(rest[..end].trim_end().trim_end_matches(',').chars().take(64).collect())
            }
            None => self.error("a type descriptor in quotes"),
        }
    }

    fn parse(mut self) -> Result<Header, HeaderError> {
        let (mut descr, mut order, mut shape) = (None, None, None);
        self.expect("{", "`{`")?;
        while !self.take("}") {
            let Some(key) = self.string() else { return self.error("a key in quotes") };
            self.expect(":", "`:`")?;
            let again = match key {
                "descr" => descr.replace(self.descr()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                "fortran_order" if self.take("True") => order.replace(true).is_some(),
                "fortran_order" if self.take("False") => order.replace(false).is_some(),
                "fortran_order" => return self.error("True or False"),
                other => return Err(HeaderError::Keys(format!("the key {other:?}"))),
            };
            if again {
                return Err(HeaderError::Keys(format!("the key {key:?} twice")));
            }
            if !self.take(",") {
                self.expect("}", "`,` or `}`")?;
                break;
            }
        }
        self.skip();
        if !self.rest().is_empty() {
            return self.error("nothing after `}`");
        }
        match (descr, order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape, len: 0 }),
            (None, ..) => Err(HeaderError::Keys("no key \"descr\"".into())),
            (_, None, _) => Err(HeaderError::Keys("no key \"fortran_order\"".into())),
            (.., None) => Err(HeaderError::Keys("no key \"shape\"".into())),
        }
    }
}

/// The header of an array, byte for byte as `numpy.lib.format` writes it: room for the extent of the slowest axis to grow to 21
/// digits, then spaces up to a multiple of 64 bytes.
pub fn encode(descr: &str, shape: &[u64], fortran_order: bool) -> Vec<u8> {
    let order = if fortran_order { "True" } else { "False" };
    let text = shape_text(shape);
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {text}, }}");
    let slowest = if fortran_order { shape.last() } else { shape.first() };
    dict.push_str(&" ".repeat(slowest.map_or(0, |extent| 21_usize.saturating_sub(extent.to_string().len()))));
    const PREFIX: usize = 10;
    dict.push_str(&" ".repeat(64 - (PREFIX + dict.len() + 1) % 64));
    dict.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(String, bool, Vec<u64>), String> {
        let header = Dict { text, at: 0 }.parse().map_err(|e| e.to_string())?;
        Ok((header.descr, header.fortran_order, header.shape))
    }

    #[test]
    fn python_s_ways_to_write_the_dict_are_read() {
        let dense = ("<f4".to_owned(), false, vec![3, 12]);
        assert_eq!(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 12), }   \n"), Ok(dense.clone()));
        assert_eq!(parse("{'shape':(3L,12L),'fortran_order':False,'descr':\"<f4\"}"), Ok(dense));
        let fortran = ("|V2".to_owned(), true, vec![5]);
        assert_eq!(parse("{'descr': '|V2', 'fortran_order': True, 'shape': (5,), }"), Ok(fortran));
        let scalar = ("<f2".to_owned(), false, vec![]);
        assert_eq!(parse("{'descr': '<f2', 'fortran_order': False, 'shape': (), }"), Ok(scalar));
        let records = ("[('a', '<f4'), ('b', '<i8')]".to_owned(), false, vec![2]);
        let text = "{'descr': [('a', '<f4'), ('b', '<i8')], 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(parse(text), Ok(records));
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_an_answer_and_no_panic() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 12), }";
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_err(), "{}", &text[..end]);
        }
        for at in 0..text.len() {
            for with in ["\0", "(", "'", "9", "\u{fffd}", " ", "{", "-", ""] {
                let _ = parse(&format!("{}{with}{}", &text[..at], &text[at + 1..]));
            }
        }
    }
}
