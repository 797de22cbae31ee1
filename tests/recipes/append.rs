//! Contract: new keys and values lie in the pages of their sequences, rotated, for every length, table, layout and input; nothing else
//! is written.

use crate::judge::{self, Defect};
use crate::kernels::append::drawn;
use crate::kernels::{Kernel, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use crate::whole;
use cutemplate::arch::Targets;
use cutemplate::recipe::{Append, Recipe};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> Append {
    Append::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

/// Random recipes: a few, or with `CUTEMPLATE_WHOLE=1` more.
fn kernels() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let kernels = tally.plan("append", (0..whole::or(40, 8)).map(|index| (index, drawn(index))), &Targets::default());
    (tally, kernels)
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn random_recipes_are_refused_or_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, |kernel| kernel.problems(12, 4000).collect());
    tally.finish("append at random");
}

#[test]
fn every_refusal_has_a_reason() {
    let mut tally = Tally::default();
    let kernels = tally.plan("refused", (0..300).map(|index| (index, drawn(index))), &Targets::default());
    assert!(tally.failures.is_empty() && kernels.len() > 200 && kernels.len() < 300, "{tally}");
}

/// Rotated elements, others, and values.
const SMALL: &str = "head=48\nvalue=24\nrotary=32\nqueries=true";

/// The same, in pages of 8 bits.
const NARROW: &str = "head=48\nvalue=24\nrotary=32\nqueries=true\ndtype_kv=e4m3";

/// Sequences one after the other.
const PACKED: &str = "head=48\nvalue=24\nrotary=32\nqueries=true\nvarlen=true";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "a position too late",
        settings: SMALL,
        from: "keys - params.sq + i",
        to: "keys - params.sq + i + 1",
    },
    Defect {
        what: "the pages of another sequence",
        settings: SMALL,
        from: "row.batch * params.table_stride0",
        to: "0 * params.table_stride0",
    },
    Defect {
        what: "a page that is none",
        settings: SMALL,
        from: "if (number < 0 || number >= params.pages)",
        to: "if (number < 0)",
    },
    Defect {
        what: "a position past the table",
        settings: SMALL,
        from: "row.position < 0 || row.position >= params.entries * params.page",
        to: "row.position < 0",
    },
    Defect {
        what: "a position ahead of the sequence",
        settings: SMALL,
        from: "row.position < 0 || row.position >= params.entries * params.page",
        to: "row.position >= params.entries * params.page",
    },
    Defect { what: "a rotation the other way", settings: SMALL, from: "-__fmul_rn(b, sin)", to: "__fmul_rn(b, sin)" },
    Defect {
        what: "a cosine that is not there",
        settings: SMALL,
        from: "cute::min(position, params.positions - 1)",
        to: "position",
    },
    Defect {
        what: "the angle of a neighbour",
        settings: SMALL,
        from: "cos = ptr_cos[angle]",
        to: "cos = ptr_cos[angle / 2]",
    },
    Defect {
        what: "rows past the last",
        settings: SMALL,
        from: "if (number >= params.b * params.sq * heads)",
        to: "if (false)",
    },
    Defect {
        what: "the scale of another head",
        settings: NARROW,
        from: "static_cast<float const*>(params.scalek)[row.head]",
        to: "static_cast<float const*>(params.scalek)[0]",
    },
    Defect {
        what: "values without a scale",
        settings: NARROW,
        from: "static_cast<float const*>(params.scalev)[row.head]",
        to: "1.0f",
    },
    Defect {
        what: "the others in the place of rotated ones",
        settings: SMALL,
        from: "(params, heads, 32, from, to, keep, AsTheyAre{})",
        to: "(params, heads, 0, from, to, keep, AsTheyAre{})",
    },
    Defect {
        what: "the first row of the next sequence",
        settings: PACKED,
        from: "start_of(params.startsq, behind, params.tq) <= i)",
        to: "start_of(params.startsq, behind, params.tq) < i)",
    },
    Defect {
        what: "rows of the next sequence",
        settings: PACKED,
        from: "return {behind - 1, i, head, keys -",
        to: "return {cute::min(behind, params.b - 1), i, head, keys -",
    },
    Defect {
        what: "the sequence of a later row",
        settings: PACKED,
        from: "first_behind(params, first_row / heads)",
        to: "first_behind(params, first_row / heads + 1)",
    },
    Defect {
        what: "the last start of 32 instead of the first",
        settings: PACKED,
        from: "first + __ffs(found) - 1",
        to: "first + 31 - __clz(found)",
    },
    Defect {
        what: "starts past the rows",
        settings: PACKED,
        from: "cute::max(0, cute::min(static_cast<int const*>(starts)[number], rows))",
        to: "static_cast<int const*>(starts)[number]",
    },
    Defect {
        what: "positions that are counted from where a sequence begins",
        settings: PACKED,
        from: "keys - start_of(params.startsq, behind, params.tq)",
        to: "keys - start_of(params.startsq, behind - 1, params.tq)",
    },
    Defect {
        what: "a sequence ahead of the first",
        settings: PACKED,
        from: "behind == 0 || behind == params.starts",
        to: "behind == params.starts",
    },
    Defect {
        what: "a sequence behind the last",
        settings: PACKED,
        from: "behind == 0 || behind == params.starts",
        to: "behind == 0",
    },
    Defect {
        what: "queries of no sequence, rotated",
        settings: PACKED,
        from: "OfSequence{row.batch >= 0}",
        to: "OfSequence{true}",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, |kernel| kernel.problems(24, 4000).collect());
}
