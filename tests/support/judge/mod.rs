//! Many kernels, each on many problems, as PTX: all are right, and what is broken on purpose is found.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cutemplate::arch::Targets;
use cutemplate::emit::SourceFile;
use cutemplate::recipe::Recipe;

use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{PtxSet, Source};
use crate::whole;

/// Held while compilers take all processors, so that tests do not double them and the memory that they need.
static BUSY: Mutex<()> = Mutex::new(());

/// Runs each kernel on its problems in all modes, and on one problem in four plain too.
pub(crate) fn run(
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

/// A change of the text that makes the kernel wrong.
pub(crate) struct Defect {
    pub(crate) what: &'static str,
    pub(crate) settings: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// The defects, each with its number, by which problems are drawn: of each kernel all, or the first.
fn asked(defects: &[Defect]) -> Vec<(u64, &Defect)> {
    let mut all: Vec<(u64, &Defect)> = (0..).zip(defects).collect();
    let mut seen = BTreeSet::new();
    all.retain(|(_, defect)| seen.insert(defect.settings) || whole::is_asked_for());
    all
}

/// A kernel as it is, or with a defect.
struct Suspect<'a> {
    kernel: Kernel,
    files: Vec<SourceFile>,
    defect: Option<&'a Defect>,
}

/// Each kernel as it is ahead of its defects, of a name that no other family's has.
fn suspects<'a, R: Recipe>(
    asked: Vec<(u64, &'a Defect)>,
    recipe: impl Fn(&str) -> R,
    targets: &Targets,
) -> Vec<Suspect<'a>> {
    let (mut all, mut sound) = (Vec::new(), BTreeSet::new());
    for (number, defect) in asked {
        let kernel = |what: &str| {
            let stem = format!("{what}_{}", R::FAMILY);
            Kernel::new(&stem, number, &recipe(defect.settings), targets).expect("a right recipe")
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

/// What `find` runs.
pub(crate) fn planted<R: Recipe>(defects: &[Defect], recipe: impl Fn(&str) -> R) -> Vec<Source> {
    planted_for(&Targets::default(), defects, recipe)
}

/// The same for an architecture that has a text of its own.
pub(crate) fn planted_for<R: Recipe>(targets: &Targets, defects: &[Defect], recipe: impl Fn(&str) -> R) -> Vec<Source> {
    suspects(asked(defects), recipe, targets).into_iter().map(|suspect| (suspect.kernel, suspect.files)).collect()
}

/// Problems that a kernel without a defect has to be right on, beside those that its defects were found on.
fn controls() -> usize {
    if whole::is_asked_for() { usize::MAX } else { 8 }
}

/// Every kernel of a set is right, and with its defect it is wrong on one of its problems, on which it is right without.
pub(crate) fn find<R: Recipe>(
    defects: &[Defect],
    set: &PtxSet,
    recipe: impl Fn(&str) -> R,
    problems: impl Fn(&Kernel) -> Vec<Problem>,
) {
    find_for(&Targets::default(), defects, set, recipe, problems);
}

/// The same for an architecture that has a text of its own.
pub(crate) fn find_for<R: Recipe>(
    targets: &Targets,
    defects: &[Defect],
    set: &PtxSet,
    recipe: impl Fn(&str) -> R,
    problems: impl Fn(&Kernel) -> Vec<Problem>,
) {
    let mut missed = Vec::new();
    let mut sound = BTreeMap::new();
    for Suspect { kernel, defect, .. } in suspects(asked(defects), &recipe, targets) {
        set.compiled(&kernel).unwrap_or_else(|e| panic!("{kernel}\n{e}"));
        let problems = problems(&kernel);
        let wrong = |problem: &Problem| set.run(&kernel, problem, true).map(|found| format!("{problem}: {found}"));
        let settings = kernel.plan.settings().to_string();
        let Some(defect) = defect else {
            let found = problems.iter().take(controls()).find_map(wrong);
            assert_eq!(found, None, "{kernel} without a defect");
            sound.insert(settings, kernel);
            continue;
        };
        let Some((problem, found)) = problems.iter().find_map(|problem| Some((problem, wrong(problem)?))) else {
            missed.push(defect.what);
            continue;
        };
        println!("{}: {}", defect.what, found.lines().next().unwrap_or_default());
        let kernel = &sound[&settings];
        assert_eq!(set.run(kernel, problem, true), None, "{kernel} without a defect, {problem}");
    }
    assert!(missed.is_empty(), "not found: {}", missed.join("; "));
}
