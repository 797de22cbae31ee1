//! Copies, shared memory and threads of the rungs with an MMA.

use super::super::decide::Decision;
use super::common::{Common, Tensor, sums};
use super::{PARAMS, Smem, smem, threads_and_values};
use crate::emit::{self, tiler_type};
use crate::layout::Tiler;
use crate::tiling::{CopyOp, Guard};

/// What the rungs with an MMA have besides.
pub(super) struct Tiled {
    pub(super) smem: [Smem; 2],
    pub(super) op_a: &'static str,
    pub(super) op_b: &'static str,
    pub(super) thr_a: String,
    pub(super) thr_b: String,
    pub(super) val_a: String,
    pub(super) val_b: String,
    /// How A and B are copied at their edges.
    pub(super) edges: Vec<Edge>,
    pub(super) half_k: i64,
    pub(super) align_a: &'static str,
    pub(super) align_b: &'static str,
    pub(super) align_d: &'static str,
    pub(super) thr_c: String,
    pub(super) perm_m: String,
    pub(super) perm_n: String,
    pub(super) vec_m: i64,
    pub(super) vec_n: i64,
    pub(super) vector_d: String,
    /// What the threads read and write at the end: of the epilogue, or the workspace.
    pub(super) stores: Vec<Tensor>,
    /// Where a part of a tile that is cut goes instead.
    pub(super) sums: Option<Tensor>,
    /// Whether the epilogue is applied here.
    pub(super) op: bool,
    pub(super) target: &'static str,
    pub(super) value: String,
    pub(super) stages: i64,
    pub(super) warp_sync: bool,
}

/// The copy of a tile at the edges of its matrix: as inside, but with zeros where it is outside.
pub(super) struct Edge {
    pub(super) matrix: &'static str,
    pub(super) param: &'static str,
    pub(super) op: &'static str,
    pub(super) thr: String,
    pub(super) val: String,
    /// Elements of a copy, which have to lie inside, or outside, together.
    pub(super) vec: i64,
    /// Threads that copy single elements where they do not.
    pub(super) thr_single: String,
}

impl Edge {
    /// The copy of single elements, which is that of the edges where those are single.
    pub(super) fn single(&self) -> String {
        format!("{}{}", if self.vec > 1 { "Single" } else { "Inside" }, self.matrix)
    }
}

/// The edges of A (0) or B (1); `None` where no copy fills with zeros.
fn edge(decision: &Decision, factor: usize) -> Option<Edge> {
    let copy = decision.copy(factor);
    let [thr, val] = threads_and_values(copy).map(emit::layout_type);
    let thr_single = match &copy.guard {
        Guard::Elements(Some(threads)) => emit::layout_type(threads),
        _ => thr.clone(),
    };
    let (matrix, op) = (["A", "B"][factor], copy.op()?.zero_filling()?);
    Some(Edge { matrix, param: PARAMS[factor], op, thr, val, vec: decision.vector(factor), thr_single })
}

impl Tiled {
    pub(super) fn reads(&self) -> &[Tensor] {
        &self.stores[..self.stores.len() - 1]
    }

    /// Whether a copy moves several elements.
    pub(super) fn vectors(&self) -> bool {
        self.edges.iter().any(|edge| edge.vec > 1)
    }

    /// What dynamic shared memory is aligned to: as much as any tile in it.
    pub(super) fn alignment(&self) -> u64 {
        self.smem.iter().map(|smem| smem.alignment).max().unwrap_or(1)
    }

    /// Whether none of them lies across the end of a row or a column.
    pub(super) fn none_across(&self) -> String {
        let one = |e: &Edge| format!("params.aligned_{} && size<0>(m{}) % {} == 0", e.param, e.matrix, e.vec);
        let all: Vec<String> = self.edges.iter().filter(|e| e.vec > 1).map(one).collect();
        all.join(" && ")
    }

    pub(super) fn any_read(&self) -> bool {
        self.stores.len() > 1
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }
}

pub(super) fn tiled(decision: &Decision, c: &Common<'_>) -> Tiled {
    let (tiling, [vec_m, vec_n]) = (&decision.tiling, decision.recipe.vectors());
    let split = decision.split() > 1;
    let stores = if split { c.tensors[2..].to_vec() } else { c.epilogue.clone() };
    let arguments = c.arguments_by(|t| t.convert.replace('@', &format!("tDr{}(i, n)", t.read_name)));
    let accumulator = "tDrC(at(n))(i)";
    let mma = &tiling.mmas[0];
    let perm = |mode: usize| match &mma.permutation {
        Some(Tiler::Tuple(by_mode)) => tiler_type(&by_mode[mode]),
        other => unreachable!("each mode has a permutation: {other:?}"),
    };
    let [[thr_a, val_a], [thr_b, val_b]] =
        [0, 1].map(|factor| threads_and_values(decision.copy(factor)).map(emit::layout_type));
    let align = |factor: usize, text: &'static str| if decision.vector(factor) > 1 { text } else { "" };
    Tiled {
        smem: [0, 1].map(|factor| smem(decision, factor, &tiling.smem[factor], tiling.smem[factor].modes)),
        op_a: decision.copy(0).op().map_or("", CopyOp::name),
        op_b: decision.copy(1).op().map_or("", CopyOp::name),
        thr_a,
        thr_b,
        val_a,
        val_b,
        edges: [0, 1].into_iter().filter_map(|factor| edge(decision, factor)).collect(),
        half_k: tiling.tile[2] / 2,
        align_a: align(0, "params.aligned_a && "),
        align_b: align(1, "params.aligned_b && "),
        align_d: align(2, "params.aligned_d && "),
        thr_c: emit::layout_type(&mma.atoms),
        perm_m: perm(0),
        perm_n: perm(1),
        vec_m,
        vec_n,
        vector_d: format!("uint{}_t", 32 * vec_n),
        stores,
        sums: (decision.recipe.wave > 0).then(|| sums(decision, "(_,_,rest)", "(BM,BN)")),
        op: !split,
        target: if split { "W" } else { "D" },
        value: if split { accumulator.to_owned() } else { format!("op({accumulator}{arguments})") },
        stages: tiling.stages(),
        warp_sync: decision.recipe.warp_sync,
    }
}
