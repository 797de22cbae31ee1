//! Contract: a text is what its plan says, read off each by itself.

use std::collections::BTreeSet;
use std::fmt::Debug;

use cutemplate::plan::{Entry, Plan};

use super::emitted::{CATALOGUE, FILES, Files};
use super::text_facts::{Declared, Text};

/// The swizzle of the tile that packing transposes a factor through: a plan says only how much shared memory its entry has.
const PACKING: &str = "Sw<5,0,6>";

/// The swizzles that a plan names, of elements, and that of its packing.
fn swizzles(plan: &Plan) -> BTreeSet<String> {
    let transposes = plan.entries().iter().any(|entry| entry.function(plan.name()) == "pack" && entry.smem.0 > 0);
    let packing = transposes.then(|| PACKING.to_owned());
    let layouts = plan.shared().iter().map(|tensor| tensor.layout.as_str());
    let texts = layouts.chain(plan.facts().iter().map(|fact| fact.value.as_str()));
    let named = texts.flat_map(|text| text.split("Sw<").skip(1)).filter_map(|rest| rest.split('>').next());
    named.map(|numbers| format!("Sw<{numbers}>")).chain(packing).collect()
}

/// Registers of a thread of each role.
fn registers(plan: &Plan) -> BTreeSet<u64> {
    let roles = plan.facts().iter().filter(|fact| fact.name == "warps");
    let each =
        roles.filter_map(|fact| fact.value.strip_suffix(" registers a thread")?.rsplit(' ').next()?.parse().ok());
    each.collect()
}

/// The atoms of an architecture that a plan names: of its MMAs, and of the copies that threads do.
fn atoms(plan: &Plan) -> BTreeSet<&str> {
    let of_fact = |name: &'static str| plan.facts().iter().filter(move |fact| fact.name == name);
    let mmas = of_fact("mma").map(|fact| fact.value.as_str());
    let copies = of_fact("copies").filter_map(|fact| fact.why.split("; ").nth(1));
    let names = mmas.chain(copies.map(|engine| engine.strip_prefix("TiledCopy of ").unwrap_or(engine)));
    let name = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    names.map(|text| &text[..name(text)]).filter(|atom| atom.starts_with("SM")).collect()
}

/// An entry as the `.cu` of this plan has to declare it.
fn declared(entry: &Entry) -> Declared {
    let min_blocks = entry.min_blocks.map_or(String::new(), |blocks| format!(", {blocks}"));
    Declared {
        name: entry.name.clone(),
        bounds: format!("{}{min_blocks}", entry.threads),
        cluster: [entry.cluster, 1, 1],
    }
}

/// What a text says otherwise than its plan.
pub(super) fn disagreements(plan: &Plan, files: &Files) -> Vec<String> {
    let text = Text::of(plan.name(), files);
    let mut found = Vec::new();
    let mut same = |what: &str, of_plan: &dyn Debug, of_text: &dyn Debug| {
        let (of_plan, of_text) = (format!("{of_plan:?}"), format!("{of_text:?}"));
        if of_plan != of_text {
            found.push(format!("{}, {what}: the plan says {of_plan}, the text {of_text}", plan.name()));
        }
    };
    // The blocks of a cluster count: which way they lie is no fact of the entry.
    let blocks = |entries: Vec<Declared>| -> Vec<Declared> {
        let one = |entry: Declared| Declared { cluster: [entry.cluster.iter().product(), 1, 1], ..entry };
        entries.into_iter().map(one).collect()
    };
    same("entries", &plan.entries().iter().map(declared).collect::<Vec<_>>(), &blocks(text.entries()));
    let launch =
        |entry: &Entry| (entry.function(plan.name()).to_owned(), u64::from(entry.threads), entry.dynamic_smem.0);
    same("launches", &plan.entries().iter().map(launch).collect::<Vec<_>>(), &text.launches());
    let offsets = plan.params().fields().iter().map(|field| (field.name.clone(), field.offset)).collect::<Vec<_>>();
    same("parameters", &(Some(plan.params().size()), offsets), &text.parameters());
    let dynamic = plan.entries()[plan.kernel()].dynamic_smem.0;
    same("dynamic shared memory", &(dynamic > 0).then_some(dynamic), &text.shared_storage());
    same("swizzles", &swizzles(plan), &text.swizzles().into_iter().collect::<BTreeSet<_>>());
    same("registers of its warps", &registers(plan), &text.registers());
    let of_text = text.atoms();
    let missing = atoms(plan).into_iter().filter(|atom| !of_text.iter().any(|named| named.starts_with(atom)));
    same("atoms that the text does not name", &Vec::<&str>::new(), &missing.collect::<Vec<_>>());
    let banner = format!("// {}", plan.recipe());
    for (name, file) in [(".cuh", text.header), (".cu", text.entry), ("_params.h", text.params)] {
        same(&format!("recipe in {name}"), &Some(banner.as_str()), &file.lines().nth(1));
    }
    found
}

#[test]
fn each_text_is_what_its_plan_says() {
    let found: Vec<String> =
        CATALOGUE.iter().flat_map(|plan| plan.texts()).flat_map(|part| disagreements(part, &FILES)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A change that a text has, the file that it is in, and what it is found as.
const PLANTED: [(&str, &str, &str, &str); 9] = [
    ("gemm_f16_sm90a.cu", "__launch_bounds__(384, 1)", "__launch_bounds__(384, 2)", "entries"),
    ("gemm_f16_sm90a.cu", "__cluster_dims__(2, 1, 1)", "__cluster_dims__(1, 1, 1)", "entries"),
    ("gemm_f16_sm90a.cuh", "launch.kernel, 384, 230400", "launch.kernel, 384, 230384", "launches"),
    (
        "gemm_f16_sm90a.cuh",
        "sizeof(SharedStorage) == 230400",
        "sizeof(SharedStorage) == 230384",
        "dynamic shared memory",
    ),
    ("gemm_f16_sm90a.cuh", "warpgroup_reg_alloc<232>", "warpgroup_reg_alloc<240>", "registers of its warps"),
    ("gemm_f16_sm90a.cuh", "SM90_64x256x16_F32F16F16_SS", "SM90_64x128x16_F32F16F16_SS", "atoms"),
    ("gemm_f16_sm80.cuh", "Swizzle<3,3,3>", "Swizzle<2,3,3>", "swizzles"),
    ("gemm_f16_sm80_params.h", "lda) == ", "lda) == 1", "parameters"),
    ("gemm_f16_sm80.cuh", "stages: 4", "stages: 3", "recipe"),
];

#[test]
fn a_text_that_is_not_its_plan_is_found() {
    for (file, from, to, what) in PLANTED {
        let mut files = FILES.clone();
        let text = files.get_mut(file).expect(file);
        assert!(text.contains(from), "{file} has no `{from}`");
        *text = text.replacen(from, to, 1);
        let parts = CATALOGUE.iter().flat_map(|plan| plan.texts());
        let found: Vec<String> = parts.flat_map(|part| disagreements(part, &files)).collect();
        assert!(found.iter().any(|line| line.contains(what)), "{file}, {to}: {found:?}");
    }
}
