//! The facts that a plan prints.

use super::decide::{Body, Class, Decision};
use super::predict;
use crate::model::Prediction;
#[cfg(feature = "emit")]
use crate::plan::Plan;
use crate::plan::{Fact, KernelPlan, Reference};
use crate::units::Bytes;
use crate::view::ViewRef;

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.checked)
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        predict::predict(self, views)
    }
}

/// The facts that the plan prints.
pub(super) fn facts(decision: &Decision, registers: u64) -> Vec<Fact> {
    let Decision { vec, threads, unroll, .. } = decision;
    let mut facts = vec![
        Fact::new("function", decision.recipe.function.to_string(), "of one element of each input"),
        Fact::new(
            "compute",
            decision.checked.compute().to_string(),
            "the type it is evaluated in; stores convert as Rust's `as`",
        ),
    ];
    let structure = match &decision.body {
        Body::Naive => "naive: one thread for one element",
        Body::Vectorized { .. } => "vectorized: a thread takes whole vectors, the threads of a block side by side",
        Body::Tv { remapped: false, .. } => "tv: a thread-value layout on tiles, blocks down the columns",
        Body::Tv { remapped: true, .. } => "remapped: a thread-value layout on tiles, blocks along the rows",
        Body::Transposed { .. } => "transposed: blocks turned in registers, tiles in shared memory",
    };
    let why =
        if decision.recipe.variant == super::Variant::Auto { "chosen from the strides" } else { "from the recipe" };
    facts.push(Fact::new("variant", structure, why));
    let m: Vec<String> = decision.m_modes.iter().map(ToString::to_string).collect();
    facts.push(Fact::new(
        "modes",
        format!("N = mode {}, M = ({}), innermost first", decision.n_mode, m.join(",")),
        "N is where the outputs are contiguous; modes are merged at launch where all strides allow it",
    ));
    for t in &decision.tensors {
        let bytes = Bytes(t.dtype.bytes().0 * *vec as u64);
        let (how, why) = match t.class {
            Class::Contiguous => (format!("{vec} elements, {bytes} at once"), "contiguous along N"),
            Class::Transposed => {
                let [vec, rows] = super::turn::block(&decision.tiling, t.name);
                let bytes = Bytes(t.dtype.bytes().0 * vec as u64);
                (
                    format!("{vec} elements, {bytes} at once, {rows} rows turned"),
                    "contiguous along M, turned in registers",
                )
            }
            Class::Broadcast => ("1 element for all of N".to_owned(), "broadcast along N"),
            Class::Strided => ("1 element at a time".to_owned(), "any stride along N: neighbours lie in other sectors"),
        };
        facts.push(Fact::new(t.name, how, why));
    }
    if let Body::Tv { tile, .. } = &decision.body {
        let [m, n, _] = decision.tiling.tile;
        facts.push(Fact::new("tiler", format!("({m},{n})"), "make_layout_tv: thread extents times value extents"));
        facts.push(Fact::new("TV layout", tile.tv.to_string(), "(tid,vid) -> (TileM,TileN), make_layout_tv"));
        facts.push(Fact::new("fragment", tile.frag.to_string(), "(tid,VEC,UNROLL,STEP) -> (TileM,TileN)"));
        facts.push(Fact::new(
            "coverage",
            "each element of the tile once",
            "each is moved once, whole vectors at aligned columns",
        ));
    }
    if let Body::Transposed { .. } = &decision.body {
        let [m, n, _] = decision.tiling.tile;
        facts.push(Fact::new("tile", format!("({m},{n})"), "turned by one block"));
        let why = "where addresses, strides or extents are no multiples of wider vectors";
        facts.push(Fact::new("narrower", format!("vectors of {} elements down to 1", (vec / 2).max(1)), why));
    }
    facts.push(Fact::new("unroll", format!("{unroll} vectors a thread"), "of each tensor, in flight at once"));
    facts.push(Fact::new("registers", format!("about {registers}"), "values and addresses; ptxas tells exactly"));
    let per_block = i64::from(*threads) * unroll;
    let grid = match &decision.body {
        Body::Naive => format!("ceil_div(M*N,{threads})"),
        Body::Vectorized { .. } => format!("ceil_div(M*ceil_div(N,{vec}),{per_block})"),
        Body::Tv { .. } => {
            let [m, n, _] = decision.tiling.tile;
            format!("ceil_div(M,{m}) * ceil_div(N,{n})")
        }
        Body::Transposed { .. } => {
            let [m, n, _] = decision.tiling.tile;
            let batches = if decision.m_modes.len() > 1 { " * batches" } else { "" };
            format!("ceil_div(M,{m}) * ceil_div(N,{n}){batches}")
        }
    };
    facts.push(Fact::new("grid", grid, "one dimension"));
    facts
}
