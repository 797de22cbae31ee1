//! Checks, tilings, and the plan.

use super::launch::{self, VECTOR};
use super::{Append, reference};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::layout::LayoutError;
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, Fact, KernelPlan, ParamStruct, Plan, Reference};
use crate::reference::Each;
use crate::tiling::{CopyOp, Engine, Global, Guard, Order, Place, TileCopy, Tiling, flat};
use crate::units::Bytes;

/// Threads of a CTA.
const THREADS: i64 = 128;
/// The longest rows.
const LONGEST: u32 = 256;

#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Append,
    /// Of the rotated elements of keys and queries, of their other ones, and of values.
    pub(super) tilings: Vec<Tiling>,
    /// Rows of a CTA, of keys and of values.
    pub(super) rows: [i64; 2],
    reference: Each,
}

/// Lanes that share a row of so many vectors: each has as many. One lane has none of none.
fn lanes(vectors: i64) -> i64 {
    if vectors == 0 { 1 } else { 1 << vectors.trailing_zeros() }
}

/// Rows from their tensor to registers, and from there to their place: a vector of each thread at a time. Tensors have so many modes
/// beside rows and elements.
fn moved(
    [load, store]: [&'static str; 2],
    [from, to]: [(&'static str, usize); 2],
    [rows, elements]: [i64; 2],
    lanes: i64,
    [dtype, kept]: [DType; 2],
) -> Result<Tiling, LayoutError> {
    let row = |number, apart, along| flat([(number, apart), (along, 1)]);
    // Rows of the tile are those of all heads of all new keys; each of its elements has one thread.
    let bytes = |dtype: DType| Bytes(VECTOR as u64 * dtype.bytes().0);
    let place = |(tensor, outer), dtype| {
        let (align, multiple) = (bytes(dtype), VECTOR);
        Place::Global(Global { modes: [outer - 1, outer + 1], align, multiple, outer, ..Global::matrix(tensor) })
    };
    let copy = |name, what, dtype, from, to| {
        let (threads, values) = (row((THREADS / lanes).min(rows), lanes, lanes)?, row(1, VECTOR, VECTOR)?);
        let engine = Engine::Threads { op: CopyOp::Universal(bytes(dtype)), threads, values };
        let copy = TileCopy::new([name, what], ([rows, elements], dtype), [from, to], engine);
        Ok::<_, LayoutError>(TileCopy { guard: Guard::Predicate, ..copy })
    };
    let copies = vec![
        copy(load, "load of new rows", dtype, place(from, dtype), Place::Threads)?,
        copy(store, "store of rows", kept, Place::Threads, place(to, kept))?,
    ];
    Ok(Tiling::of_copies([rows, elements], THREADS, copies, Order::numbered(&[("rows", rows)], None)))
}

/// The rotated elements of a key, of which a thread has vectors of both halves; the others; and values.
fn tilings(recipe: &Append) -> Result<(Vec<Tiling>, [i64; 2]), LayoutError> {
    let [head, value, rotary] = [recipe.head, recipe.value(), recipe.rotary()].map(i64::from);
    let (others, own) = (head - rotary, [recipe.dtype; 2]);
    let kept = [recipe.dtype, recipe.dtype_kv()];
    let [of_pairs, of_others, of_values] = [rotary / 2, others, value].map(|elements| lanes(elements / VECTOR));
    let rows = [if rotary > 0 { of_pairs } else { of_others }, of_values].map(|lanes| THREADS / lanes);
    // Sequences one after the other have no batches.
    let (new, in_pages) = (2 - usize::from(recipe.varlen), 2);
    let mut all = Vec::new();
    // Queries are copied as keys are, unless those lose bits.
    let queries = (
        own,
        [("Q", new), ("Rotated", new)],
        ["LoadQueryPairs", "StoreQueryPairs"],
        ["LoadQueryOthers", "StoreQueryOthers"],
    );
    let keys = (kept, [("NewK", new), ("K", in_pages)], ["LoadPairs", "StorePairs"], ["LoadOthers", "StoreOthers"]);
    let of_heads = [keys].into_iter().chain((recipe.queries && recipe.is_narrow()).then_some(queries));
    for (dtypes, tensors, of_pair, of_other) in of_heads {
        if rotary > 0 {
            all.push(moved(of_pair, tensors, [rows[0], rotary], of_pairs, dtypes)?);
        }
        if others > 0 {
            all.push(moved(of_other, tensors, [rows[0], others], of_others, dtypes)?);
        }
    }
    let values = [("NewV", new), ("V", in_pages)];
    all.push(moved(["LoadValues", "StoreValues"], values, [rows[1], value], of_values, kept)?);
    Ok((all, rows))
}

fn decide(recipe: &Append, checks: &mut Checks) -> Option<Decision> {
    let dtype = recipe.dtype;
    let because = "rows are copied in vectors of 8 elements";
    let mut fits = checks::halves(checks, dtype, because);
    let because_kept = "pages hold what is appended, or numbers of 8 bits with a scale for each head";
    fits &= checks::kept(checks, [dtype, recipe.dtype_kv()], because_kept);
    for (key, elements) in [("head", recipe.head), ("value", recipe.value())] {
        fits &= checks::row(checks, key, elements, [8, LONGEST], because);
    }
    let rotary = recipe.rotary();
    let whole = rotary.is_multiple_of(16) && rotary <= recipe.head;
    let (found, required) = (format!("rotary={rotary}"), format!("a multiple of 16, up to {}", recipe.head));
    let because = "a thread rotates whole vectors, one of each half";
    fits &= checks.require(whole, Code::TileSize, found, &required, because, "rotary=16");
    let rotates = !recipe.queries || rotary > 0;
    let because = "queries are written to be rotated";
    fits &=
        checks.require(rotates, Code::Variant, "queries=true rotary=0".into(), "rotary > 0", because, "queries=false");
    let (tilings, rows) = checks.sound("rows and threads are layouts", fits.then(|| tilings(recipe)).transpose())??;
    let mut sound = true;
    for tiling in &tilings {
        sound &= checks::proofs(checks, tiling, "rotary=auto");
    }
    sound.then(|| Decision { recipe: recipe.clone(), tilings, rows, reference: reference::append(recipe) })
}

pub(super) fn plan_as(recipe: &Append, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let decision = decide(recipe, &mut checks);
    let decision = checks.finish(decision)?;
    let (operands, problem) = (launch::operands(recipe), launch::problem(recipe));
    let params = ParamStruct::of(&operands, &problem, &[]);
    let draft = Draft {
        rule: launch::rule(&decision, &params),
        problem: Some(problem),
        entries: vec![Entry::new(name, THREADS as u32, Bytes(0))],
        operands,
        params,
        ..Draft::of(recipe, name, targets)
    };
    let facts = decision.tilings.iter().flat_map(Fact::of_tiling).collect();
    // SAFETY: the proofs show that each element of a row belongs to one thread. The text skips rows past the last, and those whose
    // position or page is none; the position of a cosine is clamped. A row's sequence lies between two starts, of which the rule demands
    // one more than sequences. The rule refuses rows that are not aligned.
    Ok(unsafe { draft.of_tensors().plan(decision) }.with_facts(facts))
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.reference)
    }
}
