//! Operands, parameters and the rule of a launch.

use super::Append;
use super::decide::Decision;
use crate::dtype::DType;
use crate::plan::{Demand, DemandKind, Int, IntOp, ModeStride, Operand, ParamStruct, ProblemShape, Reach, Rule};
use crate::view::Access;

/// Elements of a vector: 16 bytes, 8 of e4m3.
pub(super) const VECTOR: i64 = 8;

/// The largest extent, so that positions and numbers of rows are 32-bit integers.
const MOST: i64 = 1 << 29;

/// The extents of a problem; with rotary embedding and queries two more.
const EXTENTS: [&str; 6] = ["B", "SQ", "ENTRIES", "HK", "PAGES", "PAGE"];
pub(super) const PAGE: usize = 5;

/// By which K and V of 8 bits are divided, a number for each head.
const SCALES: [&str; 2] = ["ScaleK", "ScaleV"];

pub(super) fn operands(recipe: &Append) -> Vec<Operand> {
    let rows = [ModeStride::Dynamic, ModeStride::Dynamic, ModeStride::Dynamic, ModeStride::Unit];
    let of = |name, access| Operand::new(name, recipe.dtype, access, &rows);
    let kept = |name| Operand::new(name, recipe.dtype_kv(), Access::Write, &rows);
    let mut all = vec![of("NewK", Access::Read), of("NewV", Access::Read)];
    all.extend(recipe.queries.then(|| Operand { in_place: true, ..of("Q", Access::Read) }));
    let angles = |name| Operand::new(name, DType::F32, Access::Read, &rows[2..]);
    all.extend(["Cos", "Sin"].map(angles).into_iter().filter(|_| recipe.rotary() > 0));
    all.push(Operand::new("Table", DType::I32, Access::Read, &rows[2..]));
    all.push(Operand::new("Lengths", DType::I32, Access::Read, &rows[3..]));
    let scale = |name| Operand::new(name, DType::F32, Access::Read, &rows[3..]);
    all.extend(SCALES.into_iter().filter(|_| recipe.is_narrow()).map(scale));
    all.extend([kept("K"), kept("V")]);
    all.extend(recipe.queries.then(|| of("Rotated", Access::Write)));
    all
}

/// The number of the extent of each mode of an operand; of the last one of rows, how many elements they have.
fn modes(recipe: &Append, name: &str) -> (Vec<usize>, Option<u32>) {
    let [positions, queries] = [EXTENTS.len(), EXTENTS.len() + usize::from(recipe.rotary() > 0)];
    match name {
        "NewK" => (vec![0, 1, 3, 0], Some(recipe.head)),
        "NewV" => (vec![0, 1, 3, 0], Some(recipe.value())),
        "Q" | "Rotated" => (vec![0, 1, queries, 0], Some(recipe.head)),
        "Cos" | "Sin" => (vec![positions, 0], Some(recipe.rotary() / 2)),
        "Table" => (vec![0, 2], None),
        "Lengths" => (vec![0], None),
        "ScaleK" | "ScaleV" => (vec![3], None),
        "K" => (vec![4, PAGE, 3, 0], Some(recipe.head)),
        _ => (vec![4, PAGE, 3, 0], Some(recipe.value())),
    }
}

pub(super) fn problem(recipe: &Append) -> ProblemShape {
    let operands = operands(recipe);
    let further = [("POSITIONS", recipe.rotary() > 0), ("HQ", recipe.queries)];
    let further = further.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
    let all = operands.iter().map(|operand| modes(recipe, operand.name));
    let shape = ProblemShape::new(EXTENTS.into_iter().chain(further), all.clone().map(|(modes, _)| modes));
    let constant =
        |shape: ProblemShape, (operand, (modes, elements)): (usize, (Vec<usize>, Option<u32>))| match elements {
            Some(elements) => shape.with_constant(operand, modes.len() - 1, elements.into()),
            None => shape,
        };
    let shape = all.enumerate().fold(shape, constant);
    let scales = if recipe.is_narrow() { ", ScaleK (HK), ScaleV (HK)" } else { "" };
    let help = format!(
        "pass NewK (B,SQ,HK,D), NewV (B,SQ,HK,DV), Table (B,ENTRIES), Lengths (B){scales}, K (PAGES,PAGE,HK,D), V (PAGES,PAGE,HK,DV)"
    );
    let example = [2, 3, 4, 2, 9, 16, 40, 6];
    let extents = shape.extents().len();
    let example = if recipe.rotary() > 0 { &example[..extents] } else { &example[..EXTENTS.len()] };
    shape.with_example(example).agreeing("each new key and value of a head goes to a page", &help)
}

pub(super) fn rule(of: &Decision, params: &ParamStruct) -> Rule {
    let recipe = &of.recipe;
    let reach = Reach {
        required: format!("extents of at most {MOST}, and as many rows and positions"),
        because: "positions and rows are 32-bit integers; offsets are 64-bit".into(),
        help: "launch on parts of the tensors".into(),
    };
    let mut rule = Rule::new(params, reach);
    let problem = problem(recipe);
    let extents: Vec<Int> = problem.extents().iter().map(|name| rule.param(&name.to_lowercase())).collect();
    let [b, sq, entries, hk, pages, page, ..] = &extents[..] else { return rule };
    let most =
        |rule: &mut Rule, number: Int| rule.steps.require(number.at_most(MOST), "rows and positions have 32 bits");
    extents.iter().for_each(|extent| most(&mut rule, extent.clone()));
    most(&mut rule, entries.clone() * page.clone());
    for operand in operands(recipe).iter().filter(|operand| operand.strides.len() == 4) {
        aligned(&mut rule, operand, &modes(recipe, operand.name).0, &extents);
    }
    let new = rule.steps.set("new", b.clone() * sq.clone());
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
    if recipe.rotary() > 0 {
        let positions = rule.param("positions");
        let found = vec![("POSITIONS".to_owned(), positions.clone())];
        rule.demands.push(Demand {
            kind: DemandKind::Extent,
            condition: (b.clone() * sq.clone()).is(0).op(IntOp::Or, Int::from(0).less(positions)),
            required: "a cosine and a sine".to_owned(),
            because: "a position past the last counts as the last".to_owned(),
            found,
        });
    }
    let blocks = rule.steps.set("tiles", blocks);
    let roles = if recipe.queries { 3 } else { 2 };
    rule.grid(Int::from(0).less(blocks.clone()), [blocks, roles.into(), 1.into()]);
    rule
}

/// Rows begin at whole vectors. The stride of a single coordinate is never used.
fn aligned(rule: &mut Rule, operand: &Operand, modes: &[usize], extents: &[Int]) {
    let (name, address) = (operand.name, rule.param(&operand.param));
    let bytes = VECTOR * operand.dtype.bytes().0 as i64;
    let whole = address.clone().divides_by(bytes);
    let mut all = vec![(format!("{name} at a multiple of {bytes} bytes"), whole, ("address".to_owned(), address))];
    for (mode, extent) in modes.iter().enumerate().take(3) {
        let stride = rule.param(&format!("{}_stride{mode}", operand.param));
        let single = extents.get(*extent).map_or(Int::from(0), |extent| extent.clone().at_most(1));
        let whole = single.op(IntOp::Or, stride.clone().divides_by(VECTOR));
        let required = format!("strides of {name} that are multiples of {VECTOR}");
        all.push((required, whole, (format!("stride of mode {mode}"), stride)));
    }
    rule.demands.extend(all.into_iter().map(|(required, condition, found)| Demand {
        kind: DemandKind::Alignment,
        condition,
        required,
        because: format!("rows are copied in vectors of {bytes} bytes"),
        found: vec![found],
    }));
}
