//! The text.

use askama::Template;

use super::decide::Decision;
use super::entries::entries;
use super::facts::made;
use super::launch::stride;
use super::schedule::Hold;
use super::sources::{Words, op, result};
use super::tensors::Tensor;
use super::tilings::{along_rows, has_groups};
use crate::emit::{self, Alias, Assertion};
use crate::expr::rows::{Along, Level, Made, Origin, Part, Reduction, Source, Step, Traversal, Values};
use crate::expr::{Compute, Helpers};
use crate::plan::{ModeStride, Plan, interned};
use crate::tiling::Tiling;

#[derive(Template)]
#[template(path = "rows/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    number: &'static str,
    helpers: String,
    walks: [Walk; 2],
    matrices: Vec<Matrix>,
    /// Reductions whose parts warps tell each other.
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
pub(crate) struct Walk {
    pub(crate) name: &'static str,
    pub(crate) how: &'static str,
    pub(crate) whole: bool,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) assertions: Vec<Assertion>,
}

impl Walk {
    /// Those of a tiling.
    pub(crate) fn of(name: &'static str, how: &'static str, whole: bool, tiling: &Tiling) -> Self {
        Self { name, how, whole, aliases: tiling.aliases(), assertions: tiling.assertions() }
    }
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
    pub(super) modes: String,
    kind: Kind,
    /// Its copy from or to memory: `Load` or `Stage`, of the source of a partition, or `Store`, to its destination.
    verb: &'static str,
    side: &'static str,
    /// From the first row to that of a thread, where an index names it.
    row: Option<String>,
    /// Where its rows wait, from the begin of dynamic shared memory.
    offset: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Loaded ahead of the first traversal, and held.
    Held,
    /// Loaded in each traversal that reads it, chunk by chunk.
    Late,
    /// The same, a tile at once.
    Again,
    /// The same, from shared memory, where it waits.
    Staged,
    /// Loaded once for each row and held, from shared memory, where its rows queue.
    Queued,
    /// Loaded once, and held for all rows.
    Resident,
    Store,
    /// One value for a row.
    Row,
    /// Written for rows or groups.
    Value,
    /// Never read, or written by another entry.
    Unused,
}

/// A reduction of a step.
#[derive(Clone)]
struct Reduced {
    value: usize,
    /// A value that is made with it.
    second: Option<usize>,
    op: &'static str,
    /// Whether its result is a column.
    is_index: bool,
    /// The term.
    y: String,
    along: Along,
    /// Groups of a vector, and lanes of a group.
    groups: i64,
    lanes: i64,
}

/// A step.
#[derive(Default)]
struct StepText {
    number: usize,
    comment: String,
    functor: String,
    scalars: String,
    arguments: String,
    /// Whether it is for elements; else once for a row, or for groups of so many elements of a vector.
    traverses: bool,
    every: i64,
    /// Statements on its result, and those ahead of and behind the elements of a vector.
    lines: Vec<String>,
    ahead_of_vector: Vec<String>,
    behind_vector: Vec<String>,
    /// Whether tiles of the row arrive while it runs.
    arrives: bool,
    reductions: Vec<Reduced>,
    /// Whether the threads of a row reduce together, and how often they have.
    meets: bool,
    met: usize,
    kept: Vec<usize>,
    /// Inputs that it loads: a tile at once, and chunk by chunk.
    ahead: Vec<&'static str>,
    staged: Vec<&'static str>,
    late: Vec<&'static str>,
    /// Outputs of elements.
    stores: Vec<&'static str>,
    /// New values of groups.
    values: Vec<Reduced>,
}

/// An output of rows or groups.
struct Written {
    name: &'static str,
    value: String,
    /// Its group, and how many elements of a vector each group has.
    group: u32,
    every: i64,
}

impl Matrix {
    /// Whether a thread holds its part of it for all rows.
    pub(super) fn is_resident(&self) -> bool {
        self.kind == Kind::Resident
    }
}

impl Text<'_> {
    fn meetings(&self) -> impl Iterator<Item = &StepText> {
        self.parts.iter().filter(|step| step.meets)
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Matrix> {
        self.matrices.iter().filter(move |t| t.kind == kind)
    }

    /// Of what only traversals, or groups, use: not every program has one.
    fn perhaps_unused(&self) -> &'static str {
        if self.parts.iter().any(|step| step.traverses) { "" } else { "[[maybe_unused]] " }
    }

    /// Those that are a tensor of all threads, from the begin on.
    fn used(&self) -> impl Iterator<Item = &Matrix> {
        let elsewhere = [Kind::Unused, Kind::Queued, Kind::Resident];
        self.matrices.iter().filter(move |t| t.row.is_none() && !elsewhere.contains(&t.kind))
    }

    fn gathered(&self) -> impl Iterator<Item = (&Matrix, &String)> {
        self.matrices.iter().filter(|t| t.kind != Kind::Unused).filter_map(|t| Some((t, t.row.as_ref()?)))
    }

    /// Those whose elements threads have in registers.
    fn moved(&self) -> impl Iterator<Item = &Matrix> {
        let of_elements = [Kind::Held, Kind::Late, Kind::Again, Kind::Staged, Kind::Store];
        self.matrices.iter().filter(move |t| of_elements.contains(&t.kind))
    }
}

impl StepText {
    fn of_rows(&self) -> impl Iterator<Item = &Reduced> {
        self.reductions.iter().filter(|of| of.along == Along::Row)
    }

    /// The barrier of its meeting, where that is one of CTAs.
    fn barrier(&self) -> String {
        format!("smemMet[{}]", self.met)
    }

    /// Bytes that a warp tells of its reductions.
    fn told(&self) -> String {
        self.of_rows().map(|of| format!("sizeof({}::State)", of.op)).collect::<Vec<_>>().join(" + ")
    }

    fn of_columns(&self) -> impl Iterator<Item = &Reduced> {
        self.of_rows().filter(|of| of.is_index)
    }

    fn of_groups(&self) -> impl Iterator<Item = &Reduced> {
        self.reductions.iter().filter(|of| of.along != Along::Row)
    }
}

fn kind(decision: &Decision, tensor: &Tensor) -> Kind {
    let last = decision.passes.traversals().count().saturating_sub(1);
    match tensor.level {
        Level::Element if tensor.output => Kind::Store,
        Level::Column => Kind::Unused,
        _ if tensor.output => Kind::Value,
        _ if tensor.read.is_none() => Kind::Unused,
        Level::Element if decision.schedule.late && tensor.waits(last) => Kind::Late,
        Level::Element if decision.schedule.stages > 1 && tensor.is_weight() => Kind::Resident,
        Level::Element if decision.schedule.queues(tensor) && decision.schedule.stages > 1 => Kind::Queued,
        Level::Element if decision.schedule.queues(tensor) => Kind::Staged,
        Level::Element if decision.schedule.hold != Hold::Registers => Kind::Again,
        Level::Element => Kind::Held,
        _ => Kind::Row,
    }
}

pub(super) fn matrix(decision: &Decision, tensor: &Tensor) -> Matrix {
    let of_mode = |(mode, of): (usize, &ModeStride)| match of {
        _ if mode == 0 && tensor.gathered => "_0{}".to_owned(),
        ModeStride::Unit => "_1{}".to_owned(),
        ModeStride::Broadcast => "_0{}".to_owned(),
        ModeStride::Dynamic => format!("params.{}", stride(&tensor.param, mode)),
    };
    let strides: Vec<String> = tensor.spec.strides.iter().enumerate().map(of_mode).collect();
    let (columns, modes) = match tensor.level {
        Level::Group(size) => (format!("ceil_div(params.n, {size})"), format!("(M,ceil(N/{size}))")),
        Level::Element => ("params.n".to_owned(), "(M,N)".to_owned()),
        _ => ("params.n".to_owned(), "(M)".to_owned()),
    };
    let kind = kind(decision, tensor);
    let shape = match tensor.level {
        Level::Column => "params.n".to_owned(),
        _ if strides.len() == 1 => "params.m".to_owned(),
        _ => format!("params.m, {columns}"),
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
        verb: match kind {
            Kind::Store => "Store",
            Kind::Staged | Kind::Queued => "Stage",
            _ => "Load",
        },
        kind,
        offset: decision.schedule.staged(decision.tensors.iter().take_while(|other| other.name != tensor.name)),
        row: tensor.gathered.then(|| match tensor.spec.strides.first() {
            Some(ModeStride::Dynamic) => format!(" * params.{}", stride(&tensor.param, 0)),
            _ => String::new(),
        }),
        side: if tensor.output { "D" } else { "S" },
    }
}

fn reduced(words: &Words<'_>, reduction: Reduction, along: Along, value: usize) -> Reduced {
    let vec = words.decision.schedule.vec;
    let (groups, lanes) = match along {
        Along::Row | Along::Column => (0, 0),
        Along::Group(size) => (words.groups(size), (i64::from(size) / vec).max(1)),
    };
    let pair = words.decision.passes.pairs().iter().find(|pair| pair.first == value);
    let op = match pair {
        Some(pair) => interned(format!("Online<Exponential{}>", pair.second)),
        None => op(reduction),
    };
    let second = pair.map(|pair| pair.second);
    Reduced { value, second, op, is_index: reduction.is_index(), y: String::new(), along, groups, lanes }
}

/// A reduction along the row, of a vector at a time where that is shorter: its statements ahead of, for, and behind elements.
fn along_row(words: &mut Words<'_>, step: &mut StepText, reduction: Reduction, value: usize, y: &str) -> String {
    let Reduced { op, second, is_index, .. } = reduced(words, reduction, Along::Row, value);
    if let Some(second) = second {
        step.ahead_of_vector.push(format!("Tensor terms{value} = make_tensor<Number>(Shape<Int<Vec>>{{}});  // (VEC)"));
        let fill = format!("fill(terms{value}, {op}::nothing().most);");
        step.ahead_of_vector.push(format!("if constexpr (!Walk::whole) {{ {fill} }}"));
        let next = format!("state{value} = {op}::next(state{value}, terms{value});");
        step.behind_vector.push(format!("if (!Walk::whole || inside(0, c)) {{ {next} }}"));
        let pair = words.decision.passes.pairs().iter().find(|pair| pair.second == second);
        let exponential = pair.and_then(|pair| pair.online.exponential());
        let checked = exponential.and_then(|function| function.check(words.decision.passes.compute()).ok());
        let functor = checked.map(|of| of.functor(&format!("Exponential{second}"), &mut words.helpers));
        step.functor.extend(functor);
        return format!("terms{value}(v) = {y};");
    }
    if is_index {
        step.ahead_of_vector.push(format!("Number most{value} = {op}::Most::nothing();"));
        step.behind_vector.push(format!("state{value} = {op}::next(state{value}, most{value}, i * Chunks + c);"));
        return format!("most{value} = {op}::Most::of(most{value}, {y});");
    }
    format!("state{value} = {op}::of(state{value}, {y});")
}

/// Adds what a traversal's function makes.
fn traversal(words: &mut Words<'_>, step: &mut StepText, of: &Traversal) {
    let decision = words.decision;
    step.comment = of.makes.iter().map(made).collect::<Vec<_>>().join(", ");
    for (output, made) in of.makes.iter().enumerate() {
        let y = result(step.number, of.makes.len(), output);
        let line = match *made {
            Made::Kept(kept) => {
                step.kept.push(kept);
                format!("kept{kept}(v, c) = {y};")
            }
            Made::Output(output) => {
                let name = decision.output(output).name;
                match decision.passes.outputs()[output].from {
                    Origin::Columns(by) => format!("columns.{name}(v, c) = {}::of(columns.{name}(v, c), {y});", op(by)),
                    _ => {
                        step.stores.push(name);
                        format!("r{name}(v, _0{{}}, c) = {};", words.stored(output, &y))
                    }
                }
            }
            Made::Reduced(reduction, along, value) => {
                step.reductions.push(Reduced { y: y.clone(), ..reduced(words, reduction, along, value) });
                let op = op(reduction);
                match along {
                    Along::Row | Along::Column => along_row(words, step, reduction, value, &y),
                    Along::Group(size) => {
                        let at = format!("states{value}({})", words.group(size));
                        match reduction.is_index() {
                            true => format!("{at} = {op}::next({at}, {y}, column);"),
                            false => format!("{at} = {op}::of({at}, {y});"),
                        }
                    }
                }
            }
        };
        step.lines.push(line);
    }
    step.meets = decision.schedule.parts() > 1 && step.of_rows().next().is_some();
    let reads = |input: usize| of.part.reads.contains(&Source::Input(input));
    for (_, tensor) in decision.tensors.iter().enumerate().filter(|(input, _)| reads(*input)) {
        match kind(decision, tensor) {
            Kind::Late => step.late.push(tensor.name),
            Kind::Again => step.ahead.push(tensor.name),
            Kind::Staged => step.staged.push(tensor.name),
            _ => {}
        }
    }
}

/// Adds what the function of values makes.
fn values(words: &mut Words<'_>, step: &mut StepText, of: &Values) {
    step.comment = of.makes.iter().map(|value| format!("v{value}")).collect::<Vec<_>>().join(", ");
    for (output, value) in of.makes.iter().enumerate() {
        let y = result(step.number, of.makes.len(), output);
        step.lines.push(match of.level {
            Level::Group(size) => {
                step.every = words.decision.schedule.vec.min(size.into());
                step.values.push(reduced(words, Reduction::Sum, Along::Group(size), *value));
                format!("{} = {y};", words.value(*value))
            }
            _ => format!("Number const value{value} = {y};"),
        });
    }
}

fn step(words: &mut Words<'_>, number: usize, of: &Step) -> StepText {
    let part: &Part = match of {
        Step::Traverse(of) => &of.part,
        Step::Values(of) => &of.part,
    };
    let mut step = StepText {
        number,
        scalars: words.scalars(part),
        arguments: words.arguments(part),
        traverses: matches!(of, Step::Traverse(_)),
        ..StepText::default()
    };
    match of {
        Step::Traverse(of) => traversal(words, &mut step, of),
        Step::Values(of) => values(words, &mut step, of),
    }
    let function = match of {
        Step::Traverse(of) => {
            part.function.stored_as(&of.makes.iter().map(|made| words.stored_type(made)).collect::<Vec<_>>())
        }
        Step::Values(_) => part.function.clone(),
    };
    let functor = function.functor(&format!("Step{number}"), &mut words.helpers);
    step.functor = format!("// {}\n{functor}{}", function.function(), step.functor);
    let first = words.decision.passes.steps().iter().position(|step| matches!(step, Step::Traverse(_)));
    step.arrives = words.decision.schedule.hold == Hold::Shared && first == Some(number);
    step
}

/// The outputs of rows, and those of groups.
fn written(words: &mut Words<'_>) -> [Vec<Written>; 2] {
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for (number, output) in words.decision.passes.outputs().iter().enumerate() {
        let Origin::Value(value) = output.from else { continue };
        let value = words.value(value);
        let value = words.stored(number, &value);
        let name = words.decision.output(number).name;
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

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let compute: Compute = decision.passes.compute();
    let mut words = Words { decision, helpers: Helpers::new(compute) };
    let mut parts: Vec<StepText> =
        decision.passes.steps().iter().enumerate().map(|(number, of)| step(&mut words, number, of)).collect();
    parts.iter_mut().filter(|step| step.meets).enumerate().for_each(|(met, step)| step.met = met);
    let entries = entries(&mut words, plan);
    let [rows, groups] = written(&mut words);
    let [vectors, elements] = &decision.tilings;
    let several = decision.schedule.parts() > 1;
    let exchanged = along_rows(&decision.passes).filter(|_| several);
    let columns = vectors.copies.first().map_or_else(String::new, |copy| copy.name.to_owned());
    emit::text(&Text {
        banner: emit::banner(plan, "rows/kernel.cuh"),
        plan,
        d: decision,
        number: compute.cxx(),
        helpers: words.helpers.to_string(),
        walks: [
            Walk::of("Vectors", "in vectors", true, vectors),
            Walk::of("Elements", "one by one", !has_groups(&decision.passes), elements),
        ],
        matrices: decision.tensors.iter().map(|tensor| matrix(decision, tensor)).collect(),
        exchanged: exchanged.map(|(value, of)| reduced(&words, of, Along::Row, value)).collect(),
        columns,
        parts,
        rows,
        groups,
        entries,
        elements: super::decide::ELEMENTS,
        grid: super::facts::grid(&decision.schedule),
    })
}
