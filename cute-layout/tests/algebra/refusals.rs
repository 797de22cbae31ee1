//! Contract: what a refused composition says is true: the values, the remainders, the class, and the alternatives.

use cute_layout::layout::{Class, Cute, IntTuple, Layout, LayoutError, composition, cute_verdict, idx2crd, laws};

/// How many refusals are looked at.
const REFUSALS: usize = 4000;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn number(&mut self, of: &[i64]) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        of[(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % of.len()]
    }

    /// A layout of one to three modes, the last perhaps nested.
    fn layout(&mut self, extents: &[i64], strides: &[i64]) -> Layout {
        let mut mode = || Layout::mode_of(self.number(extents), self.number(strides)).expect("a positive extent");
        let modes = [mode(), mode(), mode()];
        let pair = || Layout::from_modes(modes[..2].iter().cloned()).expect("two modes");
        match self.number(&[0, 1, 2, 3]) {
            0 => modes[0].clone(),
            1 => pair(),
            2 => Layout::from_modes(modes).expect("three modes"),
            _ => Layout::from_modes([modes[2].clone(), pair()]).expect("two modes"),
        }
    }
}

/// Random compositions that are refused, of layouts with negative strides as well.
fn refusals() -> impl Iterator<Item = (Layout, Layout, LayoutError)> {
    let mut random = Random(0x5eed);
    std::iter::repeat_with(move || {
        let a = random.layout(&[1, 2, 3, 4, 6, 8], &[0, 1, 2, 3, 4, 7, 12, 16, 100, -4]);
        let b = random.layout(&[1, 2, 3, 4, 6, 8, 12], &[0, 1, 2, 3, 4, 5, 6, 8, 12, 24, -1, -3]);
        let error = composition(&a, &b).err()?;
        Some((a, b, error))
    })
    .flatten()
    .take(REFUSALS)
}

/// The number right behind `before`.
fn number_behind(text: &str, before: &str) -> Option<i64> {
    let rest = &text[text.find(before)? + before.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn digits(b: &Layout, index: i64) -> Vec<i64> {
    idx2crd(&IntTuple::int(index), b.shape()).expect("an index").ints().expect("integers").to_vec()
}

fn dot(a: &[i64], b: &[i64]) -> i64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The leaf that a path with its text names: `B[1][0] = 4:3`.
fn leaf_of(b: &Layout, path: &str) -> usize {
    let path = path.split(" = ").next().expect("a path");
    let indices: Vec<usize> = path.split(['[', ']']).filter_map(|part| part.parse().ok()).collect();
    let mut leaf = 0;
    let mut here = b.shape().clone();
    for index in indices {
        leaf += here.modes().take(index).map(|mode| mode.leaf_count()).sum::<usize>();
        here = here.mode(index).expect("a mode of B");
    }
    assert!(here.is_leaf(), "{path} of {b}");
    leaf
}

#[test]
fn the_values_are_those_of_the_functions() {
    let mut named = 0;
    for (a, b, error) in refusals() {
        let found = error.what_was_found();
        let strides = b.stride().ints().expect("integers");
        let at = |x: i64| a.at(x).expect("small numbers");
        if let Some(index) = number_behind(found, "first at index ") {
            let value = number_behind(found, &format!("A(B({index})) = ")).expect("a value");
            let other = number_behind(found, ", not ").expect("another value");
            assert!(index < b.size() && value != other, "{error}");
            assert_eq!(at(dot(&digits(&b, index), &strides)), value, "{error}");
            named += 1;
        }
        if let Some(step) = number_behind(found, "first at step ") {
            let (_, e) = b.pairs_of(leaf_of(&b, error.leaf_path().expect("a leaf")));
            let value = number_behind(found, &format!("A({}) = ", step * e)).expect("a value");
            let other = number_behind(found, ", not ").expect("another value");
            assert!(value != other && at(step * e) == value, "{error}");
            named += 1;
        }
    }
    assert_eq!(named, REFUSALS, "every refusal of small layouts names where the values part");
}

#[test]
fn the_premise_of_the_class_holds() {
    let mut seen = std::collections::BTreeMap::new();
    for (a, b, error) in refusals() {
        *seen.entry(error.class()).or_insert(0) += 1;
        let cute = cute_verdict(&a, &b);
        match error.class() {
            Class::Carry => {
                let found = error.what_was_found();
                let text = &found[found.find('(').expect("a coordinate") + 1..];
                let coord: Vec<i64> = text[..text.find(')').expect("its end")]
                    .split(',')
                    .map(|c| c.parse().expect("an integer"))
                    .collect();
                let strides = b.stride().ints().expect("integers");
                assert!(coord.iter().filter(|c| **c != 0).count() >= 2, "a carry needs two leaves: {error}");
                let together = a.at(dot(&coord, &strides)).expect("small");
                let alone: i64 = coord.iter().zip(&strides).map(|(c, d)| a.at(c * d).expect("small")).sum();
                assert_ne!(together, alone, "{error}");
                assert_eq!(number_behind(found, "alone add up to "), Some(alone), "{error}");
            }
            Class::StrideDivisibility | Class::ShapeDivisibility => {
                // A pair that does not divide is named, by us or in CuTe's own refusal.
                let texts = [error.what_was_found(), error.why(), error.what_cute_does()];
                let rest = texts.iter().find_map(|text| {
                    let at = text.find(" mod ")?;
                    number_behind(&text[at..], " = ")
                });
                assert!(rest.is_some_and(|rest| rest != 0), "{error}");
            }
            other => panic!("{other}: {error}"),
        }
        match cute {
            Some(Cute::StrideDivisibility { .. }) => assert_eq!(error.class(), Class::StrideDivisibility),
            Some(Cute::ShapeDivisibility { .. }) => assert_eq!(error.class(), Class::ShapeDivisibility),
            Some(Cute::Accepts(theirs)) => {
                assert!(laws::composition(&a, &b, &theirs).is_err(), "{error}");
                let text = error.what_cute_does();
                let index = number_behind(text, "whose value at index ").expect("an index");
                let [wrong, right] = [" is ", " and not "].map(|before| {
                    number_behind(&text[text.find("whose value").expect("a value")..], before).expect("a value")
                });
                assert_eq!(theirs.at(index), Ok(wrong), "{error}");
                let strides = b.stride().ints().expect("integers");
                assert_eq!(a.at(dot(&digits(&b, index), &strides)), Ok(right), "{error}");
                for earlier in 0..index {
                    assert_eq!(theirs.at(earlier), a.at(dot(&digits(&b, earlier), &strides)), "{error}");
                }
            }
            None => {}
        }
    }
    assert!(seen.len() == 3 && seen.values().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn the_alternatives_are_representable() {
    let (mut offered, mut tried) = (0, 0);
    for (a, b, error) in refusals() {
        let advice = error.advice();
        assert!(advice.contains("ComposedLayout"), "{error}");
        let Some((offers, path)) = advice.split("; or").next().and_then(|offer| offer.split_once(" for B")) else {
            continue;
        };
        offered += 1;
        let leaf = leaf_of(&b, path);
        let mut what = "";
        for word in offers.split([' ', ',']).filter(|word| !word.is_empty() && *word != "or") {
            let Ok(number) = word.parse::<i64>() else {
                what = word;
                continue;
            };
            let (t, e) = b.pairs_of(leaf);
            let (t, e) = if what == "extent" { (number, e) } else { (t, number) };
            let other = b.with_leaf(leaf, t, e);
            let result = composition(&a, &other).unwrap_or_else(|refused| panic!("{error}\n{refused}"));
            assert!(laws::composition(&a, &other, &result).is_ok(), "{error}");
            tried += 1;
        }
    }
    assert!(offered > REFUSALS / 2 && tried > REFUSALS, "{offered} with {tried} alternatives");
}

#[test]
fn a_leaf_alone_has_no_carry() {
    let refused = composition(&"(6,2):(1,7)".parse().expect("a layout"), &"4:4".parse().expect("a layout"));
    let error = refused.expect_err("no layout has the values 0, 4, 9, 14");
    assert_eq!(error.class(), Class::StrideDivisibility);
    assert_eq!(error.leaf_path(), Some("B = 4:4"));
    assert!(error.what_was_found().ends_with("first at step 3: A(12) = 14, not 13"), "{error}");
    assert!(error.why().ends_with("6 mod 4 = 2"), "{error}");
    assert!(error.advice().starts_with("extent 2, or stride 3 or 6 for B = 4:4; or"), "{error}");
}

/// What the tests change in a layout.
trait Leaves {
    fn pairs_of(&self, leaf: usize) -> (i64, i64);
    fn with_leaf(&self, leaf: usize, extent: i64, stride: i64) -> Layout;
}

impl Leaves for Layout {
    fn pairs_of(&self, leaf: usize) -> (i64, i64) {
        (self.shape().ints().expect("integers")[leaf], self.stride().ints().expect("integers")[leaf])
    }

    fn with_leaf(&self, leaf: usize, extent: i64, stride: i64) -> Layout {
        let changed = |tuple: &IntTuple, to: i64| {
            let mut leaves = tuple.ints().expect("integers");
            leaves[leaf] = to;
            // The same parentheses around other numbers.
            let mut next = leaves.iter();
            let mut text = String::new();
            let mut number = false;
            for c in tuple.to_string().chars() {
                let part = c.is_ascii_digit() || c == '-';
                if part && !number {
                    text.push_str(&next.next().expect("as many numbers").to_string());
                }
                if !part {
                    text.push(c);
                }
                number = part;
            }
            text
        };
        format!("{}:{}", changed(self.shape(), extent), changed(self.stride(), stride)).parse().expect("a layout")
    }
}
