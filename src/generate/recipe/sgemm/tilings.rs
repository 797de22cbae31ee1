//! The tiling of a rung: threads, copies, tiles in shared memory, loads of the products, the MMA of single products.

use super::{Sgemm, SmemLayout, Variant};
use crate::atom::Operand;
use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::layout::{Layout, LayoutError, Swizzle, Tiler};
use crate::model::{Proposal, SharedTensor};
use crate::plan::checks::Checks;
use crate::plan::judge;
use crate::recipe::product::{Extents, F32, Major};
use crate::tiling::{
    Completion, CopyOp, Engine, Factor, Global, Guard, Lives, Pipeline, Place, Proxy, Role, SmemTensor, Task, TileCopy,
    TileMma, Tiling,
};
use crate::units::Bytes;

/// The factors: A and B.
const FACTORS: [(&str, Operand); 2] = [("A", Operand::A), ("B", Operand::B)];

fn bytes(elements: i64) -> Bytes {
    Bytes((elements * F32) as u64)
}

/// The largest vector of 1, 2 or 4 elements that divides an extent.
fn vector_of(elements: i64) -> i64 {
    [4, 2, 1].into_iter().find(|v| elements % v == 0).unwrap_or(1)
}

/// A layout with leaves of these extents and strides as its modes.
fn modes<const N: usize>(leaves: [(i64, i64); N]) -> Result<Layout, LayoutError> {
    let leaves: Vec<Layout> =
        leaves.iter().map(|(e, stride)| Layout::mode_of(*e, *stride)).collect::<Result<_, _>>()?;
    Layout::from_modes(leaves)
}

/// (rows, columns) to number: `fast` along one mode, the columns where `along_columns`, then `slow` along the other.
fn numbered([fast, slow]: [i64; 2], along_columns: bool) -> Result<Layout, LayoutError> {
    if along_columns { modes([(slow, fast), (fast, 1)]) } else { modes([(fast, 1), (slow, fast)]) }
}

impl Sgemm {
    fn extents(&self) -> [i64; 3] {
        self.tile.0.map(i64::from)
    }

    /// Whether A (0) or B (1) is contiguous along K in global memory.
    fn global_k(&self, factor: usize) -> bool {
        (if factor == 0 { self.a } else { self.b } == Major::Row) == (factor == 0)
    }

    /// Whether its tile is in shared memory: without an MMA it lies as its matrix does.
    fn smem_k(&self, factor: usize) -> bool {
        !self.variant.has_mma() && self.global_k(factor)
    }

    /// Whether the copy of its tile turns it.
    pub(super) fn turns(&self, factor: usize) -> bool {
        self.global_k(factor) != self.smem_k(factor)
    }

    fn smem_of(&self, factor: usize) -> SmemLayout {
        if factor == 0 { self.smem_a } else { self.smem_b }
    }

    /// Elements of D and of its epilogue inputs that one thread moves at once, and of M.
    pub(super) fn vectors(&self) -> [i64; 2] {
        self.thread_tile.0.map(|elements| vector_of(i64::from(elements)))
    }

    /// Elements of one load of global memory, at most. An asynchronous copy puts them into shared memory as they are, so
    /// that a tile that is turned is copied element by element.
    fn widest(&self, factor: usize) -> i64 {
        match self.variant {
            Variant::Vectorized | Variant::WarpTiled => i64::from(self.vector) / F32,
            Variant::Pipelined if !self.global_k(factor) => i64::from(self.vector) / F32,
            _ => 1,
        }
    }
}

/// The threads that compute. The lanes of a warp are numbered in a zigzag: bit 0 goes along N and bit 1 along M. So
/// lanes l and l ^ 1 read the same of A, and lanes l and l ^ 2 the same of B. A load of 16 bytes then serves twice as
/// many lanes at a time, as `model::banks` counts.
fn threads(recipe: &Sgemm, [m, n]: [i64; 2]) -> Result<Layout, LayoutError> {
    if recipe.variant == Variant::Naive {
        return modes([(m, 1), (n, m), (1, 0)]);
    }
    if !matches!(recipe.variant, Variant::WarpTiled | Variant::Pipelined) {
        return modes([(m, n), (n, 1), (1, 0)]);
    }
    let [lanes_m, lanes_n] = recipe.warp.0.map(i64::from);
    let (low_m, low_n) = (lanes_m.min(2), lanes_n.min(2));
    let (high_m, high_n) = (lanes_m / low_m, lanes_n / low_n);
    let (low, warps_m) = (low_m * low_n, m / lanes_m);
    let along_m = modes([(low_m, low_n), (high_m, low * high_n), (warps_m, 32)])?;
    let along_n = modes([(low_n, 1), (high_n, low), (n / lanes_n, 32 * warps_m)])?;
    Layout::from_modes([along_m, along_n, Layout::unit()])
}

/// A thread's elements lie side by side, or in vectors with those of the other threads between.
fn mma(recipe: &Sgemm, thr: [i64; 2]) -> Result<TileMma, LayoutError> {
    let neighbours = if recipe.variant.has_mma() { recipe.vectors() } else { recipe.thread_tile.0.map(i64::from) };
    let along = |mode: usize| numbered([neighbours[mode], thr[mode]], true).map(Tiler::Layout);
    Ok(TileMma {
        name: "Mma",
        tiles: ["TileA", "TileB", "TileD"],
        tile: recipe.extents(),
        atom: "UniversalFMA<float>".to_owned(),
        atoms: threads(recipe, thr)?,
        permutation: Some(Tiler::Tuple(vec![along(0)?, along(1)?, Tiler::Shape(1.into())])),
        a: Factor::Fragments,
        b: Factor::Fragments,
        promotion: None,
    })
}

/// A matrix in global memory: the text asks whether it is aligned.
fn global(recipe: &Sgemm, tensor: &'static str, contiguous: usize) -> Place {
    // B is (K,N), and its tiles are (N,K).
    let modes = if tensor == "B" { [1, 0] } else { [0, 1] };
    Place::Global(Global { modes, contiguous, align: bytes(1), outer: recipe.batched.into(), ..Global::matrix(tensor) })
}

/// The tiling of a recipe, or `None` if threads do not divide a tile or it cannot have the required layout.
pub(super) fn tiling(recipe: &Sgemm, thr: [i64; 2], checks: &mut Checks) -> Option<Tiling> {
    let mut tiling = unpadded(recipe, thr, checks)?;
    let mut fits = true;
    for factor in 0..tiling.smem.len() {
        match laid_out(recipe, factor, &tiling, checks) {
            Some(laid_out) => tiling = laid_out,
            None => fits = false,
        }
    }
    fits.then_some(tiling)
}

/// Threads, copies and MMA, with tiles without padding.
fn unpadded(recipe: &Sgemm, thr: [i64; 2], checks: &mut Checks) -> Option<Tiling> {
    let [m, n, k] = recipe.extents();
    let mma = checks.sound("threads and their elements are an MMA", mma(recipe, thr))?;
    let count = thr[0] * thr[1];
    let single = matches!(recipe.variant, Variant::Naive | Variant::Coalesced);
    let copy = |name, what, tile, from, to, engine| TileCopy {
        name,
        what,
        tile,
        dtype: DType::F32,
        from,
        to,
        engine,
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    let (mut smem, mut copies) = (Vec::new(), Vec::new());
    let filled = [0, 1]
        .map(|factor| if single { None } else { filled(recipe, factor, [[m, k], [n, k]][factor], count, checks) });
    for (factor, ((name, operand), filled)) in FACTORS.into_iter().zip(filled).enumerate() {
        let (tile, contiguous) = ([[m, k], [n, k]][factor], usize::from(recipe.global_k(factor)));
        let load = |from, vector| {
            let engine = Engine::Fragments(CopyOp::Universal(bytes(vector)));
            copy(
                ["LoadA", "LoadB"][factor],
                "load of the products",
                tile,
                from,
                Place::Fragments("Mma", operand),
                engine,
            )
        };
        if single {
            copies.push(load(global(recipe, name, contiguous), 1));
            continue;
        }
        let engine = filled?;
        let pipelined = recipe.variant == Variant::Pipelined;
        let completes = if pipelined { Completion::CpAsyncGroup } else { Completion::Program };
        let (from, to) = (global(recipe, name, contiguous), Place::Shared(name));
        let fill = copy(["CopyA", "CopyB"][factor], "store of the copy", tile, from, to, engine);
        copies.push(TileCopy { completes, ..fill });
        copies.push(TileCopy { guard: Guard::None, ..load(Place::Shared(name), 1) });
        smem.push(checks.sound("a tile has a layout", tensor(recipe, factor, 0, None))?);
    }
    let wide = if recipe.variant.has_mma() { recipe.vectors()[1] } else { 1 };
    let store = Engine::Fragments(CopyOp::Universal(bytes(wide)));
    copies.push(copy(
        "StoreD",
        "store of D",
        [m, n],
        Place::Fragments("Mma", Operand::C),
        global(recipe, "D", 1),
        store,
    ));
    let pipelined = recipe.variant == Variant::Pipelined;
    let mainloop = Pipeline {
        name: "mainloop",
        tensors: FACTORS.map(|(name, _)| name).into(),
        stages: if pipelined { recipe.stages.into() } else { 1 },
        completes: if pipelined { Completion::CpAsyncGroup } else { Completion::Program },
    };
    Some(Tiling {
        tile: [m, n, k],
        smem,
        pipelines: if single { Vec::new() } else { vec![mainloop] },
        copies,
        mmas: vec![mma],
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: count as u32, registers: None }],
        cluster: [1, 1, 1],
        order: recipe.parts().order([m, n, k], recipe.batched),
    })
}

/// Threads along the contiguous extent, in vectors, and along the other: as many as fit along the contiguous one, up to
/// `most`. Every thread moves equally many whole vectors.
fn lanes([contiguous, other]: [i64; 2], vec: i64, threads: i64, most: i64) -> Option<[i64; 2]> {
    let vectors = (contiguous % vec == 0).then_some(contiguous / vec)?;
    let fits = |fast: &i64| vectors % fast == 0 && threads % fast == 0 && other % (threads / fast) == 0;
    (1..=vectors.min(threads).min(most)).rev().find(fits).map(|fast| [fast, threads / fast])
}

/// How a tile comes into shared memory.
fn filled(recipe: &Sgemm, factor: usize, [x, k]: [i64; 2], threads: i64, checks: &mut Checks) -> Option<Engine> {
    let along_k = recipe.global_k(factor);
    let extents = if along_k { [k, x] } else { [x, k] };
    // A tile that is turned is read in whole sectors of 32 bytes and no longer, so that the stores spread over the banks.
    let most = |vec: i64| if recipe.turns(factor) { (8 / vec).max(1) } else { threads };
    let vectors = || (0..).map(|halvings| recipe.widest(factor) >> halvings).take_while(|vec| *vec > 0);
    let sectors = vectors().map(|vec| (vec, most(vec)));
    let chosen = sectors
        .chain(vectors().map(|vec| (vec, threads)))
        .find_map(|(vec, most)| Some((vec, lanes(extents, vec, threads, most)?)));
    let Some((vec, chosen)) = chosen else {
        let ([contiguous, other], name) = (extents, FACTORS[factor].0);
        checks.push(
            Code::TileDivides,
            format!("{name}: a tile of {contiguous} x {other} elements, {threads} threads"),
            "threads that divide the tile into equal numbers of elements".into(),
            "every thread copies the same number of elements; those that no thread copies would be stale",
            format!(
                "a tile of {name} whose extents are multiples of powers of two, such as 128x128x16 with thread=8x8"
            ),
        );
        return None;
    };
    let values = if along_k { modes([(1, vec), (vec, 1)]) } else { modes([(vec, 1), (1, vec)]) };
    let pipelined = recipe.variant == Variant::Pipelined;
    let op = match pipelined {
        true => CopyOp::CpAsync(bytes(vec)),
        false => CopyOp::Through { load: bytes(vec), store: bytes(if recipe.turns(factor) { 1 } else { vec }) },
    };
    let values = checks.sound("a vector is a layout", values)?;
    let threads = checks.sound("lanes are a layout", numbered(chosen, along_k))?;
    Some(Engine::Threads { op, threads, values })
}

/// A tile, or one for each stage, padded between its columns.
fn tensor(recipe: &Sgemm, factor: usize, pad: i64, swizzle: Option<Swizzle>) -> Result<SmemTensor, LayoutError> {
    let [m, n, k] = recipe.extents();
    let (x, staged) = ([m, n][factor], recipe.variant == Variant::Pipelined);
    let (pitch, columns) = if recipe.smem_k(factor) { (k + pad, x) } else { (x + pad, k) };
    let (along_x, along_k) = if recipe.smem_k(factor) { (pitch, 1) } else { (1, pitch) };
    let stages = (i64::from(recipe.stages), pitch * columns);
    let layout = if staged { modes([(x, along_x), (k, along_k), stages]) } else { modes([(x, along_x), (k, along_k)]) };
    Ok(SmemTensor {
        name: FACTORS[factor].0,
        modes: [["(BM,BK)", "(BM,BK,STAGES)"], ["(BN,BK)", "(BN,BK,STAGES)"]][factor][usize::from(staged)],
        dtype: DType::F32,
        swizzle,
        layout: layout?,
        align: bytes(1),
        proxy: Proxy::Generic,
        lives: Lives::Kernel,
    })
}

/// A choice of padding or swizzle for the tile of one factor.
#[derive(Clone, Copy, Default)]
struct Laid {
    pad: i64,
    swizzle: Option<Swizzle>,
}

/// The tiling with a tile laid out so, and that tile as the threads use it.
fn with(recipe: &Sgemm, factor: usize, laid: Laid, tiling: &Tiling) -> Option<(Tiling, SharedTensor)> {
    let mut tiling = tiling.clone();
    tiling.smem[factor] = tensor(recipe, factor, laid.pad, laid.swizzle).ok()?;
    // A thread's neighbours are loaded together where they lie so. Without an MMA none are behind a swizzle.
    let single = !recipe.variant.has_mma() && (recipe.smem_k(factor) || laid.swizzle.is_some());
    let vector = if single { 1 } else { recipe.vectors()[factor] };
    let load = tiling.copies.iter_mut().find(|copy| copy.from == Place::Shared(FACTORS[factor].0))?;
    load.engine = Engine::Fragments(CopyOp::Universal(bytes(vector)));
    tiling.smem[factor].align = tiling.widest(FACTORS[factor].0).ok()?;
    let shared = tiling.shared_tensor(&tiling.smem[factor]).ok()?;
    Some((tiling, shared))
}

/// Whether a tile can be padded or swizzled so, with vectors that stay whole.
fn legal(recipe: &Sgemm, factor: usize, vector: i64, checks: &mut Checks) -> bool {
    let [m, n, k] = recipe.extents();
    let (x, key) = ([m, n][factor], ["smem_a", "smem_b"][factor]);
    let (contiguous, columns) = if recipe.smem_k(factor) { (k, x) } else { (x, k) };
    match recipe.smem_of(factor) {
        SmemLayout::Pad(pad) if (contiguous + i64::from(pad)) % vector != 0 => {
            checks.push(
                Code::VectorAlignment,
                format!("{key} = pad{pad}: columns {} elements apart", contiguous + i64::from(pad)),
                format!("a multiple of {vector} elements"),
                "the GPU faults on a vector whose address is not a multiple of its size (CUDA C++ Programming Guide, \
                 \"Device Memory Accesses\")",
                format!("{key}=auto, or padding in multiples of {vector}"),
            );
            false
        }
        SmemLayout::Swizzled(swizzle) if swizzle.bits() > 0 => {
            let keeps = 1_i64 << swizzle.base().clamp(0, 62);
            // A swizzled layout is sliced by its bits, which a thread's part has to respect.
            let halves = [x, k].into_iter().all(|extent| extent.count_ones() == 1);
            if contiguous * columns % swizzle.block() == 0 && keeps % vector == 0 && halves {
                return true;
            }
            checks.push(
                Code::BadSwizzle,
                format!("{key} = {swizzle}, a tile of {contiguous} x {columns} elements, vectors of {vector}"),
                format!(
                    "extents that are powers of two, a block of {} elements that divides the tile, and {vector} \
                     neighbours that stay together",
                    swizzle.block()
                ),
                "the swizzle would put elements outside the tile, or tear vectors or what a thread copies apart",
                format!(
                    "{key}=auto, or a tile of powers of two and a swizzle Sw<B,M,S> with 2^M a multiple of {vector}"
                ),
            );
            false
        }
        _ => true,
    }
}

/// With the padding or swizzle that is asked for; `Auto` takes the smallest padding with the fewest extra passes.
fn laid_out(recipe: &Sgemm, factor: usize, tiling: &Tiling, checks: &mut Checks) -> Option<Tiling> {
    // Elements of the widest access to a tile that is not padded.
    let plain = with(recipe, factor, Laid::default(), tiling)?.0;
    let vector = (plain.smem[factor].align.0 as i64 / F32).max(1);
    legal(recipe, factor, vector, checks).then_some(())?;
    let analysis = |laid: Laid| with(recipe, factor, laid, tiling)?.1.analyze().ok();
    let laid = match recipe.smem_of(factor) {
        SmemLayout::Auto => {
            let mut best = (u64::MAX, Laid::default());
            for pad in (0..8).map(|i| i * vector) {
                let laid = Laid { pad, swizzle: None };
                let extra = analysis(laid).map_or(u64::MAX, |analysis| analysis.extra());
                if extra < best.0 {
                    best = (extra, laid);
                }
                if extra == 0 {
                    break;
                }
            }
            best.1
        }
        SmemLayout::Pad(pad) => Laid { pad: pad.into(), swizzle: None },
        // One of no bits exchanges nothing.
        SmemLayout::Swizzled(swizzle) => Laid { pad: 0, swizzle: Some(swizzle).filter(|swizzle| swizzle.bits() > 0) },
    };
    let (laid_out, shared) = with(recipe, factor, laid, tiling)?;
    // Passes with a proposal, whose swizzle may tear loads apart.
    let passes = |laid: Laid| Some(analysis(laid)?.accesses.iter().map(|access| access.wavefronts).sum::<u64>());
    let gains = |best: &Proposal| {
        let proposed = Laid { pad: best.padding.map_or(0, |(_, added)| added.0 as i64), swizzle: best.swizzle };
        passes(proposed).zip(passes(laid)).is_some_and(|(proposed, now)| proposed < now)
    };
    let key = ["smem_a", "smem_b"][factor];
    judge(checks, &shared, recipe.conflicts, |best| match best {
        Some(best) if gains(best) => match (best.swizzle, best.padding) {
            (Some(swizzle), _) => format!("{key}={swizzle}"),
            (None, Some((_, added))) => format!("{key}=pad{}", added.0),
            (None, None) => format!("{key}=pad0"),
        },
        _ => "other extents, vectors or threads: no padding or swizzle does better".into(),
    })?;
    Some(laid_out)
}

/// Whether the threads of a warp divide those of the block.
pub(super) fn warps_divide(recipe: &Sgemm, thr: [i64; 2], checks: &mut Checks) -> bool {
    let [lanes_m, lanes_n] = recipe.warp.0.map(i64::from);
    let tiled = matches!(recipe.variant, Variant::WarpTiled | Variant::Pipelined);
    let power = lanes_m.count_ones() == 1 && lanes_n.count_ones() == 1;
    if tiled && (!power || lanes_m * lanes_n != 32 || thr[0] % lanes_m != 0 || thr[1] % lanes_n != 0) {
        let Extents([m, n]) = recipe.warp;
        checks.push(
            Code::TileDivides,
            format!("warp = {m}x{n}, {} x {} threads along M and N", thr[0], thr[1]),
            "32 threads of a warp that divide the threads of the block along M and along N".into(),
            "all warps have tiles of the same size",
            "warp=4x8, warp=8x4 or warp=2x16; BM = 4*TM*i and BN = 8*TN*j fit warp=4x8".into(),
        );
        return false;
    }
    true
}
