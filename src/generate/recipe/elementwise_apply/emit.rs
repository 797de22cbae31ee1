//! The text of the kernels, and its facts.

use askama::Template;

use super::decide::{Body, Class, Decision, Tensor};
use crate::dtype::DType;
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::plan::Plan;
use crate::tiling::{Engine, Place, TileCopy};

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
    /// The same of a load along N: `void` of what is turned, too.
    read_by: String,
    /// Its stride along M and N.
    strides: String,
    /// Which of the function's results it takes.
    output: Option<usize>,
}

/// An input that is turned in shared memory.
struct Turned {
    name: &'static str,
    vector: String,
    layout: String,
    bytes: u64,
    /// The alignment of its address, in bytes.
    alignment: u64,
    store: u32,
    load: u32,
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
    /// The inputs that are turned, and the other tensors.
    turned: Vec<Turned>,
    direct: Vec<&'a str>,
    thr_in: String,
    val_in: String,
    thr_out: String,
    val_out: String,
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
    let (m, n) = if is_turned { ("_1{}".to_owned(), n) } else { (m, n) };
    let vector = vector(decision, tensor);
    Operand {
        name: tensor.name,
        param,
        pointee: format!("Element{}{}", tensor.name, if tensor.output { "" } else { " const" }),
        element: tensor.dtype.cxx(),
        dtype: tensor.dtype,
        bytes: tensor.dtype.bytes().0,
        read_by: if is_turned { NO_VECTOR.to_owned() } else { vector.clone() },
        vector,
        strides: format!("make_stride({m}, {n})"),
        output,
    }
}

fn turned(decision: &Decision) -> Vec<Turned> {
    let tiles = decision.tiling.smem.iter().zip(&decision.shared);
    let turned = tiles.filter_map(|(tile, analysis)| {
        let tensor = decision.tensors.iter().find(|tensor| tensor.name == tile.name)?;
        let worst = |access: usize| analysis.accesses.get(access).map_or(0, |access| access.worst);
        Some(Turned {
            name: tensor.name,
            vector: vector(decision, tensor),
            layout: tile.ty(),
            bytes: analysis.memory.0,
            alignment: analysis.alignment.0,
            store: worst(0),
            load: worst(1),
        })
    });
    turned.collect()
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
        Body::Transposed => {
            let into = |copy: &&TileCopy| matches!(copy.to, Place::Shared(_));
            let out = |copy: &&TileCopy| matches!(copy.to, Place::Global(_));
            let [thr_in, val_in] = walk(decision.tiling.copies.iter().find(into));
            let [thr_out, val_out] = walk(decision.tiling.copies.iter().find(out));
            emit::text(&Transposed {
                c: common(decision, plan, "elementwise_apply/transposed.cuh"),
                tiler: emit::shape_type(tile),
                tile,
                turned: turned(decision),
                direct: decision.tensors.iter().filter(|t| t.class != Class::Transposed).map(|t| t.name).collect(),
                thr_in,
                val_in,
                thr_out,
                val_out,
            })
        }
    }
}
