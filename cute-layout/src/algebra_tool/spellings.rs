//! Other spellings of expressions: types of CuTe C++, Python calls of CuTe and of other libraries.

/// Calls and types that only put parentheses around their arguments.
const TUPLES: [&str; 8] = ["Shape", "Stride", "Coord", "Tile", "make_shape", "make_stride", "make_coord", "make_tile"];

/// The deepest nesting that is rewritten.
const MOST_NESTED: usize = 64;

/// The text with CuTe's spellings written as here; `None` where it has none of them, or no end.
///
/// `Layout<Shape<_4,_8>,Stride<_1,_4>>{}` is `(4,8):(1,4)`, and so is `make_layout((4,8), (1,4))`.
pub(super) fn rewritten(text: &str) -> Option<String> {
    if !text.is_ascii() {
        return None;
    }
    rewrite(text, 0).filter(|new| new != text)
}

fn rewrite(text: &str, depth: usize) -> Option<String> {
    let part_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (bytes, mut out, mut at) = (text.as_bytes(), String::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        if !part_of_word(byte) {
            out.push(char::from(byte));
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|byte| part_of_word(**byte)).count();
        let word = text.get(at..at + length)?;
        at += length;
        match bytes.get(at) {
            Some(open @ (b'(' | b'<')) if !word.starts_with(|c: char| c.is_ascii_digit()) && depth < MOST_NESTED => {
                let inside = text.get(at + 1..)?;
                let end = closing(inside)?;
                let parts = split(inside.get(..end)?);
                let parts = parts.into_iter().map(|part| rewrite(part.trim(), depth + 1));
                out.push_str(&call(word, *open == b'<', &parts.collect::<Option<Vec<_>>>()?));
                at += end + 2;
            }
            // A compile-time integer.
            _ if word.len() > 1 && word.starts_with('_') => out.push_str(&word[1..]),
            _ => out.push_str(word),
        }
        if text.get(at..).is_some_and(|rest| rest.starts_with("{}")) {
            at += 2;
        }
    }
    Some(out)
}

/// A call or a type of this name, its parts written as here already.
fn call(name: &str, is_type: bool, parts: &[String]) -> String {
    match (name, parts) {
        ("Swizzle", [bits, base, shift]) => format!("Sw<{bits},{base},{shift}>"),
        ("Layout" | "make_layout", [shape, stride]) => format!("{shape}:{stride}"),
        ("Layout", [shape]) => format!("make_layout({shape})"),
        ("Int" | "C" | "constant", parts) if is_type => parts.last().cloned().unwrap_or_default(),
        ("ComposedLayout" | "make_composed_layout", [outer, offset, inner]) => format!("{outer} o {offset} o {inner}"),
        ("ComposedLayout", [outer, inner]) => format!("{outer} o 0 o {inner}"),
        ("compose", parts) => format!("composition({})", parts.join(", ")),
        (name, [one]) if TUPLES.contains(&name) => one.clone(),
        // A tile of layouts is a tiler by mode.
        ("Tile" | "make_tile", parts) if parts.iter().any(|part| part.contains(':')) => {
            format!("[{}]", parts.join(","))
        }
        (name, parts) if TUPLES.contains(&name) => format!("({})", parts.join(",")),
        (name, parts) if is_type => format!("{name}<{}>", parts.join(",")),
        (name, parts) => format!("{name}({})", parts.join(", ")),
    }
}

/// The end of the parenthesis that was opened before the text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' => open += 1,
            b')' | b'>' | b']' if open == 0 => return Some(at),
            b')' | b'>' | b']' => open -= 1,
            _ => {}
        }
    }
    None
}

/// The parts between the commas that are not inside of brackets.
fn split(text: &str) -> Vec<&str> {
    let mut open = 0usize;
    let mut parts = text.split(move |c| {
        match c {
            '(' | '<' | '[' => open += 1,
            ')' | '>' | ']' => open = open.saturating_sub(1),
            _ => {}
        }
        c == ',' && open == 0
    });
    parts.by_ref().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_calls_of_others() {
        for (theirs, ours) in [
            ("Layout<Shape<_4,_8>,Stride<_1,_4>>{}", "(4,8):(1,4)"),
            ("Layout((4, 8), (1, 4))", "(4, 8):(1, 4)"),
            ("Layout((4, 8))", "make_layout((4, 8))"),
            ("make_layout(make_shape(Int<4>{}, M), make_stride(_1{}, 4))", "(4,M):(1,4)"),
            ("compose(Swizzle(3,0,3), Layout((8,8),(8,1)))", "composition(Sw<3,0,3>, (8,8):(8,1))"),
            ("Swizzle<3,0,3>{}", "Sw<3,0,3>"),
            ("composition(L, make_tile(Layout<_3,_4>{}, _8{}))", "composition(L, [3:4,8])"),
            ("ComposedLayout<Swizzle<2,0,3>,_0,Layout<_8,_1>>", "Sw<2,0,3> o 0 o 8:1"),
        ] {
            assert_eq!(rewritten(theirs).as_deref(), Some(ours));
        }
        for same in ["(4,8):(1,4)", "Sw<3,0,3> o 0 o (8,8):(8,1)", "slice((4,8):(1,4), (_,3))", "Layout<(", "é(1,2)"] {
            assert_eq!(rewritten(same), None, "{same}");
        }
    }
}
