//! Contract: what an operation accepts satisfies its law at every coordinate; one test an operation.

use super::strategies::{compact, config, layout, shape};
use cute_layout::layout::{
    IntTuple, Layout, LayoutError, Tiler, blocked_product, coalesce, compatible, complement, congruent, evenly_divides,
    filter, flat_divide, flatten, idx2crd, is_injective, laws, left_inverse, logical_divide, logical_product,
    make_identity_layout, make_layout, make_layout_like, make_layout_right, make_layout_tv, make_ordered_layout,
    max_common_layout, max_common_vector, nullspace, raked_product, right_inverse, shape_div, tile_to_shape,
    tiled_divide, unflatten, weakly_congruent, with_shape, zipped_divide,
};
use proptest::prelude::*;

fn held(judged: laws::Judged, what: &dyn std::fmt::Display) -> Result<(), TestCaseError> {
    judged.map_err(|violation| TestCaseError::fail(format!("{what}: {violation}")))
}

/// A refusal says what was found and what is required.
fn refused(error: &LayoutError) -> Result<(), TestCaseError> {
    prop_assert!(!error.what_was_found().is_empty() && !error.what_is_required().is_empty(), "{error}");
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn coalescing(a in layout()) {
        let result = coalesce(&a).expect("small numbers");
        held(laws::coalesce(&a, &result), &a)?;
        prop_assert_eq!(coalesce(&result).expect("small numbers"), result);
    }

    #[test]
    fn text_is_read_back(a in layout()) {
        prop_assert_eq!(a.to_string().parse::<Layout>().expect("its own text"), a);
    }

    #[test]
    fn flattening_and_back(a in layout()) {
        held(laws::same_function("flatten(L)(i) = L(i)", &a, &flatten(&a)), &a)?;
        prop_assert_eq!(unflatten(&flatten(&a), a.shape()).expect("its own profile"), a);
    }

    #[test]
    fn complements(a in layout(), cotarget in 1i64..400) {
        match complement(&a, &cotarget.into()) {
            Ok(result) => {
                held(laws::complement(&a, &result), &a)?;
                let filtered = filter(&a).expect("small numbers");
                held(laws::complement_covers(&filtered, cotarget, &result), &a)?;
            }
            Err(error) => refused(&error)?,
        }
    }

    #[test]
    fn complements_of_compact_layouts_exist(a in compact(), times in 1i64..8) {
        let result = complement(&a, &(a.size() * times).into());
        prop_assert!(result.is_ok_and(|result| result.size() == times), "{a}");
    }

    #[test]
    fn right_inverses(a in layout()) {
        let result = right_inverse(&a).expect("integer strides");
        held(laws::right_inverse(&a, &result), &a)?;
    }

    #[test]
    fn layouts_with_another_shape(a in layout(), s in shape()) {
        match with_shape(&a, &s) {
            Ok(result) => held(laws::with_shape(&a, &s, &result), &format!("{a} with {s}"))?,
            Err(error) => refused(&error)?,
        }
    }

    /// An inverse of a compact layout takes every shape of its size that cuts its modes where they end.
    #[test]
    fn inverses_with_another_shape(a in compact(), part in 1i64..9) {
        let inverse = left_inverse(&a).expect("a compact layout");
        let own = with_shape(&inverse, inverse.shape()).expect("its own shape");
        prop_assert!((0..a.size()).all(|i| own.at(i) == inverse.at(i)));
        let column = with_shape(&inverse, &a.size().into()).expect("one mode");
        held(laws::with_shape(&inverse, &a.size().into(), &column), &a)?;
        prop_assert!((0..a.size()).all(|i| column.at(a.at(i).expect("small")) == Ok(i)));
        let first = inverse.mode(0).map_or(1, |mode| mode.size());
        if first % part == 0 {
            let shape = IntTuple::from((part, a.size() / part));
            let result = with_shape(&inverse, &shape);
            prop_assert!(result.is_ok(), "{inverse} with {shape}: {result:?}");
            held(laws::with_shape(&inverse, &shape, &result.expect("seen")), &a)?;
        }
    }

    #[test]
    fn left_inverses(a in layout()) {
        match left_inverse(&a) {
            Ok(result) => held(laws::left_inverse(&a, &result), &a)?,
            Err(error) => refused(&error)?,
        }
    }

    #[test]
    fn inverses_of_compact_layouts_are_two_sided(a in compact()) {
        let right = right_inverse(&a).expect("integer strides");
        prop_assert_eq!(right.size(), a.size());
        let left = left_inverse(&a).expect("a compact layout");
        for i in 0..a.size() {
            prop_assert_eq!(left.at(a.at(i).expect("small")).expect("small"), i);
        }
    }

    #[test]
    fn nullspaces(a in layout()) {
        held(laws::nullspace(&a, &nullspace(&a).expect("small numbers")), &a)?;
    }

    #[test]
    fn logical_divides(a in layout(), tiler in layout()) {
        match logical_divide(&a, &Tiler::Layout(tiler.clone())) {
            Ok(result) if result.size() <= laws::MOST_CHECKED => {
                held(laws::logical_divide(&a, &tiler, &result), &format!("{a} / {tiler}"))?;
            }
            Ok(_) => {}
            Err(error) => refused(&error)?,
        }
    }

    #[test]
    fn divides_by_shape_regroup(a in compact(), m in 1i64..5, n in 1i64..5) {
        let tiler = Tiler::Shape(IntTuple::tuple([m.into(), n.into()].into_iter().take(a.rank())).expect("one or two"));
        if let (Ok(logical), Ok(zipped)) = (logical_divide(&a, &tiler), zipped_divide(&a, &tiler)) {
            prop_assert_eq!(logical.size(), zipped.size());
            prop_assert_eq!(tiled_divide(&a, &tiler).map(|l| l.size()), Ok(zipped.size()));
            prop_assert_eq!(flat_divide(&a, &tiler).map(|l| l.size()), Ok(zipped.size()));
            if evenly_divides(a.shape(), &tiler).unwrap_or(false) {
                prop_assert_eq!(zipped.size(), a.size());
                let mut ours: Vec<i64> = (0..a.size()).map(|i| zipped.at(i).expect("small")).collect();
                ours.sort_unstable();
                prop_assert_eq!(ours, (0..a.size()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn logical_products(block in layout(), tiler in layout()) {
        match logical_product(&block, &Tiler::Layout(tiler.clone())) {
            Ok(result) => held(laws::logical_product(&block, &tiler, &result), &format!("{block} x {tiler}"))?,
            Err(error) => refused(&error)?,
        }
    }

    #[test]
    fn products_mode_by_mode(block in layout(), tiler in layout()) {
        // Where the product of all modes exists, its modes can be paired.
        let exists = logical_product(&block, &Tiler::Layout(tiler.clone())).is_ok();
        let what = format!("{block} x {tiler}");
        let results = [blocked_product(&block, &tiler), raked_product(&block, &tiler)];
        prop_assert_eq!(results.each_ref().map(Result::is_ok), [exists; 2], "{}", what);
        if let ([Ok(blocked), Ok(raked)], 0..=256) = (results, block.size() * tiler.size()) {
            held(laws::blocked_product(&block, &tiler, &blocked), &what)?;
            held(laws::raked_product(&block, &tiler, &raked), &what)?;
        }
    }

    #[test]
    fn products_of_injective_layouts_do_not_meet(block in compact(), tiler in compact()) {
        for result in [blocked_product(&block, &tiler), raked_product(&block, &tiler)] {
            let result = result.expect("compact layouts");
            prop_assert_eq!(result.size(), block.size() * tiler.size());
            prop_assert!(is_injective(&result).expect("integer strides"), "{} x {}", block, tiler);
        }
    }

    #[test]
    fn tiling_to_a_shape(block in compact(), m in 1i64..5, n in 1i64..5) {
        let target = IntTuple::tuple(block.modes().zip([m, n, 1, 1, 1]).map(|(mode, times)| (mode.size() * times).into())).expect("some modes");
        let result = tile_to_shape(&block, &target, None).expect("an even target");
        prop_assert!(compatible(&target, result.shape()).expect("numbers") || block.rank() == 1);
        prop_assert!(is_injective(&result).expect("integer strides"));
    }

    #[test]
    fn compact_constructions(s in shape(), keys in prop::collection::vec(0i64..6, 8)) {
        let column = make_layout(&s).expect("a shape");
        held(laws::compact(&column), &s)?;
        for i in 0..column.size() {
            prop_assert_eq!(column.at(i), Ok(i));
        }
        held(laws::compact(&make_layout_right(&s).expect("a shape")), &s)?;
        let order = IntTuple::tuple(s.modes().zip(&keys).map(|(_, key)| IntTuple::int(*key))).expect("some modes");
        let order = if s.is_leaf() { IntTuple::int(keys[0]) } else { order };
        let ordered = make_ordered_layout(&s, &order).expect("an order");
        held(laws::compact(&ordered), &s)?;
    }

    #[test]
    fn layouts_like_another_are_compact(a in layout()) {
        let like = make_layout_like(&a).expect("integer strides");
        prop_assert!(congruent(like.shape(), a.shape()));
        let kept = coalesce(&filter(&like).expect("small")).expect("small");
        held(laws::compact(&kept), &a)?;
    }

    #[test]
    fn identities(s in shape()) {
        let identity = make_identity_layout(&s).expect("little nesting");
        for i in 0..s.size().expect("integers") {
            let coord = idx2crd(&i.into(), &s).expect("a shape");
            prop_assert_eq!(identity.crd2idx(&i.into()).expect("a coordinate"), coord);
        }
    }

    #[test]
    fn coordinates_and_indices(s in shape()) {
        let size = s.size().expect("integers");
        held(laws::idx2crd_inverts(&s, size * 2), &s)?;
    }

    #[test]
    fn common_vectors(a in layout(), b in layout()) {
        if let Ok(result) = max_common_layout(&a, &b) {
            held(laws::max_common_layout(&a, &b, &result), &format!("{a}, {b}"))?;
            prop_assert_eq!(max_common_vector(&a, &b), Ok(result.size()));
        }
    }

    #[test]
    fn relations_are_orders(x in shape(), y in shape()) {
        prop_assert!(compatible(&x, &x).expect("numbers") && congruent(&x, &x) && weakly_congruent(&x, &x));
        if compatible(&x, &y).expect("numbers") {
            prop_assert_eq!(x.size(), y.size());
            prop_assert!(weakly_congruent(&x, &y));
        }
        if compatible(&x, &y).expect("numbers") && compatible(&y, &x).expect("numbers") {
            prop_assert_eq!(&x, &y);
        }
        if let Ok(quotient) = shape_div(&x, &y.size().expect("integers").into()) {
            prop_assert!(congruent(&quotient, &x));
        }
    }

    #[test]
    fn thread_value_layouts(threads in compact(), values in compact()) {
        let (tiler, tv) = make_layout_tv(&threads, &values).expect("compact layouts");
        prop_assert_eq!(tiler.size(), Ok(threads.size() * values.size()));
        if tv.size() <= 256 {
            held(laws::make_layout_tv(&threads, &values, &tv), &format!("{threads}, {values}"))?;
        }
        held(laws::compact(&tv), &format!("{threads}, {values}"))?;
    }
}
