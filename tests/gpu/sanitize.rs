//! Contract: on a GPU the four tools of compute-sanitizer are silent on the `sgemm` kernels, and each finds a planted defect.
//!
//! `sanitize.sh` runs these tests under the tools. `clean` is for all four: small problems of every rung, of parts of K, of a
//! wave that is cut, of batches and of an epilogue, and the kernels of the defects, unchanged. Each `planted_*` test is for the
//! tool of its name. It launches a kernel that is wrong, so it does that with `CUTEMPLATE_PLANTED=1` only, and says nothing of
//! the result: the tool does. `support/gpu.rs` tells how to carry the kernels to a machine with a GPU.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;

use crate::kernels::{Kernel, Problem, Tally, Tensors};
use crate::variables;
use cutemplate::arch::{Arch, Targets};
use cutemplate::launch::{AnyKernel, LaunchError};
use cutemplate::plan::Operand;
use cutemplate::recipe::{Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::Access;

/// A change of the text that makes a kernel wrong, and a problem on which it is.
struct Defect {
    what: &'static str,
    settings: &'static str,
    from: &'static str,
    to: &'static str,
    extents: [i64; 3],
    /// The leading dimension of every matrix, where there is to be a gap.
    pad: Option<i64>,
}

/// The rows and columns that are read too many lie a GiB beyond the allocation, and another each: its guards and its
/// neighbours, which may be read, do not reach there.
const MEMCHECK: Defect = Defect {
    what: "elements outside of A and B are read",
    settings: "variant=smem_tiled\nb=col",
    from: "elem_less(crd(i), shape) ? src(i) : 0.0f",
    to: "src(i)",
    extents: [1, 1, 45],
    pad: Some(1 << 28),
};

/// Two warps read what the other has written.
const RACECHECK: Defect = Defect {
    what: "tiles are read before they are whole",
    settings: "variant=block_2d\na=col",
    from: "      __syncthreads();  // all threads have written the tiles\n",
    to: "",
    extents: [131, 70, 45],
    pad: None,
};

/// K has three tiles: the fourth part has none, but `reduce` reads its sums.
const INITCHECK: Defect = Defect {
    what: "a part of K without tiles writes no zeros",
    settings: "variant=pipelined\ntile=64x64x16\nthread=4x4\nsplit_k=4",
    from: "  if (k_tile_begin < k_tile_end) {\n",
    to: "  if (k_tile_begin >= k_tile_end) {\n    return;\n  }\n  {\n",
    extents: [131, 70, 45],
    pad: None,
};

/// Two warps wait at a barrier of their own while the other fourteen wait at the next one, which ends for both: barriers count
/// warps, wherever they wait. The others then run to their end, and so do the two, since warps that have ended are waited for
/// no longer.
const SYNCCHECK: Defect = Defect {
    what: "a barrier that most warps pass by",
    settings: "variant=block_1d\nbatched=true\nepilogue=|a, b, c; beta| a + beta * b - c\naux=f32:(?,1,?)",
    from: "  //\n  // Epilogue: ",
    to: "  if (threadIdx.x < 64) {\n    __syncthreads();\n  }\n  __syncthreads();\n\n  //\n  // Epilogue: ",
    extents: [131, 70, 45],
    pad: None,
};

const DEFECTS: [Defect; 4] = [MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK];

/// A wave of five blocks: of the six tiles of the deepest problem below, or twice as many, the last ones are cut.
const WAVE: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nwave=5\nbatched=true\nmin_blocks=0\nconflicts=allow";

/// M, N and K: not of whole tiles, of whole tiles, and with much along K.
const ODD: [i64; 3] = [131, 70, 45];
const EVEN: [i64; 3] = [128, 192, 64];
const DEEP: [i64; 3] = [70, 40, 1000];

fn kernel(stem: &str, index: u64, settings: &str) -> Kernel {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    Kernel::new(stem, index, &recipe, &Targets::new([Arch::Sm90a]).expect("not empty")).expect("a right recipe")
}

/// A problem of these extents, of two batches where there are any. `pad` is the leading dimension of every matrix, and the
/// first elements lie `offset` past an aligned address.
fn problem(kernel: &Kernel, extents: [i64; 3], pad: Option<i64>, offset: u64) -> Problem {
    let plan = &kernel.plan;
    let batches: &[i64] = if plan.operands()[0].strides.len() == 3 { &[2] } else { &[] };
    let extents = [&extents[..], batches].concat();
    let shapes = plan.shapes(&extents).expect("extents of a product");
    let layout = |shape: &[i64], operand: &Operand| {
        TensorLayout::from(operand.layout(shape, pad).expect("a layout")).at_offset(Elements(offset))
    };
    let inputs = plan.operands().iter().filter(|operand| operand.access == Access::Read).count();
    Problem {
        layouts: shapes.iter().zip(plan.operands()).map(|(shape, operand)| layout(shape, operand)).collect(),
        in_place: vec![None; inputs],
        scalars: plan.scalars().iter().zip([2.0, -1.0]).map(|(_, value)| value).collect(),
        fills: vec![Fill::Integers; inputs],
        planted: Vec::new(),
        seed: kernel.index,
    }
}

/// The kernels that have no defect, and what each is launched on. Those of the defects are the last.
fn sound() -> Vec<(Kernel, Vec<Problem>)> {
    let defects = DEFECTS.iter().map(|defect| (defect.settings, Some(defect)));
    let all = Sgemm::CATALOGUE.iter().chain([&WAVE]).map(|settings| (*settings, None)).chain(defects);
    let with_problems = |(index, (settings, defect)): (u64, (&str, Option<&Defect>))| {
        let kernel = kernel("clean", index, settings);
        let [odd, shifted, even, deep] =
            [(ODD, 0), (ODD, 1), (EVEN, 0), (DEEP, 0)].map(|(extents, offset)| problem(&kernel, extents, None, offset));
        let own = defect.map(|defect| problem(&kernel, defect.extents, defect.pad, 0));
        let problems = [odd, shifted, even, deep].into_iter().chain(own).collect();
        (kernel, problems)
    };
    (0..).zip(all).map(with_problems).collect()
}

/// The problems of a kernel, together, launch each of its entries: parts of K are added, and tiles of the wave are cut.
#[test]
fn every_entry_is_launched() {
    for (kernel, problems) in sound() {
        let launches = |problem: &Problem| {
            let tensors = Tensors::new(&kernel.plan, problem);
            let binding = kernel.plan.bind_with(&tensors.views(problem), &problem.scalars);
            binding.unwrap_or_else(|refused| panic!("{kernel}\n{problem}\n{refused}")).launches().len()
        };
        let most = problems.iter().map(launches).max();
        assert_eq!(most, Some(kernel.plan.entries().len()), "{kernel}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn clean() {
    let gpu = gpu::find();
    let (kernels, problems): (Vec<Kernel>, Vec<Vec<Problem>>) = sound().into_iter().unzip();
    let mut tally = Tally { recipes: kernels.len(), kernels: kernels.len(), ..Tally::default() };
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| problems[kernel.index as usize].clone());
    tally.finish("clean");
}

/// Launches the kernel with its defect.
fn planted(index: u64) {
    let defect = &DEFECTS[index as usize];
    let kernel = kernel("planted", index, defect.settings);
    let files = kernel.changed(defect.what, defect.from, defect.to);
    let asked = variables::switch("CUTEMPLATE_PLANTED");
    assert!(asked || gpu::has_folder(), "found no CUTEMPLATE_PLANTED=1, which sanitize.sh sets: it sees the defect");
    let gpu = if asked { gpu::find() } else { None };
    let fatbin = batch::fatbin(&kernel, &files);
    let Some(gpu) = gpu else { return };
    // SAFETY: nvcc made the fatbin of this plan's text with a defect in it, for which a tool watches.
    let loaded = unsafe { AnyKernel::load_unchecked(&gpu, kernel.plan.clone(), &fatbin) }.expect("loads");
    let problem = problem(&kernel, defect.extents, defect.pad, 0);
    let tensors = Tensors::new(&kernel.plan, &problem);
    // A tool may end the kernel, and with it the context, before the launch returns.
    let launched = match batch::put(&gpu, &loaded, &problem, &tensors) {
        Ok(_memory) => gpu.stream().synchronize().map_err(|e| e.to_string()),
        Err(LaunchError::Driver(error)) => Err(error.to_string()),
        Err(refused) => panic!("{kernel}: {refused}"),
    };
    println!("{kernel}, {}: launched, {launched:?}", defect.what);
}

#[test]
#[ignore = "run by sanitize.sh, which looks for the defect"]
fn planted_memcheck() {
    planted(0);
}

#[test]
#[ignore = "run by sanitize.sh, which looks for the defect"]
fn planted_racecheck() {
    planted(1);
}

#[test]
#[ignore = "run by sanitize.sh, which looks for the defect"]
fn planted_initcheck() {
    planted(2);
}

#[test]
#[ignore = "run by sanitize.sh, which looks for the defect"]
fn planted_synccheck() {
    planted(3);
}
