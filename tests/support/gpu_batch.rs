//! Many kernels in one fatbin, since most of the time to compile one goes into CuTe's headers.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cutemplate::build::{Compiler, write_if_changed};
use cutemplate::dtype::{Bool, DType, E4m3, E5m2};
use cutemplate::emit::SourceFile;
use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu, LaunchError};
use cutemplate::plan::Plan;
use cutemplate::recipe::{Attention, ElementwiseApply, Gemm, Recipe, TensorArgs};
use cutemplate::verify::Tensor;
use cutemplate::view::{Args, DeviceMemory};
use cutlass_sys::Finder;
use half::{bf16, f16};

use crate::gpu;
use crate::kernels::{Kernel, Problem, Tally, Tensors};

/// Kernels of the same targets that are compiled together: fewer of those whose own text takes longer than CuTe's headers.
fn together(kernels: &[Kernel]) -> usize {
    let is_long = |plan: &Plan| [Gemm::FAMILY, Attention::FAMILY].contains(&plan.family());
    if kernels.iter().any(|kernel| is_long(&kernel.plan)) { 2 } else { 12 }
}

/// `$body` with `$T` as the Rust type of an element type.
macro_rules! typed {
    ($dtype:expr, $T:ident => $body:expr) => {
        typed!(@ $dtype, $T, $body, F64 f64, F32 f32, F16 f16, Bf16 bf16, E4m3 E4m3, E5m2 E5m2, I32 i32, I16 i16, I8 i8,
            U8 u8, Bool Bool)
    };
    (@ $dtype:expr, $T:ident, $body:expr, $($D:ident $type:ty),+) => {
        match $dtype { $(DType::$D => { type $T = $type; $body })+ }
    };
}

/// Where fatbins come from: nvcc, and the folder of `CUTEMPLATE_TEST_DATA`, as `support/gpu.rs` has it.
struct Source {
    compiler: Option<Compiler>,
    folder: Option<PathBuf>,
}

impl Source {
    fn new() -> Source {
        let folder = std::env::var_os("CUTEMPLATE_TEST_DATA").map(PathBuf::from);
        let compiler = Compiler::new(&Finder::from_env(), &mut ());
        if let (Err(why), None) = (&compiler, &folder) {
            panic!("nvcc, or CUTEMPLATE_TEST_DATA with the kernels: {why}");
        }
        Source { compiler: compiler.ok(), folder }
    }

    /// One fatbin with the entries of all kernels whose files these are, or what the compiler says. The first kernel gives
    /// the name, and its plan and unit what the compiler is told.
    fn fatbin(&self, first: &Kernel, files: &[SourceFile]) -> Result<Vec<u8>, String> {
        let text: String = files.iter().map(|f| f.text.as_str()).collect();
        // Other tests have the first kernel by itself, under its name.
        let stem = format!("{}_together", first.plan.name());
        let file = |suffix: &str| Some(self.folder.as_ref()?.join(format!("{stem}.{suffix}")));
        let carried = file("txt").zip(file("fatbin"));
        if let Some((known, fatbin)) = &carried
            && fs::read_to_string(known).is_ok_and(|known| known == text)
        {
            let bytes = fs::read(fatbin).map_err(|e| e.to_string());
            // A text that is to be compiled elsewhere has none yet.
            return if gpu::emits() { Ok(bytes.unwrap_or_default()) } else { bytes };
        }
        if let (Some(folder), Some((known, _)), Some(compiler), true) =
            (&self.folder, &carried, &self.compiler, gpu::emits())
        {
            gpu::emit(folder, &stem, (&first.unit, &first.plan), &unit_of(first, files), compiler);
            write_if_changed(known, text.as_bytes()).map_err(|e| e.to_string())?;
            return Ok(Vec::new());
        }
        let bytes = self.compile(first, files)?;
        if let Some((known, fatbin)) = &carried {
            let io = |e: std::io::Error| e.to_string();
            fs::create_dir_all(self.folder.as_ref().expect("it carries them")).map_err(io)?;
            // The text last: where it is, the fatbin is whole.
            write_if_changed(fatbin, &bytes).map_err(io)?;
            write_if_changed(known, text.as_bytes()).map_err(io)?;
        }
        Ok(bytes)
    }

    /// What the compiler does for the first kernel, with all entries in its translation unit.
    fn compile(&self, first: &Kernel, files: &[SourceFile]) -> Result<Vec<u8>, String> {
        let Some(compiler) = &self.compiler else { return Err("there is no nvcc".into()) };
        let io = |e: std::io::Error| e.to_string();
        let folder = tempfile::tempdir().map_err(io)?;
        for file in unit_of(first, files) {
            fs::write(folder.path().join(&file.name), &file.text).map_err(io)?;
        }
        let argv = compiler.command_line(&first.unit, first.plan.targets());
        let mut nvcc = Command::new(&argv[0]);
        let output = nvcc.args(&argv[1..]).current_dir(folder.path()).output().map_err(io)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let errors: Vec<&str> = text.lines().filter(|l| !l.starts_with("ptxas info")).take(40).collect();
            return Err(format!("{}\n{}", output.status, errors.join("\n")));
        }
        let report = String::from_utf8_lossy(&output.stderr);
        let told = gpu::told(&report, gpu::denied(files, first.plan.spills_denied()));
        if !told.is_empty() {
            return Err(format!("what ptxas tells of it is denied:\n{}", told.join("\n")));
        }
        fs::read(folder.path().join(format!("{}.fatbin", first.unit.name()))).map_err(io)
    }
}

/// The headers as they are, and all entries in the translation unit of the first kernel.
fn unit_of(first: &Kernel, files: &[SourceFile]) -> Vec<SourceFile> {
    let (entries, mut unit): (Vec<SourceFile>, _) = files.iter().cloned().partition(|f| f.name.ends_with(".cu"));
    let text = entries.iter().map(|f| f.text.as_str()).collect();
    unit.push(SourceFile { name: first.unit.entry().name.clone(), text });
    unit
}

fn files(kernels: &[Kernel]) -> Vec<SourceFile> {
    kernels.iter().flat_map(|k| k.unit.files()).cloned().collect()
}

/// Held while compilers take all processors, so that tests do not double them and the memory that they need.
static BUSY: Mutex<()> = Mutex::new(());

/// The fatbin of a kernel whose files are these; empty where they are put into a folder to be compiled elsewhere.
pub(crate) fn fatbin(kernel: &Kernel, files: &[SourceFile]) -> Vec<u8> {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    Source::new().fatbin(kernel, files).expect("it compiles")
}

/// Compiles kernels in batches and runs each on its problems: compilers on all processors, one launch at a time, so that a
/// fault is known to be the kernel's that was launched. Without a GPU they are compiled only.
pub(crate) fn run(
    tally: &mut Tally,
    gpu: Option<&Gpu>,
    kernels: &[Kernel],
    problems: impl Fn(&Kernel) -> Vec<Problem> + Sync,
) {
    let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let source = Source::new();
    let batches: Vec<&[Kernel]> =
        kernels.chunk_by(|a, b| a.plan.targets() == b.plan.targets()).flat_map(even_chunks).collect();
    let shared = Shared { gpu, turn: Mutex::new(()), dead: AtomicBool::new(false) };
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(batches.len()) {
            scope.spawn(|| {
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run_batch(&source, &shared, batch, &problems);
                    all.lock().expect("no worker panics with it").add(found);
                }
            });
        }
    });
    tally.add(all.into_inner().expect("no worker panics with it"));
}

/// As few batches as there can be, each as large as any other.
fn even_chunks(kernels: &[Kernel]) -> impl Iterator<Item = &[Kernel]> {
    let batches = kernels.len().div_ceil(together(kernels)).max(1);
    kernels.chunks(kernels.len().div_ceil(batches).max(1))
}

struct Shared<'a> {
    gpu: Option<&'a Gpu>,
    turn: Mutex<()>,
    /// After a fault the context is of no more use.
    dead: AtomicBool,
}

fn run_batch(
    source: &Source,
    shared: &Shared<'_>,
    kernels: &[Kernel],
    problems: &impl Fn(&Kernel) -> Vec<Problem>,
) -> Tally {
    let mut tally = Tally::default();
    let fatbin = match source.fatbin(&kernels[0], &files(kernels)) {
        Ok(fatbin) => fatbin,
        Err(together) => {
            // Which of them is it?
            let alone = |k: &Kernel| source.compile(k, k.unit.files()).err();
            tally.failures.extend(kernels.iter().filter_map(|k| Some(format!("{k}\n  {}", alone(k)?))));
            if tally.failures.is_empty() {
                tally.failures.push(format!("from {} on, only together: {together}", kernels[0].plan.name()));
            }
            return tally;
        }
    };
    let Some(gpu) = shared.gpu else {
        // What a GPU would be given fits together at least, as small problems show.
        for kernel in kernels {
            for problem in problems(kernel).iter().filter(|problem| problem.size() < 10_000) {
                drop(Tensors::new(&kernel.plan, problem));
            }
        }
        return tally;
    };
    for kernel in kernels {
        // SAFETY: nvcc made the fatbin of the texts of all these plans.
        let loaded = match unsafe { AnyKernel::load_unchecked(gpu, kernel.plan.clone(), &fatbin) } {
            Ok(loaded) => loaded,
            Err(error) => {
                tally.failures.push(format!("{kernel}\n  {error}"));
                continue;
            }
        };
        for problem in problems(kernel) {
            if shared.dead.load(Ordering::Relaxed) {
                return tally;
            }
            let wrong = launch(shared, gpu, &loaded, &problem);
            tally.judge(kernel, &problem, wrong);
        }
    }
    tally
}

/// What is wrong with a launch, if anything.
fn launch(shared: &Shared<'_>, gpu: &Gpu, kernel: &AnyKernel, problem: &Problem) -> Option<String> {
    let mut tensors = Tensors::new(kernel.plan(), problem);
    let before = tensors.inputs.clone();
    let launched = {
        let _turn = shared.turn.lock().expect("no worker panics with it");
        on_gpu(gpu, kernel, problem, &mut tensors)
    };
    if let Err(error) = launched {
        let alive = gpu.stream().synchronize().is_ok();
        shared.dead.store(!alive, Ordering::Relaxed);
        return Some(if alive { error } else { format!("{error}; nothing runs after it") });
    }
    let changed = tensors.inputs.iter().zip(&before).any(|(now, before)| now.storage() != before.storage());
    let wrong = tensors.wrong(kernel.plan(), problem).or_else(|| changed.then(|| "an input was written".into()));
    wrong.or_else(|| differs(shared, gpu, kernel, problem, &tensors))
}

/// What a second launch does otherwise than the first: the same launch gives the same bits.
fn differs(shared: &Shared<'_>, gpu: &Gpu, kernel: &AnyKernel, problem: &Problem, first: &Tensors) -> Option<String> {
    let mut again = Tensors::new(kernel.plan(), problem);
    let _turn = shared.turn.lock().expect("no worker panics with it");
    if let Err(error) = on_gpu(gpu, kernel, problem, &mut again) {
        return Some(format!("launched again: {error}"));
    }
    let differ = again.outputs.iter().zip(&first.outputs).any(|(again, first)| again.storage() != first.storage());
    differ.then(|| "launched again it gives other bits".into())
}

fn on_gpu(gpu: &Gpu, kernel: &AnyKernel, problem: &Problem, tensors: &mut Tensors) -> Result<(), String> {
    let stream = gpu.stream();
    let (inputs, outputs) = put(gpu, kernel, problem, tensors).map_err(|e| e.to_string())?;
    stream.synchronize().map_err(|e| e.to_string())?;
    let all = inputs.iter().zip(&mut tensors.inputs).chain(outputs.iter().zip(&mut tensors.outputs));
    for (on, tensor) in all {
        on.download(&stream, tensor).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Copies the tensors to the GPU and puts a launch into its stream; inputs and outputs, there.
pub(crate) fn put(
    gpu: &Gpu,
    kernel: &AnyKernel,
    problem: &Problem,
    tensors: &Tensors,
) -> Result<(Vec<DeviceTensor>, Vec<DeviceTensor>), LaunchError> {
    let stream = gpu.stream();
    let upload = |t: &Tensor| DeviceTensor::upload(&stream, t);
    let inputs = tensors.inputs.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    let mut outputs = tensors.outputs.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    launch_on(kernel, &stream, problem, &inputs, &mut outputs)?;
    Ok((inputs, outputs))
}

fn launch_on(
    kernel: &AnyKernel,
    stream: &Arc<CudaStream>,
    problem: &Problem,
    inputs: &[DeviceTensor],
    outputs: &mut [DeviceTensor],
) -> Result<(), LaunchError> {
    let mut args = TensorArgs::<DeviceMemory>::new();
    for (input, place) in inputs.iter().zip(&problem.in_place) {
        args = match place {
            Some(output) => args.input_in_place(*output),
            None => typed!(input.dtype(), T => args.input(input.view::<T>().expect("of its type"))),
        };
    }
    for output in outputs {
        args = typed!(output.dtype(), T => args.output(output.view_mut::<T>().expect("of its type")));
    }
    // The views are checked against the kernel's own plan, whatever its family.
    kernel.launch_with(stream, &mut Args::<ElementwiseApply, DeviceMemory>::views(&mut args), &problem.scalars)
}
