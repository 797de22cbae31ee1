//! Operands, parameters and the rule of a launch.

use super::W4a16;
use super::decide::Decision;
use super::pack::{PER_WORD, ROWS};
use super::tilings::{self, REDUCE_TILE};
use crate::dtype::DType;
use crate::plan::{
    DemandKind, Field, Given, Int, IntOp, ModeStride, Numbers, Operand, ParamStruct, ParamType, ProblemShape, Product,
    Reach, Rule, WORKSPACE,
};
use crate::recipe::product::{F32, Fields, Major, number};
use crate::view::Access;

/// Bytes of a vector that cp.async copies.
const VECTOR: i64 = 16;

/// The operands of the product: A, B, epilogue inputs and D. B is dequantised weights.
pub(super) fn of_product(recipe: &W4a16, has_c: bool) -> Vec<Operand> {
    let dtypes = [recipe.dtype, recipe.dtype, recipe.out()];
    recipe.epilogue().operands(has_c, dtypes, [Major::Row, Major::Col, Major::Row])
}

/// The operands of a launch: W, scales and zero points in place of B.
pub(super) fn operands(recipe: &W4a16, has_c: bool) -> Vec<Operand> {
    let rows = [ModeStride::Dynamic, ModeStride::Unit];
    let own = |name, dtype| Operand::new(name, dtype, Access::Read, &rows);
    let weights = [own("W", DType::I32), own("Scales", recipe.dtype)];
    let weights = weights.into_iter().chain(recipe.zeros.then(|| own("Zeros", DType::U8)));
    let mut all = of_product(recipe, has_c);
    drop(all.splice(1..2, weights));
    all
}

/// M, N and K, of which W has words of eight weights, and each group a scale.
pub(super) fn problem(recipe: &W4a16, operands: &[Operand]) -> ProblemShape {
    let modes = operands.iter().map(|operand| match operand.name {
        "A" => vec![0, 2],
        "W" => vec![1, 2],
        "Scales" | "Zeros" => vec![2, 1],
        _ => vec![0, 1],
    });
    let group = i64::from(recipe.group);
    let shape = ProblemShape::new(["M", "N", "K"], modes).agreeing(
        "D(m,n) is the sum over k of A(m,k) * B(n,k), with C(m,n) and auxiliary elements of the same m and n",
        "A is (M,K), W is (N,K/8), Scales and Zeros are (K/group,N), and the others are (M,N)",
    );
    let groups = operands.iter().enumerate().fold(shape, |shape, (at, operand)| match operand.name {
        "W" => shape.with_groups(at, 1, PER_WORD).with_numbers(at, Numbers::Packed, 2),
        "Scales" | "Zeros" => shape.with_groups(at, 0, group),
        _ => shape,
    });
    groups.with_example(&[19, 192, 5 * group.max(32)])
}

/// Addresses, workspace, strides, extents, the split of K, scalars.
pub(super) fn params(recipe: &W4a16, product: &Product) -> ParamStruct {
    let operands = operands(recipe, product.has_c());
    let (scalars, alpha) = (product.scalar_params(), product.alpha());
    let of = Fields { operands: &operands, l: None, scalars, alpha, compute: product.epilogue().compute() };
    let mut fields: Vec<Field> = of.addresses().collect();
    let doc = "partial sums of shared tiles, (BM,BN,PARTS)".to_owned();
    fields.push((WORKSPACE.to_owned(), ParamType::MutPtr, doc, Given::Follows));
    fields.extend(of.strides());
    let words = Given::Extent { tensor: 1, mode: 1 };
    fields.push(("w_row".to_owned(), ParamType::I32, "words of a row of W, K / 8".to_owned(), words));
    // N is that of W, whose first mode it is.
    fields.extend(of.extents().map(|(name, ty, doc, given)| match name.as_str() {
        "n" => (name, ty, doc, Given::Extent { tensor: 1, mode: 0 }),
        _ => (name, ty, doc, given),
    }));
    fields.push(number("k_share", "units of a CTA: k-tiles of each of its slices, of one tile of D after the other"));
    fields.push(number("parts", "tiles of partial sums in the workspace; 0 if each CTA has whole tiles of D"));
    fields.extend(of.scalars());
    ParamStruct::new(fields)
}

/// Grids, the split of K, and what the views have to be.
pub(super) fn rule(of: &Decision, params: &ParamStruct) -> Rule {
    let (recipe, [bm, bn, bk]) = (&of.recipe, of.recipe.extents());
    let reach = Reach {
        required: "extents below 2^31 less some tiles, fewer than 2^31 k-tiles of all tiles of D".into(),
        because: "coordinates are 32-bit integers, and so is the number of a k-tile; offsets are 64-bit".into(),
        help: "launch on parts of the matrices".into(),
    };
    let mut rule = Rule::new(params, reach);
    let [m, n, k] = ["m", "n", "k"].map(|name| rule.param(name));
    let margin = bk * (i64::from(recipe.stages) + 1);
    for (extent, tile) in [(&m, bm), (&n, bn), (&k, margin)] {
        let most = i64::from(i32::MAX) - 2 * tile;
        rule.steps.require(extent.clone().at_most(most), "coordinates are 32-bit integers");
    }
    demands(recipe, &mut rule);
    let steps = &mut rule.steps;
    let tiles = steps.set("tiles", m.clone().ceil_div(bm) * n.clone().ceil_div(bn));
    let units = steps.set("units", tilings::units(recipe, k));
    let all = steps.set("all_units", tiles.clone() * units.clone());
    // As many CTAs as run at a time, each with as many units, or one for each tile.
    let share = match i64::from(recipe.ctas) {
        0 => units.clone(),
        ctas => all.clone().ceil_div(ctas).op(IntOp::Max, 1),
    };
    let share = steps.set("share", share);
    steps.require((all.clone() + share.clone()).at_most(i64::from(i32::MAX)), "units are numbered by 32 bits");
    let ctas = steps.set("ctas", all.ceil_div(share.clone()));
    let splits = Int::from(0).less(tiles.clone()).and((share.clone() % units).is(0).is(0));
    let splits = steps.set("splits", splits);
    let parts = steps.set("sums", splits.clone().select(ctas.clone() + tiles.clone(), 0));
    rule.derive_if_any("k_share", share);
    rule.derive_if_any("parts", parts.clone());
    rule.grid(Int::from(0).less(tiles.clone()), [ctas, 1.into(), 1.into()]);
    let [rows, columns] = REDUCE_TILE;
    rule.grid(splits, [tiles, (bm / rows).into(), (bn / columns).into()]);
    rule.workspace = parts * (bm * bn * F32);
    rule
}

/// Rows that are copied by vectors begin at multiples of them. Packed weights have no gaps, and whole groups.
fn demands(recipe: &W4a16, rule: &mut Rule) {
    let (copied, packed) =
        ("rows are copied in vectors, each of one row", "packed weights lie in the order in which they are read");
    let (aligned, extent) = (DemandKind::Alignment, DemandKind::Extent);
    let [m, n, k] = ["m", "n", "k"].map(|name| rule.param(name));
    rule.demand(extent, n.clone().divides_by(ROWS), [&format!("N, a multiple of {ROWS}"), packed], &[("N", &n)]);
    let (group, because) = (i64::from(recipe.group), "each group of weights has a scale");
    rule.demand(extent, k.clone().divides_by(group), [&format!("K, a multiple of {group}"), because], &[("K", &k)]);
    let groups = k / group.max(1);
    let vectors = [("A", VECTOR, 8, Some(m)), ("W", VECTOR, 4, None), ("Scales", VECTOR, 8, Some(groups.clone()))];
    let zeros = recipe.zeros.then_some(("Zeros", VECTOR / 2, 8, Some(groups)));
    for (name, bytes, elements, rows) in vectors.into_iter().chain(zeros) {
        let param = name.to_lowercase();
        let address = rule.param(&param);
        let required = format!("{name} at a multiple of {bytes} bytes");
        rule.demand(aligned, address.clone().divides_by(bytes), [&required, copied], &[("address", &address)]);
        let stride = rule.param(&format!("ld{param}"));
        let Some(rows) = rows else {
            let dense = n.clone().at_most(1).op(IntOp::Or, stride.clone().is(rule.param("w_row")));
            rule.demand(DemandKind::Stride, dense, ["rows of W without gaps", packed], &[("stride", &stride)]);
            continue;
        };
        // The stride of a single row is never used.
        let whole = rows.at_most(1).op(IntOp::Or, stride.clone().divides_by(elements));
        let required = format!("a stride of {name} that is a multiple of {elements}");
        rule.demand(aligned, whole, [&required, copied], &[("stride", &stride)]);
    }
}
