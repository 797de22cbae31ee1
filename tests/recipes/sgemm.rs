//! Contract: an `sgemm` recipe of any rung, tile, epilogue and storage is refused with a reason, or its kernel is right as PTX
//! for every problem, layout, address and input, and touches nothing else.
//!
//! `CUTEMPLATE_SGEMM_RECIPES` and `CUTEMPLATE_SGEMM_FIRST` set which recipes are drawn, for a longer run or another.

use crate::{judge, whole};

use crate::kernels::sgemm::{asked, drawn, kinds};
use crate::kernels::{Kernel, Problem, Tally};
use cutemplate::arch::Targets;
use cutemplate::layout::Layout;
use cutemplate::model::SharedOp;
use cutemplate::recipe::sgemm::SETTINGS;
use cutemplate::recipe::{Recipe, Sgemm};
use cutemplate::settings::Settings;
use judge::Defect;

use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;

/// Problems of a kernel's own.
fn own(count: u64, products: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, products).collect()
}

fn recipe(settings: &str) -> Sgemm {
    Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

#[test]
fn random_recipes_are_refused_or_right() {
    let (mut tally, kernels) = random();
    judge::run(&mut tally, &KERNELS, &kernels, own(8, 300_000));
    tally.finish("random recipes");
}

fn random() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let kernels = tally.plan("sgemm", asked(whole::or(100, 16)), &Targets::default());
    (tally, kernels)
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    random().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

/// The recipes are drawn from all that a user can type.
#[test]
fn every_kind_of_value_of_every_setting_is_drawn_and_accepted() {
    let mut missing: Vec<(&str, Vec<_>)> = SETTINGS.iter().map(|setting| (setting.key, kinds(setting.key))).collect();
    for (key, kinds) in &missing {
        assert!(!kinds.is_empty(), "no kinds of values of `{key}`");
    }
    for recipe in (0..8000).map(drawn) {
        let new = missing.iter().any(|(_, kinds)| kinds.iter().any(|(_, is)| is(&recipe)));
        if new && recipe.plan(&Targets::default()).is_ok() {
            missing.iter_mut().for_each(|(_, kinds)| kinds.retain(|(_, is)| !is(&recipe)));
        }
    }
    let missing: Vec<String> =
        missing.iter().flat_map(|(key, kinds)| kinds.iter().map(move |(what, _)| format!("{key}: {what}"))).collect();
    assert!(missing.is_empty(), "never drawn and accepted: {}", missing.join("; "));
}

/// The alignments that a text declares for its shared arrays, in order.
fn declared(text: &str) -> Vec<u64> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("alignas(") && line.contains('['));
    let number = |line: &str| line["alignas(".len()..].split(')').next().and_then(|n| n.parse().ok());
    lines.map(|line| number(line).expect("a number")).collect()
}

/// Bytes that a text loads at once from a tile, where it says so.
fn loaded(text: &str, tile: &str) -> Option<u64> {
    let (_, rest) = text.split_once(&format!("using Load{tile} = AutoVectorizingCopyWithAssumedAlignment<"))?;
    let bits: u64 = rest.split('>').next()?.parse().ok()?;
    Some(bits / 8)
}

/// Base, columns and stages of every tile in shared memory are aligned for its widest access, as the text says.
#[test]
fn shared_memory_is_aligned_for_its_widest_access() {
    let mut tally = Tally::default();
    let targets = Targets::default();
    let mut kernels = tally.plan("sgemm", (0..700).map(|i| (i, drawn(i))), &targets);
    kernels.extend(tally.plan(
        "apply",
        (0..whole::or(250, 150)).map(|i| (i, crate::kernels::apply::drawn(i))),
        &targets,
    ));
    let mut counts = [0; 2];
    for kernel in &kernels {
        let of_text = declared(&kernel.unit.header().text);
        let shared = kernel.plan.shared();
        assert_eq!(of_text, shared.iter().map(|tile| tile.alignment.0).collect::<Vec<_>>(), "{kernel}");
        for tile in shared {
            // Of single loads in the text nvcc makes wider ones, and aligns the array for them.
            let load = loaded(&kernel.unit.header().text, &tile.name[1..]);
            let others = tile.accesses.iter().filter(|access| load.is_none() || access.op != SharedOp::Load);
            let widest = others.map(|access| access.bytes.0).chain(load).max().expect("accesses");
            assert_eq!(tile.alignment.0 % widest, 0, "{kernel}, {tile}");
            let plain = tile.layout.rsplit(" o ").next().expect("a layout");
            let layout: Layout = plain.parse().expect("a layout");
            let element = tile.memory.0 as i64 / layout.cosize().expect("integers");
            let pitches = layout.stride().ints().expect("integers");
            let pitches = pitches.into_iter().filter(|stride| *stride > 1).map(|stride| element * stride);
            let all: Vec<i64> = pitches.chain(tile.stage.map(|stage| stage.0 as i64)).collect();
            assert!(all.iter().all(|apart| apart % tile.alignment.0 as i64 == 0), "{kernel}, {tile}");
            counts[usize::from(tile.stage.is_some())] += 1;
        }
    }
    println!("{} tiles, {} in stages", counts[0] + counts[1], counts[1]);
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

const ODD: &str = "variant=block_2d\ntile=32x32x8\nthread=4x4\nsmem_a=pad1\nconflicts=allow";
const TILED: &str = "variant=block_2d\ntile=16x16x8\nthread=4x4\nbatched=true";
const STAGED: &str = "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nstages=3\nmin_blocks=0\nconflicts=allow";
const SPLIT: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nsplit_k=3\nbatched=true\nmin_blocks=0\nconflicts=allow";
const WAVE: &str =
    "variant=pipelined\ntile=32x32x8\nthread=4x4\nwarp=4x8\nwave=5\nbatched=true\nmin_blocks=0\nconflicts=allow";
const VECTORS: &str = "variant=vectorized\ntile=32x32x8\nthread=4x4\na=col\nmin_blocks=0\nconflicts=allow";
const BIAS: &str = "variant=naive\nbatched=true\nepilogue=|a, b, c; beta| a + beta * b - c\naux=f32:(?,1,?)";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "a shared array that is not aligned to the vectors that are loaded from it",
        settings: ODD,
        from: "alignas(16) __shared__ float smem_b",
        to: "__shared__ float smem_b",
    },
    Defect {
        what: "a shared array that is not aligned to the vectors that are stored to it",
        settings: VECTORS,
        from: "alignas(16) __shared__ float smem_a",
        to: "alignas(8) __shared__ float smem_a",
    },
    Defect {
        what: "one k too many at the edge",
        settings: TILED,
        from: "elem_less(crd(i), shape)",
        to: "elem_leq(crd(i), shape)",
    },
    Defect { what: "one k too many in the residue", settings: STAGED, from: "< begin_k ?", to: "+ 1 < begin_k ?" },
    Defect { what: "the residue is asked for nowhere along K", settings: STAGED, from: "< begin_k ?", to: "< 0 ?" },
    Defect {
        what: "one element too many at the edge",
        settings: STAGED,
        from: "dst(i), i < inside",
        to: "dst(i), i <= inside",
    },
    Defect {
        what: "copies of single elements that are not asked whether they lie inside",
        settings: STAGED,
        from: "dst(i), i < inside",
        to: "dst(i), true",
    },
    Defect {
        what: "copies by predicate go on along K",
        settings: STAGED,
        from: "k == 0 && k_tile >= k_tile_end",
        to: "false",
    },
    Defect {
        what: "vectors across the edge",
        settings: STAGED,
        from: "is_vector && inside >= size(dst)",
        to: "is_vector && inside > 0",
    },
    Defect { what: "vectors at the edge at any address", settings: STAGED, from: "params.aligned_b, ", to: "true, " },
    Defect {
        what: "a residue comes again as the last tile",
        settings: STAGED,
        from: "(residue_k == 0 || k_tile_end > 1)",
        to: "true",
    },
    Defect {
        what: "the copies that come after the last tile go on along K",
        settings: STAGED,
        from: "cute::min(k_tile, k_tile_end - 1)",
        to: "k_tile",
    },
    Defect {
        what: "the last copy of a tile is left out",
        settings: STAGED,
        from: "i < copies;",
        to: "i + 1 < copies;",
    },
    Defect { what: "copies go to the stage that is read", settings: STAGED, from: "k, write);", to: "k, read);" },
    Defect {
        what: "the stage that is written stays the same",
        settings: STAGED,
        from: "          write = next(write);\n",
        to: "",
    },
    Defect {
        what: "the last tile along K is left out",
        settings: TILED,
        from: "k_tile < size<2>(gA);",
        to: "k_tile + 1 < size<2>(gA);",
    },
    Defect {
        what: "tiles are read before they are whole",
        settings: TILED,
        from: "      __syncthreads();  // all threads have written the tiles\n",
        to: "",
    },
    Defect {
        what: "tiles are overwritten before they were read",
        settings: TILED,
        from: "      __syncthreads();  // all threads have read the tiles before the next ones overwrite them\n",
        to: "",
    },
    Defect {
        what: "the next stage is not waited for",
        settings: STAGED,
        from: "          cp_async_wait<size<2>(SmemA{}) - 2>();\n",
        to: "",
    },
    Defect {
        what: "one stage too few is waited for",
        settings: STAGED,
        from: "          cp_async_wait<size<2>(SmemA{}) - 2>();\n",
        to: "          cp_async_wait<size<2>(SmemA{}) - 1>();\n",
    },
    Defect {
        what: "no barrier between the stages",
        settings: STAGED,
        from: "          __syncthreads();  // all copies of the next tiles have arrived, and all threads have read this one\n",
        to: "",
    },
    Defect {
        what: "accumulators that begin with something",
        settings: STAGED,
        from: "clear(tCrC);",
        to: "fill(tCrC, 1.0f);",
    },
    Defect {
        what: "C is read where beta is 0",
        settings: "variant=naive",
        from: "params.beta != 0.0f ? mC(m, n) : 0.0f",
        to: "mC(m, n)",
    },
    Defect {
        what: "vectors of C are read where beta is 0",
        settings: VECTORS,
        from: "if (params.beta != 0.0f) {",
        to: "if (true) {",
    },
    Defect {
        what: "the batches of A lie as those of B",
        settings: TILED,
        from: "params.batch_a",
        to: "params.batch_b",
    },
    Defect { what: "the first batch of B for all", settings: SPLIT, from: "params.batch_b", to: "int64_t(0)" },
    Defect {
        what: "the epilogue takes C for the auxiliary tensor",
        settings: BIAS,
        from: "params.beta != 0.0f ? mC(m, n) : 0.0f, mAux0(m, n)",
        to: "params.beta != 0.0f ? mAux0(m, n) : 0.0f, mC(m, n)",
    },
    Defect {
        what: "the first part of K is left out",
        settings: SPLIT,
        from: "for (int s = 0; s < size(tWmW); ++s)",
        to: "for (int s = 1; s < size(tWmW); ++s)",
    },
    Defect {
        what: "parts of K that overlap",
        settings: SPLIT,
        from: "k_tile_begin + k_tiles_split,",
        to: "k_tile_begin + k_tiles_split + 1,",
    },
    Defect {
        what: "the last part of a tile is left out",
        settings: WAVE,
        from: "for (int p = 0; p < size(tWmW); ++p)",
        to: "for (int p = 0; p + 1 < size(tWmW); ++p)",
    },
    Defect {
        what: "parts of a tile that overlap",
        settings: WAVE,
        from: "cute::min(k_tile_begin + params.k_part, ",
        to: "cute::min(k_tile_begin + params.k_part + 1, ",
    },
    Defect {
        what: "the tiles that are cut begin one too early",
        settings: WAVE,
        from: "idx2crd(params.whole + int(blockIdx.y),",
        to: "idx2crd(params.whole - 1 + int(blockIdx.y),",
    },
    Defect {
        what: "a part of a tile takes the place of the part before it",
        settings: WAVE,
        from: "(_,_,rest);  // (BM,BN)",
        to: "(_,_,rest / 2);  // (BM,BN)",
    },
    Defect { what: "vectors of D at any address", settings: VECTORS, from: "params.aligned_d && ", to: "" },
    Defect { what: "vectors of A at any address", settings: VECTORS, from: "params.aligned_a && ", to: "" },
    Defect {
        what: "one column too many is written",
        settings: VECTORS,
        from: "elem_less(tDcD(at(n))(i), shape_MN)",
        to: "elem_leq(tDcD(at(n))(i), shape_MN)",
    },
    Defect {
        what: "a tile that is cut off is copied whole",
        settings: TILED,
        from: "  if (elem_less(cA(size<0>(cA) - 1, size<1>(cA) - 1, size<2>(cA) - 1), shape(mA)) &&\n      ",
        to: "  if (",
    },
];

#[test]
fn planted_defects_are_found() {
    // One problem in ten is at an edge that no vector lies across.
    judge::find(DEFECTS, &KERNELS, recipe, own(96, 20_000));
}
