//! Kernels of this crate, as nvcc makes PTX of them: right and silent in every mode.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::exec::ptx::{Finding, Modes, Module, Path, Placement};
use cutemplate::exec::{TensorMemory, bind};
use cutemplate::plan::ModeStride;
use cutemplate::recipe::sgemm::Sgemm;
use cutemplate::recipe::{ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{Tensor, TensorLayout};
use cutemplate::view::{ViewLayout, ViewRef};
use cutlass_sys::Finder;

use crate::kernels::{Kernel, Problem, Tensors};

pub(crate) const NAIVE: &str = "variant=naive\nbatched=true";
pub(crate) const TILED: &str = "variant=block_2d\ntile=16x16x8\nthread=4x4\nbatched=true";
pub(crate) const STAGED: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nstages=3\nmin_blocks=0\nconflicts=allow";
pub(crate) const SPLIT: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nsplit_k=3\nbatched=true\nmin_blocks=0\nconflicts=allow";

static COMPILING: Mutex<()> = Mutex::new(());

pub(crate) fn targets() -> Targets {
    Targets::new([Arch::Sm90a]).expect("an architecture")
}

pub(crate) fn sgemm(settings: &str) -> Kernel {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Kernel::new("ptx", 0, &recipe, &targets()).expect("a right recipe")
}

/// The PTX of a kernel, made once: it lies beside the build's other files.
pub(crate) fn ptx(kernel: &Kernel) -> String {
    let _one = COMPILING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text: String = kernel.unit.files().iter().map(|f| f.text.as_str()).collect();
    let key = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ptx-{key:016x}"));
    let made = folder.join("kernel.ptx");
    if let Ok(text) = fs::read_to_string(&made) {
        return text;
    }
    fs::create_dir_all(&folder).expect("writable");
    for file in kernel.unit.files() {
        fs::write(folder.join(&file.name), &file.text).expect("writable");
    }
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc");
    let argv = compiler.command_line(&kernel.unit, &targets());
    let mut flags: Vec<&str> = vec!["--ptx", "-lineinfo", "-gencode=arch=compute_90a,code=compute_90a"];
    let mut rest = argv[1..].iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        match flag {
            "--fatbin" | "-v" | "-MD" => {}
            "-Xptxas" | "-MF" | "-o" => {
                rest.next();
            }
            flag if flag.starts_with("-gencode") => {}
            flag => flags.push(flag),
        }
    }
    let part = folder.join("kernel.part");
    let done =
        Command::new(&argv[0]).current_dir(&folder).args(&flags).arg("-o").arg(&part).output().expect("nvcc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::rename(&part, &made).expect("writable");
    fs::read_to_string(&made).expect("made")
}

/// The bytes of a view in its tensor's storage.
fn range(tensor: &Tensor, view: &ViewRef) -> std::ops::Range<usize> {
    let start = (view.ptr - tensor.storage().as_ptr() as u64) as usize;
    start..start + (view.available.0 * view.dtype.bytes().0) as usize
}

/// What a launch finds, and what is wrong with its outputs.
fn run(
    kernel: &Kernel,
    module: &Module,
    problem: &Problem,
    modes: Modes,
    placement: Placement,
) -> (Vec<Finding>, Option<String>, u64) {
    let ran = launch(kernel, module, problem, modes, placement, false);
    (ran.findings, ran.wrong, ran.steps)
}

/// What came of a kernel's launches.
pub(crate) struct Ran {
    pub(crate) findings: Vec<Finding>,
    pub(crate) wrong: Option<String>,
    pub(crate) paths: Vec<Path>,
    steps: u64,
}

/// Runs a kernel, as all that it takes to launch it says.
pub(crate) fn launch(
    kernel: &Kernel,
    module: &Module,
    problem: &Problem,
    modes: Modes,
    placement: Placement,
    paths: bool,
) -> Ran {
    let plan = &kernel.plan;
    let mut tensors = Tensors::new(plan, problem);
    let views = tensors.views(problem);
    let binding = plan.bind_with(&views, &problem.scalars).expect("a launch");
    let mut workspace = binding.workspace().map(|w| vec![0xff_u8; w.bytes.0 as usize]);
    let mut ran = Ran { findings: Vec::new(), wrong: None, paths: Vec::new(), steps: 0 };
    for (number, grid) in binding.launches().iter().enumerate() {
        let mut memory = Vec::new();
        for ((input, place), view) in tensors.inputs.iter().zip(&problem.in_place).zip(&views) {
            memory.push(match place {
                Some(output) => TensorMemory::InPlace(problem.in_place.len() + output),
                None => TensorMemory::Read(&input.storage()[range(input, view)]),
            });
        }
        for (output, view) in tensors.outputs.iter_mut().zip(&views[problem.in_place.len()..]) {
            let range = range(output, view);
            memory.push(TensorMemory::Write(&mut output.storage_mut()[range]));
        }
        let entry = &plan.entries()[grid.entry].name;
        let launch =
            bind(module, entry, grid, &binding, memory, workspace.as_deref_mut(), number == 0).expect("a launch");
        let launch = launch.modes(modes).placement(placement).paths(paths).step_budget(200_000_000);
        let report = launch.run().unwrap_or_else(|e| panic!("{kernel}: {e}"));
        ran.steps += report.instructions;
        ran.findings.extend(report.findings);
        ran.paths.extend(report.paths);
    }
    ran.wrong = tensors.wrong(plan, problem);
    ran
}

fn is_right(kernel: &Kernel, problems: u64, elements: i64, placement: Placement) {
    let module = Module::parse(ptx(kernel)).expect("PTX");
    for problem in kernel.problems(problems, elements) {
        for modes in [Modes::PLAIN, Modes { bounds: true, init: true, races: false }, Modes::ALL] {
            let (findings, wrong, _) = run(kernel, &module, &problem, modes, placement);
            assert!(findings.is_empty(), "{kernel}\n{problem}, {modes:?}\n{}", findings[0]);
            assert_eq!(wrong, None, "{kernel}\n{problem}, {modes:?}");
        }
    }
}

pub(crate) fn apply() -> Kernel {
    let recipe = ElementwiseApply::from_settings(&Settings::default()).expect("settings");
    Kernel::new("ptx_apply", 0, &recipe, &targets()).expect("a right recipe")
}

#[test]
fn elementwise_kernels_are_right_and_silent() {
    is_right(&apply(), 4, 5_000, Placement::Exact);
}

#[test]
fn products_are_right_and_silent() {
    for settings in [NAIVE, TILED, STAGED] {
        is_right(&sgemm(settings), 3, 20_000, Placement::Exact);
    }
}

#[test]
fn parts_of_k_are_right_and_silent() {
    is_right(&sgemm(SPLIT), 2, 12_000, Placement::Exact);
}

/// `CUTEMPLATE_SPEED=1 cargo test --release --test exec_ptx -- --nocapture speed`
#[test]
fn speed_of_a_product() {
    if !crate::bench::is_asked_for() {
        return;
    }
    let kernel = sgemm("variant=block_2d");
    let start = Instant::now();
    let module = Module::parse(ptx(&kernel)).expect("PTX");
    println!("PTX to compact form: {:?}", start.elapsed());
    let mut problem = kernel.problems(1, 1000).next().expect("one");
    for (layout, operand) in problem.layouts.iter_mut().zip(kernel.plan.operands()) {
        let stride: Vec<i64> = operand.strides.iter().map(|s| if *s == ModeStride::Unit { 1 } else { 512 }).collect();
        *layout = TensorLayout::from(ViewLayout::strided(&[512, 512], &stride).expect("rank 2"));
    }
    problem.in_place.fill(None);
    problem.planted.clear();
    for modes in [Modes::PLAIN, Modes { bounds: true, init: true, races: false }, Modes { races: true, ..Modes::PLAIN }]
    {
        let start = Instant::now();
        let (findings, _, steps) = run(&kernel, &module, &problem, modes, Placement::Driver);
        let seconds = start.elapsed().as_secs_f64();
        assert!(findings.is_empty());
        println!(
            "{modes:?}: {seconds:.3} s, {:.2} GFLOP/s, {:.2} ns a warp instruction",
            2.0 * 512_f64.powi(3) / seconds / 1e9,
            seconds * 1e9 / steps as f64
        );
    }
}
