//! Many kernels, each on many problems, on the executor: all are right, and what is broken on purpose is found.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cutemplate::arch::Targets;
use cutemplate::emit::SourceFile;
use cutemplate::exec::cxx::{Mode, Options};
use cutemplate::plan::{Computes, Plan};
use cutemplate::recipe::Recipe;

use crate::batch::Batch;
use crate::host_common;
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_batch::{PtxBatch, apart};
use crate::whole;

/// Kernels that are compiled together: products take a compiler more memory.
fn together(kernels: &[Kernel]) -> usize {
    let product = |kernel: &Kernel| matches!(kernel.plan.computes(), Some(Computes::Product(_)));
    if kernels.iter().any(product) { 8 } else { 24 }
}

/// The settings that decide which of CuTe's functions a kernel is made of.
fn shared(kernel: &Kernel) -> Vec<Option<String>> {
    let settings = kernel.plan.settings();
    ["variant", "tile", "thread", "batched", "in", "out"].map(|key| settings.get(key).map(str::to_owned)).to_vec()
}

fn options() -> Options {
    Options { workers: NonZero::<usize>::MIN, ..host_common::options() }
}

/// Held while compilers take all processors, so that tests do not double them and the memory that they need.
static BUSY: Mutex<()> = Mutex::new(());

/// A kernel of a batch on a problem, and whether it runs in every way there is: what is wrong, if anything.
type Runner = Box<dyn Fn(usize, &Kernel, &Problem, bool) -> Option<String> + Send + Sync>;
type Sources<'a> = [(&'a Plan, &'a [SourceFile])];

fn as_cxx(mode: Mode) -> impl Fn(&Sources<'_>) -> Result<Runner, String> {
    move |sources| {
        let batch = Batch::compile(sources, mode, &options()).map_err(|e| e.to_string())?;
        Ok(Box::new(move |number, kernel, problem, _| batch.run(number, kernel, problem)))
    }
}

fn as_ptx(sources: &Sources<'_>) -> Result<Runner, String> {
    let batch = PtxBatch::compile(sources)?;
    Ok(Box::new(move |number, kernel, problem, every_way| batch.run(number, kernel, problem, every_way)))
}

/// Compiles kernels in batches for the C++ executor and runs each on its problems, on all processors.
pub(crate) fn run(
    tally: &mut Tally,
    kernels: &[Kernel],
    mode: Mode,
    problems: impl Fn(&Kernel) -> Vec<Problem> + Sync,
) {
    spread(tally, kernels, as_cxx(mode), problems);
}

/// The same on the PTX executor in all modes, and on one problem in four plain too.
pub(crate) fn run_ptx(tally: &mut Tally, kernels: &[Kernel], problems: impl Fn(&Kernel) -> Vec<Problem> + Sync) {
    spread(tally, kernels, as_ptx, problems);
}

fn spread(
    tally: &mut Tally,
    kernels: &[Kernel],
    compile: impl Fn(&Sources<'_>) -> Result<Runner, String> + Sync,
    problems: impl Fn(&Kernel) -> Vec<Problem> + Sync,
) {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // Kernels of one tile, or of one set of strides, share most of CuTe's functions: together they compile in half the time.
    let mut sorted: Vec<Kernel> = kernels.to_vec();
    sorted.sort_by_cached_key(shared);
    let groups = apart(sorted.iter().map(|kernel| kernel.unit.files()));
    let groups: Vec<Vec<Kernel>> =
        groups.into_iter().map(|numbers| numbers.into_iter().map(|number| sorted[number].clone()).collect()).collect();
    // Kernels are spread over the processors, but for a few: CuTe's headers take as long as two or three of them.
    let most = sorted.len().div_ceil(processors).clamp(8, together(&sorted));
    let batches: Vec<&[Kernel]> = groups.iter().flat_map(|group| group.chunks(most)).collect();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_batch(batch, &compile, &problems);
                    all.lock().expect("no worker panics with it").add(found);
                }
            });
        }
    });
    tally.add(all.into_inner().expect("no worker panics with it"));
}

fn run_batch(
    kernels: &[Kernel],
    compile: &impl Fn(&Sources<'_>) -> Result<Runner, String>,
    problems: &impl Fn(&Kernel) -> Vec<Problem>,
) -> Tally {
    let mut tally = Tally::default();
    let sources: Vec<(&Plan, &[SourceFile])> = kernels.iter().map(|k| (&k.plan, k.unit.files())).collect();
    let run = match compile(&sources) {
        Ok(run) => run,
        Err(together) => {
            // Which of them is it?
            let alone = |s: &(&Plan, &[SourceFile])| compile(&[*s]).err();
            let culprits = kernels.iter().zip(&sources).filter_map(|(k, s)| Some(format!("{k}\n  {}", alone(s)?)));
            tally.failures.extend(culprits);
            if tally.failures.is_empty() {
                tally.failures.push(format!("only together: {together}"));
            }
            return tally;
        }
    };
    for (number, kernel) in kernels.iter().enumerate() {
        for (nth, problem) in problems(kernel).iter().enumerate() {
            let every_way = nth.is_multiple_of(4) || whole::is_asked_for();
            tally.judge(kernel, problem, run(number, kernel, problem, every_way));
        }
    }
    tally
}

/// A change of the text that makes the kernel wrong.
pub(crate) struct Defect {
    pub(crate) what: &'static str,
    /// The mode of the C++ executor that has to see it; none for the PTX executor.
    pub(crate) mode: Option<Mode>,
    pub(crate) settings: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// The defects that one mode has to see, each with its number, by which problems are drawn: of each kernel all, or the first.
fn asked(defects: &[Defect], mode: Option<Mode>) -> Vec<(u64, &Defect)> {
    let mut of_mode: Vec<(u64, &Defect)> = (0..).zip(defects.iter().filter(|defect| defect.mode == mode)).collect();
    let mut seen = BTreeSet::new();
    of_mode.retain(|(_, defect)| seen.insert(defect.settings) || whole::is_asked_for());
    of_mode
}

/// A kernel as it is, or with a defect.
struct Suspect<'a> {
    kernel: Kernel,
    files: Vec<SourceFile>,
    defect: Option<&'a Defect>,
}

/// Each kernel as it is ahead of its defects.
fn suspects<'a, R: Recipe>(asked: Vec<(u64, &'a Defect)>, recipe: impl Fn(&str) -> R) -> Vec<Suspect<'a>> {
    let (mut all, mut sound) = (Vec::new(), BTreeSet::new());
    for (number, defect) in asked {
        let kernel =
            |stem| Kernel::new(stem, number, &recipe(defect.settings), &Targets::default()).expect("a right recipe");
        if sound.insert(defect.settings) {
            let kernel = kernel("sound");
            all.push(Suspect { files: kernel.unit.files().to_vec(), kernel, defect: None });
        }
        let kernel = kernel("planted");
        let files = kernel.changed(defect.what, defect.from, defect.to);
        all.push(Suspect { kernel, files, defect: Some(defect) });
    }
    all
}

/// Problems that a kernel without a defect has to be right on, beside those that its defects were found on.
fn controls() -> usize {
    if whole::is_asked_for() { usize::MAX } else { 8 }
}

/// The runner of a suspect, and its number there.
type Place = (Arc<Runner>, usize);

/// Compiles suspects together that can be.
fn compiled(all: &[Suspect<'_>], mode: Option<Mode>) -> Vec<Place> {
    let mut places = Vec::new();
    // A kernel and its defects share what CuTe makes of their types, which is compiled once for all of a text.
    let groups = apart(all.iter().map(|suspect| &suspect.files[..]));
    for numbers in groups.iter().flat_map(|group| group.chunks(16)) {
        let sources: Vec<(&Plan, &[SourceFile])> =
            numbers.iter().map(|number| (&all[*number].kernel.plan, &all[*number].files[..])).collect();
        let runner = mode.map_or_else(|| as_ptx(&sources), |mode| as_cxx(mode)(&sources));
        let runner = Arc::new(runner.unwrap_or_else(|e| panic!("{e}")));
        places.extend(numbers.iter().enumerate().map(|(at, number)| (*number, (Arc::clone(&runner), at))));
    }
    places.sort_by_key(|(number, _)| *number);
    places.into_iter().map(|(_, place)| place).collect()
}

/// Every kernel is right, and with its defect it is wrong on one of its problems, on which it is right without.
pub(crate) fn find<R: Recipe>(
    defects: &[Defect],
    recipe: impl Fn(&str) -> R,
    problems: impl Fn(&Kernel) -> Vec<Problem>,
) {
    let of = |mode| suspects(asked(defects, mode), &recipe);
    let (texts, ptx) = (Mode::ALL.iter().map(|mode| (Some(*mode), of(Some(*mode)))).collect::<Vec<_>>(), of(None));
    // What nvcc compiles takes as long as the rest.
    let places = std::thread::scope(|scope| {
        let of_ptx = scope.spawn(|| compiled(&ptx, None));
        let mut places: Vec<Vec<Place>> = texts.iter().map(|(mode, all)| compiled(all, *mode)).collect();
        places.push(of_ptx.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        places
    });
    let mut missed = Vec::new();
    for ((mode, all), places) in texts.into_iter().chain([(None, ptx)]).zip(places) {
        let mut sound = BTreeMap::new();
        for (Suspect { kernel, defect, .. }, (runner, at)) in all.iter().zip(places) {
            let problems = problems(kernel);
            let wrong =
                |problem: &Problem| runner(at, kernel, problem, true).map(|found| format!("{problem}: {found}"));
            let settings = kernel.plan.settings().to_string();
            let Some(defect) = defect else {
                let found = problems.iter().take(controls()).find_map(wrong);
                assert_eq!(found, None, "{kernel} without a defect");
                sound.insert(settings, (kernel, runner, at));
                continue;
            };
            let Some((problem, found)) = problems.iter().find_map(|problem| Some((problem, wrong(problem)?))) else {
                missed.push(format!("{}, mode {mode:?}", defect.what));
                continue;
            };
            println!("{}, mode {mode:?}: {}", defect.what, found.lines().next().unwrap_or_default());
            let (kernel, runner, at) = &sound[&settings];
            assert_eq!(runner(*at, kernel, problem, true), None, "{kernel} without a defect, {problem}");
        }
    }
    assert!(missed.is_empty(), "not found: {}", missed.join("; "));
}
