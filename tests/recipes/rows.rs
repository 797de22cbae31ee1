//! Contract: row programs are refused with a reason, or right as PTX for every shape, layout, address and input: integers to the bit,
//! others within the bound of any order of additions.

use crate::judge::{self, Defect};
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use crate::whole;
use cutemplate::arch::Targets;
use cutemplate::recipe::{Recipe, Rows};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> Rows {
    Rows::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

/// Problems whose rows are not wider than what the kernel holds.
fn own(count: u64, elements: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| {
        let columns = kernel.plan.settings().get("columns").and_then(|c| c.parse().ok()).expect("a number");
        let fits = |problem: &Problem| problem.layouts[0].layout.shape()[1] <= columns;
        kernel.problems(20 * count, elements).filter(fits).take(count as usize).collect()
    }
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let more = [
        "expr=|x| { let e = exp(x - max(x)); e / sum(e) }\nin=f32:(?,1)\ncolumns=2049",
        "expr=|x, w, b; eps| { let d = x - mean(x); d * rsqrt(mean(d * d) + eps) * w + b }\n\
         in=f16:(?,1), f32:(0,1), f32:(0,1)\ncolumns=2100\nthreads=1024",
        "expr=|x, y| (sum_group4(x * y), mean_group1024(x), x + width_group8())\n\
         in=i8:(?,1), f32:(1,?)\nout=f32:(?,1), bf16:(1,?), i32:(?,1)\ncolumns=1024",
        "expr=|x, n| (x - prod(min(x, n)), argmin(x))\nin=f64:(?,1), f64:?\nout=f64:(?,1), i32:1\ncolumns=1025\nchunks=3",
        "expr=|dy| sum_column(dy)\nin=f16:(?,1)\nout=f32:1\ncolumns=200\nctas=3\nstages=3",
        "expr=|x, w, dy| { let d = x - mean(x); let r = 1 / (1 + max(abs(d))); ((dy - mean(dy * d)) * w * r, sum_column(dy * d * r)) }\n\
         in=bf16:(?,1), f32:(0,1), f16:(1,?)\nout=f32:(?,1), f32:1\ncolumns=300\nthreads=64\nctas=2\nstages=2",
        GATHER,
        "expr=|x, y| (x * y, sum_column(x - y), max(x))\nin=f32:(1,?), f16:(?,1)\nout=f32:(?,1), f64:1, f32:1\n\
         gather=x\ncolumns=130\nctas=2",
        "expr=|x| x / sum(abs(x))\nin=f16:(?,1)\ngather=x\ncolumns=600\nhold=shared\nthreads=32",
        "expr=|x, y| (sum_column(x * y), max(x), min_column(x - y), y / sum(abs(x)))\nin=f32:(?,1), f64:(1,?)\n\
         out=f64:?, f32:1, f32:1, f32:(?,1)\ncolumns=70\nthreads=16\nctas=2\nstages=1",
        "expr=|x| (col() * 2 + width(), min(x), select(all(x > 3), 1, 0))\nin=u8:(?,1)\nout=i32:(?,1), i16:1, bool:1\ncolumns=64\nthreads=2",
    ];
    let mut tally = Tally::default();
    let settings = Rows::CATALOGUE.iter().copied().chain(more);
    let kernels = tally.plan("rows", (0..).zip(settings.map(recipe)), &Targets::default());
    assert_eq!(kernels.len(), 16, "{tally}");
    (tally, kernels)
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn row_programs_are_refused_or_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, own(whole::or(40, 12), 6000));
    tally.finish("row programs");
}

const SOFTMAX: &str = "expr=|x| { let e = exp(x - max(x)); e / sum(e) }\nin=f32:(?,1)\ncolumns=2049";

const COLUMNS: &str = "expr=|x| (x / sum(x), sum_column(x / max(x)))\nin=f32:(?,1)\ncolumns=1025\nctas=3";

/// Rows that wait in shared memory, with a state of two values.
const WAITS: &str =
    "expr=|x| { let e = exp2(x - max(x)); e / sum(e) }\nin=f16:(?,1)\ncolumns=2048\nhold=shared\nthreads=32\nchunks=1";

const LARGEST: &str = "expr=|x| argmax(x)\nin=f32:(?,1)\nout=i32:1\ncolumns=300";

/// Four tiles of a row.
const CUT: &str = "expr=|x| x * 2\nin=f32:(?,1)\nout=f32:(?,1)\ncolumns=64\nthreads=4\nchunks=1";

/// An embedding lookup, with a residual, and the norm of it.
const GATHER: &str = "expr=|x, residual, w; eps| { let h = x + residual; (h, h * rsqrt(mean(h * h) + eps * eps) * w) }\n\
                      in=bf16:(?,1), bf16:(?,1), bf16:(0,1)\ngather=x\ncolumns=300";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "an index past the last row",
        settings: GATHER,
        from: "rowIndex = mIndex(m);",
        to: "rowIndex = mIndex(m) + params.rows;",
    },
    Defect {
        what: "a negative index",
        settings: GATHER,
        from: "rowIndex = mIndex(m);",
        to: "rowIndex = mIndex(m) - params.rows;",
    },
    Defect { what: "the row of the output is read", settings: GATHER, from: "int64_t(rowIndex)", to: "int64_t(m)" },
    Defect {
        what: "a tile is read before it has arrived",
        settings: COLUMNS,
        from: "cp_async_wait<Stages - 1>();",
        to: "cp_async_wait<Stages>();",
    },
    Defect {
        what: "a tile takes the place of the one that is read",
        settings: COLUMNS,
        from: "(columns.slot + Stages - 1) % Stages",
        to: "columns.slot",
    },
    Defect {
        what: "the next tile overwrites what a warp still reads",
        settings: COLUMNS,
        from: "constexpr bool Meets = true;",
        to: "constexpr bool Meets = false;",
    },
    Defect { what: "a tile of rows is left out", settings: COLUMNS, from: "tile < tiles;", to: "tile < tiles - 1;" },
    Defect {
        what: "a tile of rows counts twice",
        settings: COLUMNS,
        from: "tile += step",
        to: "tile += step - (tile == 0)",
    },
    Defect {
        what: "a part is left out",
        settings: COLUMNS,
        from: "part = warp; part < params.parts",
        to: "part = warp; part < params.parts - 1",
    },
    Defect {
        what: "one column too many",
        settings: COLUMNS,
        from: "threadIdx.x % 32 == 0 && n < params.n",
        to: "threadIdx.x % 32 == 0 && n <= params.n",
    },
    Defect {
        what: "what warps have of a column is read before it is there",
        settings: COLUMNS,
        from: "  sParts(lane, warp) = state;\n  __syncthreads();",
        to: "  sParts(lane, warp) = state;",
    },
    Defect { what: "a lane is left out", settings: SOFTMAX, from: "lanes = Lanes / 2", to: "lanes = Lanes / 4" },
    Defect { what: "one row too many", settings: SOFTMAX, from: "m < params.m", to: "m <= params.m" },
    Defect { what: "one column too many", settings: SOFTMAX, from: "< width", to: "<= width" },
    Defect {
        what: "parts of warps are read before they are there",
        settings: SOFTMAX,
        from: "__syncthreads();",
        to: "",
    },
    Defect {
        what: "a part of a warp lies in another row",
        settings: SOFTMAX,
        from: "threadIdx.x % RowThreads / 32)",
        to: "0)",
    },
    Defect {
        what: "a tile that waits is read before it has arrived",
        settings: WAITS,
        from: "cp_async_wait<Most>();",
        to: "",
    },
    Defect {
        what: "a sum of exponentials is not rescaled",
        settings: WAITS,
        from: "Number sum = multiply(a.sum, Exponential{}(a.most - from));",
        to: "Number sum = a.sum;",
    },
    Defect {
        what: "the column is looked for in the first vector",
        settings: LARGEST,
        from: "i * Chunks + c)",
        to: "i * Chunks)",
    },
    Defect {
        what: "each CTA has the first tile of a row",
        settings: CUT,
        from: "int(blockIdx.x) % ctas, columns)",
        to: "0, columns)",
    },
    Defect { what: "the largest passes over NaN", settings: SOFTMAX, from: "max.NaN.f32", to: "max.f32" },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, own(12, 4000));
}
