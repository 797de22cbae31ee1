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
use crate::ptx_batch::apart;
use crate::ptx_set::{PtxSet, Source, shared};
use crate::whole;

/// Kernels that are compiled together: products take a compiler more memory.
fn together(kernels: &[Kernel]) -> usize {
    let product = |kernel: &Kernel| matches!(kernel.plan.computes(), Some(Computes::Product(_)));
    if kernels.iter().any(product) { 8 } else { 24 }
}

fn options() -> Options {
    Options { workers: NonZero::<usize>::MIN, ..host_common::options() }
}

/// Held while compilers take all processors, so that tests do not double them and the memory that they need.
static BUSY: Mutex<()> = Mutex::new(());

/// Compiles kernels in batches for the C++ executor and runs each on its problems, on all processors.
pub(crate) fn run(
    tally: &mut Tally,
    kernels: &[Kernel],
    mode: Mode,
    problems: impl Fn(&Kernel) -> Vec<Problem> + Sync,
) {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    // Kernels of one tile, or of one set of strides, share most of CuTe's functions: together they compile in half the time.
    let mut sorted: Vec<Kernel> = kernels.to_vec();
    sorted.sort_by_cached_key(shared);
    let groups = apart(sorted.iter().map(|kernel| kernel.unit.files()));
    let groups: Vec<Vec<Kernel>> =
        groups.into_iter().map(|numbers| numbers.into_iter().map(|number| sorted[number].clone()).collect()).collect();
    // Kernels are spread over the processors, but for a few: CuTe's headers take as long as two or three of them.
    let most = sorted.len().div_ceil(processors()).clamp(8, together(&sorted));
    let batches: Vec<&[Kernel]> = groups.iter().flat_map(|group| group.chunks(most)).collect();
    tally.add(of_all(&batches, |batch| run_batch(batch, mode, &problems)));
}

/// The same as PTX, in all modes, and on one problem in four plain too.
pub(crate) fn run_ptx(
    tally: &mut Tally,
    set: &PtxSet,
    kernels: &[Kernel],
    problems: impl Fn(&Kernel) -> Vec<Problem> + Sync,
) {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let of_one = |kernel: &Kernel| {
        let mut tally = Tally::default();
        if let Err(why) = set.compiled(kernel) {
            tally.failures.push(format!("{kernel}\n  {why}"));
            return tally;
        }
        for (nth, problem) in problems(kernel).iter().enumerate() {
            let every_way = nth.is_multiple_of(4) || whole::is_asked_for();
            tally.judge(kernel, problem, set.run(kernel, problem, every_way));
        }
        tally
    };
    tally.add(of_all(kernels, of_one));
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What is found in all, on all processors.
fn of_all<T: Sync>(all: &[T], find: impl Fn(&T) -> Tally + Sync) -> Tally {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let of_one = find(one);
                    found.lock().expect("no worker panics with it").add(of_one);
                }
            });
        }
    });
    found.into_inner().expect("no worker panics with it")
}

fn run_batch(kernels: &[Kernel], mode: Mode, problems: &impl Fn(&Kernel) -> Vec<Problem>) -> Tally {
    let mut tally = Tally::default();
    let sources: Vec<(&Plan, &[SourceFile])> = kernels.iter().map(|k| (&k.plan, k.unit.files())).collect();
    let compile =
        |sources: &[(&Plan, &[SourceFile])]| Batch::compile(sources, mode, &options()).map_err(|e| e.to_string());
    let batch = match compile(&sources) {
        Ok(batch) => batch,
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
        for problem in &problems(kernel) {
            tally.judge(kernel, problem, batch.run(number, kernel, problem));
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

/// Each kernel as it is ahead of its defects, of a name that no other family's has.
fn suspects<'a, R: Recipe>(asked: Vec<(u64, &'a Defect)>, recipe: impl Fn(&str) -> R) -> Vec<Suspect<'a>> {
    let (mut all, mut sound) = (Vec::new(), BTreeSet::new());
    for (number, defect) in asked {
        let kernel = |what: &str| {
            let stem = format!("{what}_{}", R::FAMILY);
            Kernel::new(&stem, number, &recipe(defect.settings), &Targets::default()).expect("a right recipe")
        };
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

/// What `find` runs as PTX.
pub(crate) fn planted<R: Recipe>(defects: &[Defect], recipe: impl Fn(&str) -> R) -> Vec<Source> {
    suspects(asked(defects, None), recipe).into_iter().map(|suspect| (suspect.kernel, suspect.files)).collect()
}

/// Problems that a kernel without a defect has to be right on, beside those that its defects were found on.
fn controls() -> usize {
    if whole::is_asked_for() { usize::MAX } else { 8 }
}

/// Runs a suspect on a problem: what is wrong, if anything.
type Runner<'a> = Box<dyn Fn(&Problem) -> Option<String> + Send + 'a>;

/// Suspects by the C++ executor, compiled together where they can be.
fn by_cxx<'a>(all: &'a [Suspect<'_>], mode: Mode) -> Vec<Runner<'a>> {
    let mut runners: Vec<(usize, Runner<'a>)> = Vec::new();
    // A kernel and its defects share what CuTe makes of their types, which is compiled once for all of a text.
    let groups = apart(all.iter().map(|suspect| &suspect.files[..]));
    for numbers in groups.iter().flat_map(|group| group.chunks(16)) {
        let sources: Vec<(&Plan, &[SourceFile])> =
            numbers.iter().map(|number| (&all[*number].kernel.plan, &all[*number].files[..])).collect();
        let batch = Arc::new(Batch::compile(&sources, mode, &options()).unwrap_or_else(|e| panic!("{e}")));
        for (at, number) in numbers.iter().enumerate() {
            let (batch, kernel) = (Arc::clone(&batch), &all[*number].kernel);
            runners.push((*number, Box::new(move |problem| batch.run(at, kernel, problem))));
        }
    }
    runners.sort_by_key(|(number, _)| *number);
    runners.into_iter().map(|(_, runner)| runner).collect()
}

/// As PTX, plain and in all modes.
fn by_ptx<'a>(all: &'a [Suspect<'_>], set: &'a PtxSet) -> Vec<Runner<'a>> {
    let runner = |suspect: &'a Suspect<'_>| -> Runner<'a> {
        set.compiled(&suspect.kernel).unwrap_or_else(|e| panic!("{}\n{e}", suspect.kernel));
        Box::new(|problem| set.run(&suspect.kernel, problem, true))
    };
    all.iter().map(runner).collect()
}

/// Every kernel is right, and with its defect it is wrong on one of its problems, on which it is right without. Those that are run as
/// PTX are of a set.
pub(crate) fn find<R: Recipe>(
    defects: &[Defect],
    set: &PtxSet,
    recipe: impl Fn(&str) -> R,
    problems: impl Fn(&Kernel) -> Vec<Problem>,
) {
    let of = |mode| suspects(asked(defects, mode), &recipe);
    let (texts, ptx) = (Mode::ALL.iter().map(|mode| (*mode, of(Some(*mode)))).collect::<Vec<_>>(), of(None));
    // What nvcc compiles takes as long as the rest.
    let (of_texts, of_ptx) = std::thread::scope(|scope| {
        let of_ptx = scope.spawn(|| by_ptx(&ptx, set));
        let of_texts: Vec<_> = texts.iter().map(|(mode, all)| by_cxx(all, *mode)).collect();
        (of_texts, of_ptx.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut missed = Vec::new();
    let texts = texts.iter().map(|(mode, all)| (Some(*mode), all)).zip(of_texts);
    for ((mode, all), runners) in texts.chain([((None, &ptx), of_ptx)]) {
        let mut sound = BTreeMap::new();
        for (Suspect { kernel, defect, .. }, runner) in all.iter().zip(runners) {
            let problems = problems(kernel);
            let wrong = |problem: &Problem| runner(problem).map(|found| format!("{problem}: {found}"));
            let settings = kernel.plan.settings().to_string();
            let Some(defect) = defect else {
                let found = problems.iter().take(controls()).find_map(wrong);
                assert_eq!(found, None, "{kernel} without a defect");
                sound.insert(settings, (kernel, runner));
                continue;
            };
            let Some((problem, found)) = problems.iter().find_map(|problem| Some((problem, wrong(problem)?))) else {
                missed.push(format!("{}, mode {mode:?}", defect.what));
                continue;
            };
            println!("{}, mode {mode:?}: {}", defect.what, found.lines().next().unwrap_or_default());
            let (kernel, runner) = &sound[&settings];
            assert_eq!(runner(problem), None, "{kernel} without a defect, {problem}");
        }
    }
    assert!(missed.is_empty(), "not found: {}", missed.join("; "));
}
