//! What the tensors of a row program are for: elements, rows, groups of a row.

use super::Rows;
use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::expr::rows::{Level, Pair, Passes, Reading, Source, Step};
use crate::expr::{Compute, Function};
use crate::plan::ModeStride;
use crate::plan::checks::Checks;
use crate::recipe::{Names, TensorSpec};

/// What names the rows of an input.
pub(super) const INDEX: &str = "Index";

impl Rows {
    /// The number of the input whose rows an index names.
    fn gathered(&self) -> Option<usize> {
        self.function.input_names().position(|name| self.gather.as_deref() == Some(name))
    }
}

/// One tensor of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: &'static str,
    /// The parameter that holds its address.
    pub(super) param: String,
    pub(super) spec: TensorSpec,
    /// What it has a value for.
    pub(super) level: Level,
    pub(super) output: bool,
    /// Whether an index names its rows.
    pub(super) gathered: bool,
    /// The first traversal that reads it, and the last one; `None` where none does.
    pub(super) read: Option<[usize; 2]>,
}

impl Tensor {
    /// Whether the thread of an element moves it.
    pub(super) fn of_elements(&self) -> bool {
        self.level == Level::Element && (self.output || self.read.is_some())
    }

    /// Whether neighbours along a row are neighbours in memory.
    pub(super) fn is_contiguous(&self) -> bool {
        self.of_elements() && self.spec.strides.get(1) == Some(&ModeStride::Unit)
    }

    /// Whether its rows can wait in shared memory: they are read, each once, and have an element for each column.
    pub(super) fn waits_by_rows(&self) -> bool {
        self.of_elements() && !self.output && !self.spec.strides.contains(&ModeStride::Broadcast)
    }

    /// Whether one row stands for all.
    pub(super) fn is_weight(&self) -> bool {
        self.level == Level::Element && self.spec.strides.first() == Some(&ModeStride::Broadcast)
    }
}

/// What an input has a value for: a vector has one for each row.
fn level_of(spec: &TensorSpec) -> Level {
    if spec.strides.len() == 1 { Level::Row } else { Level::Element }
}

/// The type that the program is computed in: f64 where a tensor is.
pub(super) fn compute(recipe: &Rows) -> Compute {
    let wide = recipe.inputs.iter().chain(&recipe.outputs).any(|spec| spec.dtype == DType::F64);
    if wide { Compute::F64 } else { Compute::F32 }
}

/// How the program is read with these tensors.
fn reading(
    function: &Function,
    inputs: &[TensorSpec],
    outputs: &[TensorSpec],
    compute: Compute,
    keep: bool,
) -> Reading {
    // A vector is one value for a row, or a column where that is reduced. A matrix has what the program has for it.
    let wanted = |(output, spec): (usize, &TensorSpec)| {
        (spec.strides.len() == 1 && !function.is_of_columns(output)).then_some(Level::Row)
    };
    Reading {
        inputs: inputs.iter().map(level_of).collect(),
        outputs: if outputs.is_empty() {
            vec![None; function.outputs()]
        } else {
            outputs.iter().enumerate().map(wanted).collect()
        },
        compute,
        keep,
    }
}

/// Elements in the type and strides of the first input that is no broadcast, vectors of f32 for rows, matrices of f32 for groups.
pub(super) fn usual_outputs(function: &Function, inputs: &[TensorSpec]) -> Vec<TensorSpec> {
    let first = inputs.iter().find(|input| !input.strides.contains(&ModeStride::Broadcast));
    let first = first.cloned().unwrap_or_else(|| TensorSpec::row_major(DType::F32, 2));
    let compute = if first.dtype == DType::F64 { Compute::F64 } else { Compute::F32 };
    let dtype = compute.dtype();
    let Ok(passes) = Passes::of(function, &reading(function, inputs, &[], compute, true)) else {
        return vec![first; function.outputs()];
    };
    let usual = |level| match level {
        Level::Row | Level::Column => TensorSpec { dtype, strides: vec![ModeStride::Unit] },
        Level::Group(_) => TensorSpec::row_major(dtype, 2),
        Level::Element | Level::Scalar => first.clone(),
    };
    passes.outputs().iter().map(|output| usual(output.level)).collect()
}

/// Whether the input whose rows an index names is there, and a matrix with rows.
fn fit_gather(recipe: &Rows, checks: &mut Checks) -> bool {
    let Some(name) = &recipe.gather else { return true };
    let inputs: Vec<&str> = recipe.function.input_names().collect();
    let spec = recipe.gathered().and_then(|input| recipe.inputs.get(input));
    let found = spec.map_or_else(|| format!("gather={name}"), |spec| format!("gather={name}, {name} = {spec}"));
    let is_matrix = |spec: &TensorSpec| spec.strides.len() == 2 && spec.strides[0] != ModeStride::Broadcast;
    let (because, help) = ("an index names one of several rows", "gather=x in=f32:(?,1) expr=|x| x");
    let required = format!("a matrix among {}, with a row for each number", inputs.join(", "));
    checks.require(spec.is_some_and(is_matrix), Code::TensorRank, found, &required, because, help)
}

/// As many tensors as the function has inputs and outputs, of strides that they can have.
pub(super) fn fit(recipe: &Rows, names: &Names, outputs: &[&'static str], checks: &mut Checks) -> bool {
    let mut fit = fit_gather(recipe, checks);
    let counts = [
        ("in", recipe.inputs.len(), recipe.function.inputs()),
        ("out", recipe.outputs.len(), recipe.function.outputs()),
    ];
    let mut require = |holds, code, found: String, required: &str, because: &str, help: &str| {
        fit &= checks.require(holds, code, found, required, because, help);
    };
    for (key, found, required) in counts {
        let (because, help) = ("each value has a tensor", format!("list as many in `{key}`: {key}=f32:(?,1)"));
        let tensors = format!("{found} tensors in `{key}`, `{}`", recipe.function);
        require(found == required, Code::TensorCount, tensors, &required.to_string(), because, &help);
    }
    let has_modes = |spec: &TensorSpec| (1..=2).contains(&spec.strides.len()) && spec.strides != [ModeStride::Unit; 2];
    for (name, spec) in names.tensors.iter().zip(&recipe.inputs) {
        let because = "an input has rows and columns, or one value for each row; what repeats has stride 0";
        let help = "(?,1) is a matrix, (0,1) one row for all, 1 a vector with one value for each row";
        let required = "one or two modes, at most one of stride 1";
        require(has_modes(spec), Code::TensorRank, format!("{name} = {spec}"), required, because, help);
    }
    for (name, spec) in outputs.iter().zip(&recipe.outputs) {
        let once = has_modes(spec) && !spec.strides.contains(&ModeStride::Broadcast);
        let required = "one mode for rows, or two for elements and groups, none of stride 0, at most one of stride 1";
        let because = "each output has a place of its own for each of its values";
        let help = "(?,1) is a matrix, 1 a vector with one value for each row";
        require(once, Code::TensorStride, format!("{name} = {spec}"), required, because, help);
    }
    fit
}

/// Two reductions of a row in one traversal, where the text has a state for both: exponentials below a maximum.
fn online(function: &Function, reading: &Reading) -> Option<Passes> {
    let passes = Passes::online(function, reading).ok()?;
    let exponentials = |pair: &Pair| {
        let of_row = passes.values()[pair.first].level == Level::Row;
        of_row && pair.online.exponential().is_some()
    };
    (!passes.pairs().is_empty() && passes.pairs().iter().all(exponentials)).then_some(passes)
}

/// The program as passes over its tensors: where a row is held in registers, costly results of an element may be kept; else they are
/// computed again, and traversals are few.
pub(super) fn passes(
    recipe: &Rows,
    [held, keep]: [bool; 2],
    outputs: &[&'static str],
    checks: &mut Checks,
) -> Option<Passes> {
    let mut reading = reading(&recipe.function, &recipe.inputs, &recipe.outputs, compute(recipe), keep);
    if let Ok(own) = Passes::of(&recipe.function, &reading) {
        // A matrix has a row's value for each element.
        let of_rows = own.outputs().iter().zip(&recipe.outputs).map(|(output, spec)| {
            let is_matrix = spec.strides.len() == 2 && output.level == Level::Row;
            is_matrix.then_some(Level::Element)
        });
        reading.outputs.iter_mut().zip(of_rows).for_each(|(wanted, of)| *wanted = wanted.or(of));
    }
    let together = if held { None } else { online(&recipe.function, &reading) };
    let passes = match together.map_or_else(|| Passes::of(&recipe.function, &reading), Ok) {
        Ok(passes) => passes,
        Err(errors) => {
            for e in errors {
                checks.push(Code::Expression, e.found, e.required, &e.because, e.help);
            }
            return None;
        }
    };
    for (number, _) in passes.columns() {
        let found = format!("{} = {}", outputs[number], recipe.outputs[number]);
        let (required, because) = ("one mode, (N)", "a result of columns has one value for each column");
        let holds = recipe.outputs[number].strides.len() == 1;
        checks.require(holds, Code::TensorRank, found, required, because, "out=f32:1").then_some(())?;
    }
    let of_elements = reading.inputs.iter().chain(passes.outputs().iter().map(|o| &o.level));
    let any = of_elements.into_iter().any(|level| *level == Level::Element);
    let found = format!("`{}`, {}", recipe.function, outputs.join(", "));
    let (required, because) = ("a tensor (M,N) of elements", "its columns are the row's");
    let holds = checks.require(any, Code::TensorRank, found, required, because, "in=f32:(?,1), or an output f32:(?,1)");
    holds.then_some(passes)
}

/// The tensors, inputs first, with the traversals that read them.
pub(super) fn tensors(recipe: &Rows, names: &Names, outputs: &[&'static str], passes: &Passes) -> Vec<Tensor> {
    let read = |input: usize| {
        let reads = |(number, part): (usize, &crate::expr::rows::Part)| {
            let unused = part.function.function().unused_inputs();
            let at = part.reads.iter().position(|source| *source == Source::Input(input))?;
            (!unused.contains(&at)).then_some(number)
        };
        // A step without elements counts as the traversal before it.
        let mut traversal = 0;
        let parts = passes.steps().iter().map(|step| match step {
            Step::Traverse(of) => {
                traversal += 1;
                (traversal - 1, &of.part)
            }
            Step::Values(of) => (traversal, &of.part),
        });
        let all: Vec<usize> = parts.collect::<Vec<_>>().into_iter().filter_map(reads).collect();
        Some([*all.first()?, *all.last()?])
    };
    let inputs = names.tensors.iter().zip(&names.params).zip(&recipe.inputs).zip(passes.inputs()).enumerate();
    let inputs = inputs.map(|(number, (((name, param), spec), level))| Tensor {
        name,
        param: param.clone(),
        spec: spec.clone(),
        level: *level,
        output: false,
        gathered: recipe.gathered() == Some(number),
        read: read(number),
    });
    let index = recipe.gather.as_ref().map(|_| Tensor {
        name: INDEX,
        param: INDEX.to_ascii_lowercase(),
        spec: TensorSpec { dtype: DType::I32, strides: vec![ModeStride::Unit] },
        level: Level::Row,
        output: false,
        gathered: false,
        read: Some([0, 0]),
    });
    let outputs = outputs.iter().zip(&recipe.outputs).zip(passes.outputs()).map(|((name, spec), output)| Tensor {
        name,
        param: name.to_ascii_lowercase(),
        spec: spec.clone(),
        level: output.level,
        output: true,
        gathered: false,
        read: None,
    });
    inputs.chain(index).chain(outputs).collect()
}
