//! Many kernels in one text of PTX, since most of the time to compile one goes into CuTe's headers. One compilation serves every mode.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::emit::{SourceFile, render};
use cutemplate::exec::Job;
use cutemplate::exec::ptx::{Modes, Module, Options, Program};
use cutemplate::plan::Plan;
use cutlass_sys::Finder;

use crate::kernels::{Kernel, Problem, Tensors};

/// How a kernel declares dynamic shared memory, if it has any.
fn dynamic(files: &[SourceFile]) -> Option<&str> {
    files.iter().find_map(|file| file.text.split_once("extern __shared__")?.1.split(';').next())
}

/// Numbers of the kernels that are compiled together, in order. Kernels of one program share dynamic shared memory, and the widest
/// alignment among them is everyone's: those that declare it otherwise are apart, so that each is placed no better than it says.
pub(crate) fn apart<'a>(kernels: impl IntoIterator<Item = &'a [SourceFile]>) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for (number, files) in kernels.into_iter().enumerate() {
        groups.entry(dynamic(files)).or_default().push(number);
    }
    // Kernels without dynamic shared memory go with any others.
    let none = groups.remove(&None).unwrap_or_default();
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    match groups.first_mut() {
        Some(first) => {
            first.extend(none);
            first.sort_unstable();
        }
        None => groups.push(none),
    }
    groups
}

/// Kernels with an entry each.
pub(crate) struct PtxBatch {
    programs: Vec<[Program; 2]>,
}

impl PtxBatch {
    /// Compiles kernels together, their files as they are given; each to be run plain, and in all modes.
    pub(crate) fn compile(kernels: &[(&Plan, &[SourceFile])]) -> Result<PtxBatch, String> {
        let module = Module::parse(text(kernels)?).map_err(|e| e.to_string())?;
        let module = Arc::new(module);
        let program = |plan: &Plan, modes: Modes| {
            let entries = plan.entries().iter().map(|e| e.name.clone()).collect();
            let options = Options { modes, step_budget: 200_000_000, ..Options::default() };
            Program::new(Arc::clone(&module), entries, options).map_err(|e| format!("{}: {e}", plan.name()))
        };
        let both = |(plan, _): &(&Plan, _)| Ok([program(plan, Modes::PLAIN)?, program(plan, Modes::ALL)?]);
        Ok(PtxBatch { programs: kernels.iter().map(both).collect::<Result<_, String>>()? })
    }

    /// Runs kernel `number` and says what was wrong, if anything: with the launch, with what the executor saw, with an
    /// output, or with an input.
    pub(crate) fn run(&self, number: usize, kernel: &Kernel, problem: &Problem) -> Option<String> {
        let judge = |program: &Program| {
            let mut tensors = Tensors::new(&kernel.plan, problem);
            let before = tensors.inputs.clone();
            let views = tensors.views(problem);
            let report = match kernel.plan.bind_with(&views, &problem.scalars) {
                Ok(binding) => tensors.run(program, &Job::from(&binding), problem, &views),
                Err(error) => return Some(error.to_string()),
            };
            match report {
                Err(error) => return Some(error.to_string()),
                Ok(report) if !report.is_clean() => return Some(report.to_string()),
                Ok(_) => {}
            }
            let changed = tensors.inputs.iter().zip(&before).any(|(now, before)| now.storage() != before.storage());
            tensors.wrong(&kernel.plan, problem).or_else(|| changed.then(|| "an input was written".into()))
        };
        self.programs[number].iter().find_map(judge)
    }
}

/// What nvcc makes of all of them, made once: it lies beside the build's other files.
fn text(kernels: &[(&Plan, &[SourceFile])]) -> Result<String, String> {
    let Some((first, _)) = kernels.first() else { return Err("no kernels".into()) };
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).map_err(|e| e.to_string())?;
    let sm_80 = Targets::new([Arch::Sm80]).ok_or("an architecture")?;
    let argv = compiler.command_line(&render(first), &sm_80);
    let mut flags = vec!["--ptx", "-lineinfo", "-gencode=arch=compute_80,code=compute_80"];
    let mut rest = argv[1..argv.len() - 1].iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        match flag {
            "--fatbin" | "-MD" => {}
            // A planted defect may leave a variable that nobody uses.
            "--diag-error" | "-Xptxas" | "-MF" | "-o" => drop(rest.next()),
            flag if flag.starts_with("-gencode") => {}
            flag => flags.push(flag),
        }
    }
    let files = || kernels.iter().flat_map(|(_, own)| own.iter());
    let words = files().map(|f| f.text.as_str()).chain([argv[0].as_str()]).chain(flags.iter().copied());
    let key = words
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ptx-{key:016x}"));
    let made = folder.join("batch.ptx");
    if let Ok(text) = fs::read_to_string(&made) {
        return Ok(text);
    }
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    for file in files() {
        fs::write(folder.join(&file.name), &file.text).map_err(fail)?;
    }
    let all: String =
        files().filter(|f| f.name.ends_with(".cu")).map(|f| format!("#include \"{}\"\n", f.name)).collect();
    fs::write(folder.join("batch.cu"), all).map_err(fail)?;
    // Two processes may make it: the last one's is whole too.
    let part = format!("batch.{}.part", std::process::id());
    let mut nvcc = Command::new(&argv[0]);
    let done = nvcc.current_dir(&folder).args(&flags).args(["-o", &part, "batch.cu"]).output().map_err(fail)?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    fs::rename(folder.join(part), &made).map_err(fail)?;
    fs::read_to_string(&made).map_err(fail)
}
