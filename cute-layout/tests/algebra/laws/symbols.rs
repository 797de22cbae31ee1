//! Contract: an answer with symbols is the answer with numbers, at every coordinate, whatever numbers the symbols stand for.
//!
//! Requests are drawn for every operation of the line protocol, as text with names, products of names, `{div=N}` and
//! `ceil_div`, in shapes, strides, tilers and arguments. Numbers are put in the place of the names in the text of the
//! request and in the text of the answer, by a reader of this file's own, and the two answers are compared.
//! `CUTE_LAYOUT_SYMBOL_REQUESTS` sets how many requests are answered or refused, `CUTE_LAYOUT_SYMBOL_SEED` another seed;
//! `CUTE_LAYOUT_SYMBOL_REFUSALS` names a file that the refusals are written to.
//!
//! Two answers are the same if
//! * numbers, truth values, shapes and coordinates: the texts are;
//! * layouts: they have the same size and the same value at every index; and the same rank, with modes of the same sizes,
//!   where the operation does not choose the modes itself, as `coalesce` does, and `tiled_divide` and `flat_divide` do for
//!   the rests. A mode of extent 1 may have any stride, and modes that merge for these numbers only may stand apart.

mod draw;

use std::collections::{BTreeMap, BTreeSet};

use cute_layout::algebra_tool::{Op, Value, apply, ops};
use cute_layout::layout::{AnyLayout, Class, IntTuple, Layout, Tiler, local_tile, outer_partition};

use self::draw::Draw;
use crate::random::Random;
use crate::variables;

/// How many indices of a large layout are compared.
const MOST_COMPARED: i64 = 1500;

/// What each name stands for, and what divides it.
type Names = BTreeMap<&'static str, i64>;

const NAMES: [&str; 4] = ["M", "N", "K", "L"];

/// The operations that choose the modes of their result.
const OWN_MODES: &[&str] = &[
    "coalesce",
    "filter",
    "complement",
    "right_inverse",
    "left_inverse",
    "nullspace",
    "max_common_layout",
    "domain_distribute",
    "composition",
    "tiled_divide",
    "flat_divide",
    "tiled_product",
    "flat_product",
];

/// Reads a text with names and writes it with numbers: shares no code with the library.
struct Substitute<'a> {
    text: &'a [u8],
    at: usize,
    names: &'a Names,
}

impl Substitute<'_> {
    fn word(&mut self) -> String {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn number(&mut self) -> i64 {
        self.word().parse().expect("a number")
    }

    fn here(&self, byte: u8) -> bool {
        self.text.get(self.at) == Some(&byte)
    }

    /// A product of numbers, names and `ceil_div`.
    fn product(&mut self) -> i64 {
        let mut value = 1;
        loop {
            value *= self.factor();
            if !self.here(b'*') {
                return value;
            }
            self.at += 1;
        }
    }

    fn factor(&mut self) -> i64 {
        if self.text[self.at].is_ascii_digit() {
            return self.number();
        }
        let name = self.word();
        if name == "ceil_div" {
            self.at += 1;
            let inner = self.product();
            self.at += 1;
            let by = self.product();
            self.at += 1;
            return (inner + by - 1) / by;
        }
        let value = *self.names.get(name.as_str()).unwrap_or_else(|| panic!("a name that was not drawn: {name}"));
        if self.here(b'{') {
            self.at += "{div=".len();
            let by = self.number();
            assert_eq!(value % by, 0, "{name} is {value}");
            self.at += 1;
        }
        value
    }

    fn all(mut self) -> String {
        let mut out = String::new();
        while let Some(byte) = self.text.get(self.at).copied() {
            let rest = &self.text[self.at..];
            let word = rest.starts_with(b"Sw<") || rest.starts_with(b"o ") || rest.starts_with(b"0b");
            let verbatim = ["static coord", "dynamic coord"].iter().find(|w| rest.starts_with(w.as_bytes()));
            if let Some(verbatim) = verbatim {
                out.push_str(verbatim);
                self.at += verbatim.len();
            } else if word {
                out.push_str(&String::from_utf8_lossy(&rest[..2]));
                self.at += 2;
            } else if byte.is_ascii_alphanumeric() {
                out.push_str(&self.product().to_string());
            } else {
                out.push(char::from(byte));
                self.at += 1;
            }
        }
        out
    }
}

fn substituted(text: &str, names: &Names) -> String {
    Substitute { text: text.as_bytes(), at: 0, names }.all()
}

fn layout_of(text: &str) -> Option<AnyLayout> {
    match text.parse::<Value>().ok()? {
        Value::Layout(layout) => Some(layout),
        _ => None,
    }
}

/// Where two texts are not the same answer.
fn difference(op: &str, ours: &str, numeric: &str) -> Option<String> {
    if ours == numeric {
        return None;
    }
    let parts = |text: &str| text.split(';').map(str::to_owned).collect::<Vec<_>>();
    let (ours, numeric) = (parts(ours), parts(numeric));
    if ours.len() != numeric.len() {
        return Some(format!("{} parts and {}", ours.len(), numeric.len()));
    }
    ours.iter().zip(&numeric).filter(|(x, y)| x != y).find_map(|(x, y)| match (layout_of(x), layout_of(y)) {
        (Some(a), Some(b)) => layouts_differ(op, &a, &b),
        _ => Some(format!("{x}, not {y}")),
    })
}

fn layouts_differ(op: &str, a: &AnyLayout, b: &AnyLayout) -> Option<String> {
    let (Ok(x), Ok(y)) = (a.domain(), b.domain()) else {
        return Some(format!("{a}, not {b}"));
    };
    let sizes = |layout: &Layout| layout.modes().map(|mode| mode.size()).collect::<Vec<_>>();
    if x.size() != y.size() || (!OWN_MODES.contains(&op) && sizes(x) != sizes(y)) {
        return Some(format!("{a}, not {b}: the sizes differ"));
    }
    let (flat_a, flat_b) = (without_ones(x), without_ones(y));
    let at = |layout: &AnyLayout, flat: &Layout, i: i64| match layout {
        AnyLayout::Plain(_) => flat.crd2idx(&IntTuple::int(i)).map(|value| value.to_string()),
        other => other.at(i).map(|value| value.to_string()),
    };
    let size = x.size();
    let stride = (size / MOST_COMPARED).max(1);
    let mut i = 0;
    while i < size {
        match (at(a, &flat_a, i), at(b, &flat_b, i)) {
            (Ok(x), Ok(y)) if x == y || one_place(&x, &y) => {}
            // Strides of several kinds have no values, and behind a swizzle basis strides have none.
            (Err(_), _) if x.stride().ints().is_none() => {}
            (x, y) => return Some(format!("{a}, not {b}: at {i} {x:?} and {y:?}")),
        }
        // Neighbours too, where not every index is looked at.
        i += if stride > 1 && i % 2 == 0 && i > 0 { 2 * stride - 1 } else { 1.max(if i < 64 { 1 } else { stride }) };
    }
    None
}

/// The same function of an index, flat, without the strides of modes of extent 1.
fn without_ones(layout: &Layout) -> Layout {
    let extents: Vec<String> = layout.shape().leaves().map(|leaf| leaf.to_string()).collect();
    let strides: Vec<String> = extents
        .iter()
        .zip(layout.stride().leaves())
        .map(|(extent, stride)| if extent == "1" { "0".to_owned() } else { stride.to_string() })
        .collect();
    format!("({}):({})", extents.join(","), strides.join(",")).parse().expect("a flat layout")
}

/// Values of basis strides may leave out trailing places that are 0.
fn one_place(x: &str, y: &str) -> bool {
    let trimmed = |text: &str| text.trim_start_matches('(').trim_end_matches(')').trim_end_matches(",0").to_owned();
    x.contains(',') && trimmed(x) == trimmed(y)
}

fn values(inputs: &[String]) -> Option<Vec<Value>> {
    inputs.iter().map(|input| input.parse().ok()).collect()
}

/// Numbers for the names: all as small as they can be, then some of each kind.
fn assignments(divisors: &[i64; 4], random: &mut Random) -> Vec<Names> {
    let mut all = Vec::new();
    for kind in 0..6 {
        let times = |random: &mut Random| match kind {
            0 => 1,
            1 => random.number(&[2, 3, 5, 7]),
            2 => random.number(&[1, 2, 4, 8, 16]),
            3 => random.number(&[1, 6, 12, 24]),
            4 => random.number(&[1, 1, 13, 8]),
            _ => 1 + random.below(20) as i64,
        };
        all.push(NAMES.iter().zip(divisors).map(|(name, by)| (*name, by * times(random))).collect());
    }
    all
}

/// What is wrong with the answer to a request, or nothing; `None` where the request is not one, or is refused.
fn judge(op: &str, inputs: &[String], answer: &str, all: &[Names]) -> Result<(), String> {
    for names in all {
        let numbers: Vec<String> = inputs.iter().map(|input| substituted(input, names)).collect();
        let ours = substituted(answer, names);
        let Some(arguments) = values(&numbers) else {
            return Err(format!("{numbers:?} is not a request"));
        };
        let found = match apply(op, &arguments) {
            Ok(value) => difference(op, &ours, &value.to_string()),
            Err(error) if matches!(error.class(), Class::Overflow | Class::Limit) => None,
            Err(error) => Some(format!("{ours}, and the numeric request is refused: {error}")),
        };
        if let Some(found) = found {
            return Err(format!("{op}{inputs:?} = {answer}\n  at {names:?}: {op}{numbers:?}: {found}"));
        }
    }
    Ok(())
}

fn variable(name: &str, otherwise: u64) -> u64 {
    variables::number(name).unwrap_or(otherwise)
}

#[test]
fn answers_with_symbols_are_the_answers_with_numbers() {
    let wanted = variable("CUTE_LAYOUT_SYMBOL_REQUESTS", 8_000);
    let seed = variable("CUTE_LAYOUT_SYMBOL_SEED", 1);
    let mut draw = Draw { random: Random::new(seed), divisors: [1; 4], last: vec![vec!["4".to_owned()]] };
    let all: Vec<&Op> = ops().collect();
    let mut counts: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let (mut drawn, mut answered, mut wrong) = (0u64, 0u64, Vec::new());
    let mut refusals = String::new();
    while drawn < wanted {
        let op = all[draw.random.below(all.len())];
        let inputs = draw.request(op);
        let symbols = inputs.iter().any(|i| NAMES.iter().any(|name| i.contains(name)));
        // A swizzle or a mask has no symbols: such requests are counted as they are.
        let plain = matches!(op.name, "make_swizzle" | "swizzle_vals") && draw.random.once_in(40);
        let Some(arguments) = values(&inputs) else { continue };
        if !symbols && !plain {
            continue;
        }
        let divisors = draw.divisors;
        let numbers = assignments(&divisors, &mut draw.random);
        // A request that is none for numbers says nothing of symbols.
        let possible = numbers.iter().any(|names| {
            let numbers: Vec<String> = inputs.iter().map(|input| substituted(input, names)).collect();
            values(&numbers).is_some_and(|arguments| apply(op.name, &arguments).is_ok())
        });
        let count = counts.entry(op.name).or_default();
        match apply(op.name, &arguments) {
            Ok(value) => {
                drawn += 1;
                answered += 1;
                count.0 += 1;
                if let Err(found) = judge(op.name, &inputs, &value.to_string(), &numbers) {
                    count.2 += 1;
                    wrong.push(found);
                }
            }
            Err(error) if possible => {
                drawn += 1;
                count.1 += 1;
                let complete = !error.what_was_found().is_empty() && !error.what_is_required().is_empty();
                assert!(complete, "{}{inputs:?} is refused without a reason: {error}", op.name);
                refusals.push_str(&format!("{}{inputs:?}: {}\n", op.name, error.to_string().replace('\n', " ")));
            }
            Err(_) => {}
        }
    }
    for (name, (right, refused, wrong)) in &counts {
        println!("{name:<30} {right:>7} answered {refused:>7} refused {wrong:>6} wrong");
    }
    println!("{drawn} requests, {answered} answered, {} refused, {} wrong", drawn - answered, wrong.len());
    if let Ok(file) = std::env::var("CUTE_LAYOUT_SYMBOL_REFUSALS") {
        std::fs::write(file, refusals).expect("the refusals are written");
    }
    let missing: BTreeSet<&str> = all.iter().map(|op| op.name).filter(|name| !counts.contains_key(name)).collect();
    let shown: Vec<&String> = wrong.iter().take(variable("CUTE_LAYOUT_SYMBOL_SHOWN", 12) as usize).collect();
    assert!(wrong.is_empty(), "{} of {answered} answers are wrong, such as\n{shown:#?}", wrong.len());
    assert!(missing.is_empty(), "no request was drawn for {missing:?}");
    assert!(answered > drawn / 3, "{answered} of {drawn} are answered: not a useful mix");
}

/// A tile of a size that is not known yet: `(T,ceil_div(N,T)):(1,T)` for all N and T.
#[test]
fn tiles_of_symbolic_size() {
    let all = assignments(&[1; 4], &mut Random::new(11));
    let whole = "(K,ceil_div(N,K)):(1,K)";
    let cases: [(&str, &[&str], &str); 12] = [
        ("logical_divide", &["N:1", "K"], whole),
        ("logical_divide", &["N:1", "K:1"], whole),
        ("zipped_divide", &["N:1", "K"], whole),
        ("tiled_divide", &["N:1", "K"], whole),
        ("flat_divide", &["N:1", "K"], whole),
        ("zipped_divide", &["N:1", "4*K"], "(4*K,ceil_div(N,4*K)):(1,4*K)"),
        ("zipped_divide", &["12:1", "K"], "(K,ceil_div(12,K)):(1,K)"),
        ("zipped_divide", &["N*K:1", "2*K"], "(2*K,ceil_div(N,2)):(1,2*K)"),
        ("zipped_divide", &["(M,N):(1,M)", "(K,L)"], "((K,L),(ceil_div(M,K),ceil_div(N,L))):((1,M),(K,L*M))"),
        ("tiled_divide", &["(M,N):(N,1)", "(K,L)"], "((K,L),ceil_div(M,K),ceil_div(N,L)):((N,1),K*N,L)"),
        ("ceil_div", &["(M,N)", "(K,2*L)"], "(ceil_div(M,K),ceil_div(N,2*L))"),
        ("round_up", &["N", "K"], "K*ceil_div(N,K)"),
    ];
    for (op, inputs, right) in cases {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        let answer = apply(op, &values(&inputs).expect("a request")).map(|value| value.to_string());
        assert_eq!(answer.as_deref(), Ok(right), "{op}{inputs:?}");
        judge(op, &inputs, right, &all).expect("the answer with numbers");
        assert_eq!(right.parse::<Value>().map(|value| value.to_string()).as_deref(), Ok(right), "read back");
    }
    let wrong = judge("zipped_divide", &["N:1".to_owned(), "K".to_owned()], "(K,ceil_div(K,N)):(1,K)", &all);
    assert!(wrong.is_err(), "a wrong number of tiles is seen");
}

/// A block's tile, and a thread's elements, of a size that is not known yet.
#[test]
fn local_tiles_of_symbolic_size() {
    let matrix: Layout = "(M,N):(1,M)".parse().expect("a layout");
    let tiler: Tiler = Tiler::Shape("(K,L)".parse().expect("a shape"));
    let (tile, offset) = local_tile(&matrix, &tiler, &"(1,_)".parse().expect("a coordinate")).expect("a tile");
    assert_eq!(tile.to_string(), "(K,L,ceil_div(N,L)):(1,M,L*M)");
    assert_eq!(offset.to_string(), "K");
    let (own, offset) = outer_partition(&matrix, &tiler, &"(1,0)".parse().expect("a coordinate")).expect("elements");
    assert_eq!(own.to_string(), "(ceil_div(M,K),ceil_div(N,L)):(K,L*M)");
    assert_eq!(offset.to_string(), "1");
}

/// What was wrong once, and what a wrong answer would be: the comparison sees it.
#[test]
fn a_wrong_answer_is_seen() {
    let cases: [(&str, &[&str], &str, &str); 7] = [
        ("composition", &["(4,M,N):(1,4,4*M)", "4:4"], "4:4*M", "4:4"),
        ("logical_divide", &["(128,M,N):(1,128,128*M)", "128"], "(128,M*N):(1,128*M)", "(128,M*N):(1,128)"),
        ("cosize", &["(4,M):(1,4)"], "4", "4*M"),
        ("logical_product", &["4:1", "M:1"], "(4,M):(1,1)", "(4,M):(1,4)"),
        ("logical_divide", &["(3,M):(1,3)", "2"], "(2,2*M):(1,2)", "(2,ceil_div(3*M,2)):(1,2)"),
        ("size", &["(4,M):(1,4)"], "4", "4*M"),
        ("coalesce", &["(4,M):(1,4)"], "M:1", "4*M:1"),
    ];
    let all = assignments(&[1; 4], &mut Random::new(7));
    for (op, inputs, wrong, right) in cases {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        assert!(judge(op, &inputs, wrong, &all).is_err(), "{op}{inputs:?} = {wrong} is not seen");
        judge(op, &inputs, right, &all).expect("the right answer");
        let answer = apply(op, &values(&inputs).expect("a request")).map(|value| value.to_string());
        assert_eq!(answer.as_deref(), Ok(right), "{op}{inputs:?}");
    }
    let refused = apply("vals", &["M:1".parse().expect("a layout")]);
    assert!(refused.is_err(), "the values of M:1 cannot be listed");
}
