//! Inputs, threads and views that sums along rows refuse.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Recipe, Sum, family};
use cutemplate::settings::Settings;
use cutemplate::view::{ViewLayout, ViewRef};

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    let family = family("sum").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &Targets::default());
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound(problem: [i64; 2], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = Sum::default().plan(&Targets::default()).expect("legal");
    let mut views = views_of(&plan, &problem);
    change(&mut views);
    plan.bind(&views).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    vec![
        ("two outputs, one input for two", rejected("expr=a, b\nin=f32:(?,1)")),
        ("a vector as an input", rejected("expr=a\nin=f32:1")),
        ("33 threads", rejected("threads=33")),
        ("a group that is none", rejected("by=cluster")),
        ("as many sums as columns", unbound([3, 5], |v| v[1].layout = ViewLayout::strided(&[5], &[1]).expect("small"))),
        ("more columns than an index holds", unbound([1, 1 << 31], |_| {})),
    ]
}
