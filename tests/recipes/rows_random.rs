//! Contract: a row program of any operations, reductions, types, strides, widths and schedules is refused with a reason, or its kernel
//! is right as PTX for every shape, layout, address and input, and touches nothing else.
//!
//! `CUTEMPLATE_ROWS_RECIPES` sets how many are drawn, for a longer run: `CUTEMPLATE_WHOLE=1` draws 1000.

use crate::judge;
use crate::kernels::{Kernel, Tally};
use crate::ptx_set::{PtxSet, as_it_is};
use crate::row_recipes::{drawn, problems};
use crate::{variables, whole};
use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Code;
use cutemplate::recipe::{Recipe, Rows};

static KERNELS: PtxSet = PtxSet::new(|| random().1.into_iter().map(as_it_is).collect());
static CLUSTERS: PtxSet = PtxSet::new(|| clusters().1.into_iter().map(as_it_is).collect());

fn recipes() -> u64 {
    variables::number("CUTEMPLATE_ROWS_RECIPES").unwrap_or(whole::or(1000, 16))
}

fn random() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let kernels = tally.plan("random_rows", (0..recipes()).map(|i| (i, drawn(i, false))), &Targets::default());
    (tally, kernels)
}

/// Rows of several CTAs, around the width from which each of them has elements.
fn clusters() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let of = |i: u64| {
        let cluster = Some([2, 4, 8][i as usize % 3]);
        Rows { cluster, threads: Some(128), chunks: Some(1), hold: None, block: None, ..drawn(i, true) }
    };
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let kernels = tally.plan("rows_of_clusters", (0..recipes().div_ceil(8)).map(|i| (i, of(i))), &targets);
    (tally, kernels)
}

#[test]
fn random_programs_are_refused_or_right() {
    let (mut tally, kernels) = random();
    judge::run(&mut tally, &KERNELS, &kernels, |kernel| problems(kernel, whole::or(6, 4), 5000));
    tally.finish("random row programs");
}

#[test]
fn random_programs_of_clusters_are_refused_or_right() {
    let (mut tally, kernels) = clusters();
    judge::run(&mut tally, &CLUSTERS, &kernels, |kernel| problems(kernel, 4, 5000));
    tally.finish("row programs of clusters");
}

/// What can be typed has a kernel, unless a schedule that is set does not hold it.
#[test]
fn nothing_is_refused_needlessly() {
    for index in 0..2000 {
        let plain = drawn(index, true);
        let refused = plain.plan(&Targets::default()).err().map(|error| error.to_string());
        assert_eq!(refused, None, "{}", plain.settings());
        let set = drawn(index, false);
        let Err(error) = set.plan(&Targets::default()) else { continue };
        let of_schedule =
            [Code::ThreadCount, Code::TileSize, Code::SharedMemory, Code::Registers, Code::Unroll, Code::Instruction];
        assert!(error.diagnostics().iter().all(|d| of_schedule.contains(&d.code)), "{}\n{error}", set.settings());
    }
}
