//! Runs a kernel on matrices, on the GPU or on the executor.

use std::fmt;

use cutemplate::build::{Compiled, Compiler, Error};
use cutemplate::emit::{Unit, render};
use cutemplate::exec::ptx::{Modes, Placement};
use cutemplate::exec::{Buffer, Job, Options, Program, Report};
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu};
use cutemplate::plan::Plan;
use cutemplate::verify::Tensor;
use cutemplate::view::{Access, ViewRef};
use cutlass_sys::Finder;

use crate::cli::args::{Mode, On};
use crate::cli::output::{Failure, Output};
use crate::cli::progress::{Fetching, on_terminal, while_working};
use crate::cli::run::Run;

/// Where a kernel runs.
#[derive(Debug)]
pub(crate) enum Device {
    Gpu(Gpu),
    /// The executor of what nvcc makes of the text.
    Ptx(Box<Compiler>, Options, Mode),
}

impl Device {
    /// The device that was asked for; with it, where no GPU was found for `auto`, why not.
    pub(crate) fn choose(
        on: On,
        mode: Option<Mode>,
        profile: bool,
        out: &Output,
    ) -> Result<(Self, Option<String>), Failure> {
        let for_cpu = mode.map(|_| "--mode").or(profile.then_some("--profile"));
        if let (On::Gpu, Some(option)) = (on, for_cpu) {
            return Err(Failure::message(format_args!("{option} is for the CPU executor: leave out --on gpu")));
        }
        let no_gpu = match on {
            On::Gpu => return Gpu::find().map(|gpu| (Device::Gpu(gpu), None)).map_err(Failure::message),
            On::Auto if for_cpu.is_none() => match Gpu::find() {
                Ok(gpu) => return Ok((Device::Gpu(gpu), None)),
                Err(none) => Some(none.reason),
            },
            _ => None,
        };
        let mode = mode.unwrap_or(Mode::Plain);
        let compiler = Compiler::new(&Finder::from_env(), &mut Fetching::new(out)).map_err(Failure::message)?;
        Ok((Device::Ptx(Box::new(compiler), options(mode, profile), mode), no_gpu))
    }
}

/// Warp instructions that a kernel of ours may take: a product of 8192 takes more than [`cutemplate::exec::ptx::STEP_BUDGET`].
const STEPS: u64 = 100_000_000_000;

/// The options of the PTX executor. Sectors are counted where a driver would place the tensors.
fn options(mode: Mode, profile: bool) -> Options {
    let modes = match mode {
        Mode::Plain => Modes::PLAIN,
        Mode::Bounds => Modes { bounds: true, init: true, races: false },
        Mode::Races => Modes::ALL,
    };
    let placement = if profile { Placement::Driver } else { Placement::Exact };
    Options { modes, placement, profile, step_budget: STEPS, ..Options::default() }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Gpu(gpu) => write!(f, "{gpu}"),
            Device::Ptx(_, _, mode) => write!(f, "the PTX executor, mode {mode}"),
        }
    }
}

/// The fatbin of a plan: from the store, or compiled by nvcc.
pub(crate) fn fatbin(plan: &Plan, unit: &Unit, out: &Output) -> Result<Compiled, Failure> {
    let mut progress = Fetching::new(out);
    let compiler = Compiler::new(&Finder::from_env(), &mut progress).map_err(Failure::message)?;
    let what = format!("nvcc compiles {} for {}, unless the store has it", unit.name(), plan.targets());
    let compiled = while_working(out, &what, || compiler.compile(unit, plan.targets())).map_err(Failure::message)?;
    deny_spills(plan, &compiled).map_err(Failure::message)?;
    Ok(compiled)
}

/// Refuses a kernel that spills where its recipe denies that.
pub(crate) fn deny_spills(plan: &Plan, compiled: &Compiled) -> Result<(), Error> {
    if plan.spills_denied() { compiled.manifest().deny_spills() } else { Ok(()) }
}

/// The text of a plan that a GPU runs. Where it runs none this is the newest, and loading says what would fit.
pub(crate) fn text_on<'p>(gpu: &Gpu, plan: &'p Plan) -> &'p Plan {
    plan.text_on(gpu.capability()).or(plan.texts().last()).unwrap_or(plan)
}

/// The kernel on a GPU: of the text that it runs, compiled where the store does not have it.
pub(crate) fn load(gpu: &Gpu, plan: &Plan, out: &Output) -> Result<AnyKernel, Failure> {
    let plan = text_on(gpu, plan);
    let compiled = fatbin(plan, &render(plan), out)?;
    AnyKernel::load(gpu, plan.clone(), compiled.vouched()).map_err(Failure::message)
}

/// Runs the kernel once: `matrices` are its operands, in order.
pub(crate) fn run(
    run: &Run<'_>,
    plan: &Plan,
    matrices: &mut [Tensor],
    out: &Output,
) -> Result<Option<Report>, Failure> {
    match run.device {
        Device::Gpu(gpu) => {
            let kernel = load(gpu, plan, out)?;
            on_gpu(gpu, &kernel, matrices, run.scalars).map(|()| None)
        }
        Device::Ptx(compiler, options, _) => {
            let (text, program) = of_ptx(compiler, plan, *options, out)?;
            on_cpu(run, text, &program, matrices, out).map(Some)
        }
    }
}

/// Uploads every operand with the guard memory around it, launches, and downloads the outputs with theirs.
fn on_gpu(gpu: &Gpu, kernel: &AnyKernel, matrices: &mut [Tensor], scalars: &[f64]) -> Result<(), Failure> {
    let stream = gpu.context().default_stream();
    let uploads: Result<Vec<_>, _> = matrices.iter().map(|m| DeviceTensor::upload(&stream, m)).collect();
    let mut uploads = uploads.map_err(Failure::message)?;
    let operands = kernel.plan().operands();
    let mut views: Vec<_> = uploads
        .iter_mut()
        .zip(operands)
        .map(|(m, o)| if o.access == Access::Write { m.any_mut() } else { m.any() })
        .collect();
    kernel.launch_with(&stream, &mut views, scalars).map_err(Failure::message)?;
    drop(views);
    for ((upload, matrix), operand) in uploads.iter().zip(matrices).zip(operands) {
        if operand.access == Access::Write {
            upload.download(&stream, matrix).map_err(Failure::message)?;
        }
    }
    stream.synchronize().map_err(Failure::message)
}

/// The text of a plan for the newest architecture that the PTX executor runs.
fn of_ptx<'p>(
    compiler: &Compiler,
    plan: &'p Plan,
    options: Options,
    out: &Output,
) -> Result<(&'p Plan, Program), Failure> {
    let mut refused = None;
    for text in plan.texts().iter().rev() {
        let what = format!("nvcc makes PTX of {}, unless the store has it", text.name());
        let made =
            while_working(out, &what, || compiler.ptx(&render(text), text.targets())).map_err(Failure::message)?;
        match Program::of(text, made.text(), options) {
            Ok(program) => return Ok((text, program)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(|| Failure::message("the plan has no text"), Failure::message))
}

fn on_cpu(
    run: &Run<'_>,
    plan: &Plan,
    program: &Program,
    matrices: &mut [Tensor],
    out: &Output,
) -> Result<Report, Failure> {
    let views: Vec<ViewRef> = matrices.iter().zip(plan.operands()).map(|(m, o)| m.raw(o.access)).collect();
    let binding = plan.bind_with(&views, run.scalars)?;
    let mut buffers: Vec<Buffer<'_>> =
        matrices.iter_mut().zip(&views).map(|(m, v)| buffer(m, v)).collect::<Option<_>>().ok_or_else(|| {
            Failure::message("a matrix is smaller than its view says; please report this as a defect of cutemplate")
        })?;
    let what = format!("{} runs {}", run.device, plan.name());
    on_terminal(out, &what, || program.run(&Job::from(&binding), &mut buffers)).map_err(Failure::message)
}

/// The memory of a view within its matrix.
fn buffer<'a>(matrix: &'a mut Tensor, view: &ViewRef) -> Option<Buffer<'a>> {
    let start = usize::try_from(matrix.start().0).ok()?;
    let bytes = usize::try_from(view.available.0 * view.dtype.bytes().0).ok()?;
    let range = start..start + bytes;
    match view.access {
        Access::Read => matrix.storage().get(range).map(Buffer::Read),
        Access::Write | Access::ReadWrite => matrix.storage_mut().get_mut(range).map(Buffer::Write),
    }
}
