//! The parameters of a product's kernel: addresses, strides, extents and scalars.

use crate::expr::Compute;
use crate::plan::{Field, Given, Int, IntOp, ModeStride, Operand, ParamStruct, ParamType, Rule};

/// The fields of a product, of tensors that are called A `(M,K)`, B `(K,N)`, and `(M,N)` all others.
pub(crate) struct Fields<'a> {
    pub(crate) operands: &'a [Operand],
    /// The operand that tells L.
    pub(crate) l: Option<usize>,
    /// The run-time scalars, in the type that the epilogue computes in, and the one that makes A and B unread when it is 0.
    pub(crate) scalars: &'a [String],
    pub(crate) alpha: Option<usize>,
    pub(crate) compute: Compute,
}

/// A 32-bit number that follows from the others.
pub(crate) fn number(name: &str, doc: &str) -> Field {
    (name.to_owned(), ParamType::I32, doc.to_owned(), Given::Follows)
}

impl Fields<'_> {
    /// Where the operands lie.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Field> {
        let all = self.operands.iter().enumerate();
        all.map(|(tensor, of)| ParamStruct::address_field(tensor, [of.name, &of.param], of.dtype, of.access))
    }

    /// The strides of the operands that the launch gives.
    pub(crate) fn strides(&self) -> impl Iterator<Item = Field> {
        self.operands.iter().enumerate().flat_map(|(tensor, operand)| {
            let modes = stride_params(operand).into_iter().zip(["first", "second", "batch"]).enumerate();
            modes.filter_map(move |(mode, (name, which))| {
                let doc = format!("elements from one coordinate of the {which} mode to the next, in {}", operand.name);
                Some((name?, ParamType::I64, doc, Given::Stride { tensor, mode }))
            })
        })
    }

    /// M, N, K and, with batches, L.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Field> {
        let k = match self.alpha {
            Some(zero) => Given::ExtentUnless { tensor: 0, mode: 1, zero },
            None => Given::Extent { tensor: 0, mode: 1 },
        };
        let all = [
            ("m", "M", Given::Extent { tensor: 0, mode: 0 }),
            ("n", "N", Given::Extent { tensor: 1, mode: 1 }),
            ("k", "K; 0 where nothing of A and B is asked for", k),
            ("l", "L", Given::Extent { tensor: self.l.unwrap_or(0), mode: 2 }),
        ];
        let all = all.into_iter().take(3 + usize::from(self.l.is_some()));
        all.map(|(name, doc, given)| (name.to_owned(), ParamType::I32, doc.to_owned(), given))
    }

    /// The run-time scalars.
    pub(crate) fn scalars(&self) -> impl Iterator<Item = Field> {
        ParamStruct::scalar_fields(self.scalars, self.compute, "epilogue")
    }
}

/// Whether vectors of `vec` elements at multiples of `vec` along the contiguous mode are aligned, at every coordinate
/// of the other modes. The operand is A `(M,K)`, B `(K,N)`, or `(M,N)`. If `ends` says so for a mode, no address past
/// its last coordinate is computed: a mode of extent 1 then never uses its stride.
pub(crate) fn aligned(rule: &Rule, operand: &Operand, vec: i64, ends: impl Fn(usize) -> bool) -> Int {
    let modes = match operand.name {
        "A" => ["m", "k", "l"],
        "B" => ["k", "n", "l"],
        _ => ["m", "n", "l"],
    };
    let steps = stride_params(operand).into_iter().zip(modes).enumerate().filter_map(|(mode, (stride, extent))| {
        let steps = rule.param(&stride?).divides_by(vec);
        Some(if ends(mode) { rule.param(extent).at_most(1).op(IntOp::Or, steps) } else { steps })
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
