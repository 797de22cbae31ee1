//! The tilings: Q once, K and V in rings of their own, scores that become weights where they lie, and O in Q's memory.

mod combine;
mod narrow;
mod sm90a;

pub(super) use combine::{WARPS, combine};
pub(super) use sm90a::sm90a;

use super::{Attention, Isa, Mask, Own};
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Tiler};
use crate::plan::{Int, IntOp};
use crate::tiling::{
    Axis, Completion, CopyOp, Engine, Factor, Global, Guard, Inner, Lives, Order, Pipeline, Place, Proxy, ReduceOp,
    Reduced, Role, Scope, SmemTensor, Takes, Task, TileCopy, TileMma, TileReduce, Tiling, flat,
};
use crate::units::Bytes;

/// Rows of Q, K, V and O begin at multiples of this.
pub(super) const ALIGN: Bytes = Bytes(16);

/// Elements of 16 bits that a thread copies at once.
pub(super) const VECTOR: i64 = 8;

/// Keys of a k-step, and elements of a row that are multiplied at once.
const ATOM: i64 = 16;

impl Attention {
    /// Static shared memory for where rows of K and V lie: 64 bits for each key of two steps.
    pub(super) fn offsets(&self, own: &Own) -> Bytes {
        Bytes(if self.splits(own.isa) { 2 * 2 * 8 * own.tile[1].unsigned_abs() } else { 0 })
    }

    /// Elements of rows of Q and K, and of V and O, as tiles have them.
    pub(super) fn padded(&self) -> [i64; 2] {
        let columns = if self.is_narrow() { narrow::COLUMNS } else { ATOM };
        [(self.head, ATOM), (self.value(), columns)]
            .map(|(elements, whole)| elements.next_multiple_of(whole as u32).into())
    }

    /// Elements of K and V that a thread copies at once.
    pub(super) fn vector_kv(&self) -> i64 {
        ALIGN.0 as i64 / self.dtype_kv().bytes().0 as i64
    }
}

fn pair([rows, columns]: [i64; 2]) -> Result<IntTuple, LayoutError> {
    IntTuple::tuple([rows, columns].map(IntTuple::int))
}

/// Rows of `elements` along a mode, 16 bytes apart: the vectors of 8 neighbouring rows lie in different banks, and a thread's in constant
/// distances. Swizzled rows, which `cp.async` fills in fewer passes, took more registers: 128x32 of 128 elements spilled 32 bytes.
fn apart(
    [name, modes]: [&'static str; 2],
    dtype: DType,
    [rows, columns, stages]: [i64; 3],
    contiguous: usize,
) -> Result<SmemTensor, LayoutError> {
    let int = |all: [i64; 3]| IntTuple::tuple(all.map(IntTuple::int));
    let apart = ALIGN.0 as i64 / dtype.bytes().0 as i64;
    let strides = match contiguous {
        0 => [1, rows + apart, columns * (rows + apart)],
        _ => [columns + apart, 1, rows * (columns + apart)],
    };
    let layout = Layout::new(int([rows, columns, stages])?, int(strides)?)?;
    let (align, proxy, lives) = (Bytes(128), Proxy::Generic, Lives::Kernel);
    Ok(SmemTensor { name, modes, dtype, swizzle: None, layout, align, proxy, lives })
}

/// Threads with a vector of so many elements each, neighbours along rows: as many of a row as divide it.
fn threads([rows, elements, vector]: [i64; 3], threads: i64, along_rows: bool) -> Result<[Layout; 2], LayoutError> {
    let power = |extent: i64| 1_i64 << extent.trailing_zeros();
    let along = power(elements / vector).min(threads);
    let others = power(rows).min(threads / along);
    let tile = |[row, element]: [i64; 2]| pair(if along_rows { [row, element] } else { [element, row] });
    let threads = Layout::new(tile([others, along])?, tile([along, 1])?)?;
    Ok([threads, Layout::new(tile([1, vector])?, tile([0, 1])?)?])
}

impl Attention {
    /// Rows of a head in global memory, whose vectors are whole and aligned: elements of a row lie along this mode of the tile.
    fn rows(&self, tensor: &'static str, along: usize) -> Place {
        let count = self.modes(&tensor.to_lowercase()).len();
        let (row, element) = (count - 2, count);
        let modes = if along == 1 { [row, element] } else { [element, row] };
        let (outer, matrix) = (count - 1, Global::matrix(tensor));
        let multiple = if matches!(tensor, "K" | "V") { self.vector_kv() } else { VECTOR };
        Place::Global(Global { modes, contiguous: along, align: ALIGN, multiple, outer, ..matrix })
    }

    /// All tiles of a group of heads, then those of the next. With a diagonal, the last tile first, and only steps with keys that queries
    /// see; a function of scores may empty some of them. CTAs of sm_90a take tiles in turn.
    fn order(&self, own: &Own) -> Order {
        let ([m, n], turns) = (own.tile, Takes::Turns { teams: 1, stream_k: 0 });
        let takes = if own.isa == Isa::Sm90a { turns } else { Takes::One };
        if self.paged || self.varlen {
            // Which keys there are, and which sequences have how many tiles, is known to the device alone.
            let modes = if self.splits(own.isa) { ["tiles", "hk", "splits", "b"] } else { ["tiles", "hq", "b", ""] };
            let modes = modes.map(|mode| (mode, 1));
            let count = 2 + usize::from(self.splits(own.isa)) + usize::from(!self.varlen);
            return Order { takes, ..Order::numbered(&modes[..count], None) };
        }
        let known = [("sq", m), ("hq", 1), ("b", 1), ("sk", n), ("group", 1)];
        let (mut order, [sq, hq, b, sk, group], [number]) = Order::new(known, ["number"]);
        let mut keys = |name: &str| if self.mask == Mask::Window { Some(order.known(name, 1)) } else { None };
        let (left, right) = (keys("left"), keys("right").unwrap_or(0.into()));
        let steps = &mut order.steps;
        let (tiles, heads) = (steps.set("tiles", sq.clone().ceil_div(m)), steps.set("heads", hq.clone() * b.clone()));
        let first_head = number.clone() / (tiles.clone() * group.clone()) * group.clone();
        let first_head = steps.set("first_head", first_head);
        let among = steps.set("among", number.clone() - first_head.clone() * tiles.clone());
        let of_group = steps.set("of_group", (heads.clone() - first_head.clone()).op(IntOp::Min, group));
        let head = steps.set("head", first_head + among.clone() % of_group.clone());
        let tile = steps.set("tile", among / of_group);
        let at = if self.has_diagonal() { tiles.clone() - 1 - tile } else { tile };
        let first = steps.set("first_query", at.clone() * m);
        let (mut begin, mut end) = (Int::from(0), sk.clone());
        if self.has_diagonal() {
            let last = (first.clone() + m).op(IntOp::Min, sq.clone()) - 1;
            let own = sk.clone() - sq;
            end = (last + own.clone() + right + 1).op(IntOp::Min, sk).op(IntOp::Max, 0);
            begin = left.map_or(begin, |left| (first + own - left).op(IntOp::Max, 0) / n);
        }
        let begin = steps.set("first_step", begin);
        let trips = steps.set("steps", (end.ceil_div(n) - begin.clone()).op(IntOp::Max, 0));
        order.pieces = vec![Axis { at: number, extent: tiles.clone() * heads }];
        let axis = |at, extent| Axis { at, extent };
        order.tile = vec![axis(at, tiles), axis(head.clone() % hq.clone(), hq.clone()), axis(head / hq, b)];
        let through = begin.clone() + trips.clone();
        order.inner = Inner { first: begin.clone(), trips, tile: [begin, through] };
        Order { takes, ..order }
    }
}

/// Both factors in the names of atoms.
fn in_atoms(dtype: DType) -> &'static str {
    if dtype == DType::Bf16 { "BF16BF16" } else { "F16F16" }
}

/// Row maxima and sums, over the lanes that share a row.
fn reduces() -> Vec<TileReduce> {
    let of_rows =
        |what, op| TileReduce { what, of: Reduced::Accumulators("Scores"), mode: 1, op, over: vec![Scope::Lanes] };
    vec![of_rows("row maximum", ReduceOp::Max), of_rows("row sum", ReduceOp::Sum)]
}

/// Q once, K and V in rings of their own.
fn rings(stages: i64, completes: Completion) -> Vec<Pipeline> {
    let ring = |(name, tensor, stages)| Pipeline { name, tensors: vec![tensor], stages, completes };
    [("queries", "Q", 1), ("keys", "K", stages), ("values", "V", stages)].map(ring).to_vec()
}

/// O from accumulators to shared memory, and from there to global memory in vectors of 16 bytes.
fn stores(recipe: &Attention, tile: [i64; 2], stages_by: CopyOp, [threads, values]: [Layout; 2]) -> [TileCopy; 2] {
    let (of, lies) = ((tile, recipe.dtype), Place::Shared("O"));
    let places = [Place::Fragments("Output", Operand::C), lies];
    let stage = TileCopy::new(["StageO", "staging of O"], of, places, Engine::Fragments(stages_by));
    let engine = Engine::Threads { op: CopyOp::Universal(ALIGN), threads, values };
    let store = TileCopy::new(["CopyO", "store of O"], of, [lies, recipe.rows("O", 1)], engine);
    let store = TileCopy { guard: Guard::Predicate, ..store };
    [stage, store]
}

/// `cp.async`, `ldmatrix`, `mma.sync`: every warp copies, and has queries of its own.
pub(super) fn sm80(recipe: &Attention, own: &Own) -> Result<Tiling, LayoutError> {
    let (Own { tile: [m, n], stages, warps, .. }, [d, dv], dtype) = (*own, recipe.padded(), recipe.dtype);
    let all = 32 * warps;
    let factors = in_atoms(dtype);
    let mma = |name, tiles, tile, a| {
        let atoms = flat([(warps, 1), (1, 0), (1, 0)])?;
        let atom = (format!("SM80_16x8x16_F32{factors}F32_TN"), atoms);
        // Two atoms along N, so that ldmatrix.x4 fills whole fragments of B.
        let over = [ATOM * warps, ATOM, ATOM].map(|extent| Tiler::Shape(IntTuple::int(extent)));
        let mma = TileMma::new((name, tiles), tile, atom, [a, Factor::Fragments]);
        Ok::<_, LayoutError>(TileMma { permutation: Some(Tiler::Tuple(over.into())), ..mma })
    };
    let load = |name, what, to, [x, y]: [i64; 2], along: usize| {
        let rows_and_elements = if along == 1 { [x, y, VECTOR] } else { [y, x, VECTOR] };
        let [threads, values] = threads(rows_and_elements, all, along == 1)?;
        let engine = Engine::Threads { op: CopyOp::CpAsync(ALIGN), threads, values };
        let copy = TileCopy::new([name, what], ([x, y], dtype), [recipe.rows(to, along), Place::Shared(to)], engine);
        Ok::<_, LayoutError>(TileCopy { guard: Guard::ZeroFill, completes: Completion::CpAsyncGroup, ..copy })
    };
    let fragment = |name, what, from, tile, (mma, operand), op| {
        let places = [Place::Shared(from), Place::Fragments(mma, operand)];
        TileCopy::new([name, what], (tile, dtype), places, Engine::Fragments(op))
    };
    let tensor = |names, extents, along, lives| {
        let tensor = match recipe.paged {
            true => SmemTensor::in_pieces(names, dtype, extents, along, Proxy::Generic),
            false => apart(names, dtype, extents, along),
        };
        tensor.map(|tensor| SmemTensor { lives, ..tensor })
    };
    let stores = stores(recipe, [m, dv], CopyOp::Universal(Bytes(4)), threads([m, dv, VECTOR], all, true)?);
    // O, or what a split leaves of it in the workspace.
    let (output, stores) = match recipe.paged {
        false => (Some(tensor(["O", "(BM,DV,1)"], [m, dv, 1], 1, Lives::Epilogue)?), stores.to_vec()),
        true => {
            let to = Place::Global(Global { align: Bytes(4), ..Global::matrix("Parts") });
            let engine = Engine::Fragments(CopyOp::Universal(Bytes(4)));
            let [stage, _] = stores;
            let (what, guard) = ("sums of a split", Guard::Predicate);
            (None, vec![TileCopy { name: "GiveSums", what, dtype: DType::F32, to, engine, guard, ..stage }])
        }
    };
    let mut copies = vec![
        load("CopyQ", "copy of Q", "Q", [m, d], 1)?,
        load("CopyK", "copy of K", "K", [n, d], 1)?,
        load("CopyV", "copy of V", "V", [dv, n], 0)?,
        fragment("LdsmQ", "ldmatrix of Q", "Q", [m, d], ("Scores", Operand::A), CopyOp::LdMatrix),
        fragment("LdsmK", "ldmatrix of K", "K", [n, d], ("Scores", Operand::B), CopyOp::LdMatrix),
        fragment("LdsmV", "ldmatrix of V", "V", [dv, n], ("Output", Operand::B), CopyOp::LdMatrixT),
    ];
    copies.extend(stores);
    let mut smem = vec![
        tensor(["Q", "(BM,D,1)"], [m, d, 1], 1, Lives::Mainloop)?,
        tensor(["K", "(BN,D,STAGES)"], [n, d, stages], 1, Lives::Mainloop)?,
        tensor(["V", "(DV,BN,STAGES)"], [dv, n, stages], 0, Lives::Mainloop)?,
    ];
    smem.extend(output);
    let tiling = Tiling {
        tile: [m, dv, n],
        smem,
        pipelines: rings(stages, Completion::CpAsyncGroup),
        copies,
        mmas: vec![
            mma("Scores", ["TileQ", "TileK", "TileS"], [m, n, d], Factor::Fragments)?,
            mma("Output", ["TileP", "TileV", "TileO"], [m, dv, n], Factor::Accumulators("Scores"))?,
        ],
        reduces: reduces(),
        roles: vec![Role { task: Task::All, threads: all as u32, registers: None }],
        cluster: [1; 3],
        order: recipe.order(own),
    };
    if recipe.is_narrow() { narrow::narrow(recipe, tiling, warps) } else { Ok(tiling) }
}
