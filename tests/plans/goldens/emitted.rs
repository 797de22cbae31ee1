//! The files that the kernels of the catalogue are emitted as.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cutemplate::bundle::{Embedded, rust_module};
use cutemplate::emit::render;
use cutemplate::plan::Plan;
use cutemplate::recipe::{FAMILIES, Family};
use cutemplate::settings::Settings;

/// Each file by its name.
pub(super) type Files = BTreeMap<String, String>;

/// The kernels of the catalogue, planned once for all tests that only read them.
pub(super) static CATALOGUE: LazyLock<Vec<Plan>> = LazyLock::new(catalogue);
/// Their files.
pub(super) static FILES: LazyLock<Files> = LazyLock::new(|| files(&CATALOGUE));

pub(super) fn catalogue() -> Vec<Plan> {
    let plan = |f: &Family, s: &str| f.usual_plan(&Settings::parse_lines(s));
    let all = FAMILIES.iter().flat_map(|f| f.catalogue.iter().map(move |s| plan(f, s).expect("a catalogue entry")));
    all.collect()
}

/// The C++ files of each text, and of each kernel its Rust module and its plan.
pub(super) fn files(plans: &[Plan]) -> Files {
    // nvcc's output is not golden: another version writes other bytes.
    let fatbin = Embedded::Fatbin { sha256: "<sha256 of the fatbin>" };
    let mut files = Files::new();
    for plan in plans {
        for file in plan.texts().iter().flat_map(|part| render(part).files().to_vec()) {
            files.insert(file.name, file.text);
        }
        files.insert(format!("{}.rs.txt", plan.name()), rust_module(plan, &mut std::iter::repeat(fatbin)));
        files.insert(format!("{}.plan.txt", plan.name()), format!("{plan}\n"));
    }
    files
}
