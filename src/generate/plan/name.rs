//! Names that are read from a text.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::de::{Deserialize, Deserializer, Error};

/// Letters of a name, at most.
const LONGEST: usize = 255;

/// A name that lives as long as the process. (For a reference serde would require that it lives in the input.)
pub(super) type Name = &'static str;

/// A word of letters, digits and underscores.
pub(super) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let fits = (1..=LONGEST).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits { Ok(text) } else { Err(D::Error::custom("a name is 1 to 255 letters, digits and underscores")) }
}

/// Such a word for as long as the process runs.
pub(super) fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    Ok(kept(word(deserializer)?))
}

/// The path of a type, for as long as the process runs: such words with `::` between them.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if text.len() > LONGEST || !text.split("::").all(is_word) {
        return Err(D::Error::custom("the path of a type is words with `::` between them, at most 255 letters"));
    }
    Ok(kept(text))
}

/// The text, for as long as the process runs: names of tensors and copies are such. Each text is kept once.
///
/// ```
/// use cutemplate::plan::interned;
///
/// assert!(core::ptr::eq(interned("Y1".to_owned()), interned(format!("Y{}", 1))));
/// ```
pub fn kept(text: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    kept.insert(text);
    text
}
