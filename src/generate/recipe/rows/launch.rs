//! Parameters, and the rule that picks the entry: whole vectors where all rows are aligned and end with one, else single elements.

use super::columns;
use super::decide::Decision;
use super::schedule::Hold;
use super::tilings::instruction;
use crate::expr::rows::Level;
use crate::plan::{Field, Given, Int, IntOp, ModeStride, ParamStruct, ParamType, Reach, Rule};
use crate::view::Access;

/// The parameter that holds the stride of a tensor along a mode.
pub(super) fn stride(param: &str, mode: usize) -> String {
    format!("{}{param}", if mode == 0 { "ld" } else { "inc" })
}

/// Addresses, strides, extents, scalars.
pub(super) fn params(decision: &Decision) -> ParamStruct {
    let mut fields: Vec<Field> = Vec::new();
    for (tensor, t) in decision.tensors.iter().enumerate() {
        let access = if t.output { Access::Write } else { Access::Read };
        fields.push(ParamStruct::address_field(tensor, [t.name, &t.param], t.spec.dtype, access));
    }
    fields.extend(columns::fields(&decision.passes));
    for (tensor, t) in decision.tensors.iter().enumerate() {
        for (mode, _) in t.spec.strides.iter().enumerate().filter(|(_, stride)| **stride == ModeStride::Dynamic) {
            let next = if t.level == Level::Column { 1 } else { mode.min(1) };
            let doc = format!("elements from one {} to the next, in {}", ["row", "column"][next], t.name);
            fields.push((stride(&t.param, mode), ParamType::I64, doc, Given::Stride { tensor, mode }));
        }
    }
    let extents = [("m", "rows"), ("n", "columns of a row"), ("rows", "rows that an index names")];
    for (number, (name, doc)) in extents.into_iter().enumerate().take(decision.problem.extents().len()) {
        let (tensor, mode) = decision.problem.first_with(number).unwrap_or_default();
        fields.push((name.to_owned(), ParamType::I32, doc.to_owned(), Given::Extent { tensor, mode }));
    }
    fields.extend(ParamStruct::scalar_fields(&decision.scalars, decision.passes.compute(), "function"));
    ParamStruct::new(fields)
}

/// One grid of the two is empty.
pub(super) fn rule(decision: &Decision) -> Rule {
    let (columns, rows) = (decision.schedule.widest(), decision.schedule.rows);
    let width = decision.schedule.columns();
    // A CTA asks for tiles past the last one.
    let ahead = decision.schedule.ctas * decision.schedule.stages;
    let most = i64::from(i32::MAX) / decision.schedule.cluster - rows * (1 + ahead);
    let because = match decision.schedule.hold {
        _ if decision.schedule.cut => "each tile of a row has a CTA",
        Hold::Registers => "the threads of a row hold all of it",
        Hold::Shared => "shared memory holds all of it",
        Hold::Memory => "coordinates are 32-bit integers",
    };
    let reach = Reach {
        required: format!("at most {columns} columns, and at most {most} rows"),
        because: format!("{because}; coordinates are 32-bit integers, offsets 64-bit"),
        help: "generate the kernel with more `columns` for wider rows; launch on parts of longer matrices".into(),
    };
    let mut rule = Rule::new(&params(decision), reach);
    let [m, n] = ["m", "n"].map(|name| rule.param(name));
    rule.steps.require(n.clone().at_most(columns), because);
    rule.steps.require(m.clone().at_most(most), "coordinates are 32-bit integers");
    if decision.schedule.cut {
        let tiles = m.clone().ceil_div(rows) * n.clone().ceil_div(width);
        rule.steps.require(tiles.at_most(i64::from(i32::MAX)), "tiles are numbered by 32-bit integers");
    }
    if decision.recipe.gather.is_some() {
        let rows = rule.param("rows");
        rule.steps.require(rows.at_most(i64::from(i32::MAX)), "an index is a 32-bit integer");
    }
    let whole = whole_vectors(decision, &rule);
    let whole = rule.steps.set("whole", whole);
    let order = &decision.tilings[0].order;
    let blocks = || match decision.schedule.ctas {
        0 => order.extents(&order.pieces, |name| rule.param(name)),
        _ => {
            let [ctas, pieces] = columns::shares(&decision.schedule, ["m", "n"].map(|name| rule.param(name)));
            [ctas * pieces, 1.into(), 1.into()]
        }
    };
    let [blocks, also] = [blocks(), blocks()];
    // Rows without elements have values all the same.
    let of_rows = decision.tensors.iter().any(|t| t.output && matches!(t.level, Level::Row | Level::Scalar));
    let columns = if of_rows { Int::from(1) } else { Int::from(0).less(n) };
    let something = || Int::from(0).less(m.clone()).and(columns.clone());
    rule.grid(something().and(whole.clone()), blocks);
    rule.grid(something().and(whole.is(0)), also);
    columns::join(decision, &mut rule);
    rule
}

/// Whether all rows consist of aligned vectors.
fn whole_vectors(decision: &Decision, rule: &Rule) -> Int {
    let (m, vec) = (rule.param("m"), decision.schedule.vec);
    let mut whole = vec![rule.param("n").divides_by(vec)];
    for t in decision.tensors.iter().filter(|tensor| tensor.is_contiguous()) {
        let (at_once, bytes) = (instruction(t, vec).0 as i64, t.spec.dtype.bytes().0 as i64);
        whole.push(rule.param(&t.param).divides_by(at_once));
        if t.spec.strides.first() == Some(&ModeStride::Dynamic) {
            // The stride of a single row is never used.
            let aligned = rule.param(&stride(&t.param, 0)).divides_by(at_once / bytes);
            whole.push(m.clone().at_most(1).op(IntOp::Or, aligned));
        }
    }
    Int::all(whole)
}
