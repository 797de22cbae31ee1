//! Expressions of integers as C++.

use crate::plan::{Int, IntOp};

/// An expression of integers, with the names of its values.
pub(crate) fn cxx(of: &Int, names: &[String]) -> String {
    within(of, names, 0)
}

/// In parentheses where it binds less than `least`, as the operators of C++ do.
pub(super) fn within(of: &Int, names: &[String], least: u8) -> String {
    let (binds, text) = match of {
        Int::Const(value) => (9, value.to_string()),
        Int::Value(index) => (9, names[*index].clone()),
        Int::Select(parts) => {
            let [condition, yes, no] = parts.each_ref();
            (0, format!("{} ? {} : {}", within(condition, names, 1), within(yes, names, 1), within(no, names, 0)))
        }
        Int::Binary(op, sides) => {
            let side = |index: usize, least| within(&sides[index], names, least);
            let sign = match op {
                IntOp::CeilDiv => return format!("ceil_div({}, {})", side(0, 0), side(1, 0)),
                IntOp::Min => return format!("cute::min({}, {})", side(0, 0), side(1, 0)),
                IntOp::Max => return format!("cute::max({}, {})", side(0, 0), side(1, 0)),
                IntOp::Or => "||",
                IntOp::And => "&&",
                IntOp::Equal => "==",
                IntOp::Less => "<",
                IntOp::AtMost => "<=",
                IntOp::Add => "+",
                IntOp::Sub => "-",
                IntOp::Mul => "*",
                IntOp::Div => "/",
                IntOp::Rem => "%",
            };
            let binds = match op {
                IntOp::Or | IntOp::And => 1,
                IntOp::Equal | IntOp::Less | IntOp::AtMost => 2,
                IntOp::Add | IntOp::Sub => 3,
                _ => 4,
            };
            // From left to right; `&&` beside `||`, and a comparison of comparisons, are in parentheses for readers.
            let goes_on = binds > 2 || binds == 1 && matches!(&sides[0], Int::Binary(left, _) if left == op);
            (binds, format!("{} {sign} {}", side(0, if goes_on { binds } else { binds + 1 }), side(1, binds + 1)))
        }
    };
    if binds < least { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_parentheses_that_they_need() {
        let names = ["a", "b"].map(str::to_owned);
        let [a, b] = [Int::Value(0), Int::Value(1)];
        let text = |of: Int| cxx(&of, &names);
        assert_eq!(text((a.clone() + b.clone()) * 2 - b.clone()), "(a + b) * 2 - b");
        assert_eq!(text(a.clone() - (b.clone() - 1)), "a - (b - 1)");
        assert_eq!(text(a.clone() * b.clone() % 8), "a * b % 8");
        assert_eq!(text(a.clone() / (b.clone() * 4)), "a / (b * 4)");
        assert_eq!(text(a.clone().is(b.clone()).is(0)), "(a == b) == 0");
        let aligned = a.clone().divides_by(16).and(b.clone().at_most(1).op(IntOp::Or, b.clone().divides_by(4)));
        assert_eq!(text(aligned.clone()), "a % 16 == 0 && (b <= 1 || b % 4 == 0)");
        assert_eq!(
            text(a.clone().ceil_div(aligned.select(b.clone() + 1, 2)) + b),
            "ceil_div(a, a % 16 == 0 && (b <= 1 || b % 4 == 0) ? b + 1 : 2) + b"
        );
    }
}
