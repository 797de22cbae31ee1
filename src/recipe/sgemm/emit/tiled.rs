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
    /// How A and B come into shared memory.
    pub(super) fills: [Fill; 2],
    pub(super) half_k: i64,
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

/// The copy of a tile.
pub(super) struct Fill {
    pub(super) matrix: &'static str,
    pub(super) param: &'static str,
    /// `m` or `n`.
    pub(super) rows: &'static str,
    pub(super) op: &'static str,
    /// The instruction at the edges of the matrix, which writes zeros for what is outside; empty where there is none.
    pub(super) zeros: &'static str,
    pub(super) thr: String,
    pub(super) val: String,
    /// Elements of a copy, which have to lie inside, or outside, together.
    pub(super) vec: i64,
    /// Threads that copy single elements where they do not.
    pub(super) thr_single: String,
}

impl Fill {
    /// The copy of single elements, which is that of the edges where those are single.
    pub(super) fn single(&self) -> String {
        format!("{}{}", if self.vec > 1 { "Single" } else { "Inside" }, self.matrix)
    }

    /// The condition that vectors are aligned, where there are any.
    pub(super) fn aligned(&self) -> String {
        if self.vec > 1 { format!("params.aligned_{} && ", self.param) } else { String::new() }
    }
}

/// The copy of the tile of A (0) or B (1).
fn fill(decision: &Decision, factor: usize) -> Fill {
    let copy = decision.copy(factor);
    let [thr, val] = threads_and_values(copy).map(emit::layout_type);
    Fill {
        matrix: ["A", "B"][factor],
        param: PARAMS[factor],
        rows: ["m", "n"][factor],
        op: copy.op().map_or("", CopyOp::name),
        zeros: copy.op().and_then(CopyOp::zero_filling).unwrap_or_default(),
        val,
        vec: decision.vector(factor),
        thr_single: match &copy.guard {
            Guard::Elements(Some(threads)) => emit::layout_type(threads),
            _ => thr.clone(),
        },
        thr,
    }
}

impl Tiled {
    pub(super) fn reads(&self) -> &[Tensor] {
        &self.stores[..self.stores.len() - 1]
    }

    /// Whether a copy moves several elements.
    pub(super) fn vectors(&self) -> bool {
        self.fills.iter().any(|fill| fill.vec > 1)
    }

    /// What dynamic shared memory is aligned to: as much as any tile in it.
    pub(super) fn alignment(&self) -> u64 {
        self.smem.iter().map(|smem| smem.alignment).max().unwrap_or(1)
    }

    /// Whether none of them lies across the end of a row or a column.
    pub(super) fn none_across(&self) -> String {
        let one = |e: &Fill| format!("params.aligned_{} && size<0>(m{}) % {} == 0", e.param, e.matrix, e.vec);
        let all: Vec<String> = self.fills.iter().filter(|e| e.vec > 1).map(one).collect();
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
    Tiled {
        smem: [0, 1].map(|factor| smem(decision, factor, &tiling.smem[factor], tiling.smem[factor].modes)),
        fills: [0, 1].map(|factor| fill(decision, factor)),
        half_k: tiling.tile[2] / 2,
        align_d: if vec_n > 1 { "params.aligned_d && " } else { "" },
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
