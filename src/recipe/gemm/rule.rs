//! What a launch of a text computes: which entry runs, on how many CTAs, and its tensor maps.

use super::decide::{Isa, Part};
use super::launch::params;
use super::tilings::VECTOR;
use crate::arch::Arch;
use crate::plan::{Int, IntOp, MapRule, Operand, Reach, Rule};
use crate::recipe::product::{aligned, stride_params};
use crate::tiling::{Schedule, TensorMapSpec};

/// Bytes that rows of what TMA copies begin at multiples of.
const CHUNK: i64 = 16;

/// Grids and tensor maps from addresses, strides and extents; `None` where a copy of the tiling has no tensor map.
pub(super) fn rule(part: &Part) -> Option<Rule> {
    let reach = Reach {
        required: "extents below 2^31 less some tiles, and fewer than 2^31 tiles of D".into(),
        because: "coordinates are 32-bit integers, and so is the number of a CTA; offsets are 64-bit".into(),
        help: "launch on parts of the matrices".into(),
    };
    let mut rule = Rule::new(&params(part), reach);
    let [m, n, k, l] = ["m", "n", "k", "l"].map(|name| rule.param(name));
    let [bm, bn, bk] = part.tiling.tile;
    let margin = bk * (part.tiling.stages() + 1);
    for (extent, tile) in [&m, &n, &k, &l].into_iter().zip([bm, bn, margin, 1]) {
        let most = i64::from(i32::MAX) - 2 * tile;
        rule.steps.require(extent.clone().at_most(most), "coordinates are 32-bit integers");
    }
    let blocks = blocks(part, &mut rule);
    let something = Int::all([&m, &n, &l].map(|extent| Int::from(0).less(extent.clone())));
    let something = rule.steps.set("something", something);
    let multiplies = something.clone().and(Int::from(0).less(k.clone()));
    let operands = part.operands();
    let entry = match part.isa {
        Isa::Sm80 => {
            let each = operands.iter().zip(part.recipe.k_major()).zip([m, n]);
            let whole = each.map(|((operand, k_major), rows)| {
                let extent = if k_major { k.clone() } else { rows };
                // Of rows past the last nothing is read, but cp.async is told their addresses; of batches there are none.
                aligned(&rule, operand, VECTOR, |mode| mode == 2).and(extent.divides_by(VECTOR))
            });
            let whole = Int::all(whole);
            Int::from(0).less(k).and(whole.is(0)).select(1, 0)
        }
        Isa::Sm90a => {
            let multiplies = rule.steps.set("multiplies", multiplies);
            for (operand, copy) in [(operands.first()?, "TmaA"), (operands.get(1)?, "TmaB"), (operands.last()?, "TmaD")]
            {
                tensor_map(part, &mut rule, operand, copy, &multiplies)?;
            }
            let [a, b, d] = ["has_map_a", "has_map_b", "has_map_d"].map(|name| rule.steps.find(name));
            // Where nothing is multiplied there are no maps, and nothing is read.
            let factors = a.and(b);
            let without = multiplies.select(2, 1);
            factors.select(d.select(0, 1), without)
        }
    };
    let entry = rule.steps.set("entry", entry);
    for index in 0..=part.others.len() {
        let when = something.clone().and(entry.clone().is(index as i64));
        rule.grid(when, [blocks.clone(), 1.into(), 1.into()]);
    }
    Some(rule)
}

/// CTAs that are launched: one for each tile, or as many as are resident at a time, in clusters, and no more than make each
/// compute as often as the others.
fn blocks(part: &Part, rule: &mut Rule) -> Int {
    let [bm, bn, _] = part.tiling.tile;
    let [along_m, along_n, _] = part.tiling.cluster.map(i64::from);
    let size = i64::from(part.tiling.cluster_size());
    let [m, n, l] = ["m", "n", "l"].map(|name| rule.param(name));
    let (most, numbers) = (Arch::MAX_GRID_X as i64, "tiles are numbered by 32 bits");
    let steps = &mut rule.steps;
    let of_one = steps.set("clusters_of_one", m.ceil_div(bm * along_m) * n.ceil_div(bn * along_n));
    steps.require(of_one.clone().at_most(most), numbers);
    let clusters = steps.set("clusters", of_one * l);
    steps.require(clusters.clone().at_most(most), numbers);
    let launched = match part.tiling.schedule {
        Schedule::OneTileACta => clusters.clone(),
        Schedule::Persistent { .. } => {
            let resident = (i64::from(part.recipe.ctas) / size).max(1);
            let turns = steps.set("turns", clusters.clone().ceil_div(resident).op(IntOp::Max, 1));
            steps.set("launched", clusters.clone().ceil_div(turns))
        }
    };
    // A CTA's next tile is numbered by 32 bits too, though there be none, and so is a team's.
    let next = ((clusters.clone() + launched.clone() * i64::from(part.tiling.teams())) * size).at_most(most);
    let all_at_once = clusters.clone().is(launched.clone()).and((clusters * size).at_most(most));
    steps.require(next.op(IntOp::Or, all_at_once), numbers);
    launched * size
}

/// The map of the copy of that name, where the operand lies as TMA can copy it: rows of a factor that begin at multiples of 16 bytes
/// and do not overlap. Rows of D end there too: TMA stores whole chunks, past the end of a row (seen on an H200).
fn tensor_map(part: &Part, rule: &mut Rule, operand: &Operand, name: &str, multiplies: &Int) -> Option<()> {
    let copy = part.tiling.copy(name)?;
    let (global, tensor) = copy.in_global_and_shared()?;
    // What does not follow is the same for all matrices.
    let template = copy.tensor_map(part.tiling.smem(tensor)?, 0, [1, 1], 1, [1, 1])?;
    let (rows, columns) = match operand.name {
        "A" => (("m", 0), ("k", 1)),
        "B" => (("n", 1), ("k", 0)),
        _ => (("m", 0), ("n", 1)),
    };
    let (inner, (outer, mode)) = if global.contiguous == 1 { (columns.0, rows) } else { (rows.0, columns) };
    let [inner, outer, l] = [inner, outer, "l"].map(|extent| rule.param(extent));
    let strides = stride_params(operand);
    let stride = |mode: usize| strides.get(mode).cloned().flatten().map(|name| rule.param(&name));
    let (ld, apart) = (stride(mode)?, stride(2));
    let bytes = copy.dtype.bytes().0 as i64;
    let is_d = operand.name == "D";
    // A row with nothing after it has no leading dimension, and a matrix with none after it no distance.
    let leading = Int::from(1).less(outer.clone()).select(ld, inner.clone().ceil_div(VECTOR) * VECTOR);
    let (param, address) = (&operand.param, rule.param(&operand.param));
    let leading = rule.steps.set(&format!("leading_{param}"), leading);
    let (mut dims, mut steps) = (vec![inner.clone(), outer], vec![leading.clone() * bytes]);
    let mut lies = vec![
        multiplies.clone(),
        inner.clone().at_most(leading.clone()),
        address.clone().divides_by(CHUNK),
        (leading.clone() * bytes).divides_by(CHUNK),
        (leading.clone() * bytes).less(1_i64 << 40),
    ];
    if global.batched {
        let apart = apart?;
        let batches = if is_d { l.clone() } else { Int::from(0).less(apart.clone()).select(l, 1) };
        let batches = rule.steps.set(&format!("batches_{param}"), batches);
        let several = Int::from(1).less(batches.clone());
        rule.derive(&format!("each_{param}"), several.clone());
        let apart = rule.steps.set(&format!("apart_{param}"), several.select(apart, leading));
        lies.extend([
            Int::from(0).less(apart.clone()),
            (apart.clone() * bytes).divides_by(CHUNK),
            (apart.clone() * bytes).less(1_i64 << 40),
        ]);
        dims.push(batches);
        steps.push(apart * bytes);
    }
    if is_d {
        lies.push((inner * bytes).divides_by(CHUNK));
    }
    let when = rule.steps.set(&format!("has_map_{param}"), Int::all(lies));
    let param = rule.index(&format!("map_{param}"))?;
    let TensorMapSpec { dtype, extents, swizzle, .. } = template;
    rule.maps.push(MapRule { param, when, dtype, address, dims, strides: steps, extents, swizzle });
    Some(())
}
