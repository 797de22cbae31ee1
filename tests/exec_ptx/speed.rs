//! What mode `races` costs our kernels: its time over that of a plain run. Products of warpgroups: at most 8; the rest: at most 4.
//!
//! `cargo test --release --test exec_ptx -- --ignored --nocapture speed::`; of the texts whose names contain `CUTEMPLATE_SPEED`.

use std::num::NonZero;

use cutemplate::arch::Arch;
use cutemplate::exec::ptx::{Modes, Placement};
use cutemplate::exec::{Job, Options};
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::verify::Fill;

use crate::kernels::gemm::sized;
use crate::kernels::{Kernel, Problem, Tensors};
use crate::needed::{CLUSTERS, KEPT, PART, TEAMS};
use crate::own::{
    BOUNDED, CORES, NAIVE, SPLIT, STAGED, TILED, WARPGROUPS, apply, built, gemm, of_warpgroups, program, sgemm,
};
use crate::ratios::Ratios;
use crate::{catalogue, staying, together};

fn of_extents(all: &mut Ratios, kernel: &Kernel, text: &str, extents: &[i64; 3]) {
    let problem = sized(&kernel.plan, extents, None, Fill::Integers, 1);
    of_problem(all, &format!("{} {extents:?}", kernel.plan.name()), kernel, text, &problem);
}

fn of_problem(all: &mut Ratios, name: &str, kernel: &Kernel, text: &str, problem: &Problem) {
    let options = Options { placement: Placement::Driver, workers: NonZero::new(1), ..BOUNDED };
    let programs = [false, true]
        .map(|races| Modes { races, ..Modes::PLAIN })
        .map(|modes| program(kernel, text).with(Options { modes, ..options }));
    let mut tensors = Tensors::new(&kernel.plan, problem);
    let views = tensors.views(problem);
    let binding = kernel.plan.bind_with(&views, &problem.scalars).expect("a launch");
    all.of(name, |modes| {
        let program = &programs[usize::from(modes.races)];
        tensors.run(program, &Job::from(&binding), problem, &views).expect("it runs")
    });
}

#[test]
#[ignore = "measures times, in a release build"]
fn races_of_warpgroups_cost_at_most_eight_times() {
    let mut all = Ratios::new(8.0);
    let own = [WARPGROUPS, CLUSTERS, TEAMS, PART, KEPT, staying::TURNS].map(|settings| gemm(settings, Arch::Sm90a));
    for kernel in own.into_iter().chain(of_warpgroups()) {
        let text = together::ptx(&kernel);
        for extents in [[256, 256, 256], [128, 128, 1024], [512, 256, 64]] {
            of_extents(&mut all, &kernel, text, &extents);
        }
    }
    for kernel in catalogue::for_arch(Arch::Sm90a).iter().filter(|kernel| kernel.plan.family() == Gemm::FAMILY) {
        if all.asks_for(kernel.plan.name()) {
            let text = built(kernel);
            for extents in [[256, 256, 256], [512, 256, 64]] {
                of_extents(&mut all, kernel, &text, &extents);
            }
        }
    }
    all.judge();
}

#[test]
#[ignore = "measures times, in a release build"]
fn races_of_threads_cost_at_most_four_times() {
    let mut all = Ratios::new(4.0);
    for kernel in [NAIVE, TILED, STAGED, SPLIT].map(sgemm).iter().chain([&apply()]) {
        let text = together::ptx(kernel);
        of_problem(&mut all, kernel.plan.name(), kernel, text, &catalogue::large(kernel));
    }
    let kernel = gemm(CORES, Arch::Sm80);
    of_problem(&mut all, kernel.plan.name(), &kernel, together::ptx(&kernel), &catalogue::large(&kernel));
    all.judge();
}
