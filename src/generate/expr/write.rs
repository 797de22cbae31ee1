//! Writing the operations as an expression: what text and C++ have in common, which is precedence and named parts.

use std::collections::BTreeMap;

use super::function::Function;
use super::op::{Id, Node};

/// How tightly an expression holds together; where two meet, the looser one is put into parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// `c ? x : y`, in C++ only.
    Choice,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Prefix,
    Atom,
}

/// A piece of text, and how it holds together.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) precedence: Precedence,
}

impl Piece {
    pub(super) fn atom(text: impl Into<String>) -> Piece {
        Piece { text: text.into(), precedence: Precedence::Atom }
    }

    pub(super) fn call(name: &str, arguments: &[Piece]) -> Piece {
        let arguments: Vec<&str> = arguments.iter().map(|piece| piece.text.as_str()).collect();
        Piece::atom(format!("{name}({})", arguments.join(", ")))
    }

    pub(super) fn prefix(operator: &str, operand: &Piece) -> Piece {
        // Two signs in a row would be another operator in C++.
        let least = if operand.text.starts_with(operator) { Precedence::Atom } else { Precedence::Prefix };
        let text = format!("{operator}{}", operand.at_least(least));
        Piece { text, precedence: Precedence::Prefix }
    }

    /// A binary operator that groups from the left.
    pub(super) fn infix(operator: &str, precedence: Precedence, left: &Piece, right: &Piece) -> Piece {
        let tighter = match precedence {
            Precedence::Or => Precedence::And,
            Precedence::And | Precedence::Comparison => Precedence::Sum,
            Precedence::Sum => Precedence::Product,
            _ => Precedence::Prefix,
        };
        // Comparisons do not group at all, and `&&` is put between comparisons.
        let left_least = if precedence == Precedence::Comparison { tighter } else { precedence };
        let right_least = if precedence == Precedence::And { Precedence::Comparison } else { tighter };
        let text = format!("{} {operator} {}", left.at_least(left_least), right.at_least(right_least));
        Piece { text, precedence }
    }

    /// `condition ? yes : no`.
    pub(super) fn choice(condition: &Piece, yes: &Piece, no: &Piece) -> Piece {
        let condition = condition.at_least(Precedence::Or);
        let (yes, no) = (yes.at_least(Precedence::Or), no.at_least(Precedence::Or));
        Piece { text: format!("{condition} ? {yes} : {no}"), precedence: Precedence::Choice }
    }

    pub(super) fn at_least(&self, least: Precedence) -> String {
        if self.precedence < least { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// How one operation looks, its operands being written already.
pub(super) trait Style {
    /// Characters of a piece; a longer one is cut off as a named part.
    const WIDEST: usize = usize::MAX;

    fn piece(&mut self, node: &Node, operands: &[Piece]) -> Piece;

    /// Whether an input or a scalar is called so.
    fn is_taken(&self, _name: &str) -> bool {
        false
    }
}

/// A function's body: named parts in order, then the outputs.
pub(super) struct Body {
    /// Name and expression.
    pub(super) parts: Vec<(String, String)>,
    pub(super) outputs: Vec<Piece>,
}

/// Expressions deeper than this are cut into named parts.
const MAX_HEIGHT: u32 = 16;

/// Writes a function. A value that is used more than once gets a name, and so does one that would nest too deeply or
/// make a line too long.
pub(super) fn body<S: Style>(function: &Function, style: &mut S) -> Body {
    let mut uses = vec![0u32; function.nodes().len()];
    let operands = function.nodes().iter().flat_map(Node::operands);
    for id in operands.chain(function.output_ids()) {
        uses[id.index()] += 1;
    }
    // Pieces that are waiting for their one use, or for several if they are short.
    let mut pieces: BTreeMap<Id, (Piece, u32)> = BTreeMap::new();
    let (mut parts, mut number) = (Vec::new(), 0);
    for (node, (index, uses)) in function.nodes().iter().zip((0u32..).zip(uses)) {
        let mut height = 0;
        let operands: Vec<Piece> = node
            .operands()
            .iter()
            .filter_map(|id| pieces.get(id))
            .map(|(piece, below)| {
                height = height.max(below + 1);
                piece.clone()
            })
            .collect();
        let mut piece = style.piece(node, &operands);
        let is_long = piece.text.len() > S::WIDEST && !function.output_ids().contains(&Id(index));
        if !node.is_leaf() && (uses > 1 || height >= MAX_HEIGHT || is_long) {
            while style.is_taken(&format!("t{number}")) {
                number += 1;
            }
            let name = format!("t{number}");
            number += 1;
            parts.push((name.clone(), piece.text));
            piece = Piece::atom(name);
            height = 0;
        }
        pieces.insert(Id(index), (piece, height));
    }
    let outputs = function.output_ids().iter().filter_map(|id| pieces.get(id)).map(|(piece, _)| piece.clone());
    Body { parts, outputs: outputs.collect() }
}
