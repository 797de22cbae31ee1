//! Contract: a recast covers the same bytes, block by block; where a layout of the same profile does, it is found.

use super::strategies::{compact, config, layout_of, signed_layout};
use cute_layout::layout::{AnyLayout, Class, Layout, Swizzle, downcast, laws, recast_any, recast_layout, upcast};
use proptest::prelude::*;

fn held(judged: laws::Judged, what: &str) -> Result<(), TestCaseError> {
    judged.map_err(|violation| TestCaseError::fail(format!("{what}: {violation}")))
}

/// A layout with the profile of another.
fn like(layout: &Layout, extents: &[i64], strides: &[i64]) -> Layout {
    let mut next = extents.iter();
    let shape = written(layout.shape().to_string(), &mut next);
    let mut next = strides.iter();
    format!("{shape}:{}", written(layout.shape().to_string(), &mut next)).parse().expect("a layout")
}

/// A tuple's text with other numbers.
fn written<'a>(text: String, numbers: &mut impl Iterator<Item = &'a i64>) -> String {
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            out.push_str(&numbers.next().expect("a number for each").to_string());
        } else {
            out.push(c);
        }
        rest = &rest[digits.max(1)..];
    }
    out
}

/// Every way to write a number as a product of so many factors.
fn products(of: i64, factors: usize) -> Vec<Vec<i64>> {
    if factors == 0 {
        return if of == 1 { vec![Vec::new()] } else { Vec::new() };
    }
    let divisors = (1..=of).filter(|d| of % d == 0);
    divisors
        .flat_map(|first| {
            products(of / first, factors - 1).into_iter().map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
        })
        .collect()
}

/// Whether some layout of the same profile has the law. Extents: each way to share the factor among the modes. Strides:
/// those that the blocks' first units allow, and for a mode with one block each that can lie in an element.
fn exists(layout: &Layout, up: i64, down: i64) -> bool {
    let extents = layout.shape().ints().expect("integers").to_vec();
    let strides = layout.stride().ints().expect("integers").to_vec();
    products(up.max(down), extents.len()).iter().any(|parts| {
        if up > 1 && extents.iter().zip(parts).any(|(s, part)| s % part != 0) {
            return false;
        }
        let new: Vec<i64> =
            extents.iter().zip(parts).map(|(s, part)| if up > 1 { s / part } else { s * part }).collect();
        let mut choices: Vec<Vec<i64>> = vec![Vec::new()];
        for ((s, d), (extent, part)) in extents.iter().zip(&strides).zip(new.iter().zip(parts)) {
            let options: Vec<i64> = match (up > 1, *extent) {
                (_, 1) => vec![0],
                (true, _) if d * part % up == 0 => vec![d * part / up],
                (true, _) => Vec::new(),
                (false, _) if *s == 1 => (1..=down).collect(),
                (false, _) if d * down % part == 0 => vec![d * down / part],
                (false, _) => Vec::new(),
            };
            choices = choices
                .iter()
                .flat_map(|before| options.iter().map(move |option| [before.as_slice(), &[*option]].concat()))
                .collect();
        }
        choices.iter().any(|strides| laws::recast(layout, up, down, &like(layout, &new, strides)).is_ok())
    })
}

fn small() -> BoxedStrategy<Layout> {
    let strides = prop::sample::select(vec![0i64, 1, 1, 1, 2, 3, 4, 6, 8, 12, -1, -2]);
    layout_of(3, 32, strides.boxed())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn casts_cover_the_same_bytes(a in prop_oneof![signed_layout(), compact()], factor in 1i64..=8, other in 1i64..=8) {
        if let Ok(result) = upcast(&a, factor) {
            held(laws::recast(&a, factor, 1, &result), &format!("upcast {a} by {factor} is {result}"))?;
            if let Ok(back) = downcast(&result, factor) {
                held(laws::recast(&result, 1, factor, &back), &format!("downcast {result} by {factor}"))?;
            }
        }
        if let Ok(result) = downcast(&a, factor) {
            held(laws::recast(&a, 1, factor, &result), &format!("downcast {a} by {factor} is {result}"))?;
            let back = upcast(&result, factor);
            prop_assert!(back.is_ok(), "{result} by {factor}: {back:?}");
            held(laws::same_function("upcast(downcast(L)) = L", &a, &back.expect("seen")), &a.to_string())?;
        }
        if let Ok(result) = recast_layout(&a, factor, other) {
            held(laws::recast(&a, other, factor, &result), &format!("{a} from {factor} to {other} is {result}"))?;
        }
    }

    #[test]
    fn refusals_say_what_was_found(a in signed_layout(), factor in 2i64..=8) {
        for result in [upcast(&a, factor), downcast(&a, factor)] {
            if let Err(error) = result {
                prop_assert!(!error.what_was_found().is_empty() && !error.what_is_required().is_empty(), "{}", error);
                prop_assert!(matches!(error.class(), Class::Upcast | Class::Downcast), "{}", error);
            }
        }
    }

    #[test]
    fn swizzled_casts_cover_the_same_bytes(
        inner in compact(),
        (bits, base, shift) in (0i64..=3, 0i64..=3, -4i64..=4),
        offset in 0i64..16,
        outer in prop::option::weighted(0.2, compact()),
        (old, new) in prop::sample::select(vec![(1i64, 2i64), (2, 1), (1, 4), (4, 1), (8, 2)]),
    ) {
        let outer = match (outer, Swizzle::new(bits, base, shift)) {
            (Some(layout), _) => AnyLayout::Plain(layout),
            (None, Ok(swizzle)) => AnyLayout::Swizzle(swizzle),
            (None, Err(_)) => return Ok(()),
        };
        let whole: AnyLayout = format!("{outer} o {offset} o {inner}").parse().expect("a composed layout");
        if let Ok(result) = recast_any(&whole, old, new) {
            let common = old.min(new);
            let judged = laws::recast_any(&whole, new / common, old / common, &result);
            held(judged, &format!("{whole} from {old} to {new} is {result}"))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..config() })]

    #[test]
    fn what_can_be_cast_is(a in small(), factor in prop::sample::select(vec![2i64, 3, 4, 6, 8])) {
        prop_assert_eq!(upcast(&a, factor).is_ok(), exists(&a, factor, 1), "upcast {} by {}", a, factor);
        prop_assert_eq!(downcast(&a, factor).is_ok(), exists(&a, 1, factor), "downcast {} by {}", a, factor);
    }
}

/// What was wrong: more or fewer elements, lost and moved bytes, a needless refusal.
#[test]
fn recasts_that_were_wrong() {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    let recast = recast_layout(&layout("(1,8):(1,1)"), 32, 16).expect("sixteen elements");
    assert_eq!(recast.size(), 16);
    laws::recast(&layout("(1,8):(1,1)"), 1, 2, &recast).expect("the same bytes");
    for (refused, factor) in [("(2,8):(1,1)", 2), ("8:-1", 4), ("3:1", 2), ("8:2", 2), ("(2,8):(1,4)", 4)] {
        let error = upcast(&layout(refused), factor).expect_err(refused);
        assert_eq!(error.class(), Class::Upcast, "{refused}");
    }
    assert_eq!(downcast(&layout("1:0"), 4), Ok(layout("4:1")));
    assert_eq!(downcast(&layout("(4,2):(-1,1)"), 2), Ok(layout("(4,4):(-2,1)")));
    // A read bit inside of an element: its parts go to different places.
    let swizzle: Swizzle = "Sw<2,0,-3>".parse().expect("a swizzle");
    assert_eq!(swizzle.upcast(4).expect_err("moved").class(), Class::Swizzle);
    // The outer layout would read indices of other elements.
    let twice: AnyLayout = "(8,8):(8,1) o 0 o Sw<2,1,4> o 0 o (8,8):(8,1)".parse().expect("functions");
    assert!(recast_any(&twice, 8, 16).is_err());
}

/// The law sees each kind of fault.
#[test]
fn the_law_of_recasts_sees_faults() {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    for (a, up, down, wrong) in [
        ("(1,8):(1,1)", 1, 2, "(2,16):(1,1)"),
        ("(2,8):(1,1)", 2, 1, "(1,8):(1,1)"),
        ("8:-1", 4, 1, "2:-1"),
        ("8:2", 2, 1, "8:1"),
        ("(4,4):(1,4)", 2, 1, "(2,4):(2,1)"),
        ("(4,4):(1,4)", 2, 1, "(4,2):(1,4)"),
        ("(4,4):(1,4)", 2, 1, "8:1"),
    ] {
        assert!(laws::recast(&layout(a), up, down, &layout(wrong)).is_err(), "{a} and {wrong}");
    }
    laws::recast(&layout("(4,4):(1,4)"), 2, 1, &layout("(2,4):(1,2)")).expect("the same bytes");
}
