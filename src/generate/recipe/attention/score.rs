//! The function of a score: what it is given, and the tensors that it reads.

use std::borrow::Cow;

use super::Attention;
use crate::diagnostic::Code;
use crate::expr::{Checked, Compute, Emptied, Function};
use crate::plan::checks::{self, Checks};
use crate::plan::{ModeStride, Operand};
use crate::recipe::Names;
use crate::view::Access;

/// The score, its batch, head, query and key.
pub(super) const PLACES: usize = 5;

/// Operands and parameters that the family has.
const OWN: [&str; 25] = [
    "Q", "K", "V", "O", "Lse", "Sinks", "StartsQ", "StartsK", "B", "SQ", "SK", "HQ", "HK", "Starts", "TQ", "TK",
    "Scale", "Table", "Lengths", "Entries", "Pages", "Page", "Keys", "ScaleK", "ScaleV",
];

/// Scalars of a window, and tensors that the templates name themselves.
const OF_TEXT: [&str; 4] = ["Left", "Right", "S", "P"];

/// What the tensors are called whose inputs have no names of their own.
const AUX: [&str; 3] = ["aux0", "aux1", "aux2"];

/// Where the function of scores empties a step, by bounds of its batches, heads, queries and keys.
pub(super) fn emptied(score: &Checked) -> Option<Emptied> {
    score.emptied(&[1, 2, 3, 4])
}

/// Whether a tensor with these strides has one element for all keys of a row.
pub(super) fn is_of_rows(strides: &[ModeStride]) -> bool {
    strides.last() == Some(&ModeStride::Broadcast)
}

impl Attention {
    /// Whether the function of scores empties steps.
    pub(super) fn empties(&self) -> bool {
        self.score.check(Compute::F32).is_ok_and(|score| emptied(&score).is_some())
    }

    /// Whether scores are anything but products.
    pub(super) fn is_scored(&self) -> bool {
        !self.score.is_first_input() || !self.aux.is_empty()
    }

    /// Whether the function of scores reads elements that differ by key.
    pub(super) fn reads_keys(&self) -> bool {
        !self.aux.iter().all(|aux| is_of_rows(&aux.strides))
    }

    /// Tensors whose elements of a row's keys do not lie side by side.
    pub(super) fn strided_keys(&self) -> usize {
        self.aux.iter().filter(|aux| aux.strides.last() == Some(&ModeStride::Dynamic)).count()
    }

    pub(super) fn names(&self) -> Names {
        let all: Vec<&str> = OWN.iter().chain(&OF_TEXT).copied().collect();
        let function = &self.score;
        match function.has_names() {
            true => Names::new(&all, &OF_TEXT, function.input_names().skip(PLACES), function),
            false => Names::new(&all, &OF_TEXT, AUX.into_iter().take(self.aux.len()), function),
        }
    }

    /// The tensors that the function reads, one element for each pair of a query and a key of a head.
    pub(super) fn aux_operands(&self) -> Vec<Operand> {
        let names = self.names();
        let named = names.tensors.iter().zip(names.params).zip(&self.aux);
        let of = |((name, param), spec): ((&&'static str, String), &crate::recipe::TensorSpec)| Operand {
            param,
            ..Operand::new(name, spec.dtype, Access::Read, &spec.strides)
        };
        named.map(of).collect()
    }

    /// The function with an input for each place, if it fits its tensors.
    pub(super) fn checked_score(&self, checks: &mut Checks) -> Option<Checked> {
        let (inputs, outputs, aux) = (self.score.inputs(), self.score.outputs(), self.aux.len());
        let fits = outputs == 1 && if aux == 0 { (1..=PLACES).contains(&inputs) } else { inputs == PLACES + aux };
        let fits = checks.require(
            fits,
            Code::TensorCount,
            format!("`{}` of {inputs} inputs and {outputs} outputs, {aux} auxiliary tensors", self.score),
            "the inputs s, b, h, q, k, or the first of them, then one for each tensor of `aux`, and one output",
            "a score is computed from the scaled product, the numbers of its batch, head, query and key, and elements",
            "name the inputs in front: |s, b, h, q, k, bias| s + bias, with aux=f32:(?,?,?,1)",
        ) & self.strides(checks);
        let places = (inputs..PLACES).try_fold(Cow::Borrowed(&self.score), |function, at| {
            function.with_unused_input(at).map(Cow::<Function>::Owned)
        });
        let function = checks.sound("a function has an input for each place", places)?;
        checks::traced(checks, &function, Compute::F32).filter(|_| fits)
    }

    fn strides(&self, checks: &mut Checks) -> bool {
        let modes = self.of_scores();
        let mut fits = true;
        for (name, spec) in self.names().tensors.iter().zip(&self.aux) {
            let units = spec.strides.iter().filter(|stride| **stride == ModeStride::Unit).count();
            let of_rank = spec.strides.len() == modes.len();
            let example = if self.varlen { "f32:(1,0,0)" } else { "f32:(0,1,0,0)" };
            fits &= checks.require(
                of_rank && units <= 1,
                if of_rank { Code::TensorStride } else { Code::TensorRank },
                format!("{name} = {spec}"),
                &format!("strides along ({}), at most one of them 1", modes.join(",")),
                "a score names one element of each auxiliary tensor",
                &format!("{example} is one element for each head"),
            );
        }
        fits
    }
}
