//! Contract: input that is none gets an error with its class and its position, the same through the library and the line
//! protocol. The command line of cutemplate has a test of the same cases.

use crate::wrong_input::cases;
use cute_layout::algebra_tool::{answer, evaluate};

#[test]
fn the_evaluator_says_what_and_where() {
    for (text, class, found) in cases() {
        let error = evaluate(&text).expect_err(&text);
        assert_eq!((error.class().as_str(), error.what_was_found()), (class, found.as_str()), "{error}");
        assert!(!error.what_is_required().is_empty(), "{error}");
        // Inside a call the position is that in the whole text.
        let call = format!("coalesce({text})");
        let error = evaluate(&call).expect_err(&call);
        let position = |text: &str| text.rsplit("at position ").next().and_then(|n| n.parse::<usize>().ok());
        let (here, there) = (position(&found).expect("a position"), position(error.what_was_found()));
        assert_eq!(there, Some(here + "coalesce(".len()), "{error}");
    }
}

#[test]
fn expressions_are_bounded() {
    let calls = format!("{}4:1{}", "coalesce(".repeat(10_000), ")".repeat(10_000));
    let error = evaluate(&calls).expect_err("too deep").to_string();
    assert!(error.contains("at position 585") && error.contains("at most 64 nested calls"), "{error}");
    for step in
        ["let a = vals((256,256):(1,256)); ", "let a = append(4:1, 4000); ", "let a = 4:1; let b = coalesce(a); "]
    {
        let error = evaluate(&format!("{}size(4:1)", step.repeat(4000))).expect_err("too much").to_string();
        assert!(error.contains("evaluate: Limit") && error.contains("at position "), "{error}");
    }
    let error = evaluate("coalesce(colesce(4:1))").expect_err("no such operation").to_string();
    assert!(error.contains("`colesce` at position 9") && error.contains("`coalesce`"), "{error}");
}

#[test]
fn the_line_protocol_says_the_same() {
    for (text, class, found) in cases() {
        let mut out = String::new();
        answer(&format!("{{\"op\": \"coalesce\", \"inputs\": [\"{text}\"]}}"), &mut out);
        assert!(out.starts_with(&format!("{{\"error\": {{\"class\": \"{class}\", ")), "{out}");
        assert!(out.contains(&found) && out.lines().count() == 1, "{out}");
    }
}
