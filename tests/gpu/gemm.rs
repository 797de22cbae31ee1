//! The tensor-core kernels: every part of the catalogue's plans at sizes around its tiles, f16 and f32 out, integers bitwise and
//! reals within the proven bound, by leading dimensions of any kind; the typed launch takes the part of the GPU.

use cutemplate::arch::Targets;
use cutemplate::artifact::{Artifact, Code, Parts, Ptx, Text};
use cutemplate::digest::Digest;
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu, Kernel, Protocol, Subject, interleave};
use cutemplate::plan::Plan;
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Fill, Tensor, TensorLayout};
use cutemplate::view::Access;
use half::f16;

use crate::gpu;
use crate::kernels::Random;

/// M, N and K: one element, one k-tile, fewer k-tiles than stages, as many, ragged on every side, more tiles than CTAs, none at all.
const SIZES: &[[i64; 3]] = &[
    [1, 1, 8],
    [1, 1, 64],
    [128, 128, 64],
    [128, 128, 128],
    [128, 128, 192],
    [128, 128, 256],
    [127, 129, 72],
    [129, 127, 200],
    [64, 64, 8],
    [65, 63, 16],
    [63, 257, 24],
    [256, 384, 512],
    [255, 257, 136],
    [1, 300, 64],
    [300, 1, 64],
    [130, 66, 1000],
    [512, 520, 40],
    [191, 193, 8],
    [700, 500, 1032],
    [200, 100, 4096],
    [2000, 3000, 136],
    [1111, 2224, 64],
    [0, 5, 8],
    [5, 0, 8],
    [5, 7, 0],
];

fn plans() -> Vec<Plan> {
    let recipe = |settings: &&str| Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Gemm::CATALOGUE.iter().map(|settings| recipe(settings).plan(&Targets::default()).expect("a right recipe")).collect()
}

/// A, B and D of a problem. `pad` leaves gaps behind the rows of each, of which D's are odd.
fn tensors(plan: &Plan, problem: [i64; 3], pad: bool, fill: Fill, seed: u64) -> Vec<Tensor> {
    let shapes = plan.computes().and_then(|c| c.shapes(plan.operands(), &problem)).expect("extents of a product");
    let one = |((operand, shape), seed): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let inner = if operand.name == "B" { shape[0] } else { shape[1] };
        // Odd rows of D begin anywhere; at even extents they begin at multiples of 16 bytes.
        let gap = if operand.access == Access::Write && problem[0] % 2 == 1 { 3 } else { 8 };
        let layout = operand.layout(shape, pad.then_some(inner + gap)).expect("few elements");
        let mut tensor = Tensor::new(operand.dtype, TensorLayout::from(layout)).expect("memory");
        tensor.fill(fill, seed);
        tensor
    };
    plan.operands().iter().zip(&shapes).zip(seed..).map(one).collect()
}

/// What is wrong with a launch, if anything.
fn wrong(gpu: &Gpu, kernel: &AnyKernel, problem: [i64; 3], pad: bool, fill: Fill) -> Option<String> {
    let plan = kernel.plan();
    let mut all = tensors(plan, problem, pad, fill, 7);
    let (inputs, outputs) = all.split_at_mut(2);
    let read: Vec<&Tensor> = inputs.iter().collect();
    verify::fill_unwritten(plan, &read, &[], outputs).expect("the plan's inputs");
    let stream = gpu.stream();
    let mut on: Vec<DeviceTensor> =
        all.iter().map(|t| DeviceTensor::upload(&stream, t).expect("device memory")).collect();
    let mut views: Vec<_> = on
        .iter_mut()
        .zip(plan.operands())
        .map(|(t, o)| if o.access == Access::Write { t.any_mut() } else { t.any() })
        .collect();
    if let Err(error) = kernel.launch(&stream, &mut views) {
        return Some(error.to_string());
    }
    drop(views);
    if let Err(error) = stream.synchronize() {
        return Some(error.to_string());
    }
    let before: Vec<Tensor> = all[..2].to_vec();
    for (on, tensor) in on.iter().zip(&mut all) {
        on.download(&stream, tensor).expect("ran");
    }
    if all.iter().zip(&before).any(|(now, before)| now.storage() != before.storage()) {
        return Some("an input was written".into());
    }
    let verdict = verify::check(plan, &[&all[0], &all[1]], &[], &[&all[2]]).expect("the plan's inputs").remove(0);
    (!verdict.is_right()).then(|| verdict.to_string())
}

#[test]
fn every_part_is_right_around_its_tiles() {
    let gpu = gpu::find();
    let parts = plans().into_iter().flat_map(|plan| plan.parts().to_vec());
    let kernels: Vec<AnyKernel> = parts.filter_map(|part| gpu::load(gpu.as_ref(), part)).collect();
    let Some(gpu) = gpu else { return };
    let mut cases = Vec::new();
    for kernel in &kernels {
        for problem in SIZES {
            cases.extend([Fill::Integers, Fill::Normal, Fill::Specials].map(|fill| (kernel, *problem, fill)));
        }
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((kernel, problem, fill)) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let pad = problem.iter().sum::<i64>() % 2 == 1;
                    if let Some(wrong) = wrong(&gpu, kernel, *problem, pad, *fill) {
                        let name = kernel.plan().name();
                        failures.lock().expect("no worker panics").push(format!("{name} {problem:?} {fill}: {wrong}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    println!("{} kernels, {} launches, {} wrong", kernels.len(), cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Recipes from everything that a user can type: most are kernels, and the others say why not.
fn drawn(count: u64) -> Vec<Plan> {
    let mut plans = Vec::new();
    for index in 0..count {
        let random = &mut Random::new(83, index);
        let mut tile = |columns: &[i64]| {
            let (m, n) = (random.pick(&[64, 128, 192, 256, 96]), random.pick(columns));
            format!("{m}x{n}x{}", random.pick(&[16, 32, 64]))
        };
        let tiles = [tile(&[16, 32, 48, 64, 96, 128, 192, 256]), tile(&[32, 64, 96, 128, 256])];
        let dtype = random.pick(&["f16", "bf16"]);
        let out = random.pick(&[dtype, "f32"]);
        let stages = [random.pick(&[2, 3, 4, 6]), random.pick(&[2, 3, 4, 6])];
        let cluster = random.pick(&["1x1", "2x1", "1x2", "2x2"]);
        let (group, ctas) = (random.pick(&[1, 2, 3, 8]), random.pick(&[4, 7, 66, 132, 1000]));
        let settings = format!(
            "dtype={dtype}\nout={out}\ntile={}\nstages={}\ncluster={cluster}\ngroup={group}\nctas={ctas}\n\
             sm80_tile={}\nsm80_stages={}",
            tiles[0], stages[0], tiles[1], stages[1]
        );
        let recipe = Gemm::from_settings(&Settings::parse_lines(&settings)).expect("settings");
        match recipe.plan_as(&format!("gemm_{index:02}"), &Targets::default()) {
            Ok(plan) => plans.push(plan),
            Err(refused) => assert!(!refused.diagnostics().is_empty(), "{settings}: refused without a reason"),
        }
    }
    plans
}

/// Problems around the tiles of a plan.
fn around(plan: &Plan, index: u64) -> Vec<[i64; 3]> {
    let key = if plan.name().ends_with("sm90a") { "tile" } else { "sm80_tile" };
    let tile = plan.settings().get(key).expect("a tile");
    let tile: Vec<i64> = tile.split('x').map(|e| e.parse().expect("an extent")).collect();
    let random = &mut Random::new(84, index);
    let mut extent = |tile: i64| random.pick(&[1, tile - 1, tile, tile + 1, 2 * tile + 5, 5 * tile + 8, 100]);
    (0..8)
        .map(|_| {
            let [m, n, k] = [extent(tile[0]), extent(tile[1]), extent(tile[2])];
            [m, n, (k + 7) / 8 * 8]
        })
        .collect()
}

#[test]
fn random_recipes_are_refused_or_right() {
    let count = std::env::var("CUTEMPLATE_GEMM_RECIPES").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let Some(gpu) = gpu::find_or_folder() else { return };
    let parts = drawn(count).into_iter().flat_map(|plan| plan.parts().to_vec());
    let kernels: Vec<AnyKernel> = parts.filter_map(|part| gpu::load(gpu.as_ref(), part)).collect();
    let Some(gpu) = gpu else { return };
    let mut failures = Vec::new();
    for (kernel, index) in kernels.iter().zip(0..) {
        for problem in around(kernel.plan(), index) {
            for fill in [Fill::Integers, Fill::Normal] {
                if let Some(wrong) = wrong(&gpu, kernel, problem, index % 2 == 0, fill) {
                    failures.push(format!("{} {problem:?} {fill}: {wrong}", kernel.plan().name()));
                }
            }
        }
        if kernel.resources().any(|taken| taken.local_bytes > 0) {
            failures.push(format!("{} spills", kernel.plan().name()));
        }
    }
    println!("{} kernels of {count} recipes, {} wrong", kernels.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// A plan's artifact as a build script embeds it; `None` where its fatbins only went to a folder.
fn artifact(gpu: Option<&Gpu>, plan: &Plan) -> Option<Artifact<'static>> {
    let text = |part: &Plan| {
        let bytes = gpu::fatbin(gpu, part)?;
        let code =
            Code::Fatbin { sha256: leak(&Digest::of(&bytes).to_string()), bytes: bytes.leak(), ptx: Ptx::Text("") };
        let (abi, digest) = (leak(&part.abi().to_json()), leak(&part.abi().digest().to_string()));
        Some(Text { abi, digest, code })
    };
    let texts: Option<Vec<Text>> = plan.parts().iter().map(text).collect();
    let parts = Parts { family: plan.family(), name: leak(plan.name()), texts: texts?.into() };
    // SAFETY: nvcc made the fatbins of this plan's texts.
    Some(unsafe { Artifact::new(parts) })
}

#[test]
fn one_typed_launch_takes_the_part_of_the_gpu() {
    let gpu = gpu::find();
    let plan = plans().remove(1);
    let Some(artifact) = artifact(gpu.as_ref(), &plan) else { return };
    let Some(gpu) = gpu else { return };
    let kernel = Kernel::<Gemm>::load(&gpu, &artifact).expect("loads");
    let own = plan.part_on(gpu.capability()).expect("a part");
    assert_eq!(kernel.any().abi().name(), own.name());
    println!("{gpu} runs {}", own.name());
    let stream = gpu.stream();
    let mut all = tensors(&plan, [100, 60, 200], true, Fill::Integers, 3);
    let mut on: Vec<DeviceTensor> =
        all.iter().map(|t| DeviceTensor::upload(&stream, t).expect("device memory")).collect();
    let [a, b, d] = &mut on[..] else { unreachable!("A, B and D") };
    let args =
        GemmArgs::new(a.view::<f16>().expect("f16"), b.view::<f16>().expect("f16"), d.view_mut::<f32>().expect("f32"));
    kernel.launch(&stream, args).expect("launches");
    d.download(&stream, &mut all[2]).expect("ran");
    let verdict = verify::check(&plan, &[&all[0], &all[1]], &[], &[&all[2]]).expect("inputs").remove(0);
    assert!(verdict.is_right(), "{verdict}");
}

/// For information: how fast they are. Speed is not what these kernels are for.
#[test]
#[ignore = "prints a rate"]
fn the_rate_of_a_large_product() {
    let gpu = gpu::find();
    let parts = plans().remove(0).parts().to_vec();
    let kernels: Vec<AnyKernel> = parts.into_iter().filter_map(|part| gpu::load(gpu.as_ref(), part)).collect();
    let Some(gpu) = gpu else { return };
    let stream = gpu.stream();
    for kernel in &kernels {
        let all = tensors(kernel.plan(), [4096; 3], false, Fill::Integers, 3);
        let mut on: Vec<DeviceTensor> =
            all.iter().map(|t| DeviceTensor::upload(&stream, t).expect("device memory")).collect();
        let [a, b, d] = &mut on[..] else { unreachable!("A, B and D") };
        let launch = Subject::new("gemm", |_| kernel.launch(&stream, &mut [a.any(), b.any(), d.any_mut()]));
        let samples = interleave(&stream, &Protocol::default(), &mut [launch]).expect("timed").remove(0);
        println!("{}: {:.1} TFLOP/s", kernel.plan().name(), 2.0 * 4096_f64.powi(3) / samples.median() / 1e12);
    }
}
