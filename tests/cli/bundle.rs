//! Contract: what a bundle says of itself, and of the GPUs that run it.

use cutemplate::digest::Digest;
use expect_test::expect;

use crate::tool::{bad, good, objects, text, tool};

/// What an example ships.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/row_sums/kernels.bundle");

#[test]
fn a_bundle_is_looked_into() {
    let said = good(&["inspect", SHIPPED, "--on", "8.6"]).replace(SHIPPED, "kernels.bundle");
    let sha256 = Digest::of(&std::fs::read(SHIPPED).expect("it is shipped")).to_string();
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("B SASS")).collect();
    expect![[r#"
        kernels.bundle: by cutemplate 0.1.0, sha256 <its own>
        licences
          MIT OR Apache-2.0: the text that cutemplate wrote
          BSD-3-Clause: CUTLASS and CuTe, compiled into the kernels: copyright NVIDIA CORPORATION & AFFILIATES
          CUDA Toolkit End User License Agreement: what nvcc and the CUDA headers add
        row_sums
          Sum { function: |a; alpha| alpha * a, inputs: [f32:(?,1)], out: f32, by: warp, threads: 128 }
          row_sums.fatbin: 68992 bytes by nvcc 13.0.88, CUTLASS 4.2.0
            sm_75   PTX, for devices that came later
            drivers for CUDA 13.0 and later; for PTX 13.0 and later
          runs on compute capability 8.6 with a driver for CUDA 13.0 or later: SASS of sm_86"#]]
    .assert_eq(&lines.join("\n").replace(&sha256, "<its own>"));
    let rows = objects(&["inspect", SHIPPED, "--on", "9.0", "--json"]);
    assert_eq!(rows[0]["sha256"], sha256);
    let kernel = &rows[1];
    assert_eq!((&kernel["runs"], &kernel["by"]["sass"]), (&true.into(), &"sm_90a".into()), "{kernel}");
    assert_eq!(kernel["kernel"]["texts"][0]["manifest"]["resources"][0]["spill_stores"], 0, "{kernel}");
    // Later GPUs compile its PTX; earlier ones have nothing.
    let rows = objects(&["inspect", SHIPPED, "--on", "11.0", "--json"]);
    assert_eq!(rows[1]["by"]["ptx"], "sm_75");
    let output = tool(&["inspect", SHIPPED, "--on", "7.0"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let why = "does not run on compute capability 7.0: it has code for sm_75, sm_80, sm_86, sm_89, sm_90a, \
               sm_100, sm_120, and the GPU has";
    assert!(said.contains(why), "{said}");
}

/// No SASS of a desktop or server GPU runs on Tegra, whose compute capabilities lie between theirs.
#[test]
fn tegra_compiles_ptx() {
    for (on, by) in [("8.7", "ptx"), ("10.1", "ptx"), ("11.0", "ptx"), ("10.3", "sass"), ("12.1", "sass")] {
        let rows = objects(&["inspect", SHIPPED, "--on", on, "--json"]);
        assert!(rows[1]["by"][by].is_string(), "{on}: {}", rows[1]);
    }
    let said = good(&["inspect", SHIPPED, "--on", "8.7"]);
    let runs =
        "runs on compute capability 8.7 with a driver for CUDA 13.0 or later: PTX of sm_75, compiled by the driver";
    assert!(said.contains(runs), "{said}");
}

#[test]
fn a_bundle_carries_the_licence_of_what_is_compiled_into_it() {
    let said = good(&["inspect", SHIPPED, "--licences"]);
    let parts =
        ["Redistributions in binary form must reproduce", "NVIDIA CORPORATION & AFFILIATES. All rights reserved."];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn what_is_no_bundle_or_no_list_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let refused = |arguments: &[&str]| {
        let output = tool(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        text(&output.stderr).replace(folder.path().to_str().expect("UTF-8"), "<folder>")
    };
    let (text, nameless, unknown) =
        (file("a.txt", "text"), file("b.txt", "# a remark\n\nvector_add\n"), file("c.txt", "add elementwise_ad\n"));
    let out = file("out.bundle", "");
    let told = [
        refused(&["inspect", &text]),
        refused(&["inspect", &out]),
        refused(&["inspect", "/no/such/file"]),
        refused(&["bundle", &out, "--recipes", &nameless]),
        refused(&["bundle", &out, "--recipes", &unknown]),
    ];
    expect![[r#"
        error[bundle-foreign]: the file is not a bundle of kernels
          found:    a file that begins with `text`
          required: `cutemplate bundl`
          help:     name a file that `cutemplate bundle` wrote
        error[bundle-foreign]: the file is not a bundle of kernels
          found:    a file that begins with ``
          required: `cutemplate bundl`
          help:     name a file that `cutemplate bundle` wrote
        error[bundle-file]: cannot read /no/such/file
          found:    No such file or directory (os error 2)
          help:     name a file that `cutemplate bundle` wrote
        error[recipes]: <folder>/b.txt:3 is not a recipe
          found:    `vector_add`
          required: name, family and settings: vector_add elementwise_add dtype=f32; unroll=4
          help:     `cutemplate list` has families and settings
        error[recipes]: <folder>/c.txt:1 is not a recipe
          found:    there is no kernel family `elementwise_ad`; did you mean `elementwise_add`?
          required: name, family and settings: vector_add elementwise_add dtype=f32; unroll=4
          help:     `cutemplate list` has families and settings
    "#]]
    .assert_eq(&told.concat());
    bad(
        &["inspect", SHIPPED, "--on", "hopper"],
        2,
        expect![[r#"
        error: invalid value 'hopper' for '--on <MAJOR.MINOR>': `hopper` is not a compute capability; for example 8.6

        For more information, try '--help'.
    "#]],
    );
}

/// A CI without nvcc sees that a bundle is older than its recipes.
#[test]
fn a_bundle_is_compared_with_its_recipes() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipes = folder.path().join("kernels.txt");
    let told = |text: &str, more: &[&str]| {
        std::fs::write(&recipes, text).expect("written");
        let path = recipes.to_str().expect("UTF-8");
        let output = tool(&[&["bundle", SHIPPED, "--check", "--recipes", path], more].concat());
        let said = text_of(&output).replace(SHIPPED, "kernels.bundle").replace(path, "kernels.txt");
        format!("exit {}\n{said}", output.status.code().expect("it ended"))
    };
    let shipped = include_str!("../../examples/row_sums/kernels.txt");
    assert_eq!(told(shipped, &[]), "exit 0\nkernels.bundle is of these recipes\n");
    assert_eq!(told(shipped, &["--arch", "sm_90a"]), "exit 0\nkernels.bundle is of these recipes\n");
    let changed = format!("{}\nadd elementwise_add", shipped.replace("threads=128", "threads=256; by=block"));
    expect![[r#"
        exit 1
        error[bundle]: kernels.bundle is not of this crate's recipes
          kernel `row_sums`
            found:    by=warp; threads=128
            required: by=block; threads=256
          kernel `add`
            found:    no such kernel among row_sums
            required: a kernel of elementwise_add
          because:  what is asked for, and what is launched, would be two kernels
          help:     `cutemplate bundle kernels.bundle --recipes kernels.txt` makes it again, where nvcc is
    "#]]
    .assert_eq(&told(&changed, &[]));
    expect![[r#"
        exit 1
        error[bundle]: kernels.bundle is not of this crate's recipes
          kernel `add`
            found:    no such kernel among row_sums
            required: a kernel of elementwise_add
          kernel `row_sums`
            found:    a kernel of sum
            required: no line of the recipes has that name
          because:  what is asked for, and what is launched, would be two kernels
          help:     `cutemplate bundle kernels.bundle --recipes kernels.txt --arch sm_80` makes it again, where nvcc is
    "#]]
    .assert_eq(&told("add elementwise_add", &["--arch", "sm_80"]));
    let rows =
        objects_of(&tool(&["bundle", SHIPPED, "--check", "--recipes", recipes.to_str().expect("UTF-8"), "--json"]));
    assert_eq!(rows[0]["differences"][0]["kernel"], "add", "{rows:?}");
}

fn text_of(output: &std::process::Output) -> String {
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout).to_string()
}

fn objects_of(output: &std::process::Output) -> Vec<serde_json::Value> {
    text_of(output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
