//! What a launch of a product gives its kernel: addresses, strides, extents and scalars, each with its field.

use crate::plan::{Int, IntOp, ModeStride, Operand, ParamStruct, ParamType, ParamValue, Rule};
use crate::view::{Access, ViewRef};

/// A field of the parameter struct, with its value in a launch.
pub(crate) struct Field {
    name: String,
    ty: ParamType,
    doc: String,
    pub(crate) value: ParamValue,
}

impl Field {
    pub(crate) fn new(name: impl Into<String>, doc: impl Into<String>, value: ParamValue) -> Self {
        let ty = match value {
            ParamValue::Ptr(_) => ParamType::MutPtr,
            ParamValue::I32(_) => ParamType::I32,
            ParamValue::I64(_) => ParamType::I64,
            ParamValue::F32(_) => ParamType::F32,
            ParamValue::F64(_) => ParamType::F64,
            ParamValue::TensorMap(_) => ParamType::TensorMap,
        };
        Self { name: name.into(), ty, doc: doc.into(), value }
    }

    /// A 32-bit number, which a launch that gives a larger one is refused for.
    pub(crate) fn number(name: &str, doc: &str, value: i64) -> Self {
        Self { ty: ParamType::I32, ..Self::new(name, doc, ParamValue::I64(value)) }
    }

    /// Where an operand lies.
    pub(crate) fn address(operand: &Operand, view: Option<&ViewRef>) -> Self {
        let ty = if operand.access == Access::Write { ParamType::MutPtr } else { ParamType::ConstPtr };
        let value = ParamValue::Ptr(view.map_or(0, |view| view.ptr));
        Self { ty, ..Self::new(&operand.param, format!("{}, {}", operand.name, operand.dtype), value) }
    }

    /// The strides of an operand that the launch gives.
    pub(crate) fn strides(operand: &Operand, view: Option<&ViewRef>) -> Vec<Self> {
        let modes = stride_params(operand).into_iter().zip(["first", "second", "batch"]).enumerate();
        let strides = modes.filter_map(|(mode, (name, which))| {
            let doc = format!("elements from one coordinate of the {which} mode to the next, in {}", operand.name);
            let stride = ParamValue::I64(view.map_or(0, |view| view.layout.stride()[mode]));
            name.map(|name| Self::new(name, doc, stride))
        });
        strides.collect()
    }

    /// M, N, K and, where there are batches, L.
    pub(crate) fn extents(extents: [i64; 4], batched: bool) -> Vec<Self> {
        let docs = [("m", "M"), ("n", "N"), ("k", "K; 0 where nothing of A and B is asked for"), ("l", "L")];
        let all = docs.into_iter().zip(extents).take(if batched { 4 } else { 3 });
        all.map(|((name, doc), extent)| Self::number(name, doc, extent)).collect()
    }

    /// The run-time scalars.
    pub(crate) fn scalars(names: &[String], values: &[f64]) -> Vec<Self> {
        let scalars = names.iter().zip(values);
        let doc = "run-time scalar of the epilogue";
        scalars.map(|(name, value)| Self::new(name, doc, ParamValue::F32(*value as f32))).collect()
    }

    /// The struct that has these fields.
    pub(crate) fn structure(fields: Vec<Self>) -> ParamStruct {
        ParamStruct::new(&fields.into_iter().map(|field| (field.name, field.ty, field.doc)).collect::<Vec<_>>())
    }
}

/// Whether vectors of `vec` elements at multiples of `vec` along the contiguous mode are aligned, at every coordinate of the others:
/// of A `(M,K)`, B `(K,N)`, or what is `(M,N)`.
pub(crate) fn aligned(rule: &Rule, operand: &Operand, vec: i64) -> Int {
    let modes = match operand.name {
        "A" => ["m", "k", "l"],
        "B" => ["k", "n", "l"],
        _ => ["m", "n", "l"],
    };
    // The stride of a mode with one coordinate is never used.
    let steps = stride_params(operand).into_iter().zip(modes).filter_map(|(stride, mode)| {
        let steps = rule.param(&stride?).divides_by(vec);
        Some(rule.param(mode).at_most(1).op(IntOp::Or, steps))
    });
    let address = rule.param(&operand.param).divides_by(operand.dtype.bytes().0 as i64 * vec);
    Int::all([address].into_iter().chain(steps))
}

/// The strides that the launch gives, each with the name of its parameter and its mode.
pub(crate) fn stride_params(operand: &Operand) -> Vec<Option<String>> {
    let dynamic = |mode: usize| operand.strides.get(mode) == Some(&ModeStride::Dynamic);
    let name = |mode: usize| match mode {
        2 => format!("batch_{}", operand.param),
        // The one stride of a matrix that is not 1 is its leading dimension.
        1 if dynamic(0) => format!("inc_{}", operand.param),
        _ => format!("ld{}", operand.param),
    };
    (0..operand.strides.len()).map(|mode| dynamic(mode).then(|| name(mode))).collect()
}
