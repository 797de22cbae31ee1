//! Contract: five lines of build.rs leave a fatbin, a manifest and a Rust module; every refusal is told at once; a second
//! run touches nothing; without a CUDA toolkit a build fails, or makes the stubs that it was asked for;
//! what it was made of is watched.
#![cfg(all(unix, feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use crate::place::Place;
use cutemplate::arch::Arch;
use cutemplate::build::{Config, Error};
use cutemplate::dtype::DType;
use cutemplate::recipe::{ElementwiseAdd, Sgemm};
use cutemplate::units::Bytes;
use cutlass_sys::{Env, Finder};
use expect_test::expect;

fn add(dtype: DType) -> ElementwiseAdd {
    ElementwiseAdd { dtype, ..Default::default() }
}

fn config(place: &Place) -> Config {
    Config::new()
        .finder(place.finder(&[]))
        .out_dir(place.root.join("out"))
        .recipe("one", &add(DType::F16))
        .recipe("two", &add(DType::F32))
}

/// Name, time of the last change and content of every file in the output directory.
fn out(place: &Place) -> BTreeMap<String, (SystemTime, Vec<u8>)> {
    let entries = fs::read_dir(place.root.join("out")).unwrap().map(|entry| entry.unwrap());
    let row = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, (entry.metadata().unwrap().modified().unwrap(), fs::read(entry.path()).unwrap()))
    };
    entries.map(row).collect()
}

#[test]
fn a_build_leaves_text_fatbin_manifest_and_module() {
    let place = Place::new("good");
    let built = config(&place).try_compile().unwrap();
    assert_eq!(built.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let files = out(&place);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "cutemplate.rs",
        "one.abi.json",
        "one.cu",
        "one.cuh",
        "one.fatbin",
        "one.json",
        "one.ptx",
        "one_params.h",
        "two.abi.json",
        "two.cu",
        "two.cuh",
        "two.fatbin",
        "two.json",
        "two.ptx",
        "two_params.h",
    ];
    assert_eq!(names, expected);
    let module = String::from_utf8(files["cutemplate.rs"].1.clone()).unwrap();
    assert!(module.contains("pub mod one {") && module.contains("pub mod two {"), "{module}");
    let manifest: cutemplate::build::Manifest = serde_json::from_slice(&files["one.json"].1).unwrap();
    assert_eq!(Some(&manifest), built[0].manifest.as_ref());
    assert_eq!(files["one.fatbin"].1.len() as u64, manifest.fatbin.bytes);
    assert_eq!(built[0].fatbin, Some(place.root.join("out/one.fatbin")));
    assert!(module.contains(&format!("sha256: \"{}\"", manifest.fatbin.sha256)), "{module}");

    // Not a byte and not a time changes, so nothing that depends on these files is built again.
    config(&place).try_compile().unwrap();
    assert_eq!(out(&place), files);
    assert_eq!(place.runs().len(), 4, "PTX and machine code of each");
}

#[test]
fn architectures_are_those_that_are_asked_for() {
    let place = Place::new("good");
    let built = config(&place).arch(Arch::Sm89).arch(Arch::Sm80).try_compile().unwrap();
    assert_eq!(built[0].manifest.as_ref().unwrap().targets, ["sm_80", "sm_89"]);
}

#[test]
fn an_architecture_is_left_out_where_a_kernel_cannot_be_had() {
    let place = Place::new("good");
    let pipelined = config(&place).recipe("product", &Sgemm::default()).arch(Arch::Sm80).arch_if_possible(Arch::Sm75);
    let built = pipelined.try_compile().unwrap();
    let targets = |name: &str| {
        let kernel = built.iter().find(|kernel| kernel.name == name).unwrap();
        kernel.manifest.as_ref().unwrap().targets.clone()
    };
    assert_eq!(targets("one"), ["sm_75", "sm_80"]);
    assert_eq!(targets("product"), ["sm_80"]);
    // Who asks for it is told why there is none.
    let refused = config(&place).recipe("product", &Sgemm::default()).arch(Arch::Sm75).try_compile().unwrap_err();
    assert!(refused.to_string().contains("CT028"), "{refused}");
}

#[test]
fn all_refused_recipes_are_told_and_nothing_is_written() {
    let place = Place::new("good");
    let bad = ElementwiseAdd { vector: Bytes(3), ..add(DType::F16) };
    let Err(Error::Plan(refused)) = config(&place).recipe("three", &bad).recipe("four", &bad).try_compile() else {
        panic!("refused")
    };
    assert_eq!(refused.diagnostics().len() % 2, 0, "both recipes are told of");
    assert!(refused.diagnostics().len() >= 2);
    assert!(!place.root.join("out").exists());
    assert_eq!(place.runs(), [""; 0]);
}

#[test]
fn one_name_for_two_kernels_is_refused() {
    let place = Place::new("good");
    let error = config(&place).recipe("one", &add(DType::F32)).try_compile().unwrap_err();
    assert!(matches!(&error, Error::NameTwice { name } if name == "one"), "{error}");
}

#[test]
fn every_kernel_that_nvcc_refuses_is_told() {
    let place = Place::new("refuse");
    crate::place::write(&place.root.join("cuda/bin/says"), "error: no\n");
    let Err(Error::Several(errors)) = config(&place).try_compile() else { panic!("refused") };
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("nvcc refused one") && texts[1].contains("nvcc refused two"), "{texts:?}");
    // The text is there to be read beside the message.
    assert!(place.root.join("out/one.cuh").exists());
    assert!(!place.root.join("out/one.fatbin").exists());
}

#[test]
fn tensor_cores_that_wait_are_an_error() {
    let place = Place::new("serial");
    let Err(Error::Several(errors)) = config(&place).try_compile() else { panic!("refused") };
    expect![[r#"
        error[build]: ptxas makes the tensor cores of one wait
          found:    (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized in 'one'
          required: WGMMA that runs while the next is asked for, and no message C75xx of ptxas
          because:  the kernel would be right, and slow: each instruction would wait for the one before it
          help:     nvcc 13.0, or another tile; with nvcc 13.0 this is a defect of cutemplate's text, please report it"#]]
    .assert_eq(&errors[0].to_string());
    assert!(!place.root.join("out/one.fatbin").exists());
}

#[test]
fn spills_are_an_error_where_they_are_denied() {
    let place = Place::new("warn");
    // A warning at first.
    config(&place).try_compile().unwrap();
    let Err(Error::Several(errors)) = config(&place).deny_spills(true).try_compile() else { panic!("refused") };
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expect![[r#"
        error[build]: one spills registers
          found:    one on sm_80: 8 bytes stored and 0 loaded by each thread, with 24 registers
                    one on sm_90a: 8 bytes stored and 0 loaded by each thread, with 24 registers
          required: no spills, as the recipe or Config::deny_spills asks
          because:  spilled values go through local memory, which is as slow as DRAM where it leaves the caches
          help:     fewer values for each thread, fewer threads in a block, or allow spills"#]]
    .assert_eq(&texts[0]);
    assert!(texts[1].starts_with("error[build]: two spills registers\n"), "{}", texts[1]);
    // What does not spill is not refused.
    config(&Place::new("good")).deny_spills(true).try_compile().unwrap();
}

/// Neither a toolkit nor leave to fetch one.
fn nothing(place: &Place) -> Finder {
    let path = std::env::var_os("PATH").unwrap();
    let cache = place.root.join("cache").into_os_string();
    Finder::new(Env::from_pairs([("PATH", path), ("CUTEMPLATE_CACHE_DIR", cache)]))
}

#[test]
fn without_a_toolkit_there_is_an_error_or_a_stub_that_was_asked_for() {
    let place = Place::new("good");
    config(&place).try_compile().unwrap();
    let error = config(&place).finder(nothing(&place)).try_compile().unwrap_err();
    assert!(matches!(error, Error::NoToolchain { .. }), "{error}");
    expect![[r#"
        error[fetch-not-allowed]: CUTLASS and nvcc not found, and fetching is not allowed
          found:    CUTLASS_PATH is not set, and no include/cute/tensor.hpp is in the usual places
                    NVCC, CUDA_HOME and CUDA_PATH are not set, and no new enough nvcc is on PATH or in the usual places; nothing is cached, and CUTEMPLATE_FETCH is not 1
          required: CUTLASS 4.2.0 or newer
                    nvcc of CUDA 12.0.0 or newer
          because:  the kernels one, two of this crate are compiled when it is built: without, it would fail where it runs
          help:     set CUTLASS_PATH to a checkout; install the CUDA toolkit, or set CUDA_HOME to its root; or set CUTEMPLATE_FETCH=1 to download the pinned, verified wheels once
                    for `cargo check` and documentation CUTEMPLATE_STUB=1 builds without kernels; in build.rs, Config::optional() does where a tool is missing"#]]
    .assert_eq(&error.to_string());
    assert!(out(&place).contains_key("one.fatbin"), "an error leaves what there was");

    let stub = |config: Config, why: &str| {
        let built = config.try_compile().unwrap();
        assert_eq!(built.iter().map(|b| (&b.fatbin, &b.manifest)).collect::<Vec<_>>(), [(&None, &None); 2]);
        let files = out(&place);
        assert!(
            !files.contains_key("one.fatbin") && !files.contains_key("one.json"),
            "those of the earlier build are gone"
        );
        let module = String::from_utf8(files["cutemplate.rs"].1.clone()).unwrap();
        assert!(module.contains(&format!("Code::Stub {{ why: \"{why}")) && !module.contains("Fatbin"), "{module}");
    };
    stub(config(&place).finder(nothing(&place)).optional(), "CUTLASS and nvcc not found");
    config(&place).try_compile().unwrap();
    stub(config(&place).finder(place.finder(&[("CUTEMPLATE_STUB", "1")])), "CUTEMPLATE_STUB=1 was set");
    config(&place).finder(place.finder(&[("CUTEMPLATE_STUB", "0")])).try_compile().unwrap();
    stub(config(&place).finder(place.finder(&[("DOCS_RS", "1")])), "it was built for documentation");
    // A wrong variable is never taken for a missing toolkit.
    for config in [config(&place), config(&place).optional()] {
        let error = config.finder(place.finder(&[("NVCC", "/nowhere/nvcc")])).try_compile().unwrap_err();
        assert!(error.to_string().starts_with("error[variable]: NVCC=/nowhere/nvcc is not usable"), "{error}");
    }
}

#[test]
fn outside_of_cargo_a_directory_has_to_be_named() {
    let place = Place::new("good");
    let error = Config::new().finder(place.finder(&[])).recipe("one", &add(DType::F16)).try_compile().unwrap_err();
    assert!(matches!(error, Error::Variable { name: "OUT_DIR", .. }), "{error}");
}

#[test]
fn cargo_is_told_when_to_build_again_and_what_to_warn_of() {
    let place = Place::new("warn");
    let output = place.child("config::as_a_build_script").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("cargo::")).collect();
    for expected in [
        "cargo::rerun-if-env-changed=CUDA_HOME".to_owned(),
        "cargo::rerun-if-env-changed=PATH".to_owned(),
        "cargo::rerun-if-env-changed=CPATH".to_owned(),
        "cargo::rerun-if-env-changed=CUTEMPLATE_STUB".to_owned(),
        format!("cargo::rerun-if-changed={}", place.root.join("cuda/bin/../include/cuda_runtime_api.h").display()),
        "cargo::rerun-if-env-changed=CUTEMPLATE_FETCH".to_owned(),
        format!("cargo::rerun-if-changed={}", place.root.join("cuda/bin/nvcc").display()),
        format!("cargo::rerun-if-changed={}", place.root.join("cutlass/include/cutlass/version.h").display()),
        "cargo::warning=one: one.cuh(3): warning #177-D: variable \"x\" was declared but never referenced".to_owned(),
    ] {
        assert_eq!(lines.iter().filter(|line| **line == expected).count(), 1, "{expected}\n{text}");
    }
    assert!(text.contains("cargo::warning=one keeps values in slow local memory; "), "{text}");
    // A path that is not there would make cargo run the script at every build.
    for path in lines.iter().filter_map(|line| line.strip_prefix("cargo::rerun-if-changed=")) {
        assert!(std::path::Path::new(path).exists(), "{path}");
    }
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn as_a_build_script() {
    let Some(place) = Place::of_parent() else { return };
    let out = place.root.join("out");
    let finder = place.finder(&[("OUT_DIR", out.to_str().unwrap())]);
    // On a line of its own: the harness has begun one.
    println!();
    Config::new().finder(finder).recipe("one", &add(DType::F16)).compile();
}

#[test]
fn a_build_makes_a_match_of_the_record() {
    let place = Place::new("good");
    let record: cutemplate::recipe::product::Record = "sgemm\n\
        GPU\n\
        512x512x512 row row | variant=block_2d | 1 1\n\
        4096x4096x4096 row row | variant=naive | 1 1\n\
        1024x1024x1024 row row | variant=block_2d | 1 1\n"
        .parse()
        .expect("a record");
    let built = Config::new().finder(place.finder(&[])).out_dir(place.root.join("out")).dispatch("product", &record);
    let built = built.try_compile().expect("builds");
    let names: Vec<&str> = built.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["product_0", "product_1"], "a recipe is compiled once");
    let text = fs::read_to_string(place.root.join("out").join("cutemplate.rs")).expect("written");
    let (_, dispatch) = text.split_once("pub mod product {").expect("the module");
    for (problem, kernel) in [(0, 0), (1, 1), (2, 0)] {
        let arm = format!("{problem} => ::core::option::Option::Some({kernel}),");
        assert!(dispatch.contains(&arm), "{arm}: {dispatch}");
    }
    assert!(dispatch.contains("pub use super::product_0::{Recipe, args};"), "{dispatch}");
}

/// A recipe's epilogue is in every kernel; what differs between them is chosen.
#[test]
fn a_build_chooses_kernels_of_a_recipe_for_problems() {
    use cutemplate::model::H200;
    use cutemplate::recipe::product::{Major, Problem};
    use cutemplate::recipe::{Gemm, Sum};
    let layer = Gemm::of(DType::Bf16).unwrap().bias(|x| x.gelu());
    let problem = |m| Problem { b: Major::Col, ..Problem::rows(m, 4096, 4096) };
    let place = Place::new("good");
    let problems = [16, 8192, 8191, 24].map(problem);
    let out = place.root.join("out");
    let base = || Config::new().finder(place.finder(&[])).out_dir(&out);
    let built = base().dispatch_by_model("layer", &layer, &H200, &problems).try_compile().expect("builds");
    assert!(built.len() >= 4, "a text for each generation of each kernel: {}", built.len());
    for built in &built {
        assert_eq!(built.plan.operands().len(), 4, "{}", built.plan);
        assert_eq!(built.plan.settings().get("epilogue"), Some("|a, bias| gelu(a + bias)"));
        assert_eq!(built.plan.settings().get("dtype"), Some("bf16"));
    }
    let text = fs::read_to_string(out.join("cutemplate.rs")).expect("written");
    let (_, dispatch) = text.split_once("pub mod layer {").expect("the module");
    assert!(dispatch.contains("pub use super::layer_0::{Recipe, args};"), "{dispatch}");
    assert!(text.contains("chosen for NVIDIA H200"), "{text}");

    // A family without a choice, and a recipe that no candidate is a kernel with.
    let sums = base().dispatch_by_model("sums", &Sum::default(), &H200, &problems).try_compile().unwrap_err();
    assert!(sums.to_string().contains("a family of matrix products with a model or a record"), "{sums}");
    let wrong = Gemm { out: DType::F16, ..layer };
    let wrong = base().dispatch_by_model("layer", &wrong, &H200, &problems).try_compile().unwrap_err();
    assert!(wrong.to_string().contains("required: f32 or bf16"), "{wrong}");
}
