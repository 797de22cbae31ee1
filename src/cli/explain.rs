//! `cutemplate explain`.

mod codes;

use std::process::ExitCode;

use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Code;
use cutemplate::recipe::family;
use serde_json::json;

use crate::cli::args::{ExplainArgs, settings};
use crate::cli::output::{Failure, Output, wrapped};
use codes::{Shown, explained};

/// Columns of a line, whatever reads it.
const WIDTH: usize = 80;

pub(crate) fn run(args: &ExplainArgs, program: &str, out: &Output) -> Result<ExitCode, Failure> {
    let Some(asked) = &args.code else {
        for code in Code::ALL {
            out.text(format_args!("{code}  {}", code.title()));
            out.object(json!({ "code": code, "title": code.title() }));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let same = |code: &&Code| code.code().eq_ignore_ascii_case(asked);
    let code = *Code::ALL.iter().find(same).ok_or_else(|| {
        Failure::message(format_args!(
            "there is no code `{asked}`: found in brackets, as in error[CT017]; `{program} explain` lists all"
        ))
    })?;
    let (text, shown) = explained(code);
    let example = example(code, &shown, program)?;
    let body = [textwrap::fill(text, WIDTH), wrapped(&example, WIDTH)].join("\n\n");
    out.section(&format!("{code}: {}", code.title()), body.trim_end());
    out.object(json!({ "code": code, "title": code.title(), "text": text, "example": example }));
    Ok(ExitCode::SUCCESS)
}

/// A command that gets the code, and what it says: asked now, so that it is true.
fn example(code: Code, shown: &Shown, program: &str) -> Result<String, Failure> {
    let (name, pairs, archs) = match *shown {
        Shown::Check(name, pairs) => (name, pairs, &[][..]),
        Shown::CheckOn(name, pairs, ref arch) => (name, pairs, core::slice::from_ref(arch)),
        Shown::Nothing => return Ok(String::new()),
    };
    let pairs: Vec<String> = pairs.iter().map(ToString::to_string).collect();
    let targets = Targets::new(archs.iter().copied()).unwrap_or_default();
    let planned = family(name)?.plan(&settings(&pairs)?, None, &targets);
    let told = match &planned {
        Ok(plan) => plan.warnings().iter().find(|told| told.code == code),
        Err(refused) => refused.diagnostics().iter().find(|told| told.code == code),
    };
    let told = told.map(ToString::to_string).ok_or_else(|| {
        Failure::message(format_args!("the example of {code} gets another answer; please report this as a defect"))
    })?;
    let set: String = pairs.iter().map(|pair| format!(" -s '{pair}'")).collect();
    let arch: String = archs.iter().map(|arch: &Arch| format!(" --arch {arch}")).collect();
    Ok(format!("$ {program} check {name}{set}{arch}\n{told}"))
}
