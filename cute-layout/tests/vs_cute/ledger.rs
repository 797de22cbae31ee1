//! The ledger: where compiled CuTe differs from an operation's law, family by family, in `tests/ledger/*.txt`.
//!
//! An entry is a line with the case, and three that say what CuTe answers, what the law says to that, and what the library
//! answers. All three are found anew in each run; the files hold exactly that. So an entry that CuTe no longer shows fails,
//! and a difference in the random cases that belongs to no family fails too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cute_layout::layout::{Class, Layout, composition, flatten};

use crate::compile::{Answer, Cute};
use crate::cpp::Case;
use crate::exact::{Verdict, verdict};
use crate::laws::{broken, with_run_time_coordinate};
use crate::ops::ours;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/cute")
}

/// The families' names, those of their files.
pub(crate) fn families() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir())
        .expect("the ledger")
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The family of a difference between the library and compiled CuTe; `None` for one that nobody has named.
pub(crate) fn family(case: &Case, answer: &Answer) -> Option<&'static str> {
    let composes = |message: &str| message.contains("Stride Divisibility") || message.contains("Shape Divisibility");
    let casts = ["upcast", "downcast", "recast_layout"].contains(&case.op.as_str());
    let pairs = ["blocked_product", "raked_product", "make_layout_tv"].contains(&case.op.as_str());
    match (ours(case), answer) {
        (Ok(_), Answer::Refused(_)) if casts => Some("recast-refused"),
        (_, Answer::Text { .. }) if casts => Some("recast-bytes"),
        (Ok(_), Answer::Refused(message)) if composes(message) => Some("composition-refused"),
        (Ok(_), Answer::Refused(_)) if pairs && one_is_leaf(case) => Some("product-leaf"),
        (Ok(ours), Answer::Refused(_)) if case.op == "composition" && ours.text.matches(" o ").count() > 2 => {
            Some("swizzle-apart")
        }
        (Err(error), Answer::Text { .. }) => match error.class() {
            Class::Carry | Class::ShapeDivisibility | Class::StrideDivisibility => Some(composed(case)),
            Class::StrideKind if case.op == "complement" => Some("complement-negative"),
            Class::QuasiInverse => Some("left-inverse"),
            _ if case.op == "make_layout" && case.input(0).starts_with("Sw<") => Some("swizzle-domain"),
            _ => None,
        },
        (Ok(_), Answer::Text { .. }) => match case.op.as_str() {
            "slice_and_offset" if !case.input(0).contains(" o 0 o ") => Some("swizzle-slice-offset"),
            "cosize" if case.input(0).starts_with("Sw<") => Some("composed-cosize"),
            "make_ordered_layout" => Some("ordered-ties"),
            "max_common_vector" | "max_common_layout" => Some("max-common"),
            "make_layout_like" | "make_fragment_like" => Some("like-ties"),
            _ => None,
        },
        _ => None,
    }
}

/// Whether both operands have one mode, and one of them is no tuple.
fn one_is_leaf(case: &Case) -> bool {
    let operands: Vec<Layout> = case.inputs.iter().filter_map(|input| input.parse().ok()).collect();
    operands.iter().all(|of| of.rank() == 1) && operands.iter().any(|of| of.shape().is_leaf())
}

/// The family of a composition that CuTe takes and that no layout is.
fn composed(case: &Case) -> &'static str {
    let operands = (case.input(0).parse::<Layout>(), case.input(1).parse::<Layout>());
    let (true, (Ok(a), Ok(b))) = (case.op == "composition", operands) else { return "composition-inside" };
    let leaves = flatten(&b);
    if leaves.modes().all(|leaf| composition(&a, &leaf).is_ok()) {
        return "composition-carry";
    }
    let tail = flatten(&a).modes().last().is_some_and(|mode| mode.size() == 1);
    let past = (0..b.size()).any(|i| b.at(i).is_ok_and(|value| value >= a.size()));
    if tail && past { "composition-extension" } else { "composition-leaf" }
}

/// The lines of a family's file that begin an entry: the operation and its operands, separated by `|`.
fn cases(text: &str) -> Vec<Case> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with(' ') && !line.is_empty())
        .map(|line| {
            let (op, inputs) = line.split_once(' ').expect("an operation and its operands");
            Case::new(op, inputs.split('|').map(str::trim))
        })
        .collect()
}

fn entry(case: &Case, answer: &Answer, cute: &Cute) -> String {
    let answered = match answer {
        Answer::Text { text, .. } => text.clone(),
        Answer::Refused(message) => format!("refused: {message}"),
    };
    let ask = |other: &Case| cute.answers(std::slice::from_ref(other), |_| false).remove(0);
    let law = broken(case, answer, &ask).unwrap_or_else(|| "holds".to_owned());
    let here = ours(case).map_or_else(|e| format!("refused: {}", e.class()), |ours| ours.text);
    format!("{} {}\n    CuTe: {answered}\n    law:  {law}\n    here: {here}\n", case.op, case.inputs.join(" | "))
}

#[test]
fn every_entry_shows_in_compiled_cute() {
    let cute = Cute::new();
    let mut wrong = String::new();
    // All at once: a few translation units, not a few for each family.
    let all: Vec<Case> = families()
        .iter()
        .flat_map(|name| cases(&std::fs::read_to_string(dir().join(format!("{name}.txt"))).expect("a family")))
        .collect();
    let run_time = all.iter().filter(|case| case.op == "slice_and_offset").map(with_run_time_coordinate);
    cute.answers(&all.iter().cloned().chain(run_time).collect::<Vec<_>>(), |case| ours(case).is_err());
    for name in families() {
        let path = dir().join(format!("{name}.txt"));
        let text = std::fs::read_to_string(&path).expect("a family");
        let mut found: String =
            text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        let cases = cases(&text);
        assert!(!cases.is_empty() && !found.is_empty(), "{name}: a family has a description and an entry");
        for (case, answer) in cases.iter().zip(cute.answers(&cases, |_| false)) {
            let entry = entry(case, &answer, &cute);
            if entry.contains("law:  holds") {
                write!(wrong, "{name}: CuTe does not break the law here\n{entry}").expect("a string");
            }
            let differs = verdict(&ours(case), &answer) != Verdict::Same;
            if differs && family(case, &answer) != Some(name.as_str()) {
                write!(wrong, "{name}: of the family {:?}\n{entry}", family(case, &answer)).expect("a string");
            }
            found.push_str(&entry);
        }
        if wrong.is_empty() {
            expect_test::expect_file![path].assert_eq(&found);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
