//! Exactness: random nested layouts with compile-time integers, all operations, compared as text and at coordinates.

use cute_layout::layout::{AnyLayout, Class, LayoutError, crd2idx};

use crate::cases::random_cases;
use crate::compile::{Answer, Cute, plain};
use crate::cpp::Case;
use crate::laws::{broken, stated};
use crate::ledger::{families, family};
use crate::ops::{Ours, ours};
use crate::shrink::shrink;
use crate::variables;
use crate::volume::Tally;

/// How an answer of compiled CuTe stands to ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same text and values; or both refuse, for a reason of the same class.
    Same,
    /// They differ, as described.
    Differs(String),
}

pub(crate) fn verdict(ours: &Result<Ours, LayoutError>, cute: &Answer) -> Verdict {
    match (ours, cute) {
        (Ok(ours), Answer::Text { text, values }) => {
            if plain(&ours.text) != plain(text) {
                return Verdict::Differs(format!("text {} against {text}", ours.text));
            }
            match &ours.layout {
                Some(layout) => same_values(layout, values),
                None => Verdict::Same,
            }
        }
        (Err(error), Answer::Refused(message)) if asserts(error.class(), message) => Verdict::Same,
        (Err(error), Answer::Refused(message)) => {
            Verdict::Differs(format!("class {} against {message}", error.class()))
        }
        (Ok(ours), Answer::Refused(message)) => {
            Verdict::Differs(format!("ours {} against refused {message}", ours.text))
        }
        (Err(error), Answer::Text { text, .. }) => {
            Verdict::Differs(format!("refused {} against {text}", error.class()))
        }
    }
}

/// What CuTe asserts of swizzles, whose class has no one text.
const OF_SWIZZLES: [&str; 4] = [
    "Can only merge swizzles of the same shift.",
    "Number of bits in Y and Z don't match",
    "abs(SShift) must be more than BBits.",
    "Requires a power of 2",
];

/// Whether what CuTe asserts is of the class of a refusal.
fn asserts(class: Class, message: &str) -> bool {
    match class {
        Class::Swizzle => OF_SWIZZLES.iter().any(|text| message.contains(text)),
        class => message.contains(class.as_str()),
    }
}

fn same_values(layout: &AnyLayout, values: &[String]) -> Verdict {
    for (i, value) in values.iter().enumerate() {
        let ours = match layout {
            AnyLayout::Plain(layout) => crd2idx(&(i as i64).into(), layout).map(|value| value.to_string()),
            other => other.at(i as i64).map(|value| value.to_string()),
        };
        match ours {
            Ok(ours) if ours == *value => {}
            Ok(ours) => return Verdict::Differs(format!("value {ours} at {i} against {value}")),
            Err(error) => return Verdict::Differs(format!("no value at {i}: {error}")),
        }
    }
    Verdict::Same
}

/// The cases of an ordinary run and of a whole one, whose differences are counted in the ledger.
const ORDINARY: usize = 256;
const WHOLE: usize = 512;

#[test]
fn random_static_layouts() {
    let usual = if variables::switch("CUTEMPLATE_WHOLE") { WHOLE } else { ORDINARY };
    let count = variables::number("CUTE_LAYOUT_ORACLE_CASES").map_or(usual, |n| n as usize);
    let cases = random_cases(0x5eed_0002, count);
    let cute = Cute::new();
    let answers = cute.answers(&cases, |case| ours(case).is_err());
    let named = families();
    let mut tally = Tally::default();
    let mut unnamed = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        let mut stands = verdict(&ours(case), answer);
        if stands != Verdict::Same && matches!(answer, Answer::Refused(_)) {
            stands = verdict(&ours(case), &cute.alone(case));
        }
        let Verdict::Differs(how) = stands else {
            tally.add("the same:");
            continue;
        };
        // A family is not enough: where there is a law, CuTe's answer must break it.
        let breaks = || !stated(case, answer) || broken(case, answer, &|other| cute.alone(other)).is_some();
        match family(case, answer).filter(|family| named.iter().any(|name| name == family) && breaks()) {
            Some(family) => tally.add(format!("{family}, {case}:")),
            None => unnamed.push((case, answer, how)),
        }
    }
    assert!(
        unnamed.is_empty(),
        "{} of {count} cases differ from compiled CuTe\n{}",
        unnamed.len(),
        report(&cute, &unnamed)
    );
    match count {
        ORDINARY => expect_test::expect_file!["../ledger/exact.txt"].assert_eq(&tally.text()),
        WHOLE => expect_test::expect_file!["../ledger/exact_whole.txt"].assert_eq(&tally.text()),
        _ => {}
    }
}

/// What differs, and for the first the smallest case, with a file that shows it.
fn report(cute: &Cute, unnamed: &[(&Case, &Answer, String)]) -> String {
    let mut text = String::new();
    for (i, (case, answer, how)) in unnamed.iter().enumerate() {
        text.push_str(&format!("{case}: {how}\n"));
        if i == 0 {
            let (small, answer) = shrink(cute, case, answer);
            let because = format!("{small}\nCuTe: {answer:?}\nhere: {:?}", ours(&small).map(|ours| ours.text));
            let path = cute.reproducer(&small, &because);
            text.push_str(&format!("  smallest: {small}, in {}\n", path.display()));
        }
    }
    text
}
