//! Contract: the emitted files of every kernel in the catalogue are those of before, byte for byte, in every process. The texts are
//! compiled by the `build` and `recipes` suites, so a golden is never only a picture.
//!
//! `tests/goldens` has some of the files whole; of the others it has the sha256, in a table with the facts that a reader checks. A run
//! that passes keeps all files in `target/tmp/goldens/kept`, and one that fails prints the diff against them.
//!
//! `UPDATE_EXPECT=1 cargo test --test plans goldens::` writes table and files; read them as a CuTe engineer would, and the diffs in
//! `target/tmp/goldens/changes.diff`.

mod agree;
mod compared;
mod emitted;
mod planted;
mod table;
mod text_facts;
mod whole;

use std::collections::BTreeSet;
use std::path::Path;

use cutemplate::emit::render;
use cutemplate::recipe::{FAMILIES, Gemm, Recipe};
use cutemplate::settings::Settings;

use compared::Goldens;
use emitted::{CATALOGUE, FILES};

#[test]
fn the_text_of_the_catalogue_is_golden() {
    let goldens = Goldens {
        golden: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens"),
        left: Path::new(env!("CARGO_TARGET_TMPDIR")).join("goldens"),
    };
    let (plans, files) = (&CATALOGUE, &FILES);
    let table = table::table(plans, files);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        goldens.update(&table, files);
    }
    if let Some(report) = goldens.compare(&table, files) {
        panic!("{report}");
    }
}

#[test]
fn no_two_kernels_of_the_catalogue_have_one_name() {
    let all = &CATALOGUE;
    let names: BTreeSet<&str> = all.iter().map(|plan| plan.name()).collect();
    assert_eq!(names.len(), all.len(), "{names:?}");
}

#[test]
fn long_default_names_end_in_a_digest() {
    let named = |cluster: &str| {
        let settings = "dtype=e4m3\ndtype_b=e5m2\nout=e4m3\npromote=128\nscale_a=1x128\nscale_b=128x128\nscale_d=1x128\n\
                        tile=64x128x128\nstages=2\nbatched=true";
        let settings = Settings::parse_lines(&format!("{settings}\ncluster={cluster}"));
        let gemm = Gemm::from_settings(&settings).expect("settings");
        let plan = gemm.plan(&gemm.usual_targets()).unwrap_or_else(|error| panic!("{error}"));
        (gemm.default_name(), plan.name().to_owned())
    };
    let [(long, one), (_, other)] = ["2x1", "1x2"].map(named);
    assert!(long.len() > 64 && one.len() <= 64 && long.starts_with(&one[..one.len() - 9]), "{long}: {one}");
    assert_ne!(one, other);
}

#[test]
fn every_template_belongs_to_a_family_or_to_all() {
    let shared = BTreeSet::from([
        "copy_all.cuh",
        "copy_all_if.cuh",
        "entry.cu",
        "params.h",
        "dispatch.rs",
        "ieee.cuh",
        "larger.cuh",
        "tensor.cuh",
        "launch",
        "launch.cuh",
        "partition.cuh",
        "round_all.cuh",
        "wgmma_shapes.cuh",
    ]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    for entry in std::fs::read_dir(folder).expect("templates") {
        let file = entry.expect("entry").file_name().into_string().expect("UTF-8");
        // One template, or a folder of them; what products share lies in `product`.
        let family = FAMILIES.iter().any(|f| file == format!("{}.cuh", f.name) || file == f.name);
        assert!(family || shared.contains(file.as_str()), "templates/{file} has no recipe");
    }
}

/// Copies of a text that CuTe would make of sizes that differ.
fn unchecked(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || "_:.".contains(c);
    let bare = |line: &str, call: &str| line.match_indices(call).any(|(at, _)| !line[..at].ends_with(is_name));
    text.lines().filter(|line| bare(line, "copy(") || bare(line, "copy_if(")).collect()
}

/// CuTe copies 32 elements into 16 without an error: a text copies by `copy_all`, which compares, or compares itself.
#[test]
fn every_copy_of_a_text_compares_both_sides() {
    assert_eq!(
        unchecked("  copy(a, b);\n  copy_all(a, b);\n  x::copy(a, b);\n  { copy_if(p, a, b); }"),
        ["  copy(a, b);", "  { copy_if(p, a, b); }"]
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut folders = vec![folder];
    let mut copies = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("templates") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            copies += text.matches("copy_all").count();
            let compares = text.contains("CUTE_STATIC_ASSERT_V(size(src) == size(dst), ");
            assert!(compares || unchecked(&text).is_empty(), "{}: {:?}", path.display(), unchecked(&text));
        }
    }
    assert!(copies > 40, "{copies}");
}

#[test]
fn settings_give_the_same_recipe_back() {
    for plan in &*CATALOGUE {
        let family = cutemplate::recipe::family(plan.family()).expect("registered");
        let text = plan.settings().to_string();
        let again = family.plan(&Settings::parse_lines(&text), None, plan.targets()).expect("its own settings");
        assert!(again.texts().iter().map(render).eq(plan.texts().iter().map(render)));
    }
}

#[test]
fn generated_text_has_no_path_and_no_host_conditional() {
    for plan in &*CATALOGUE {
        for file in plan.texts().iter().flat_map(|part| render(part).files().to_vec()) {
            assert!(!file.text.contains(env!("CARGO_MANIFEST_DIR")), "{} names a folder", file.name);
            // The one that is there tells the order of headers.
            let text = file.text.replace("#ifdef CUTE_HOST_DEVICE\n", "");
            assert!(!text.contains("__CUDA_ARCH__") && !text.contains("#ifdef"), "{}", file.name);
            assert!(file.text.starts_with("// @generated by cutemplate"), "{}", file.name);
            let ragged = file.text.lines().find(|line| line.ends_with(' '));
            assert_eq!(ragged, None, "{}: a line ends in a space", file.name);
            for line in file.text.lines().filter(|l| l.trim_start().starts_with("Tensor ")) {
                let start = file.text.find(line).unwrap_or(0);
                let statement = &file.text[start..start + file.text[start..].find(';').unwrap_or(0)];
                let end = start + statement.len();
                let rest = file.text[end..].lines().next().unwrap_or_default();
                assert!(rest.contains("// ("), "{}: no shape behind `{}`", file.name, line.trim());
            }
        }
    }
}
