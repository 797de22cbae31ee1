//! What steps programs have.

use super::*;
use crate::expr::Function;

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
            "v0:sum <- |x, res| let t0 = x + res; t0 * t0",
            "v1 once for a row <- |width, v0; eps| rsqrt(v0 / width + eps)",
            "out0 out1 <- |x, res, w, v1| let t0 = x + res; t0, t0 * v1 * w",
        ]
    );
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
