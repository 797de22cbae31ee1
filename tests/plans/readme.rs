//! Contract: the figures of the README are those of the data files, `../benches/data/`, which hold what was measured.

use crate::ladder;

const README: &str = include_str!("../../README.md");

/// Figures of `elementwise_apply`, one for each type.
#[derive(serde::Deserialize)]
struct Elementwise {
    device: String,
    problem: String,
    types: Vec<String>,
    rows: Vec<Row>,
}

#[derive(serde::Deserialize)]
struct Row {
    what: String,
    figures: Vec<Option<f64>>,
}

fn holds(table: &str) {
    assert!(README.contains(table), "README.md has another table than:\n{table}");
}

#[test]
fn the_figures_of_elementwise_are_the_data() {
    let data: Elementwise =
        serde_json::from_str(include_str!("../../benches/data/elementwise_h200.json")).expect("the file is in order");
    let problem = data.problem.replace('x', " x ");
    assert!(README.contains(&format!("One {}, {problem}, interleaved", data.device)), "which run it was");
    let mut table =
        format!("| `elementwise_apply` | {} |\n|{}\n", data.types.join(" | "), "---|".repeat(1 + data.types.len()));
    let notes = include_str!("../../benches/NOTES.md");
    for Row { what, figures } in &data.rows {
        assert_eq!(figures.len(), data.types.len(), "{what}");
        let figures: Vec<String> = figures.iter().map(|f| f.map_or(String::new(), |f| format!(" {f:.3}"))).collect();
        for figure in figures.iter().filter(|f| !f.is_empty()) {
            assert!(notes.contains(figure), "benches/NOTES.md does not say where{figure} is from");
        }
        table += &format!("| {what} |{} |\n", figures.join(" |"));
    }
    holds(&table);
}

#[test]
fn the_figures_of_sgemm_are_the_data() {
    let ladder = ladder::data();
    let problem = ladder.problem.replace('x', " x ");
    assert!(README.contains(&format!("{problem}, interleaved with cuBLAS")), "which run it was");
    let mut table = String::from("| `sgemm`, f32 | TFLOP/s | ratio to cuBLAS |\n|---|---|---|\n");
    let what = [("block_2d", ", the kernel of \"Optimizing a MatMul with CuTe C++\""), ("pipelined", "")];
    for (name, what) in what {
        let rung = ladder.rungs.iter().find(|rung| rung.rung == name).expect("a rung");
        let (tflops, ratio) = (ladder::rounded(rung.tflops), rung.tflops / rung.cublas);
        table += &format!("| `variant={name}`{what} | {tflops} | {ratio:.3} |\n");
    }
    holds(&table);
}

/// The README stays short; that its crate is `examples/vector_add` is seen there.
#[test]
fn the_readme_is_short() {
    assert!(README.lines().count() <= 150, "{} lines", README.lines().count());
}

/// The front page of the crate's documentation has a row for each variable of ours that the sources read.
#[test]
fn the_front_page_names_every_variable() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("src/lib.rs")).expect("the crate");
    let mut folders = vec![root.join("src"), root.join("cutlass-sys/src")];
    let mut found = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let text = std::fs::read_to_string(&entry).unwrap_or_default();
            let names = text.split('"').filter(|word| word.starts_with("CUTEMPLATE_"));
            let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            found.extend(names.filter(is_name).map(str::to_owned));
        }
    }
    assert!(found.len() > 4, "{found:?}");
    for name in found.iter().filter(|name| !name.starts_with("CUTEMPLATE_TEST_")) {
        assert!(page.lines().any(|line| line.starts_with("//! | `") && line.contains(&format!("`{name}"))), "{name}");
    }
}
