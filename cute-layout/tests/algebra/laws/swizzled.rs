//! Contract: swizzles on either side of a composition, also beyond the size of the left side, and what two layouts have in
//! common: plain, swizzled and composed, by brute force.

use cute_layout::layout::{
    AnyLayout, Class, ComposedLayout, CoordKind, Layout, Swizzle, compose_any, idx2crd, left_inverse_any,
    max_common_layout_any, max_common_vector_any, right_inverse_any, slice_and_offset_any,
};
use proptest::prelude::*;

use super::strategies::{compact, config, layout};

fn swizzle() -> BoxedStrategy<Swizzle> {
    (0i64..4, 0i64..4, 0i64..3, any::<bool>())
        .prop_map(|(bits, base, more, down)| {
            let shift = bits + more;
            Swizzle::new(bits, base, if down { -shift } else { shift }).expect("a small swizzle")
        })
        .boxed()
}

/// Layouts of powers of two, which swizzles pass through most often.
fn powers() -> BoxedStrategy<Layout> {
    (prop::collection::vec((0u32..4, 0u32..7), 1..=3))
        .prop_map(|modes| {
            let modes = modes.iter().map(|(s, d)| Layout::mode_of(1 << s, 1 << d).expect("a mode"));
            Layout::from_modes(modes).expect("few modes")
        })
        .boxed()
}

fn plain() -> BoxedStrategy<Layout> {
    prop_oneof![3 => compact(), 3 => powers(), 2 => layout()].boxed()
}

/// Three functions, one after the other.
fn nested() -> BoxedStrategy<AnyLayout> {
    let outer = prop_oneof![swizzle().prop_map(AnyLayout::Swizzle), plain().prop_map(AnyLayout::Plain)];
    let offset = || prop_oneof![3 => Just(0i64), 1 => 0i64..40];
    (outer, offset(), swizzle(), offset(), plain())
        .prop_map(|(outer, m, swizzle, n, inner)| {
            let inner = ComposedLayout::new(AnyLayout::Swizzle(swizzle), n, AnyLayout::Plain(inner));
            AnyLayout::Composed(ComposedLayout::new(outer, m, AnyLayout::Composed(inner)))
        })
        .boxed()
}

/// A layout, a swizzled layout, a layout after a layout, three functions one after the other, or a swizzle.
fn any_layout() -> BoxedStrategy<AnyLayout> {
    let offset = prop_oneof![3 => Just(0i64), 1 => 0i64..40];
    prop_oneof![
        3 => plain().prop_map(AnyLayout::Plain),
        4 => (swizzle(), offset.clone(), plain()).prop_map(|(s, o, l)| AnyLayout::compose(AnyLayout::Swizzle(s), o, l)),
        1 => (plain(), offset, plain())
            .prop_map(|(a, o, b)| AnyLayout::Composed(ComposedLayout::new(AnyLayout::Plain(a), o, AnyLayout::Plain(b)))),
        2 => nested(),
        1 => swizzle().prop_map(AnyLayout::Swizzle),
    ]
    .boxed()
}

/// How many indices a composition is checked at: the domain's size, or some for a swizzle alone.
fn indices(layout: &AnyLayout, otherwise: i64) -> i64 {
    layout.domain().map_or(otherwise, Layout::size)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn composition_with_swizzles(a in any_layout(), b in any_layout()) {
        if let Ok(result) = compose_any(&a, &b) {
            let count = indices(&b, indices(&a, 256));
            for i in 0..count {
                let through = a.at(b.at(i).expect("small")).expect("small");
                prop_assert_eq!(result.at(i).expect("small"), through, "{} o {} = {} at {}", a, b, result, i);
            }
        }
    }

    #[test]
    fn inverses_with_swizzles(a in any_layout()) {
        let two = |c: &ComposedLayout| c.offset() == 0 && c.swizzle().is_some();
        let judged = match &a {
            AnyLayout::Composed(composed) => match composed.inner() {
                AnyLayout::Composed(_) => true,
                _ => two(composed),
            },
            _ => a.domain().is_ok(),
        };
        if !judged {
            return Ok(());
        }
        if let Ok(inverse) = right_inverse_any(&a) {
            for i in 0..indices(&inverse, 1) {
                prop_assert_eq!(a.at(inverse.at(i).expect("small")).expect("small"), i, "{} and {}", a, inverse);
            }
        }
        if let Ok(inverse) = left_inverse_any(&a) {
            for i in 0..indices(&a, 1) {
                let value = a.at(i).expect("small");
                let back = a.at(inverse.at(value).expect("small")).expect("small");
                prop_assert_eq!(back, value, "{} and {} at {}", a, inverse, i);
            }
        }
    }

    /// Text and back, the value at a coordinate, and the buffer that holds all values.
    #[test]
    fn three_functions_are_one(a in nested()) {
        prop_assert_eq!(a.to_string().parse::<AnyLayout>().expect("what was printed"), a.clone());
        let AnyLayout::Composed(whole) = &a else { return Ok(()) };
        let domain = whole.domain().expect("a layout").clone();
        let mut largest = 0;
        for i in 0..domain.size() {
            let value = whole.outer().at(whole.offset() + whole.inner().at(i).expect("small")).expect("small");
            prop_assert_eq!(a.at(i).expect("small"), value);
            let coord = idx2crd(&i.into(), domain.shape()).expect("a coordinate");
            prop_assert_eq!(whole.crd2idx(&coord).expect("small"), value, "{} at {}", a, coord);
            largest = largest.max(value);
        }
        prop_assert_eq!(whole.cosize(), Ok(largest + 1));
    }

    #[test]
    fn slices_of_three_functions(a in nested(), taken in 0i64..8) {
        let domain = a.domain().expect("a layout").clone();
        let (Some(first), Some(second), None) = (domain.mode(0), domain.mode(1), domain.mode(2)) else { return Ok(()) };
        let taken = taken % first.size();
        let coord = format!("({taken},_)").parse().expect("a coordinate");
        if let Ok((slice, offset)) = slice_and_offset_any(&coord, &a, CoordKind::Static) {
            for left in 0..second.size() {
                let whole = a.at(taken + first.size() * left).expect("small");
                prop_assert_eq!(offset + slice.at(left).expect("small"), whole, "{} at {} is {}", a, coord, slice);
            }
        }
    }

    #[test]
    fn what_layouts_have_in_common(a in any_layout(), b in any_layout(), same in 0u8..4) {
        let b = if same == 0 { a.clone() } else { b };
        common(&a, &b)?;
    }

    /// The same layout over another domain, and in another order.
    #[test]
    fn what_compact_layouts_have_in_common(a in compact(), b in compact()) {
        common(&AnyLayout::Plain(a), &AnyLayout::Plain(b))?;
    }
}

/// Whether two layouts have the same swizzle and offset.
fn swizzled_alike(a: &AnyLayout, b: &AnyLayout) -> bool {
    let parts = |layout: &AnyLayout| match layout {
        AnyLayout::Composed(composed) => composed.swizzle().map(|swizzle| (swizzle, composed.offset())),
        _ => None,
    };
    parts(a).is_some() && parts(a) == parts(b)
}

fn common(a: &AnyLayout, b: &AnyLayout) -> Result<(), TestCaseError> {
    let (Ok(ours), Ok(theirs)) = (max_common_layout_any(a, b), max_common_layout_any(b, a)) else {
        prop_assert_eq!(max_common_layout_any(a, b).is_ok(), max_common_layout_any(b, a).is_ok());
        return Ok(());
    };
    prop_assert_eq!(ours.size(), theirs.size(), "{} and {}: {} and {}", a, b, ours, theirs);
    prop_assert_eq!(max_common_vector_any(a, b).expect("a number"), ours.size());
    // Where both are swizzled in the same way, it is the layouts inside that count up.
    let inside = |layout: &AnyLayout| AnyLayout::Plain(layout.domain().expect("a domain").clone());
    let (x, y) = if swizzled_alike(a, b) { (inside(a), inside(b)) } else { (a.clone(), b.clone()) };
    let domain = indices(&x, 0).min(indices(&y, 0));
    let from_begin = |layout: &AnyLayout, i: i64| layout.at(i).expect("small") - layout.at(0).expect("small");
    for i in 0..ours.size() {
        let at = ours.at(i).expect("small");
        prop_assert!(at < domain, "{} and {}: {} leaves the domain", a, b, ours);
        prop_assert_eq!((from_begin(&x, at), from_begin(&y, at)), (i, i), "{} and {}: {}", a, b, ours);
    }
    // No longer beginning of an inverse, one mode after the other, has the law: where both are plain and injective there
    // is one index for each value, and so one candidate.
    let injective = |layout: &AnyLayout| matches!(layout, AnyLayout::Plain(plain) if cute_layout::layout::is_injective(plain).unwrap_or(false));
    if injective(&x) && injective(&y) {
        let place = |i: i64| (0..domain).find(|&at| x.at(at).expect("small") == i && y.at(at).expect("small") == i);
        let run: Vec<i64> = (0..domain).map_while(place).collect();
        prop_assert!(run.len() as i64 >= ours.size());
        // The next mode of the inverse begins where the result ends; it may not take two steps.
        if let (Some(&next), true) = (run.get(ours.size() as usize), ours.size() > 0) {
            let twice = (0..ours.size() as usize).all(|i| run.get(ours.size() as usize + i) == Some(&(run[i] + next)));
            prop_assert!(!twice, "{} and {}: {} is not the longest, {:?}", a, b, ours, run);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..config() })]

    /// More coordinates than are looked at one by one: of an inner function that reaches every index, the largest value itself.
    #[test]
    fn a_buffer_holds_what_a_large_composition_reaches(outer in plain(), offset in 0i64..40) {
        let inner: Layout = "70000:1".parse().expect("a layout");
        let whole = ComposedLayout::new(AnyLayout::Plain(outer.clone()), offset, AnyLayout::Plain(inner));
        let largest = (0..70000 + offset).map(|i| outer.at(i).expect("small")).max();
        prop_assert_eq!(whole.cosize().ok(), largest.map(|largest| largest + 1), "{}", outer);
    }
}

/// What tensor-layouts 0.3 composes, and what it refuses: the same functions, and each is one of its answers' values.
#[test]
fn nested_compositions() {
    let any = |text: &str| text.parse::<AnyLayout>().expect("a layout");
    for (a, b, composed) in [
        ("Sw<3,0,3>", "Sw<2,1,4> o 0 o (8,8):(8,1)", "Sw<3,0,3> o 0 o Sw<2,1,4> o 0 o (8,8):(8,1)"),
        ("(8,8):(8,1)", "Sw<2,1,4> o 0 o (8,8):(8,1)", "(8,8):(8,1) o 0 o Sw<2,1,4> o 0 o (8,8):(8,1)"),
        ("(8,8):(8,1)", "Sw<3,0,3> o 3 o (8,8):(8,1)", "(8,8):(8,1) o 0 o Sw<3,0,3> o 3 o (8,8):(8,1)"),
        ("(4,5,2):(10,2,1)", "Sw<3,0,3>", "(4,5,2):(10,2,1) o 0 o Sw<3,0,3> o 0 o (4,5,2):(1,4,20)"),
        ("Sw<3,0,3> o 0 o (8,8):(8,1)", "Sw<3,0,3>", "Sw<3,0,3> o 0 o Sw<3,0,-3> o 0 o (8,8):(8,1)"),
        ("Sw<3,0,3> o 3 o 64:1", "Sw<2,1,4> o 5 o 64:1", "Sw<3,0,3> o 3 o 64:1 o 0 o Sw<2,1,4> o 5 o 64:1"),
    ] {
        assert_eq!(compose_any(&any(a), &any(b)).expect(composed), any(composed), "{a} and {b}");
    }
    assert!(compose_any(&any("Sw<3,0,3>"), &any("Sw<2,1,4>")).is_err(), "what has no shape");
    // No more functions than are looked through, however often they are composed.
    let mut chain = any("(8,8):(8,1) o 3 o Sw<2,1,4> o 5 o (8,8):(8,1)");
    let refused = (0..8).find_map(|_| compose_any(&chain, &chain).map(|next| chain = next).err());
    assert_eq!(refused.map(|error| error.class()), Some(Class::Limit));
}

#[test]
fn what_was_wrong() {
    let any = |text: &str| text.parse::<AnyLayout>().expect("a layout");
    // Beyond the end of A: A(B(5)) is 4.
    let composed = compose_any(&any("(2,2):(2,1)"), &any("Sw<2,0,3> o 0 o 8:1"));
    assert!(composed.is_err() || composed.is_ok_and(|result| result.at(5) == Ok(4)));
    let swizzled = any("Sw<2,0,3> o 0 o (8,8):(8,1)");
    assert_eq!(max_common_layout_any(&swizzled, &swizzled).expect("a layout").size(), 64);
    for (a, b) in [("2:1", "6:1"), ("6:1", "2:1")] {
        assert_eq!(max_common_vector_any(&any(a), &any(b)), Ok(2), "{a} and {b}");
    }
}
