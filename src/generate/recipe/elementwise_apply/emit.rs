//! The text of the kernels, and its facts.

use askama::Template;

use super::decide::{Body, Class, Decision, Tensor};
use crate::emit;
use crate::expr::Helpers;
use crate::layout::Layout;
use crate::plan::Plan;

/// A tensor as the templates name it.
struct Operand {
    /// `A` in `mA`.
    name: &'static str,
    /// `a` in `params.a`.
    param: String,
    /// `ElementA const` for a read tensor.
    pointee: String,
    element: &'static str,
    bytes: u64,
    /// The vector type where whole vectors are moved, else empty.
    vector: String,
    /// Its stride along M and N.
    strides: String,
    /// The conversion of `r[name](..)` to the compute type, or of `y` from it.
    convert: String,
    output: bool,
    turned: Option<Smem>,
}

impl Operand {
    /// The first argument of a copy of whole vectors.
    fn copy_atom(&self) -> String {
        match self.vector.as_str() {
            "" => String::new(),
            vector => format!("Copy_Atom<UniversalCopy<{vector}>, Element{}>{{}}, ", self.name),
        }
    }
}

/// A tile in shared memory.
struct Smem {
    layout: String,
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
    several: bool,
}

impl Common<'_> {
    fn inputs(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| !t.output)
    }

    /// The inputs that are turned in shared memory.
    fn turned(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| t.turned.is_some())
    }

    fn outputs(&self) -> impl Iterator<Item = &Operand> {
        self.tensors.iter().filter(|t| t.output)
    }

    /// `Y`, whose coordinates and addresses stand for all.
    fn last(&self) -> &Operand {
        &self.tensors[self.tensors.len() - 1]
    }

    /// All fragments, inputs first.
    fn fragments(&self) -> String {
        self.tensors.iter().map(|t| format!("r{}", t.name)).collect::<Vec<_>>().join(", ")
    }

    /// The function of what `r..` hold at `index`, which is empty where they are single elements.
    fn call(&self, index: &str) -> String {
        let at = if index.is_empty() { String::new() } else { format!("({index})") };
        let arguments: Vec<String> =
            self.inputs().map(|t| t.convert.replace("@", &format!("r{}{at}", t.name))).collect();
        format!("op({})", arguments.join(", "))
    }

    /// Element `index` of the output fragments, from `y`.
    fn store(&self, number: &usize, output: &Operand) -> String {
        let value = if self.several { format!("get<{number}>(y)") } else { "y".to_owned() };
        output.convert.replace("@", &value)
    }
}

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
    /// Bytes of shared memory.
    smem: u64,
    thr_in: String,
    val_in: String,
    thr_out: String,
    val_out: String,
}

fn operand(decision: &Decision, tensor: &Tensor, helpers: &mut Helpers) -> Operand {
    let param = tensor.param();
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
    let (m, n) = if tensor.class == Class::Transposed { ("_1{}".to_owned(), n) } else { (m, n) };
    let element = tensor.dtype.cxx();
    let bytes = tensor.dtype.bytes().0 * decision.vec as u64;
    let moves = matches!(tensor.class, Class::Contiguous | Class::Transposed);
    let turned = match &decision.body {
        Body::Transposed(turn) => {
            turn.shared.iter().find(|s| decision.tensors[s.tensor].name == tensor.name).map(|s| {
                let layout = match s.swizzle {
                    Some(swizzle) => emit::swizzled_type(swizzle, &turn.layout),
                    None => emit::layout_type(&turn.layout),
                };
                let worst = |access: usize| s.analysis.accesses.get(access).map_or(0, |access| access.worst);
                Smem { layout, alignment: s.analysis.alignment.0, store: worst(0), load: worst(1) }
            })
        }
        _ => None,
    };
    Operand {
        name: tensor.name,
        param,
        pointee: format!("Element{}{}", tensor.name, if tensor.output { "" } else { " const" }),
        element,
        bytes: tensor.dtype.bytes().0,
        vector: if moves { format!("uint{}_t", 8 * bytes) } else { String::new() },
        strides: format!("make_stride({m}, {n})"),
        convert: if tensor.output { helpers.store(tensor.dtype, "@") } else { helpers.load(tensor.dtype, "@") },
        output: tensor.output,
        turned,
    }
}

fn common<'a>(decision: &Decision, plan: &'a Plan, template: &str) -> Common<'a> {
    let compute = decision.checked.compute();
    let mut helpers = Helpers::new(compute);
    let functor = decision.checked.functor("Op", &mut helpers);
    let tensors: Vec<Operand> = decision.tensors.iter().map(|t| operand(decision, t, &mut helpers)).collect();
    let m_rank = decision.m_rank();
    let modes = |stem: &str| (0..m_rank).map(|i| format!("{stem}{i}")).collect::<Vec<_>>().join(",");
    let scalars: Vec<String> = decision.recipe.function.scalars().iter().map(|s| format!("params.{s}")).collect();
    Common {
        banner: emit::banner(plan, template),
        plan,
        function: decision.recipe.function.to_string(),
        compute: compute.cxx(),
        helpers: helpers.to_string(),
        functor,
        scalars: scalars.join(", "),
        tensors,
        shape_m: match m_rank {
            1 => "params.m".to_owned(),
            _ => format!("make_shape({})", modes("params.m").replace(',', ", ")),
        },
        modes_m: if m_rank == 1 { String::new() } else { format!(", M = ({})", modes("M")) },
        vec: decision.vec,
        unroll: decision.unroll,
        vec_unroll: emit::shape_type([decision.vec, decision.unroll]),
        several: decision.outputs().count() > 1,
    }
}

/// A compact layout of threads or vectors, the first mode fastest or the last.
fn compact([m, n]: [i64; 2], stride: [i64; 2]) -> String {
    match format!("({m},{n}):({},{})", stride[0], stride[1]).parse::<Layout>() {
        Ok(layout) => emit::layout_type(&layout),
        Err(defect) => unreachable!("({m},{n}):{stride:?} is a layout: {defect}"),
    }
}

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let threads = i64::from(decision.threads);
    let vec = decision.vec;
    match &decision.body {
        Body::Naive => emit::text(&Naive { c: common(decision, plan, "elementwise_apply/naive.cuh") }),
        Body::Vectorized => emit::text(&Vectorized {
            c: common(decision, plan, "elementwise_apply/vectorized.cuh"),
            cta_vectors: compact([threads, decision.unroll], [1, threads]),
            tiler: emit::shape_type([1, vec]),
        }),
        Body::Tv { tile, val_layout, remapped } => emit::text(&Tv {
            c: common(decision, plan, "elementwise_apply/tv.cuh"),
            thr_layout: emit::layout_type(&decision.recipe.thr_layout),
            val_layout: emit::layout_type(val_layout),
            tiler: emit::shape_type(tile.tile),
            tv_layout: emit::layout_type(&tile.tv),
            tv_frag: emit::layout_type(&tile.frag),
            values: tile.values.iter().product(),
            tile: tile.tile,
            tile_size: tile.tile[0] * tile.tile[1],
            remapped: *remapped,
        }),
        Body::Transposed(turn) => emit::text(&Transposed {
            c: common(decision, plan, "elementwise_apply/transposed.cuh"),
            tiler: emit::shape_type(turn.tile),
            tile: turn.tile,
            smem: turn.smem().0,
            thr_in: compact(turn.thr_in, [1, turn.thr_in[0]]),
            val_in: compact([vec, 1], [1, vec]),
            thr_out: compact(turn.thr_out, [turn.thr_out[1], 1]),
            val_out: compact([1, vec], [vec, 1]),
        }),
    }
}
