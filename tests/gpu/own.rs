//! Contract: somebody who vouches for a kernel vouches for nothing else. The safe launch refuses views that do not fit, memory that is
//! shared, numbers that are too large, streams that are captured and devices without code, and the kernel's memory stays as it was.
//!
//! The driver is a stand-in (`support/driver.c`) in a child process; with a GPU, the same is refused there.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use std::sync::Arc;

use crate::driver::{fatbin, with_driver};
use cutemplate::arch::{Arch, Targets};
use cutemplate::artifact::{Artifact, Code, Kind, Parts, Ptx, Text, Vouched};
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::digest::Digest;
use cutemplate::dtype::{DType, Element};
use cutemplate::launch::cudarc::driver::{CudaSlice, CudaStream};
use cutemplate::launch::{Gpu, Kernel, LaunchError, LoadError};
use cutemplate::plan::{ParamType, Plan};
use cutemplate::recipe::{Rows, TensorArgs};
use cutemplate::view::{Access, AnyView, Args, Arguments, DeviceMemory, View, ViewLayout, ViewMut};
use expect_test::{Expect, expect};

/// Any kernel of one's own. That its type is vouched for makes no kernel safe.
#[derive(Debug)]
struct Own;

impl Kind for Own {
    const FAMILY: &'static str = cutemplate::cuda::FAMILY;
}

impl Vouched for Own {}

/// y(i) = x(n-1-i), z(i) = x(i).
const TEXT: &str = r#"
extern "C" __global__ void __launch_bounds__(128) both(float const* x, float* y, float* z, long long n, int blocks)
{
  extern __shared__ float tile[];
  if (blockIdx.y > 0) return;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (long long i = threadIdx.x; i < n; i += blockDim.x) { y[i] = tile[n - 1 - i]; z[i] = tile[i]; }
}
"#;

/// Its parameters, for the stand-in.
const PARAMS: [(&str, &str); 2] = [("STAND_IN_PARAMS", "5"), ("STAND_IN_PARAM_SIZE", "8,8,8,8,4")];

const N: usize = 64;

fn both() -> Entry {
    Entry::new("both")
        .operand("x", DType::F32, Access::Read, "n:1")
        .operand("y", DType::F32, Access::Write, "n:1")
        .aligned(16)
        .operand("z", DType::F32, Access::Write, "n:1")
        .value("n", ParamType::I64, "x.0")
        .scalar("blocks", ParamType::I32)
        .grid3(["1", "blocks", "1"])
        .block(128)
        .shared("n * 4")
}

fn plan(name: &str, entry: Entry, archs: &[Arch]) -> Plan {
    let targets = Targets::new(archs.iter().copied()).expect("not empty");
    Cuda::text(TEXT).entry(entry.named(name)).plans(name, TEXT, &targets).expect("a right declaration")[0].clone()
}

fn vouched() -> Entry {
    // SAFETY: thread i of the first block touches elements i, i + 128, .. below n and their mirror images, and a barrier lies between.
    unsafe { both().vouched() }
}

/// As a build leaves it.
fn load(gpu: &Gpu, plan: &Plan, fatbin: &[u8]) -> Result<Kernel<Own>, LoadError> {
    let (abi, digest, sha256) = (plan.abi().to_json(), plan.abi().digest().to_string(), Digest::of(fatbin).to_string());
    let code = Code::Fatbin { bytes: fatbin, sha256: &sha256, ptx: Ptx::Text("") };
    let texts = vec![Text { abi: &abi, digest: &digest, code }];
    // SAFETY: the fatbin is what nvcc made of the text, or nothing that runs.
    let artifact = unsafe { Artifact::new(Parts { family: Own::FAMILY, name: plan.name(), texts: texts.into() }) };
    Kernel::load(gpu, &artifact)
}

/// What is told of each wrong launch: its name, and the first line or the code.
struct Told<'a> {
    kernel: &'a Kernel<Own>,
    stream: &'a Arc<CudaStream>,
    text: String,
}

impl Told<'_> {
    fn add(&mut self, what: &str, found: Result<(), LaunchError>) {
        let error = found.expect_err(what);
        let first = match &error {
            LaunchError::Bind(refused) => {
                let codes: Vec<&str> = refused.diagnostics().iter().map(|found| found.code.code()).collect();
                codes.join(" ")
            }
            other => other.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        self.text += &format!("{what}: {first}\n");
    }

    fn launch(&mut self, what: &str, args: Arguments<'_, Own, DeviceMemory>) {
        let found = self.kernel.launch(self.stream, args);
        self.add(what, found);
    }

    fn views(&mut self, what: &str, views: &mut [AnyView<'_, DeviceMemory>]) {
        let found = self.kernel.any().launch_with(self.stream, views, &[1.0]);
        self.add(what, found);
    }
}

fn vector(n: usize) -> ViewLayout {
    ViewLayout::vector(n as i64)
}

fn strided(shape: &[i64], stride: &[i64]) -> ViewLayout {
    ViewLayout::strided(shape, stride).expect("few modes")
}

fn all<'a, T: Element>(
    x: View<'a, T, DeviceMemory>,
    y: ViewMut<'a, f32, DeviceMemory>,
    z: ViewMut<'a, f32, DeviceMemory>,
    blocks: f64,
) -> Arguments<'a, Own, DeviceMemory> {
    Arguments::new().read(x).write(y).write(z).scalar(blocks)
}

/// More elements than shared memory holds.
const LARGE: usize = 12289;

/// Launches the kernel wrongly in every way that safe code has, then rightly: what was told, and y and z.
fn refused(kernel: &Kernel<Own>, stream: &Arc<CudaStream>) -> (String, [Vec<f32>; 2]) {
    let values: Vec<f32> = (0_u16..12289).map(f32::from).collect();
    let x = stream.clone_htod(&values).expect("memory");
    let (mut y, mut z) = (stream.clone_htod(&values).expect("memory"), stream.clone_htod(&values).expect("memory"));
    let halves = stream.alloc_zeros::<half::f16>(N).expect("memory");
    let mut told = Told { kernel, stream, text: String::new() };
    let read = |layout| View::device_strided(&x, layout);
    macro_rules! case {
        ($what:literal, $x:expr, $y:expr, $z:expr, $blocks:expr) => {
            told.launch(
                $what,
                all($x, ViewMut::device_strided(&mut y, $y), ViewMut::device_strided(&mut z, $z), $blocks),
            )
        };
    }
    let n = vector(N);
    case!("another type", View::device_strided(&halves, n), n, n, 1.0);
    case!("another rank", read(strided(&[8, 8], &[8, 1])), n, n, 1.0);
    case!("another extent", read(vector(N - 1)), n, n, 1.0);
    case!("an extent below 0", read(n), strided(&[-64], &[1]), n, 1.0);
    case!("another stride", read(strided(&[64], &[2])), n, n, 1.0);
    case!("one element for all that is written", read(n), strided(&[64], &[0]), n, 1.0);
    case!("elements behind the memory", read(n), n, vector(LARGE + 1), 1.0);
    case!("more shared memory than declared", read(vector(LARGE)), vector(LARGE), vector(LARGE), 1.0);
    case!("more blocks than a grid has", read(n), n, n, 65536.0);
    case!("a scalar beyond its type", read(n), n, n, 2147483648.0);
    let off = ViewMut::device_strided(&mut y.slice_mut(1..), n).raw();
    assert_eq!(off.ptr % 16, 4);
    told.launch(
        "an address that is not aligned",
        all(read(n), ViewMut::device_strided(&mut y.slice_mut(1..), n), ViewMut::device_strided(&mut z, n), 1.0),
    );
    told.launch("no views", Arguments::new().scalar(1.0));
    told.launch(
        "no scalar",
        Arguments::new()
            .read(read(n))
            .write(ViewMut::device_strided(&mut y, n))
            .write(ViewMut::device_strided(&mut z, n)),
    );
    told.launch(
        "a view to read where one is written",
        Arguments::new().read(read(n)).read(read(n)).write(ViewMut::device_strided(&mut z, n)).scalar(1.0),
    );
    shared(&mut told, &read(n), &mut y);
    let device = [&y, &z].map(|memory| stream.clone_dtoh(memory).expect("memory"));
    assert!(device.iter().all(|memory| *memory == values), "memory was changed");
    kernel
        .launch(stream, all(read(n), ViewMut::device_strided(&mut y, n), ViewMut::device_strided(&mut z, n), 1.0))
        .expect("right");
    (told.text, [&y, &z].map(|memory| stream.clone_dtoh(&memory.slice(..N)).expect("memory")))
}

/// Two outputs in one memory, and views that share a borrow of it.
fn shared(told: &mut Told<'_>, x: &View<'_, f32, DeviceMemory>, memory: &mut CudaSlice<f32>) {
    fn parts<'a>(memory: ViewMut<'a, f32, DeviceMemory>, parts: &[(u64, ViewLayout)]) -> TensorArgs<'a, DeviceMemory> {
        TensorArgs::new().output_parts(memory, parts)
    }
    let n = vector(N);
    let whole = vector(2 * N);
    let mut overlapping = parts(ViewMut::device_strided(memory, whole), &[(0, n), (60, n)]);
    let views = Args::<Rows, _>::views(&mut overlapping);
    told.views("outputs that share elements", &mut [x.erase()].into_iter().chain(views).collect::<Vec<_>>());
    let mut apart = parts(ViewMut::device_strided(memory, whole), &[(0, n), (64, n)]);
    let second = Args::<Rows, _>::views(&mut apart).pop().expect("two parts");
    let mut other = told.stream.alloc_zeros::<f32>(N).expect("memory");
    let z = ViewMut::device_strided(&mut other, n).into_any();
    told.views("a part without the first", &mut [x.erase(), second, z]);
    // Where a part of the first half ends, the other half begins, which has a view of its own.
    let (mut first, next) = memory.split_at_mut(N);
    let mut ends = parts(ViewMut::device_strided(&mut first, n), &[(N as u64, vector(0)), (0, n)]);
    let part = Args::<Rows, _>::views(&mut ends).pop().expect("two parts");
    let z = ViewMut::device_strided(&mut other, n).into_any();
    told.views(
        "a part of memory that ends where another begins",
        &mut [View::device_strided(&next, n).erase(), part, z],
    );
}

fn what_is_refused() -> Expect {
    expect![[r#"
        another type: CT102
        another rank: CT111
        another extent: CT109 CT109
        an extent below 0: CT104
        another stride: CT111
        one element for all that is written: CT105
        elements behind the memory: CT107
        more shared memory than declared: CT113
        more blocks than a grid has: CT110
        a scalar beyond its type: CT113
        an address that is not aligned: CT106
        no views: CT101
        no scalar: CT112
        a view to read where one is written: CT103
        outputs that share elements: CT108
        a part without the first: y is a second view of an output that this launch has no view of
        a part of memory that ends where another begins: y is a second view of an output that this launch has no view of
    "#]]
}

#[test]
fn what_nobody_vouched_for_is_refused() {
    let done = with_driver("own::what_nobody_vouched_for_is_refused", &PARAMS, || {
        let gpu = Gpu::find().expect("the stand-in");
        let kernel = load(&gpu, &plan("both", vouched(), &[Arch::Sm80]), &fatbin()).expect("loads");
        refused(&kernel, &gpu.context().new_stream().expect("a stream")).0
    });
    what_is_refused().assert_eq(&done.told);
    let launches: Vec<&str> = done.log.lines().filter(|line| line.contains("launch grid")).collect();
    assert_eq!(launches.len(), 1, "{}", done.log);
    assert!(launches[0].starts_with("launch grid 1,1,1 block 128,1,1 smem 256 stream 101 "), "{}", done.log);
}

#[test]
fn a_type_vouches_for_nothing_and_a_captured_stream_needs_unsafe_code() {
    let test = "own::a_type_vouches_for_nothing_and_a_captured_stream_needs_unsafe_code";
    let done = with_driver(test, &PARAMS, || {
        let gpu = Gpu::find().expect("the stand-in");
        let stream = gpu.context().new_stream().expect("a stream");
        let memory = || stream.alloc_zeros::<f32>(N).expect("memory");
        let (x, mut y, mut z, n) = (memory(), memory(), memory(), vector(N));
        let mut text = String::new();
        for entry in [both(), vouched()] {
            let kernel = load(&gpu, &plan("both", entry, &[Arch::Sm80]), &fatbin()).expect("loads");
            macro_rules! args {
                () => {
                    all(
                        View::device_strided(&x, n),
                        ViewMut::device_strided(&mut y, n),
                        ViewMut::device_strided(&mut z, n),
                        1.0,
                    )
                };
            }
            // SAFETY: the child runs this test only, and no other thread of it reads the environment.
            unsafe { std::env::set_var("STAND_IN_CAPTURING", "1") };
            text += &format!("{}\n", kernel.launch(&stream, args!()).expect_err("refused"));
            // SAFETY: the stand-in touches no memory, and nothing launches the graph.
            unsafe { kernel.launch_unvouched(&stream, args!()) }.expect("launches");
            // SAFETY: as above.
            unsafe { std::env::set_var("STAND_IN_CAPTURING", "0") };
        }
        text
    });
    expect![[r#"
        kernel `both` is launched by a safe function, and nobody vouches for it
          because: it is CUDA C++ of one's own: no check of its declaration shows that it keeps to its tensors
          help: launch it by `unsafe fn launch_unvouched`, or let build.rs say `unsafe { entry.vouched() }`
        kernel `both` is launched by a safe function, and the stream is captured into a graph
          because: the graph may be launched after the memory of the views was freed
          help: capture `unsafe fn launch_unvouched`, and keep the memory for as long as the graph
    "#]]
    .assert_eq(&done.told);
    assert_eq!(done.log.matches("launch grid").count(), 2, "{}", done.log);
}

#[test]
fn a_device_without_code_is_refused() {
    let settings = [PARAMS[0], PARAMS[1], ("STAND_IN_CAPABILITY", "75")];
    let done = with_driver("own::a_device_without_code_is_refused", &settings, || {
        let gpu = Gpu::find().expect("the stand-in");
        let load = |archs: &[Arch]| load(&gpu, &plan("both", vouched(), archs), &fatbin());
        let refused = [&[Arch::Sm80][..], &[Arch::Sm90a], &[Arch::Sm80, Arch::Sm120]]
            .map(|archs| load(archs).expect_err("refused"));
        load(&[Arch::Sm75]).expect("it has");
        refused.map(|refused| format!("{refused}\n")).concat()
    });
    assert_eq!(done.log.matches("load aligned").count(), 1, "{}", done.log);
    expect![[r#"
        kernel `both` has no code for this GPU
          found:    code for sm_80
          required: code that runs on compute capability 7.5 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     add sm_75 to the architectures of the build
        kernel `both` has no code for this GPU
          found:    code for sm_90a
          required: code that runs on compute capability 7.5 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     add sm_75 to the architectures of the build
        kernel `both` has no code for this GPU
          found:    code for sm_80, sm_120
          required: code that runs on compute capability 7.5 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     add sm_75 to the architectures of the build
    "#]]
    .assert_eq(&done.told);
}

/// The same on a GPU, where the right launch is right.
#[cfg(feature = "build")]
#[test]
#[ignore = "needs a GPU"]
fn what_nobody_vouched_for_is_refused_on_a_gpu() {
    let gpu = crate::gpu::find();
    let plan = plan("both", vouched(), &[Arch::Sm80, Arch::Sm90a]);
    let fatbin = crate::gpu::fatbin(gpu.as_ref(), &plan);
    let Some((gpu, fatbin)) = gpu.zip(fatbin) else { return };
    let kernel = load(&gpu, &plan, &fatbin).expect("loads");
    let stream = gpu.context().new_stream().expect("a stream");
    let (told, [y, z]) = refused(&kernel, &stream);
    what_is_refused().assert_eq(&told);
    let values: Vec<f32> = (0_u8..64).map(f32::from).collect();
    assert_eq!(z, values);
    assert!(y.iter().eq(values.iter().rev()), "{y:?}");
}
