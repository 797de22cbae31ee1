//! The decisions for a recipe: modes, classes of tensors, vectors, threads, unrolling.

use super::classes::{classify, modes, tensors_fit, turned_mode, variant};
use super::function::compute;
use super::tilings::{self, Walk};
use super::{ElementwiseApply, Variant, launch, turn};
use crate::arch::{Arch, Targets};
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::expr::{Checked, MAX_OUTPUTS};
use crate::layout::{Layout, LayoutError, recast_layout};
use crate::model::SharedAnalysis;
use crate::plan::checks::{self, Checks, TvTile};
use crate::plan::{Draft, Entry, ModeStride, Operand, Plan, ProblemShape, interned};
use crate::recipe::{Names, Recipe};
use crate::tiling::{Order, Tiling};
use crate::units::Bytes;
use crate::view::Access;

/// Tensors that the text names itself.
const OF_TEXT: [&str; 2] = ["I", "T"];

/// Names of the outputs: that of the one there is, or `Y0`, `Y1`, ..
fn output_names(recipe: &ElementwiseApply, one: &'static str) -> Vec<&'static str> {
    let stem = Names::output(&recipe.function, one);
    match recipe.outputs.len() {
        1 => vec![stem],
        several => (0..several.max(MAX_OUTPUTS)).map(|i| interned(format!("{stem}{i}"))).collect(),
    }
}

/// Names of everything that the function names.
fn names_of(recipe: &ElementwiseApply, outputs: &[&'static str]) -> Names {
    Names::new(&outputs[..recipe.outputs.len()], &OF_TEXT, recipe.function.input_names(), &recipe.function)
}

/// How a tensor lies along N, the mode that vectors and neighbouring threads go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    /// Neighbours are neighbours in memory.
    Contiguous,
    /// One element stands for all.
    Broadcast,
    /// Any stride, so one element at a time.
    Strided,
    /// Contiguous along M, turned in shared memory.
    Transposed,
}

impl Class {
    /// Whether a launch gives its stride along N.
    pub(super) fn has_increment(self) -> bool {
        matches!(self, Class::Strided | Class::Transposed)
    }
}

/// One tensor of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: &'static str,
    /// The parameter that holds its address.
    pub(super) param: String,
    pub(super) dtype: DType,
    pub(super) class: Class,
    pub(super) output: bool,
}

/// The decisions.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: ElementwiseApply,
    pub(super) checked: Checked,
    /// Inputs, then outputs.
    pub(super) tensors: Vec<Tensor>,
    /// The parameters that hold the run-time scalars.
    pub(super) scalars: Vec<String>,
    /// The mode of the tensors that is N in the kernel.
    pub(super) n_mode: usize,
    /// The other modes, innermost first: M in the kernel.
    pub(super) m_modes: Vec<usize>,
    pub(super) body: Body,
    /// Which thread moves what.
    pub(super) tiling: Tiling,
    /// The cost of the accesses to shared memory.
    pub(super) shared: Vec<SharedAnalysis>,
    /// Elements of one vector.
    pub(super) vec: i64,
    pub(super) threads: u32,
    pub(super) unroll: i64,
}

/// What only one structure of kernels has.
#[derive(Debug)]
pub(super) enum Body {
    Naive,
    Vectorized {
        /// (tid,UNROLL) to the vector of the CTA.
        cta_vectors: Layout,
    },
    Tv {
        tile: Box<TvTile>,
        val_layout: Layout,
        remapped: bool,
    },
    Transposed {
        /// The tiling with narrower vectors, down to one element.
        narrower: Vec<Tiling>,
        /// Bytes of a block that a thread turns, before and behind.
        held: Bytes,
    },
}

impl Decision {
    /// Modes of M in the kernel, which has one even for tensors of rank 1.
    pub(super) fn m_rank(&self) -> usize {
        self.m_modes.len().max(1)
    }

    /// Bytes that a thread has in registers.
    fn in_flight(&self) -> Bytes {
        let vectors = in_flight(&self.tensors, self.vec, self.unroll);
        match self.body {
            Body::Transposed { held, .. } => vectors.max(held),
            _ => vectors,
        }
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|t| !t.output)
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|t| t.output)
    }
}

/// The plan of `asked`, which is `recipe` or a name for it whose output is called `output`.
pub(in crate::generate::recipe) fn plan_as<R: Recipe>(
    recipe: &ElementwiseApply,
    asked: &R,
    output: &'static str,
    name: &str,
    targets: &Targets,
) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{asked:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let decision = decide(recipe, output, &mut checks);
    let registers = decision.as_ref().and_then(|d| checks::registers(&mut checks, d.in_flight(), d.threads, 1, FEWER));
    let warnings = checks.take_warnings();
    let (decision, registers) = checks.finish(decision.zip(registers))?;
    let (smem, shared) = (decision.tiling.smem_bytes().unwrap_or(Bytes(u64::MAX)), decision.shared.clone());
    let specs = recipe.inputs.iter().chain(&recipe.outputs);
    let operands = decision.tensors.iter().zip(specs).map(|(tensor, spec)| Operand {
        // Each thread reads its elements of all inputs before it writes the same coordinates.
        in_place: !tensor.output && tensor.class != Class::Transposed,
        param: tensor.param.clone(),
        ..Operand::new(
            tensor.name,
            tensor.dtype,
            if tensor.output { Access::Write } else { Access::Read },
            &spec.strides,
        )
    });
    let rank = recipe.outputs.first().map_or(0, |spec| spec.strides.len());
    let problem = ProblemShape::of_one_shape(rank, decision.tensors.len());
    let draft = Draft {
        operands: operands.collect(),
        params: launch::params(&decision),
        rule: launch::rule(&decision),
        entries: vec![Entry::new(name, decision.threads, smem).with_registers(registers)],
        scalars: recipe.function.scalars().to_vec(),
        problem: Some(problem),
        ..Draft::of(asked, name, targets)
    };
    let facts = super::facts::facts(&decision, registers);
    // SAFETY: each thread takes coordinates inside, each once; the rule refuses extents at which coordinates overflow.
    let plan = unsafe { draft.of_tensors().plan(decision) };
    Ok(plan.with_facts(facts).with_shared(shared).with_warnings(warnings))
}

fn decide(recipe: &ElementwiseApply, output: &'static str, checks: &mut Checks) -> Option<Decision> {
    let outputs = output_names(recipe, output);
    let compute = compute(recipe, checks);
    let checked = compute.and_then(|compute| checks::traced(checks, &recipe.function, compute));
    let names = names_of(recipe, &outputs);
    let rank = tensors_fit(recipe, &names, &outputs, checks)?;
    let (n_mode, m_modes) = modes(recipe, rank);
    let variant = variant(recipe, n_mode, checks)?;
    let build = |variant: Variant, checks: &mut Checks| {
        let m_modes = match turned_mode(recipe, n_mode).filter(|_| variant == Variant::Transposed) {
            Some(turned) => [turned].into_iter().chain(m_modes.iter().copied().filter(|m| *m != turned)).collect(),
            None => m_modes.clone(),
        };
        let tensors = classify(recipe, &names, &outputs, n_mode, m_modes.first().copied(), variant);
        let vec = vector(recipe, &tensors, variant, checks);
        let (body, tiling, unroll) = structure(recipe, variant, &tensors, vec, checks)?;
        proved(&tiling, checks).then_some(())?;
        let shared = checks.sound("accesses that are proved can be counted", tiling.shared())?;
        Some(((tensors, m_modes), vec?, body, (tiling, shared), unroll))
    };
    let built = match (recipe.variant, variant) {
        // Where no tile can be turned, the inputs are read as they lie.
        (Variant::Auto, Variant::Transposed) => {
            checks.attempt(|checks| build(variant, checks)).or_else(|| build(Variant::Vectorized, checks))
        }
        _ => build(variant, checks),
    };
    let (checked, ((tensors, m_modes), vec, body, (tiling, shared), unroll)) = (checked?, built?);
    let recipe = recipe.clone();
    let threads = tiling.threads();
    Some(Decision {
        recipe,
        checked,
        tensors,
        scalars: names.scalars,
        n_mode,
        m_modes,
        body,
        tiling,
        shared,
        vec,
        threads,
        unroll,
    })
}

/// Whether each element is moved once, by the thread that computes with it, in vectors that are whole and aligned.
fn proved(tiling: &Tiling, checks: &mut Checks) -> bool {
    let help = "values contiguous along N, such as val=(16,16):(16,1), or a smaller vector";
    checks::proofs(checks, tiling, help)
}

/// Elements of a vector: as many of the widest type that is moved in vectors as 16 bytes hold.
fn vector(recipe: &ElementwiseApply, tensors: &[Tensor], variant: Variant, checks: &mut Checks) -> Option<i64> {
    let moved = |t: &&Tensor| matches!(t.class, Class::Contiguous | Class::Transposed);
    let widest = tensors.iter().filter(moved).map(|t| t.dtype).max_by_key(|d| d.bytes());
    let scattered = tensors.iter().any(|t| t.output && t.class != Class::Contiguous);
    let (Some(widest), false, false) = (widest, scattered, variant == Variant::Naive) else { return Some(1) };
    let bytes = if recipe.vector.0 == 0 { Arch::MAX_VECTOR } else { recipe.vector };
    checks::vector_width(checks, bytes, widest)
}

/// Default for the bytes of input vectors that a thread of a tile has in flight, from measurements on an H200.
const IN_FLIGHT: i64 = 128;

/// Default for the vectors of each tensor that a thread has in flight without tiles. On an H200 one vector was the
/// fastest with two inputs from memory. Two were the fastest with one input from memory, because broadcast inputs stay
/// in the caches, or with vectors of 16 elements.
fn side_by_side(recipe: &ElementwiseApply, vec: i64) -> i64 {
    let from_memory = recipe.inputs.iter().filter(|input| !input.strides.contains(&ModeStride::Broadcast)).count();
    if from_memory < 2 || vec == 16 { 2 } else { 1 }
}

fn structure(
    recipe: &ElementwiseApply,
    variant: Variant,
    tensors: &[Tensor],
    vec: Option<i64>,
    checks: &mut Checks,
) -> Option<(Body, Tiling, i64)> {
    if matches!(variant, Variant::Tv | Variant::Remapped) {
        return tv(recipe, variant == Variant::Remapped, tensors, vec, checks);
    }
    let threads = if recipe.threads == 0 { 256 } else { recipe.threads };
    let threads = checks::thread_count(checks, threads.into(), "threads=256");
    let (threads, vec) = (threads?, vec?);
    if variant == Variant::Transposed {
        let bytes = if recipe.vector.0 == 0 { Arch::MAX_VECTOR } else { recipe.vector };
        let turned = turn::tiling(tensors, [vec, recipe.unroll.into()], bytes, threads, checks)?;
        turned.narrower.iter().all(|narrow| proved(narrow, checks)).then_some(())?;
        let body = Body::Transposed { narrower: turned.narrower, held: turned.held };
        return Some((body, turned.tiling, turned.unroll));
    }
    // Threads side by side along N, a vector each.
    let side_by_side_of = |vec: i64, unroll: i64, checks: &mut Checks| {
        let threads = i64::from(threads);
        let walk = checks.sound("threads side by side are a layout", Walk::along(1, [1, threads], vec))?;
        // Vectors of all rows are numbered, row by row.
        let order = Order::numbered(&[("vectors", threads * unroll)], None);
        Some(tilings::direct(tensors, [1, threads * vec * unroll], vec, &walk, order))
    };
    if variant == Variant::Naive {
        return Some((Body::Naive, side_by_side_of(1, 1, checks)?, 1));
    }
    let unroll = match i64::from(recipe.unroll) {
        0 => {
            let unroll = side_by_side(recipe, vec);
            let (registers, most) = checks::register_need(in_flight(tensors, vec, unroll), threads);
            if registers <= most { unroll } else { 1 }
        }
        set => set,
    };
    let values = in_flight(tensors, vec, unroll);
    checks::registers(checks, values, threads, 1, FEWER)?;
    let tiling = side_by_side_of(vec, unroll, checks)?;
    let cta_vectors = checks.sound("threads and vectors are a layout", tilings::vectors(&tiling, vec))?;
    Some((Body::Vectorized { cta_vectors }, tiling, unroll))
}

/// What takes fewer registers.
const FEWER: &str = "a smaller unroll, or fewer threads";

/// Bytes of this many vectors of every tensor.
pub(super) fn in_flight(tensors: &[Tensor], vec: i64, unroll: i64) -> Bytes {
    Bytes(tensors.iter().map(|t| t.dtype.bytes().0).sum::<u64>() * (vec * unroll) as u64)
}

/// Bytes of one vector of each input.
fn loaded(tensors: &[Tensor], vec: i64) -> i64 {
    tensors.iter().filter(|t| !t.output).map(|t| t.dtype.bytes().0 as i64 * vec).sum::<i64>().max(1)
}

fn tv(
    recipe: &ElementwiseApply,
    remapped: bool,
    tensors: &[Tensor],
    vec: Option<i64>,
    checks: &mut Checks,
) -> Option<(Body, Tiling, i64)> {
    let help = "a compact layout, such as thr=(4,64):(64,1)";
    let threads = checks::numbers_once(checks, Code::ThreadLayout, "thr", &recipe.thr_layout, help)
        .and_then(|threads| checks::thread_count(checks, threads, "thr=(4,64):(64,1) has 256 threads"));
    let help = "a compact layout, such as val=(16,16):(16,1)";
    let bytes = &recipe.val_layout_bytes;
    let widest = tensors.iter().map(|t| t.dtype).max_by_key(|d| d.bytes())?;
    let val_layout = checks::numbers_once(checks, Code::ValueLayout, "val", bytes, help).and_then(|_| {
        let recast = recast_layout(bytes, 8, i64::from(widest.bits()));
        recast.map_err(|e| tile_type(bytes, widest, checks, &e)).ok()
    });
    let (threads, val_layout, vec) = (threads?, val_layout?, vec?);
    let vectors = val_layout.size() / vec.max(1);
    let loaded = loaded(tensors, vec);
    let room = |unroll, threads| {
        let (registers, most) = checks::register_need(in_flight(tensors, vec, unroll), threads);
        registers <= most
    };
    let unroll = match recipe.unroll {
        0 => {
            let split = |u: i64| checks::can_unroll(&recipe.thr_layout, &val_layout, vec, u);
            let fits = |u: &i64| vectors % u == 0 && u * loaded <= IN_FLIGHT && room(*u, threads) && split(*u);
            (1..=vectors).rev().find(fits).unwrap_or(1) as u32
        }
        set => set,
    };
    let (extents, tv) = checks::tv_layout(checks, &recipe.thr_layout, &val_layout, vec)?;
    let walk = Walk { threads: recipe.thr_layout.clone(), values: val_layout.clone() };
    let modes = [("m", extents[0]), ("n", extents[1])];
    let order = Order::numbered(&if remapped { [modes[1], modes[0]] } else { modes }, None);
    let tiling = tilings::direct(tensors, extents, vec, &walk, order);
    proved(&tiling, checks).then_some(())?;
    let tile = checks::tv_tile(checks, &tv, &val_layout, vec, unroll)?;
    let unroll = tile.values[1];
    Some((Body::Tv { tile: Box::new(tile), val_layout, remapped }, tiling, unroll))
}

/// The bytes of a value layout are not whole elements.
fn tile_type(bytes: &Layout, dtype: DType, checks: &mut Checks, error: &LayoutError) {
    let size = dtype.bytes();
    checks.push(
        Code::TileType,
        format!("val = {bytes} bytes, {dtype} = {size}; {}", error.what_was_found()),
        format!("contiguous bytes in multiples of {size}: {}", error.what_is_required()),
        error.why(),
        "val=(16,16):(16,1) holds whole elements of every type".into(),
    );
}
