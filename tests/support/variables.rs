//! Variables that ask for more than the usual run. A value that means nothing fails the test that reads it.
#![allow(dead_code, reason = "each test file uses a part of it")]

/// Whether a variable is 1; it may be 0, or not be set.
pub(crate) fn switch(name: &str) -> bool {
    match number(name) {
        None | Some(0) => false,
        Some(1) => true,
        Some(other) => panic!("{name}: found {other}, required 0 or 1"),
    }
}

/// The number that a variable holds, where it is set.
pub(crate) fn number(name: &str) -> Option<u64> {
    let value = std::env::var_os(name)?;
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    Some(parsed.unwrap_or_else(|| panic!("{name}: found {}, required a whole number", value.display())))
}
