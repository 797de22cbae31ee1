//! The layout of messages.

use core::fmt;

/// A field of a message; further lines are indented under the first.
pub(crate) fn field(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    for (i, line) in text.trim_end().lines().enumerate() {
        let name = if i == 0 { name } else { "" };
        write!(f, "\n  {name:<9} {line}")?;
    }
    Ok(())
}
