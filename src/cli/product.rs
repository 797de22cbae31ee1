//! Several recipes of matrix products on the same problems: planned once each, compiled together, checked and timed in turn with
//! NVIDIA's libraries.

use std::fmt::Display;

use cutemplate::arch::Targets;
use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu, Protocol};
use cutemplate::model::{H200, Machine};
use cutemplate::plan::Plan;
use cutemplate::verify::Fill;
use cutlass_sys::Finder;
use serde_json::json;

use crate::cli::args::{Problem, Scalar};
use crate::cli::device;
use crate::cli::lab::{self, BenchError, How, ProductReport};
use crate::cli::output::{Failure, Output, counted};
use crate::cli::progress::{Fetching, while_working};
use crate::cli::run;

/// M, N and K of a problem MxNxK, or MxNxKxL, which are positive.
pub(crate) fn extents(problem: &Problem) -> Result<[u64; 3], Failure> {
    match problem.0[..] {
        [m, n, k] | [m, n, k, _] => Ok([m, n, k].map(i64::unsigned_abs)),
        _ => Err(Failure::message(format_args!("--problem {problem}: a product has extents MxNxK or MxNxKxL"))),
    }
}

/// The machine that recipes are chosen for: the GPU as code of these targets sees it; without a GPU, the newest
/// target's.
pub(crate) fn machine(gpu: Option<&Gpu>, targets: &Targets) -> Machine {
    let newest = || targets.archs().iter().max().copied();
    let arch = gpu.map_or_else(newest, |gpu| targets.arch_on(gpu.capability())).unwrap_or(H200.arch);
    let usual = Machine::of(arch);
    Machine { arch, sms: gpu.map_or(usual.sms, |gpu| gpu.sms().into()), ..usual }
}

/// Plans that are tried on any problem, each once, and which of them on which.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    pub(crate) plans: Vec<Plan>,
    pub(crate) of: Vec<(Problem, Vec<usize>)>,
}

impl Trials {
    /// Adds a problem and its plans.
    pub(crate) fn add(&mut self, problem: &Problem, plans: impl IntoIterator<Item = Plan>) {
        let mut chosen = Vec::new();
        for plan in plans {
            let same = |known: &Plan| (known.name(), known.settings()) == (plan.name(), plan.settings());
            chosen.push(self.plans.iter().position(same).unwrap_or_else(|| {
                self.plans.push(plan);
                self.plans.len() - 1
            }));
        }
        self.of.push((problem.clone(), chosen));
    }
}

/// How kernels are measured.
#[derive(Debug)]
pub(crate) struct Measurement<'a> {
    /// Leading dimension of every tensor, in elements.
    pub(crate) ld: Option<i64>,
    /// Run-time scalars, where they are not the usual ones.
    pub(crate) scalars: &'a [Scalar],
    pub(crate) inputs: (Fill, u64),
    pub(crate) how: How,
    pub(crate) protocol: Protocol,
    /// Whether a problem that the baseline does not take, or that does not fit, is told and left out.
    pub(crate) keep_going: bool,
}

impl Measurement<'_> {
    /// Compiles all plans and measures those of each problem. Each report is printed as soon as there is one, under this key.
    pub(crate) fn run(
        &self,
        gpu: &Gpu,
        trials: Trials,
        key: &str,
        out: &Output,
    ) -> Result<Vec<ProductReport>, Failure> {
        let Trials { plans, of } = trials;
        if let Some(other) = plans.iter().find(|plan| plan.product().is_none()) {
            return Err(Failure::message(format_args!("`{}` computes no product of matrices", other.family())));
        }
        let plans: Vec<Plan> = plans.iter().map(|plan| device::text_on(gpu, plan).clone()).collect();
        let compiler = Compiler::new(&Finder::from_env(), &mut Fetching::new(out)).map_err(Failure::message)?;
        let units: Vec<_> = plans.iter().map(|plan| (render(plan), plan.targets().clone())).collect();
        let what =
            format!("nvcc compiles {}, unless the store has them", counted(units.len() as u64, "kernel", "kernels"));
        let compiled = while_working(out, &what, || compiler.compile_all(&units));
        let mut kernels = Vec::new();
        for (plan, compiled) in plans.into_iter().zip(compiled) {
            let compiled = compiled.map_err(Failure::message)?;
            kernels.push(match device::deny_spills(&plan, &compiled) {
                Ok(()) => Ok(AnyKernel::load(gpu, plan, compiled.vouched()).map_err(Failure::message)?),
                Err(spills) => Err(spills),
            });
        }
        if kernels.iter().any(Result::is_ok) {
            kernels.iter().filter_map(|kernel| kernel.as_ref().err()).for_each(|spills| out.text(spills));
        }
        let mut reports = Vec::new();
        for (problem, chosen) in &of {
            let kernels = left(&kernels, chosen)?;
            let Some(first) = kernels.first() else { return Err(Failure::message("no candidate is left")) };
            let layouts = run::layouts(first.plan(), &problem.0, self.ld)?;
            let scalars = run::scalars(first.plan(), self.scalars)?;
            let report = lab::products(gpu, &kernels, &layouts, &scalars, self.inputs, self.how, &self.protocol);
            let report = match report {
                Err(error @ (BenchError::Cublas(_) | BenchError::Memory { .. } | BenchError::Check(_)))
                    if self.keep_going =>
                {
                    out.text(format_args!("{problem}: {error}"));
                    out.object(json!({ "left_out": { "problem": problem.to_string(), "why": error.to_string() } }));
                    continue;
                }
                report => report.map_err(|e| Failure::message(format_args!("{problem}: {e}")))?,
            };
            out.text(&report);
            out.object(json!({ key: report }));
            reports.push(report);
        }
        Ok(reports)
    }
}

/// The chosen kernels that can be measured.
///
/// # Errors
/// Why the first of them cannot be measured, where none can.
fn left<'k, T>(kernels: &'k [Result<T, impl Display>], chosen: &[usize]) -> Result<Vec<&'k T>, Failure> {
    let (mut left, mut refused) = (Vec::new(), None);
    for kernel in chosen.iter().filter_map(|index| kernels.get(*index)) {
        match kernel {
            Ok(kernel) => left.push(kernel),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    match refused {
        Some(failure) if left.is_empty() => Err(Failure::message(failure)),
        _ => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_that_spills_is_left_out_unless_it_is_the_only_one() {
        let spills = || Err("spills");
        let kernels = [Ok('a'), spills(), Ok('c')];
        assert_eq!(left(&kernels, &[0, 1, 2]).expect("two of them"), [&'a', &'c']);
        assert_eq!(left(&kernels, &[2]).expect("one of them"), [&'c']);
        let alone = left(&kernels, &[1]).expect_err("no other");
        assert!(matches!(&alone, Failure::Message(why) if why == "spills"), "{alone:?}");
        assert!(left(&kernels, &[]).expect("nothing was chosen").is_empty());
    }
}
