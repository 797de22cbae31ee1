//! Moving through the text, and saying where it goes wrong.

use super::Parser;
use crate::expr::error::{ExprError, ExprErrorKind};
use crate::near;

impl<'a> Parser<'a> {
    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let start = self.start();
        self.text.as_bytes().get(start).copied()
    }

    /// Skips white space; gives where the next piece begins.
    pub(super) fn start(&mut self) -> usize {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.at
    }

    /// Takes `sign` where the text goes on with it.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let start = self.start();
        let found = self.text.get(start..).is_some_and(|rest| rest.starts_with(sign));
        if found {
            self.at += sign.len();
        }
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), ExprError> {
        if self.eat(sign) { Ok(()) } else { Err(self.fail(format!("`{sign}`"))) }
    }

    /// Letters, digits and underscores from here on.
    pub(super) fn word(&mut self) -> &'a str {
        let start = self.start();
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Takes `word` where it is the whole next word.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let start = self.start();
        let found = self.word() == word;
        if !found {
            self.at = start;
        }
        found
    }

    /// An error: the text here is not what the grammar requires.
    pub(super) fn fail(&mut self, required: impl Into<String>) -> ExprError {
        let start = self.start();
        let rest: String = self.text[start..].chars().take(24).collect();
        let found = if rest.is_empty() { "the end of the text".to_owned() } else { format!("`{rest}`") };
        ExprError::new(ExprErrorKind::Parse, found, required, "", "").at(start)
    }
}

/// A remark on the known name that is nearest to `word`, where one is near.
pub(super) fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str>) -> String {
    near::nearest(word, known).map_or_else(String::new, |name| format!("the nearest name is `{name}`"))
}
