//! Layouts of operands, as declarations write them: `(?,1)`, `(rows,64):(?,1)`.

use crate::plan::ModeStride;
use crate::view::MAX_RANK;

/// One extent or stride of a declared layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `?`: any, known at launch.
    Any,
    /// A number.
    Fixed(i64),
    /// A name or an expression.
    Is(String),
}

/// A declared layout: an extent and a stride for each mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) extents: Vec<Part>,
    pub(super) strides: Vec<Part>,
}

impl Declared {
    /// Reads strides, or a shape, `:` and strides; `Err` says what is wrong.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (shape, stride) = match at_top(text, ':')[..] {
            [stride] => (None, stride),
            [shape, stride] => (Some(shape), stride),
            _ => return Err(format!("`{text}` has more than one `:`")),
        };
        let strides = modes(stride)?;
        let extents = match shape {
            Some(shape) => modes(shape)?,
            None => vec![Part::Any; strides.len()],
        };
        if extents.len() != strides.len() {
            return Err(format!("`{text}` has {} extents and {} strides", extents.len(), strides.len()));
        }
        if !(1..=MAX_RANK).contains(&strides.len()) {
            return Err(format!("`{text}` has {} modes; a tensor has 1 to {MAX_RANK}", strides.len()));
        }
        Ok(Self { extents, strides })
    }

    /// Whether the last mode has two neighbours.
    pub(super) fn is_of_pairs(&self) -> bool {
        self.extents.last() == Some(&Part::Fixed(2)) && self.strides.last() == Some(&Part::Fixed(1))
    }

    /// The strides that views are checked by; others than 0 and 1 are demands of their own.
    pub(super) fn mode_strides(&self) -> Vec<ModeStride> {
        let of = |part: &Part| match part {
            Part::Fixed(0) => ModeStride::Broadcast,
            Part::Fixed(1) => ModeStride::Unit,
            _ => ModeStride::Dynamic,
        };
        self.strides.iter().map(of).collect()
    }
}

/// The pieces of a text between signs outside of parentheses.
fn at_top(text: &str, sign: char) -> Vec<&str> {
    let (mut depth, mut start, mut pieces) = (0_i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if letter == sign && depth == 0 => {
                pieces.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// `(a,b)`, or one mode without parentheses.
fn modes(text: &str) -> Result<Vec<Part>, String> {
    let text = text.trim();
    let inside = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    // `(a)*(b)` is one expression.
    let inside = inside.filter(|inside| balanced(inside)).unwrap_or(text);
    let part = |piece: &&str| {
        let piece = piece.trim();
        match (piece, piece.parse()) {
            ("", _) => Err(format!("`{text}` has an empty mode")),
            ("?", _) => Ok(Part::Any),
            (_, Ok(number)) if number < 0 => Err(format!("`{piece}` is negative: views run forwards")),
            (_, Ok(number)) => Ok(Part::Fixed(number)),
            (_, Err(_)) => Ok(Part::Is(piece.to_owned())),
        }
    };
    at_top(inside, ',').iter().map(part).collect()
}

fn balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    for letter in text.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_and_others_refused() {
        let read = |text| Declared::read(text).map(|d| (d.extents, d.strides));
        let is = |name: &str| Part::Is(name.to_owned());
        assert_eq!(read("(?,1)"), Ok((vec![Part::Any; 2], vec![Part::Any, Part::Fixed(1)])));
        assert_eq!(read("1"), Ok((vec![Part::Any], vec![Part::Fixed(1)])));
        assert_eq!(
            read("(rows, 2*half):(max(a,b),1)"),
            Ok((vec![is("rows"), is("2*half")], vec![is("max(a,b)"), Part::Fixed(1)]))
        );
        assert_eq!(read("n:1"), Ok((vec![is("n")], vec![Part::Fixed(1)])));
        assert_eq!(read("(64):(1)"), Ok((vec![Part::Fixed(64)], vec![Part::Fixed(1)])));
        let refused = ["", "(,1)", "(a,b):(1)", "a:b:c", "(-1)", "(?,?,?,?,?,?)"];
        let told: Vec<String> = refused.map(|text| Declared::read(text).expect_err(text)).to_vec();
        expect_test::expect![[r#"
            `` has an empty mode
            `(,1)` has an empty mode
            `(a,b):(1)` has 2 extents and 1 strides
            `a:b:c` has more than one `:`
            `-1` is negative: views run forwards
            `(?,?,?,?,?,?)` has 6 modes; a tensor has 1 to 5"#]]
        .assert_eq(&told.join("\n"));
    }
}
