//! Why a picture was refused.

use std::fmt;

use crate::diagnostic::debug_as_display;
use crate::layout::LayoutError;

/// A picture that cannot be drawn, or should not be.
///
/// ```
/// use cutemplate::draw::{self, Options};
/// // Thread 1's value is element 64 of a tile that has 16.
/// let error = draw::tv(&"(2,4):(64,1)".parse()?, &"(4,4)".parse()?, &Options::default()).unwrap_err();
/// assert!(error.to_string().contains("T1/V0 is index 64"), "{error}");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrawError {
    /// This kind of picture cannot show the input, or would be too large.
    Refused {
        /// The kind of picture.
        picture: &'static str,
        /// The actual value.
        found: String,
        /// The required value.
        required: String,
        /// Why it has to.
        because: String,
        /// What to do.
        help: String,
    },
    /// A layout operation that the picture needs was refused.
    Layout(LayoutError),
}

debug_as_display!(DrawError);

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawError::Refused { picture, found, required, because, help } => {
                write!(f, "{picture}: not drawn\n  found:    {found}\n  required: {required}")?;
                write!(f, "\n  because:  {because}\n  help:     {help}")
            }
            DrawError::Layout(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DrawError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DrawError::Refused { .. } => None,
            DrawError::Layout(error) => Some(error),
        }
    }
}

impl From<LayoutError> for DrawError {
    fn from(error: LayoutError) -> DrawError {
        DrawError::Layout(error)
    }
}
