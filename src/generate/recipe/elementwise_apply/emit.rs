//! The text of the kernels, and its facts.

use askama::Template;

use super::decide::{Body, Class, Decision, Tensor};
use crate::dtype::DType;
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::plan::Plan;
use crate::tiling::{Engine, Place, TileCopy, Tiling};

/// A tensor as the templates name it.
struct Operand {
    /// `A` in `mA`.
    name: &'static str,
    /// `a` in `params.a`.
    param: String,
    /// `ElementA const` for a read tensor.
    pointee: String,
    element: &'static str,
    dtype: DType,
    bytes: u64,
    /// The vector type where whole vectors are moved, else `void`.
    vector: String,
    /// Whether it is turned.
    is_turned: bool,
    /// Its strides along M and N, and where tiles are turned those of the batches.
    strides: String,
    /// Which of the function's results it takes.
    output: Option<usize>,
}

/// An input that is turned.
struct Turned {
    name: &'static str,
    /// The parameter that holds its address.
    param: String,
    /// Threads to blocks, and the values of a block along M and along N first.
    threads: String,
    load: String,
    store: String,
    /// Its vectors along M, and the rows of a block.
    block: [i64; 2],
    layout: String,
    bytes: u64,
    /// The alignment of its address, in bytes.
    alignment: u64,
    /// Passes over the banks.
    stored: u32,
    loaded: u32,
}

/// The threads that take vectors of so many elements out, and how many they have in flight.
struct GoOut {
    vec: i64,
    threads: String,
    unroll: i64,
}

/// The common parts of all kernels of the family.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    function: String,
    compute: &'static str,
    helpers: String,
    functor: String,
    /// `params.alpha, params.beta`.
    scalars: String,
    tensors: Vec<Operand>,
    /// `params.m`, or `make_shape(params.m0, params.m1)`.
    shape_m: String,
    /// The modes of M in a comment: empty where there is one.
    modes_m: String,
    vec: i64,
    unroll: i64,
    vec_unroll: String,
    converts: Compute,
}

impl Common<'_> {
    fn inputs(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| t.output.is_none())
    }

    fn outputs(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| t.output.is_some())
    }

    /// The tensors that are moved in vectors.
    fn in_vectors(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| t.vector != NO_VECTOR)
    }

    /// `Y`, whose coordinates and addresses stand for all.
    fn last(&self) -> &Operand {
        &self.tensors[self.tensors.len() - 1]
    }

    /// All fragments, inputs first, each behind its prefix.
    fn fragments(&self, input: &str, output: &str) -> String {
        let prefix = |t: &Operand| if t.output.is_some() { output } else { input };
        self.tensors.iter().map(|t| format!("{}{}", prefix(t), t.name)).collect::<Vec<_>>().join(", ")
    }

    /// The function's arguments: the inputs' fragments at an index, converted.
    fn arguments(&self, prefix: &str, index: &str) -> String {
        let one = |t: &Operand| Helpers::new(self.converts).load(t.dtype, &format!("{prefix}{}{index}", t.name));
        self.inputs().map(one).collect::<Vec<_>>().join(", ")
    }

    /// What an output takes of the function's result, in its own type.
    fn result(&self, output: &Operand, result: &str) -> String {
        let value = match (self.outputs().count(), output.output) {
            (2.., Some(number)) => format!("get<{number}>({result})"),
            _ => result.to_owned(),
        };
        Helpers::new(self.converts).store(output.dtype, &value)
    }
}

/// What stands for the type of a vector where there is none.
const NO_VECTOR: &str = "void";

#[derive(Template)]
#[template(path = "elementwise_apply/naive.cuh")]
struct Naive<'a> {
    c: Common<'a>,
}

#[derive(Template)]
#[template(path = "elementwise_apply/vectorized.cuh")]
struct Vectorized<'a> {
    c: Common<'a>,
    cta_vectors: String,
    tiler: String,
}

#[derive(Template)]
#[template(path = "elementwise_apply/tv.cuh")]
struct Tv<'a> {
    c: Common<'a>,
    thr_layout: String,
    val_layout: String,
    tiler: String,
    tv_layout: String,
    tv_frag: String,
    values: i64,
    tile: [i64; 2],
    tile_size: i64,
    remapped: bool,
}

#[derive(Template)]
#[template(path = "elementwise_apply/transposed.cuh")]
struct Transposed<'a> {
    c: Common<'a>,
    tiler: String,
    tile: [i64; 2],
    /// `params.m`, or `params.m0`.
    extent_m: &'static str,
    /// `_1{}`, or `make_shape(params.m1, ..)`.
    batches: String,
    /// The inputs that are turned.
    turned: Vec<Turned>,
    /// From the widest vectors on.
    go_out: Vec<GoOut>,
}

impl Transposed<'_> {
    /// What `copy_vector` moves a tensor by.
    fn by(&self, tensor: &Operand) -> String {
        match tensor.vector == NO_VECTOR {
            true => NO_VECTOR.to_owned(),
            false => format!("Vector<Element{},VEC>", tensor.name),
        }
    }

    /// The CTA's tile that a tensor is read from or written to along N.
    fn along_n(&self, tensor: &Operand) -> &'static str {
        if tensor.is_turned { "s" } else { "g" }
    }
}

/// The type of a vector of a tensor.
fn vector(decision: &Decision, tensor: &Tensor) -> String {
    match tensor.class {
        Class::Contiguous | Class::Transposed => {
            format!("uint{}_t", 8 * tensor.dtype.bytes().0 * decision.vec as u64)
        }
        Class::Broadcast | Class::Strided => NO_VECTOR.to_owned(),
    }
}

fn operand(decision: &Decision, tensor: &Tensor, output: Option<usize>) -> Operand {
    let param = tensor.param.clone();
    let m_rank = decision.m_rank();
    let m = match m_rank {
        1 => format!("params.ld{param}"),
        _ => format!(
            "make_stride({})",
            (0..m_rank).map(|i| format!("params.ld{param}{i}")).collect::<Vec<_>>().join(", ")
        ),
    };
    let n = match tensor.class {
        Class::Contiguous => "_1{}".to_owned(),
        Class::Broadcast => "_0{}".to_owned(),
        Class::Strided | Class::Transposed => format!("params.inc{param}"),
    };
    let is_turned = tensor.class == Class::Transposed;
    let strides = match (&decision.body, m_rank) {
        (Body::Transposed { .. }, _) => {
            let m = match (is_turned, m_rank) {
                (true, _) => "_1{}".to_owned(),
                (false, 1) => m,
                (false, _) => format!("params.ld{param}0"),
            };
            format!("make_stride({m}, {n}, {})", batches(m_rank, "make_stride", &format!("params.ld{param}"), "_0{}"))
        }
        _ => format!("make_stride({m}, {n})"),
    };
    Operand {
        name: tensor.name,
        param,
        pointee: format!("Element{}{}", tensor.name, if tensor.output { "" } else { " const" }),
        element: tensor.dtype.cxx(),
        dtype: tensor.dtype,
        bytes: tensor.dtype.bytes().0,
        vector: vector(decision, tensor),
        is_turned,
        strides,
        output,
    }
}

/// The modes of M behind the first, as CuTe's tuple; `none` where there are none.
fn batches(m_rank: usize, make: &str, stem: &str, none: &str) -> String {
    match m_rank {
        1 => none.to_owned(),
        _ => format!("{make}({})", (1..m_rank).map(|i| format!("{stem}{i}")).collect::<Vec<_>>().join(", ")),
    }
}

fn turned(decision: &Decision) -> Vec<Turned> {
    let tiles = decision.tiling.smem.iter().zip(&decision.shared);
    let turned = tiles.map(|(tile, analysis)| {
        let copy = |of: fn(&TileCopy) -> bool| {
            walk(decision.tiling.copies.iter().find(|copy| copy.name == tile.name && of(copy)))
        };
        let worst = |access: usize| analysis.accesses.get(access).map_or(0, |access| access.worst);
        let [threads, load] = copy(|copy| matches!(copy.from, Place::Global(_)));
        let [_, store] = copy(|copy| matches!(copy.to, Place::Shared(_)));
        Turned {
            name: tile.name,
            param: decision.tensors.iter().find(|t| t.name == tile.name).map_or_else(String::new, |t| t.param.clone()),
            threads,
            load,
            store,
            block: super::turn::block(&decision.tiling, tile.name),
            layout: tile.ty(),
            bytes: analysis.memory.0,
            alignment: analysis.alignment.0,
            stored: worst(0),
            loaded: worst(1),
        }
    });
    turned.collect()
}

/// Who takes out, for each width of vectors along N.
fn go_out(decision: &Decision, narrower: &[Tiling]) -> Vec<GoOut> {
    let widths = (0..=decision.vec.ilog2()).map(|level| decision.vec >> level);
    let tilings = core::iter::once(&decision.tiling).chain(narrower);
    let of = |(level, (vec, tiling)): (usize, (i64, &Tiling))| {
        let [threads, _] = walk(tiling.copies.iter().find(|copy| matches!(copy.to, Place::Global(_))));
        GoOut { vec, threads, unroll: super::turn::in_flight_at(level, decision.unroll) }
    };
    widths.zip(tilings).enumerate().map(of).collect()
}

/// The threads and the values of a copy, as `make_tiled_copy` is given them.
fn walk(copy: Option<&TileCopy>) -> [String; 2] {
    match copy.map(|copy| &copy.engine) {
        Some(Engine::Threads { threads, values, .. }) => [emit::layout_type(threads), emit::layout_type(values)],
        _ => [String::new(), String::new()],
    }
}

fn common<'a>(decision: &Decision, plan: &'a Plan, template: &str) -> Common<'a> {
    let compute = decision.checked.compute();
    let mut helpers = Helpers::new(compute);
    let functor = decision.checked.functor("Op", &mut helpers);
    for tensor in &decision.tensors {
        match tensor.output {
            true => helpers.store(tensor.dtype, ""),
            false => helpers.load(tensor.dtype, ""),
        };
    }
    let inputs = decision.inputs().map(|t| operand(decision, t, None));
    let outputs = decision.outputs().enumerate().map(|(number, t)| operand(decision, t, Some(number)));
    let m_rank = decision.m_rank();
    let modes = |stem: &str| (0..m_rank).map(|i| format!("{stem}{i}")).collect::<Vec<_>>().join(",");
    let scalars: Vec<String> = decision.scalars.iter().map(|s| format!("params.{s}")).collect();
    Common {
        banner: emit::banner(plan, template),
        plan,
        function: decision.recipe.function.to_string(),
        compute: compute.cxx(),
        helpers: helpers.to_string(),
        functor,
        scalars: scalars.join(", "),
        tensors: inputs.chain(outputs).collect(),
        shape_m: match m_rank {
            1 => "params.m".to_owned(),
            _ => format!("make_shape({})", modes("params.m").replace(',', ", ")),
        },
        modes_m: if m_rank == 1 { String::new() } else { format!(", M = ({})", modes("M")) },
        vec: decision.vec,
        unroll: decision.unroll,
        vec_unroll: emit::shape_type([decision.vec, decision.unroll]),
        converts: compute,
    }
}

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let [tile_m, tile_n, _] = decision.tiling.tile;
    let tile = [tile_m, tile_n];
    match &decision.body {
        Body::Naive => emit::text(&Naive { c: common(decision, plan, "elementwise_apply/naive.cuh") }),
        Body::Vectorized { cta_vectors } => emit::text(&Vectorized {
            c: common(decision, plan, "elementwise_apply/vectorized.cuh"),
            cta_vectors: emit::layout_type(cta_vectors),
            tiler: emit::shape_type([1, decision.vec]),
        }),
        Body::Tv { tile: tv, val_layout, remapped } => emit::text(&Tv {
            c: common(decision, plan, "elementwise_apply/tv.cuh"),
            thr_layout: emit::layout_type(&decision.recipe.thr_layout),
            val_layout: emit::layout_type(val_layout),
            tiler: emit::shape_type(tile),
            tv_layout: emit::layout_type(&tv.tv),
            tv_frag: emit::layout_type(&tv.frag),
            values: tv.values.iter().product(),
            tile,
            tile_size: tile_m * tile_n,
            remapped: *remapped,
        }),
        Body::Transposed { narrower, .. } => emit::text(&Transposed {
            c: common(decision, plan, "elementwise_apply/transposed.cuh"),
            tiler: emit::shape_type(tile),
            tile,
            extent_m: if decision.m_rank() > 1 { "params.m0" } else { "params.m" },
            batches: batches(decision.m_rank(), "make_shape", "params.m", "_1{}"),
            turned: turned(decision),
            go_out: go_out(decision, narrower),
        }),
    }
}
