//! `cutemplate list`.

use std::process::ExitCode;

use cutemplate::expr;
use cutemplate::recipe::Family;
use cutemplate::settings::Settings;
use serde_json::json;

use crate::cli::args::ListArgs;
use crate::cli::families::Families;
use crate::cli::output::{Failure, Output};

/// Settings that are expressions.
const EXPRESSIONS: [&str; 2] = ["expr", "epilogue"];

pub(crate) fn run(args: &ListArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    match &args.family {
        Some(name) => one(families.find(name)?, out),
        None => families.iter().for_each(|family| all(family, out)),
    }
    Ok(ExitCode::SUCCESS)
}

/// What can be set, by an example.
fn all(family: &Family, out: &Output) {
    let width = family.settings.iter().map(|s| s.key.len() + 1 + s.example.len()).max().unwrap_or(0);
    let lines: Vec<String> = family
        .settings
        .iter()
        .map(|s| format!("  --set {:width$}  {}", format!("{}={}", s.key, s.example), s.doc))
        .collect();
    out.section(family.name, format_args!("  {}\n{}", family.summary, lines.join("\n")));
    let settings: Vec<_> =
        family.settings.iter().map(|s| json!({ "key": s.key, "doc": s.doc, "example": s.example })).collect();
    out.object(json!({ "family": family.name, "summary": family.summary, "settings": settings }));
}

/// The same with what holds where nothing is set, a setting a paragraph.
fn one(family: &Family, out: &Output) {
    let defaults = family.complete(&Settings::new()).unwrap_or_default();
    let mut text = format!("  {}", family.summary);
    for setting in family.settings {
        let default = match defaults.get(setting.key) {
            Some("") => "none".to_owned(),
            Some(value) => value.to_owned(),
            None => "as the others tell".to_owned(),
        };
        let (key, doc, example) = (setting.key, setting.doc, setting.example);
        text += &format!("\n\n  {key} [{default}]\n    {doc}\n    --set '{key}={example}'");
    }
    let functions: Vec<String> = match family.settings.iter().any(|s| EXPRESSIONS.contains(&s.key)) {
        true => expr::functions().collect(),
        false => Vec::new(),
    };
    if !functions.is_empty() {
        text += "\n\n  expressions have + - * / and comparisons, && || !, `let t0 = ..;`, and\n";
        text += &functions.chunks(8).map(|line| format!("    {}", line.join(", "))).collect::<Vec<_>>().join(",\n");
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
