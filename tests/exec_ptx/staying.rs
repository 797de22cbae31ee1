//! Factors that stay in their stages from tile to tile, where the k-tiles of a tile divide the stages: loaded as often as they have to be.

use cutemplate::arch::Arch;
use cutemplate::exec::Job;
use cutemplate::exec::Options;
use cutemplate::exec::ptx::Modes;
use cutemplate::verify::Fill;

use crate::kernels::gemm::sized;
use crate::kernels::{Kernel, Problem, Tensors};
use crate::own::{BOUNDED, WARPGROUPS, gemm, program};
use crate::together::ptx;

/// Two teams by turns, in a cluster of four: A and B are multicast, and what one team has seen arrive the other one reads.
pub(crate) const TURNS: &str =
    "schedule=pingpong\ntile=64x64x16\nstages=2\ncluster=2x2\nctas=4\nraster=n\nbatched=true";

/// Boxes that TMA was asked to load, and what is wrong, of a launch that is told whether factors stay, or is as it is.
fn loaded(kernel: &Kernel, problem: &Problem, stays: Option<i32>) -> (u64, Option<String>) {
    let (plan, text) = (&kernel.plan, ptx(kernel));
    let mut tensors = Tensors::new(plan, problem);
    let views = tensors.views(problem);
    let binding = plan.bind_with(&views, &problem.scalars).expect("a launch");
    let mut params = binding.params().to_vec();
    if let Some(stays) = stays {
        let offset = plan.params().field("stays").expect("a parameter").offset;
        params[offset..offset + 4].copy_from_slice(&stays.to_ne_bytes());
    }
    let job = Job { params: &params, ..Job::from(&binding) };
    let program = program(kernel, text).with(Options { modes: Modes::ALL, profile: true, ..BOUNDED });
    let report = tensors.run(&program, &job, problem, &views).expect("it runs");
    let profile = report.profile.as_ref().expect("a profile");
    let boxes = [2, 3].map(|modes| profile.total(&format!("cp.async.bulk.tensor.{modes}d.shared")).executions);
    let found = report.findings.first().map(|finding| finding.to_string());
    (boxes.iter().sum(), found.or_else(|| tensors.wrong(plan, problem)))
}

/// Tiles along M and N, and k-tiles; boxes where nothing stays, and as it is.
type Case = ([i64; 3], u64, u64);

fn are_loaded(kernel: &Kernel, tile: [i64; 3], cases: &[Case]) {
    for ([m, n, k], all, some) in cases {
        let extents = [m * tile[0], n * tile[1], k * tile[2]];
        let problem = sized(&kernel.plan, &extents, None, Fill::Integers, 3);
        assert_eq!(loaded(kernel, &problem, Some(0)), (*all, None), "{kernel}\n{problem}, nothing stays");
        assert_eq!(loaded(kernel, &problem, None), (*some, None), "{kernel}\n{problem}");
    }
}

#[test]
fn factors_are_loaded_as_often_as_they_have_to_be() {
    let one = gemm(WARPGROUPS, Arch::Sm90a);
    // One CTA takes tiles along M first: of two rows of tiles B stays for the second, of one A stays. Each of two stages is filled.
    let of_one: &[Case] =
        &[([2, 3, 2], 24, 18), ([1, 3, 2], 12, 8), ([1, 3, 1], 6, 5), ([2, 2, 1], 8, 8), ([1, 3, 3], 18, 18)];
    are_loaded(&one, [128, 64, 16], of_one);
    let turns = gemm(TURNS, Arch::Sm90a);
    // Each of four CTAs asks for half of its tile of A and of B. Along N first: A stays for a second column, and three batches have it anew.
    let of_four: &[Case] = &[([2, 4, 2], 96, 72), ([4, 4, 2], 192, 144), ([2, 4, 3], 144, 144)];
    are_loaded(&turns, [64, 64, 16], of_four);
}

#[test]
fn what_stays_where_stages_have_other_k_tiles_is_found() {
    for (settings, extents) in [(WARPGROUPS, [128, 192, 48]), (TURNS, [128, 256, 48])] {
        let kernel = gemm(settings, Arch::Sm90a);
        let problem = sized(&kernel.plan, &extents, None, Fill::Integers, 3);
        let (_, found) = loaded(&kernel, &problem, Some(1));
        assert!(found.is_some(), "{kernel}: k-tiles of another place are not found");
    }
}
