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

/// Words of the text that stand for something without a declaration.
const WORDS: [&str; 3] = ["let", "inf", "nan"];

/// Names of functions of the C++ that is written from a text.
const FUNCTIONS: &[&str] = &[
    "memcpy",
    "fabs",
    "fmin",
    "fmax",
    "fabsf",
    "fminf",
    "fmaxf",
    "round_to_odd",
    "saturate_cast",
    "saturate_cast_i32",
    "exp2_or_0",
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

/// Functions of the text that are about an element's row; those of a group have `_group128` behind them.
const OF_ROWS: [(&str, &str); 11] = [
    ("sum", "x"),
    ("mean", "x"),
    ("prod", "x"),
    ("max", "x"),
    ("min", "x"),
    ("any", "condition"),
    ("all", "condition"),
    ("argmax", "x"),
    ("argmin", "x"),
    ("col", ""),
    ("width", ""),
];

pub(super) fn functions_of_rows<'n>() -> impl Iterator<Item = &'n str> {
    OF_ROWS.iter().map(|(name, _)| *name)
}

/// The functions of a [row program](super::rows), with their arguments. All but `col()` are there for groups too: `max_group128(x)`.
pub fn row_signatures() -> impl Iterator<Item = String> {
    OF_ROWS.iter().map(|(name, takes)| format!("{name}({takes})"))
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

/// Whether C++ can use the word for an input or a scalar, beside the functions that the text calls and its named parts.
fn is_free_in_cxx(word: &str) -> bool {
    // C's mathematics has the names of the text, with an `f` behind them for `float`.
    let function = functions().any(|name| name == word || word.strip_suffix('f') == Some(name));
    !is_temporary(word) && !function && !FUNCTIONS.contains(&word) && !WORDS.contains(&word) && !reserved::in_cxx(word)
}

/// `t0`, as named parts are called.
fn is_temporary(word: &str) -> bool {
    word.strip_prefix('t').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The names as C++ has them: each once, and none that means something there.
pub(super) fn in_cxx<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    free(names, is_free_in_cxx)
}

/// Each name as it is, if it is free and not another's; else with an underscore behind it, or one and a number.
pub(crate) fn free<'n>(names: impl Iterator<Item = &'n str>, is_free: impl Fn(&str) -> bool) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let mut all: Vec<String> = Vec::new();
    for name in &names {
        let others = |candidate: &String| names.iter().any(|other| other == candidate) || all.contains(candidate);
        let fits = |candidate: &String| is_free(candidate) && !others(candidate);
        let numbered = || (2..).map(|number| format!("{name}_{number}")).find(fits);
        let own = (is_free(name) && !all.iter().any(|known| known == name)).then(|| (*name).to_owned());
        let found = own.or_else(|| Some(format!("{name}_")).filter(fits)).or_else(numbered);
        all.extend(found);
    }
    all
}

/// Whether a named part of a text can be called so.
pub(super) fn is_free(word: &str) -> bool {
    is_temporary(word) || (is_identifier(word) && !WORDS.contains(&word) && !functions().any(|name| name == word))
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

/// Checks that inputs can be called so.
pub(super) fn check_inputs(inputs: &[&str]) -> Result<(), ExprError> {
    input_count(inputs.len())?;
    for (index, name) in inputs.iter().enumerate() {
        if !is_identifier(name) || WORDS.contains(name) {
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
        if !is_identifier(name) || WORDS.contains(&name) {
            return refused(
                format!("the scalar name `{name}`"),
                "a lower-case letter, then up to 31 of a-z, 0-9 and single underscores, but not let, inf or nan",
                "it stands for a parameter in the expression",
                "a name such as `alpha`",
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
    use crate::expr::{Compute, Function, Helpers};

    fn every_word() -> impl Iterator<Item = &'static str> {
        let words = reserved::all().chain(FUNCTIONS.iter().copied()).chain(functions()).chain(["t0", "x", "n", "expf"]);
        words.filter(|word| is_identifier(word) && !WORDS.contains(word))
    }

    /// Any word names an input or a scalar. Texts and C++ keep it where it means nothing else.
    #[test]
    fn inputs_and_scalars_may_have_any_word() {
        for word in every_word() {
            for text in [format!("|{word}| {word} + 1"), format!("|p; {word}| exp(p * p) + {word}")] {
                let function: Function = text.parse().expect("a function");
                assert_eq!(function.to_string(), text);
                let checked = function.check(Compute::F32).expect("f32 has it");
                let functor = checked.functor("Op", &mut Helpers::new(Compute::F32));
                let name = if is_free_in_cxx(word) { word.to_owned() } else { format!("{word}_") };
                assert!(functor.contains(&format!("float {name}")), "{functor}");
            }
        }
        let error = "|a; inf| a + inf".parse::<Function>().expect_err("inf is a number");
        assert!(error.to_string().contains("but not let, inf or nan"), "{error}");
    }

    /// Named parts of a text keep clear of names that look like theirs.
    #[test]
    fn named_parts_are_no_inputs() {
        let text = "|t0, x; t1| let s = x * t0; s + s * t1";
        let function: Function = text.parse().expect("a function");
        assert_eq!(function.to_string(), "|t0, x; t1| let t2 = x * t0; t2 + t2 * t1");
        assert_eq!(function.to_string().parse(), Ok(function));
    }

    #[test]
    fn a_name_in_cxx_is_nobody_elses() {
        let names = |of: &[&str]| in_cxx(of.iter().copied());
        assert_eq!(names(&["int", "int_", "x"]), ["int_2", "int_", "x"]);
        assert_eq!(names(&["exp", "expf", "alpha"]), ["exp_", "expf_", "alpha"]);
    }
}
