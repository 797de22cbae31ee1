//! The tensor-core kernels: every part of the catalogue's plans at sizes around its tiles, f16 and f32 out, integers bitwise and
//! reals within the proven bound, by leading dimensions of any kind; the typed launch takes the part of the GPU.

use cutemplate::arch::Arch;
use cutemplate::artifact::{Artifact, Code, Parts, Ptx, Text};
use cutemplate::digest::Digest;
use cutemplate::launch::{self, DeviceTensor, Gpu};
use cutemplate::plan::Plan;
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Fill};
use half::f16;

use crate::batch;
use crate::gpu;
use crate::kernels::gemm::{OF_PAIRS, drawn, parts, sized};
use crate::kernels::{Kernel, Tally, Tensors};
use crate::variables;

/// M, N and K: one element, one k-tile, fewer k-tiles than stages, as many, ragged on every side, more tiles than CTAs, many that are
/// stored as soon as they are computed, none at all.
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
    [4104, 5000, 72],
    [0, 5, 8],
    [5, 0, 8],
    [5, 7, 0],
];

fn usual(recipe: Gemm) -> Plan {
    recipe.plan(&recipe.usual_targets()).expect("a right recipe")
}

fn plans() -> Vec<Plan> {
    let recipe = |settings: &&str| Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Gemm::CATALOGUE.iter().map(|settings| usual(recipe(settings))).collect()
}

/// The two texts of a recipe run on one GPU, each compiled for its own architecture.
const ARCHS: [Arch; 2] = [Arch::Sm80, Arch::Sm90a];

#[test]
#[ignore = "needs a GPU"]
fn every_part_is_right_around_its_tiles() {
    // That nvcc takes the catalogue is seen by the tests of its resources.
    let gpu = gpu::find();
    let mut tally = Tally::default();
    for arch in ARCHS {
        let kernels: Vec<Kernel> = (0..).zip(plans()).flat_map(|(index, plan)| parts(index, &plan, arch)).collect();
        batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| {
            let fills = [Fill::Integers, Fill::Normal, Fill::Specials];
            let cases = SIZES.iter().flat_map(|size| fills.map(|fill| (size, fill)));
            let gap = |size: &[i64; 3]| (size.iter().sum::<i64>() % 2 == 1).then_some(8);
            let sized = cases.map(|(size, fill)| sized(&kernel.plan, size, gap(size), fill, 7));
            sized.chain(kernel.problems(40, 4_000_000)).collect()
        });
    }
    tally.finish("gemm's catalogue");
}

#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let first = variables::number("CUTEMPLATE_GEMM_FIRST").unwrap_or(0);
    let count = variables::number("CUTEMPLATE_GEMM_RECIPES").unwrap_or(8);
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let numbers = [first, OF_PAIRS + first].map(|first| first..first + count);
    let recipes = numbers.into_iter().flatten().map(|index| (index, drawn(index)));
    let planned = |one: (u64, Gemm)| {
        let targets = one.1.usual_targets();
        tally.plan("gemm", [one], &targets)
    };
    let plans: Vec<Kernel> = recipes.flat_map(planned).collect();
    for arch in ARCHS {
        let kernels: Vec<Kernel> = plans.iter().flat_map(|whole| parts(whole.index, &whole.plan, arch)).collect();
        batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| {
            // A tile is stored while TMA reads what the one before has left in shared memory. Strides of its own may make a tensor of
            // such a problem larger than memory.
            let short = sized(&kernel.plan, &[2056, 3080, 40], Some(8), Fill::Integers, kernel.index);
            let spans: Option<Vec<u64>> = short.layouts.iter().map(|of| of.layout.span()).collect();
            let fits = spans.is_some_and(|spans| spans.iter().sum::<u64>() < 200_000_000);
            kernel.problems(10, 4_000_000).chain(fits.then_some(short)).collect()
        });
    }
    tally.finish("gemm at random");
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
    // First all of them: the folder gets each text, the second as well.
    let texts: Vec<Option<Text>> = plan.texts().iter().map(text).collect();
    let texts: Option<Vec<Text>> = texts.into_iter().collect();
    let parts = Parts { family: plan.family(), name: leak(plan.name()), texts: texts?.into() };
    // SAFETY: nvcc made the fatbins of this plan's texts.
    Some(unsafe { Artifact::new(parts) })
}

#[test]
#[ignore = "needs a GPU"]
fn one_typed_launch_takes_the_part_of_the_gpu() {
    let gpu = gpu::find();
    // The first has one output, of the factors' type.
    let plan = plans().remove(0);
    let Some(artifact) = artifact(gpu.as_ref(), &plan) else { return };
    let Some(gpu) = gpu else { return };
    let kernel = launch::Kernel::<Gemm>::load(&gpu, &artifact).expect("loads");
    let own = plan.text_on(gpu.capability()).expect("a part");
    assert_eq!(kernel.any().abi().name(), own.name());
    println!("{gpu} runs {}", own.name());
    let stream = gpu.stream();
    let mut all = Tensors::new(&plan, &sized(&plan, &[100, 60, 200], Some(8), Fill::Integers, 3));
    let upload = |t: &verify::Tensor| DeviceTensor::upload(&stream, t).expect("device memory");
    let [a, b] = [0, 1].map(|factor| upload(&all.inputs[factor]));
    let mut d = upload(&all.outputs[0]);
    let args =
        GemmArgs::new(a.view::<f16>().expect("f16"), b.view::<f16>().expect("f16"), d.view_mut::<f16>().expect("f16"));
    kernel.launch(&stream, args).expect("launches");
    d.download(&stream, &mut all.outputs[0]).expect("ran");
    let [a, b] = &all.inputs[..] else { unreachable!("A and B") };
    let verdict = verify::check(&plan, &[a, b], &[], &[&all.outputs[0]]).expect("inputs").remove(0);
    assert!(verdict.is_right(), "{verdict}");
}
