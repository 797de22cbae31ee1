//! Settings and views that `top_k` refuses.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Recipe, TopK, family};
use cutemplate::settings::Settings;
use cutemplate::view::ViewRef;

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    let family = family("top_k").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &Targets::default());
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound(problem: [i64; 2], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = TopK::default().plan(&Targets::default()).expect("legal");
    let mut views = views_of(&plan, &problem);
    change(&mut views);
    plan.bind(&views).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    vec![
        ("no results", rejected("k=0")),
        ("more results than threads rank", rejected("k=129")),
        ("fewer threads than results", rejected("k=64\nthreads=32")),
        ("a part of a warp", rejected("threads=100")),
        ("more elements than registers", rejected("dtype=f16\nchunks=9")),
        ("integers", rejected("dtype=i32")),
        ("rows of fewer columns than results", unbound([3, 63], |_| {})),
        ("columns in the place of elements", unbound([3, 64], |v| v[2].ptr = v[0].ptr)),
    ]
}
