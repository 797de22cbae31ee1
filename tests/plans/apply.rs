//! Contract: what a recipe of `elementwise_apply` is planned as does not depend on how it was written, and a launch binds
//! exactly where the kernel can be right: no output shares memory with another tensor, but in place.

use std::collections::BTreeSet;

use crate::kernels::apply::{drawn, systematic};
use crate::kernels::{Random, Tally, Tensors};
use crate::whole;
use cutemplate::arch::Targets;
use cutemplate::diagnostic::Code;
use cutemplate::dtype::DType;
use cutemplate::emit::render;
use cutemplate::plan::{ModeStride, Plan};
use cutemplate::recipe::elementwise_apply::Variant;
use cutemplate::recipe::{ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};

#[test]
fn settings_make_the_same_recipe_again() {
    for recipe in (0..3000).map(drawn).chain(systematic(1)) {
        let text = recipe.settings().to_string();
        let again =
            ElementwiseApply::from_settings(&Settings::parse_lines(&text)).unwrap_or_else(|e| panic!("{text}\n{e}"));
        assert_eq!(again, recipe, "{text}");
    }
}

/// Planning is total: a plan, or reasons of which each part says something.
#[test]
fn every_recipe_is_planned_or_refused_with_reasons() {
    let mut tally = Tally::default();
    let kernels = tally.plan("apply", (0..1200).map(|i| (i, drawn(i))), &Targets::default());
    for kernel in kernels.iter().step_by(7) {
        assert_eq!(render(&kernel.plan), kernel.unit, "{kernel}");
        assert!(!kernel.plan.to_string().is_empty());
    }
    for recipe in (0..whole::or(400, 150)).map(drawn) {
        let Err(error) = recipe.plan_as("k", &Targets::default()) else { continue };
        for d in error.diagnostics() {
            let parts = [&d.recipe, &d.found, &d.required, &d.because, &d.help];
            assert!(parts.iter().all(|part| !part.trim().is_empty()), "{d}");
        }
    }
    tally.finish("plans");
    let refused: usize = tally.refused.values().sum();
    assert!(refused * 10 > tally.recipes && refused * 2 < tally.recipes, "some are refused, most are not");
    for what in ["naive", "vectorized", "tv", "remapped", "transposed", "rank 1", "rank 5", "bool", "e4m3", "f64"] {
        assert!(tally.seen.get(what).is_some_and(|n| *n > 40), "{what} is drawn");
    }
}

/// What a recipe has of each setting, in words.
fn kinds(recipe: &ElementwiseApply) -> Vec<String> {
    let ElementwiseApply { function, inputs, outputs, compute, variant, threads, vector, unroll, .. } = recipe;
    let mut kinds = vec![
        format!("{} inputs", inputs.len()),
        format!("{} outputs", outputs.len()),
        format!("{} scalars", function.scalars().len()),
        format!("compute {}", compute.map_or("auto", |c| c.name())),
        format!("variant {variant}"),
        format!("vector {}", vector.0),
        format!("unroll {}", if *unroll > 4 { "beyond".into() } else { unroll.to_string() }),
    ];
    kinds.push(match threads {
        0 => "threads 0".into(),
        1..32 => "threads below a warp".into(),
        1024 => "threads 1024".into(),
        n if n % 32 != 0 => "threads not of whole warps".into(),
        n if n.is_power_of_two() => "threads a power of two".into(),
        _ => "threads of other whole warps".into(),
    });
    for (side, specs) in [("input", inputs), ("output", outputs)] {
        for spec in specs {
            let rank = spec.strides.len();
            kinds.push(format!("{side} {}", spec.dtype));
            let unit = spec.strides.iter().position(|s| *s == ModeStride::Unit);
            kinds.push(format!("{side} of rank {rank} contiguous along {unit:?}"));
            let zeros = spec.strides.iter().filter(|s| **s == ModeStride::Broadcast).count();
            kinds.push(format!("{side} of rank {rank} broadcast along {zeros}"));
        }
    }
    if matches!(variant, Variant::Tv | Variant::Remapped) {
        for (key, layout) in [("thr", &recipe.thr_layout), ("val", &recipe.val_layout_bytes)] {
            let flat = layout.to_string().matches(',').count() == 2;
            let along_n = layout.mode(1).expect("a mode N").stride().to_string();
            let order = match along_n.trim_matches(['(', ')']).split(',').any(|stride| stride == "1") {
                true => "along N first",
                false => "along M first",
            };
            let size = if (layout.size() as u64).is_power_of_two() { "a power of two" } else { "another size" };
            kinds.extend([if flat { "flat" } else { "nested" }, order, size].map(|what| format!("{key} {what}")));
        }
    }
    let text = function.to_string();
    let words = text.split(|c: char| c.is_whitespace() || "(),;".contains(c)).filter(|w| !w.is_empty());
    kinds.extend(words.map(|word| format!("word {word}")));
    kinds
}

/// A setting whose values are drawn from some of those that can be typed hides a defect in the others.
#[test]
fn every_kind_of_every_setting_is_drawn_and_accepted() {
    let mut accepted: BTreeSet<String> = BTreeSet::new();
    let mut in_place = 0;
    for recipe in (0..3000).map(drawn) {
        let kinds = kinds(&recipe);
        if in_place > 0 && kinds.iter().all(|kind| accepted.contains(kind)) {
            continue;
        }
        if let Ok(plan) = recipe.plan_as("k", &Targets::default()) {
            accepted.extend(kinds);
            in_place += usize::from(plan.operands().iter().any(|o| o.in_place));
        }
    }
    let mut wanted: Vec<String> = Vec::new();
    let mut want = |what: &str, values: &[&str]| wanted.extend(values.iter().map(|value| format!("{what} {value}")));
    want("compute", &["auto", "f32", "f64", "i32"]);
    want("variant", &Variant::ALL.iter().map(|v| v.name()).collect::<Vec<_>>());
    want("vector", &["0", "1", "2", "4", "8", "16"]);
    want("unroll", &["0", "1", "2", "3", "4", "beyond"]);
    want("threads", &["0", "below a warp", "not of whole warps", "a power of two", "of other whole warps", "1024"]);
    for key in ["thr", "val"] {
        want(key, &["flat", "nested", "along N first", "along M first", "a power of two", "another size"]);
    }
    for side in ["input", "output"] {
        want(side, &DType::ALL.iter().map(|d| d.name()).collect::<Vec<_>>());
    }
    want("word", &["let", "-", "+", "*", "/", "<", "<=", ">", ">=", "==", "&&", "||", "inf", "-inf", "nan", "-0"]);
    let one = ["abs", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "relu", "sigmoid"];
    want("word", &one);
    want("word", &["silu", "gelu", "gelu_tanh", "min", "max", "pow", "fma", "select", "cast", "saturate"]);
    want("word", &DType::ALL.iter().map(|d| d.name()).collect::<Vec<_>>());
    wanted.extend((0..=8).map(|n| format!("{n} inputs")));
    wanted.extend((1..=4).map(|n| format!("{n} outputs")));
    wanted.extend((0..=16).map(|n| format!("{n} scalars")));
    for rank in 1..=5 {
        let along = (0..rank).map(Some).chain([None]);
        for side in ["input", "output"] {
            wanted.extend(along.clone().map(|mode| format!("{side} of rank {rank} contiguous along {mode:?}")));
        }
        wanted.extend((0..=rank).map(|zeros| format!("input of rank {rank} broadcast along {zeros}")));
    }
    let missing: Vec<&String> = wanted.iter().filter(|kind| !accepted.contains(*kind)).collect();
    assert!(missing.is_empty() && in_place > 0, "never accepted: {missing:?}\n{in_place} in place of {accepted:#?}");
}

/// Whatever the strides, addresses and extents of a legal launch are, it binds.
#[test]
fn legal_problems_bind() {
    let kernels = Tally::default().plan("apply", (0..whole::or(600, 400)).map(|i| (i, drawn(i))), &Targets::default());
    let mut in_place = 0;
    for kernel in &kernels {
        for problem in kernel.problems(3, 3000) {
            let tensors = Tensors::new(&kernel.plan, &problem);
            let bound = kernel.plan.bind_with(&tensors.views(&problem), &problem.scalars);
            assert!(bound.is_ok(), "{kernel}\n  {problem}\n{}", bound.map(|_| ()).expect_err("refused"));
            in_place += usize::from(problem.is_in_place());
        }
    }
    assert!(in_place > 100, "{in_place} in place");
}

/// What is chosen leaves room for the registers of the threads, few or many.
#[test]
fn an_unroll_that_is_chosen_fits() {
    for settings in [
        "variant=tv\nthr=(16,64):(64,1)",
        "variant=vectorized\nthreads=1024\nexpr=a + b + c + d + e + f\ndtype=u8",
        "variant=remapped\nthr=(1,1024):(0,1)\nval=(1,4096):(0,1)\ndtype=u8",
    ] {
        planned(settings);
    }
}

fn planned(settings: &str) -> Plan {
    let recipe = ElementwiseApply::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as("k", &Targets::default()).expect("a right recipe")
}

fn bytes(view: &ViewRef) -> BTreeSet<u64> {
    let item = view.dtype.bytes().0;
    let (shape, stride) = (view.layout.shape(), view.layout.stride());
    let offsets = shape.iter().zip(stride).fold(vec![0_i64], |all, (extent, stride)| {
        all.iter().flat_map(|at| (0..*extent).map(move |c| at + c * stride)).collect()
    });
    offsets.iter().flat_map(|at| (0..item).map(move |b| view.ptr + *at as u64 * item + b)).collect()
}

/// Two tensors anywhere near each other: where the launch binds, they share no byte, or are in place of each other.
#[test]
fn what_binds_shares_no_memory_but_in_place() {
    let random = &mut Random::new(20, 0);
    let (mut bound, mut in_place, mut refused, mut cautious) = (0, 0, 0, 0);
    for rank in 1..=5 {
        let strides = vec!["?"; rank].join(",");
        let plan = planned(&format!("expr=a\nin=f16:({strides})\nout=f16:({strides})"));
        for _ in 0..4000 {
            let shape: Vec<i64> = (0..rank).map(|_| random.pick(&[1, 2, 3])).collect();
            let layout = |random: &mut Random| {
                let mut order: Vec<usize> = (0..rank).collect();
                random.shuffle(&mut order);
                let (mut stride, mut next) = (vec![0; rank], 1);
                for mode in order {
                    stride[mode] = next + random.pick(&[0, 0, 1, 4]);
                    next = stride[mode] * shape[mode];
                }
                ViewLayout::strided(&shape, &stride).expect("rank 1 to 5")
            };
            let read = layout(random);
            let written = if random.chance(50) { read } else { layout(random) };
            let near = 2 * (random.below(24) as u64);
            let view =
                |ptr, layout, access| ViewRef { dtype: DType::F16, ptr, available: Elements(1 << 20), layout, access };
            let ptr = 0x1000 + if random.chance(20) { 24 } else { near };
            let views = [view(0x1018, read, Access::Read), view(ptr, written, Access::Write)];
            let same = (views[0].ptr, views[0].layout) == (views[1].ptr, views[1].layout);
            let meet = !bytes(&views[0]).is_disjoint(&bytes(&views[1]));
            match plan.bind(&views) {
                Ok(_) => {
                    assert!(same || !meet, "{} and {} share memory", views[0], views[1]);
                    bound += 1;
                    in_place += usize::from(same);
                }
                Err(error) => {
                    assert!(error.diagnostics().iter().all(|d| d.code == Code::ViewOverlap), "{error}");
                    assert!(!same, "in place: {error}");
                    refused += 1;
                    cautious += usize::from(!meet);
                }
            }
        }
    }
    println!("{bound} bound, {in_place} of them in place; {refused} refused, {cautious} of them share no byte");
    assert!(bound > 500 && in_place > 100 && refused > 500);
}

/// In place means the very elements: one address, one type, the same strides; and not through shared memory.
#[test]
fn in_place_is_the_same_elements_of_the_same_type() {
    let rows = ViewLayout::matrix([8, 8], 8);
    let view = |dtype, ptr, layout, access| ViewRef { dtype, ptr, available: Elements(64), layout, access };
    let bind = |settings: &str, read: (DType, u64, ViewLayout), dtype: DType| {
        let views = [view(read.0, read.1, read.2, Access::Read), view(dtype, 0x1000, rows, Access::Write)];
        planned(settings).bind(&views).map_err(|e| e.diagnostics().iter().map(|d| d.code).collect::<Vec<_>>())
    };
    let overlap = Err(vec![Code::ViewOverlap]);
    for variant in ["naive", "vectorized", "tv", "remapped"] {
        let same = format!("expr=a\nin=f32:(?,1)\nout=f32:(?,1)\nvariant={variant}");
        assert!(bind(&same, (DType::F32, 0x1000, rows), DType::F32).is_ok(), "{variant}");
        let other = format!("expr=a\nin=i32:(?,1)\nout=f32:(?,1)\ncompute=f32\nvariant={variant}");
        assert_eq!(
            bind(&other, (DType::I32, 0x1000, rows), DType::F32).map(|_| ()),
            overlap,
            "{variant}: another type"
        );
    }
    let column = ViewLayout::strided(&[8, 8], &[1, 8]).expect("a matrix");
    for variant in ["vectorized", "transposed"] {
        let turned = format!("expr=a\nin=f32:(1,?)\nout=f32:(?,1)\nvariant={variant}");
        let refused = bind(&turned, (DType::F32, 0x1000, column), DType::F32).map(|_| ());
        assert_eq!(refused, overlap, "{variant}: another place for each element");
    }
}

/// A view of a compact tensor, `place` tebibytes from 0.
fn far(place: u64, layout: ViewLayout, access: Access) -> ViewRef {
    ViewRef { dtype: DType::U8, ptr: place << 40, available: Elements(1 << 40), layout, access }
}

fn binds(settings: &str, layout: ViewLayout) -> Result<(), Vec<Code>> {
    let views = [far(1, layout, Access::Read), far(2, layout, Access::Write)];
    planned(settings).bind(&views).map(|_| ()).map_err(|e| e.diagnostics().iter().map(|d| d.code).collect())
}

/// Whether modes are merged or not, an extent is refused only where coordinates do not fit in 32 bits.
#[test]
fn tensors_bind_up_to_the_last_coordinate_that_an_index_holds() {
    let too_large = Err(vec![Code::ProblemTooLarge]);
    let rows = |variant: &str| format!("expr=a\nin=u8:(?,1)\nout=u8:(?,1)\nvariant={variant}");
    // As one mode it would be too long; as two it is not.
    for extents in [[1 << 15, (1 << 16) - 1], [1 << 16, 1 << 15], [1 << 20, 1 << 14]] {
        let layout = ViewLayout::matrix(extents, extents[1]);
        for variant in ["vectorized", "tv", "remapped"] {
            assert_eq!(binds(&rows(variant), layout), Ok(()), "{variant} {layout}");
        }
    }
    let line = "expr=a\nin=u8:1\nout=u8:1\nvariant=vectorized";
    let last = i64::from(i32::MAX) - 2 * 16;
    let of = |extent: i64| ViewLayout::strided(&[extent], &[1]).expect("rank 1");
    assert_eq!((binds(line, of(last)), binds(line, of(last + 1))), (Ok(()), too_large.clone()));
    // A tile of (1,3 * 2^20): the last one must not reach past the last 32-bit integer.
    let wide = "expr=a\nin=u8:(?,1)\nout=u8:(?,1)\nvariant=tv\nthr=(1,1024):(0,1)\nval=(1,3072):(0,1)";
    let last = i64::from(i32::MAX) - 3 * (1 << 20);
    let of = |extent: i64| ViewLayout::matrix([2, extent], extent);
    assert_eq!((binds(wide, of(last)), binds(wide, of(last + 1))), (Ok(()), too_large));
}

/// Any power of two of threads turns tiles, for vectors of any width and several inputs, without bank conflicts for a warp and more.
#[test]
fn tiles_are_turned_by_any_power_of_two_of_threads() {
    for (dtype, size) in [("i8", 1), ("f16", 2), ("f32", 4), ("f64", 8)] {
        for inputs in 1..=3 {
            let names = ["a", "b", "c"][..inputs].join(" + ");
            let list = vec![format!("{dtype}:(1,?)"); inputs].join(", ");
            let vectors = [1, 2, 4, 8, 16].into_iter().filter(|vector| *vector >= size);
            for (vector, threads) in vectors.flat_map(|v| (3..=10).map(move |bit| (v, 1 << bit))) {
                let settings = format!(
                    "expr={names}\nin={list}\nout={dtype}:(?,1)\nvariant=transposed\nthreads={threads}\nvector={vector}"
                );
                let recipe = ElementwiseApply::from_settings(&Settings::parse_lines(&settings)).expect("settings");
                let plan = recipe.plan_as("k", &Targets::default()).unwrap_or_else(|e| panic!("{settings}\n{e}"));
                let conflicts: u64 = plan.shared().iter().map(|tile| tile.extra()).sum();
                assert!(conflicts == 0 || threads < 32, "{settings}\n{plan}");
            }
        }
    }
}
