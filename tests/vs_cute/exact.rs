//! Exactness: random nested layouts with compile-time integers, all operations, compared as text and at coordinates.

use cutemplate::layout::{Layout, LayoutError};

use crate::cases::random_cases;
use crate::compile::{Answer, Cute, plain};
use crate::cpp::Case;
use crate::ops::{Ours, ours};

/// How an answer of compiled CuTe stands to ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same text and values; or both refuse, for a reason of the same class.
    Same,
    /// They differ, as described.
    Differs(String),
}

fn guess_refused(case: &Case) -> bool {
    ours(case).is_err()
}

pub fn verdict(ours: &Result<Ours, LayoutError>, cute: &Answer) -> Verdict {
    match (ours, cute) {
        (Ok(ours), Answer::Text { text, values }) => {
            if plain(&ours.text) != *text {
                return Verdict::Differs(format!("text {} against {text}", ours.text));
            }
            match &ours.layout {
                Some(layout) if layout.size() > 0 => same_values(layout, values),
                _ => Verdict::Same,
            }
        }
        (Err(error), Answer::Refused(message)) if message.contains(error.class().as_str()) => Verdict::Same,
        (Err(error), Answer::Refused(message)) => Verdict::Differs(format!("class {} against {message}", error.class())),
        (Ok(ours), Answer::Refused(message)) => Verdict::Differs(format!("ours {} against refused {message}", ours.text)),
        (Err(error), Answer::Text { text, .. }) => Verdict::Differs(format!("refused {} against {text}", error.class())),
    }
}

fn same_values(layout: &Layout, values: &[String]) -> Verdict {
    for (i, value) in values.iter().enumerate() {
        let ours = layout.crd2idx(&(i as i64).into()).map(|v| v.to_string()).unwrap_or_else(|e| e.to_string());
        if ours != *value {
            return Verdict::Differs(format!("value {ours} at {i} against {value}"));
        }
    }
    Verdict::Same
}

#[test]
fn random_static_layouts() {
    let count = std::env::var("CUTEMPLATE_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(512);
    let cases = random_cases(0x5eed_0002, count);
    let cute = Cute::new();
    let answers = cute.answers(&cases, guess_refused);
    for (case, answer) in cases.iter().zip(&answers) {
        if let Verdict::Differs(how) = verdict(&ours(case), answer) {
            println!("{case}: {how}");
        }
    }
}
