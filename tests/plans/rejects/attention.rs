//! Heads, tiles and views that attention refuses.

use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Diagnostic;
use cutemplate::recipe::{Attention, Recipe, family};
use cutemplate::settings::Settings;
use cutemplate::view::{ViewLayout, ViewRef};

use super::gemm::views_of;

fn rejected(settings: &str) -> Vec<Diagnostic> {
    rejected_for(Arch::Sm80, settings)
}

fn rejected_for(arch: Arch, settings: &str) -> Vec<Diagnostic> {
    let targets = Targets::new([arch]).expect("not empty");
    let family = family("attention").expect("registered");
    let refused = family.plan(&Settings::parse_lines(settings), Some("k"), &targets);
    refused.expect_err("refused").diagnostics().to_vec()
}

fn unbound(problem: [i64; 5], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    unbound_for(Arch::Sm80, problem, change)
}

fn unbound_for(arch: Arch, problem: [i64; 5], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let targets = Targets::new([arch]).expect("not empty");
    let plan = Attention { head: 64, lse: true, ..Attention::default() }.plan_as("k", &targets).expect("legal");
    let mut views = views_of(&plan, &problem);
    change(&mut views);
    plan.bind_with(&views, &[0.125]).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    let strided = |shape: [i64; 4], stride: [i64; 4]| ViewLayout::strided(&shape, &stride).expect("few elements");
    vec![
        ("heads of f32", rejected("dtype=f32")),
        ("keys of e5m2", rejected("dtype_kv=e5m2")),
        ("keys of another 16 bits", rejected("dtype_kv=bf16")),
        ("keys of e4m3 that are no whole vectors", rejected("dtype_kv=e4m3\nhead=72\nvalue=40")),
        ("heads of 12 and of 264", rejected("head=12\nvalue=264")),
        ("a mask that is none", rejected("mask=sliding")),
        ("48 queries for four warps", rejected("sm80_tile=48x64")),
        ("steps of 24 keys", rejected("sm80_tile=64x24")),
        ("no stage", rejected("sm80_stages=0")),
        ("more stages than shared memory has room for", rejected("sm80_stages=8")),
        ("more outputs than a thread has registers", rejected("head=256\nsm80_tile=128x32")),
        ("96 queries of warpgroups", rejected_for(Arch::Sm90a, "tile=96x64")),
        ("steps of 272 keys", rejected_for(Arch::Sm90a, "tile=64x272")),
        ("more scores than three warpgroups have registers", rejected_for(Arch::Sm90a, "head=64\ntile=192x192")),
        (
            "more outputs than a WGMMA of three warpgroups has",
            rejected_for(Arch::Sm90a, "head=16\nvalue=208\ntile=192x16"),
        ),
        ("more stages than one CTA has room for", rejected_for(Arch::Sm90a, "stages=4")),
        ("no CTA", rejected_for(Arch::Sm90a, "ctas=0")),
        ("pages of no key", rejected("paged=true\npage=0")),
        ("pages that steps do not fit, by TMA", rejected_for(Arch::Sm90a, "paged=true\npage=48\ntile=128x64")),
        (
            "keys that are all the same one, by TMA",
            unbound_for(Arch::Sm90a, [1, 5, 7, 2, 2], |v| v[1].layout = strided([1, 7, 2, 64], [0, 0, 64, 1])),
        ),
        ("a function of two scores", rejected("score=|s, b, h, q, k, x| s + x")),
        ("a bias without batches", rejected("score=|s, b, h, q, k, x| s + x\naux=f32:(?,?,1)")),
        ("a bias that is contiguous twice", rejected("varlen=true\nscore=|s, b, h, q, k, x| s + x\naux=f32:(?,1,1)")),
        (
            "a bias of batches where sequences lie one after the other, and splits of half a step",
            rejected("paged=true\nvarlen=true\nsplit=40\nscore=|s, b, h, q, k, x| s + x\naux=f32:(?,?,1)"),
        ),
        ("heads that are in no groups", unbound([1, 5, 7, 6, 4], |_| {})),
        ("queries without a head of keys", unbound([1, 5, 7, 6, 0], |_| {})),
        (
            "V with more keys than K",
            unbound([1, 5, 7, 2, 2], |v| v[2].layout = strided([1, 8, 2, 64], [1024, 128, 64, 1])),
        ),
        ("heads of 72", unbound([1, 5, 7, 2, 2], |v| v[0].layout = strided([1, 5, 2, 72], [720, 144, 72, 1]))),
        (
            "rows that lie along queries",
            unbound([1, 5, 7, 2, 2], |v| {
                v[0].layout = strided([1, 5, 2, 64], [640, 1, 320, 5]);
            }),
        ),
        (
            "rows that are not aligned",
            unbound([1, 5, 7, 2, 2], |v| {
                v[1].layout = strided([1, 7, 2, 64], [1000, 129, 64, 1]);
                v[3].ptr += 8;
            }),
        ),
        ("more keys than an index holds", unbound([1, 5, (1 << 29) + 1, 1, 1], |_| {})),
    ]
}

/// FlashAttention #2662: numbers of CTAs and offsets that pass 32 bits.
#[test]
fn long_contexts_are_bound() {
    let targets = Targets::new([Arch::Sm80]).expect("not empty");
    let plan = Attention { head: 64, ..Attention::default() }.plan_as("k", &targets).expect("legal");
    let grid = |problem: [i64; 5]| {
        let binding = plan.bind_with(&views_of(&plan, &problem), &[0.125]).ok()?;
        Some(binding.launches()[0].grid)
    };
    assert_eq!(grid([1, 1 << 20, 1 << 20, 32, 8]), Some([(1 << 13) * 32, 1, 1]));
    assert_eq!(grid([64, 1 << 20, 1 << 20, 32, 8]), Some([(1 << 13) * 32 * 64, 1, 1]));
    assert_eq!(grid([1 << 14, 1 << 20, 1, 32, 8]), None, "more CTAs than a grid has");
}
