//! The epilogue of a product: whether the function fits the tensors, and which tensors there are.

use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::expr::{Compute, Function};
use crate::plan::checks::{self, Checks};
use crate::plan::{ModeStride, Operand, Product};
use crate::recipe::TensorSpec;
use crate::recipe::product::Major;
use crate::view::Access;

/// Names of auxiliary tensors in the emitted text.
const AUX: [&str; 6] = ["Aux0", "Aux1", "Aux2", "Aux3", "Aux4", "Aux5"];

/// The epilogue of a recipe.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<'a> {
    pub(crate) function: &'a Function,
    pub(crate) aux: &'a [TensorSpec],
    pub(crate) batched: bool,
    /// Outputs that the family's kernels have, at most: D, and E.
    pub(crate) outputs: usize,
}

impl Epilogue<'_> {
    /// The product with this epilogue, if it is one.
    pub(crate) fn product(&self, checks: &mut Checks) -> Option<Product> {
        let checked = checks::traced(checks, self.function, Compute::F32);
        let fits = self.signature(checks) & self.strides(checks);
        checked.filter(|_| fits).map(|checked| Product::new(checked, self.batched))
    }

    fn signature(&self, checks: &mut Checks) -> bool {
        let (function, aux) = (self.function, self.aux.len());
        let (inputs, outputs) = (function.inputs(), function.outputs());
        checks.require(
            inputs > 0 && (1..=self.outputs).contains(&outputs) && aux == inputs.saturating_sub(2),
            Code::TensorCount,
            format!("`{function}` of {inputs} inputs and {outputs} outputs, {aux} auxiliary tensors"),
            match self.outputs {
                1 => "an input for the accumulator, one for C, one for each auxiliary tensor, and one output",
                _ => "an input for the accumulator, one for C, one for each auxiliary tensor, and an output, or two",
            },
            match self.outputs {
                1 => {
                    "the epilogue computes an element of D from the accumulator, the element of C, and elements of the auxiliary \
                     tensors, in this order; they are a, b, c, .. unless it names them"
                }
                _ => {
                    "the epilogue computes an element of D, and one of E where there are two, from the accumulator, the element of C, \
                     and elements of the auxiliary tensors, in this order; they are a, b, c, .. unless it names them"
                }
            },
            "list as many tensors in `aux`; name the inputs in front, those that are not used too: |a, c| a + c adds C, \
             |a, c, bias| a + bias the first tensor of `aux`",
        )
    }

    fn strides(&self, checks: &mut Checks) -> bool {
        let (rank, modes, example) = match self.batched {
            true => (3, "(M,N,L)", "f32:(0,1,0) is one row for all"),
            false => (2, "(M,N)", "f32:(0,1) is one row for all"),
        };
        let mut fits = true;
        for (name, spec) in AUX.iter().zip(self.aux) {
            let units = spec.strides.iter().filter(|s| **s == ModeStride::Unit).count();
            fits &= checks.require(
                spec.strides.len() == rank && units <= 1,
                if spec.strides.len() == rank { Code::TensorStride } else { Code::TensorRank },
                format!("{name} = {spec}"),
                &format!("strides along {modes}, at most one of them 1"),
                "a coordinate of D names one element of each auxiliary tensor",
                example,
            );
        }
        fits
    }

    /// The operands: A, B, C if it is read, the auxiliary tensors, E if there is a second output, and D last. A and B
    /// have one type; C, D and E have another. E lies like D.
    pub(crate) fn operands(&self, has_c: bool, dtypes: [DType; 2], [a, b, d]: [Major; 3]) -> Vec<Operand> {
        let operand = |name, dtype, strides: &[ModeStride], access| {
            let batch = self.batched && strides.len() < 3;
            let strides = [strides, if batch { &[ModeStride::Dynamic] } else { &[] }].concat();
            Operand::new(name, dtype, access, &strides)
        };
        let [factor, out] = dtypes;
        let mut operands =
            vec![operand("A", factor, &a.strides(), Access::Read), operand("B", factor, &b.strides(), Access::Read)];
        // Each element of C and of the auxiliary tensors is read by the thread that writes the same element of D, before.
        let c = has_c.then(|| operand("C", out, &d.strides(), Access::Read));
        let aux = AUX.iter().zip(self.aux).map(|(name, spec)| operand(name, spec.dtype, &spec.strides, Access::Read));
        operands.extend(c.into_iter().chain(aux).map(|read| Operand { in_place: true, ..read }));
        let written = |name| operand(name, out, &d.strides(), Access::Write);
        operands.extend((self.function.outputs() > 1).then(|| written("E")));
        operands.push(written("D"));
        operands
    }
}
