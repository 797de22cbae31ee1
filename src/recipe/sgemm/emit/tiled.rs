//! Copies, shared memory and threads of the rungs with an MMA.

use super::super::Variant;
use super::super::copy::{self, Tile};
use super::super::decide::{Decision, Lanes, zigzag};
use super::common::{Common, Tensor, sums};
use super::{Smem, layout_text, smem, threads_of};

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
    pub(super) edges: [Edge; 2],
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

fn edge(tile: &Tile) -> Edge {
    let (thr, val) = copy_layouts(tile);
    let op = match tile.vec {
        4 => "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>",
        2 => "SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint64_t>",
        _ => "SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint32_t>",
    };
    Edge { matrix: tile.name, param: tile.param(), op, thr, val, vec: tile.vec, thr_single: single(tile) }
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

/// Threads and values of a copy of a tile `(BX,BK)`.
pub(super) fn copy_layouts(tile: &Tile) -> (String, String) {
    let vec = tile.vec;
    let values = if tile.global_k { format!("(1,{vec}):({vec},1)") } else { format!("({vec},1):(1,{vec})") };
    (threads_of(tile.lanes, tile.global_k), layout_text(&values))
}

pub(super) fn copy_op(decision: &Decision, tile: &Tile) -> &'static str {
    match (decision.recipe.variant, tile.vec) {
        (Variant::Pipelined, 4) => "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
        (Variant::Pipelined, 2) => "SM80_CP_ASYNC_CACHEALWAYS<uint64_t>",
        (Variant::Pipelined, _) => "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>",
        (_, 4) => "UniversalCopy<uint128_t>",
        (_, 2) => "UniversalCopy<uint64_t>",
        _ => "UniversalCopy<uint32_t>",
    }
}

/// Threads that copy single elements.
fn single(tile: &Tile) -> String {
    let threads = tile.lanes[0] * tile.lanes[1];
    let (contiguous, other) = if tile.global_k { (tile.k, tile.x) } else { (tile.x, tile.k) };
    let lanes = copy::lanes(contiguous, other, 1, threads, threads).unwrap_or(tile.lanes);
    threads_of(lanes, tile.global_k)
}

pub(super) fn thr_c(decision: &Decision) -> String {
    let [m, n] = decision.thr;
    if decision.recipe.variant == Variant::Vectorized {
        return layout_text(&format!("({m},{n},1):({n},1,0)"));
    }
    let [lanes_m, lanes_n] = decision.recipe.warp.0.map(i64::from);
    let (warps_m, warps_n) = (m / lanes_m, n / lanes_n);
    let (along_m, along_n) = zigzag([lanes_m, lanes_n]);
    let mode = |lanes: [Lanes; 2], warps: i64, stride: i64| {
        let [low, high] = lanes;
        (format!("({},{},{warps})", low.count, high.count), format!("({},{},{stride})", low.stride, high.stride))
    };
    let ((shape_m, stride_m), (shape_n, stride_n)) = (mode(along_m, warps_m, 32), mode(along_n, warps_n, 32 * warps_m));
    layout_text(&format!("({shape_m},{shape_n},1):({stride_m},{stride_n},0)"))
}

pub(super) fn tiled(decision: &Decision, c: &Common<'_>, [a, b]: &[Tile; 2]) -> Tiled {
    let stages = (decision.recipe.variant == Variant::Pipelined).then(|| decision.stages());
    let ((thr_a, val_a), (thr_b, val_b)) = (copy_layouts(a), copy_layouts(b));
    let [vec_m, vec_n] = decision.vectors();
    let [thr_m, thr_n] = decision.thr;
    let split = decision.split() > 1;
    let modes = |x: &'static str, staged: &'static str| if stages.is_some() { staged } else { x };
    let stores = if split { c.tensors[2..].to_vec() } else { c.epilogue.clone() };
    let arguments = c.arguments_by(|t| t.convert.replace('@', &format!("tDr{}(i, n)", t.read_name)));
    let accumulator = "tDrC(at(n))(i)";
    Tiled {
        smem: [
            smem(a, modes("(BM,BK)", "(BM,BK,STAGES)"), stages, false),
            smem(b, modes("(BN,BK)", "(BN,BK,STAGES)"), stages, false),
        ],
        op_a: copy_op(decision, a),
        op_b: copy_op(decision, b),
        thr_a,
        thr_b,
        val_a,
        val_b,
        edges: [edge(a), edge(b)],
        half_k: a.k / 2,
        align_a: if a.vec > 1 { "params.aligned_a && " } else { "" },
        align_b: if b.vec > 1 { "params.aligned_b && " } else { "" },
        align_d: if vec_n > 1 { "params.aligned_d && " } else { "" },
        thr_c: thr_c(decision),
        perm_m: layout_text(&format!("({thr_m},{vec_m}):({vec_m},1)")),
        perm_n: layout_text(&format!("({thr_n},{vec_n}):({vec_n},1)")),
        vec_m,
        vec_n,
        vector_d: format!("uint{}_t", 32 * vec_n),
        stores,
        sums: (decision.recipe.wave > 0).then(|| sums(decision, "(_,_,rest)", "(BM,BN)")),
        op: !split,
        target: if split { "W" } else { "D" },
        value: if split { accumulator.to_owned() } else { format!("op({accumulator}{arguments})") },
        stages: stages.unwrap_or(1),
        warp_sync: decision.recipe.warp_sync,
    }
}
