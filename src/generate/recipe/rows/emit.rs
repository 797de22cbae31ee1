//! The text.

use askama::Template;

use super::decide::Decision;
use super::entries::entries;
use super::facts::made;
use super::launch::stride;
use super::sources::{Words, op, result};
use super::tensors::Tensor;
use super::tilings::{along_rows, has_groups};
use crate::emit::{self, Alias, Assertion};
use crate::expr::Helpers;
use crate::expr::rows::{Along, Level, Made, Origin, Reduction, Step, Traversal, Values};
use crate::plan::{ModeStride, Plan};
use crate::tiling::Tiling;

#[derive(Template)]
#[template(path = "rows/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    number: &'static str,
    /// `__fadd_rn` and `__fmul_rn`.
    rounded: [&'static str; 2],
    single: bool,
    helpers: String,
    walks: Vec<Walk>,
    matrices: Vec<Matrix>,
    exchanged: Vec<Reduced>,
    /// The columns of a thread, as this copy has them.
    columns: String,
    parts: Vec<StepText>,
    rows: Vec<Written>,
    groups: Vec<Written>,
    entries: String,
    elements: &'static str,
    grid: String,
}

/// The copies of an entry.
struct Walk {
    name: &'static str,
    whole: bool,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

/// A tensor as the templates name it.
pub(super) struct Matrix {
    pub(super) name: &'static str,
    /// `ElementX const` for a tensor that is read.
    pointee: String,
    element: &'static str,
    bytes: u64,
    pub(super) param: String,
    pub(super) shape: String,
    pub(super) strides: String,
    /// `(M,N)`.
    modes: String,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    /// Loaded ahead of the first traversal.
    Load,
    /// Loaded in the last one.
    Late,
    Store,
    /// One value for a row.
    Row,
    /// Written for rows or groups.
    Value,
    /// Never read, or written by another entry.
    Unused,
}

/// A reduction of a step.
struct Reduced {
    value: usize,
    op: &'static str,
    /// Groups of a vector, and lanes of a group.
    group: Option<[i64; 2]>,
}

/// A step.
struct StepText {
    number: usize,
    comment: String,
    functor: String,
    scalars: String,
    arguments: String,
    /// Whether it is for elements; else once for a row, or for groups of so many elements of a vector.
    traverses: bool,
    every: Option<i64>,
    /// Statements on its result.
    lines: Vec<String>,
    reductions: Vec<Reduced>,
    kept: Vec<usize>,
    last: bool,
    /// New tensors for values of groups: number, groups of a vector.
    of_groups: Vec<(usize, i64)>,
}

/// An output of rows or groups.
struct Written {
    name: &'static str,
    value: String,
    /// Its group, and how many elements of a vector each group has.
    group: u32,
    every: i64,
}

impl Text<'_> {
    /// Whether the text needs that reduction.
    fn has(&self, op: &str) -> bool {
        let of_columns = self.d.passes.columns().map(|(_, reduction)| super::sources::op(reduction));
        let of_rows = self.parts.iter().flat_map(|step| &step.reductions).map(|of| of.op);
        of_rows.chain(of_columns).any(|of| of.starts_with(op))
    }
}

impl StepText {
    /// Whether the threads of a row reduce together.
    fn meets(&self) -> bool {
        self.reductions.iter().any(|of| of.group.is_none())
    }
}

pub(super) fn matrix(decision: &Decision, tensor: &Tensor) -> Matrix {
    let last = decision.passes.traversals().count().saturating_sub(1);
    let kind = match tensor.level {
        Level::Element if tensor.output => Kind::Store,
        Level::Element if tensor.read.is_none() => Kind::Unused,
        Level::Element if decision.schedule.late && tensor.waits(last) => Kind::Late,
        Level::Element => Kind::Load,
        Level::Column => Kind::Unused,
        _ if tensor.output => Kind::Value,
        _ if tensor.read.is_none() => Kind::Unused,
        _ => Kind::Row,
    };
    let of_mode = |(mode, of): (usize, &ModeStride)| match of {
        ModeStride::Unit => "_1{}".to_owned(),
        ModeStride::Broadcast => "_0{}".to_owned(),
        ModeStride::Dynamic => format!("params.{}", stride(&tensor.param, mode)),
    };
    let strides: Vec<String> = tensor.spec.strides.iter().enumerate().map(of_mode).collect();
    let columns = match tensor.level {
        Level::Group(size) => format!("ceil_div(params.n, {size})"),
        _ => "params.n".to_owned(),
    };
    let modes = match tensor.level {
        Level::Group(size) => format!("(M,ceil(N/{size}))"),
        Level::Element => "(M,N)".to_owned(),
        _ => "(M)".to_owned(),
    };
    let shape = if tensor.level == Level::Column {
        "params.n".to_owned()
    } else if strides.len() == 1 {
        "params.m".to_owned()
    } else {
        format!("params.m, {columns}")
    };
    Matrix {
        name: tensor.name,
        pointee: format!("Element{}{}", tensor.name, if tensor.output { "" } else { " const" }),
        element: emit::element(tensor.spec.dtype),
        bytes: tensor.spec.dtype.bytes().0,
        param: tensor.param.clone(),
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({})", strides.join(", ")),
        modes,
        kind,
    }
}

fn reduced(words: &Words<'_>, reduction: Reduction, along: Along, value: usize) -> Reduced {
    let vec = words.decision.schedule.vec;
    let group = match along {
        Along::Row | Along::Column => None,
        Along::Group(size) => Some([words.groups(size), (i64::from(size) / vec).max(1)]),
    };
    Reduced { value, op: op(reduction), group }
}

fn traversal(words: &mut Words<'_>, number: usize, of: &Traversal) -> StepText {
    let outputs = of.makes.len();
    let mut step = step(words, number, &of.part, true);
    step.comment = of.makes.iter().map(made).collect::<Vec<_>>().join(", ");
    for (output, made) in of.makes.iter().enumerate() {
        let y = result(number, outputs, output);
        step.lines.push(match *made {
            Made::Kept(kept) => {
                step.kept.push(kept);
                format!("kept{kept}(v, c) = {y};")
            }
            Made::Output(output) => {
                let name = words.decision.tensors[words.decision.recipe.inputs.len() + output].name;
                match words.decision.passes.outputs()[output].from {
                    Origin::Columns(by) => format!("columns.{name}(v, c) = {}::of(columns.{name}(v, c), {y});", op(by)),
                    _ => format!("r{name}(v, _0{{}}, c) = {};", words.stored(output, &y)),
                }
            }
            Made::Reduced(reduction, along, value) => {
                step.reductions.push(reduced(words, reduction, along, value));
                let (op, at) = (
                    op(reduction),
                    match along {
                        Along::Row | Along::Column => format!("state{value}"),
                        Along::Group(size) => format!("states{value}({})", words.group(size)),
                    },
                );
                match reduction {
                    Reduction::ArgMax | Reduction::ArgMin => format!("{at} = {op}::next({at}, {y}, column);"),
                    _ => format!("{at} = {op}::of({at}, {y});"),
                }
            }
        });
    }
    step
}

fn values(words: &mut Words<'_>, number: usize, of: &Values) -> StepText {
    let mut step = step(words, number, &of.part, false);
    let names: Vec<String> = of.makes.iter().map(|value| format!("v{value}")).collect();
    step.comment = names.join(", ");
    for (output, value) in of.makes.iter().enumerate() {
        let y = result(number, of.makes.len(), output);
        step.lines.push(match of.level {
            Level::Group(size) => {
                step.of_groups.push((*value, words.groups(size)));
                format!("{} = {y};", words.value(*value))
            }
            _ => format!("Number const value{value} = {y};"),
        });
    }
    if let Level::Group(size) = of.level {
        step.every = Some(words.decision.schedule.vec.min(size.into()));
    }
    step
}

fn step(words: &mut Words<'_>, number: usize, part: &crate::expr::rows::Part, traverses: bool) -> StepText {
    StepText {
        number,
        comment: String::new(),
        functor: String::new(),
        scalars: words.scalars(part),
        arguments: words.arguments(part),
        traverses,
        every: None,
        lines: Vec::new(),
        reductions: Vec::new(),
        kept: Vec::new(),
        last: false,
        of_groups: Vec::new(),
    }
}

fn steps(words: &mut Words<'_>) -> Vec<StepText> {
    let all = words.decision.passes.steps();
    let last = all.iter().rposition(|step| matches!(step, Step::Traverse(_)));
    let text = |(number, of): (usize, &Step)| {
        let (part, mut step) = match of {
            Step::Traverse(of) => (&of.part, traversal(words, number, of)),
            Step::Values(of) => (&of.part, values(words, number, of)),
        };
        step.last = last == Some(number);
        let functor = part.function.functor(&format!("Step{number}"), &mut words.helpers);
        step.functor = format!("// {}\n{functor}", part.function.function());
        step
    };
    all.iter().enumerate().map(text).collect()
}

/// The outputs of rows, and those of groups.
fn written(words: &mut Words<'_>) -> [Vec<Written>; 2] {
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    let inputs = words.decision.recipe.inputs.len();
    for (number, output) in words.decision.passes.outputs().iter().enumerate() {
        let Origin::Value(value) = output.from else { continue };
        let value = words.value(value);
        let value = words.stored(number, &value);
        let name = words.decision.tensors[inputs + number].name;
        match output.level {
            Level::Group(group) => {
                let every = words.decision.schedule.vec.min(group.into());
                groups.push(Written { name, value, group, every });
            }
            _ => rows.push(Written { name, value, group: 0, every: 0 }),
        }
    }
    [rows, groups]
}

fn walk(name: &'static str, whole: bool, tiling: &Tiling) -> Walk {
    Walk { name, whole, aliases: tiling.aliases(), assertions: tiling.assertions() }
}

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let compute = decision.passes.compute();
    let mut words = Words { decision, helpers: Helpers::new(compute) };
    let parts = steps(&mut words);
    let entries = entries(&mut words, plan);
    let [rows, groups] = written(&mut words);
    let single = compute == crate::expr::Compute::F32;
    let [vectors, elements] = &decision.tilings;
    let several = decision.schedule.parts() > 1;
    let exchanged = along_rows(&decision.passes).filter(|_| several);
    emit::text(&Text {
        banner: emit::banner(plan, "rows/kernel.cuh"),
        plan,
        d: decision,
        number: compute.cxx(),
        rounded: if single { ["__fadd_rn", "__fmul_rn"] } else { ["__dadd_rn", "__dmul_rn"] },
        single,
        helpers: words.helpers.to_string(),
        walks: vec![walk("Vectors", true, vectors), walk("Elements", !has_groups(&decision.passes), elements)],
        matrices: decision.tensors.iter().map(|tensor| matrix(decision, tensor)).collect(),
        exchanged: exchanged.map(|(value, of)| reduced(&words, of, Along::Row, value)).collect(),
        columns: vectors.copies.first().map_or_else(String::new, |copy| copy.name.to_owned()),
        parts,
        rows,
        groups,
        entries,
        elements: super::decide::ELEMENTS,
        grid: super::facts::grid(&decision.schedule),
    })
}
