#[path = "../../../../tests/support/place.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the integration tests use all of it")]
mod place;

use super::*;
use crate::plan::tests::two_passes;
use place::Place;

#[test]
fn dependency_files_are_read_as_make_would() {
    let text = "k.fatbin : k.cu \\\n    /usr/include/a.h \\\n    /with\\ space/b.h \\\n    k_params.h\n";
    assert_eq!(dependencies(text), [PathBuf::from("/usr/include/a.h"), PathBuf::from("/with space/b.h")]);
}

#[test]
fn every_entry_is_reported_on_every_architecture() {
    let unit = emit::render(&two_passes());
    let place = Place::new("good");
    let manifest = place.compiler().compile(&unit, &Targets::default()).expect("compiles").manifest().clone();
    let rows: Vec<(&str, &str)> = manifest.resources.iter().map(|r| (r.arch.as_str(), r.entry.as_str())).collect();
    let (first, second) = ("two_passes", "two_passes_reduce");
    assert_eq!(rows, [("sm_80", first), ("sm_80", second), ("sm_90a", first), ("sm_90a", second)]);
    assert_eq!(manifest.on("sm_80"), manifest.entry_on(first, "sm_80"));
    assert!(manifest.to_string().contains("? B SASS of two_passes_reduce\n  sm_90a"), "{manifest}");

    let place = Place::new("first");
    let error = place.compiler().compile(&unit, &Targets::default()).expect_err("an entry is missing").to_string();
    assert!(error.contains("there is no body of entry two_passes_reduce"), "{error}");
}
