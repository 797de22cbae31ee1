//! The epilogue of a product: whether the function fits the tensors, and which tensors there are.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::expr::{Compute, Function, MAX_INPUTS};
use crate::plan::checks::{self, Checks};
use crate::plan::{Groups, ModeStride, Operand, Product};
use crate::recipe::product::Major;
use crate::recipe::{Names, TensorSpec};
use crate::view::Access;

/// The operands that a product has, besides the auxiliary tensors.
const OPERANDS: [&str; 5] = ["A", "B", "C", "D", "E"];
/// Tensors that the templates of products name themselves.
const OF_TEXT: [&str; 13] =
    ["Counts", "Gather", "I", "Offsets", "P", "Parts", "S", "Scatter", "Sum", "T", "V", "W", "X"];
/// What the auxiliary tensors are called whose inputs have no names of their own.
const AUX: [&str; 7] = ["aux0", "aux1", "aux2", "aux3", "aux4", "aux5", "aux6"];

/// What the text calls the auxiliary tensors, the function's last inputs, and the scalars.
fn names_of(epilogue: &Epilogue<'_>) -> Names {
    let Epilogue { function, aux, others, .. } = epilogue;
    let firsts = epilogue.first_inputs();
    let operands = [&OPERANDS[..], others].concat();
    match function.has_names() {
        true => {
            Names::new(&operands, &OF_TEXT, firsts.iter().filter_map(|at| function.input_names().nth(*at)), function)
        }
        false => Names::new(&operands, &OF_TEXT, AUX.into_iter().take(aux.len()), function),
    }
}

/// The epilogue of a recipe.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<'a> {
    pub(crate) function: &'a Function,
    pub(crate) aux: &'a [TensorSpec],
    pub(crate) batched: bool,
    pub(crate) groups: Groups,
    /// Outputs that the family's kernels have, at most: D, and E.
    pub(crate) outputs: usize,
    /// Accumulators that an element of D is made of, the function's first inputs: 1, or 2 neighbours along N.
    pub(crate) sums: usize,
    /// The type that the function is computed in.
    pub(crate) compute: Compute,
    /// Operands that the family's kernels have besides.
    pub(crate) others: &'a [&'static str],
}

impl Epilogue<'_> {
    /// The product with this epilogue, if it is one.
    pub(crate) fn product(&self, checks: &mut Checks) -> Option<Product> {
        let fits = self.signature(checks) & self.strides(checks);
        let checked = checks::traced(checks, &self.with_c(), self.compute);
        let names = names_of(self);
        let product = |checked| Product::new(checked, names.scalars, self.batched, self.sums).grouped(self.groups);
        checked.filter(|_| fits).map(product)
    }

    /// Inputs of the function that elements of a tensor of `aux` are: of a pair two, where it lies along N.
    fn inputs_of(&self, spec: &TensorSpec) -> usize {
        if spec.strides.get(1) == Some(&ModeStride::Broadcast) { 1 } else { self.sums }
    }

    /// Inputs of the function that are of `aux`.
    fn of_aux(&self) -> usize {
        self.aux.iter().map(|spec| self.inputs_of(spec)).sum()
    }

    /// The first input of each tensor of `aux`, after which it is called.
    fn first_inputs(&self) -> Vec<usize> {
        let before = self.function.inputs().saturating_sub(self.of_aux());
        let next = |at: &mut usize, spec| Some(core::mem::replace(at, *at + self.inputs_of(spec)));
        self.aux.iter().scan(before, next).collect()
    }

    /// The function with an input for C, unused where each of its own has a tensor of `aux`.
    fn with_c(&self) -> Cow<'_, Function> {
        match self.c() {
            Some(false) => self.function.with_unused_input(self.sums).map_or(Cow::Borrowed(self.function), Cow::Owned),
            _ => Cow::Borrowed(self.function),
        }
    }

    /// An input for the accumulator, and for each further one a tensor: of `aux`, but for a second input that is C.
    fn signature(&self, checks: &mut Checks) -> bool {
        let (function, aux) = (self.function, self.aux.len());
        let (inputs, outputs) = (function.inputs(), function.outputs());
        let counts = checks.require(
            inputs >= self.sums && (1..=self.outputs).contains(&outputs) && self.c().is_some(),
            Code::TensorCount,
            format!("`{function}` of {inputs} inputs and {outputs} outputs, {aux} auxiliary tensors"),
            match self.outputs {
                1 => "an input for the accumulator, one for C, one for each auxiliary tensor, and one output",
                _ if self.sums > 1 => {
                    "two inputs for the accumulators of a pair, one for C, two for each auxiliary tensor that lies along N, one for each \
                     other one, and an output, or two"
                }
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
            "list as many tensors in `aux`; name the inputs in front: |a, c| a + c adds C, |a, bias| a + bias the first tensor of \
             `aux`, |a, c, bias| a + c + bias both",
        );
        counts && self.says_c(checks)
    }

    /// Whether the second input is C; `None` where the inputs are not those of the tensors. It is C unless it has another name, and
    /// each input but the accumulator a tensor of `aux`.
    fn c(&self) -> Option<bool> {
        let (inputs, aux) = (self.function.inputs(), self.of_aux());
        let named_otherwise = self.function.input_names().nth(self.sums).is_some_and(|next| !self.is_c(next));
        if named_otherwise && aux + self.sums == inputs && inputs < MAX_INPUTS {
            return Some(false);
        }
        (aux == inputs.saturating_sub(self.sums + 1)).then_some(true)
    }

    /// Whether the input after the accumulators is C by its name. Without names the second one is `b`, the third one `c`.
    fn is_c(&self, name: &str) -> bool {
        name == "c" || self.sums == 1 && name == "b"
    }

    /// A second input with another name than C's is not taken for C: that would ask for a whole matrix where a row is meant.
    fn says_c(&self, checks: &mut Checks) -> bool {
        let function = self.function;
        let at = self.sums;
        let second = function.input_names().nth(at).filter(|_| !function.unused_inputs().contains(&at));
        let Some(second) = second.filter(|_| self.c() == Some(true)) else { return true };
        let row = if self.batched { "f32:(0,1,0)" } else { "f32:(0,1)" };
        let aux = match self.aux.len() {
            0 => "no `aux`".to_owned(),
            several => format!("{several} in `aux`, which is the third input's"),
        };
        checks.require(
            self.is_c(second),
            Code::TensorCount,
            format!("`{function}`: a second input `{second}`, and {aux}"),
            "a tensor of `aux` for each input after the accumulator, or a second input called `c`",
            "`c` is C, a whole matrix like D; `aux` says how any other tensor lies",
            &format!("aux={row} makes `{second}` one row for all rows of D; call it `c` to read a whole matrix"),
        )
    }

    fn strides(&self, checks: &mut Checks) -> bool {
        let (ranks, modes, example) = match self.batched {
            _ if self.groups == Groups::Rows => (2..=3, "(M,N), or (M,N,L)", "f32:(0,1,?) is a row for each group"),
            true => (3..=3, "(M,N,L)", "f32:(0,1,0) is one row for all"),
            false => (2..=2, "(M,N)", "f32:(0,1) is one row for all"),
        };
        let mut fits = true;
        for (name, spec) in names_of(self).tensors.iter().zip(self.aux) {
            let units = spec.strides.iter().filter(|s| **s == ModeStride::Unit).count();
            fits &= checks.require(
                ranks.contains(&spec.strides.len()) && units <= 1,
                if ranks.contains(&spec.strides.len()) { Code::TensorStride } else { Code::TensorRank },
                format!("{name} = {spec}"),
                &format!("strides along {modes}, at most one of them 1"),
                "a coordinate of D names one element of each auxiliary tensor",
                example,
            );
        }
        fits
    }

    /// The operands: A, B, C if it is read, the auxiliary tensors, E if there is a second output, and D last, of the types
    /// of A, of B, and of C, D and E. E lies like D.
    pub(crate) fn operands(&self, has_c: bool, dtypes: [DType; 3], [a, b, d]: [Major; 3]) -> Vec<Operand> {
        let operand = |name, dtype, strides: &[ModeStride], access| {
            let batch = self.groups.have_l(name, self.batched) && strides.len() < 3;
            let strides = [strides, if batch { &[ModeStride::Dynamic] } else { &[] }].concat();
            Operand::new(name, dtype, access, &strides)
        };
        let [of_a, of_b, out] = dtypes;
        let mut operands =
            vec![operand("A", of_a, &a.strides(), Access::Read), operand("B", of_b, &b.strides(), Access::Read)];
        // Each element of C and of the auxiliary tensors is read by the thread that writes the same element of D, before.
        let c = has_c.then(|| operand("C", out, &d.strides(), Access::Read));
        let names = names_of(self);
        let aux =
            names.tensors.iter().zip(names.params).zip(self.aux).map(|((name, param), spec)| Operand {
                param,
                ..operand(name, spec.dtype, &spec.strides, Access::Read)
            });
        operands.extend(c.into_iter().chain(aux).map(|read| Operand { in_place: true, ..read }));
        let ends = self.groups.operand().map(|name| Operand::new(name, DType::I32, Access::Read, &[ModeStride::Unit]));
        operands.extend(ends);
        let written = |name| operand(name, out, &d.strides(), Access::Write);
        operands.extend((self.function.outputs() > 1).then(|| written("E")));
        operands.push(written("D"));
        operands
    }
}
