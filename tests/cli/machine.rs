//! Contract: what `bench`, `cache` and `doctor` say of a machine, one without a GPU too.

use std::process::Command;

use expect_test::expect;

use crate::tool::{bad, objects, text, tool};

#[test]
fn a_bench_without_a_gpu_says_so() {
    let rungs = ["bench", "sgemm", "--variant", "naive", "--variant", "pipelined", "--problem", "64x64x64"];
    for (arguments, what) in [
        (&["bench", "sgemm"][..], "a bench needs a GPU"),
        (&["bench", "sgemm", "--set", "conflicts=allow", "--ladder", "--problem", "64x64x64"], "a bench needs a GPU"),
        (&rungs, "a bench needs a GPU"),
        (&["bench", "gemm"], "a bench needs a GPU"),
        (&["tune", "sgemm", "--problem", "64x64x64"], "tuning needs a GPU"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        // Hides a GPU that is there.
        let output = command.args(arguments).env("CUDA_VISIBLE_DEVICES", "-1").output().expect("the tool runs");
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{said}");
        assert!(said.contains(&format!("error: {what}; no GPU: ")), "{said}");
    }
    // What is measured against a copy is counted first.
    for (arguments, names) in [
        (&["elementwise_add", "--problem", "16384x8192"][..], &["elementwise_add_f16"][..]),
        (&["elementwise_apply", "--ladder"], &["naive", "vectorized", "tv", "remapped"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        let output = command.arg("bench").args(arguments).env("CUDA_VISIBLE_DEVICES", "-1").output();
        let (rows, said) = output.map(|o| (text(&o.stdout), text(&o.stderr))).expect("the tool runs");
        let row = "16384x8192: 805.306 MB read and written; baseline: a device copy of as many bytes";
        let of: Vec<&str> = rows.lines().filter_map(|line| line.strip_suffix(row)?.strip_suffix(' ')).collect();
        assert_eq!(of.len(), rows.lines().count(), "{rows}");
        assert!(of.iter().zip(names).all(|(found, name)| found.ends_with(name)) && of.len() == names.len(), "{rows}");
        assert!(said.contains("error: a bench needs a GPU; no GPU: "), "{said}");
    }
}

/// Before a GPU is looked for.
#[test]
fn a_bench_of_nothing_that_is_a_product_is_refused_in_words() {
    bad(
        &["bench", "sgemm", "--problem", "64x64"],
        1,
        expect![[r#"
        error: --problem 64x64 has 2 extents, required 3: MxNxK
    "#]],
    );
    bad(
        &["bench", "sgemm", "--fill", "specials"],
        1,
        expect![[r#"
        error: --fill specials: cuBLAS's product must be finite to check by; `cutemplate run` takes any
    "#]],
    );
    bad(
        &["bench", "sgemm", "--variant", "naive", "--variant", "coalesced", "--name", "k"],
        1,
        expect![[r#"
        error: --name k: found several kernels, required one
    "#]],
    );
    bad(
        &["tune", "elementwise_add", "--problem", "64x64x64"],
        1,
        expect![[r#"
        error: `elementwise_add` has no candidates to tune; those that have are sgemm, gemm
    "#]],
    );
    bad(
        &["bench", "elementwise_add", "--ladder"],
        1,
        expect![[r#"
        error: --ladder: `elementwise_add` has no rungs; those that have are elementwise_apply, sgemm
    "#]],
    );
    bad(
        &["bench", "sgemm", "--variant", "fastest"],
        1,
        expect![[r#"
        error: --variant fastest: `sgemm` has the rungs naive, coalesced, smem_tiled, block_1d, block_2d, vectorized, warp_tiled, pipelined
    "#]],
    );
    bad(
        &["bench", "sgemm", "--set", "tile=0x64x8", "--variant", "naive"],
        1,
        expect![[r#"
        error[CT015]: the tile is empty or too large
          recipe:   Sgemm { epilogue: |a, b; alpha, beta| alpha * a + beta * b, a: row, b: row, batched: false, variant: naive, tile: 0x64x8, thread_tile: 1x1, smem_a: pad0, smem_b: pad0, conflicts: warn, min_blocks: 0 } for sm_80, sm_90a
          found:    BM = 0
          required: 1 to 1024 elements
          because:  one block computes a tile; larger tiles do not fit in shared memory
          help:     tile=128x128x16 thread=8x8
    "#]],
    );
    for (arguments, why) in [
        (&["elementwise_add", "--random", "5"][..], "--random: `elementwise_add` chooses no recipe by problem"),
        (&["gemm", "--set", "batched=true", "--random", "5"], "--random: found batched=true, required problems MxNxK"),
        (&["sgemm", "--fit"], "--fit: `sgemm` is not persistent: no tile, cluster and ctas"),
        (&["elementwise_add", "--sustained", "3"], "--sustained is for products; `elementwise_add` is none"),
        (&["elementwise_add", "--ceilings"], "--ceilings is for products; `elementwise_add` is none"),
        (&["gemm", "--random", "5", "--fill", "specials"], "--fill specials: cuBLAS's product must be finite"),
    ] {
        let output = tool(&[&["bench"], arguments].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.starts_with(&format!("error: {why}")), "{arguments:?}: {said}");
    }
    bad(
        &["bench", "sgemm", "--variant", "naive", "--scalar", "gamma=1", "--problem", "4x4x4", "--ld", "3"],
        1,
        expect![[r#"
            error: leading dimension 3 is smaller than a row of A with strides (?,1) in --problem 4x4x4
        "#]],
    );
}

#[test]
fn the_cache_is_listed_measured_and_pruned() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("kernels/0123456789");
    std::fs::create_dir(folder.path().join("kernels")).expect("made");
    std::fs::write(&program, [0; 3000]).expect("written");
    let age = std::time::SystemTime::now() - std::time::Duration::from_secs(31 * 24 * 3600);
    std::fs::File::open(&program).and_then(|file| file.set_modified(age)).expect("set");
    let cache = |arguments: &[&str]| -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        let output = command.arg("cache").args(arguments).env("CUTEMPLATE_CACHE_DIR", folder.path()).output();
        let output = output.expect("the tool runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let object =
        |arguments: &[&str]| -> serde_json::Value { serde_json::from_str(&cache(arguments)).expect("an object") };
    assert!(cache(&["list"]).starts_with("kernel        2.9 KiB   31 days idle  "), "{}", cache(&["list"]));
    let entry = object(&["list", "--json"]);
    assert_eq!((&entry["entry"]["kind"], &entry["entry"]["days_idle"]), (&"kernel".into(), &31.into()));
    assert_eq!(object(&["size", "--json"])["kinds"]["kernel"], serde_json::json!({ "entries": 1, "bytes": 3000 }));
    assert!(cache(&["size"]).contains("\n  kernel          1    2.9 KiB\n"), "{}", cache(&["size"]));
    assert_eq!(cache(&["prune", "--max-size", "3K"]), "removed 0 entries of 0 B, 2.9 KiB are left\n");
    assert_eq!(cache(&["prune", "--older-than", "32"]), "removed 0 entries of 0 B, 2.9 KiB are left\n");
    assert_eq!(cache(&["prune"]), "removed 1 entry of 2.9 KiB, 0 B are left\n");
    assert!(!program.exists());
    assert_eq!(object(&["prune", "--json"])["left_bytes"], 0);
    bad(
        &["cache", "prune", "--max-size", "2P"],
        2,
        expect![[r#"
        error: invalid value '2P' for '--max-size <SIZE>': found `2P`, required bytes, or a number with K, M, G or T, for example 2G

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn doctor_lists_every_part() {
    let rows = objects(&["doctor", "--json"]);
    let parts: Vec<&str> = rows.iter().filter_map(|r| r["part"]["name"].as_str()).collect();
    assert!(parts.contains(&"CUTLASS") && parts.contains(&"nvcc") && parts.contains(&"C++ compiler"), "{parts:?}");
    assert!(rows.iter().any(|r| r.get("gpu").is_some()));
}

/// Exit 1 tells of what building or running a kernel needs, and of nothing that only tests need.
#[test]
fn doctor_is_content_without_what_only_tests_need() {
    let run = |vars: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        command.args(["doctor", "--json"]).envs(vars.iter().copied());
        let output = command.output().expect("the tool runs");
        let rows: Vec<serde_json::Value> =
            text(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
        let part = |name: &str| rows.iter().map(|r| &r["part"]).find(|p| p["name"] == name).expect("a part").clone();
        (output.status.code(), ["libclang", "C++ compiler"].map(part))
    };
    let (code, [libclang, cxx]) = run(&[("LIBCLANG_PATH", "/no/such/library")]);
    assert_eq!((&libclang["state"], &libclang["tests_only"]), (&"wrong".into(), &true.into()), "{libclang}");
    assert_eq!((code, &cxx["state"]), (Some(0), &"found".into()));
    let (code, [_, cxx]) = run(&[("CXX", "/no/such/compiler")]);
    assert_eq!((code, &cxx["state"], &cxx["tests_only"]), (Some(1), &"wrong".into(), &false.into()));
}
