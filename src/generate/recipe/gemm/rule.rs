//! The rule of a launch: which entry runs, on how many CTAs, and its tensor maps.

use super::Factors;
use super::decide::Part;
use super::launch::params;
use super::order::Grouping;
use super::resident::Stays;
use super::stream_k::Shares;
use crate::arch::Arch;
use crate::plan::{Groups, Int, IntOp, MapRule, Operand, Reach, Rule};
use crate::recipe::Isa;
use crate::recipe::product::{F32, aligned, stride_params};
use crate::tiling::{TensorMapSpec, TileCopy};
use crate::view::Access;

/// Bytes that rows of what TMA copies begin at multiples of.
const CHUNK: i64 = 16;

/// Elements of a factor that is packed, at most: less than a TiB, as TMA has no larger strides.
const MOST_PACKED: i64 = (1 << 39) - 1;

/// The most products of 8-bit integers, up to 2^14 each, whose sum is an i32 in any order.
const MOST_OF_INTEGERS: i64 = i32::MAX as i64 >> 14;

/// A and B, which come first among operands and copies.
const FACTORS: [&str; 2] = ["a", "b"];

/// Grids and tensor maps from addresses, strides and extents; `None` where a copy of the tiling has no tensor map.
pub(super) fn rule(part: &Part) -> Option<Rule> {
    let (k, sums) = match part.recipe.dtype {
        Factors::I8 => (format!("a K up to {MOST_OF_INTEGERS}, "), "; a sum is an i32, of products up to 2^14"),
        _ => (String::new(), ""),
    };
    let (even, of_two) = if part.recipe.pairs { ("an even N, ", "; two columns make one of D") } else { ("", "") };
    let reach = Reach {
        required: format!(
            "{even}extents below 2^31 less some tiles, fewer than 2^31 tiles of D, {k}and fewer than 2^39 elements of a factor that is packed"
        ),
        because: format!(
            "coordinates are 32-bit integers, and so is the number of a CTA; offsets are 64-bit{sums}{of_two}"
        ),
        help: "launch on parts of the matrices".into(),
    };
    let mut rule = Rule::new(&params(part), reach);
    let [m, n, k, l] = ["m", "n", "k", "l"].map(|name| rule.param_or_one(name));
    let [bm, bn, bk] = part.tiling.tile;
    let margin = bk * (part.tiling.stages() + 1);
    for (extent, tile) in [&m, &n, &k, &l].into_iter().zip([bm, bn, margin, 1]) {
        let most = i64::from(i32::MAX) - 2 * tile;
        rule.steps.require(extent.clone().at_most(most), "coordinates are 32-bit integers");
    }
    if part.recipe.dtype == Factors::I8 {
        rule.steps.require(k.clone().at_most(MOST_OF_INTEGERS), "sums of products up to 2^14 are 32-bit integers");
    }
    if part.recipe.pairs {
        rule.steps.require(n.clone().divides_by(2), "two columns make one of D");
    }
    let (blocks, overlaps) = blocks(part, &mut rule);
    let something = Int::all([&m, &n, &l].map(|extent| Int::from(0).less(extent.clone())));
    let something = rule.steps.set("something", something);
    let multiplies = something.clone().and(Int::from(0).less(k.clone()));
    let multiplies = rule.steps.set("multiplies", multiplies);
    let (operands, vector) = (part.operands(), part.recipe.dtype.vector());
    let turns = part.recipe.turns();
    let mut packed = Int::from(0);
    for ((operand, copy), turns) in operands.iter().zip(&part.tiling.copies).zip(turns) {
        let rows = Rows::of(part, &mut rule, operand);
        let lies = match part.isa {
            _ if turns || (part.recipe.gather && operand.name == "A") => Int::from(0),
            // Rows past the last are not read, but cp.async needs aligned addresses for them. There are no batches past
            // the last.
            Isa::Sm80 => aligned(&rule, operand, vector, |mode| mode == 2).and(rows.inner.clone().divides_by(vector)),
            Isa::Sm90a => rows.lies(&mut rule),
        };
        let place = Packed::of(part, &mut rule, &rows, multiplies.clone().and(lies.is(0)), packed);
        if part.isa == Isa::Sm90a {
            rule.derive_if_any(&format!("each_{}", rows.param), Int::from(1).less(rows.batches.clone()));
            rows.tensor_map(part, &mut rule, copy, multiplies.clone(), Some(&place), part.cuts(operand.name))?;
        }
        packed = place.end;
    }
    let [a, b] = FACTORS.map(|param| rule.steps.find(&format!("ctas_{param}")));
    let packs = rule.steps.set("packs", a + b);
    rule.grid(Int::from(0).less(packs.clone()), [packs, 1.into(), 1.into()]);
    rule.workspace = packed * part.recipe.dtype.dtype().bytes().0 as i64;
    if part.stream_k.is_some() {
        shared_tiles(part, &mut rule);
    }
    match part.isa {
        Isa::Sm90a if part.recipe.scatter => {
            rule.grid(something, [blocks, 1.into(), 1.into()]);
            rule.overlaps_where(overlaps);
        }
        Isa::Sm80 => rule.grid(something, [blocks, 1.into(), 1.into()]),
        Isa::Sm90a => {
            let written = part.recipe.outputs(&operands).iter();
            let written: Vec<Rows> = written.map(|operand| Rows::of(part, &mut rule, operand)).collect();
            let d = written.last()?;
            // TMA stores whole chunks, past the end of a row (seen on an H200).
            let whole = (d.inner.clone() * d.bytes).divides_by(CHUNK);
            let lie = Int::all(written.iter().map(|rows| rows.lies(&mut rule)).collect::<Vec<_>>());
            let has_map = rule.steps.set("has_map_d", multiplies.and(lie).and(whole));
            for rows in &written {
                rows.tensor_map(part, &mut rule, part.tiling.copy("TmaD")?, has_map.clone(), None, false)?;
            }
            let inner = d.inner.clone();
            rule.derive_if_any("passes_l2", Int::from(L2).less(m * inner * d.batches.clone() * d.bytes));
            for when in [something.clone().and(has_map.clone()), something.and(has_map.is(0))] {
                rule.grid(when, [blocks.clone(), 1.into(), 1.into()]);
                rule.overlaps_where(overlaps.clone());
            }
        }
    }
    if let Some([_, add_up]) = &part.stream_k {
        let [bm, bn, _] = part.tiling.tile;
        let pieces = bm * bn / add_up.tile.iter().product::<i64>().max(1);
        let tiles = rule.steps.find("left") * i64::from(part.tiling.cluster_size());
        rule.grid(rule.steps.find("is_shared"), [pieces.into(), tiles, 1.into()]);
    }
    Some(rule)
}

/// The partial sums of shared tiles follow the packed operands.
fn shared_tiles(part: &Part, rule: &mut Rule) {
    let [bm, bn, _] = part.tiling.tile;
    rule.derive_if_any("sums", rule.workspace.clone() / F32);
    let of_a_part = bm * bn * i64::from(part.tiling.cluster_size()) * F32;
    rule.workspace = rule.workspace.clone() + rule.steps.find("sums_of_parts") * of_a_part;
}

/// CTAs of a launch, in clusters, and whether they begin early. At most as many as are resident, and no more than let
/// each compute equally often.
fn blocks(part: &Part, rule: &mut Rule) -> (Int, Int) {
    let l = rule.param_or_one("l");
    let size = i64::from(part.tiling.cluster_size());
    let [along_m, along_n] = [0, 1].map(|mode| tiles(part, rule, mode));
    // Each group has less than a tile that is not whole.
    let along_m = if part.recipe.groups == Groups::Rows { along_m + l.clone() } else { along_m };
    let (most, numbers) = (Arch::MAX_GRID_X as i64, "tiles are numbered by 32 bits");
    let steps = &mut rule.steps;
    let of_one = steps.set("clusters_of_one", along_m * along_n);
    steps.require(of_one.clone().at_most(most), numbers);
    let clusters = steps.set("clusters", if part.recipe.groups == Groups::Rows { of_one } else { of_one * l });
    steps.require(clusters.clone().at_most(most), numbers);
    let resident = (i64::from(part.own.ctas) / size).max(1);
    let turns = steps.set("turns", clusters.clone().ceil_div(resident).op(IntOp::Max, 1));
    // How many tiles groups have is known to the device alone: fewer than these.
    let launched = match part.recipe.groups {
        Groups::None | Groups::K => clusters.clone().ceil_div(turns.clone()),
        _ => clusters.clone().op(IntOp::Min, resident),
    };
    let launched = steps.set("of_a_turn", launched);
    let k_tiles = rule.param("k").ceil_div(part.tiling.tile[2]);
    let k_tiles = rule.steps.set("k_tiles", k_tiles);
    let lines = tiles(part, rule, part.own.along().mode());
    let Grouping { group, overlaps } =
        Grouping::new(&mut rule.steps, part.recipe.dtype, &part.own, [turns, k_tiles.clone(), lines]);
    rule.derive_if_any("group", group.clone());
    let launched = match i64::from(part.own.stream_k) {
        _ if part.stays() => staying(part, rule, [clusters.clone(), k_tiles, launched], [group, resident.into()]),
        0 => launched,
        least => Shares::new(&mut rule.steps, [clusters.clone(), k_tiles], resident, least).launch(rule, launched),
    };
    let steps = &mut rule.steps;
    // A CTA's next tile is numbered by 32 bits too, though there be none, and so is a team's.
    let next = ((clusters.clone() + launched.clone() * i64::from(part.tiling.teams())) * size).at_most(most);
    let all_at_once = clusters.clone().is(launched.clone()).and((clusters * size).at_most(most));
    steps.require(next.op(IntOp::Or, all_at_once), numbers);
    (launched * size, overlaps)
}

/// Tiles of a cluster along M, or N.
fn tiles(part: &Part, rule: &Rule, mode: usize) -> Int {
    rule.param(["m", "n"][mode]).ceil_div(part.tiling.tile[mode] * i64::from(part.tiling.cluster[mode]))
}

/// How many clusters are launched where a factor may stay in its stages, and whether each stage has the same k-tile every time.
fn staying(part: &Part, rule: &mut Rule, [clusters, k_tiles, even]: [Int; 3], group: [Int; 2]) -> Int {
    let others = tiles(part, rule, 1 - part.own.along().mode());
    let stays = Stays::new(&mut rule.steps, &part.own, [clusters, others, k_tiles, even], group);
    rule.derive_if_any("stays", stays.divides);
    stays.launched
}

/// Bytes that L2 keeps at most: 50 MB (NVIDIA H100 Tensor Core GPU Architecture, "H100 L2 Cache").
pub(super) const L2: i64 = 50 << 20;

/// A factor or D as rows along its contiguous mode.
struct Rows {
    param: String,
    /// Bytes of an element.
    bytes: i64,
    address: Int,
    /// Extents along the rows, and across them.
    inner: Int,
    outer: Int,
    /// Elements from one row to the next.
    ld: Int,
    /// The parameter that says so.
    ld_param: String,
    /// Matrices, and elements from one to the next with its parameter, if there are batches.
    batches: Int,
    apart: Option<(Int, String)>,
}

impl Rows {
    fn of(part: &Part, rule: &mut Rule, operand: &Operand) -> Self {
        let [rows, columns] = part.rows(operand.name);
        let [inner, outer, l] = [columns, rows, "l"].map(|extent| rule.param_or_one(extent));
        let inner = if part.recipe.pairs && !FACTORS.contains(&&*operand.param) { inner / 2 } else { inner };
        let mut strides = stride_params(operand).into_iter();
        let ld_param = strides.by_ref().take(2).flatten().next().unwrap_or_default();
        let param = operand.param.clone();
        let apart = strides.next_back().flatten().map(|name| (rule.param(&name), name));
        let batches = match &apart {
            Some((apart, _)) if operand.access == Access::Read => {
                // One stands for all.
                let batches = Int::from(0).less(apart.clone()).select(l, 1);
                rule.steps.set(&format!("batches_{param}"), batches)
            }
            Some(_) => l,
            None => 1.into(),
        };
        let (address, ld) = (rule.param(&param), rule.param_or_one(&ld_param));
        Self { bytes: operand.dtype.bytes().0 as i64, address, inner, outer, ld, ld_param, batches, apart, param }
    }

    /// A row with nothing after it has no leading dimension, and a matrix with none after it no distance.
    fn steps(&self, rule: &mut Rule) -> (Int, Option<Int>) {
        let Self { param, inner, outer, ld, batches, apart, .. } = self;
        let vector = CHUNK / self.bytes;
        let leading = Int::from(1).less(outer.clone()).select(ld.clone(), inner.clone().ceil_div(vector) * vector);
        let leading = rule.steps.set(&format!("leading_{param}"), leading);
        let apart = apart.as_ref().map(|(apart, _)| {
            let apart = Int::from(1).less(batches.clone()).select(apart.clone(), leading.clone());
            rule.steps.set(&format!("apart_{param}"), apart)
        });
        (leading, apart)
    }

    /// Whether TMA can copy it: rows that begin at multiples of 16 bytes and do not overlap.
    fn lies(&self, rule: &mut Rule) -> Int {
        let (leading, apart) = self.steps(rule);
        let step = |step: &Int| {
            let bytes = step.clone() * self.bytes;
            bytes.clone().divides_by(CHUNK).and(bytes.less(1_i64 << 40))
        };
        let mut all =
            vec![self.inner.clone().at_most(leading.clone()), self.address.clone().divides_by(CHUNK), step(&leading)];
        all.extend(apart.iter().map(|apart| Int::from(0).less(apart.clone()).and(step(apart))));
        rule.steps.set(&format!("lies_{}", self.param), Int::all(all))
    }

    /// The map of that copy, if it has one: of the operand in place, or packed.
    fn tensor_map(
        &self,
        part: &Part,
        rule: &mut Rule,
        copy: &TileCopy,
        when: Int,
        packed: Option<&Packed>,
        cuts: bool,
    ) -> Option<()> {
        let (_, tensor) = copy.in_global_and_shared()?;
        // The other fields are the same for all matrices.
        let template = copy.tensor_map(part.tiling.smem(tensor)?, 0, [1, 1], 1, [1, 1])?;
        let TensorMapSpec { dtype, swizzle, .. } = template;
        let find = |name: &str| rule.steps.find(&format!("{name}_{}", self.param));
        let is = packed.map_or(Int::from(0), |packed| packed.is.clone());
        let select = |of: fn(&Packed) -> &Int, other: Int| match packed {
            Some(packed) => is.clone().select(of(packed).clone(), other),
            None => other,
        };
        let leading = select(|packed| &packed.ld, find("leading"));
        let (mut dims, mut strides) = (vec![self.inner.clone(), self.outer.clone()], vec![leading * self.bytes]);
        if self.apart.is_some() {
            dims.push(self.batches.clone());
            strides.push(select(|packed| &packed.of_one, find("apart")) * self.bytes);
        }
        let mut extents: Vec<Int> = template.extents.iter().take(dims.len()).map(|e| i64::from(*e).into()).collect();
        if cuts {
            // TMA takes longer for a row that lies outside than for one inside, so that it is asked for none.
            let rows = i64::from(template.extents[1]);
            let copied = self.outer.clone().op(IntOp::Min, rows);
            extents[1] = rule.steps.set(&format!("copied_{}", self.param), copied);
            let of_a_row = part.tiling.smem(tensor)?.stage_bytes().0 as i64 / rows;
            rule.derive_if_any(&format!("bytes_{}", self.param), extents[1].clone() * of_a_row);
        }
        let begin = packed.map_or(Int::from(0), |packed| packed.begin.clone() * self.bytes);
        let address =
            if packed.is_some() { is.clone().select(begin, self.address.clone()) } else { self.address.clone() };
        let param = rule.index(&format!("map_{}", self.param))?;
        rule.maps.push(MapRule { param, when, dtype, in_workspace: is, address, dims, strides, extents, swizzle });
        Some(())
    }
}

/// Where a factor lies in the workspace, in elements.
struct Packed {
    /// Whether it does.
    is: Int,
    begin: Int,
    /// From one row to the next.
    ld: Int,
    /// Elements of one matrix.
    of_one: Int,
    /// End of the operand, in elements.
    end: Int,
}

impl Packed {
    /// Gives the parameters by which it is packed, and by which it is read from there.
    fn of(part: &Part, rule: &mut Rule, rows: &Rows, is: Int, begin: Int) -> Self {
        let Rows { param, inner, outer, ld, ld_param, batches, apart, .. } = rows;
        let [tile_rows, tile_columns] = part.pack.copies[0].tile;
        let steps = &mut rule.steps;
        let is = steps.set(&format!("is_packed_{param}"), is);
        let columns = steps.set(&format!("tiles_{param}"), inner.clone().ceil_div(tile_columns));
        let padded = columns.clone() * tile_columns;
        let of_one = steps.set(&format!("packed_{param}_of_one"), is.clone().select(padded.clone() * outer.clone(), 1));
        let fits = batches.clone().at_most(Int::from(MOST_PACKED) / of_one.clone());
        steps.require(is.clone().is(0).op(IntOp::Or, fits), "no workspace is larger");
        let ctas = columns * outer.clone().ceil_div(tile_rows) * batches.clone();
        let ctas = steps.set(&format!("ctas_{param}"), is.clone().select(ctas, 0));
        let size = is.clone().select(of_one.clone() * batches.clone(), 0);
        let end = steps.set(&format!("end_{param}"), begin.clone() + size);
        rule.derive_if_any(&format!("packs_{param}"), ctas);
        rule.derive_if_any(&format!("packed_{param}"), begin.clone());
        rule.derive_if_any(&format!("from_{ld_param}"), is.clone().select(padded.clone(), ld.clone()));
        if let Some((apart, name)) = apart {
            let several = Int::from(1).less(batches.clone()).select(of_one.clone(), 0);
            rule.derive_if_any(&format!("from_{name}"), is.clone().select(several, apart.clone()));
        }
        Self { is, begin, ld: padded, of_one, end }
    }
}
