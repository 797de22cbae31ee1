//! Checks, threads, the tiling, and the rule that picks the entry.

use super::{MOST, TopK, reference};
use crate::arch::{Arch, Targets};
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::layout::LayoutError;
use crate::model::banks::WARP;
use crate::plan::checks::{self, Checks};
use crate::plan::{
    Draft, Entry, Fact, Int, IntOp, KernelPlan, ModeStride, Operand, ParamStruct, Plan, ProblemShape, Reach, Reference,
    Rule,
};
use crate::reference::Each;
use crate::tiling::{Completion, CopyOp, Engine, Global, Guard, Order, Place, TileCopy, Tiling, flat};
use crate::units::Bytes;
use crate::view::Access;

/// The entry for rows that are no aligned vectors.
pub(super) const ELEMENTS: &str = "elements";
/// Elements of a row that the threads have at a time, where they choose.
const AT_ONCE: u32 = 4096;
/// Elements of a thread, at most: they are in registers until the candidates among them are known.
const HELD: u32 = 64;

#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: TopK,
    pub(super) threads: u32,
    /// Elements of a vector.
    pub(super) vec: u32,
    /// Columns of a row that the threads have at a time.
    pub(super) columns: i64,
    /// Whole vectors, then single elements.
    pub(super) tilings: [Tiling; 2],
    reference: Each,
}

/// Threads of a row and vectors of a thread.
fn schedule(recipe: &TopK, vec: u32, checks: &mut Checks) -> Option<(u32, u32)> {
    let k = recipe.k;
    let because = "each thread writes one result, and a launch has as many columns of results";
    let holds = checks.require(
        (1..=MOST).contains(&k),
        Code::TileSize,
        format!("k={k}"),
        &format!("1 to {MOST}"),
        because,
        "k=64; sort rows of which you need more",
    );
    let threads = recipe.threads.unwrap_or(if k <= MOST / 2 { 128 } else { 256 });
    let whole = threads.is_multiple_of(WARP as u32) && (k..=Arch::MAX_THREADS as u32).contains(&threads);
    let found = format!("threads={threads}, k={k}");
    let required = format!("a multiple of {WARP} from {k} to {}", Arch::MAX_THREADS);
    let because = "warps are whole, and each thread writes one result";
    let whole = !holds || checks.require(whole, Code::ThreadCount, found, &required, because, "threads=auto");
    let chunks = recipe.chunks.unwrap_or((AT_ONCE / threads.max(1) / vec).clamp(1, HELD / vec));
    let (found, required) = (format!("chunks={chunks}"), format!("1 to {}", HELD / vec));
    let because = "a thread has its elements in registers";
    let fits = (1..=HELD / vec).contains(&chunks);
    let fits = checks.require(fits, Code::Registers, found, &required, because, "chunks=auto");
    (holds && whole && fits).then_some((threads, chunks))
}

/// A row's CTA, which runs over its columns.
fn tiling(dtype: DType, threads: u32, vec: u32, columns: i64) -> Result<Tiling, LayoutError> {
    let row = |extent: u32| flat([(1, 1), (extent.into(), 1)]);
    let moved = Bytes(dtype.bytes().0 * u64::from(vec));
    let load = TileCopy {
        name: "LoadX",
        what: "load of a row",
        tile: [1, columns],
        dtype,
        from: Place::Global(Global { align: moved, ..Global::matrix("X") }),
        to: Place::Threads,
        engine: Engine::Threads { op: CopyOp::Universal(moved), threads: row(threads)?, values: row(vec)? },
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    Ok(Tiling::of_copies([1, columns], threads.into(), vec![load], Order::numbered(&[("m", 1)], Some(("n", columns)))))
}

fn decide(recipe: &TopK, checks: &mut Checks) -> Option<Decision> {
    let dtype = recipe.dtype;
    let known = matches!(dtype, DType::F16 | DType::Bf16 | DType::F32);
    let because = "elements are compared by the order of their bits as f32";
    let found = format!("dtype={dtype}");
    let known = checks.require(known, Code::TileType, found, "f16, bf16 or f32", because, "dtype=bf16");
    let vec = (Arch::MAX_VECTOR.0 / dtype.bytes().0.max(1)) as u32;
    let (threads, chunks) = schedule(recipe, vec, checks)?;
    let columns = i64::from(threads * vec * chunks);
    let mut proved = |vec| {
        let tiling = checks.sound("threads of a row are a layout", tiling(dtype, threads, vec, columns))?;
        checks::proofs(checks, &tiling, "threads=auto chunks=auto").then_some(tiling)
    };
    let tilings = [proved(vec)?, proved(1)?];
    let reference = reference::top_k();
    known.then(|| Decision { recipe: recipe.clone(), threads, vec, columns, tilings, reference })
}

/// Whole vectors where all rows are aligned and end with one, else single elements: one grid of the two is empty.
fn rule(of: &Decision, params: &ParamStruct) -> Rule {
    let (k, most) = (i64::from(of.recipe.k), i64::from(i32::MAX) - of.columns);
    let reach = Reach {
        required: format!("{k} to {most} columns, and at most {} rows", i32::MAX),
        because: "a row has k results, and coordinates are 32-bit integers".into(),
        help: "generate the kernel with a smaller `k` for narrower rows; launch on parts of longer matrices".into(),
    };
    let mut rule = Rule::new(params, reach);
    let [m, n, x, stride] = ["m", "n", "x", "x_stride0"].map(|name| rule.param(name));
    // Without rows there is nothing to choose.
    let wide = m.clone().at_most(0).op(IntOp::Or, Int::from(k - 1).less(n.clone()));
    rule.steps.require(wide, "a row has at least k columns");
    rule.steps.require(n.clone().at_most(most), "coordinates are 32-bit integers");
    let vec = i64::from(of.vec);
    // The stride of a single row is never used.
    let aligned = m.clone().at_most(1).op(IntOp::Or, stride.divides_by(vec));
    let whole = Int::all(vec![n.divides_by(vec), x.divides_by(Arch::MAX_VECTOR.0 as i64), aligned]);
    let whole = rule.steps.set("whole", whole);
    let some = || Int::from(0).less(m.clone());
    let blocks = || [m.clone(), 1.into(), 1.into()];
    rule.grid(some().and(whole.clone()), blocks());
    rule.grid(some().and(whole.is(0)), blocks());
    rule
}

pub(super) fn plan_as(recipe: &TopK, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let decision = decide(recipe, &mut checks);
    let decision = checks.finish(decision)?;
    let (rows, k) = ([ModeStride::Dynamic, ModeStride::Unit], recipe.k);
    let operands = vec![
        Operand::new("X", recipe.dtype, Access::Read, &rows),
        Operand::new("Values", recipe.dtype, Access::Write, &rows),
        Operand::new("Indices", DType::I32, Access::Write, &rows),
    ];
    let shape = ProblemShape::new(["M", "N"], vec![vec![0, 1]; 3])
        .with_constant(1, 1, k.into())
        .with_constant(2, 1, k.into())
        .with_example(&[67, i64::from(k) + 447]);
    let params = ParamStruct::of(&operands, &shape, &[]);
    // Two columns and two candidates of each thread, the bound of each warp, the limit, and how many candidates there are.
    let threads = u64::from(decision.threads);
    let smem = Bytes((threads * 2 * (4 + 8) + threads / WARP as u64 * 4 + 2 * 4).next_multiple_of(8));
    // Without it nvcc keeps a second CTA in mind and spills four bytes on sm_80.
    let entry = |name: &str| Entry { min_blocks: Some(1), ..Entry::new(name, decision.threads, smem) };
    let draft = Draft {
        rule: rule(&decision, &params),
        problem: Some(shape),
        entries: vec![entry(name), entry(&format!("{name}_{ELEMENTS}"))],
        operands,
        params,
        ..Draft::of(recipe, name, targets)
    };
    let mut facts = Fact::of_tiling(&decision.tilings[0]);
    facts.push(Fact::new("candidates", 2 * decision.threads, "of a row at a time; more are ranked in several turns"));
    // SAFETY: the proofs show that each element of a row belongs to one thread. The text skips columns past the end, and writes k
    // results of each row. The rule refuses rows of fewer columns, and launches vectors only where all are aligned and whole.
    Ok(unsafe { draft.of_tensors().plan(decision) }.with_facts(facts))
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn spills_denied(&self) -> bool {
        true
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.reference)
    }
}
