//! The steps of programs, and refusals.

use super::*;
use crate::expr::{Compute, Function};

fn passes(text: &str, keep: bool) -> Passes {
    let function: Function = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(function.to_string().parse(), Ok(function.clone()), "{text}");
    let reading = Reading { keep, ..Reading::of(&function) };
    Passes::of(&function, &reading).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// The steps in words.
fn steps(passes: &Passes) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Traverse(Traversal { part, makes }) => {
            let made = |made: &Made| match made {
                Made::Reduced(reduction, along, value) => format!("v{value}:{}{along}", reduction.name()),
                Made::Factor => "times".to_owned(),
                Made::Kept(kept) => format!("k{kept}"),
                Made::Output(output) => format!("out{output}"),
            };
            let made: Vec<String> = makes.iter().map(made).collect();
            format!("{} <- {}", made.join(" "), part.function.function())
        }
        Step::Values(Values { part, makes, level }) => {
            let made: Vec<String> = makes.iter().map(|value| format!("v{value}")).collect();
            format!("{} once for {level} <- {}", made.join(" "), part.function.function())
        }
    };
    passes.steps().iter().map(step).collect()
}

#[test]
fn a_softmax_keeps_its_exponentials() {
    let text = "exp(a - max(a)) / sum(exp(a - max(a)))";
    assert_eq!(
        steps(&passes(text, true)),
        ["v0:max <- a", "v1:sum k0 <- |a, v0| let t0 = exp(a - v0); t0, t0", "out0 <- |k0, v1| k0 / v1"]
    );
    assert_eq!(
        steps(&passes(text, false)),
        ["v0:max <- a", "v1:sum <- |a, v0| exp(a - v0)", "out0 <- |a, v0, v1| exp(a - v0) / v1"]
    );
}

#[test]
fn arithmetic_of_a_row_is_done_once_for_it() {
    let norm = passes("|x, res, w; eps| { let h = x + res; (h, h * rsqrt(mean(h * h) + eps) * w) }", true);
    assert_eq!(
        steps(&norm),
        [
            "v0:sum times <- |x, res| let t0 = x + res; t0, t0",
            "v1 once for a row <- |width, v0; eps| rsqrt(v0 / width + eps)",
            "out0 out1 <- |x, res, w, v1| let t0 = x + res; t0, t0 * v1 * w",
        ]
    );
}

#[test]
fn a_sum_adds_products_unrounded_unless_others_need_them() {
    let of = |text: &str| steps(&passes(text, true));
    assert_eq!(of("|x, y| sum(x * y)")[0], "v0:sum times <- |x, y| x, y");
    assert_eq!(of("|x| sum_group32(x * 3)")[0], "v0:sum_group32 times <- |x| x, 3");
    assert_eq!(of("|x, y| (sum(x), sum_column(x * y))")[0], "v0:sum out1 times <- |x, y| x, x, y");
    assert_eq!(of("|x, y| { let p = x * y; p / sum(p) }")[0], "v0:sum <- |x, y| x * y");
    assert_eq!(of("|x, y| max(x * y)")[0], "v0:max <- |x, y| x * y");
}

#[test]
fn a_reduction_waits_for_a_traversal_that_reads_its_inputs_anyway() {
    let of = |text: &str| steps(&passes(text, true));
    let late = of("|x, y| { let d = x - max(x); d * sum(y) + sum(d * y) }");
    assert_eq!(
        (late[0].as_str(), late[1].as_str()),
        ("v0:max <- |x| x", "v1:sum v2:sum times <- |x, y, v0| y, x - v0, y")
    );
    // Nobody else reads y later, or the first traversal reads it all the same.
    assert_eq!(of("|x, y| { let d = x - max(x); d * sum(y) + sum(d) }")[0], "v0:max v1:sum <- |x, y| x, y");
    assert_eq!(of("|x| { let d = x - max(x); d * sum(x) + sum(d) }")[0], "v0:max v1:sum <- |x| x, x");
    // The second traversal needs the sum.
    assert_eq!(of("|x, y| { let d = x - max(x) * sum(y); d * sum(d * y) }")[0], "v0:max v1:sum <- |x, y| x, y");
}

#[test]
fn reductions_that_do_not_wait_share_a_traversal() {
    let both = passes("(sum(a), max(a) * 2, select(any(a > b), 2, 0), argmax(a))", true);
    assert_eq!(
        steps(&both),
        [
            "v0:sum v1:max v2:any v3:argmax <- a, a, select(a > b, 1, 0), a",
            "v4 v5 once for a row <- |v1, v2| v1 * 2, select(v2 != 0, 2, 0)",
        ]
    );
}

/// Position, finding and help of a refusal.
fn refused(text: &str) -> (Option<usize>, String, String) {
    let error = text.parse::<Function>().expect_err(text);
    assert!(!error.required.is_empty(), "{error}");
    (error.position, error.found, error.help)
}

#[test]
fn reductions_without_a_meaning_are_refused_where_they_stand() {
    for (text, position, found, help) in [
        ("sum(sum(a))", 0, "`sum` of what is one value in a row", "times `width()` it is a sum"),
        ("a + max(2)", 4, "`max` of what is one value in the launch", "use the value as it is"),
        ("|a; s| mean(s * 2)", 7, "`sum` of what is one value in the launch", "times `width()`"),
        (
            "max(max_group128(abs(a)))",
            0,
            "`max` of what is one value in each group",
            "reduce the elements: `max(abs(x))`",
        ),
        ("sum_group100(a)", 0, "`sum_group100`", "`sum_group128`, or `sum` for the whole row"),
        ("sum_group99999999999(a)", 0, "`sum_group4294967295`", "`sum_group128`"),
        ("sum_group(a)", 0, "`sum_group(a)`", ""),
        ("a / width_group4096()", 4, "`width_group4096`", "`width_group128`"),
        ("any(a)", 4, "`a)`", "compare it"),
        ("sum(a > 1)", 4, "`a > 1)`", "select(condition, 1, 0)"),
        ("any(a > 1)", 0, "`any(a > 1)`", "select(condition, 1, 0)"),
        ("smu(a)", 0, "`smu(a)`", "`sum`"),
        ("col(a)", 4, "`a)`", ""),
        ("{ let r = sum(a); a }", 6, "`r = sum(a); a }`", "use `r`, or leave it out"),
        ("let r = a * 2; a * max(a)", 4, "`r = a * 2; a * max(a)`", "use `r`, or leave it out"),
        ("{ let r = a; let r = a * r; r }", 17, "`r = a * r; r }`", "`r` is a part already"),
        ("{ let e = a; e }", 6, "`e = a; e }`", "`e` is an input where none is declared in front: |x| .."),
        ("|x| { let x = 2; x }", 10, "`x = 2; x }`", "`x` is an input"),
        ("{ a, b", 6, "the end of the text", ""),
        ("{ a } + 1", 6, "`+ 1`", ""),
        ("(a, b) + 1", 7, "`+ 1`", ""),
        ("(a, b", 5, "the end of the text", ""),
    ] {
        let (at, what, helps) = refused(text);
        assert_eq!((at, what.as_str()), (Some(position), found), "{text}");
        assert!(helps.contains(help) && (!help.is_empty() || helps.is_empty()), "{text}: {helps}");
    }
}

#[test]
fn what_was_a_text_stays_one() {
    // Parts may be called as reductions are, and parts of texts of elements may be forgotten.
    for (text, same) in [
        ("let sum = a + b; sum * 2", "(a + b) * 2"),
        ("let mean = a; let t = b; mean", "|a, b| a"),
        ("|width, col| width + col", "a + b"),
        ("(a), (b)", "(a, b)"),
        ("max(a, b)", "{ max(a, b) }"),
        ("(a, max(a, b),)", "a, max(a, b)"),
    ] {
        assert_eq!(text.parse::<Function>(), same.parse::<Function>(), "{text}");
    }
}

#[test]
fn kernels_of_elements_refuse_rows() {
    for (text, found) in [
        ("a - max(a)", "the reduction `max` along a row"),
        ("max_group8(a)", "the reduction `max_group8` along a row"),
        ("a * col()", "`col()`, an element's place in its row"),
        ("a / width()", "`width()`, the extent of a row"),
    ] {
        let function: Function = text.parse().expect("a row program");
        let errors = function.check(Compute::F32).expect_err(text);
        assert_eq!(errors.iter().map(|e| e.found.as_str()).collect::<Vec<_>>(), [found]);
        assert!(errors[0].help.contains("`rows`"), "{:?}", errors[0]);
    }
}

fn unfit(text: &str, change: impl FnOnce(&mut Reading)) -> String {
    let function: Function = text.parse().expect("a row program");
    let mut reading = Reading::of(&function);
    change(&mut reading);
    let errors = Passes::of(&function, &reading).expect_err(text);
    errors.into_iter().map(|error| error.found).collect::<Vec<_>>().join("; ")
}

#[test]
fn readings_fit_the_function() {
    assert_eq!(unfit("a * sum(b)", |r| r.inputs[1] = Level::Row), "`sum` of what is one value in a row");
    assert_eq!(unfit("a * b", |r| r.inputs[1] = Level::Group(3)), "`operand_group3`");
    assert_eq!(
        unfit("a, sum(a)", |r| r.outputs[0] = Some(Level::Row)),
        "output 0 for a row, with a value for an element"
    );
    assert_eq!(unfit("sum(a)", |r| r.inputs.clear()), "0 inputs");
    assert_eq!(unfit("sum(a)", |r| r.compute = Compute::I32), "a row program in i32");
    assert_eq!(unfit("sum(a * 1e300)", |_| {}), "the constant 1e300 in f32");
    // Closures are looked at here.
    let twice = Function::unary(|x| x.row().sum().row().max() + x.group(7).sum());
    assert_eq!(Passes::of(&twice, &Reading::of(&twice)).expect_err("twice").len(), 2);
}

#[test]
fn inputs_of_rows_make_values_of_rows() {
    let text = "|x, t| { let m = max(x); let l = log(sum(exp(x - m))) + m; select(t < 0, 0, l - sum(select(col() == t, x, 0))) }";
    let function: Function = text.parse().expect("a row program");
    let reading = Reading { inputs: vec![Level::Element, Level::Row], ..Reading::of(&function) };
    let loss = Passes::of(&function, &reading).expect("a loss for each row");
    assert_eq!(
        steps(&loss),
        [
            "v0:max v1:sum <- |x, t, col| x, select(col == t, x, 0)",
            "v2:sum <- |x, v0| exp(x - v0)",
            "v3 once for a row <- |t, v0, v1, v2| select(t < 0, 0, log(v2) + v0 - v1)",
        ]
    );
    assert_eq!(loss.outputs(), [Output { level: Level::Row, from: Origin::Value(3) }]);
}

#[test]
fn groups_of_two_sizes_nest() {
    let scaled =
        passes("{ let s = max_group128(abs(a)); let t = max_group32(abs(a)) / s; (a / t / max(a), t, s) }", true);
    assert_eq!(
        steps(&scaled),
        [
            "v0:max_group32 v1:max_group128 v2:max <- let t0 = abs(a); t0, t0, a",
            "v3 once for a group of 32 <- |v0, v1| v0 / v1",
            "out0 <- |a, v2, v3| a / v3 / v2",
        ]
    );
    let levels: Vec<Level> = scaled.outputs().iter().map(|output| output.level).collect();
    assert_eq!(levels, [Level::Element, Level::Group(32), Level::Group(128)]);
}

#[test]
fn programs_of_any_depth_are_read() {
    let deep = Function::unary(|x| (0..20_000).fold(x, |y, _| y.exp() + 1));
    let deeper = Function::unary(|x| (0..100).fold(x, |y, _| x - y.row().max()));
    assert_eq!(Passes::of(&deep, &Reading::of(&deep)).expect("one traversal").steps().len(), 1);
    assert_eq!(Passes::of(&deeper, &Reading::of(&deeper)).expect("100 reductions").traversals().count(), 101);
    let wide = Function::unary(|x| (0..300).fold(x, |y, i| y + (x * i).row().max()));
    let errors = Passes::of(&wide, &Reading::of(&wide)).expect_err("too much for registers");
    assert_eq!(errors[0].found, "a traversal that reads 301 inputs and values");
}

fn online(text: &str) -> Passes {
    let function: Function = text.parse().expect("a row program");
    Passes::online(&function, &Reading::of(&function)).expect("it is one")
}

#[test]
fn pairs_are_found_and_share_a_traversal() {
    let softmax = online("|a| { let e = exp(a * 2 - max(a * 2)); e / sum(e) }");
    assert_eq!(steps(&softmax), ["v0:max <- a * 2", "out0 <- |a, v0, v1| exp(a * 2 - v0) / v1"]);
    assert_eq!(softmax.pairs(), [Pair { online: Online::Exp, first: 0, second: 1 }]);

    let norm = online("|x; eps| { let d = x - mean(x); d * rsqrt(mean(d * d) + eps) }");
    assert_eq!(
        steps(&norm),
        [
            "v0:sum <- |x| x",
            "v2 v3 once for a row <- |width, v0, v1; eps| v0 / width, rsqrt(v1 / width + eps)",
            "out0 <- |x, v2, v3| (x - v2) * v3",
        ]
    );
    assert_eq!(norm.pairs(), [Pair { online: Online::Squares, first: 0, second: 1 }]);
    // A variance alone needs no mean as a value. Groups have pairs too.
    let variance = online("|a| { let d = a - mean_group64(a); sum_group64(d * d) / 64 }");
    assert_eq!(steps(&variance), ["v0:sum_group64 <- a", "v2 once for a group of 64 <- |v1| v1 / 64"]);
}

#[test]
fn what_is_no_pair_stays_in_its_traversal() {
    for text in [
        "sum(exp(a - max(b)))",
        "sum(exp(a - max_group8(a)))",
        "sum_group8(exp(a - max(a)))",
        "sum(exp(max(a) - a))",
        "sum((a - sum(a)) * (a - sum(a)))",
        "max(exp(a - max(a)))",
        "sum(exp(a - min(a)))",
    ] {
        assert_eq!(online(text).traversals().count(), 2, "{text}");
        assert_eq!(online(text).pairs(), [], "{text}");
    }
    // The first of two that want the same maximum.
    let both = online("sum(exp(a - max(a))) + sum(exp2(a - max(a)))");
    assert_eq!((both.traversals().count(), both.pairs().len()), (2, 1));
}
