//! Operands, parameters and the rule of a launch.

mod pages;

use super::decide::Decision;
use super::tilings::ALIGN;
use super::{Attention, Isa, Mask};
use crate::dtype::DType;
use crate::plan::{
    DemandKind, Field, Given, Int, IntOp, MapRule, ModeStride, Operand, ParamStruct, ParamType, ProblemShape, Reach,
    Rule, WORKSPACE,
};
use crate::tiling::{Engine, TileCopy};
use crate::view::Access;

/// The largest extent, so that sums of three, of positions and windows, are 32-bit integers.
const MOST: i64 = 1 << 29;

/// The extents of a problem: of batches of one length, and of sequences one after the other; then those whose keys lie in pages.
const EXTENTS: [[&str; 5]; 4] = [
    ["B", "SQ", "SK", "HQ", "HK"],
    ["STARTS", "TQ", "TK", "HQ", "HK"],
    ["B", "SQ", "ENTRIES", "HQ", "HK"],
    ["STARTS", "TQ", "ENTRIES", "HQ", "HK"],
];

/// Further extents of keys in pages. Sequences one after the other have tables for B of them; the last one is where auxiliary tensors have
/// elements for keys.
const PAGES: [&str; 4] = ["PAGES", "PAGE", "B", "KEYS"];

/// What the strides of the modes are called among the parameters; sequences one after the other have no batches.
const MODES: [&str; 3] = ["batch", "row", "head"];
const OF_PAGES: [&str; 3] = ["page", "row", "head"];

/// Of each key head, what its K and its V of 8 bits are multiplied by.
const SCALES: [&str; 2] = ["ScaleK", "ScaleV"];

/// Parameters of tensors with rows of heads, or an element for each.
const OF_ROWS: [&str; 5] = ["q", "k", "v", "o", "lse"];

impl Attention {
    /// The modes of a tensor with an element for each score, as numbers of extents.
    fn score_modes(&self) -> Vec<usize> {
        let all = [0, 3, 1, if self.paged { 4 + self.pages().len() } else { 2 }];
        all[usize::from(self.varlen)..].to_vec()
    }

    /// The same as names.
    pub(super) fn of_scores(&self) -> Vec<&'static str> {
        let all: Vec<&str> = self.extents().into_iter().chain(self.pages()).collect();
        self.score_modes().into_iter().map(|number| all[number]).collect()
    }

    /// The further extents that there are.
    fn pages(&self) -> Vec<&'static str> {
        let is_there = |name: &&str| (self.varlen || *name != "B") && (!self.aux.is_empty() || *name != "KEYS");
        PAGES.into_iter().filter(|name| self.paged && is_there(name)).collect()
    }

    pub(super) fn extents(&self) -> [&'static str; 5] {
        EXTENTS[2 * usize::from(self.paged) + usize::from(self.varlen)]
    }

    /// What the strides of the modes of a tensor are called.
    pub(super) fn modes(&self, param: &str) -> &'static [&'static str] {
        match param {
            "k" | "v" if self.paged => &OF_PAGES,
            _ => &MODES[usize::from(self.varlen)..],
        }
    }
}

pub(super) fn operands(recipe: &Attention) -> Vec<Operand> {
    let rows: Vec<ModeStride> = core::iter::repeat_n(ModeStride::Dynamic, 3).chain([ModeStride::Unit]).collect();
    let (modes, of_modes) = (recipe.modes("q").len(), |modes: usize| &rows[3 - modes..]);
    let of = |name: &'static str, dtype, access| {
        Operand::new(name, dtype, access, of_modes(recipe.modes(&name.to_lowercase()).len()))
    };
    let inputs = [("Q", recipe.dtype), ("K", recipe.dtype_kv()), ("V", recipe.dtype_kv())];
    let mut all = inputs.map(|(name, dtype)| of(name, dtype, Access::Read)).to_vec();
    let given = |name, strides: &[ModeStride]| Operand::new(name, DType::I32, Access::Read, strides);
    all.extend(recipe.starts().iter().map(|name| given(name, of_modes(0))));
    if recipe.paged {
        all.extend([given("Table", of_modes(1)), given("Lengths", of_modes(0))]);
    }
    let of_heads = |name| Operand::new(name, DType::F32, Access::Read, &[ModeStride::Unit]);
    all.extend(SCALES.into_iter().filter(|_| recipe.is_narrow()).map(of_heads));
    all.extend(recipe.aux_operands());
    all.extend(recipe.sinks.then(|| of_heads("Sinks")));
    all.push(of("O", recipe.dtype, Access::Write));
    if recipe.lse {
        all.push(Operand::new("Lse", DType::F32, Access::Write, &rows[..modes]));
    }
    all
}

/// Q (B,SQ,HQ,D), K (B,SK,HK,D), V (B,SK,HK,DV), O (B,SQ,HQ,DV), Lse (B,SQ,HQ), or without B, and with the starts of sequences.
pub(super) fn problem(recipe: &Attention) -> ProblemShape {
    let first = usize::from(recipe.varlen);
    let of = |modes: [usize; 4]| modes[first..].to_vec();
    let (queries, keys) = (of([0, 1, 3, 0]), if recipe.paged { vec![5, 6, 4, 0] } else { of([0, 2, 4, 0]) });
    let mut modes = vec![queries.clone(), keys.clone(), keys];
    modes.extend(recipe.starts().iter().map(|_| vec![0]));
    let tables = if recipe.varlen { 7 } else { 0 };
    modes.extend([vec![tables, 2], vec![tables]].into_iter().filter(|_| recipe.paged));
    modes.extend([vec![4], vec![4]].into_iter().filter(|_| recipe.is_narrow()));
    modes.extend(recipe.aux.iter().map(|_| recipe.score_modes()));
    modes.extend(recipe.sinks.then(|| vec![3]));
    let outputs = modes.len();
    let logarithms = queries[..queries.len() - 1].to_vec();
    modes.push(queries);
    modes.extend(recipe.lse.then_some(logarithms));
    let extents: Vec<&str> = recipe.extents().into_iter().chain(recipe.pages().iter().copied()).collect();
    let shape = ProblemShape::new(extents, modes);
    let elements = [(0, recipe.head), (1, recipe.head), (2, recipe.value()), (outputs, recipe.value())];
    let shape = elements.into_iter().fold(shape, |shape, (operand, elements)| {
        let of = ["q", "k", "v"].get(operand).copied().unwrap_or("o");
        shape.with_constant(operand, recipe.modes(of).len(), elements.into())
    });
    let page = recipe.page.map_or(16, i64::from);
    let (k, others, in_any_order, example): (_, _, _, &[i64]) = match (recipe.paged, recipe.varlen) {
        (true, true) => (
            "PAGES,PAGE",
            ", StartsQ (STARTS), Table (B,ENTRIES), Lengths (B)",
            "",
            &[3, 30, 7, 6, 2, 15, page, 2, 100],
        ),
        (true, false) => ("PAGES,PAGE", ", Table (B,ENTRIES), Lengths (B)", "", &[2, 3, 7, 6, 2, 15, page, 100]),
        (false, true) => ("TK", ", StartsQ and StartsK (STARTS)", "", &[2, 67, 131, 6, 2]),
        (false, false) => ("B,SK", "", ", in any order of memory", &[2, 67, 131, 6, 2]),
    };
    let q = if recipe.varlen { "TQ" } else { "B,SQ" };
    let help = format!("pass Q ({q},HQ,D), K ({k},HK,D), V ({k},HK,DV){others}, O ({q},HQ,DV){in_any_order}");
    let because = "each query of a head is multiplied with all keys of its sequence, whose values are added up";
    shape.with_example(&example[..5 + recipe.pages().len()]).agreeing(because, &help)
}

/// Bytes of K and V that stay in L2 beside what else passes through it: most of the 50 MB of an H100.
const IN_L2: i64 = 32 << 20;

/// Keys up to which a CTA has several tiles with a diagonal. On an H200, with heads of 128, a tile each had 0.93 of the rate for 1024 keys,
/// 0.99 for 4096, and 1.27 for 16384.
const LONG: i64 = 2048;

/// Strides of tensor maps are smaller, in elements.
const FAR: i64 = 1 << 39;

/// As [`ParamStruct::of`] has them; strides by the words for their modes, sizes of a window as integers. TMA has maps of its inputs.
pub(super) fn params(of: &Decision, operands: &[Operand], problem: &ProblemShape) -> ParamStruct {
    let recipe = &of.recipe;
    let fields: Vec<Field> = ParamStruct::of(operands, problem, &recipe.scalars()).into();
    let renamed = fields.into_iter().map(|(name, ty, doc, given)| {
        let mode = name
            .split_once("_stride")
            .filter(|(of, _)| OF_ROWS.contains(of))
            .and_then(|(of, mode)| Some((of, recipe.modes(of).get(mode.parse::<usize>().ok()?)?)));
        match (mode, name.as_str()) {
            (Some((of, mode)), _) => {
                (format!("{of}_{mode}"), ty, format!("elements from one {mode} to the next"), given)
            }
            (None, "left" | "right") => (name, ParamType::I32, "keys of the window, -1 for all".to_owned(), given),
            (None, _) => (name, ty, doc, given),
        }
    });
    let maps = of.maps().map(|(operand, _)| {
        let name = format!("map_{}", operand.to_lowercase());
        (name, ParamType::TensorMap, format!("{operand}, rows of a head"), Given::Follows)
    });
    let of_pages = [
        (WORKSPACE, ParamType::MutPtr, "results of splits: O in f32, the largest scores, the sums of weights"),
        ("splits", ParamType::I32, "splits of the keys of a sequence"),
        ("steps", ParamType::I32, "steps of a split"),
    ];
    let others: &[_] = match (recipe.varlen, recipe.splits(of.own.isa)) {
        (_, true) => &of_pages[..if recipe.split.is_none() { 3 } else { 2 }],
        (true, _) => &[],
        _ => &[("group", ParamType::I32, "heads whose tiles follow each other")],
    };
    ParamStruct::new(
        maps.chain(renamed)
            .chain(others.iter().map(|(name, ty, doc)| ((*name).to_owned(), *ty, (*doc).to_owned(), Given::Follows))),
    )
}

impl Decision {
    /// The inputs that TMA copies: their names and copies.
    fn maps(&self) -> impl Iterator<Item = (&'static str, &TileCopy)> {
        let by_tma = self.tiling.copies.iter().filter(|copy| matches!(copy.engine, Engine::Tma { .. }));
        by_tma.filter_map(|copy| Some((copy.global()?.tensor, copy)))
    }
}

pub(super) fn rule(of: &Decision, params: &ParamStruct) -> Rule {
    let Decision { recipe, own, tiling, .. } = of;
    let reach = Reach {
        required: format!("extents of at most {MOST}, and fewer than 2^31 CTAs"),
        because: "coordinates are 32-bit integers; offsets are 64-bit".into(),
        help: "launch on parts of the tensors".into(),
    };
    let mut rule = Rule::new(params, reach);
    let [b, sq, sk, hq, hk] = recipe.extents().map(|name| rule.param_or_one(&name.to_lowercase()));
    let pages: Vec<Int> = recipe.pages().iter().map(|name| rule.param(&name.to_lowercase())).collect();
    for extent in [&b, &sq, &sk, &hq, &hk].into_iter().chain(&pages) {
        rule.steps.require(extent.clone().at_most(MOST), "coordinates are 32-bit integers");
    }
    groups(&mut rule, &hq, &hk);
    for operand in operands(recipe) {
        let (first, rows, heads) = match (operand.param.as_str(), &pages[..]) {
            ("k" | "v", [pages, page, ..]) => (pages, page, &hk),
            ("k" | "v", _) => (&b, &sk, &hk),
            _ => (&b, &sq, &hq),
        };
        if OF_ROWS.contains(&operand.param.as_str()) {
            let extents = [first, rows, heads];
            let modes = recipe.modes(&operand.param);
            let modes = modes.iter().copied().zip(extents.into_iter().skip(3 - modes.len()));
            let modes: Vec<(&str, &Int)> = modes.collect();
            strides(&mut rule, &operand, &modes);
            if let Some((_, copy)) = of.maps().find(|(name, _)| *name == operand.name) {
                tensor_map(&mut rule, of, (&operand, copy), &modes);
            }
        }
    }
    let mut keys = sk.clone();
    if let [_, page, others @ ..] = &pages[..] {
        keys = sk * page.clone();
        rule.steps.require(keys.clone().at_most(MOST), "positions are 32-bit integers");
        if let Some(own) = recipe.page {
            let (required, because) =
                (format!("PAGE, which is {own}"), "the kernel is compiled for pages of so many keys");
            let same = page.clone().is(i64::from(own));
            rule.demand(DemandKind::Extent, same, [&required, because], &[("PAGE", page)]);
        }
        if recipe.varlen {
            let (tables, because) = (&others[0], "a sequence lies between two starts, and has a row of Table");
            let none = b.clone().is(0).and(tables.clone().is(0));
            let whole = b.clone().is(tables.clone() + 1).op(IntOp::Or, none);
            let texts = ["STARTS, one more than B", because];
            rule.demand(DemandKind::Extent, whole, texts, &[("STARTS", &b), ("B", tables)]);
        }
        let of_aux = others.iter().skip(usize::from(recipe.varlen));
        keys = of_aux.fold(keys, |all, keys| all.op(IntOp::Min, keys.clone()));
    }
    if recipe.splits(own.isa) {
        pages::split(&mut rule, of, [&b, &sq, &hq, &hk], keys);
        return rule;
    }
    // Each sequence has less than a tile that is not whole; so have the rows ahead of the first, and behind the last.
    let most = sq.clone() / tiling.tile[0] + b.clone() + 1;
    let (tiles, heads) =
        if recipe.varlen { (most, hq.clone()) } else { (sq.clone().ceil_div(tiling.tile[0]), hq.clone() * b) };
    rule.steps.require(heads.clone().at_most(i64::from(i32::MAX)), "CTAs are numbered by 32 bits");
    let works = rule.steps.set("works", Int::from(0).less(sq).select(tiles * heads.clone(), 0));
    let (mut ctas, mut group) = (works.clone(), Int::from(1));
    if own.isa == Isa::Sm90a {
        // Tiles with a diagonal differ. Where they take long, the hardware balances CTAs of one tile each, the longest first.
        let long = Int::from(LONG).less(keys.clone()).and(i64::from(recipe.has_diagonal()));
        ctas = long.clone().select(ctas.clone(), ctas.op(IntOp::Min, i64::from(recipe.ctas)));
        let bytes = keys * (2 * i64::from(recipe.head + recipe.value()));
        let shared = (hq / hk.op(IntOp::Max, 1)).op(IntOp::Max, 1);
        let fit = Int::from(IN_L2) * shared / bytes.op(IntOp::Max, 1);
        group = long.select(fit.op(IntOp::Min, heads).op(IntOp::Max, 1), 1);
    }
    rule.derive_if_any("group", group);
    // A CTA's next work is numbered too, though there be none.
    let last = works.clone() + ctas.clone();
    rule.steps.require(last.at_most(i64::from(i32::MAX)), "tiles are numbered by 32 bits");
    let ctas = rule.steps.set("ctas", ctas);
    rule.grid(Int::from(0).less(ctas.clone()), [ctas, 1.into(), 1.into()]);
    rule
}

/// TMA's view of an input: elements of a row, rows, heads, and batches. The kernel's coordinates along heads and batches are multiples of
/// the parameters that hold strides elsewhere: of 0 where all are the same one.
fn tensor_map(rule: &mut Rule, of: &Decision, (operand, copy): (&Operand, &TileCopy), modes: &[(&str, &Int)]) {
    let elements = if operand.name == "V" { of.recipe.value() } else { of.recipe.head };
    let size = operand.dtype.bytes().0 as i64;
    let spec = copy.global().and_then(|global| {
        let tensor = of.tiling.smem(global.tensor)?;
        copy.tensor_map(tensor, 0, [1, 1], 1, [1, 1])
    });
    let (Some(spec), Some(param)) = (spec, rule.index(&format!("map_{}", operand.param))) else { return };
    let (mut dims, mut strides) = (vec![Int::from(i64::from(elements))], Vec::new());
    let some = Int::all(modes.iter().map(|(_, extent)| Int::from(0).less((*extent).clone())).collect::<Vec<_>>());
    // Rows first, then heads, then batches.
    let (rows, mut outer): (Vec<_>, Vec<_>) = modes.iter().partition(|(mode, _)| *mode == "row");
    outer.reverse();
    for (mode, extent) in rows.into_iter().chain(outer) {
        let name = format!("{}_{mode}", operand.param);
        let stride = rule.param(&name);
        let several = Int::from(1).less(extent.clone());
        let apart = rule.steps.set(&format!("{name}_apart"), several.clone().and(Int::from(0).less(stride.clone())));
        if mode == "row" {
            let lie = Int::from(0).less(stride.clone()).and(stride.clone().less(FAR));
            let lie = Int::all([some.clone(), several]).is(0).op(IntOp::Or, lie);
            let required = format!("rows of {} that are apart, by fewer than 2^39 elements", operand.name);
            let texts = [required.as_str(), "TMA has no rows that are all the same one"];
            rule.demand(DemandKind::Stride, lie, texts, &[("stride of a row", &stride)]);
        } else {
            rule.derive(&name, apart.clone());
        }
        dims.push(apart.clone().select((*extent).clone(), 1));
        strides.push(apart.select(stride * size, 16));
    }
    let extents = spec.extents.iter().take(dims.len()).map(|extent| i64::from(*extent).into()).collect();
    rule.maps.push(MapRule {
        param,
        when: some,
        dtype: spec.dtype,
        in_workspace: 0.into(),
        address: rule.param(&operand.param),
        dims,
        strides,
        extents,
        swizzle: spec.swizzle,
    });
}

/// Query heads share key heads in equal groups.
fn groups(rule: &mut Rule, hq: &Int, hk: &Int) {
    let none = hq.clone().is(0);
    let whole = Int::from(0).less(hk.clone()).select((hq.clone() % hk.clone()).is(0), 0);
    let because = "as many query heads share each key head";
    let texts = ["HQ, a multiple of HK", because];
    rule.demand(DemandKind::Extent, none.op(IntOp::Or, whole), texts, &[("HQ", hq), ("HK", hk)]);
}

/// Vectors of an operand are aligned. The stride of a single coordinate is never used: it is 0 for the kernel.
fn strides(rule: &mut Rule, operand: &Operand, modes: &[(&str, &Int)]) {
    let of = |(mode, extent): &(&str, _)| (format!("{}_{mode}", operand.param), format!("a {mode}"), *extent);
    if operand.dtype != DType::F32 {
        rule.aligned(operand, ALIGN.0 as i64, modes.iter().map(of));
    }
    for (name, _, extent) in modes.iter().map(of) {
        let stride = rule.param(&name);
        rule.derive(&name, Int::clone(extent).at_most(1).select(0, stride));
    }
}

impl Attention {
    /// Whether a query sees no keys behind its own, or those of a window.
    pub(super) fn has_diagonal(&self) -> bool {
        self.mask != Mask::Full
    }
}
