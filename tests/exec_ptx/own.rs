//! Kernels of this crate, as nvcc makes PTX of them: right and silent in every mode.

use std::time::Instant;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::digest::Digest;
use cutemplate::dtype::DType;
use cutemplate::emit::render;
use cutemplate::exec::ptx::{Modes, Placement, TensorCores};
use cutemplate::exec::{self, Error, FindingKind, Job, Report, Target};
use cutemplate::exec::{Options, Program};
use cutemplate::expr::Function;
use cutemplate::plan::{ModeStride, Workspace};
use cutemplate::recipe::elementwise_apply::ElementwiseApplyArgs;
use cutemplate::recipe::sgemm::Sgemm;
use cutemplate::recipe::sum::{Group, SumArgs};
use cutemplate::recipe::{ElementwiseApply, Gemm, Recipe, Sum};
use cutemplate::settings::Settings;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::{View, ViewLayout, ViewMut};
use cutlass_sys::Finder;
use half::f16;

use crate::kernels::gemm::sized;
use crate::kernels::{Kernel, Problem, Tensors};
use crate::together::ptx;
use crate::whole;

pub(crate) const NAIVE: &str = "variant=naive\nbatched=true";
pub(crate) const TILED: &str = "variant=block_2d\ntile=16x16x8\nthread=4x4\nbatched=true";
pub(crate) const STAGED: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nstages=3\nmin_blocks=0\nconflicts=allow";
pub(crate) const SPLIT: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nsplit_k=3\nbatched=true\nmin_blocks=0\nconflicts=allow";

pub(crate) fn targets() -> Targets {
    Targets::new([Arch::Sm90a]).expect("an architecture")
}

/// A name for what has these settings, whatever else is compiled with it.
pub(crate) fn stem(family: &str, settings: &str) -> String {
    let digest = Digest::of(settings.as_bytes()).to_string();
    format!("ptx_{family}_{}", &digest[..8])
}

pub(crate) fn sgemm(settings: &str) -> Kernel {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Kernel::new(&stem("sgemm", settings), 0, &recipe, &targets()).expect("a right recipe")
}

/// The PTX of a kernel, as a build keeps it.
pub(crate) fn built(kernel: &Kernel) -> String {
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc");
    compiler.ptx(&kernel.unit, kernel.plan.targets()).unwrap_or_else(|e| panic!("{kernel}: {e}")).text().to_owned()
}

pub(crate) fn program(kernel: &Kernel, ptx: impl Into<String>) -> Program {
    Program::of(&kernel.plan, ptx, Options::default()).unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

pub(crate) const BOUNDED: Options = Options {
    modes: Modes::ALL,
    placement: Placement::Exact,
    tensor_cores: TensorCores::Fast,
    seed: 0,
    step_budget: 200_000_000,
    workers: None,
    paths: false,
    profile: false,
};

/// What came of a kernel's launch, and what is wrong with its outputs.
pub(crate) struct Ran {
    pub(crate) report: Report,
    pub(crate) wrong: Option<String>,
}

/// Runs a kernel on these tensors, as all that it takes to launch it says.
pub(crate) fn run(kernel: &Kernel, program: &Program, problem: &Problem, tensors: &mut Tensors) -> Report {
    let views = tensors.views(problem);
    let binding = kernel.plan.bind_with(&views, &problem.scalars).expect("a launch");
    let report = tensors.run(program, &Job::from(&binding), problem, &views);
    report.unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

pub(crate) fn launch(kernel: &Kernel, program: &Program, problem: &Problem) -> Ran {
    let mut tensors = Tensors::new(&kernel.plan, problem);
    let report = run(kernel, program, problem, &mut tensors);
    Ran { report, wrong: tensors.wrong(&kernel.plan, problem) }
}

pub(crate) fn is_right(kernel: &Kernel, mut program: Program, problems: impl IntoIterator<Item = Problem>) {
    for (number, problem) in problems.into_iter().enumerate() {
        // What is checked without races is checked with them too.
        let without_races = (number == 0 || whole::is_asked_for()).then_some(Modes { races: false, ..Modes::ALL });
        let given = Tensors::new(&kernel.plan, &problem);
        let mut right: Option<Tensors> = None;
        for modes in [Some(Modes::PLAIN), without_races, Some(Modes::ALL)].into_iter().flatten() {
            program = program.with(Options { modes, ..BOUNDED });
            let mut tensors = given.clone();
            let report = run(kernel, &program, &problem, &mut tensors);
            assert!(report.is_clean(), "{kernel}\n{problem}, {modes:?}\n{report}");
            if right.as_ref().is_none_or(|right| !right.gives(&tensors)) {
                assert_eq!(tensors.wrong(&kernel.plan, &problem), None, "{kernel}\n{problem}, {modes:?}");
            }
            right = Some(tensors);
        }
    }
}

pub(crate) fn apply() -> Kernel {
    let recipe = ElementwiseApply::from_settings(&Settings::default()).expect("settings");
    Kernel::new("ptx_apply", 0, &recipe, &targets()).expect("a right recipe")
}

#[test]
fn elementwise_kernels_are_right_and_silent() {
    let kernel = apply();
    is_right(&kernel, program(&kernel, ptx(&kernel)), kernel.problems(4, 5_000));
}

#[test]
fn products_are_right_and_silent() {
    for settings in [NAIVE, TILED, STAGED] {
        let kernel = sgemm(settings);
        is_right(&kernel, program(&kernel, ptx(&kernel)), kernel.problems(3, 20_000));
    }
}

/// Small tiles, whose fences and waits are taken out one by one; one CTA for all of them.
pub(crate) const CORES: &str = "out=f32\ntile=128x64x16\nstages=3\nsm80_ctas=1";
/// Stream-K: a few CTAs, whose tiles are whole, or shared by all, and what goes with D.
const CORES_THAT_SHARE: &str = "out=f32\nsm80_tile=64x32x16\nsm80_stages=2\nsm80_stream_k=1\nsm80_ctas=5\nepilogue=|a, c, next; m| m * c + relu(a + next)\naux=f16:(0,1)";
/// Two stages, so that they are filled again; one CTA for all tiles.
pub(crate) const WARPGROUPS: &str = "out=f32\ntile=128x64x16\nstages=2\ncluster=1x1\nctas=1";
/// B has fewer vectors of 16 bytes than there are threads.
const FEWER: &str = "b=row\nsm80_tile=192x96x32\nsm80_stages=3";
/// M-major A, N-major B, M-major D, and of the other products A or B alone.
const TURNED: &str = "a=col\nd=col\ntile=128x64x64\nstages=2\nsm80_tile=64x96x32\nsm80_ctas=2\nepilogue=|a, b, c; beta| beta * b + relu(a + c)\naux=f32:(1,0)";
/// Two teams by turns, one after another: k-tiles that are no multiple of the stages, and pairs of what goes with D; in clusters of four.
const TURNS: &str = "schedule=pingpong\nout=f32\ntile=64x64x16\nstages=3\ncluster=1x1\nctas=2\nepilogue=|a, b, c; beta| beta * b + relu(a + c)\naux=f16:(0,1)";
const TURNS_OF_FOUR: &str = "schedule=pingpong\ndtype=bf16\nout=bf16\nd=col\ntile=128x32x32\nstages=2\ncluster=2x2\nctas=4\nepilogue=relu(a), a";
/// Parts of K in clusters of four, several tiles for each, and what goes with D; four parts of rows of M, with others that share what
/// is read.
const PARTS: &str = "split_k=2\nout=f32\ntile=64x64x16\nstages=2\ncluster=1x2\nctas=4\nepilogue=|a, b, c; beta| beta * b + relu(a + c)\naux=f16:(0,1)";
const PARTS_OF_FOUR: &str = "split_k=4\ndtype=bf16\nout=bf16\nd=col\na=col\nbatched=true\ntile=256x64x16\nstages=2\ncluster=2x1\nctas=8\nepilogue=|a, b, c; beta| beta * b + relu(a + c), a\naux=bf16:(0,1,0)";
/// Stream-K: two clusters of two, whose tiles are whole, or shared by both, and what goes with D.
pub(crate) const STREAM: &str = "stream_k=1\nout=f32\ntile=64x32x16\nstages=2\ncluster=2x1\nctas=4\nepilogue=|a, b, c; beta| beta * b + relu(a + c)\naux=f16:(0,1)";
/// More tiles than CTAs, batches, tiles of D^T.
const STREAM_OF_BATCHES: &str = "stream_k=2\ndtype=bf16\nout=bf16\nd=col\nb=row\nbatched=true\ntile=128x48x32\nstages=3\ncluster=1x2\nctas=6\ngroup=2\nepilogue=|a, b, c; beta| beta * b + relu(a + c), a + c\naux=bf16:(1,0,?)";
/// A tile that waits in registers, in four parts for three buffers; one CTA, so that the buffer of a tile's first part is any of them. One
/// of CUTLASS's usual N: of the others nvcc takes 12 s for the header.
pub(crate) const RING: &str = "tile=64x256x32\nstages=10\ncluster=1x1\nctas=1";
/// The same where C is read beside products, to where parts waited that are stored by then.
const RING_WITH_C: &str = "tile=64x256x32\nstages=10\ncluster=1x1\nctas=1\nepilogue=|a, b; beta| beta * b + a";
/// Clusters of four along N, and of eight, whose CTAs copy a part of what they share each.
const FOUR: &str = "out=f32\ntile=64x32x32\nstages=3\ncluster=1x4\nctas=8\ngroup=2";
const EIGHT: &str =
    "schedule=pingpong\nb=row\ntile=64x128x32\nstages=2\ncluster=4x2\nctas=8\nepilogue=|a, b; beta| beta * b + relu(a)";
const BATCHED: &str = "dtype=bf16\nout=f32\na=col\nb=row\nbatched=true\ntile=64x96x32\ncluster=2x1\nstages=3\nctas=6\nsm80_tile=128x64x64\nsm80_stream_k=2\nsm80_ctas=4\nepilogue=|sum, c, part, x; alpha, n| alpha * sum + n * c + part * x, -sum\naux=bf16:(0,1,0), f16:(?,?,?)";

pub(crate) fn gemm(settings: &str, arch: Arch) -> Kernel {
    let target = Targets::new([arch]).expect("an architecture");
    let recipe = Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Kernel::new(&stem("gemm", settings), 0, &recipe, &target).expect("a right recipe")
}

/// Problems of these extents, for each entry of a text.
pub(crate) fn products(kernel: &Kernel, extents: &[[i64; 3]]) -> Vec<Problem> {
    let gap = |seed: u64| (seed.is_multiple_of(2)).then_some(16);
    let all = (1..).zip(extents);
    let whole = all.clone().map(|(seed, extents)| sized(&kernel.plan, extents, gap(seed), Fill::Integers, seed));
    // Rows at odd elements are packed.
    whole.chain(all.map(|(seed, extents)| sized(&kernel.plan, extents, Some(1), Fill::Integers, seed))).collect()
}

fn aligned(kernel: &Kernel) -> impl Iterator<Item = Problem> {
    let extents = [([1, 1, 8], Fill::Normal), ([67, 61, 72], Fill::Integers), ([129, 65, 200], Fill::Normal)];
    // Without K, D is the epilogue of zeros, which no map describes.
    let whole = [([136, 72, 80], Fill::Integers), ([70, 72, 0], Fill::Integers)];
    (1_u64..).zip(extents.into_iter().chain(whole)).map(move |(seed, (extents, fill))| {
        sized(&kernel.plan, &extents, (seed.is_multiple_of(2)).then_some(16), fill, seed)
    })
}

/// Problems that TMA and `cp.async` can copy, and any others.
pub(crate) fn anywhere(kernel: &Kernel) -> impl Iterator<Item = Problem> {
    aligned(kernel).chain(kernel.problems(whole::or(4, 2), 40_000))
}

/// The text for sm_80, beside those of the catalogue: tensor cores, `ldmatrix` and swizzled stages.
pub(crate) fn of_tensor_cores() -> Vec<Kernel> {
    whole::of(&[TURNED, CORES_THAT_SHARE], &[BATCHED, FEWER])
        .into_iter()
        .map(|settings| gemm(settings, Arch::Sm80))
        .collect()
}

/// The text for sm_90a, a cluster of two along M, of two along N, and none: TMA, barriers in shared memory and `wgmma`.
pub(crate) fn of_warpgroups() -> Vec<Kernel> {
    let others = [
        BATCHED,
        "out=f16",
        "dtype=bf16\nout=f32\ntile=192x64x16\nstages=2\ncluster=1x2\nctas=4",
        "dtype=bf16\nout=bf16\ntile=64x32x32\nstages=3\ncluster=1x1\nctas=3\ngroup=2",
        TURNED,
        TURNS,
        TURNS_OF_FOUR,
        PARTS,
        STREAM_OF_BATCHES,
        FOUR,
        EIGHT,
    ];
    whole::of(&[STREAM, RING, RING_WITH_C, PARTS_OF_FOUR], &others)
        .into_iter()
        .map(|settings| gemm(settings, Arch::Sm90a))
        .collect()
}

#[test]
fn products_of_tensor_cores_are_right_and_silent() {
    for kernel in of_tensor_cores() {
        is_right(&kernel, program(&kernel, ptx(&kernel)), anywhere(&kernel));
    }
}

#[test]
fn products_of_warpgroups_are_right_and_silent() {
    for kernel in of_warpgroups() {
        is_right(&kernel, program(&kernel, ptx(&kernel)), anywhere(&kernel));
    }
}

/// What is packed in rows that are too short, at another place, or in a workspace without its last row is missed.
#[test]
fn factors_that_are_packed_elsewhere_are_found() {
    for arch in [Arch::Sm80, Arch::Sm90a] {
        let kernel = gemm(if arch == Arch::Sm80 { CORES } else { WARPGROUPS }, arch);
        let (plan, text) = (&kernel.plan, ptx(&kernel));
        let problem = sized(plan, &[70, 61, 112], Some(1), Fill::Integers, 5);
        let run = |change: &dyn Fn(&mut Vec<u8>, &mut Workspace)| {
            let mut tensors = Tensors::new(plan, &problem);
            let views = tensors.views(&problem);
            let binding = plan.bind_with(&views, &problem.scalars).expect("a launch");
            let (mut params, mut workspace) =
                (binding.params().to_vec(), binding.workspace().expect("A and B are packed"));
            change(&mut params, &mut workspace);
            let job = Job { params: &params, workspace: Some(workspace), ..Job::from(&binding) };
            let program = program(&kernel, text).with(BOUNDED);
            let report = tensors.run(&program, &job, &problem, &views).expect("it runs");
            report.findings.first().map(|f| format!("{:?}", f.kind)).or(tensors.wrong(plan, &problem))
        };
        let set = |name: &str, value: i64| {
            let offset = plan.params().field(name).expect("a parameter").offset;
            move |params: &mut Vec<u8>, _: &mut Workspace| {
                params[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
            }
        };
        assert_eq!(run(&|_, _| ()), None, "{arch}");
        for (name, value) in [("from_lda", 64), ("from_ldb", 64), ("packed_b", 0), ("packed_b", 64)] {
            let found = run(&set(name, value)).unwrap_or_else(|| panic!("{arch}: {name} = {value} is not found"));
            println!("{arch}: {name} = {value}: {}", found.lines().next().unwrap_or_default());
        }
        let found = run(&|_, workspace| workspace.bytes.0 -= 256);
        assert_eq!(found.as_deref(), Some("OutOfBounds"), "{arch}");
    }
}

#[test]
fn parts_of_k_are_right_and_silent() {
    let kernel = sgemm(SPLIT);
    is_right(&kernel, program(&kernel, ptx(&kernel)), kernel.problems(2, 12_000));
}

/// As a user's own test: the arguments that a GPU takes, and what is wrong in the caller's terms.
#[test]
fn a_typed_launch_is_right_or_names_tensor_and_coordinate() {
    // Of the catalogue, where it is compiled anyway.
    let add = ElementwiseApply::from_settings(&Settings::parse_lines("expr=a + b\nvariant=naive")).expect("settings");
    let plan = add.plan(&Targets::default()).expect("a right recipe");
    let kernel = Kernel { index: 0, unit: render(&plan), plan };
    let (plan, text) = (&kernel.plan, built(&kernel));
    let launch = |text: &str, c: &mut [f16]| {
        let kernel = exec::Kernel::<ElementwiseApply>::from_ptx(plan.clone(), text, Options::default())?;
        let (a, b) = ([1.0, 2.0, 3.0, f32::NAN, 4.0, 5.0, 6.0].map(f16::from_f32), [f16::from_f32(0.5); 7]);
        // Two rows of three, with one element between them that belongs to nobody.
        let args = ElementwiseApplyArgs::new().input(View::host(&a, [2, 3], 4)).input(View::host(&b, [2, 3], 4));
        kernel.launch(args.output(ViewMut::host(c, [2, 3], 4)))
    };
    let mut c = [f16::NEG_ONE; 7];
    launch(&text, &mut c).expect("it runs");
    assert_eq!(c.map(f16::to_f32), [1.5, 2.5, 3.5, -1.0, 4.5, 5.5, 6.5]);

    let store = text.lines().find(|l| l.trim_start().starts_with("st.global")).expect("a store");
    let broken = text.replace(store, &store.replace("],", "+2],"));
    let Err(Error::Verdict(report)) = launch(&broken, &mut c) else { panic!("a stray") };
    let stray = report.findings.iter().find(|f| f.kind == FindingKind::OutOfBounds).expect("a stray");
    let Some(Target::Tensor { name, coordinate, .. }) = &stray.target else { panic!("no tensor: {report}") };
    assert_eq!((name.as_str(), coordinate[1], stray.write), ("Y", 3, true), "{report}");
    assert!(stray.line().is_some_and(|l| !l.file.starts_with('/')), "{report}");
}

/// Products of two rows, added up by a warp and by a block.
pub(crate) fn sums() -> [Kernel; 2] {
    [Group::Warp, Group::Block].map(|by| {
        let sum = Sum { by, ..Sum::new(Function::binary(|a, b| a * b), DType::F16) };
        Kernel::new(&stem("sum", &by.to_string()), 0, &sum, &targets()).expect("a right recipe")
    })
}

/// Rows without elements, infinities and NaN, and 1000 terms that no order but one adds up to the same bits.
#[test]
fn rows_may_be_empty_and_the_order_is_fixed() {
    for kernel in sums() {
        let of_seed = |seed| {
            let options = Options { seed, ..Options::default() };
            exec::Kernel::<Sum>::from_ptx(kernel.plan.clone(), ptx(&kernel), options).unwrap_or_else(|e| panic!("{e}"))
        };
        let launch = |seed, a: &[f16], n: i64| {
            let mut y = [7.0_f32; 3];
            let view = || View::host(a, [3, n], n.max(1));
            let sums = ViewMut::host_strided(&mut y, ViewLayout::strided(&[3], &[1]).expect("small"));
            let args = SumArgs::new().input(view()).input(view()).output(sums);
            of_seed(seed).launch(args).unwrap_or_else(|e| panic!("{kernel}: {e}"));
            y.map(f32::to_bits)
        };
        assert_eq!(launch(0, &[], 0), [0; 3], "{kernel}");
        let mut a: Vec<f16> = (0..3000).map(|i| f16::from_f32((i % 613) as f32 * 0.37 - 100.0)).collect();
        (a[500], a[1500]) = (f16::INFINITY, f16::NAN);
        let [up, nan, rest] = launch(0, &a, 1000).map(f32::from_bits);
        assert!(up == f32::INFINITY && nan.is_nan() && rest.is_finite(), "{kernel}: {up}, {nan}, {rest}");
        // No two launches differ, whatever the order of warps.
        assert_eq!(launch(1, &a.clone(), 1000)[2], rest.to_bits(), "{kernel}");
    }
}

/// `cargo test --release --test exec_ptx -- --ignored --nocapture speed`
#[test]
#[ignore = "measures times, in a release build"]
fn speed_of_a_product() {
    let kernel = sgemm("variant=block_2d");
    let start = Instant::now();
    let mut program = program(&kernel, built(&kernel));
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
        program = program.with(Options { modes, placement: Placement::Driver, ..BOUNDED });
        let report = launch(&kernel, &program, &problem).report;
        let seconds = start.elapsed().as_secs_f64();
        assert!(report.is_clean());
        println!(
            "{modes:?}: {seconds:.3} s, {:.2} GFLOP/s, {:.2} ns a warp instruction",
            2.0 * 512_f64.powi(3) / seconds / 1e9,
            seconds * 1e9 / report.instructions as f64
        );
    }
}
