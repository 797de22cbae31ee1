//! Products of settings that are drawn, as the GPU runs them, on the executor, which sees the races that no GPU shows.

use cutemplate::arch::Arch;
use cutemplate::exec::Options;
use cutemplate::exec::ptx::Modes;
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::verify::Fill;

use crate::kernels::gemm::{OF_PAIRS, drawn, parts, sized};
use crate::own::{BOUNDED, built, launch, program, targets};
use crate::variables;
use crate::whole;

/// The same of pairs of columns, whose recipes have numbers of their own.
#[test]
fn random_products_of_pairs_are_right_and_silent() {
    let first = variables::number("CUTEMPLATE_GEMM_FIRST").unwrap_or(0);
    are_right(OF_PAIRS + first, variables::number("CUTEMPLATE_GEMM_RECIPES").unwrap_or(whole::or(8, 3)));
}

/// A handful, or with `CUTEMPLATE_WHOLE=1` more; `CUTEMPLATE_GEMM_FIRST` and `CUTEMPLATE_GEMM_RECIPES` say which. Each has as few CTAs as
/// it may, so that one cluster computes tile after tile, of one k-tile and of more than it has stages.
#[test]
fn random_products_are_right_and_silent() {
    let first = variables::number("CUTEMPLATE_GEMM_FIRST").unwrap_or(0);
    are_right(first, variables::number("CUTEMPLATE_GEMM_RECIPES").unwrap_or(whole::or(8, 3)));
}

fn are_right(first: u64, count: u64) {
    let (mut kernels, mut launches) = (0, 0);
    for index in first..first + count {
        let any = drawn(index);
        let ctas = any.cluster.0.iter().product::<u32>().saturating_mul(any.split_k.max(1));
        let recipe = Gemm { ctas, ..any };
        let Ok(plan) = recipe.plan_as(&format!("random_{index:04}"), &targets()) else { continue };
        let [m, n, k] = recipe.tile.0.map(i64::from);
        let [along_m, along_n] = recipe.cluster.0.map(i64::from);
        let (rows, columns) = (2 * along_m * m + 8, along_n * n + 8);
        for kernel in parts(index, &plan, Arch::Sm90a) {
            kernels += 1;
            let program = program(&kernel, built(&kernel)).with(Options { modes: Modes::ALL, ..BOUNDED });
            for k_tiles in [1, i64::from(recipe.stages) + 1] {
                let problem = sized(&kernel.plan, &[rows, columns, k_tiles * k], Some(8), Fill::Integers, index);
                let ran = launch(&kernel, &program, &problem);
                assert!(ran.report.is_clean(), "{kernel}\n{problem}\n{}", ran.report);
                assert_eq!(ran.wrong, None, "{kernel}\n{problem}");
                launches += 1;
            }
            println!("{kernel}");
        }
    }
    println!("{kernels} kernels, {launches} launches");
    assert!(kernels > 0, "none of these is a kernel");
}
