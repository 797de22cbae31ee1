//! Contract: nothing to do is one rule. Where no output has an element nothing is launched, from any address; where a sum has no
//! term the kernel runs, and writes what the rest of its function makes of 0.

use cutemplate::plan::Plan;
use cutemplate::recipe::FAMILIES;
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewRef};

/// Views of the operands without gaps, apart, or at address 0 where they have no element.
fn views(plan: &Plan, problem: &[i64]) -> Vec<ViewRef> {
    let shapes = plan.shapes(problem).expect("extents of the problem");
    let view = |((operand, shape), place): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let layout = operand.layout(shape, None).expect("few elements");
        let available = layout.span().expect("few elements");
        let ptr = if available == 0 { 0 } else { place << 45 };
        ViewRef { dtype: operand.dtype, ptr, available: Elements(available), layout, access: operand.access }
    };
    plan.operands().iter().zip(&shapes).zip(1..).map(view).collect()
}

/// Every kernel of the catalogue, with each of its extents 0, and all of them.
#[test]
fn nothing_is_launched_for_outputs_without_elements_and_sums_of_nothing_are_written() {
    let (mut nothing, mut sums) = (0, 0);
    for family in FAMILIES {
        for text in family.catalogue {
            let plan = family.usual_plan(&Settings::parse_lines(text));
            let plan = plan.unwrap_or_else(|error| panic!("{text}: {error}"));
            let example = plan.abi().problem_shape().expect("a problem").example().to_vec();
            let mut problems: Vec<Vec<i64>> = (0..example.len())
                .map(|mode| example.iter().enumerate().map(|(i, e)| if i == mode { 0 } else { *e }).collect())
                .collect();
            problems.push(vec![0; example.len()]);
            for problem in &problems {
                for part in plan.texts() {
                    let views = views(part, problem);
                    // No scalar is 0, so that a product is asked for.
                    let scalars = vec![1.0; part.scalars().len()];
                    let bound = part.bind_with(&views, &scalars);
                    // Query heads cannot share no key heads, no columns have no largest, and sequences have starts.
                    let refused = ["HQ = 6, HK = 0", "a row has k results", "POSITIONS = 0", "STARTS, one more than B"];
                    let why = bound.as_ref().err().map(ToString::to_string).unwrap_or_default();
                    if refused.iter().any(|known| why.contains(known)) {
                        continue;
                    }
                    let bound = bound.unwrap_or_else(|error| panic!("{}, {problem:?}: {error}", part.name()));
                    let written = views.iter().filter(|view| view.access != Access::Read);
                    let empty = written.clone().all(|view| view.available == Elements(0));
                    // Without new rows the pages keep what they hold.
                    let keeps = family.name == "append" && bound.launches().is_empty();
                    assert!(keeps || bound.launches().is_empty() == empty, "{}, {problem:?}", part.name());
                    assert!(!empty || bound.workspace().is_none(), "{}, {problem:?}", part.name());
                    if empty {
                        nothing += 1;
                    } else {
                        sums += 1;
                    }
                    let blocks = bound.launches().iter().flat_map(|launch| launch.grid);
                    assert!(blocks.clone().all(|extent| extent > 0), "{}, {problem:?}", part.name());
                }
            }
        }
    }
    assert!(nothing > 100 && sums > 20, "{nothing} launches of nothing, {sums} sums of nothing");
}
