//! The tilings: one recipe, a description for each group of architectures.

mod sm80;

pub(super) use sm80::sm80;

use super::text_settings::TextSettings;
use super::{Consumers, Factors, Gemm, ScaleType, entries, raster};
use crate::arch::Arch;
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, make_layout};
use crate::plan::{Arithmetic, BlockScales, Groups, SCALES};
use crate::recipe::product::{Extents, Major};
use crate::tiling::{
    Completion, CopyOp, Engine, Factor, Global, Guard, Pipeline, Place, Promotion, Proxy, ReduceOp, Reduced, Role,
    Scope, SmemTensor, Task, TileCopy, TileMma, TileReduce, Tiling, piece, pieces,
};
use crate::units::Bytes;

/// Rows of A and B in global memory must begin at multiples of this, or they are packed.
pub(super) const ALIGN: Bytes = Bytes(16);

/// Registers of consumer and producer threads, with two and with three consumer warpgroups: few boxes, and many
/// accumulators that need the registers.
const FEW_BOXES: [[u32; 2]; 2] = [[240, 24], [160, 32]];

/// Whatever the majors.
const ANY_MAJOR: [[u32; 2]; 2] = [[232, 40], [152, 56]];

/// Where a tile takes more boxes than [`BOXES`].
const MANY_BOXES: [[u32; 2]; 2] = [[224, 56], [152, 56]];

/// The most boxes of an operand's tile with few registers. nvcc 13.0 keeps the coordinates of boxes in registers. With
/// 40 registers it spills 0 bytes for 11 boxes, and 8 bytes for 13 and for 15 in clusters of four.
const BOXES: i64 = 8;

/// Accumulators that fit into 232 registers without epilogue inputs: nvcc 13.0 spills nothing with 192.
const MANY: i64 = 192;

/// The most registers that a consumer thread with epilogue inputs may need by the estimate. The estimate ignores the
/// registers that K-major tiles free: with C and a bias beside 192 accumulators nvcc 13.0 spills at 240, where D is
/// stored element by element.
pub(super) fn most_needed(registers: u32, tensors: u64) -> u32 {
    let any_major = FEW_BOXES.into_iter().zip(ANY_MAJOR).find(|([few, _], _)| tensors > 0 && *few == registers);
    any_major.map_or(registers, |(_, [own, _])| own)
}

/// Parts of D in shared memory at a time, at least: one is stored while another is written.
const BUFFERS: u32 = 2;

/// Slices of D that a CTA stores of a tile; E has as many.
pub(super) fn parts_of_tile(tiling: &Tiling, staged: &SmemTensor) -> u32 {
    let ([m, n], [rows, columns, _]) = (tiling.tile_of_d(), staged.extents());
    let parts = m / rows.max(1) * (n / columns.max(1) / i64::from(tiling.splits()).max(1));
    u32::try_from(parts).unwrap_or(u32::MAX)
}

/// How many buffers fit beside the rest of a tiling that has [`BUFFERS`], equally many for each output. At most whole
/// tiles, whose stores then overlap with the next tile.
fn buffers(tiling: &Tiling, staged: &SmemTensor, outputs: u32) -> Result<u32, LayoutError> {
    let room = Arch::Sm90a.smem_per_block().0.saturating_sub(tiling.smem_bytes()?.0);
    let more = room / (staged.stage_bytes().0 * u64::from(tiling.teams())).max(1);
    let sets = (BUFFERS + more as u32) / outputs.max(1);
    Ok((sets.min(parts_of_tile(tiling, staged)) * outputs).max(BUFFERS))
}

pub(super) fn extents(tile: Extents<3>) -> [i64; 3] {
    tile.0.map(i64::from)
}

/// Rows and columns as a layout's shape or strides.
pub(super) fn pair([rows, columns]: [i64; 2]) -> Result<IntTuple, LayoutError> {
    IntTuple::tuple([rows, columns].map(IntTuple::int))
}

impl Gemm {
    /// Whether the product that is computed is `D^T = B^T @ A^T`, so that what D is contiguous along is N in the text.
    pub(super) fn is_turned(&self) -> bool {
        self.d == Major::Col
    }

    /// Whether A and B of the text are K-major where the kernel multiplies them.
    pub(super) fn k_major(&self) -> [bool; 2] {
        let only_k = self.dtype.lies_along_k();
        let [a, b] = self.lie_along_k().map(|along_k| along_k || only_k);
        // A group begins in any column of an M-major A. A launch whose boxes began there stopped on an H200: an illegal instruction.
        [a || self.groups == Groups::Rows, b]
    }

    /// Whether A and B lie along K in the text. An operand that lies otherwise is transposed while it is packed.
    pub(super) fn lie_along_k(&self) -> [bool; 2] {
        let (a, b) = (self.a == Major::Row, self.b == Major::Col);
        if self.is_turned() { [b, a] } else { [a, b] }
    }

    /// Whether A and B of the text are turned while they are packed.
    pub(super) fn turns(&self) -> [bool; 2] {
        let (needed, lies) = (self.k_major(), self.lie_along_k());
        [needed[0] != lies[0], needed[1] != lies[1]]
    }

    /// The types of A and B as the text has them.
    pub(super) fn factors(&self) -> [Factors; 2] {
        let [a, b] = [self.dtype, self.dtype_b.unwrap_or(self.dtype)];
        if self.is_turned() { [b, a] } else { [a, b] }
    }

    /// How products and sums are computed.
    pub(super) fn arithmetic(&self) -> Arithmetic {
        match self.dtype {
            Factors::F16 | Factors::Bf16 => Arithmetic::TensorCores,
            Factors::Tf32 => Arithmetic::Tf32,
            Factors::E4m3 | Factors::E5m2 => Arithmetic::Fp8 { promoted: self.promote },
            Factors::I8 => Arithmetic::Int8,
        }
    }

    /// When a sum moves to f32, with so much of K in a k-tile.
    fn promotion(&self, of_k: i64) -> Option<Promotion> {
        let every = self.promote / u32::try_from(of_k).unwrap_or(1).max(1);
        let scales = if self.block_scales().is_some() { SCALES.to_vec() } else { Vec::new() };
        (self.promote > 0).then_some(Promotion { every, scales })
    }

    /// Rows of A, and columns of B, of the blocks that have scales.
    pub(super) fn block_scales(&self) -> Option<BlockScales> {
        Some([self.scale_a?.rows(), self.scale_b?.rows()])
    }

    /// The scales of a k-tile of A and of one of B, as the text has them.
    pub(super) fn scales(&self, own: &TextSettings) -> impl Iterator<Item = Scales> {
        let rows = self.block_scales().map(|[a, b]| if self.is_turned() { [b, a] } else { [a, b] });
        let of = move |(mode, rows): (usize, i64)| {
            let extent = i64::from(own.tile.0[mode]);
            let granule = gcd(rows, extent);
            Scales { mode, rows, granule, count: extent / granule }
        };
        rows.into_iter().flatten().enumerate().map(of).collect::<Vec<_>>().into_iter()
    }

    /// A factor in global memory.
    fn factor(&self, tensor: &'static str, k_major: bool) -> Global {
        Global {
            // B is (K,N), and its tiles are (N,K).
            modes: if tensor == "B" { [1, 0] } else { [0, 1] },
            contiguous: usize::from(k_major),
            align: ALIGN,
            multiple: self.dtype.vector(),
            outer: self.have_l(tensor).into(),
            ..Global::matrix(tensor)
        }
    }

    /// Neighbouring accumulators that an element of D is made of.
    pub(super) fn sums(&self) -> usize {
        1 + usize::from(self.pairs)
    }

    /// What a slice of D is made of, and the copy of it to shared memory: of neighbours along N unless pairs make one.
    pub(super) fn handed(&self) -> (Place, CopyOp) {
        let bytes = self.out.bytes();
        match self.pairs {
            true => (Place::Pairs("Mma"), CopyOp::Universal(bytes)),
            false => (Place::Fragments("Mma", Operand::C), CopyOp::Universal(Bytes(2 * bytes.0))),
        }
    }

    /// D, at addresses that are multiples of so much.
    pub(super) fn result(&self, align: Bytes) -> Place {
        Place::Global(Global { align, outer: self.have_l("D").into(), ..Global::matrix("D") })
    }
}

/// The scales of a factor in a k-tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scales {
    /// 0 for A, 1 for B.
    pub(super) mode: usize,
    /// Rows of the factor that share a scale.
    pub(super) rows: i64,
    /// Rows of a tile, from its first on, that share one wherever the tile lies.
    pub(super) granule: i64,
    /// Granules of a tile.
    pub(super) count: i64,
}

impl Scales {
    /// Elements from one stage to the next: stages begin at multiples of 16 bytes.
    pub(super) fn apart(self) -> i64 {
        (self.count + 3) / 4 * 4
    }

    /// In shared memory, a scale for each granule; and its copy, by a warp, which takes them from anywhere.
    fn staged(self, recipe: &Gemm, own: &TextSettings) -> Result<(SmemTensor, TileCopy), LayoutError> {
        let (name, count, int) = (SCALES[self.mode], self.count, IntTuple::int);
        let lanes = if count < WARP { count } else { gcd(count, WARP) };
        let shape = IntTuple::tuple([count, 1, own.stages.into()].map(int))?;
        let layout = Layout::new(shape, IntTuple::tuple([1, count, self.apart()].map(int))?)?;
        let smem = SmemTensor::plain([name, "(GRANULES,1,STAGES)"], DType::F32, layout, Bytes(16));
        let threads = Layout::new(pair([lanes, 1])?, pair([1, lanes])?)?;
        let global =
            Global { modes: [self.mode, 1 - self.mode], contiguous: 0, align: Bytes(4), ..Global::matrix(name) };
        // cp.async has no bytes. A thread widens them.
        let (op, guard) = match recipe.scale_type {
            ScaleType::F32 => (CopyOp::CpAsync(Bytes(4)), Guard::ZeroFill),
            ScaleType::Ue8m0 => (CopyOp::Universal(Bytes(4)), Guard::Elements),
        };
        let copy = TileCopy {
            name: ["CopyScaleA", "CopyScaleB"][self.mode],
            what: ["copy of the scales of A", "copy of the scales of B"][self.mode],
            tile: [count, 1],
            dtype: DType::F32,
            from: Place::Global(Global { outer: recipe.have_l(["A", "B"][self.mode]).into(), ..global }),
            to: Place::Shared(name),
            engine: Engine::Threads { op, threads, values: Layout::unit() },
            guard,
            completes: Completion::Mbarrier,
            split: None,
        };
        Ok((smem, copy))
    }
}

/// Threads of a warp.
const WARP: i64 = 32;

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The names of the tiles of A, B and D in the text.
const TILES: [&str; 3] = ["TileA", "TileB", "TileD"];

/// A and B, which are filled together.
fn mainloop(own: &TextSettings, completes: Completion) -> Pipeline {
    Pipeline { name: "mainloop", tensors: vec!["A", "B"], stages: own.stages.into(), completes }
}

/// A and B.
fn tensors(recipe: &Gemm, own: &TextSettings, proxy: Proxy) -> Result<Vec<SmemTensor>, LayoutError> {
    let ([m, n, k], [a, b], stages) = (extents(own.tile), recipe.k_major(), i64::from(own.stages));
    let [of_a, of_b] = recipe.factors().map(Factors::dtype);
    Ok(vec![
        SmemTensor::in_pieces(["A", "(BM,BK,STAGES)"], of_a, [m, k, stages], a.into(), proxy)?,
        SmemTensor::in_pieces(["B", "(BN,BK,STAGES)"], of_b, [n, k, stages], b.into(), proxy)?,
    ])
}

/// What a quantised D is scaled by.
fn largest() -> TileReduce {
    let (what, of) = ("largest size of a row", Reduced::Accumulators("Mma"));
    TileReduce { what, of, mode: 1, op: ReduceOp::Max, over: vec![Scope::Lanes] }
}

/// (m,n,1) atoms, numbered along M first.
fn atoms([m, n]: [i64; 2]) -> Result<Layout, LayoutError> {
    make_layout(&IntTuple::tuple([m, n, 1].map(IntTuple::int))?)
}

/// TMA and WGMMA: consumer warpgroups, and a producer warpgroup whose first thread loads tiles. A slice of D is as wide
/// as a swizzle, or narrower if the stages of A and B leave no room.
pub(super) fn sm90a(recipe: &Gemm, own: &TextSettings) -> Result<Tiling, LayoutError> {
    let columns = i64::from(own.tile.0[1] / own.split_k.max(1)) / recipe.sums() as i64;
    let mut shorter = pieces(columns, recipe.out.bytes().0 as i64);
    let mut tiling = staged_by(recipe, own, shorter.next().unwrap_or(columns))?;
    while tiling.smem_bytes()? > Arch::Sm90a.smem_per_block() {
        let Some(columns) = shorter.next() else { break };
        tiling = staged_by(recipe, own, columns)?;
    }
    Ok(tiling)
}

/// With this many columns of D staged at a time.
fn staged_by(recipe: &Gemm, own: &TextSettings, columns: i64) -> Result<Tiling, LayoutError> {
    let [m, n, k] = extents(own.tile);
    let (warpgroups, teams) = consumers(own);
    let [along_m, along_n] = own.cluster.0;
    let load = |[name, what, tensor]: [&'static str; 3], x: i64, sharers: u32, k_major, dtype: DType| TileCopy {
        name,
        what,
        tile: [x, k],
        dtype,
        from: Place::Global(recipe.factor(tensor, k_major)),
        to: Place::Shared(tensor),
        // Each CTA that shares a tile loads its piece of the mode that is not contiguous.
        engine: Engine::Tma {
            extents: if k_major {
                [x / i64::from(sharers.max(1)), k]
            } else {
                [piece(x, dtype.bytes().0 as i64), k / i64::from(sharers.max(1))]
            },
            sharers,
            rounds: recipe.dtype == Factors::Tf32,
        },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
        split: None,
    };
    let (part, (from, op)) = ([64 * warpgroups, columns], recipe.handed());
    let stage = TileCopy {
        name: "StageD",
        what: "staging of D",
        tile: part,
        dtype: recipe.out,
        from,
        to: Place::Shared("D"),
        engine: Engine::Fragments(if recipe.out.bits() == 16 && !recipe.pairs { CopyOp::StMatrix } else { op }),
        guard: Guard::None,
        completes: Completion::Program,
        split: None,
    };
    let store = TileCopy {
        name: "TmaD",
        what: "store of D",
        from: Place::Shared("D"),
        to: recipe.result(ALIGN),
        engine: Engine::Tma { extents: [64, columns], sharers: warpgroups as u32, rounds: false },
        guard: Guard::TensorMap,
        completes: Completion::BulkGroup,
        ..stage.clone()
    };
    let mut smem = tensors(recipe, own, Proxy::Async)?;
    let modes = if teams > 1 { "(PART_M,PART_N,TEAMS*BUFFERS)" } else { "(PART_M,PART_N,BUFFERS)" };
    let [rows, columns] = part;
    let staged = |buffers: u32| {
        let stages = (buffers * teams).into();
        SmemTensor::in_pieces(["D", modes], recipe.out, [rows, columns, stages], 1, Proxy::Async)
    };
    // D lies before A, because it borrows A's stages.
    smem.insert(0, staged(BUFFERS)?);
    if own.split_k > 1 {
        smem.push(parts(recipe.dtype.sums(), m * n, 128 * warpgroups, own.split_k.into())?);
    }
    let [a, b] = recipe.k_major();
    let (of_k, [of_a, of_b]) = (2 * recipe.dtype.vector(), recipe.factors());
    let [in_a, in_b] = [of_a, of_b].map(Factors::in_atoms);
    let (sums, only_k) = (recipe.dtype.sums_in_atoms(), if recipe.dtype.lies_along_k() { "_TN" } else { "" });
    let mut copies = vec![
        load(["TmaA", "copy of A", "A"], m, along_n, a, of_a.dtype()),
        load(["TmaB", "copy of B", "B"], n, along_m, b, of_b.dtype()),
        stage,
        store,
    ];
    let mut mainloop = mainloop(own, Completion::Mbarrier);
    for scales in recipe.scales(own) {
        let (tensor, copy) = scales.staged(recipe, own)?;
        mainloop.tensors.push(tensor.name);
        smem.push(tensor);
        copies.push(copy);
    }
    let mut tiling = Tiling {
        tile: [m, n, k],
        smem,
        pipelines: vec![mainloop],
        copies,
        mmas: vec![TileMma {
            name: "Mma",
            tiles: TILES,
            tile: [m, n, k],
            atom: format!("SM90_64x{n}x{of_k}_{sums}{in_a}{in_b}_SS{only_k}"),
            atoms: atoms([warpgroups, 1])?,
            permutation: None,
            a: Factor::Shared("A"),
            b: Factor::Shared("B"),
            promotion: recipe.promotion(k),
        }],
        reduces: recipe.scale_d.iter().map(|_| largest()).collect(),
        roles: roles(warpgroups * i64::from(teams), registers(recipe, own)),
        cluster: [along_m, along_n, own.split_k.max(1)],
        order: raster::order(own, recipe, teams),
    };
    let buffers = buffers(&tiling, &tiling.smem[0], recipe.epilogue.outputs() as u32)?;
    tiling.smem[0] = staged(buffers)?;
    if recipe.scatter { entries::scattered(recipe, tiling) } else { Ok(tiling) }
}

/// The partial sums that the CTAs of a tile send each other. From each other CTA come the accumulators of the columns
/// that this one stores. Four neighbours of a thread take 16 bytes; neighbouring threads lie side by side.
fn parts(dtype: DType, tile: i64, threads: i64, splits: i64) -> Result<SmemTensor, LayoutError> {
    let (vector, vectors) = (4, tile / threads / splits / 4);
    let int = IntTuple::int;
    let shape = IntTuple::tuple([pair([vector, vectors])?, int(threads), int(splits - 1)])?;
    let stride = IntTuple::tuple([pair([1, vector * threads])?, int(vector), int(vector * threads * vectors)])?;
    let names = ["Parts", "((VECTOR,VECTORS),THREADS,SENDERS)"];
    Ok(SmemTensor::plain(names, dtype, Layout::new(shape, stride)?, Bytes(16)))
}

/// Consumer warpgroups that compute a tile together, 64 rows each, or 128 if there would be four; and how many teams
/// take turns.
fn consumers(own: &TextSettings) -> (i64, u32) {
    match (own.schedule, i64::from(own.tile.0[0])) {
        (Consumers::Pingpong, _) => (1, 2),
        (Consumers::Cooperative, m) if m > 192 => (2, 1),
        (Consumers::Cooperative, m) => (m / 64, 1),
    }
}

/// The registers of producer and consumer threads, with two and with three warpgroups. Tiles that are not K-major take
/// several boxes, and the producer holds the coordinates of each. At 24 registers nvcc 13.0 spilled 4 to 56 bytes of it
/// in clusters of four, with epilogue inputs, and with a batch mode. So the producer gets 24 only if the accumulators
/// need the rest. With three warpgroups it gets 32, where nothing spilled.
fn registers(recipe: &Gemm, own: &TextSettings) -> [[u32; 2]; 2] {
    let ([m, n, _], (warpgroups, teams)) = (extents(own.tile), consumers(own));
    let is_plain = own.cluster.0.iter().product::<u32>() < 4
        && recipe.epilogue.inputs() == recipe.sums()
        && recipe.epilogue.outputs() == 1;
    let is_tight = m * n / (128 * warpgroups) > MANY || warpgroups * i64::from(teams) == 3;
    let k_major = recipe.k_major();
    if k_major == [true; 2] && is_plain && is_tight {
        return FEW_BOXES;
    }
    let size = recipe.dtype.dtype().bytes().0 as i64;
    let boxes = |(x, k_major): (i64, bool)| if k_major { 1 } else { x / piece(x, size) };
    if [m, n].into_iter().zip(k_major).map(boxes).any(|boxes| boxes > BOXES) { MANY_BOXES } else { ANY_MAJOR }
}

/// Blocks of 64 rows that a thread has accumulators of.
pub(super) fn blocks_of_rows(own: &TextSettings) -> u32 {
    own.tile.0[0] / (64 * consumers(own).0.max(1) as u32)
}

/// Warpgroups that compute, and one that copies: with the registers of two and of three of them; a single one needs no share of
/// another's.
fn roles(warpgroups: i64, [of_two, of_three]: [[u32; 2]; 2]) -> Vec<Role> {
    let [own, producers] = match warpgroups {
        2 => of_two.map(Some),
        3 => of_three.map(Some),
        _ => [None, None],
    };
    let role = |task, threads: i64, registers| Role { task, threads: threads as u32, registers };
    vec![role(Task::Consume, 128 * warpgroups, own), role(Task::Produce, 128, producers)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_copy_have_registers_for_the_coordinates_of_many_boxes() {
        let of_two = |b, d, tile| {
            let recipe = Gemm { b, d, tile: Extents(tile), ..Gemm::default() };
            registers(&recipe, &recipe.sm90a())[0]
        };
        assert_eq!(of_two(Major::Col, Major::Row, [256, 208, 64]), [240, 24], "K-major, and many accumulators");
        assert_eq!(of_two(Major::Col, Major::Row, [128, 240, 64]), [232, 40]);
        assert_eq!(of_two(Major::Row, Major::Row, [128, 224, 64]), [232, 40], "7 boxes of 32 columns");
        assert_eq!(of_two(Major::Row, Major::Row, [128, 208, 64]), [224, 56], "13 boxes of 16 columns");
        assert_eq!(of_two(Major::Row, Major::Col, [128, 208, 64]), [232, 40], "B of the launch is A of the text");
    }
}
