//! Contract: an elementwise recipe of any function, types, strides and settings is refused with a reason, or its kernel is
//! right on the CPU executor for every shape, layout, address and input, and touches nothing else.
//!
//! `CUTEMPLATE_APPLY_RECIPES` sets how many recipes are drawn, for a longer run.
#![cfg(feature = "host")]

#[path = "support/apply/mod.rs"]
mod apply;
#[path = "host_common/batch.rs"]
mod batch;
#[path = "support/expr/mod.rs"]
mod expr;
mod host_common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use apply::{Kernel, Problem, Tally, drawn, systematic};
use batch::Batch;
use cutemplate::arch::Targets;
use cutemplate::emit::SourceFile;
use cutemplate::host::{Mode, Options};
use cutemplate::plan::Plan;
use cutemplate::recipe::{ElementwiseApply, Recipe, Settings};

/// Kernels that are compiled together.
const TOGETHER: usize = 24;

fn options() -> Options {
    Options { workers: std::num::NonZero::<usize>::MIN, ..host_common::options() }
}

fn recipes() -> u64 {
    std::env::var("CUTEMPLATE_APPLY_RECIPES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// Held while compilers take all processors, so that tests do not double them and the memory that they need.
static BUSY: Mutex<()> = Mutex::new(());

/// Compiles kernels in batches and runs each on problems of its own, on all processors.
fn run(tally: &mut Tally, kernels: &[Kernel], mode: Mode, problems: u64, elements: i64) {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let batches: Vec<&[Kernel]> = kernels.chunks(TOGETHER).collect();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_batch(batch, mode, problems, elements);
                    all.lock().expect("no worker panics with it").add(found);
                }
            });
        }
    });
    tally.add(all.into_inner().expect("no worker panics with it"));
}

fn run_batch(kernels: &[Kernel], mode: Mode, problems: u64, elements: i64) -> Tally {
    let mut tally = Tally::default();
    let sources: Vec<(&Plan, &[SourceFile])> = kernels.iter().map(|k| (&k.plan, k.unit.files())).collect();
    let batch = match Batch::compile(&sources, mode, &options()) {
        Ok(batch) => batch,
        Err(together) => {
            // Which of them is it?
            let alone = |s: &(&Plan, &[SourceFile])| Batch::compile(&[*s], mode, &options()).err();
            let culprits = kernels.iter().zip(&sources).filter_map(|(k, s)| Some(format!("{k}\n  {}", alone(s)?)));
            tally.failures.extend(culprits);
            if tally.failures.is_empty() {
                tally.failures.push(format!("only together: {together}"));
            }
            return tally;
        }
    };
    for (number, kernel) in kernels.iter().enumerate() {
        for problem in kernel.problems(problems, elements) {
            tally.judge(kernel, &problem, batch.run(number, kernel, &problem));
        }
    }
    tally
}

#[test]
fn random_recipes_are_refused_or_right() {
    let mut tally = Tally::default();
    let kernels = tally.plan("apply", (0..recipes()).map(|i| (i, drawn(i))), &Targets::default());
    // Each kernel in one mode, since it takes longer to compile than to run: most in the fastest.
    let (races, rest) = kernels.split_at(kernels.len() / 20);
    let (bounds, plain) = rest.split_at(kernels.len() / 10);
    run(&mut tally, races, Mode::Races, 4, 600);
    run(&mut tally, bounds, Mode::Bounds, 6, 1500);
    run(&mut tally, plain, Mode::Plain, 10, 5000);
    tally.finish("random recipes");
}

#[test]
fn every_variant_and_layout_is_refused_or_right() {
    let mut tally = Tally::default();
    let kernels = tally.plan("grid", (0..).zip(systematic(11)), &Targets::default());
    run(&mut tally, &kernels, Mode::Plain, 10, 5000);
    tally.finish("variants and layouts");
}

/// A change of the text that makes the kernel wrong, and the mode that has to see it.
struct Defect {
    what: &'static str,
    mode: Mode,
    settings: &'static str,
    from: &'static str,
    to: &'static str,
}

const ROWS: &str = "expr=a * 2 - b\nin=f16:(?,1), f16:(?,1)";
const TURNED: &str = "expr=a * 2 - b\nin=f16:(1,?), f16:(?,1)\nout=f16:(?,1)\nvariant=transposed";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "another function",
        mode: Mode::Plain,
        settings: "expr=a * 2 - b\nvariant=naive",
        from: "- b",
        to: "+ b",
    },
    Defect {
        what: "one thread too many",
        mode: Mode::Plain,
        settings: "expr=a * 2 - b\nvariant=naive",
        from: ">= size(shape_MN)",
        to: "> size(shape_MN)",
    },
    Defect {
        what: "rows begin one element late",
        mode: Mode::Plain,
        settings: ROWS,
        from: "-shift(crd)",
        to: "1 - shift(crd)",
    },
    Defect {
        what: "the first elements of a shifted row are left out",
        mode: Mode::Plain,
        settings: ROWS,
        from: ">= 0",
        to: ">= 1",
    },
    Defect {
        what: "the predicate takes one column more",
        mode: Mode::Plain,
        settings: ROWS,
        from: "elem_less(tYcY(i), shape_MN)",
        to: "elem_leq(tYcY(i), shape_MN)",
    },
    Defect {
        what: "the predicate takes one column more, in tiles",
        mode: Mode::Plain,
        settings: "expr=a * 2 - b\nvariant=tv",
        from: "elem_less(tYcY(_,_,step)(i), shape_MN)",
        to: "elem_leq(tYcY(_,_,step)(i), shape_MN)",
    },
    Defect {
        what: "the second tile of a row is the first again",
        mode: Mode::Plain,
        settings: "expr=a * 2 - b\nvariant=remapped\nthr=(4,8):(8,1)\nval=(2,16):(16,1)",
        from: "int(blockIdx.x)",
        to: "int(blockIdx.x & ~1u)",
    },
    Defect {
        what: "tiles are read before they are there",
        mode: Mode::Plain,
        settings: TURNED,
        from: "__syncthreads();",
        to: "",
    },
    Defect {
        what: "tiles are read before they are there",
        mode: Mode::Races,
        settings: TURNED,
        from: "__syncthreads();",
        to: "",
    },
    Defect {
        what: "vectors at any address",
        mode: Mode::Bounds,
        settings: ROWS,
        from: "params.aligned && tYpY(0)",
        to: "tYpY(0)",
    },
    Defect {
        what: "inputs are read up to the end of the last vector",
        mode: Mode::Bounds,
        settings: ROWS,
        from: "copy_if(inside(u), vector(gA, u)",
        to: "copy(vector(gA, u)",
    },
];

fn edited(kernel: &Kernel, defect: &Defect) -> Vec<SourceFile> {
    let mut files = kernel.unit.files().to_vec();
    let header = &mut files[0].text;
    assert!(header.contains(defect.from), "{}: no `{}` in\n{header}", defect.what, defect.from);
    *header = header.replace(defect.from, defect.to);
    files
}

#[test]
fn planted_defects_are_found() {
    for mode in Mode::ALL {
        let defects: Vec<&Defect> = DEFECTS.iter().filter(|d| d.mode == *mode).collect();
        let kernel = |(index, defect): (u64, &&Defect)| {
            let recipe = ElementwiseApply::from_settings(&Settings::parse_lines(defect.settings)).expect("settings");
            Kernel::new("planted", index, recipe, &Targets::default()).expect("a right recipe")
        };
        let kernels: Vec<Kernel> = (0..).zip(&defects).map(kernel).collect();
        let texts: Vec<Vec<SourceFile>> = kernels.iter().zip(&defects).map(|(k, d)| edited(k, d)).collect();
        let sound: Vec<(&Plan, &[SourceFile])> = kernels.iter().map(|k| (&k.plan, k.unit.files())).collect();
        let broken: Vec<(&Plan, &[SourceFile])> = kernels.iter().zip(&texts).map(|(k, t)| (&k.plan, &t[..])).collect();
        let [sound, broken] = [sound, broken].map(|s| Batch::compile(&s, *mode, &options()).expect("it compiles"));
        for (number, (kernel, defect)) in kernels.iter().zip(&defects).enumerate() {
            let problems: Vec<Problem> = kernel.problems(12, 2000).collect();
            for problem in &problems {
                assert_eq!(sound.run(number, kernel, problem), None, "{kernel} without a defect, {problem}");
            }
            let found = problems.iter().find_map(|problem| broken.run(number, kernel, problem));
            let found = found.unwrap_or_else(|| panic!("{}: not found in mode {mode}", defect.what));
            println!("{}, mode {mode}: {}", defect.what, found.lines().next().unwrap_or_default());
        }
    }
}
