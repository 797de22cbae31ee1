//! Contract: recipes that take other ways through the template than the catalogue's are right on the CPU executor too:
//! short vectors, nested modes, few threads, tall tiles, steps, both rasters; ragged and padded.
#![cfg(feature = "host")]

use crate::host_common;

use cutemplate::arch::Targets;
use cutemplate::exec::cxx::{Kernel, Mode};
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Fill, Tensor, TensorLayout};

/// Settings, and what they are there for.
const VARIATIONS: &[(&str, &str)] = &[
    ("dtype=f32\nvector=4\nval=(16,16):(16,1)\nraster=m", "one element a vector: the unrolled mode is nested, (4,16)"),
    (
        "dtype=f32\nvector=8\nunroll=4\nthr=(2,16):(1,2)\nval=(16,16):(16,1)",
        "two vectors a row, steps, threads down the columns",
    ),
    ("dtype=f32\nthr=(64,4):(4,1)\nval=(2,32):(32,1)\nraster=m", "a tall tile, two vectors a row"),
    ("dtype=f32\nthr=(1,1):(0,0)\nval=(1,16):(16,1)", "one thread, one vector"),
    ("dtype=f32\nval=((2,2),(4,4)):((16,32),(1,4))\nthr=((2,2),8):((16,1),2)", "nested layouts"),
];

fn matrix(layout: TensorLayout, seed: u64) -> Tensor {
    let mut m = Tensor::new(cutemplate::dtype::DType::F32, layout).expect("small");
    m.fill(Fill::Specials, seed);
    m
}

#[test]
fn every_variation_is_right() {
    for (settings, what) in VARIATIONS {
        let recipe = ElementwiseAdd::from_settings(&Settings::parse_lines(settings)).expect(what);
        let plan = recipe.plan(&Targets::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let kernel = Kernel::<ElementwiseAdd>::compile(plan.clone(), Mode::Plain, &host_common::options());
        let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
        for layout in
            [TensorLayout::contiguous(3, 12), TensorLayout::contiguous(67, 131), TensorLayout::padded(130, 260, 264)]
        {
            let (a, b, mut c) = (matrix(layout, 1), matrix(layout, 2), matrix(layout, 3));
            c.fill_unwritten();
            let args = ElementwiseAddArgs::<f32, _> {
                a: a.view().expect("f32"),
                b: b.view().expect("f32"),
                c: c.view_mut().expect("f32"),
            };
            kernel.launch(args).unwrap_or_else(|e| panic!("{what}, {layout}: {e}"));
            let verdicts = verify::check(&plan, &[&a, &b], &[], &[&c]).expect("the plan's inputs");
            assert!(verdicts[0].is_right(), "{what}, {layout}: {}", verdicts[0]);
        }
    }
}
