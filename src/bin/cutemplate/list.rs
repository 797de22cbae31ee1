//! `cutemplate list`.

use std::process::ExitCode;

use cutemplate::recipe::FAMILIES;
use serde_json::json;

use crate::output::{Failure, Output};

pub(crate) fn run(out: &Output) -> Result<ExitCode, Failure> {
    for family in FAMILIES {
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
    Ok(ExitCode::SUCCESS)
}
