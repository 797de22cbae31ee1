//! Contract: each line of `data/layout_cases.tsv` is answered as it says, through the line protocol.

use cute_layout::algebra_tool::explain;
use cute_layout::algebra_tool::{Value, answer, apply};
use cute_layout::layout::{IntTuple, Layout};

struct Case<'a> {
    op: &'a str,
    inputs: Vec<&'a str>,
    answer: &'a str,
    values: Vec<i64>,
}

fn cases() -> Vec<Case<'static>> {
    include_str!("../data/layout_cases.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap_or("");
            let (op, inputs, answer, _cute, values) = (next(), next(), next(), next(), next());
            let values = values.split_whitespace().map(|v| v.parse().expect("an integer")).collect();
            Case { op, inputs: inputs.split(" | ").collect(), answer, values }
        })
        .collect()
}

#[test]
fn every_case_is_answered_as_written() {
    let cases = cases();
    assert!(cases.len() >= 150, "only {} cases were read", cases.len());
    for case in &cases {
        let inputs: Vec<String> = case.inputs.iter().map(|input| format!("\"{input}\"")).collect();
        let mut out = String::new();
        answer(&format!("{{\"op\": \"{}\", \"inputs\": [{}]}}", case.op, inputs.join(", ")), &mut out);
        let expected = match case.answer.strip_prefix("! ") {
            None => format!("{{\"ok\": \"{}\"}}\n", case.answer),
            Some(class) => format!("{{\"error\": {{\"class\": \"{class}\", \"message\": "),
        };
        assert!(out.starts_with(&expected), "{} {:?}: {out}, not {expected}", case.op, case.inputs);
    }
}

#[test]
fn accepted_compositions_have_the_values() {
    let mut checked = 0;
    for case in cases().iter().filter(|case| !case.values.is_empty() && !case.answer.starts_with('!')) {
        let result: Layout = case.answer.parse().expect("a layout");
        let values: Vec<i64> = (0..result.size()).map(|i| result.at(i).expect("small")).collect();
        assert_eq!(values, case.values, "{:?}", case.inputs);
        checked += 1;
    }
    assert!(checked >= 35, "only {checked} compositions were checked");
}

#[test]
fn requests_that_are_none_are_answered() {
    for line in [
        "",
        "{",
        "[]",
        "null",
        "{\"op\": \"size\"}",
        "{\"op\": 3, \"inputs\": []}",
        "{\"op\": \"size\", \"inputs\": [\"4:1\"]} x",
    ] {
        let mut out = String::new();
        answer(line, &mut out);
        assert!(out.starts_with("{\"error\": {\"class\": \"Request\""), "{line}: {out}");
        assert_eq!(out.lines().count(), 1);
    }
    for (op, input, class) in [("siez", "4:1", "Invalid argument"), ("size", "(4", "Parse"), ("size", "4:1 4", "Parse")]
    {
        let mut out = String::new();
        answer(&format!("{{\"op\": \"{op}\", \"inputs\": [\"{input}\"], \"note\": {{\"a\": [1, true]}}}}"), &mut out);
        assert!(out.contains(class), "{op} {input}: {out}");
    }
    let error = apply("siez", &[Value::Tuple(IntTuple::int(4))]).expect_err("no such operation");
    assert!(error.advice().contains("`size`"), "{error}");
}

#[test]
fn every_case_has_a_derivation_that_ends_in_its_answer() {
    for case in cases() {
        let inputs: Vec<Value> = case.inputs.iter().map(|input| input.parse().expect("an input")).collect();
        let text = explain(case.op, &inputs).expect("a known operation");
        match case.answer.strip_prefix("! ") {
            None => assert!(text.ends_with(&format!("= {}\n", case.answer)), "{text}"),
            Some(class) => assert!(text.contains("refused. ") && text.contains(class), "{text}"),
        }
    }
}
