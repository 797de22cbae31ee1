//! Functions that libraries have words for: an activation of a sum of scaled inputs.

use super::function::Function;
use super::op::{Binary, Id, Node};

/// An input, perhaps multiplied by a run-time scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The input, by number from 0.
    pub input: usize,
    /// The scalar, by number from 0.
    pub scalar: Option<usize>,
}

/// An activation of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The name of a function of one operand: `relu`.
    pub activation: Option<&'static str>,
    /// From left to right.
    pub sum: Vec<Term>,
}

impl Function {
    /// The function, where it is an activation of a sum of scaled inputs and has one output.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let function: Function = "|a, b; beta| relu(a + beta * b)".parse()?;
    /// let terms = function.terms().expect("an activation of a sum");
    /// assert_eq!((terms.activation, terms.sum.len(), terms.sum[1].scalar), (Some("relu"), 2, Some(0)));
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn terms(&self) -> Option<Terms> {
        let &[output] = self.output_ids() else { return None };
        let (activation, root) = match self.nodes()[output.index()] {
            Node::Unary(unary, [operand]) => (Some(unary.text()), operand),
            _ => (None, output),
        };
        let mut sum = Vec::new();
        self.add_terms(root, &mut sum)?;
        Some(Terms { activation, sum })
    }

    fn add_terms(&self, id: Id, sum: &mut Vec<Term>) -> Option<()> {
        let at = |id: Id| self.nodes()[id.index()];
        let term = |x: Node, scalar: Option<Node>| match (x, scalar) {
            (Node::Input(input), None) => Some(Term { input: input.into(), scalar: None }),
            (Node::Input(input), Some(Node::Scalar(scalar))) => {
                Some(Term { input: input.into(), scalar: Some(scalar.into()) })
            }
            _ => None,
        };
        match at(id) {
            Node::Binary(Binary::Add, [x, y]) => {
                self.add_terms(x, sum)?;
                self.add_terms(y, sum)
            }
            Node::Fma([x, y, z]) => {
                sum.push(term(at(x), Some(at(y))).or_else(|| term(at(y), Some(at(x))))?);
                self.add_terms(z, sum)
            }
            Node::Binary(Binary::Mul, [x, y]) => {
                sum.push(term(at(x), Some(at(y))).or_else(|| term(at(y), Some(at(x))))?);
                Some(())
            }
            node => {
                sum.push(term(node, None)?);
                Some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Option<Terms> {
        text.parse::<Function>().expect("a function").terms()
    }

    fn of<const N: usize>(activation: Option<&'static str>, sum: [(usize, Option<usize>); N]) -> Option<Terms> {
        Some(Terms { activation, sum: sum.map(|(input, scalar)| Term { input, scalar }).into() })
    }

    #[test]
    fn activations_of_sums_are_known() {
        assert_eq!(terms("a"), of(None, [(0, None)]));
        let whole = "|a, b, c; alpha, beta| relu(alpha * a + b * beta + c)";
        assert_eq!(terms(whole), of(Some("relu"), [(0, Some(0)), (1, Some(1)), (2, None)]));
        assert_eq!(terms("|a, b; s| fma(a, s, b)"), of(None, [(0, Some(0)), (1, None)]));
        assert_eq!(terms("gelu(c + a)"), of(Some("gelu"), [(2, None), (0, None)]));
    }

    #[test]
    fn anything_else_is_not_one() {
        for text in ["a * b", "relu(a) + b", "a - b", "a * 2", "relu(relu(a))", "|a; s| a + s", "a, a"] {
            assert_eq!(terms(text), None, "{text}");
        }
    }
}
