//! `cutemplate list`.

use std::process::ExitCode;

use cutemplate::expr;
use cutemplate::recipe::Family;
use cutemplate::settings::Settings;
use serde_json::json;

use crate::cli::args::ListArgs;
use crate::cli::families::Families;
use crate::cli::output::{Failure, Output, wrapped};

/// Settings that are expressions.
const EXPRESSIONS: [&str; 2] = ["expr", "epilogue"];

pub(crate) fn run(args: &ListArgs, families: &Families, program: &str, out: &Output) -> Result<ExitCode, Failure> {
    match &args.family {
        Some(name) => one(families.find(name)?, out),
        None => {
            families.iter().for_each(|family| all(family, out));
            out.text(format_args!("\n{program} list gemm  the settings of gemm with defaults and examples"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Columns of a line, whatever reads it.
const WIDTH: usize = 80;

/// Text in lines that all begin with so many spaces.
fn indented(text: &str, by: usize) -> String {
    textwrap::indent(&textwrap::fill(text, WIDTH - by), &" ".repeat(by))
}

/// What it computes, and the names of what can be set.
fn all(family: &Family, out: &Output) {
    let keys: Vec<&str> = family.settings.iter().map(|s| s.key).collect();
    let keys = wrapped(&format!("  settings:  {}", keys.join(" ")), WIDTH);
    out.section(family.name, format_args!("{}\n{keys}", indented(family.summary, 2)));
    let settings: Vec<_> =
        family.settings.iter().map(|s| json!({ "key": s.key, "doc": s.doc, "example": s.example })).collect();
    out.object(json!({ "family": family.name, "summary": family.summary, "settings": settings }));
}

/// Its settings with what holds where nothing is set, a paragraph each.
fn one(family: &Family, out: &Output) {
    let defaults = family.complete(&Settings::new()).unwrap_or_default();
    let mut text = indented(family.summary, 2);
    for setting in family.settings {
        let default = match defaults.get(setting.key) {
            Some("") => "none".to_owned(),
            Some(value) => value.to_owned(),
            None => "as the others tell".to_owned(),
        };
        let (key, doc, example) = (setting.key, setting.doc, setting.example);
        let doc = indented(doc, 4);
        text += &format!("\n\n  {key} [{default}]\n{doc}\n    -s '{key}={example}'");
    }
    let functions: Vec<String> = match family.settings.iter().any(|s| EXPRESSIONS.contains(&s.key)) {
        true => {
            // `max(x)` is of a row, `max(x, y)` of two elements.
            let of_rows = expr::row_functions().filter(|_| family.reduces_rows);
            expr::functions().chain(of_rows).collect()
        }
        false => Vec::new(),
    };
    if !functions.is_empty() {
        text += "\n\n  expressions have + - * / and comparisons, && || !, `let t0 = ..;`, and\n";
        // A function is one word of a line.
        let words: Vec<String> = functions.iter().map(|function| function.replace(' ', "\u{a0}")).collect();
        text += &indented(&words.join(", "), 4).replace('\u{a0}', " ");
    }
    out.section(family.name, text);
    let settings: Vec<_> = family
        .settings
        .iter()
        .map(|s| json!({ "key": s.key, "doc": s.doc, "example": s.example, "default": defaults.get(s.key) }))
        .collect();
    let summary = family.summary;
    out.object(json!({ "family": family.name, "summary": summary, "settings": settings, "functions": functions }));
}
