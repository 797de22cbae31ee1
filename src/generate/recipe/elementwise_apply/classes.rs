//! Whether the tensors are those of the function, which mode is N, and what each tensor is to the kernel's text.

use super::decide::{Class, Tensor};
use super::{ElementwiseApply, Variant};
use crate::diagnostic::Code;
use crate::plan::ModeStride;
use crate::plan::checks::Checks;
use crate::recipe::{Names, TensorSpec};
use crate::view::MAX_RANK;

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// As many tensors as the function has inputs and outputs, all of one rank, with strides that tensors can have. The rank.
pub(super) fn tensors_fit(
    recipe: &ElementwiseApply,
    names: &Names,
    outputs: &[&'static str],
    checks: &mut Checks,
) -> Option<usize> {
    let mut fit = true;
    let counts = [
        ("input", recipe.inputs.len(), recipe.function.inputs()),
        ("output", recipe.outputs.len(), recipe.function.outputs()),
    ];
    for (what, found, required) in counts {
        if found != required {
            fit = false;
            checks.push(
                Code::TensorCount,
                format!("{found} {what} tensor{}, `{}`", plural(found), recipe.function),
                format!("{required} {what} tensor{}", plural(required)),
                "each input of the function reads one tensor, and each output writes one",
                match what {
                    "input" => {
                        "list as many in `in`; an input that is not used stands before the expression: |a, b| a".into()
                    }
                    _ => "list as many in `out`, or omit `out`".into(),
                },
            );
        }
    }
    let named = || (names.tensors.iter().zip(&recipe.inputs)).chain(outputs.iter().zip(&recipe.outputs));
    let rank = recipe.outputs.first()?.strides.len();
    for (name, spec) in named() {
        if spec.strides.len() != rank || !(1..=MAX_RANK).contains(&rank) {
            fit = false;
            checks.push(
                Code::TensorRank,
                format!("{name} = {spec} of rank {}, the first output of rank {rank}", spec.strides.len()),
                format!("one rank, 1 to {MAX_RANK}"),
                "a coordinate names one element of each tensor",
                "give a tensor with fewer modes a stride of 0 along the others: f32:(0,1) is one row for all".into(),
            );
        }
        if spec.strides.iter().filter(|s| **s == ModeStride::Unit).count() > 1 {
            fit = false;
            checks.push(
                Code::TensorStride,
                format!("{name} = {spec}"),
                "at most one mode of stride 1".into(),
                "two coordinates would share an element",
                "`?` for the stride that the launch gives".into(),
            );
        }
    }
    for (name, spec) in outputs.iter().zip(&recipe.outputs).filter(|(_, s)| s.strides.contains(&ModeStride::Broadcast))
    {
        fit = false;
        checks.push(
            Code::TensorStride,
            format!("output {name} = {spec}"),
            "no stride of 0 in an output".into(),
            "threads of different coordinates would write one element, in any order",
            "a reduction is another kernel; here every coordinate has an element of its own".into(),
        );
    }
    fit.then_some(rank)
}

/// Which mode is N: the one along which the first output is contiguous; else that of the most other tensors; else the last.
/// The others are M, the last of them innermost.
pub(super) fn modes(recipe: &ElementwiseApply, rank: usize) -> (usize, Vec<usize>) {
    let unit = |spec: &TensorSpec| spec.strides.iter().position(|s| *s == ModeStride::Unit);
    let votes = |mode: usize| recipe.inputs.iter().chain(&recipe.outputs).filter(|t| unit(t) == Some(mode)).count();
    let n_mode =
        recipe.outputs.first().and_then(unit).or_else(|| (0..rank).max_by_key(|m| (votes(*m), *m))).unwrap_or(rank - 1);
    let inner_first: Vec<usize> = (0..rank).rev().filter(|m| *m != n_mode).collect();
    (n_mode, inner_first)
}

/// Whether an input is contiguous along another mode than N.
pub(super) fn is_turned(spec: &TensorSpec, n_mode: usize) -> bool {
    let strides = &spec.strides;
    strides[n_mode] == ModeStride::Dynamic && strides.contains(&ModeStride::Unit)
}

/// The mode along which the inputs that are turned are contiguous: that of the most bytes, the innermost of equals.
pub(super) fn turned_mode(recipe: &ElementwiseApply, n_mode: usize) -> Option<usize> {
    let along =
        |mode: usize| recipe.inputs.iter().filter(move |i| is_turned(i, n_mode) && i.strides[mode] == ModeStride::Unit);
    let rank = recipe.outputs.first()?.strides.len();
    let bytes = |mode: usize| along(mode).map(|input| input.dtype.bytes().0).sum::<u64>();
    (0..rank).filter(|mode| bytes(*mode) > 0).max_by_key(|mode| (bytes(*mode), *mode))
}

pub(super) fn variant(recipe: &ElementwiseApply, n_mode: usize, checks: &mut Checks) -> Option<Variant> {
    let rank = recipe.outputs.first()?.strides.len();
    let contiguous = |spec: &TensorSpec| spec.strides[n_mode] == ModeStride::Unit;
    let can_turn = turned_mode(recipe, n_mode).is_some() && recipe.outputs.iter().all(contiguous);
    let refuse = |checks: &mut Checks, required: &str, because: &str| {
        checks.push(
            Code::Variant,
            format!("variant = {}, tensors of rank {rank}, first output {}", recipe.variant, recipe.outputs[0]),
            required.into(),
            because,
            "variant=auto takes what the tensors allow".into(),
        );
        None
    };
    match recipe.variant {
        Variant::Auto if can_turn => Some(Variant::Transposed),
        Variant::Auto => Some(Variant::Vectorized),
        Variant::Transposed if !can_turn => refuse(
            checks,
            "an input that is contiguous along another mode than the outputs, and outputs that are contiguous along one mode",
            "the variant transposes tiles of such inputs in shared memory; other inputs need no transposition",
        ),
        Variant::Tv | Variant::Remapped if rank > 2 => refuse(
            checks,
            "tensors of rank 1 or 2",
            "a thread-value layout covers a tile of a matrix; higher ranks are walked vector by vector",
        ),
        variant => Some(variant),
    }
}

pub(super) fn classify(
    recipe: &ElementwiseApply,
    names: &Names,
    outputs: &[&'static str],
    n_mode: usize,
    m_mode: Option<usize>,
    variant: Variant,
) -> Vec<Tensor> {
    let class = |spec: &TensorSpec| match spec.strides[n_mode] {
        ModeStride::Unit => Class::Contiguous,
        ModeStride::Broadcast => Class::Broadcast,
        ModeStride::Dynamic => match m_mode {
            Some(m) if variant == Variant::Transposed && spec.strides[m] == ModeStride::Unit => Class::Transposed,
            _ => Class::Strided,
        },
    };
    let tensor = |output: bool| {
        move |((name, param), spec): ((&&'static str, String), &TensorSpec)| Tensor {
            name,
            param,
            dtype: spec.dtype,
            class: class(spec),
            output,
        }
    };
    let inputs = names.tensors.iter().zip(names.params.iter().cloned()).zip(&recipe.inputs).map(tensor(false));
    let outputs = outputs.iter().map(|name| (name, name.to_ascii_lowercase()));
    inputs.chain(outputs.zip(&recipe.outputs).map(tensor(true))).collect()
}
