//! The facts that a plan prints.

use super::decide::Decision;
use super::schedule::{Hold, Schedule};
use crate::expr::rows::{Made, Step};
use crate::plan::Fact;

/// What was decided.
pub(super) fn facts(decision: &Decision) -> Vec<Fact> {
    let Decision { passes, schedule, .. } = decision;
    let mut facts = vec![Fact::new("function", &decision.recipe.function, "of a row of each input")];
    for (number, step) in passes.steps().iter().enumerate() {
        let (part, makes, why) = match step {
            Step::Traverse(of) => {
                let made: Vec<String> = of.makes.iter().map(made).collect();
                (&of.part, made.join(", "), "for each element of the row")
            }
            Step::Values(of) => {
                let made: Vec<String> = of.makes.iter().map(|value| format!("v{value}")).collect();
                (&of.part, made.join(", "), "once for the row, or a group of it")
            }
        };
        facts.push(Fact::new(format!("step {number}"), format!("{makes} <- {}", part.function.function()), why));
    }
    let held = format!("{} threads of {} x {} columns", schedule.threads, schedule.chunks, schedule.vec);
    let why = match schedule.hold {
        _ if schedule.cut => "of each CTA, in registers, read from memory once",
        Hold::Registers => "in registers, read from memory once",
        Hold::Shared => "of each tile, in shared memory, read from memory once",
        Hold::Memory => "of each tile, which every traversal reads from memory",
    };
    facts.push(Fact::new("row", held, why));
    facts.push(Fact::new("rows", schedule.rows, "of a CTA"));
    facts.push(Fact::new("cluster", schedule.cluster, "CTAs of a row"));
    facts.push(Fact::new("kept", passes.kept(), "results of an element that a later traversal reads, in registers"));
    facts.push(Fact::new("registers", format!("about {}", schedule.registers), "ptxas tells exactly"));
    facts.push(Fact::new("grid", grid(schedule), "one of the entries has it, the other none"));
    if schedule.stages > 1 {
        facts.push(Fact::new("stages", schedule.stages, "tiles of rows in shared memory, all but one on their way"));
    }
    if schedule.ctas > 0 {
        let order = "each CTA adds every n-th tile of rows, then a second entry every 32nd result, then lanes in pairs";
        facts.push(Fact::new("columns", format!("{} results of at most", schedule.ctas * schedule.rows), order));
    }
    facts
}

/// Blocks along x.
pub(super) fn grid(schedule: &Schedule) -> String {
    let pieces = if schedule.cut { format!(" * ceil_div(N,{})", schedule.columns()) } else { String::new() };
    match schedule.ctas {
        0 => format!("ceil_div(M,{}){pieces}", schedule.rows),
        most => format!("at most {most} of ceil_div(M,{}){pieces}", schedule.rows),
    }
}

pub(super) fn made(made: &Made) -> String {
    match made {
        Made::Reduced(reduction, along, value) => format!("v{value}:{}{along}", reduction.name()),
        Made::Factor => "times".to_owned(),
        Made::Kept(number) => format!("k{number}"),
        Made::Output(number) => format!("output {number}"),
    }
}
