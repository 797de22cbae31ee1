//! Operands, parameters and the rule of a launch.

use super::Append;
use super::decide::Decision;
use crate::dtype::DType;
use crate::plan::{DemandKind, Int, IntOp, ModeStride, Numbers, Operand, ParamStruct, ProblemShape, Reach, Rule};
use crate::view::Access;

/// Elements of a vector: 16 bytes, 8 of e4m3.
pub(super) const VECTOR: i64 = 8;

/// The largest extent, so that positions and numbers of rows are 32-bit integers.
const MOST: i64 = 1 << 29;

/// The extents of a problem: of as many new rows of each sequence, and of sequences one after the other.
const EXTENTS: [[&str; 6]; 2] =
    [["B", "SQ", "ENTRIES", "HK", "PAGES", "PAGE"], ["STARTS", "TQ", "ENTRIES", "HK", "PAGES", "PAGE"]];
pub(super) const PAGE: usize = 5;

/// By which K and V of 8 bits are divided, a number for each head.
const SCALES: [&str; 2] = ["ScaleK", "ScaleV"];

pub(super) fn operands(recipe: &Append) -> Vec<Operand> {
    let rows = [ModeStride::Dynamic, ModeStride::Dynamic, ModeStride::Dynamic, ModeStride::Unit];
    let of = |name, access| Operand::new(name, recipe.dtype, access, &rows[usize::from(recipe.varlen)..]);
    let kept = |name| Operand::new(name, recipe.dtype_kv(), Access::Write, &rows);
    let mut all = vec![of("NewK", Access::Read), of("NewV", Access::Read)];
    all.extend(recipe.queries.then(|| Operand { in_place: true, ..of("Q", Access::Read) }));
    let angles = |name| Operand::new(name, DType::F32, Access::Read, &rows[2..]);
    all.extend(["Cos", "Sin"].map(angles).into_iter().filter(|_| recipe.rotary() > 0));
    all.extend(recipe.varlen.then(|| Operand::new("StartsQ", DType::I32, Access::Read, &rows[3..])));
    all.push(Operand::new("Table", DType::I32, Access::Read, &rows[2..]));
    all.push(Operand::new("Lengths", DType::I32, Access::Read, &rows[3..]));
    let scale = |name| Operand::new(name, DType::F32, Access::Read, &rows[3..]);
    all.extend(SCALES.into_iter().filter(|_| recipe.is_narrow()).map(scale));
    all.extend([kept("K"), kept("V")]);
    all.extend(recipe.queries.then(|| of("Rotated", Access::Write)));
    all
}

/// The names of the extents. Sequences one after the other have tables for B of them.
fn extents(recipe: &Append) -> Vec<&'static str> {
    let further = [("B", recipe.varlen), ("POSITIONS", recipe.rotary() > 0), ("HQ", recipe.queries)];
    let further = further.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
    EXTENTS[usize::from(recipe.varlen)].into_iter().chain(further).collect()
}

/// The number of the extent of each mode of an operand; of the last one of rows, how many elements they have.
fn modes(recipe: &Append, name: &str) -> (Vec<usize>, Option<u32>) {
    let number = |name| extents(recipe).iter().position(|own| *own == name).unwrap_or(0);
    let rows = |heads| [0, 1, number(heads), 0][usize::from(recipe.varlen)..].to_vec();
    match name {
        "NewK" => (rows("HK"), Some(recipe.head)),
        "NewV" => (rows("HK"), Some(recipe.value())),
        "Q" | "Rotated" => (rows("HQ"), Some(recipe.head)),
        "Cos" | "Sin" => (vec![number("POSITIONS"), 0], Some(recipe.rotary() / 2)),
        "StartsQ" => (vec![0], None),
        "Table" => (vec![number("B"), 2], None),
        "Lengths" => (vec![number("B")], None),
        "ScaleK" | "ScaleV" => (vec![3], None),
        "K" => (vec![4, PAGE, 3, 0], Some(recipe.head)),
        _ => (vec![4, PAGE, 3, 0], Some(recipe.value())),
    }
}

pub(super) fn problem(recipe: &Append) -> ProblemShape {
    let operands = operands(recipe);
    let all = operands.iter().map(|operand| modes(recipe, operand.name));
    let shape = ProblemShape::new(extents(recipe), all.clone().map(|(modes, _)| modes));
    let constant =
        |shape: ProblemShape, (operand, (modes, elements)): (usize, (Vec<usize>, Option<u32>))| match elements {
            Some(elements) => shape.with_constant(operand, modes.len() - 1, elements.into()),
            None => shape,
        };
    let shape = all.enumerate().fold(shape, constant);
    let starts = operands.iter().position(|operand| operand.name == "StartsQ");
    let shape = starts.into_iter().fold(shape, |shape, starts| shape.with_numbers(starts, Numbers::Ends, 1));
    let scales = if recipe.is_narrow() { ", ScaleK (HK), ScaleV (HK)" } else { "" };
    let (new, example): (_, &[i64]) = if recipe.varlen {
        ("NewK (TQ,HK,D), NewV (TQ,HK,DV), StartsQ (STARTS)", &[3, 7, 4, 2, 9, 16, 2, 40, 6])
    } else {
        ("NewK (B,SQ,HK,D), NewV (B,SQ,HK,DV)", &[2, 3, 4, 2, 9, 16, 40, 6])
    };
    let help = format!("pass {new}, Table (B,ENTRIES), Lengths (B){scales}, K (PAGES,PAGE,HK,D), V (PAGES,PAGE,HK,DV)");
    let example = &example[..shape.extents().len()];
    shape.with_example(example).agreeing("each new key and value of a head goes to a page", &help)
}

pub(super) fn rule(of: &Decision, params: &ParamStruct) -> Rule {
    let recipe = &of.recipe;
    let reach = Reach {
        required: format!("extents of at most {MOST}, as many rows and positions, and CTAs of fewer than 2^31 rows"),
        because: "positions and rows are 32-bit integers; offsets are 64-bit".into(),
        help: "launch on parts of the tensors".into(),
    };
    let mut rule = Rule::new(params, reach);
    let problem = problem(recipe);
    let extents: Vec<Int> = problem.extents().iter().map(|name| rule.param(&name.to_lowercase())).collect();
    let [b, sq, entries, hk, pages, page, others @ ..] = &extents[..] else { return rule };
    let most =
        |rule: &mut Rule, number: Int| rule.steps.require(number.at_most(MOST), "rows and positions have 32 bits");
    extents.iter().for_each(|extent| most(&mut rule, extent.clone()));
    most(&mut rule, entries.clone() * page.clone());
    for operand in operands(recipe).iter().filter(|operand| operand.strides.len() > 2) {
        let of_mode = |(mode, extent): (usize, &usize)| {
            let param = format!("{}_stride{mode}", operand.param);
            Some((param, format!("mode {mode}"), extents.get(*extent)?))
        };
        let (modes, _) = modes(recipe, operand.name);
        let strided = modes[..modes.len() - 1].iter().enumerate().filter_map(of_mode);
        rule.aligned(operand, VECTOR * operand.dtype.bytes().0 as i64, strided);
    }
    let rows = if recipe.varlen { sq.clone() } else { b.clone() * sq.clone() };
    let new = rule.steps.set("new", rows.clone());
    let tiles = |rule: &mut Rule, heads: &Int, rows: i64| {
        let all = new.clone() * heads.clone();
        most(rule, all.clone());
        all.ceil_div(rows)
    };
    // Without pages nothing is stored.
    let stores = Int::all([pages, page].map(|extent| Int::from(0).less(extent.clone())));
    let stored = tiles(&mut rule, hk, of.rows[0]).op(IntOp::Max, tiles(&mut rule, hk, of.rows[1]));
    let mut blocks = stores.select(stored, 0);
    if let (true, Some(hq)) = (recipe.queries, extents.last()) {
        blocks = blocks.op(IntOp::Max, tiles(&mut rule, hq, of.rows[0]));
    }
    if let (true, Some(tables)) = (recipe.varlen, others.first()) {
        let none = b.clone().is(0).and(tables.clone().is(0));
        let whole = b.clone().is(tables.clone() + 1).op(IntOp::Or, none);
        let because = "a sequence lies between two starts, and has a row of Table";
        let texts = ["STARTS, one more than B", because];
        rule.demand(DemandKind::Extent, whole, texts, &[("STARTS", b), ("B", tables)]);
    }
    if recipe.rotary() > 0 {
        let positions = rule.param("positions");
        let some = rows.is(0).op(IntOp::Or, Int::from(0).less(positions.clone()));
        let because = "a position past the last counts as the last";
        rule.demand(DemandKind::Extent, some, ["a cosine and a sine", because], &[("POSITIONS", &positions)]);
    }
    let blocks = rule.steps.set("tiles", blocks);
    // The last CTA numbers its rows, though keys, values or queries have fewer tiles.
    let numbered = blocks.clone() * of.rows[0].max(of.rows[1]);
    rule.steps.require(numbered.at_most(i64::from(i32::MAX)), "rows have 32 bits");
    let roles = if recipe.queries { 3 } else { 2 };
    rule.grid(Int::from(0).less(blocks.clone()), [blocks, roles.into(), 1.into()]);
    rule
}
