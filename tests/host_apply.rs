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

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use apply::{Kernel, Tally, drawn, systematic};
use batch::Batch;
use cutemplate::arch::Targets;
use cutemplate::emit::SourceFile;
use cutemplate::host::{Mode, Options};
use cutemplate::plan::Plan;

/// Kernels that are compiled together.
const TOGETHER: usize = 24;

fn options() -> Options {
    Options { workers: std::num::NonZero::<usize>::MIN, ..host_common::options() }
}

fn recipes() -> u64 {
    std::env::var("CUTEMPLATE_APPLY_RECIPES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

/// Compiles kernels in batches and runs each on problems of its own, on all processors.
fn run(tally: &mut Tally, kernels: &[Kernel], mode: Mode, problems: u64, elements: i64) {
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
    // The same kernels, some of them with every access checked.
    let checked = kernels.len() / 6;
    run(&mut tally, &kernels[..checked / 3], Mode::Races, 2, 600);
    run(&mut tally, &kernels[..checked], Mode::Bounds, 2, 1500);
    run(&mut tally, &kernels, Mode::Plain, 3, 5000);
    tally.finish("random recipes");
}

#[test]
fn every_variant_and_layout_is_refused_or_right() {
    let mut tally = Tally::default();
    let kernels = tally.plan("grid", (0..).zip(systematic(11)), &Targets::default());
    run(&mut tally, &kernels, Mode::Plain, 4, 5000);
    tally.finish("variants and layouts");
}
