//! Runs a kernel on matrices, on the GPU or on the CPU executor.

use std::fmt;

use cutemplate::build::{Compiled, Compiler};
use cutemplate::emit::{Unit, render};
use cutemplate::host::{Buffer, Mode, Options, Program, Report};
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu};
use cutemplate::plan::Plan;
use cutemplate::verify::Tensor;
use cutemplate::view::{Access, ViewRef};
use cutlass_sys::Finder;

use crate::args::On;
use crate::output::{Failure, Output};
use crate::progress::{Fetching, on_terminal, while_working};
use crate::run::Run;

/// Where a kernel runs.
#[derive(Debug)]
pub(crate) enum Device {
    Gpu(Gpu),
    /// The executor, and why not a GPU where one was looked for.
    Cpu(Mode, Option<String>),
}

impl Device {
    /// The device that was asked for; the executor where no GPU is found and none was insisted on.
    pub(crate) fn choose(on: On, mode: Option<Mode>) -> Result<Self, Failure> {
        let cpu = |why| Ok(Device::Cpu(mode.unwrap_or(Mode::Plain), why));
        match on {
            On::Cpu => cpu(None),
            // A mode is one of the executor's.
            On::Auto if mode.is_some() => cpu(None),
            On::Auto => Gpu::find().map(Device::Gpu).or_else(|none| cpu(Some(none.to_string()))),
            On::Gpu if mode.is_some() => Err(Failure::message("--mode is for the CPU executor: leave out --on gpu")),
            On::Gpu => Gpu::find().map(Device::Gpu).map_err(Failure::message),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Gpu(gpu) => write!(f, "{gpu}"),
            Device::Cpu(mode, _) => write!(f, "the CPU executor, mode {mode}"),
        }
    }
}

/// The fatbin of a plan: from the store, or compiled by nvcc.
pub(crate) fn fatbin(plan: &Plan, unit: &Unit, out: &Output) -> Result<Compiled, Failure> {
    let mut progress = Fetching::new(out);
    let compiler = Compiler::new(&Finder::from_env(), &mut progress).map_err(Failure::message)?;
    let what = format!("nvcc compiles {} for {}, unless the store has it", unit.name(), plan.targets());
    let compiled = while_working(out, &what, || compiler.compile(unit, plan.targets())).map_err(Failure::message)?;
    if plan.spills_denied() {
        compiled.manifest().deny_spills().map_err(Failure::message)?;
    }
    Ok(compiled)
}

/// The kernel on a GPU: of the part of the plan that it runs, compiled where the store does not have it.
pub(crate) fn load(gpu: &Gpu, plan: &Plan, out: &Output) -> Result<AnyKernel, Failure> {
    // Where none fits, loading says what would.
    let plan = plan.part_on(gpu.capability()).unwrap_or(plan);
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
        Device::Cpu(mode, _) => on_cpu(plan, *mode, matrices, run.scalars, out).map(Some),
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

fn on_cpu(plan: &Plan, mode: Mode, matrices: &mut [Tensor], scalars: &[f64], out: &Output) -> Result<Report, Failure> {
    if let Some(what) = plan.needs_gpu() {
        return Err(Failure::message(cutemplate::host::Error::needs_gpu(plan.name(), what)));
    }
    let options = Options::from_env(&mut Fetching::new(out)).map_err(Failure::message)?;
    let what = format!("the C++ compiler makes {} for the CPU, mode {mode}, unless the cache has it", plan.name());
    let unit = render(plan);
    let program = while_working(out, &what, || Program::compile(&unit, mode, &options)).map_err(Failure::message)?;
    let views: Vec<ViewRef> = matrices.iter().zip(plan.operands()).map(|(m, o)| m.raw(o.access)).collect();
    let binding = plan.bind_with(&views, scalars)?;
    let mut buffers: Vec<Buffer<'_>> =
        matrices.iter_mut().zip(&views).map(|(m, v)| buffer(m, v)).collect::<Option<_>>().ok_or_else(|| {
            Failure::message("a matrix is smaller than its view says; please report this as a defect of cutemplate")
        })?;
    let what = format!("the CPU executor runs {}, mode {mode}", plan.name());
    on_terminal(out, &what, || program.run(&binding, &mut buffers)).map_err(Failure::message)
}

/// The memory of a view within its matrix.
fn buffer<'a>(matrix: &'a mut Tensor, view: &ViewRef) -> Option<Buffer<'a>> {
    let start = usize::try_from(matrix.start().0).ok()?;
    let bytes = usize::try_from(view.available.0 * view.dtype.bytes().0).ok()?;
    let range = start..start + bytes;
    match view.access {
        Access::Read => matrix.storage().get(range).map(Buffer::Read),
        Access::Write => matrix.storage_mut().get_mut(range).map(Buffer::Write),
    }
}
