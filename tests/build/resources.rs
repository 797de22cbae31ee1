//! Contract: what the catalogue's kernels take of a multiprocessor, compiled by the pinned nvcc, is what `../data/resources.txt`
//! says, beside what their plans predict. Worse fails, and so does better: then the file is tightened.
//!
//! `UPDATE_EXPECT=1 CUTEMPLATE_WHOLE=1 cargo test --test build resources::` writes the file; read its difference as a regression before it is committed.
#![cfg(all(target_os = "linux", feature = "build"))]

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler};
use cutemplate::emit::{Unit, render};
use cutemplate::model::H200;
use cutemplate::plan::{Entry, Plan};
use cutemplate::recipe::product::{Major, Problem};
use cutemplate::recipe::{Attention, FAMILIES, Gemm, Recipe};
use cutemplate::settings::Settings;
use cutlass_sys::Finder;

use crate::whole;

const PINNED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/resources.txt");

const HEAD: &str = "\
# What each entry of the catalogue's kernels takes, as the pinned nvcc compiles it.
# entry | architecture | registers estimated | registers, bytes spilled (stored, loaded), bytes of stack, bytes of static
#   shared memory | bytes of dynamic shared memory, blocks that a multiprocessor holds
";

/// The lines of one kernel, one for each entry and architecture.
fn lines(plan: &Plan, compiled: &Compiled) -> Vec<String> {
    // Memory whose size a launch says begins at 16 bytes, behind the rest: ptxas counts the gap for each entry of a text that has such memory.
    let of_text = if plan.entries().iter().any(|entry| entry.dynamic_smem.0 > 0) { 16 } else { 1 };
    let line = &|entry: &Entry, arch: &Arch| {
        let taken = compiled.manifest().entry_on(&entry.name, arch.name()).expect("compiled for it");
        assert_eq!(
            taken.smem,
            entry.smem.0.next_multiple_of(of_text),
            "static shared memory of {} on {arch}",
            entry.name
        );
        let predicted = entry.registers.map_or_else(|| "-".to_owned(), |registers| registers.to_string());
        format!(
            "{} | {arch} | {predicted} | {} {} {} {} {} | {} {}",
            entry.name,
            taken.registers,
            taken.spill_stores,
            taken.spill_loads,
            taken.stack,
            taken.smem,
            entry.dynamic_smem.0,
            entry.occupancy_with(*arch, taken.registers).blocks
        )
    };
    assert!(compiled.manifest().warnings.is_empty(), "nvcc on {}: {:?}", plan.name(), compiled.manifest().warnings);
    let entries = plan.entries().iter();
    entries.flat_map(|entry| plan.targets().archs().iter().map(move |arch| line(entry, arch))).collect()
}

/// The texts of the catalogue, and what they are made of.
pub(crate) fn whole_catalogue() -> Vec<(Plan, Unit)> {
    let entries = FAMILIES.iter().flat_map(|family| family.catalogue.iter().map(move |settings| (family, settings)));
    let plans = entries
        .map(|(family, settings)| family.usual_plan(&Settings::parse_lines(settings)).expect("a catalogue entry"));
    plans.flat_map(|plan| plan.texts().to_vec()).map(|part| (part.clone(), render(&part))).collect()
}

/// Those that this run compiles.
pub(crate) fn catalogue() -> Vec<(Plan, Unit)> {
    whole::first_of_each_template(whole_catalogue(), |(_, unit)| unit)
}

#[test]
fn the_catalogue_takes_what_is_pinned() {
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let parts = catalogue();
    let units: Vec<_> = parts.iter().map(|(part, unit)| (unit.clone(), part.targets().clone())).collect();
    let compiled = compiler.compile_all(&units).into_iter().map(|c| c.unwrap_or_else(|e| panic!("{e}")));
    let found: Vec<String> =
        parts.iter().zip(compiled).flat_map(|((part, _), compiled)| lines(part, &compiled)).collect();
    if whole::is_asked_for() && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PINNED, format!("{HEAD}{}\n", found.join("\n"))).expect("the file can be written");
    }
    let pinned = std::fs::read_to_string(PINNED).expect("tests/data/resources.txt");
    let pinned: Vec<&str> = pinned.lines().filter(|line| !line.starts_with('#')).collect();
    let key = |line: &str| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ");
    let mut wrong = Vec::new();
    for line in &found {
        match pinned.iter().find(|other| key(other) == key(line)) {
            Some(other) if other == line => {}
            Some(other) => wrong.push(format!("pinned: {other}\n   now: {line}")),
            None => wrong.push(format!("   new: {line}")),
        }
    }
    let gone = pinned.iter().filter(|line| found.iter().all(|other| key(other) != key(line)));
    let gone = gone.filter(|_| whole::is_asked_for());
    wrong.extend(gone.map(|line| format!("  gone: {line}")));
    assert!(
        wrong.is_empty(),
        "resources changed; UPDATE_EXPECT=1 CUTEMPLATE_WHOLE=1 pins what is found:\n{}",
        wrong.join("\n")
    );
}

/// Recipes of which nvcc 13.0 spilled: a batch mode, for the producer; C in clusters of 2x2, twice; elements of C that have an address each;
/// gelu beside 128 accumulators.
const SPILLED: &[(Arch, &str)] = &[
    (Arch::Sm90a, "batched=true\ntile=128x128x16\nstages=3\ncluster=2x1\ngroup=64\nctas=7"),
    (
        Arch::Sm90a,
        "dtype=tf32\nout=f32\nepilogue=|a, b; beta| fma(beta, b, relu(a))\na=col\nb=row\ntile=128x192x8\nstages=16\ncluster=2x2\nstream_k=1\nctas=4",
    ),
    (Arch::Sm90a, "epilogue=|a, b; beta| beta * b + relu(a)\ntile=128x240x64\ncluster=2x2"),
    (
        Arch::Sm90a,
        "dtype=bf16\nout=f32\nepilogue=relu(a + c)\nd=col\naux=f32:(?,1,?)\nbatched=true\ntile=64x256x32\nstages=3\nschedule=pingpong\ncluster=2x1",
    ),
    (
        Arch::Sm80,
        "dtype=tf32\nout=f32\nepilogue=|a, b, c; alpha, beta| gelu(alpha * a + beta * b + c)\nb=row\nd=col\naux=i8:(1,?)\ntile=64x64x8\nstages=16\ncluster=2x1\nsplit_k=2\nctas=66\nsm80_tile=256x128x32\nsm80_stages=2\nsm80_ctas=3",
    ),
];

/// What is tried for a problem, and what the record has, is all compiled without a message of ptxas that products wait for each other, and
/// keeps everything in registers.
#[test]
fn what_is_tried_for_products_is_compiled() {
    let problem = |[m, n, k]: [u64; 3]| Problem { b: Major::Col, ..Problem::rows(m, n, k) };
    let record = Gemm::record().expect("one of an H200");
    let sample = Gemm::choose(&problem([1024, 1024, 1024]), &H200, &record);
    assert_eq!(sample.cluster.0, [1, 1], "one that had such a message");
    // Whole rounds, a short K, few columns of tiles, few rows.
    let problems = [
        [4096, 4096, 4096],
        [8192, 8192, 128],
        [5656, 408, 6648],
        [600, 200, 9000],
        [72, 6144, 6144],
        [40, 28672, 512],
    ];
    let mut all = vec![(sample, Arch::Sm90a)];
    let tried = problems.iter().flat_map(|extents| Gemm::candidates(&problem(*extents), &H200));
    let recipe = |text: &str| Gemm::from_settings(&Settings::parse_lines(text)).expect("a recipe");
    let spilled = SPILLED.iter().map(|(arch, text)| (recipe(text), *arch));
    for one in tried.map(|recipe| (recipe, Arch::Sm90a)).chain(spilled) {
        if whole::is_asked_for() && !all.contains(&one) {
            all.push(one);
        }
    }
    assert!(all.len() > 60 || !whole::is_asked_for(), "{}", all.len());
    let units = all.iter().map(|(recipe, arch)| {
        let targets = Targets::new([*arch]).expect("an architecture");
        (render(&recipe.plan(&targets).expect("a recipe")), targets)
    });
    let units: Vec<_> = units.collect();
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let mut wrong = Vec::new();
    for ((recipe, _), compiled) in all.iter().zip(compiler.compile_all(&units)) {
        match compiled {
            Ok(compiled) if !compiled.manifest().spills() && !compiled.manifest().uses_local_memory() => {}
            Ok(compiled) => wrong.push(format!("{recipe:?}: {}", compiled.manifest())),
            Err(error) => wrong.push(format!("{recipe:?}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Windows with functions of scores, whose loops nvcc 13.0 did not inline by itself, so that MMAs were serialized. The last one held what
/// the rows of a column share for all columns, and spilled.
const CROWDED: &[&str] = &[
    "head=128\nscore=|s; cap| cap * tanh(s * (1 / cap))",
    "head=64\nscore=|s; cap| cap * tanh(s * (1 / cap))",
    "head=96\nvarlen=true\nscore=|s, b, h, q, k, slope| s + slope * (k - q)\naux=f32:(0,1,0)\nsinks=true",
    "head=128\nvarlen=true\npaged=true\npage=64\nscore=|s; cap| cap * tanh(s / cap)",
    "head=192\nscore=|s; cap| cap * tanh(s * (1 / cap))",
    "head=256\nvarlen=true\nscore=|s; cap| cap * tanh(s * (1 / cap))\nlse=true",
    "head=24\nvalue=32\nscore=|s, b, h, q, k, x, y, z| min(s, x * y) + z\naux=f16:(?,?,?,?), f32:(0,0,0,0), e4m3:(?,?,1,?)",
];

#[test]
fn windows_with_functions_of_scores_keep_everything_in_registers() {
    let targets = Targets::new([Arch::Sm90a]).expect("an architecture");
    let asked = if whole::is_asked_for() { CROWDED } else { &CROWDED[..1] };
    let recipes = asked.iter().map(|text| {
        let settings = Settings::parse_lines(&format!("dtype=bf16\nmask=window\n{text}"));
        Attention::from_settings(&settings).expect("a recipe")
    });
    let units: Vec<_> =
        recipes.map(|recipe| (render(&recipe.plan(&targets).expect("a recipe")), targets.clone())).collect();
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    for (text, compiled) in asked.iter().zip(compiler.compile_all(&units)) {
        let manifest = compiled.unwrap_or_else(|e| panic!("{text}: {e}")).manifest().clone();
        assert!(!manifest.spills() && !manifest.uses_local_memory(), "{text}: {manifest}");
    }
}
