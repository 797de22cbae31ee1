//! Many kernels in one text of PTX, since most of the time to compile one goes into CuTe's headers. One compilation serves every mode.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cutemplate::build::Compiler;
use cutemplate::emit::{SourceFile, render};
use cutemplate::exec::Job;
use cutemplate::exec::ptx::{Modes, Module, Placement};
use cutemplate::exec::{Options, Program};
use cutemplate::plan::Plan;
use cutlass_sys::Finder;

use crate::kernels::{Kernel, Problem, Tensors};
use crate::made;

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
    // Kernels without dynamic shared memory go with any others: with the fewest.
    let none = groups.remove(&None).unwrap_or_default();
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    match groups.iter_mut().min_by_key(|group| group.len()) {
        Some(fewest) => {
            fewest.extend(none);
            fewest.sort_unstable();
        }
        None => groups.push(none),
    }
    groups
}

/// So many parts of a group, all of one size.
pub(crate) fn parts(group: &[usize], count: usize) -> impl Iterator<Item = &[usize]> {
    group.chunks(group.len().div_ceil(count.max(1)).max(1))
}

/// What is made of each, by all processors, those that come first first.
pub(crate) fn by_all_processors<T: Sync, R: Send>(all: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let own = make(one);
            made.lock().expect("no worker panics with it").push(own);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    made.into_inner().expect("no worker panics with it")
}

/// Kernels with an entry each.
pub(crate) struct PtxBatch {
    programs: Vec<[Program; 2]>,
}

impl PtxBatch {
    /// Compiles kernels together, their files as they are given; each to be run plain, and in all modes.
    #[allow(dead_code, reason = "each test file uses a part of it")]
    pub(crate) fn compile(kernels: &[(&Plan, &[SourceFile])]) -> Result<PtxBatch, String> {
        let module = Module::parse(text(kernels)?).map_err(|e| e.to_string())?;
        let module = Arc::new(module);
        let program = |plan: &Plan, modes: Modes| {
            let entries = plan.entries().iter().map(|e| e.name.clone()).collect();
            let options =
                Options { modes, placement: Placement::Exact, step_budget: 200_000_000, ..Options::default() };
            Program::new(Arc::clone(&module), entries, options).map_err(|e| format!("{}: {e}", plan.name()))
        };
        let both = |(plan, _): &(&Plan, _)| Ok([program(plan, Modes::PLAIN)?, program(plan, Modes::ALL)?]);
        Ok(PtxBatch { programs: kernels.iter().map(both).collect::<Result<_, String>>()? })
    }

    /// Runs kernel `number` in all modes, and plain too if asked, and says what was wrong, if anything: with the launch, with what
    /// the executor saw, with an output, or with an input.
    #[allow(dead_code, reason = "each test file uses a part of it")]
    pub(crate) fn run(&self, number: usize, kernel: &Kernel, problem: &Problem, plain: bool) -> Option<String> {
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
        // Plain is the first.
        self.programs[number][usize::from(!plain)..].iter().find_map(judge)
    }
}

/// What nvcc makes of all of them.
pub(crate) fn text(kernels: &[(&Plan, &[SourceFile])]) -> Result<String, String> {
    let Some((first, _)) = kernels.first() else { return Err("no kernels".into()) };
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).map_err(|e| e.to_string())?;
    let argv = compiler.command_line(&render(first), first.targets());
    let arch = first.targets().archs().first().ok_or("an architecture")?.suffix();
    let gencode = format!("-gencode=arch=compute_{arch},code=compute_{arch}");
    let mut flags = vec!["--ptx", "-lineinfo", &gencode];
    let mut rest = argv[1..argv.len() - 1].iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        match flag {
            "--fatbin" | "-MD" => {}
            // A planted defect may leave a variable that nobody uses, which is no error here.
            flag if flag.starts_with("-gencode") || flag.starts_with("--diag-error") => {}
            "-Xptxas" | "-MF" | "-o" => drop(rest.next()),
            flag => flags.push(flag),
        }
    }
    let files = || kernels.iter().flat_map(|(_, own)| own.iter());
    let entries = files().filter(|f| f.name.ends_with(".cu"));
    let includes = entries.map(|f| format!("#include \"{}\"\n", f.name));
    let text = includes.collect();
    let all: Vec<SourceFile> = files().cloned().chain([SourceFile { name: "batch.cu".into(), text }]).collect();
    flags.extend(["-o", "batch.ptx", "batch.cu"]);
    let made = made::once(&compiler, &flags, &all, "batch.ptx")?;
    fs::read_to_string(&made).map_err(|e| format!("{}: {e}", made.display()))
}
