//! Contract: on a GPU, every kernel of the catalogue and every kind of variation of it gives the right bits for every
//! element, for every type, shape, leading dimension, alignment and input, and touches nothing else.
//!
//! Where there is no GPU the tests say that they did not run. `support/gpu.rs` tells how to carry them to one.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::gpu;

use cutemplate::arch::{Arch, Targets};
use cutemplate::artifact::{self, Artifact, Parts, Ptx};
use cutemplate::diagnostic::Code;
use cutemplate::digest::Digest;
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu, Kernel, LaunchError, LoadError, Protocol};
use cutemplate::plan::Plan;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, FAMILIES, Recipe};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::verify::{self, Fill, Tensor, TensorLayout, Verdict};
use cutemplate::view::{View, ViewLayout, ViewMut};
use half::bf16;

/// The catalogue's kernels of the family that these tests have operands and a reference for; `apply.rs` has the others.
fn additions() -> Vec<Plan> {
    catalogue().into_iter().filter(|plan| plan.family() == ElementwiseAdd::FAMILY).collect()
}

fn catalogue() -> Vec<Plan> {
    let plan = |f: &cutemplate::recipe::Family, s: &str| f.usual_plan(&Settings::parse_lines(s));
    let all = FAMILIES.iter().flat_map(|f| f.catalogue.iter().map(move |s| plan(f, s).expect("a catalogue entry")));
    all.flat_map(|plan| plan.texts().to_vec()).collect()
}

fn planned(name: &str, settings: &str, targets: &[Arch]) -> Plan {
    let recipe = ElementwiseAdd::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as(name, &Targets::new(targets.iter().copied()).expect("not empty")).expect("a right recipe")
}

/// Choices that take other paths through the template than the catalogue's.
fn variations() -> Vec<Plan> {
    let both = &[Arch::Sm80, Arch::Sm90a];
    [
        ("add_narrow_f16", "dtype=f16\nvector=4\nunroll=2"),
        ("add_scalar_f32", "dtype=f32\nvector=4\nraster=m"),
        ("add_one_warp_bf16", "dtype=bf16\nthr=(1,32):(32,1)\nval=(4,16):(16,1)\nunroll=1"),
        ("add_tall_f32", "dtype=f32\nthr=(64,4):(4,1)\nval=(2,32):(32,1)\nraster=m"),
    ]
    .map(|(name, settings)| planned(name, settings, both))
    .to_vec()
}

/// Matrices in the layout, filled and uploaded, and the output back again.
fn run(gpu: &Gpu, kernel: &AnyKernel, [la, lb, lc]: [TensorLayout; 3], fill: Fill) -> Verdict {
    let (stream, dtype) = (gpu.stream(), kernel.plan().operands()[0].dtype);
    let make = |layout| Tensor::new(dtype, layout).expect("memory");
    let (mut a, mut b, mut c) = (make(la), make(lb), make(lc));
    a.fill(fill, 1);
    b.fill(fill, 2);
    c.fill_unwritten();
    let upload = |m: &Tensor| DeviceTensor::upload(&stream, m).expect("device memory");
    let (on_a, on_b, mut on_c) = (upload(&a), upload(&b), upload(&c));
    kernel.launch(&stream, &mut [on_a.any(), on_b.any(), on_c.any_mut()]).expect("launches");
    on_c.download(&stream, &mut c).expect("the kernel ran");
    for (on, host) in [(&on_a, &a), (&on_b, &b)] {
        let mut back = make(host.layout());
        on.download(&stream, &mut back).expect("copied");
        assert!(back.storage() == host.storage(), "{}: an input was written", kernel.plan().name());
    }
    verify::check(kernel.plan(), &[&a, &b], &[], &[&c]).expect("the plan's inputs").remove(0)
}

const SHAPES: [(u64, u64); 8] =
    [(1, 1), (3, 12), (7, 129), (1023, 511), (256, 512), (1, 100_000), (100_000, 1), (2048, 2048)];

fn right_everywhere(gpu: &Gpu, kernel: &AnyKernel, shapes: &[(u64, u64)]) -> u32 {
    let mut runs = 0;
    for (m, n) in shapes.iter().copied() {
        let dense = TensorLayout::contiguous(m, n);
        let shifted = TensorLayout::padded(m, n, n + 3).at_offset(Elements(1));
        let aligned = TensorLayout::padded(m, n, n.next_multiple_of(8) + 8);
        let layouts = [[dense; 3], [aligned; 3], [shifted; 3], [dense, aligned, shifted], [aligned, aligned, shifted]];
        for (layouts, fill) in layouts.iter().flat_map(|l| Fill::ALL.iter().map(move |f| (*l, *f))) {
            let verdict = run(gpu, kernel, layouts, fill);
            assert!(verdict.is_right(), "{} {layouts:?} {fill}: {verdict}", kernel.plan().name());
            runs += 1;
        }
    }
    runs
}

#[test]
#[ignore = "needs a GPU"]
fn the_catalogue_is_right_for_every_shape_layout_and_input() {
    let gpu = gpu::find();
    for plan in additions() {
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        let runs = gpu.as_ref().map_or(0, |gpu| right_everywhere(gpu, &kernel, &SHAPES));
        println!("{}: {runs} runs, every element right", kernel.plan().name());
    }
}

#[test]
#[ignore = "needs a GPU"]
fn variations_are_right_too() {
    let gpu = gpu::find();
    for plan in variations() {
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        let runs = gpu.as_ref().map_or(0, |gpu| right_everywhere(gpu, &kernel, &SHAPES[..5]));
        println!("{}: {runs} runs, every element right", kernel.plan().name());
    }
}

#[test]
#[ignore = "needs a GPU"]
fn nothing_spills() {
    let gpu = gpu::find();
    for plan in catalogue() {
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        for (resources, entry) in kernel.resources().zip(kernel.plan().entries()) {
            println!("{}: {resources:?}", entry.name);
            assert_eq!(resources.local_bytes, 0, "{}", entry.name);
            assert!(resources.max_threads >= entry.threads);
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_multiprocessor_holds_as_many_blocks_as_the_model_says() {
    let gpu = gpu::find();
    for plan in catalogue().into_iter().chain(variations()) {
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        let (plan, capability) = (kernel.plan(), gpu.as_ref().map(Gpu::capability));
        let arch = Arch::ALL.iter().copied().find(|arch| Some(arch.capability()) == capability);
        let Some(arch) = arch else { continue };
        let blocks = kernel.blocks_per_sm().expect("the driver tells");
        for ((entry, taken), blocks) in plan.entries().iter().zip(kernel.resources()).zip(blocks) {
            let model = entry.occupancy_with(arch, taken.registers.into());
            println!("{}: {model}", entry.name);
            assert_eq!(blocks, model.blocks, "{}: {model}", entry.name);
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn ptx_serves_a_gpu_that_no_sass_is_for() {
    // SASS for 8.6 does not run on 9.0: the driver compiles the PTX beside it.
    let gpu = gpu::find();
    let Some(kernel) = gpu::load(gpu.as_ref(), planned("add_by_ptx", "dtype=f16", &[Arch::Sm86])) else { return };
    let gpu = gpu.expect("a kernel was loaded");
    assert!(right_everywhere(&gpu, &kernel, &[(1023, 511)]) > 0);
}

/// The fatbin without what `keep(kind, arch)` refuses; PTX is kind 1, SASS kind 2. Entry headers: kind (u16 at 0), size of
/// the header (u32 at 4), size of the payload (u64 at 8), architecture (u32 at 28).
fn filtered(fatbin: &[u8], keep: impl Fn(u16, u32) -> bool) -> Vec<u8> {
    let field = |at: usize, n: usize| fatbin[at..at + n].iter().rev().fold(0_u64, |v, b| v << 8 | u64::from(*b));
    let mut kept = Vec::new();
    let mut at = 16;
    while at < fatbin.len() {
        let end = at + (field(at + 4, 4) + field(at + 8, 8)) as usize;
        if keep(field(at, 2) as u16, field(at + 28, 4) as u32) {
            kept.extend_from_slice(&fatbin[at..end]);
        }
        at = end;
    }
    let mut all = fatbin[..8].to_vec();
    all.extend((kept.len() as u64).to_le_bytes());
    all.extend(kept);
    all
}

#[test]
#[ignore = "needs a GPU"]
fn damaged_and_foreign_fatbins_are_refused() {
    let gpu = gpu::find();
    let plan = || planned("elementwise_add_f32", "dtype=f32", &[Arch::Sm80, Arch::Sm90a]);
    let Some(whole) = gpu::fatbin(gpu.as_ref(), &plan()) else { return };
    assert!(filtered(&whole, |_, _| true) == whole, "the entries are understood");
    let Some(gpu) = gpu else { return };
    let load = |plan, bytes: &[u8]| {
        // SAFETY: what is not damaged is a part of what nvcc made of the plan's text, and nothing is launched.
        let loaded = unsafe { AnyKernel::load_unchecked(&gpu, plan, bytes) };
        loaded.map(|_| ()).expect_err("refused")
    };
    assert!(matches!(load(plan(), &whole[..whole.len() - 1]), LoadError::Fatbin { .. }));
    assert!(matches!(load(plan(), &[]), LoadError::Fatbin { .. }));
    // Nothing that runs on this GPU: SASS of a major version that is not its own.
    let other = if gpu.capability().0 == 8 { 90 } else { 80 };
    let foreign = load(plan(), &filtered(&whole, |kind, arch| kind == 2 && arch == other));
    println!("{foreign}");
    assert!(matches!(foreign, LoadError::NoCode { .. }), "{foreign:?}");
    let misnamed = load(planned("another_name", "dtype=f32", &[Arch::Sm80, Arch::Sm90a]), &whole);
    println!("{misnamed}");
    assert!(matches!(misnamed, LoadError::Driver { .. }), "{misnamed:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn typed_launches_are_ordered_across_streams() {
    let gpu = gpu::find();
    let plan = planned("elementwise_add_f32", "dtype=f32", &[Arch::Sm80, Arch::Sm90a]);
    let Some(fatbin) = gpu::fatbin(gpu.as_ref(), &plan) else { return };
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let code = artifact::Code::Fatbin {
        sha256: leak(Digest::of(&fatbin).to_string()),
        bytes: fatbin.leak(),
        ptx: Ptx::Text(""),
    };
    let (abi, digest) = (leak(plan.abi().to_json()), leak(plan.abi().digest().to_string()));
    let texts = vec![artifact::Text { abi, digest, code }].into();
    let parts = Parts { family: plan.family(), name: leak(plan.name().to_owned()), texts };
    // SAFETY: nvcc made the fatbin of this plan's text.
    let artifact = unsafe { Artifact::new(parts) };
    let Some(gpu) = gpu else { return };
    let kernel = Kernel::<ElementwiseAdd>::load(&gpu, &artifact).expect("loads");
    let stream = || gpu.context().new_stream().expect("a stream");
    let (copying, computing) = (stream(), stream());
    let (m, n) = (2048, 2048);
    let mut c = computing.alloc_zeros::<f32>((m * n) as usize).expect("device memory");
    for round in 0..20 {
        let value = round as f32;
        let a = copying.clone_htod(&vec![value; (m * n) as usize]).expect("device memory");
        let b = copying.clone_htod(&vec![0.5; (m * n) as usize]).expect("device memory");
        let args = ElementwiseAddArgs {
            a: View::device(&a, [m, n], n),
            b: View::device(&b, [m, n], n),
            c: ViewMut::device(&mut c, [m, n], n),
        };
        kernel.launch(&computing, args).expect("launches");
        // Freed while the kernel may still run.
        drop((a, b));
        let back = copying.clone_dtoh(&c).expect("copied");
        copying.synchronize().expect("ran");
        assert!(back.iter().all(|x| *x == value + 0.5), "round {round}");
    }
}

/// Refused launches, with real memory behind the views.
#[test]
#[ignore = "needs a GPU"]
fn views_that_do_not_fit_are_refused() {
    let gpu = gpu::find();
    let Some(kernel) = gpu::load(gpu.as_ref(), planned("elementwise_add_f32", "dtype=f32", &[Arch::Sm80, Arch::Sm90a]))
    else {
        return;
    };
    let stream = gpu.expect("a kernel was loaded").stream();
    let a = stream.alloc_zeros::<f32>(64).expect("device memory");
    let mut c = stream.alloc_zeros::<f32>(64).expect("device memory");
    let mut refused = |shape: [i64; 2], ld: i64| -> Vec<Code> {
        let mut views = [
            View::device(&a, shape, ld).erase(),
            View::device(&a, shape, ld).erase(),
            ViewMut::device(&mut c, shape, ld).into_any(),
        ];
        match kernel.launch(&stream, &mut views) {
            Err(LaunchError::Bind(error)) => error.diagnostics().iter().map(|d| d.code).collect(),
            other => panic!("{shape:?} {ld}: {other:?}"),
        }
    };
    assert_eq!(refused([3, -1], 3), [Code::ViewExtent; 3]);
    assert_eq!(refused([3, 3], 2), [Code::ViewLeadingDimension; 3]);
    assert_eq!(refused([9, 8], 8), [Code::ViewMemory; 3]);
    let mut two = c.slice_mut(..);
    let (mut front, _) = two.split_at_mut(48);
    let written = ViewMut::device(&mut front, [4, 8], 8);
    // SAFETY: the launch is refused; nothing is read through the view.
    let inside =
        unsafe { View::<f32, _>::from_raw_parts(written.raw().ptr + 16, Elements(40), ViewLayout::matrix([4, 8], 8)) };
    let mut views = [inside.erase(), inside.erase(), written.into_any()];
    match kernel.launch(&stream, &mut views) {
        Err(LaunchError::Bind(error)) => {
            assert!(error.diagnostics().iter().all(|d| d.code == Code::ViewOverlap), "{error}")
        }
        other => panic!("an overlap: {other:?}"),
    }
}

/// Whether three bf16 matrices of so many elements fit, or a word on standard error.
fn fits(gpu: &Gpu, len: usize) -> bool {
    let fits = gpu.memory().0 > 4 * 2 * len as u64;
    if !fits {
        eprintln!("{gpu} has {} of memory: not run", gpu.memory());
    }
    fits
}

/// Offsets beyond 2^31 elements: few rows that lie far apart.
#[test]
#[ignore = "needs a GPU"]
fn rows_may_lie_more_than_2_31_elements_apart() {
    let gpu = gpu::find();
    let Some(kernel) =
        gpu::load(gpu.as_ref(), planned("elementwise_add_bf16", "dtype=bf16", &[Arch::Sm80, Arch::Sm90a]))
    else {
        return;
    };
    let gpu = gpu.expect("a kernel was loaded");
    let (rows, cols, ld) = (3_usize, 1000_usize, 1_100_000_001_usize);
    let len = (rows - 1) * ld + cols;
    if !fits(&gpu, len) {
        return;
    }
    let stream = gpu.stream();
    let make = || stream.alloc_zeros::<bf16>(len).expect("device memory");
    let (mut a, mut b, mut c) = (make(), make(), make());
    let value = |matrix: usize, i: usize, j: usize| bf16::from_f32(((i * 31 + j * 7 + matrix * 3) % 100) as f32);
    for (matrix, slice) in [&mut a, &mut b].into_iter().enumerate() {
        for i in 0..rows {
            let row: Vec<bf16> = (0..cols).map(|j| value(matrix, i, j)).collect();
            stream.memcpy_htod(&row, &mut slice.slice_mut(i * ld..i * ld + cols)).expect("copied");
        }
    }
    let shape = [rows as i64, cols as i64];
    let mut views = [
        View::device(&a, shape, ld as i64).erase(),
        View::device(&b, shape, ld as i64).erase(),
        ViewMut::device(&mut c, shape, ld as i64).into_any(),
    ];
    kernel.launch(&stream, &mut views).expect("launches");
    for i in 0..rows {
        let found = stream.clone_dtoh(&c.slice(i * ld..i * ld + cols)).expect("ran");
        let expected: Vec<bf16> = (0..cols).map(|j| verify::add(value(0, i, j), value(1, i, j))).collect();
        assert_eq!(found, expected, "row {i}");
    }
}

/// More than 2^31 elements: uniform, but for elements around the places where a 32-bit index would wrap.
#[test]
#[ignore = "needs a GPU"]
fn a_matrix_may_have_more_than_2_31_elements() {
    let gpu = gpu::find();
    let Some(kernel) =
        gpu::load(gpu.as_ref(), planned("elementwise_add_bf16", "dtype=bf16", &[Arch::Sm80, Arch::Sm90a]))
    else {
        return;
    };
    let gpu = gpu.expect("a kernel was loaded");
    let (rows, cols) = (65_539_usize, 32_771_usize);
    let len = rows * cols;
    assert!(len > 1 << 31);
    if !fits(&gpu, len) {
        return;
    }
    let stream = gpu.stream();
    let make = || stream.alloc_zeros::<bf16>(len).expect("device memory");
    let (mut a, b, mut c) = (make(), make(), make());
    let marks: Vec<usize> = [0, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, len - 1].to_vec();
    for (k, at) in marks.iter().enumerate() {
        stream.memcpy_htod(&[bf16::from_f32(1.0 + k as f32)], &mut a.slice_mut(*at..at + 1)).expect("copied");
    }
    // No element of the output is what it has to be, before.
    stream.memcpy_htod(&vec![bf16::NAN; cols], &mut c.slice_mut(..cols)).expect("copied");
    let mut done = cols;
    while done < len {
        let (from, mut to) = c.split_at_mut(done);
        let n = done.min(len - done);
        stream.memcpy_dtod(&from.slice(..n), &mut to.slice_mut(..n)).expect("copied");
        done += n;
    }
    let shape = [rows as i64, cols as i64];
    let mut views = [
        View::device(&a, shape, cols as i64).erase(),
        View::device(&b, shape, cols as i64).erase(),
        ViewMut::device(&mut c, shape, cols as i64).into_any(),
    ];
    kernel.launch(&stream, &mut views).expect("launches");
    let found = stream.clone_dtoh(&c).expect("ran");
    let odd: Vec<(usize, f32)> =
        found.iter().enumerate().filter(|(_, x)| x.to_bits() != 0).map(|(at, x)| (at, x.to_f32())).collect();
    let expected: Vec<(usize, f32)> = marks.iter().enumerate().map(|(k, at)| (*at, 1.0 + k as f32)).collect();
    assert_eq!(odd, expected);
}

/// The shape of a report, not its numbers: those are the benchmark's.
#[cfg(feature = "cli")]
#[test]
#[ignore = "needs a GPU"]
fn a_bench_reports_what_it_did() {
    use crate::lab::{How, against_copy};
    let gpu = gpu::find();
    for plan in additions() {
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        let Some(gpu) = &gpu else { continue };
        let protocol = Protocol { timings: 30, ..Protocol::default() };
        let report = against_copy(
            gpu,
            &kernel,
            &[TensorLayout::contiguous(4096, 4096); 3],
            &[],
            (Fill::Normal, 1),
            How::default(),
            &protocol,
        )
        .expect("numbers");
        println!("{report}");
        let item = kernel.plan().operands()[0].dtype.bytes().0;
        assert_eq!((report.bytes, report.timings), (3 * 4096 * 4096 * item, 30));
        assert!(report.seconds > 0.0 && report.copy_seconds > 0.0 && report.ratio.is_finite());
    }
}
