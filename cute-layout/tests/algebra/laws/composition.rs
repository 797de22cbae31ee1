//! Contract: composition is accepted exactly where a layout represents it, and then has the values; where CuTe is right it
//! has CuTe's text.

use super::{brute, strategies};
use cute_layout::layout::{Cute, Layout, composition, cute_verdict, laws};
use proptest::prelude::*;

fn exact(a: &Layout, b: &Layout) -> Result<(), TestCaseError> {
    let representable = brute::representable(a, b);
    match composition(a, b) {
        Ok(result) => {
            prop_assert!(
                laws::composition(a, b, &result).is_ok(),
                "{a} o {b} = {result}: {:?}",
                laws::composition(a, b, &result)
            );
            prop_assert!(representable, "{a} o {b} = {result}");
            if let Some(Cute::Accepts(theirs)) = cute_verdict(a, b)
                && laws::composition(a, b, &theirs).is_ok()
            {
                prop_assert_eq!(result.to_string(), theirs.to_string(), "{} o {}", a, b);
            }
        }
        Err(error) => {
            prop_assert!(!representable, "{a} o {b} is representable, and refused: {error}");
            if let Some(Cute::Accepts(theirs)) = cute_verdict(a, b) {
                prop_assert!(laws::composition(a, b, &theirs).is_err(), "{a} o {b}: {theirs} is right");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(strategies::config())]

    #[test]
    fn composition_is_exact(a in strategies::layout(), b in strategies::layout()) {
        exact(&a, &b)?;
    }

    #[test]
    fn composition_of_many_leaves_is_exact(a in strategies::layout(), b in strategies::many_leaves()) {
        exact(&a, &b)?;
        exact(&b, &a)?;
    }

    #[test]
    fn composition_with_negative_strides_is_exact(a in strategies::signed_layout(), b in strategies::signed_layout()) {
        exact(&a, &b)?;
    }

    #[test]
    fn composition_of_compact_layouts_is_exact(a in strategies::compact(), b in strategies::compact()) {
        exact(&a, &b)?;
    }
}
