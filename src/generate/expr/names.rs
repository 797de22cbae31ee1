//! Which words of an expression mean what.

use super::error::{ExprError, ExprErrorKind};
use super::function::{MAX_SCALARS, input_count};
use super::op::{Binary, Unary};
use crate::reserved;

pub(super) const INPUTS: [&str; super::function::MAX_INPUTS] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Functions of the text that are not operations of their own, or that take more than two operands; and their
/// arguments.
const FORMS: [(&str, &str); 6] = [
    ("cast", "type, x"),
    ("clamp", "x, low, high"),
    ("fma", "x, y, z"),
    ("recip", "x"),
    ("saturate", "type, x"),
    ("select", "condition, x, y"),
];

/// Words with a meaning in the text, or for the functions of the C++ that is written from it.
const RESERVED: &[&str] = &[
    "let",
    "inf",
    "nan",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "x",
    "y",
    "memcpy",
    "fabs",
    "fmin",
    "fmax",
    "fabsf",
    "fminf",
    "fmaxf",
    "round_to_odd",
    "saturate_cast",
    "clamp_finite",
    "wrap_add",
    "wrap_sub",
    "wrap_mul",
    "wrap_neg",
    "wrap_abs",
];

/// Every function name of the text.
pub(super) fn functions<'n>() -> impl Iterator<Item = &'n str> {
    let words = Unary::ALL.iter().map(|op| op.text()).chain(Binary::ALL.iter().map(|op| op.text()));
    words.filter(|word| is_word(word)).chain(FORMS.map(|(name, _)| name))
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The functions that expressions can call, with their arguments.
///
/// ```
/// use cutemplate::expr;
///
/// assert!(["relu(x)", "max(x, y)", "select(condition, x, y)"].iter().all(|f| expr::functions().any(|known| known ==
/// *f)));
/// ```
pub fn signatures() -> impl Iterator<Item = String> {
    let of = |words: Vec<&'static str>, takes: &'static str| {
        words.into_iter().filter(|w| is_word(w)).map(move |w| (w, takes))
    };
    let unary = of(Unary::ALL.iter().map(|op| op.text()).collect(), "x");
    let binary = of(Binary::ALL.iter().map(|op| op.text()).collect(), "x, y");
    unary.chain(binary).chain(FORMS).map(|(name, takes)| format!("{name}({takes})"))
}

/// Whether text and C++ can use the word for something new.
pub(super) fn is_free(word: &str) -> bool {
    let temporary =
        word.strip_prefix('t').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    // C's mathematics has the names of the text, with an `f` behind them for `float`.
    let function = functions().any(|name| name == word || word.strip_suffix('f') == Some(name));
    let reserved = RESERVED.contains(&word) || reserved::in_cxx(word) || reserved::never_in_rust(word);
    !temporary && !function && !reserved
}

fn is_identifier(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !word.contains("__")
        && word.len() <= 32
}

fn refused<T>(found: String, required: &str, because: &str, help: &str) -> Result<T, ExprError> {
    Err(ExprError::new(ExprErrorKind::Signature, found, required, because, help))
}

/// Checks that a text may use these names for its inputs. Written text calls them a to h.
pub(super) fn check_inputs(inputs: &[&str]) -> Result<(), ExprError> {
    input_count(inputs.len())?;
    for (index, name) in inputs.iter().enumerate() {
        if !is_identifier(name) || ["let", "inf", "nan"].contains(name) {
            return refused(
                format!("the input name `{name}`"),
                "a lower-case letter, then up to 31 of a-z, 0-9 and single underscores, but not let, inf or nan",
                "it stands for an element in the expression",
                "a name such as `bias`",
            );
        }
        if inputs[..index].contains(name) {
            return refused(
                format!("the input name `{name}` twice"),
                "each name once",
                "a name stands for one input",
                "inputs that are not used need a name, too",
            );
        }
    }
    Ok(())
}

/// That no name is an input's and a scalar's.
pub(super) fn check_apart(inputs: &[&str], scalars: &[&str]) -> Result<(), ExprError> {
    match inputs.iter().find(|name| scalars.contains(name)) {
        Some(name) => refused(
            format!("the input and the scalar `{name}`"),
            "each name once",
            "a name stands for one input or one parameter",
            "another name for one of them",
        ),
        None => Ok(()),
    }
}

pub(super) fn check_scalars<S: AsRef<str>>(scalars: &[S]) -> Result<(), ExprError> {
    if scalars.len() > MAX_SCALARS {
        let found = format!("{} scalars", scalars.len());
        return refused(found, "at most 16", "scalars travel in the kernel's parameters", "pass a tensor instead");
    }
    for (index, name) in scalars.iter().map(AsRef::as_ref).enumerate() {
        if !is_identifier(name) {
            return refused(
                format!("the scalar name `{name}`"),
                "a lower-case letter, then up to 31 of a-z, 0-9 and single underscores",
                "it becomes a member of a C++ struct",
                "a name such as `alpha`",
            );
        }
        if !is_free(name) {
            return refused(
                format!("the scalar name `{name}`"),
                "a name that means nothing else",
                "expressions, or the C++ and Rust that are written from them, use it already",
                &format!("`{name}_value`, for instance"),
            );
        }
        if scalars[..index].iter().any(|before| before.as_ref() == name) {
            return refused(
                format!("the scalar name `{name}` twice"),
                "each name once",
                "a name stands for one parameter",
                "declare it once; it can be used anywhere",
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written text calls inputs a to h.
    #[test]
    fn an_input_may_have_any_word() {
        for word in reserved::all().filter(|word| is_identifier(word) && *word != "let") {
            let function: crate::expr::Function = format!("|{word}| {word} + 1").parse().expect("a function");
            assert_eq!(function.to_string(), "a + 1", "{word}");
        }
    }

    #[test]
    fn no_scalar_has_a_word_of_another_language_and_the_hint_is_a_name() {
        for word in reserved::all().chain(RESERVED.iter().copied()).filter(|word| is_identifier(word)) {
            let raw = reserved::in_rust(word) && !reserved::in_cxx(word) && !reserved::never_in_rust(word);
            let told = check_scalars(&[word]).map_err(|e| e.to_string());
            if raw && !RESERVED.contains(&word) {
                // Rust has a way to write it.
                assert_eq!(told, Ok(()), "{word}");
                continue;
            }
            let hint = format!("{word}_value");
            assert!(told.is_err_and(|told| told.contains(&hint)), "{word}");
            assert!(check_scalars(&[hint]).is_ok(), "{word}");
        }
        for free in ["alpha", "half", "volatile_value", "intern", "dim", "r", "size"] {
            assert!(check_scalars(&[free]).is_ok(), "{free}");
        }
    }
}
