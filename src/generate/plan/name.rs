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

/// Such a word for as long as the process runs: each is kept once.
pub(super) fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = word(deserializer)?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text.as_str()) {
        return Ok(known);
    }
    let text: &'static str = text.leak();
    kept.insert(text);
    Ok(text)
}
