//! Settings and views that `w4a16` refuses.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Recipe, W4a16, family};
use cutemplate::settings::Settings;
use cutemplate::view::{ViewLayout, ViewRef};

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    let family = family("w4a16").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &Targets::default());
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound(problem: [i64; 3], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = W4a16 { zeros: true, ..W4a16::default() }.plan(&Targets::default()).expect("legal");
    let mut views = views_of(&plan, &problem);
    change(&mut views);
    plan.texts()[0].bind(&views).expect_err("refused").diagnostics().to_vec()
}

fn strided(view: &mut ViewRef, shape: [i64; 2], stride: i64) {
    view.layout = ViewLayout::strided(&shape, &[stride, 1]).expect("two modes");
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    vec![
        ("activations of f32", rejected("dtype=f32")),
        ("D of integers", rejected("out=i32")),
        ("groups of 48", rejected("group=48")),
        ("tiles of no MMA", rejected("tile=24x96x48")),
        ("slices of which threads have no equal parts", rejected("slices=3")),
        ("a stage", rejected("stages=1")),
        ("more CTAs than a GPU runs", rejected("ctas=65536")),
        ("more shared memory than there is", rejected("tile=16x128x128\nslices=8\nstages=8")),
        ("more registers than there are", rejected("tile=64x256x32\nslices=8\nstages=2")),
        ("a second input that is no row", rejected("epilogue=|a, bias| a + bias")),
        ("K of a part of a group", unbound([5, 128, 160], |_| {})),
        ("N of a part of a block", unbound([5, 96, 256], |_| {})),
        ("scales of other groups", unbound([5, 128, 256], |v| strided(&mut v[2], [8, 128], 128))),
        ("scales the other way", unbound([5, 128, 256], |v| strided(&mut v[2], [128, 2], 2))),
        ("packed weights with gaps", unbound([5, 128, 256], |v| strided(&mut v[1], [128, 32], 36))),
        ("weights that are not aligned", unbound([5, 128, 256], |v| v[1].ptr += 8)),
        ("rows of A that are not aligned", unbound([5, 128, 256], |v| strided(&mut v[0], [5, 256], 260))),
        ("zero points that are not aligned", unbound([5, 128, 256], |v| v[3].ptr += 4)),
    ]
}
