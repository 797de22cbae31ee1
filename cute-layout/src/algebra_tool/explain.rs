//! Derivations: how a result comes about, step by step, as text that a person can follow.

use crate::layout::{
    AnyLayout, Cute, Flat, IntTuple, Layout, LayoutError, Tiler, TilerModes, coalesce, coalesced, coalesced_unbounded,
    complement, cute_verdict, downcast, filter, is_admissible_for_complement, make_layout, raked_product, recast_ratio,
    right_inverse, sorted, upcast,
};
use std::fmt::Write;

use super::explain_laws::law;
use super::{Value, apply};

/// The derivation of an operation's result, or of its refusal: operands, law, steps, result, and a check by values.
///
/// # Errors
/// There is no such operation or it has other arguments. That the operation refuses is not an error here: the refusal is
/// the last step of the text.
///
/// ```
/// use cute_layout::algebra_tool::explain;
/// let text = explain("complement", &["4:2".parse()?, "19".parse()?])?;
/// assert!(text.contains("gap of 2"), "{text}");
/// assert!(text.ends_with("= (2,3):(1,8)\n"), "{text}");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn explain(op: &str, arguments: &[Value]) -> Result<String, LayoutError> {
    let known = super::find(op)?;
    let given: Vec<String> = arguments.iter().map(Value::to_string).collect();
    let mut text = Derivation::default();
    text.line(format!("{}({})", known.name, given.join(", ")));
    let result = apply(op, arguments);
    text.line(format!("law: {}", law(known.name)));
    text.depth = 1;
    // A step that cannot be shown is not shown; the result or the refusal follows in any case.
    let shown = steps(&mut text, op, arguments);
    text.depth = 0;
    match (result, shown) {
        (Ok(result), _) => text.line(format!("= {result}")),
        (Err(error), _) => text.line(format!("refused. {error}")),
    }
    Ok(text.text)
}

#[derive(Default)]
struct Derivation {
    text: String,
    depth: usize,
}

impl Derivation {
    fn line(&mut self, line: impl AsRef<str>) {
        for part in line.as_ref().lines() {
            // Writing to a String does not fail.
            let _ = writeln!(self.text, "{:width$}{part}", "", width = self.depth * 2);
        }
    }
}

fn steps(text: &mut Derivation, op: &str, a: &[Value]) -> Result<(), LayoutError> {
    match op {
        "composition" => composition_steps(text, a),
        "with_shape" => {
            let compact = make_layout(a[1].shape("with_shape")?)?;
            text.line(format!("the compact layout of the shape: {compact}; the layout is composed with it"));
            compose_steps(text, a[0].any("with_shape")?.domain()?, &compact)
        }
        "complement" => {
            let layout = a[0].any("complement")?.domain()?;
            let target = match a.get(1) {
                Some(target) => target.shape("complement")?.clone(),
                None => IntTuple::int(filter(layout)?.cosize()?),
            };
            complement_steps(text, layout, &target)
        }
        "coalesce" | "filter" => {
            let profile = a.get(1).map(|profile| profile.shape("coalesce")).transpose()?;
            merge_steps(text, op, a[0].any("coalesce")?.domain()?, profile)
        }
        "right_inverse" | "left_inverse" => inverse_steps(text, a[0].any("inverse")?.domain()?, op == "left_inverse"),
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
            divide_steps(text, a[0].any("logical_divide")?.domain()?, &a[1].tiler("logical_divide")?)
        }
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" | "blocked_product"
        | "raked_product" => {
            product_steps(text, a[0].any("logical_product")?.domain()?, &a[1].tiler("logical_product")?)
        }
        "make_layout_tv" => tv_steps(text, a[0].plain("make_layout_tv")?, a[1].plain("make_layout_tv")?),
        "upcast" => cast_steps(text, a[0].any("upcast")?.domain()?, a[1].integer("upcast")?, 1),
        "downcast" => cast_steps(text, a[0].any("downcast")?.domain()?, 1, a[1].integer("downcast")?),
        "recast_layout" => {
            let (up, down) = recast_ratio(a[1].integer("recast_layout")?, a[2].integer("recast_layout")?)?;
            text.line(format!("the ratio of the sizes is {up}/{down}"));
            cast_steps(text, a[0].any("recast_layout")?.domain()?, up, down)
        }
        "crd2idx" | "eval" => value_steps(text, op, a),
        "is_admissible_for_complement" => admissible_steps(text, a[0].plain("is_admissible_for_complement")?, &a[1]),
        "is_injective" | "is_bijective" | "is_compact" | "is_tractable" | "sorted" => {
            text.line(format!("in the order of strides: {}", sorted(a[0].plain("sorted")?)?));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Why a layout is admissible, or which pair does not divide.
fn admissible_steps(text: &mut Derivation, layout: &Layout, size: &Value) -> Result<(), LayoutError> {
    let size = size.integer("is_admissible_for_complement")?;
    text.line(format!("in the order of strides, without zeros: {}", sorted(&filter(layout)?)?));
    match is_admissible_for_complement(layout, size) {
        Ok(()) => {
            text.line(format!("each stride is a multiple of the extent times the stride before it; so is {size}"))
        }
        Err(why) => text.line(format!("found {}; required {}", why.what_was_found(), why.what_is_required())),
    }
    Ok(())
}

fn modes_text(flat: &Flat) -> String {
    let modes: Vec<String> =
        flat.iter().map(|(s, d)| format!("{}:{}", IntTuple::leaf(*s), IntTuple::leaf(*d))).collect();
    modes.join("  ")
}

fn composition_steps(text: &mut Derivation, a: &[Value]) -> Result<(), LayoutError> {
    let left = a[0].any("composition")?;
    match (left, &a[1]) {
        (AnyLayout::Plain(left), Value::Layout(AnyLayout::Plain(right))) => compose_steps(text, left, right),
        (AnyLayout::Composed(composed), Value::Layout(AnyLayout::Plain(right))) if composed.domain().is_ok() => {
            text.line("the function that is applied last stays as it is; the layout that is applied first is composed");
            compose_steps(text, composed.domain()?, right)
        }
        (_, Value::Layout(_)) => {
            text.line(
                "a swizzle is carried through a layout where that gives the same values, and stays apart elsewhere",
            );
            Ok(())
        }
        (left, tiler) => tile_steps(text, left.domain()?, &tiler.tiler("composition")?),
    }
}

/// A composition with a tiler: one for each mode that the tiler has.
fn tile_steps(text: &mut Derivation, layout: &Layout, tiler: &Tiler) -> Result<(), LayoutError> {
    let tile = match tiler.modes() {
        TilerModes::Keep => {
            text.line(format!("{layout} o _: kept"));
            return Ok(());
        }
        // An integer `n` is `n:1`.
        TilerModes::Extent(extent) => Layout::from_parts(extent.clone(), IntTuple::int(1)),
        TilerModes::Terminal(tile) => tile.clone(),
        TilerModes::ByMode(_) => {
            let (modes, entries) = (layout.shape().rank(), tiler.entries().count());
            for (i, (mode, entry)) in layout.modes().zip(tiler.entries()).enumerate() {
                text.line(format!("mode {i}: {mode} o {entry}"));
                text.depth += 1;
                let shown = tile_steps(text, &mode, &entry);
                text.depth -= 1;
                shown?;
            }
            if entries < modes {
                text.line(format!("modes from {entries} on: kept"));
            }
            return Ok(());
        }
    };
    compose_steps(text, layout, &tile)?;
    text.line(format!("= {}", crate::layout::composition(layout, &tile)?));
    Ok(())
}

fn compose_steps(text: &mut Derivation, a: &Layout, b: &Layout) -> Result<(), LayoutError> {
    let lhs = coalesced_unbounded(a)?;
    text.line(format!("A coalesced: {}   (the last mode has no bound)", modes_text(&lhs)));
    if !b.int_strides() {
        text.line("B's strides are basis elements: each leaf steps through the mode of A that it points to");
        return Ok(());
    }
    let mut weight = 1i64;
    let weights: Vec<String> = lhs
        .iter()
        .map(|(s, _)| {
            let here = weight;
            weight = weight.saturating_mul(s.value);
            here.to_string()
        })
        .collect();
    text.line(format!("A's modes begin at the indices {}", weights.join(", ")));
    for (i, (s, d)) in b.pairs().enumerate() {
        let leaf = Layout::from_parts(IntTuple::leaf(s), IntTuple::leaf(d));
        match crate::layout::composition(a, &leaf) {
            Ok(result) => text.line(format!("leaf {i} of B, {leaf}: steps of {} through A are {result}", d.value)),
            Err(error) => text.line(format!("leaf {i} of B, {leaf}: no layout ({})", error.class())),
        }
    }
    if b.shape().leaf_count() > 1 {
        text.line("together: the leaves must not carry into each other at those indices");
    }
    if let Some(Cute::Accepts(theirs)) = cute_verdict(a, b)
        && crate::layout::laws::composition(a, b, &theirs).is_err()
        && b.size() <= crate::layout::laws::MOST_CHECKED
    {
        text.line(format!("CuTe C++ answers {theirs}, whose values are not A(B(c))"));
    }
    Ok(())
}

fn complement_steps(text: &mut Derivation, layout: &Layout, target: &IntTuple) -> Result<(), LayoutError> {
    let mut modes = coalesced(&filter(layout)?)?;
    modes.sort_by_key(|(_, d)| d.value);
    text.line(format!("without zero strides, in the order of strides: {}", modes_text(&modes)));
    let mut covered = 1i64;
    for (s, d) in &modes {
        let gap = d.value / covered.max(1);
        text.line(format!("0 .. {covered} is covered; stride {} leaves a gap of {gap}: mode {gap}:{covered}", d.value));
        if gap == 0 {
            return Ok(());
        }
        covered = d.value.saturating_mul(s.value);
    }
    text.line(format!("0 .. {covered} is covered; the rest of {target} is what remains, with stride {covered}"));
    Ok(())
}

fn merge_steps(
    text: &mut Derivation,
    op: &str,
    layout: &Layout,
    profile: Option<&IntTuple>,
) -> Result<(), LayoutError> {
    if let Some(profile) = profile.filter(|profile| profile.depth() > 0) {
        text.line(format!("the profile {profile} has {} modes: each is a layout of its own", profile.rank()));
        for (i, mode) in layout.modes().enumerate() {
            let Some(of_mode) = profile.mode(i) else {
                text.line(format!("mode {i}: {mode}, kept"));
                continue;
            };
            text.line(format!("mode {i}: {mode}"));
            text.depth += 1;
            let shown = merge_steps(text, op, &mode, Some(&of_mode));
            text.depth -= 1;
            shown?;
        }
        return Ok(());
    }
    let flat: Flat = layout.pairs().map(|(s, d)| (s.bare(), d.bare())).collect();
    text.line(format!("flat: {}", modes_text(&flat)));
    if op == "filter" {
        text.line("modes of stride 0 get extent 1");
    }
    text.line("modes of extent 1 are dropped; s:d before t:e merges to s*t:d where s*d = e");
    if profile.is_some() {
        let merged = if op == "filter" { filter(layout)? } else { coalesce(layout)? };
        text.line(format!("= {merged}"));
    }
    Ok(())
}

fn inverse_steps(text: &mut Derivation, layout: &Layout, left: bool) -> Result<(), LayoutError> {
    let modes = coalesced(layout)?;
    text.line(format!("coalesced: {}", modes_text(&modes)));
    let mut index = 1i64;
    let mut rows: Vec<(i64, i64, i64)> = Vec::new();
    for (s, d) in &modes {
        rows.push((d.value, s.value, index));
        index = index.saturating_mul(s.value);
    }
    rows.sort_unstable();
    let mut reached = 1i64;
    for (d, s, index) in rows {
        if left {
            text.line(format!("values from {d} on, in steps of {d}: index {index} a step"));
        } else if d == reached {
            text.line(format!(
                "values {d} .. {} are reached by mode {s}:{d}: index {index} a step",
                d.saturating_mul(s)
            ));
            reached = d.saturating_mul(s);
        } else {
            text.line(format!("mode {s}:{d} does not go on at {reached}: left out"));
        }
    }
    Ok(())
}

fn divide_steps(text: &mut Derivation, layout: &Layout, tiler: &Tiler) -> Result<(), LayoutError> {
    match tiler.modes() {
        TilerModes::Keep => text.line(format!("{layout} / _: kept")),
        TilerModes::Extent(extent) => {
            return divide_steps(text, layout, &Tiler::Layout(crate::layout::make_layout(extent)?));
        }
        TilerModes::ByMode(_) => {
            for (mode, entry) in layout.modes().zip(tiler.entries()) {
                divide_steps(text, &mode, &entry)?;
            }
        }
        TilerModes::Terminal(tile) => {
            let target = coalesce(layout)?;
            let rest = complement(tile, target.shape())?;
            text.line(format!("{layout} / {tile}:"));
            text.depth += 1;
            text.line(format!("rest = complement({tile}, {}) = {rest}", target.shape()));
            let both = Layout::from_modes([tile.clone(), rest])?;
            text.line(format!("{layout} o {both}"));
            text.depth += 1;
            compose_steps(text, layout, &both)?;
            text.depth -= 2;
        }
    }
    Ok(())
}

fn product_steps(text: &mut Derivation, block: &Layout, tiler: &Tiler) -> Result<(), LayoutError> {
    let TilerModes::Terminal(tile) = tiler.modes() else {
        text.line("mode by mode");
        return Ok(());
    };
    let (size, cosize) = (block.size(), tile.cosize()?);
    text.line(format!("the block has {size} elements, the tiler reaches to {cosize}"));
    let copies = complement(block, &IntTuple::int(crate::layout::mul(size, cosize)?))?;
    text.line(format!("where copies may begin: complement({block}, {size} * {cosize}) = {copies}"));
    text.line(format!("the copies: {copies} o {tile}"));
    text.depth += 1;
    let steps = compose_steps(text, &copies, tile);
    text.depth -= 1;
    steps
}

fn tv_steps(text: &mut Derivation, threads: &Layout, values: &Layout) -> Result<(), LayoutError> {
    let tile = raked_product(threads, values)?;
    text.line(format!("tile: raked_product({threads}, {values}) = {tile}"));
    text.line("it maps an element of the tile to t + v * size(threads): the thread and the value that own it");
    let inverse = right_inverse(&tile)?;
    text.line(format!("turned around: right_inverse = {inverse}, from thread and value to an element"));
    text.line(format!("shaped as (threads, values) = ({},{})", threads.size(), values.size()));
    Ok(())
}

fn cast_steps(text: &mut Derivation, layout: &Layout, up: i64, down: i64) -> Result<(), LayoutError> {
    let larger = upcast(layout, up)?;
    let smaller = downcast(&larger, down)?;
    for (by, before, after) in [(up, layout, &larger), (down, &larger, &smaller)] {
        let by = if std::ptr::eq(before, layout) { by.to_string() } else { format!("1/{by}") };
        for ((s, d), (new_s, new_d)) in before.pairs().zip(after.pairs()).filter(|_| by != "1" && by != "1/1") {
            let leaf = |s, d| Layout::from_parts(IntTuple::leaf(s), IntTuple::leaf(d));
            let how = match (s.same(new_s), d.same(new_d)) {
                (true, true) => "stays".to_owned(),
                (true, false) if by.starts_with('1') && by.contains('/') => "its stride is multiplied".to_owned(),
                (true, false) => "its stride is divided".to_owned(),
                (false, _) if by.contains('/') => "it grows, for the parts of an element".to_owned(),
                (false, _) => "it steps inside the larger element: its extent shrinks".to_owned(),
            };
            text.line(format!("{} by {by}: {how}, {}", leaf(s, d), leaf(new_s, new_d)));
        }
    }
    Ok(())
}

fn value_steps(text: &mut Derivation, op: &str, a: &[Value]) -> Result<(), LayoutError> {
    let (layout, coord) = if op == "eval" { (&a[0], &a[1]) } else { (&a[1], &a[0]) };
    let Value::Layout(layout) = layout else {
        return Ok(());
    };
    let domain = layout.domain()?;
    let coord = coord.tuple("crd2idx")?;
    let mut terms = Vec::new();
    crate::layout::digits(coord, domain.shape(), 0, &mut |i, digit| {
        terms.push(format!("{digit}*{}", IntTuple::leaf(domain.stride().raw()[i])));
        Ok(())
    })?;
    text.line(format!("each leaf's coordinate times its stride: {}", terms.join(" + ")));
    if let AnyLayout::Composed(composed) = layout {
        text.line(format!("plus {}, then {}", composed.offset(), composed.outer()));
    }
    Ok(())
}
