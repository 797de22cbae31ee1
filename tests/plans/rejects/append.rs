//! Settings and views that `append` refuses.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Append, Recipe, family};
use cutemplate::settings::Settings;
use cutemplate::view::ViewRef;

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    let family = family("append").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &Targets::default());
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound(settings: &str, problem: &[i64], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let recipe = Append::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let plan = recipe.plan(&Targets::default()).expect("legal");
    let mut views = views_of(&plan, problem);
    change(&mut views);
    plan.bind(&views).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    vec![
        ("keys of f32", rejected("dtype=f32")),
        ("keys of 12 and values of 264", rejected("head=12\nvalue=264\nrotary=0")),
        ("pages of e5m2", rejected("dtype_kv=e5m2")),
        ("20 rotated elements of 80", rejected("head=80\nrotary=20")),
        ("more rotated elements than a key has", rejected("head=32\nrotary=48")),
        ("queries that are not rotated", rejected("rotary=0\nqueries=true")),
        ("no cosine", unbound("", &[1, 2, 3, 2, 9, 16, 0], |_| {})),
        ("pages that are not aligned", unbound("", &[1, 2, 3, 2, 9, 16, 5], |v| v[6].ptr += 8)),
        ("more positions than an index holds", unbound("", &[1, 1, 1 << 26, 1, 9, 16, 5], |_| {})),
        ("more rows than CTAs number", unbound("head=80\nvalue=128", &[1, 1 << 28, 1, 1, 9, 16, 5], |_| {})),
        ("as many starts as sequences", unbound("varlen=true", &[3, 7, 4, 2, 9, 16, 3, 40], |_| {})),
        ("new rows that are not aligned", unbound("varlen=true", &[3, 7, 4, 2, 9, 16, 2, 40], |v| v[1].ptr += 8)),
        ("no cosine for rows of sequences", unbound("varlen=true", &[3, 7, 4, 2, 9, 16, 2, 0], |_| {})),
        ("an unknown word for sequences", rejected("varlen=ragged")),
    ]
}
