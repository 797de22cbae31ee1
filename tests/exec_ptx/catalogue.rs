//! The PTX that every kernel of the catalogue is built with: right and silent in every mode. `CUTEMPLATE_SPEED=1` in a release build says how fast they run.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cutemplate::arch::Arch;
use cutemplate::build::{Compiled, Compiler};
use cutemplate::exec::ptx::{Modes, Placement};
use cutemplate::exec::{Job, Report};
use cutemplate::exec::{Options, Program};
use cutemplate::recipe::{Attention, FAMILIES, Family, Gemm, Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::verify::{Fill, TensorLayout};
use cutlass_sys::Finder;

use crate::bench::seconds;
use crate::kernels::gemm::parts;
use crate::kernels::sgemm::edges;
use crate::kernels::{Kernel, Problem, Tensors};
use crate::own::{BOUNDED, anywhere, built, is_right, program};
use crate::whole;

/// The kernels of the catalogue as they are built; of those that have a text for each architecture, the one for sm_80.
pub(crate) fn catalogue() -> Vec<Kernel> {
    for_arch(Arch::Sm80)
}

/// The same for an architecture.
pub(crate) fn for_arch(arch: Arch) -> Vec<Kernel> {
    let entries = FAMILIES.iter().flat_map(|family| family.catalogue.iter().map(move |settings| (family, settings)));
    let plan = |(family, settings): (&Family, &&str)| {
        family.usual_plan(&Settings::parse_lines(settings)).expect("a catalogue entry")
    };
    (0..).zip(entries.map(plan)).flat_map(|(index, plan)| parts(index, &plan, arch)).collect()
}

/// The PTX in the fatbins of kernels, of which a driver makes code for GPUs that are still to come.
pub(crate) fn shipped(kernels: &[Kernel]) -> Vec<String> {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).expect("nvcc");
    let cuobjdump = finder.disassembler(&mut ()).expect("cuobjdump is fetched in this workspace").cuobjdump.path;
    let units: Vec<_> = kernels.iter().map(|kernel| (kernel.unit.clone(), kernel.plan.targets().clone())).collect();
    let text = |compiled: Result<Compiled, _>| {
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        let output = Command::new(&cuobjdump).arg("-ptx").arg(compiled.path()).output().expect("it runs");
        let listing = String::from_utf8_lossy(&output.stdout);
        let ptx = &listing[listing.find(".version").expect("PTX of sm_80")..];
        ptx.split("\nFatbin ").next().unwrap_or(ptx).to_owned()
    };
    compiler.compile_all(&units).into_iter().map(text).collect()
}

fn problems(kernel: &Kernel) -> Vec<Problem> {
    match kernel.plan.family() {
        Gemm::FAMILY => anywhere(kernel).collect(),
        Sgemm::FAMILY => edges(kernel, 12),
        Attention::FAMILY => kernel.problems(6, 20_000).collect(),
        _ => kernel.problems(6, 5_000).collect(),
    }
}

#[test]
fn the_catalogue_is_right_and_silent() {
    let kernels = whole::first_of_each_template(catalogue(), |kernel| &kernel.unit);
    let all: Vec<(&Kernel, String)> = kernels.iter().zip(shipped(&kernels)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((kernel, text)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    is_right(kernel, program(kernel, text.clone()), problems(kernel));
                }
            });
        }
    });
}

/// A problem without gaps, large enough that the loops of the kernel take most of its time.
pub(crate) fn large(kernel: &Kernel) -> Problem {
    let plan = &kernel.plan;
    let extents = match plan.problem_shape().expect("a kernel of the catalogue").extents().len() {
        2 => vec![512, 1024],
        3 => vec![256; 3],
        5 => vec![1, 128, 256, 2, 1],
        _ => vec![256, 256, 128, 2],
    };
    let shapes = plan.shapes(&extents).expect("as many extents as it has");
    let dense = |(operand, shape): (&cutemplate::plan::Operand, &Vec<i64>)| {
        TensorLayout::from(operand.layout(shape, None).expect("few elements"))
    };
    let layouts: Vec<TensorLayout> = plan.operands().iter().zip(&shapes).map(dense).collect();
    let inputs = plan.operands().iter().filter(|o| o.access == cutemplate::view::Access::Read).count();
    let scalars = plan.scalars().iter().map(|_| 0.5).collect();
    let (fills, in_place) = (vec![Fill::Normal; inputs], vec![None; inputs]);
    Problem { layouts, in_place, scalars, fills, planted: Vec::new(), seed: 1 }
}

/// Seconds that all threads of the process have run, in ticks of 10 ms; else of the clock.
fn seconds_of_all_threads() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        text.rsplit(')').next().unwrap_or_default().split(' ').filter_map(|f| f.parse().ok()).collect();
    // The state is no number; user and system time are the 14th and the 15th field.
    fields.get(10..12).map_or_else(seconds, |ticks| ticks.iter().sum::<f64>() / 100.0)
}

/// Runs a launch until half a second has passed; what it reports, and the seconds of one.
fn timed(kernel: &Kernel, program: &Program, problem: &Problem, seconds: impl Fn() -> f64) -> (Report, f64) {
    let mut tensors = Tensors::new(&kernel.plan, problem);
    let views = tensors.views(problem);
    let binding = kernel.plan.bind_with(&views, &problem.scalars).expect("a launch");
    let (start, mut runs) = (seconds(), 0);
    loop {
        let report = tensors.run(program, &Job::from(&binding), problem, &views);
        let report = report.unwrap_or_else(|e| panic!("{kernel}: {e}"));
        runs += 1;
        if seconds() - start > 0.5 {
            return (report, (seconds() - start) / f64::from(runs));
        }
    }
}

/// `cargo test --release --test exec_ptx -- --ignored --nocapture speed_of_the_catalogue`; of the kernels whose
/// names contain `CUTEMPLATE_SPEED`.
#[test]
#[ignore = "measures times, in a release build"]
fn speed_of_the_catalogue() {
    const MODES: [Modes; 3] = [
        Modes::PLAIN,
        Modes { bounds: true, init: true, races: false },
        Modes { bounds: false, init: false, races: true },
    ];
    println!(
        "kernel | 10^9 lane instructions a second | bounds and init, times plain | races, times plain | two cores, times one | ms from PTX to the end of a small launch, KB of PTX"
    );
    let (mut all, mut lanes) = ([0.0; 3], 0);
    let mut opcodes: BTreeMap<String, u64> = BTreeMap::new();
    let asked = std::env::var("CUTEMPLATE_SPEED").unwrap_or_default();
    for kernel in catalogue().into_iter().filter(|k| k.plan.name().contains(&asked)) {
        let text = built(&kernel);
        let small = kernel.problems(1, 1).next().filter(|_| kernel.plan.family() != Gemm::FAMILY);
        let start = seconds();
        let mut program = program(&kernel, text.clone());
        if let Some(small) = &small {
            let mut tensors = Tensors::new(&kernel.plan, small);
            let views = tensors.views(small);
            let binding = kernel.plan.bind_with(&views, &small.scalars).expect("a launch");
            tensors.run(&program, &Job::from(&binding), small, &views).expect("it runs");
        }
        let first = (seconds() - start) * 1e3;
        let problem = large(&kernel);
        let mut took = [0.0; 3];
        for (took, modes) in took.iter_mut().zip(MODES) {
            let options = Options { modes, placement: Placement::Driver, workers: NonZero::new(1), ..BOUNDED };
            program = program.with(options);
            let (report, time) = timed(&kernel, &program, &problem, seconds);
            assert!(report.is_clean(), "{kernel}\n{report}");
            *took = time;
            if modes == Modes::PLAIN {
                lanes += report.lane_instructions;
                print!("{} | {:.2}", kernel.plan.name(), report.lane_instructions as f64 / time / 1e9);
            }
        }
        let mut all_threads = [0.0; 2];
        for (workers, time) in (1..).zip(&mut all_threads) {
            let workers = NonZero::new(workers);
            program = program.with(Options { workers, placement: Placement::Driver, ..Options::default() });
            *time = timed(&kernel, &program, &problem, seconds_of_all_threads).1;
        }
        // What two cores make of it, where others use them too: the same work takes two workers so much of their time.
        let two = 2.0 * all_threads[0] / all_threads[1];
        println!(
            " | {:.2} | {:.2} | {two:.2} | {first:.1}, {}",
            took[1] / took[0],
            took[2] / took[0],
            text.len() / 1000
        );
        all = core::array::from_fn(|i| all[i] + took[i]);
        let profiled = program.with(Options { profile: true, placement: Placement::Driver, ..Options::default() });
        for of in timed(&kernel, &profiled, &problem, seconds).0.profile.expect("asked for").instructions {
            *opcodes.entry(of.site.opcode).or_default() += of.counts.executions;
        }
    }
    println!(
        "all: {:.2} x 10^9 lane instructions a second, {:.2}, {:.2}",
        lanes as f64 / all[0] / 1e9,
        all[1] / all[0],
        all[2] / all[0]
    );
    let mut opcodes: Vec<(String, u64)> = opcodes.into_iter().collect();
    opcodes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let sum: u64 = opcodes.iter().map(|(_, n)| n).sum();
    for (name, n) in opcodes.iter().take(60) {
        println!("{name}: {:.2} of 100", 100.0 * *n as f64 / sum as f64);
    }
}
