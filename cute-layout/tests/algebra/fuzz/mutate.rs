//! Mutations of text: of its bytes, and of the tuples, calls and numbers that it is made of.

use super::grammar::Grammar;
use crate::random::Random;
use cute_layout::algebra_tool::Op;

const TOKENS: &[&str] = &[
    "(",
    ")",
    ",",
    ":",
    "_",
    "[",
    "]",
    "<",
    ">",
    " o ",
    "@",
    ";",
    "=",
    "let a = ",
    "a",
    "{div=",
    "}",
    "0",
    "1",
    "2",
    "3",
    "4",
    "6",
    "8",
    "16",
    "-1",
    "-3",
    "-",
    "1@0",
    "2@0@1",
    "Sw<2,0,3>",
    "Sw<1,3,-2>",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "M",
    "4*N{div=8}",
    "(4,8):(1,4)",
    "((2,2),4):((1,8),2)",
    "(1,1)",
    "0b11",
    "static coord",
    "é",
    "\u{0}",
    "\u{2028}",
    "\"",
    "\\",
    "\n",
    "\t",
];

/// The longest text that grows further.
const LONG: usize = 600;

/// One change of the bytes, at character boundaries.
pub(crate) fn bytes(text: &mut String, random: &mut Random) {
    let boundaries: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
    let (i, j) = (random.below(boundaries.len()), random.below(boundaries.len()));
    let (from, to) = (boundaries[i.min(j)], boundaries[i.max(j)]);
    let near = boundaries[(i.min(j) + 1 + random.below(4)).min(boundaries.len() - 1)];
    match random.below(6) {
        0 | 1 => text.insert_str(from, random.pick(TOKENS)),
        2 => text.replace_range(from..near, ""),
        3 => text.replace_range(from..near, random.pick(TOKENS)),
        4 if text.len() < LONG => {
            let again = text[from..to].to_owned();
            text.insert_str(from, &again);
        }
        _ => text.truncate(to),
    }
}

/// The spans of all groups in brackets, numbers, and calls (with their names), each whole.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => open.push(at),
            b')' | b']' => {
                if let Some(start) = open.pop() {
                    found.push((start, at + 1));
                    let name = bytes[..start].iter().rposition(|byte| !word(*byte)).map_or(0, |before| before + 1);
                    if name < start {
                        found.push((name, at + 1));
                    }
                }
            }
            byte if byte.is_ascii_digit() => {
                let end = bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |n| at + n);
                found.push((at, end));
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// One change of the structure: a part is replaced, moved, repeated, dropped, nested or called.
pub(crate) fn structure(text: &mut String, other: &str, ops: &[&Op], grammar: &mut Grammar, random: &mut Random) {
    let parts = spans(text);
    if parts.is_empty() {
        *text = grammar.any(random);
        return;
    }
    let (from, to) = parts[random.below(parts.len())];
    let part = text[from..to].to_owned();
    match random.below(12) {
        0 => text.replace_range(from..to, &grammar.any(random)),
        1 => text.replace_range(from..to, &grammar.shape(random)),
        2 => text.replace_range(from..to, &grammar.tiler(random, 2)),
        3 | 4 => text.replace_range(from..to, &grammar.integer(random)),
        5 => {
            let others = spans(other);
            if !others.is_empty() {
                let (begin, end) = others[random.below(others.len())];
                text.replace_range(from..to, &other[begin..end]);
            }
        }
        6 => {
            let (begin, end) = parts[random.below(parts.len())];
            let second = text[begin..end].to_owned();
            // The later one first, so that the positions of the earlier one hold.
            let mut both = [(from, to, second), (begin, end, part)];
            both.sort_by_key(|(begin, _, _)| std::cmp::Reverse(*begin));
            if both[1].1 <= both[0].0 {
                for (begin, end, new) in &both {
                    text.replace_range(*begin..*end, new);
                }
            }
        }
        7 => {
            let comma = usize::from(text[to..].starts_with(','));
            text.replace_range(from..to + comma, "");
        }
        8 if text.len() < LONG => text.insert_str(to, &format!(",{part}")),
        9 => {
            let levels = if random.once_in(20) { random.below(80) } else { 1 };
            text.replace_range(from..to, &format!("{}{part}{}", "(".repeat(levels), ")".repeat(levels)));
        }
        10 => {
            // Another operation on the same arguments.
            if let Some(open) = text.find('(') {
                let name = text[..open]
                    .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
                text.replace_range(name..open, random.pick(ops).name);
            }
        }
        _ if text.len() < LONG => *text = format!("{}({text}, {other})", random.pick(ops).name),
        _ => text.replace_range(from..to, "_"),
    }
}
