//! Programs, tensors, schedules and views that the family `rows` refuses.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Recipe, Rows, family};
use cutemplate::settings::Settings;
use cutemplate::view::{ViewLayout, ViewRef};

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    let family = family("rows").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &Targets::default());
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound<const N: usize>(
    settings: &str,
    problem: [i64; N],
    change: impl FnOnce(&mut Vec<ViewRef>),
) -> Vec<Diagnostic> {
    let recipe = Rows::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let plan = recipe.plan(&Targets::default()).expect("legal");
    let mut views = views_of(&plan, &problem);
    change(&mut views);
    plan.bind(&views).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    let two = "expr=|x, t| (x - mean(x), t * max(x))\nin=f32:(?,1), f32:1\nout=f32:(?,1), f32:1";
    vec![
        ("a reduction of a reduction", rejected("expr=sum(a - sum(sum(a)))")),
        ("a reduction of a group's values", rejected("expr=a - max(max_group128(a))")),
        ("one output too many", rejected("expr=a - sum(a)\nout=f32:(?,1), f32:1")),
        ("an input of three modes", rejected("expr=a - sum(a)\nin=f32:(?,?,1)\nout=f32:(?,1)")),
        ("an output of elements as a vector", rejected("expr=a - sum(a)\nout=f32:1")),
        ("an output that repeats", rejected("expr=a - sum(a)\nout=f32:(0,1)")),
        ("no tensor of elements", rejected("expr=sum(col() * a)\nin=f32:1\nout=f32:1")),
        ("no columns", rejected("columns=0")),
        ("columns that no registers hold", rejected("expr=a - max(a)\nin=f64:(?,1)\ncolumns=1000000\nhold=registers")),
        ("columns that need a cluster", rejected("expr=a - max(a)\nin=f32:(?,1)\ncolumns=100000\nhold=registers")),
        ("a cluster of 3", rejected("cluster=3")),
        ("a cluster on an architecture that has none", rejected("cluster=2")),
        ("96 threads of a row", rejected("threads=96")),
        ("too few threads for a group", rejected("expr=max_group128(a)\nin=bf16:(?,1)\nthreads=4")),
        ("a result of columns that is read", rejected("expr=a - sum_column(a)\nin=f32:(?,1)")),
        ("a result of columns as a matrix", rejected("expr=sum_column(a)\nin=f32:(?,1)\nout=f32:(?,1)")),
        ("a reduction that columns lack", rejected("expr=argmax_column(a)\nin=f32:(?,1)")),
        ("CTAs that share no rows", rejected("ctas=8")),
        ("stages without columns", rejected("stages=2")),
        ("no stages", rejected("preset=column_sums\nstages=0")),
        ("stages that no shared memory holds", rejected("preset=rms_norm_backward\nstages=16")),
        ("rows ahead of their index", rejected("preset=column_sums\ngather=dy\nstages=2")),
        ("an index for an input that is none", rejected("gather=y")),
        ("an index for one row", rejected("preset=rms_norm\ngather=w")),
        ("an index for values of rows", rejected("preset=cross_entropy\ngather=target")),
        ("no CTAs that share rows", rejected("preset=column_sums\nctas=0")),
        ("a cluster where columns are reduced", rejected("preset=column_sums\ncluster=2")),
        ("columns of rows that are read again", rejected("preset=column_sums\nhold=memory")),
        ("too few chunks", rejected("columns=4096\nthreads=32\nchunks=2\nhold=registers")),
        ("a row value ahead of what it is made of", rejected("expr=|x| { let m = sum(x - n); let n = max(x); m + n }")),
        ("a CTA with a part of a row", rejected("threads=256\nblock=128\nhold=memory")),
        ("a cluster for rows that are read again", rejected("cluster=2\nhold=memory")),
        ("groups of rows that are read again", rejected("expr=max_group128(a)\nin=bf16:(?,1)\nhold=memory")),
        ("a place that is none", rejected("hold=cache")),
        ("rows that are too wide", unbound("columns=1000", [3, 1025], |_| {})),
        ("more rows than an index holds", unbound("columns=8", [i64::from(i32::MAX), 1], |_| {})),
        (
            "a vector of another length",
            unbound(two, [3, 5], |v| v[1].layout = ViewLayout::strided(&[5], &[1]).expect("small")),
        ),
        ("an output over an input's values of rows", unbound(two, [3, 5], |v| v[3].ptr = v[1].ptr)),
        ("two outputs in one place", unbound("expr=|x| (x - max(x), x - min(x))", [3, 5], |v| v[2].ptr = v[1].ptr)),
        (
            "fewer indices than rows",
            unbound("gather=x", [3, 5, 7], |v| v[1].layout = ViewLayout::strided(&[2], &[1]).expect("small")),
        ),
        ("an output over a table", unbound("gather=x", [3, 5, 3], |v| v[2].ptr = v[0].ptr)),
        ("an output over a part of an input", unbound(two, [3, 5], |v| v[2].ptr = v[0].ptr + 4)),
    ]
}
