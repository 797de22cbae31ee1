//! Laws of scalar expressions: text and function are one, and the evaluator is right about every device.

use crate::expr as support;

use cutemplate::dtype::DType;
use cutemplate::expr::round::{bits, round_to};
use cutemplate::expr::{Accept, Bounds, Compute, Function, Helpers};
use proptest::prelude::*;
use support::device::Device;
use support::{INPUTS, SCALARS, Sample, compute, config, exact, floats, integers};

/// Numbers of every size, and the special ones.
fn number() -> impl Strategy<Value = f64> {
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-45,
        -1e-40,
        3.4e38,
        1e300,
        65519.0,
        88.8,
        -104.0,
        2147483648.0,
    ]);
    prop_oneof![3 => -10.0..10.0, 1 => any::<f32>().prop_map(f64::from), 1 => any::<f64>(), 2 => special]
}

fn evaluate(function: &Function, compute: Compute, leaves: &[f64; 5]) -> Vec<Accept> {
    let checked = function.check(compute).expect("every operation exists in the compute type");
    let (inputs, scalars) = leaves.split_at(INPUTS);
    let mut evaluator = checked.evaluator(scalars).expect("two scalars");
    evaluator.evaluate(inputs).expect("three inputs").into_vec()
}

/// The element types that floats are stored to.
fn check_outputs(accepts: &[Accept], outputs: &[f64], what: &impl Fn() -> String) {
    assert_eq!(accepts.len(), outputs.len());
    for (accept, x) in accepts.iter().zip(outputs) {
        for dtype in DType::ALL {
            let element = bits(*dtype, round_to(*dtype, *x));
            assert!(accept.accepts(*dtype, element), "{x:?} as {dtype}, {accept:?}: {}", what());
            if let Some(exact) = accept.exact(*dtype) {
                assert_eq!(exact, element, "{x:?} as {dtype}, {accept:?}: {}", what());
            }
        }
    }
}

fn check_floats(sample: &Sample, leaves: [f64; 5], seed: u64) {
    let function = sample.trace(false);
    // A constant that f32 does not hold is refused there.
    let narrow = leaves.map(|x| x as f32);
    let outputs = compute(sample, &mut Device::<f32>::new(seed), &narrow, false);
    let outputs: Vec<f64> = outputs.into_iter().map(f64::from).collect();
    check_outputs(&evaluate(&function, Compute::F32, &leaves), &outputs, &|| format!("f32 {function} {leaves:?}"));

    let outputs = compute(sample, &mut Device::<f64>::new(seed), &leaves, false);
    check_outputs(&evaluate(&function, Compute::F64, &leaves), &outputs, &|| format!("f64 {function} {leaves:?}"));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bounds_of_inputs_hold_for_whatever_lies_between(
        sample in floats(),
        ends in prop::array::uniform3((number(), number())),
        at in prop::array::uniform3(0.0f64..=1.0),
        scalars in prop::array::uniform2(number()),
        seed in any::<u64>(),
    ) {
        let function = sample.trace(false);
        let mut bounds = Vec::new();
        let mut leaves = Vec::new();
        for ((x, y), at) in ends.into_iter().zip(at) {
            let (low, high) = if x.total_cmp(&y).is_le() { (x, y) } else { (y, x) };
            // An end that is NaN stands for a point.
            let point = x.is_nan() || y.is_nan();
            bounds.push(if point { Bounds::point(x) } else { Bounds::between(low, high).or_nan(at == 0.0) });
            let inside = low + (high - low) * at;
            let inside = if inside > low && inside < high { inside } else { high };
            leaves.push((if point { x } else { inside }) as f32);
        }
        leaves.extend(scalars.map(|x| x as f32));
        let outputs = compute(&sample, &mut Device::<f32>::new(seed), &leaves, false);
        let outputs: Vec<f64> = outputs.into_iter().map(f64::from).collect();
        let checked = function.check(Compute::F32).expect("f32 has everything");
        let accepts = checked.evaluator(&scalars).expect("two").evaluate_bounds(&bounds).expect("three");
        check_outputs(&accepts, &outputs, &|| format!("{function} at {leaves:?} within {bounds:?}"));
    }

    #[test]
    fn text_reads_back_to_the_same_function(sample in floats()) {
        let function = sample.trace(false);
        prop_assert_eq!(&function.to_string().parse::<Function>(), &Ok(function.clone()), "{}", function);
        prop_assert_eq!(&Function::parse(&function.body(), INPUTS, &SCALARS), &Ok(function.clone()), "{}", function);
        let again = sample.trace(false);
        prop_assert_eq!(&again, &function);
        let text = |f: &Function| {
            let mut helpers = Helpers::new(Compute::F32);
            let functor = f.check(Compute::F32).expect("f32 has it").functor("Op", &mut helpers);
            (functor, helpers.to_string())
        };
        prop_assert_eq!(text(&again), text(&function));
    }

    #[test]
    fn what_ieee_determines_is_one_result(sample in exact(), x in prop::array::uniform5(number())) {
        let function = sample.trace(false);
        let narrow = x.map(|x| x as f32);
        let outputs = compute(&sample, &mut Device::<f32>::new(1), &narrow, false);
        for (accept, x) in evaluate(&function, Compute::F32, &x).iter().zip(&outputs) {
            // Zeros of two signs under `min` and `max` are the exception.
            if let Some(exact) = accept.exact(DType::F32) {
                prop_assert_eq!(exact, u64::from(x.to_bits()), "{}", function);
            } else if accept.range().is_none() {
                prop_assert!(x.is_nan(), "{}", function);
            } else {
                prop_assert!(function.to_string().contains("min(") || function.to_string().contains("max("));
            }
        }
        check_floats(&sample, x, 0);
    }

    #[test]
    fn what_devices_may_compute_is_accepted(sample in floats(), x in prop::array::uniform5(number()), seed: u64) {
        check_floats(&sample, x, seed);
    }

    #[test]
    fn integers_wrap_as_in_rust(sample in integers(), x in prop::array::uniform5(any::<i32>())) {
        let function = sample.trace(true);
        let outputs = compute(&sample, &mut Device::<i32>::new(0), &x, true);
        for (accept, x) in evaluate(&function, Compute::I32, &x.map(f64::from)).iter().zip(outputs) {
            prop_assert_eq!(accept.exact(DType::I32), Some(u64::from(x as u32)), "{}", function);
            prop_assert_eq!(accept.exact(DType::I8), Some(u64::from(x as i8 as u8)), "{}", function);
            prop_assert_eq!(accept.exact(DType::U8), Some(u64::from(x as u8)), "{}", function);
            prop_assert_eq!(accept.exact(DType::F32), Some(u64::from((x as f32).to_bits())), "{}", function);
            prop_assert_eq!(accept.exact(DType::Bool), Some(u64::from(x != 0)), "{}", function);
        }
    }

    #[test]
    fn no_text_is_too_strange(
        words in prop::collection::vec(prop::sample::select(vec![
            "a", "b", "h", "i", "alpha", "(", ")", ",", ";", "|", "||", "&&", "!", "-", "+", "*", "/", "<", "<=", "==",
            "=", "let", "t0", "1", "0.5", "1e-3", "1e", "inf", "nan", "relu", "min", "select", "cast", "f16", "fma",
            "clamp", " ", "é", ".", "_",
        ]), 0..24),
        any_text in ".{0,40}",
    ) {
        for text in [words.concat(), words.join(" "), any_text] {
            if let Ok(function) = text.parse::<Function>() {
                prop_assert_eq!(&function.to_string().parse::<Function>(), &Ok(function.clone()), "{}", function);
            }
            if let Err(error) = Function::parse(&text, 2, &["alpha"]) {
                prop_assert!(error.position.is_some_and(|at| text.is_char_boundary(at)) && !error.required.is_empty());
            }
        }
    }
}
