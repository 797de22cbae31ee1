//! The text of a step: what it reads, its function, and what becomes of the result.

use super::super::facts::made;
use super::super::schedule::Hold;
use super::matrix::{Kind, kind};
use super::words::{Words, op, result};
use crate::expr::rows::{Along, Level, Made, Origin, Part, Reduction, Source, Step, Traversal, Values};
use crate::plan::interned;

/// A reduction of a step.
#[derive(Clone)]
pub(super) struct Reduced {
    pub(super) value: usize,
    /// A value that is made with it.
    pub(super) second: Option<usize>,
    pub(super) op: &'static str,
    /// Whether its result is a column.
    pub(super) is_index: bool,
    /// The term.
    pub(super) y: String,
    pub(super) along: Along,
    /// Groups of a vector, and lanes of a group.
    pub(super) groups: i64,
    pub(super) lanes: i64,
}

/// Which warps exchange their parts of a row.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Meeting {
    /// None: one warp has all of the row, or nothing is reduced.
    #[default]
    None,
    /// The warps of a CTA.
    Warps,
    /// The warps of several CTAs.
    Ctas,
}

/// A step.
#[derive(Default)]
pub(super) struct StepText {
    pub(super) number: usize,
    pub(super) comment: String,
    pub(super) functor: String,
    pub(super) scalars: String,
    pub(super) arguments: String,
    /// Whether it is for elements; else once for a row, or for groups of so many elements of a vector.
    pub(super) traverses: bool,
    pub(super) every: i64,
    /// Statements on its result, and those ahead of and behind the elements of a vector.
    pub(super) lines: Vec<String>,
    pub(super) ahead_of_vector: Vec<String>,
    pub(super) behind_vector: Vec<String>,
    /// Whether tiles of the row arrive while it runs.
    pub(super) arrives: bool,
    pub(super) reductions: Vec<Reduced>,
    pub(super) meeting: Meeting,
    /// How often the warps of a row have met before.
    pub(super) met: usize,
    pub(super) kept: Vec<usize>,
    /// Inputs that it loads: a tile at once, and chunk by chunk.
    pub(super) ahead: Vec<&'static str>,
    pub(super) staged: Vec<&'static str>,
    pub(super) late: Vec<&'static str>,
    /// Outputs of elements.
    pub(super) stores: Vec<&'static str>,
    /// Whether some are rounded two at once.
    pub(super) rounds_pairs: bool,
    /// New values of groups.
    pub(super) values: Vec<Reduced>,
}

impl StepText {
    pub(super) fn meets(&self) -> bool {
        self.meeting != Meeting::None
    }

    pub(super) fn of_rows(&self) -> impl Iterator<Item = &Reduced> {
        self.reductions.iter().filter(|of| of.along == Along::Row)
    }

    /// The barrier of its meeting, where that is one of CTAs.
    pub(super) fn barrier(&self) -> String {
        format!("smemMet[{}]", self.met)
    }

    /// Bytes that a warp tells of its reductions.
    pub(super) fn told(&self) -> String {
        self.of_rows().map(|of| format!("sizeof({}::State)", of.op)).collect::<Vec<_>>().join(" + ")
    }

    pub(super) fn of_columns(&self) -> impl Iterator<Item = &Reduced> {
        self.of_rows().filter(|of| of.is_index)
    }

    pub(super) fn of_groups(&self) -> impl Iterator<Item = &Reduced> {
        self.reductions.iter().filter(|of| of.along != Along::Row)
    }
}

pub(super) fn reduced(words: &Words<'_>, reduction: Reduction, along: Along, value: usize) -> Reduced {
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

/// An output that is rounded two elements at once, behind those of a vector.
fn in_pairs(step: &mut StepText, name: &str, y: &str) -> String {
    step.rounds_pairs = true;
    step.ahead_of_vector.push(format!("Tensor y{name} = make_tensor<Number>(Shape<Int<Vec>>{{}});  // (VEC)"));
    step.ahead_of_vector.push(format!("if constexpr (!Walk::whole) {{ clear(y{name}); }}"));
    let rounded = format!("round_all(y{name}, r{name}(_, _0{{}}, c));");
    step.behind_vector.push(format!("if (!Walk::whole || inside(0, c)) {{ {rounded} }}"));
    format!("y{name}(v) = {y};")
}

/// Adds what a traversal's function makes.
fn traversal(words: &mut Words<'_>, step: &mut StepText, of: &Traversal) {
    let decision = words.decision;
    step.comment = of.makes.iter().map(made).collect::<Vec<_>>().join(", ");
    let next = of.makes.iter().skip(1).map(Some).chain([None]);
    for (output, (made, next)) in of.makes.iter().zip(next).enumerate() {
        let y = result(step.number, of.makes.len(), output);
        let y = match next {
            Some(Made::Factor) => format!("{y}, {}", result(step.number, of.makes.len(), output + 1)),
            _ => y,
        };
        let line = match *made {
            Made::Factor => continue,
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
                        match words.rounds_pairs(output) {
                            true => in_pairs(step, name, &y),
                            false => format!("r{name}(v, _0{{}}, c) = {};", words.stored(output, &y)),
                        }
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
    step.meeting = match (decision.schedule.cluster, decision.schedule.warps()) {
        _ if step.of_rows().next().is_none() => Meeting::None,
        (2.., _) => Meeting::Ctas,
        (_, 2..) => Meeting::Warps,
        _ => Meeting::None,
    };
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

/// The text of a step.
pub(super) fn step(words: &mut Words<'_>, number: usize, of: &Step) -> StepText {
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
