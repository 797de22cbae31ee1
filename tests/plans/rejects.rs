//! Contract: bad input gets a diagnostic with a stable code, and its text is pinned. Every code has a reject here.
//!
//! `UPDATE_EXPECT=1 cargo test --test plans rejects::` writes the texts; read them as the user who made the mistake would.

mod append;
mod apply;
mod attention;
pub(crate) mod gemm;
mod own;
mod rows;
mod sgemm;
mod sum;
mod top_k;
mod w4a16;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cutemplate::arch::Targets;
use cutemplate::diagnostic::{Code, Diagnostic};
use cutemplate::dtype::DType;
use cutemplate::plan::{EntryLaunch, Plan};
use cutemplate::recipe::{ElementwiseAdd, Recipe, Sgemm, family};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};
use expect_test::expect_file;

fn rejected(name: &str, settings: &[&str]) -> Vec<Diagnostic> {
    let settings = Settings::parse_lines(&settings.join("\n"));
    let family = family("elementwise_add").expect("registered");
    family.plan(&settings, Some(name), &Targets::default()).expect_err("refused").diagnostics().to_vec()
}

fn plan() -> Plan {
    ElementwiseAdd::default().plan(&Targets::default()).expect("the default is legal")
}

/// A, B, C of (4,8) with ld 8 in f16, 256 bytes apart.
fn views() -> [ViewRef; 3] {
    [(0x1000, Access::Read), (0x1100, Access::Read), (0x1200, Access::Write)].map(|(ptr, access)| ViewRef {
        dtype: DType::F16,
        ptr,
        available: Elements(128),
        layout: ViewLayout::matrix([4, 8], 8),
        access,
    })
}

fn unbound(change: impl FnOnce(&mut [ViewRef; 3])) -> Vec<Diagnostic> {
    let mut views = views();
    change(&mut views);
    plan().bind(&views).expect_err("refused").diagnostics().to_vec()
}

fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    let huge = |v: &mut [ViewRef; 3], rows: i64, cols: i64| {
        for (i, view) in v.iter_mut().enumerate() {
            let ptr = 0x1000 + ((i as u64) << 60);
            *view =
                ViewRef { layout: ViewLayout::matrix([rows, cols], cols), ptr, available: Elements(1 << 58), ..*view };
        }
    };
    vec![
        ("an unknown key, with the nearest", rejected("k", &["dtyp=f32"])),
        ("an unknown key, nothing near", rejected("k", &["colour=red"])),
        (
            "values that cannot be read, all at once",
            rejected("k", &["dtype=f33", "thr=(4,64", "raster=z", "unroll=-1"]),
        ),
        ("two threads with one index", rejected("k", &["thr=(4,64):(0,1)"])),
        ("threads that are not numbered from 0", rejected("k", &["thr=(4,64):(128,2)"])),
        ("a thread layout of rank 1", rejected("k", &["thr=256:1"])),
        ("two values with one index", rejected("k", &["val=(16,16):(1,1)"])),
        ("a vector of 3 bytes", rejected("k", &["vector=3"])),
        ("a vector of 32 bytes", rejected("k", &["vector=32"])),
        ("a vector smaller than the type", rejected("k", &["dtype=f32", "vector=2"])),
        ("values down a column", rejected("k", &["dtype=f32", "val=(8,4):(4,1)", "vector=16"])),
        ("a last vector that is cut off", rejected("k", &["val=(3,8):(8,1)", "vector=16"])),
        ("vectors that leave their row", rejected("k", &["val=(2,12):(12,1)", "vector=8"])),
        ("too many threads", rejected("k", &["thr=(32,64):(64,1)"])),
        ("too many values in flight", rejected("k", &["val=(64,16):(16,1)", "unroll=64"])),
        (
            "too many threads for the registers",
            rejected("k", &["thr=(16,64):(64,1)", "val=(16,16):(16,1)", "unroll=16"]),
        ),
        ("bytes that are no whole elements", rejected("k", &["dtype=f32", "val=(16,6):(6,1)", "vector=4"])),
        ("unroll that leaves a rest", rejected("k", &["val=(16,16):(16,1)", "unroll=3"])),
        ("a tile of 2^23 elements", rejected("k", &["thr=(16,64):(64,1)", "val=(1024,16):(16,1)", "unroll=1"])),
        ("a name that is no identifier", rejected("vector-add", &[])),
        ("a keyword for a name", rejected("template", &[])),
        ("several mistakes at once", rejected("Template", &["vector=5", "thr=(4,64):(0,1)", "val=(16,16):(0,0)"])),
        ("a view too few", plan().bind(&views()[..2]).expect_err("refused").diagnostics().to_vec()),
        ("another type", unbound(|v| v[1].dtype = DType::F32)),
        ("an output that is not mutable", unbound(|v| v[2].access = Access::Read)),
        ("rows in one tensor alone", unbound(|v| v[0].layout = ViewLayout::matrix([0, 8], 8))),
        ("a negative extent", unbound(|v| v[2].layout = ViewLayout::matrix([4, -8], 8))),
        ("a leading dimension below N", unbound(|v| v[0].layout = ViewLayout::matrix([4, 8], 7))),
        ("a negative leading dimension", unbound(|v| v[0].layout = ViewLayout::matrix([4, 8], -8))),
        ("half an element off", unbound(|v| v[0].ptr += 1)),
        ("memory that ends early", unbound(|v| v[2].available = Elements(31))),
        ("a span beyond the address space", unbound(|v| v[0].layout = ViewLayout::matrix([i64::MAX, 8], i64::MAX))),
        ("C begins within A", unbound(|v| v[2].ptr = v[0].ptr + 16)),
        (
            "shapes that differ",
            unbound(|v| {
                v[0].layout = ViewLayout::matrix([3, 8], 8);
                v[1].layout = ViewLayout::matrix([4, 7], 8);
            }),
        ),
        ("more rows than an index holds", unbound(|v| huge(v, 1 << 31, 1))),
        ("more tiles than a grid holds", unbound(|v| huge(v, (1 << 31) - 100, 1 << 20))),
    ]
}

fn texts(rejects: Vec<(&'static str, Vec<Diagnostic>)>) -> String {
    let mut text = String::new();
    for (what, diagnostics) in rejects {
        assert!(!diagnostics.is_empty(), "{what}: refused without a reason");
        let _ = writeln!(text, "## {what}\n");
        for d in diagnostics {
            for part in [&d.recipe, &d.found, &d.required, &d.because, &d.help] {
                assert!(!part.trim().is_empty(), "{what}: a part is missing in\n{d}");
            }
            let _ = writeln!(text, "{d}\n");
        }
    }
    text
}

/// An entry has C linkage, as these functions have.
#[test]
fn names_of_functions_of_cuda_are_refused() {
    let plan = |name: &str| ElementwiseAdd::default().plan_as(name, &Targets::default());
    for name in ["norm", "sqrt", "expf", "rnorm3df"] {
        let refused = plan(name).expect_err(name).to_string();
        assert!(refused.contains("no function of CUDA"), "{refused}");
    }
    for name in ["rms_norm", "norms", "off"] {
        plan(name).expect(name);
    }
}

#[test]
fn every_refusal_says_what_was_found_required_why_and_what_helps() {
    expect_file!["rejects/texts.txt"].assert_eq(&texts(all()));
    expect_file!["rejects/apply.txt"].assert_eq(&texts(apply::all()));
    expect_file!["rejects/sgemm.txt"].assert_eq(&texts(sgemm::all()));
    expect_file!["rejects/gemm.txt"].assert_eq(&texts(gemm::all()));
    expect_file!["rejects/sum.txt"].assert_eq(&texts(sum::all()));
    expect_file!["rejects/rows.txt"].assert_eq(&texts(rows::all()));
    expect_file!["rejects/top_k.txt"].assert_eq(&texts(top_k::all()));
    expect_file!["rejects/attention.txt"].assert_eq(&texts(attention::all()));
    expect_file!["rejects/append.txt"].assert_eq(&texts(append::all()));
    expect_file!["rejects/w4a16.txt"].assert_eq(&texts(w4a16::all()));
    expect_file!["rejects/own.txt"].assert_eq(&texts(own::all()));
}

/// Codes that no recipe of today can reach, because an earlier check catches the cause; each with that check.
const SHADOWED: &[(Code, &str)] = &[
    (Code::CoversOnce, "compact thread and value layouts make a thread-value layout that covers the tile once"),
    (Code::InBounds, "likewise"),
    (Code::Family, "families of other crates have reasons of their own"),
];

#[test]
fn every_code_has_a_reject() {
    let rejects = all()
        .into_iter()
        .chain(apply::all())
        .chain(sgemm::all())
        .chain(gemm::all())
        .chain(sum::all())
        .chain(rows::all())
        .chain(top_k::all())
        .chain(attention::all())
        .chain(append::all())
        .chain(w4a16::all())
        .chain(own::all());
    let mut seen: BTreeSet<Code> = rejects.flat_map(|(_, d)| d).map(|d| d.code).collect();
    for (code, why) in SHADOWED {
        assert!(seen.insert(*code), "{code} is reached, so it is not shadowed ({why})");
    }
    let missing: Vec<_> = Code::ALL.iter().filter(|c| !seen.contains(c)).collect();
    assert!(missing.is_empty(), "no reject for {missing:?}");
}

#[test]
fn the_same_views_without_the_mistake_bind() {
    let binding = plan().bind(&views()).expect("legal");
    let launch = EntryLaunch { entry: 0, grid: [1, 1, 1], block: [256, 1, 1], dynamic_smem: 0, overlaps: false };
    assert_eq!(binding.launches(), [launch]);
    assert_eq!(binding.params().len(), plan().params().size());
}

/// No products to sum, no elements to write, and C in place of D are no mistakes.
#[test]
fn empty_products_bind() {
    for settings in ["variant=naive", "variant=pipelined", "variant=pipelined\nsplit_k=3", "variant=vectorized"] {
        let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
        let plan = recipe.plan_as("k", &Targets::default()).expect("a right recipe");
        let launches = |problem: &[i64], scalars: &[f64]| {
            let mut views = sgemm::views(&plan, problem);
            (views[2].ptr, views[2].layout) = (views[3].ptr, views[3].layout);
            let binding = plan.bind_with(&views, scalars).unwrap_or_else(|e| panic!("{settings}, {problem:?}: {e}"));
            (binding.launches().len(), binding.workspace().is_some())
        };
        let split = plan.entries().len() == 2;
        for problem in [[8, 6, 0], [8, 6, 4]] {
            assert_eq!(launches(&problem, &[0.0, 1.0]), (plan.entries().len(), split), "{settings}, {problem:?}");
        }
        for problem in [[0, 6, 4], [8, 0, 4], [0, 0, 0]] {
            assert_eq!(launches(&problem, &[1.0, 1.0]), (0, false), "{settings}, {problem:?}");
        }
    }
}

/// The tensor-core kernels likewise: a product of nothing is 0, and has no tensor map.
#[test]
fn empty_tensor_core_products_bind() {
    let plan = family("gemm").expect("registered").plan(&Settings::new(), None, &Targets::default()).expect("right");
    for part in plan.texts() {
        let bound = |problem| {
            let binding = part.bind(&gemm::views(part, problem)).unwrap_or_else(|e| panic!("{problem:?}: {e}"));
            (binding.launches().first().map(|l| l.grid), binding.tensor_maps().len())
        };
        let maps = part.params().fields().iter().filter(|f| f.name.starts_with("map_")).count();
        // Tiles of (128,128), or of (128,256) by clusters of two along M.
        let grid = Some([if part.entries()[part.kernel()].cluster == 1 { 4 } else { 2 }, 1, 1]);
        assert_eq!(bound([130, 136, 64]), (grid, maps));
        // Rows of D that begin anywhere are stored by another entry, without a map.
        assert_eq!(bound([130, 129, 64]), (grid, maps.min(2)));
        assert_eq!(bound([130, 129, 0]), (grid, 0));
        for problem in [[0, 6, 8], [8, 0, 8], [0, 0, 0]] {
            assert_eq!(bound(problem), (None, 0), "{problem:?}");
        }
    }
}

#[test]
fn halves_of_one_buffer_side_by_side_do_not_overlap() {
    let mut views = views();
    for (view, ptr) in views.iter_mut().zip([0x1000, 0x1010, 0x1020]) {
        *view = ViewRef { ptr, layout: ViewLayout::matrix([4, 8], 24), ..*view };
    }
    plan().bind(&views).expect("columns 0..8, 8..16 and 16..24 of one matrix");
}

#[test]
fn more_than_two_to_the_31_elements_bind() {
    let mut views = views();
    for (i, view) in views.iter_mut().enumerate() {
        let ptr = 0x1000 + ((i as u64) << 40);
        *view = ViewRef {
            layout: ViewLayout::matrix([1 << 20, 1 << 13], 1 << 13),
            ptr,
            available: Elements(1 << 33),
            ..*view
        };
    }
    let blocks = (1_u32 << 20) * ((1 << 13) / 8 / 256);
    assert_eq!(plan().bind(&views).expect("offsets are 64-bit").launches()[0].grid, [blocks, 1, 1]);
}
