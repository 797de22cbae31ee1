//! Contract: what `list`, `check` and `emit` print and write.

use std::process::Output;

use expect_test::expect;

use crate::tool::{bad, good, objects, text, tool};

#[test]
fn list_names_every_family_and_setting() {
    let listed = good(&["list"]);
    let rows = objects(&["list", "--json"]);
    assert_eq!(rows.len(), cutemplate::recipe::FAMILIES.len());
    for row in rows {
        assert!(listed.contains(row["family"].as_str().expect("a name")));
        for setting in row["settings"].as_array().expect("settings") {
            assert!(listed.contains(setting["key"].as_str().expect("a key")), "{setting}");
        }
    }
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    assert!(listed.ends_with("\n\ncutemplate list gemm  the settings of gemm with defaults and examples\n"));
}

#[test]
fn list_of_a_family_tells_defaults_and_functions() {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for family in cutemplate::recipe::FAMILIES {
        let listed = good(&["list", family.name]);
        let row = &objects(&["list", family.name, "--json"])[0];
        for setting in row["settings"].as_array().expect("settings") {
            let default = match setting["default"].as_str() {
                Some("") => "none",
                Some(default) => default,
                None => "as the others tell",
            };
            assert!(
                listed.contains(&format!("  {} [{default}]\n", setting["key"].as_str().expect("a key"))),
                "{listed}"
            );
            assert!(one_line(&listed).contains(setting["doc"].as_str().expect("a doc")), "{setting}");
        }
        let functions = row["functions"].as_array().expect("functions");
        assert_eq!(functions.is_empty(), ["elementwise_add", "top_k", "attention", "append"].contains(&family.name));
        assert!(functions.iter().all(|f| listed.contains(f.as_str().expect("a function"))), "{listed}");
    }
    let shown = good(&["list", "sum"]);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    expect![[r#"
        sum
          sums along rows of any function of 1 to 8 matrices, in f32

          expr [a]
            the function of inputs a to h, or as |x, bias| names them; run-time scalars
            as in |a, b; alpha|
            -s 'expr=a * b'

          in [f32:(?,1)]
            type and strides of each input, (M,N): 1 contiguous, 0 broadcast, ? given at
            launch
            -s 'in=f16:(?,1), f32:(0,1)'

          out [f32]
            type of the sums
            -s 'out=f32'

          by [warp]
            threads that add up a row: warp, block
            -s 'by=warp'

          threads [256]
            threads of a block: a multiple of 32, a power of two by block
            -s 'threads=256'

          expressions have + - * / and comparisons, && || !, `let t0 = ..;`, and
            abs(x), exp(x), exp2(x), log(x), log2(x), sqrt(x), rsqrt(x), sin(x), cos(x),
            tanh(x), erf(x), relu(x), sigmoid(x), silu(x), gelu(x), gelu_tanh(x),
            min(x, y), max(x, y), pow(x, y), cast(type, x), clamp(x, low, high),
            fma(x, y, z), recip(x), saturate(type, x), select(condition, x, y), sum(x),
            mean(x), prod(x), max(x), min(x), any(condition), all(condition), argmax(x),
            argmin(x), col(), width()
    "#]]
    .assert_eq(&shown);
    bad(
        &["list", "gem"],
        1,
        expect![[r#"
        error: there is no kernel family `gem`; did you mean `gemm`?
    "#]],
    );
}

#[test]
fn layout_help_lists_operations_with_their_arguments() {
    let all = good(&["layout", "help"]);
    assert!(cutemplate::algebra_tool::ops().all(|op| all.contains(&format!("{}({})\n", op.name, op.usage))), "{all}");
    assert_eq!(good(&["layout", "help complement"]), "complement(layout [, integer or shape])\n");
    bad(
        &["layout", "help complemnt"],
        1,
        expect![[r#"
        error: apply: Invalid argument
          found:    operation `complemnt`
          required: the name of an operation
          help:     the nearest name is `complement`
    "#]],
    );
}

#[test]
fn ages_of_the_cache_have_units() {
    bad(
        &["cache", "prune", "--older-than", "7m"],
        2,
        expect![[r#"
        error: invalid value '7m' for '--older-than <AGE>': found `7m`, required days, or a number with h, d or w, for example 7d

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn names_that_nobody_declared_are_refused_with_a_hint() {
    bad(
        &["check", "gemm", "--set", "epilogue=relu(alpha * a)"],
        1,
        expect![[r#"
            error[CT002]: the value of a setting cannot be read
              recipe:   gemm
              found:    epilogue=relu(alpha * a)
                                      ^^^^^
              required: an input (a to h), a part named by `let`, or a function with `(`
              because:  epilogue: the function of the accumulator, of C's element and of auxiliary elements, in this order, that gives D, or D and E; they are a, b, c, .. unless it names them
              help:     inputs and run-time scalars are declared in front: |a, alpha| .. or |a; alpha| ..
        "#]],
    );
    bad(
        &["check", "gemm", "--set", "epilogue=relu(C)"],
        1,
        expect![[r#"
            error[CT002]: the value of a setting cannot be read
              recipe:   gemm
              found:    epilogue=relu(C)
                                      ^
              required: an input (a to h), a part named by `let`, or a function with `(`
              because:  epilogue: the function of the accumulator, of C's element and of auxiliary elements, in this order, that gives D, or D and E; they are a, b, c, .. unless it names them
              help:     inputs are small letters, a for the first
        "#]],
    );
}

#[test]
fn check_prints_the_plan_or_every_diagnostic() {
    let plan = good(&["check", "elementwise_add", "--arch", "sm_90a", "--set", "raster=n"]);
    assert!(plan.contains("((64,4),8):((32,1),4)") && plan.contains("(4,512)"), "{plan}");
    let json = objects(&["check", "elementwise_add", "--json"]);
    assert_eq!(json[0]["plan"]["texts"][0]["entries"][0]["threads"], 256);

    let output = tool(&["check", "elementwise_add", "--json", "--set", "vector=5", "--set", "thr=(4,64):(0,1)"]);
    assert_eq!(output.status.code(), Some(1));
    let codes: Vec<String> = text(&output.stdout)
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("an object")["error"]["code"].to_string())
        .collect();
    assert_eq!(codes, ["\"CT005\"", "\"CT003\""]);
}

/// Four parts of K: the products, then the kernel that adds them up.
#[test]
fn check_shows_every_entry_of_a_plan_and_of_a_launch() {
    let split = ["check", "sgemm", "--set", "split_k=4", "--set", "tile=64x128x16", "--set", "stages=3"];
    let rows = objects(&[&split[..], &["--problem", "256x256x4096", "--json"]].concat());
    let (plan, launch) = (&rows[0]["plan"]["texts"][0]["entries"], &rows[1]["launch"]);
    let names = |entries: &serde_json::Value| -> Vec<String> {
        entries.as_array().expect("entries").iter().map(|e| e["name"].as_str().expect("a name").to_owned()).collect()
    };
    let expected = ["sgemm_pipelined_tt_64x128x16_split4", "sgemm_pipelined_tt_64x128x16_split4_reduce"];
    assert_eq!(
        (names(plan), names(&launch["entries"])),
        (expected.map(Into::into).into(), expected.map(Into::into).into())
    );
    // A tile of A and one of B for each stage, in f32, and nothing for the sums.
    assert!(plan[0]["smem_bytes"].as_u64() >= Some(3 * 4 * (64 + 128) * 16), "{plan}");
    assert_eq!((&plan[0]["dynamic_smem_bytes"], &plan[1]["smem_bytes"]), (&plan[0]["smem_bytes"], &0.into()));
    assert_eq!(launch["entries"][0]["grid"], serde_json::json!([2, 4, 4]));
    assert_eq!(launch["entries"][0]["block"], serde_json::json!([128, 1, 1]));
    assert_eq!(launch["entries"][0]["dynamic_smem_bytes"], plan[0]["dynamic_smem_bytes"]);
    assert_eq!(launch["entries"][1]["grid"], serde_json::json!([256, 1, 1]));
    assert_eq!(launch["workspace_bytes"], 4 * 4 * 256 * 256);
    let said = good(&[&split[..], &["--problem", "256x256x4096"]].concat());
    assert!(said.contains("_reduce: 256 x 1 x 1 blocks of 256 x 1 x 1 threads"), "{said}");
    assert!(said.contains("workspace: 1048576 B"), "{said}");
    // A short launch begins early, and a long one does not.
    let early = ["1024x1024x1024", "8192x8192x8192"].map(|problem| {
        let args = ["check", "gemm", "--arch", "sm_90a", "--problem", problem];
        let rows = objects(&[&args[..], &["--json"]].concat());
        let overlaps = rows[1]["launch"]["entries"][0]["overlaps"].as_bool().expect("true or false");
        assert_eq!(
            good(&args).contains("B of dynamic shared memory, begins while the kernel before it ends"),
            overlaps
        );
        overlaps
    });
    assert_eq!(early, [true, false]);
}

/// A request a warp for its whole vectors; the warp whose last vector ends past the row makes one more for each of the 7 elements.
#[test]
fn check_predicts_every_family() {
    for family in cutemplate::recipe::FAMILIES {
        let problem = family.problem.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        if ["attention", "append", "top_k", "w4a16"].contains(&family.name) {
            let told = text(&tool(&["check", family.name, "--problem", &problem]).stderr);
            assert!(told.contains(&format!("there is no model of `{}` yet", family.name)), "{told}");
            continue;
        }
        let rows = objects(&["check", family.name, "--problem", &problem, "--json"]);
        let prediction = rows.last().expect("a prediction");
        assert!(prediction["seconds"].as_f64().is_some_and(|s| s > 0.0), "{}: {prediction}", family.name);
    }
    for (ld, problem, requests, sectors) in
        [("512", "1024x512", 1024 * 512 / 8 / 32, 1024 * 512 / 16), ("512", "1024x511", 1024 * (1 + 1 + 7), 0)]
    {
        let rows = objects(&["check", "elementwise_add", "--problem", problem, "--ld", ld, "--json"]);
        let traffic = rows.last().expect("a prediction")["prediction"]["traffic"].as_array().expect("operands").clone();
        let names: Vec<_> = traffic.iter().map(|t| t["operand"].as_str().expect("a name")).collect();
        assert_eq!(names, ["A", "B", "C"]);
        for t in &traffic {
            assert_eq!(t["requests"], requests, "{problem}: {t}");
            assert!(sectors == 0 || t["sectors"] == sectors, "{problem}: {t}");
        }
    }
    let said = good(&["check", "elementwise_add", "--problem", "16384x8192"]);
    assert!(
        said.contains("predicted for 16384x8192\n") && said.contains("limit: bandwidth of device memory"),
        "{said}"
    );
}

/// One prediction for each architecture, with the waves of each entry; a text of one architecture has one.
#[test]
fn check_predicts_for_each_architecture() {
    let of = |arguments: &[&str]| -> Vec<(String, f64)> {
        let rows = objects(&[&["check", "--json"], arguments].concat());
        let predictions = rows.iter().filter(|row| row.get("prediction").is_some());
        let one = |row: &serde_json::Value| {
            (row["machine"].as_str().expect("a name").to_owned(), row["waves"][0].as_f64().expect("a number"))
        };
        predictions.map(one).collect()
    };
    let sgemm = of(&["sgemm", "--problem", "4096x4096x4096", "--set", "tile=64x256x32"]);
    let (a100, h200) = ("NVIDIA A100 80GB (datasheet)".to_owned(), "NVIDIA H200".to_owned());
    assert_eq!(sgemm, [(a100, 1024.0 / 216.0), (h200.clone(), 1024.0 / 264.0)]);
    let gemm = of(&["gemm", "--problem", "4096x4096x4096", "--arch", "sm_90a"]);
    assert!(gemm.len() == 1 && gemm[0].0 == h200 && gemm[0].1 <= 1.0, "{gemm:?}");
    let said = good(&["check", "sgemm", "--problem", "4096x4096x4096", "--set", "tile=64x256x32"]);
    assert!(said.contains("2 on each of 132 multiprocessors: 3.88 waves, the last 88% full"), "{said}");
}

/// A rung whose threads meet in the banks, with a level.
fn conflicts(command: &'static str, level: &'static str, more: &[&'static str]) -> Output {
    tool(&[&[command, "sgemm", "--set", "variant=block_2d", "--set", level], more].concat())
}

#[test]
fn conflicts_are_denied_warned_of_or_allowed() {
    for command in ["check", "emit"] {
        let warned = conflicts(command, "conflicts=warn", &[]);
        let said = text(&warned.stderr);
        assert!(warned.status.success() && said.starts_with("warning[CT023]: threads of a warp meet"), "{said}");
        assert!(said.contains("  help:     smem_b=Sw<") && said.contains("lanes 8-15"), "{said}");
        let allowed = conflicts(command, "conflicts=allow", &[]);
        assert!(allowed.status.success() && allowed.stderr.is_empty(), "{}", text(&allowed.stderr));
        assert_eq!(text(&allowed.stdout).is_empty(), text(&warned.stdout).is_empty());
        let denied = conflicts(command, "conflicts=deny", &[]);
        assert_eq!((denied.status.code(), denied.stdout.is_empty()), (Some(1), true));
        assert!(text(&denied.stderr).starts_with("error[CT023]: "), "{}", text(&denied.stderr));
    }
    let lines = text(&conflicts("check", "conflicts=warn", &["--json"]).stdout);
    let objects: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
    assert_eq!(
        (&objects[0]["warning"]["code"], &objects[0]["warning"]["severity"]),
        (&"CT023".into(), &"warning".into())
    );
    let plan = &objects.last().expect("a plan")["plan"];
    let load = &plan["texts"][0]["shared"][0]["accesses"][1];
    assert!(load["wavefronts"].as_u64() > load["least"].as_u64() && load["conflict"].is_string(), "{load}");
}

#[test]
fn emit_writes_the_same_files_that_it_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("kernels");
    let printed = good(&["emit", "elementwise_add", "--set", "dtype=f32"]);
    let paths = good(&["emit", "elementwise_add", "--set", "dtype=f32", "--out", out.to_str().expect("UTF-8")]);
    assert_eq!(paths.lines().count(), 3);
    for path in paths.lines() {
        let file = std::fs::read_to_string(path).expect("written");
        assert!(printed.contains(&file), "{path}");
    }
}

/// A file of CUDA C++ in place of a family, without any declaration.
#[test]
#[cfg(target_os = "linux")]
fn check_lists_the_entries_of_a_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/build/own/wrong.cu");
    let told = good(&["check", file, "--arch", "sm_90a"]);
    for part in [
        "by_struct(float const*, float*, Scale)\n",
        "  parameter 3: 24 bytes at a multiple of 8, .b8\n",
        "reversed(float const*, float*, int)\n",
        "  dynamic shared memory: each launch gives its bytes\n",
        "  clusters of 2 x 1 x 1 blocks\n",
        "  at most 128 x 1 x 1 threads a block\n",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    let rows = objects(&["check", file, "--arch", "sm_90a", "--json"]);
    let row = rows.iter().find(|row| row["name"] == "scale").expect("an entry");
    assert_eq!(row["entry"]["params"].as_array().map(Vec::len), Some(5));
    let on = &row["on"][0];
    assert_eq!((&on["resources"]["arch"], &on["resources"]["spill_stores"]), (&"sm_90a".into(), &0.into()));
    assert!(on["mix"]["global"].as_u64() >= Some(2), "{on}");
    let absent = text(&tool(&["check", "kernels/absent.cu"]).stderr);
    assert!(absent.starts_with("error[build]: cannot read kernels/absent.cu\n"), "{absent}");
}

/// A launch of nothing has no time and no rate.
#[test]
fn a_launch_of_nothing_is_told() {
    for problem in ["0x5", "5x0"] {
        let said = good(&["check", "elementwise_add", "--problem", problem]);
        assert!(said.ends_with(&format!("\na launch of {problem}\n  nothing: no output has an element\n")), "{said}");
    }
    let rows = objects(&["check", "gemm", "--arch", "sm_80", "--problem", "16x0x16", "--json"]);
    assert_eq!((rows.len(), &rows[1]["launch"]["entries"]), (2, &serde_json::json!([])), "{rows:?}");
    assert!(good(&["check", "sum", "--problem", "5x0"]).contains("1 x 1 x 1 blocks"));
}

/// What cannot be read is marked, with the functions that there are and the nearest of them.
#[test]
fn a_function_that_is_not_known_is_marked() {
    for (value, told) in [
        (
            "expr=a + sqrtt(b) * c",
            expect![[r#"
                error[CT002]: the value of a setting cannot be read
                  recipe:   elementwise_apply
                  found:    expr=a + sqrtt(b) * c
                                     ^^^^^
                  required: one of the functions abs, exp, exp2, log, log2, sqrt, rsqrt, sin, cos, tanh, erf, relu, sigmoid, silu, gelu, gelu_tanh, min, max, pow, cast, clamp, fma, recip, saturate, select
                  because:  expr: the function of inputs a to h, or as |x, bias| names them; several outputs with commas; run-time scalars as in |a, b; alpha|
                  help:     the nearest name is `sqrt`
            "#]],
        ),
        (
            "expr=|x, x| x",
            expect![[r#"
                error[CT002]: the value of a setting cannot be read
                  recipe:   elementwise_apply
                  found:    expr=|x, x| x
                                     ^ the input name `x` twice
                  required: each name once
                  because:  expr: the function of inputs a to h, or as |x, bias| names them; several outputs with commas; run-time scalars as in |a, b; alpha|
                  help:     inputs that are not used need a name, too
            "#]],
        ),
        (
            "compute=f16",
            expect![[r#"
                error[CT002]: the value of a setting cannot be read
                  recipe:   elementwise_apply
                  found:    compute=f16
                                    ^^^ the compute type `f16`
                  required: f32, f64 or i32
                  because:  compute: type that the function is evaluated in: f32, f64, i32; auto for f64 where a tensor is f64, i32 where all are integers, else f32
                  help:     narrower types are stored, and computed in f32
            "#]],
        ),
    ] {
        bad(&["check", "elementwise_apply", "--set", value], 1, told);
    }
    let rows = tool(&["--json", "check", "elementwise_apply", "--set", "expr=|x, x| x"]);
    let row: serde_json::Value = serde_json::from_slice(&rows.stdout).expect("JSON");
    assert_eq!(row["error"]["found"], "expr=|x, x| x: the input name `x` twice");
}
