//! The mistakes that a user can make with `sgemm`, in a recipe and at a launch.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Recipe, Sgemm, family};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};

fn rejected(settings: &[&str]) -> Vec<Diagnostic> {
    let settings = Settings::parse_lines(&settings.join("\n"));
    let family = family("sgemm").expect("registered");
    family.plan(&settings, Some("k"), &Targets::default()).expect_err("refused").diagnostics().to_vec()
}

fn plan(settings: &str) -> Plan {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as("k", &Targets::default()).expect("a right recipe")
}

fn layout(shape: &[i64], stride: &[i64]) -> ViewLayout {
    ViewLayout::strided(shape, stride).expect("rank 1 to 5")
}

/// Views of the operands of a problem without gaps, 4 GiB apart.
pub(crate) fn views(plan: &Plan, problem: &[i64]) -> Vec<ViewRef> {
    let shapes = plan.shapes(problem).expect("a problem");
    let view = |(i, (operand, shape)): (u64, (&cutemplate::plan::Operand, &Vec<i64>))| ViewRef {
        dtype: operand.dtype,
        ptr: i << 32,
        available: Elements(1 << 30),
        layout: operand.layout(shape, None).expect("small"),
        access: operand.access,
    };
    (1..).zip(plan.operands().iter().zip(&shapes)).map(view).collect()
}

fn scalars(plan: &Plan) -> Vec<f64> {
    vec![1.0; plan.scalars().len()]
}

/// What a launch of 8x6x4 is refused for, where `change` is made to views that bind.
fn unbound(settings: &str, change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = plan(settings);
    let problem: &[i64] = if plan.operands()[0].strides.len() == 3 { &[8, 6, 4, 2] } else { &[8, 6, 4] };
    let mut views = views(&plan, problem);
    plan.bind_with(&views, &scalars(&plan)).expect("legal before the mistake");
    change(&mut views);
    plan.bind_with(&views, &scalars(&plan)).expect_err("refused").diagnostics().to_vec()
}

type Rejects = Vec<(&'static str, Vec<Diagnostic>)>;

pub(crate) fn all() -> Rejects {
    [texts(), epilogues(), tiles(), pipelines(), launches(), memory()].concat()
}

/// Settings that cannot be read.
fn texts() -> Rejects {
    vec![
        ("an unknown variant", rejected(&["variant=block_3d"])),
        ("a key of another family", rejected(&["dtype=f16"])),
        (
            "values that cannot be read, all at once",
            rejected(&["tile=128x128", "thread=8", "a=rows", "stages=two", "smem_a=pad", "batched=yes", "warp=4"]),
        ),
        ("an expression that ends early", rejected(&["epilogue=relu(a"])),
        ("a name that is no identifier", {
            let recipe = Sgemm::default();
            recipe.plan_as("my-gemm", &Targets::default()).expect_err("refused").diagnostics().to_vec()
        }),
    ]
}

fn epilogues() -> Rejects {
    vec![
        ("an input without a tensor", rejected(&["epilogue=|a, b, c| a + c"])),
        ("a tensor without an input", rejected(&["aux=f32:(0,1)"])),
        ("two outputs", rejected(&["epilogue=a, a"])),
        ("no accumulator", rejected(&["epilogue=|;alpha| alpha"])),
        ("a bias of rank 1", rejected(&["epilogue=|a, b, c| a + c", "aux=f32:1"])),
        ("a bias without its batch", rejected(&["batched=true", "epilogue=|a, b, c| a + c", "aux=f32:(0,1)"])),
        ("two modes of stride 1", rejected(&["epilogue=|a, b, c| a + c", "aux=f32:(1,1)"])),
        ("a bias without its tensor", rejected(&["epilogue=|sum, bias| sum + bias"])),
    ]
}

fn tiles() -> Rejects {
    vec![
        ("a tile of no rows", rejected(&["variant=block_2d", "tile=0x64x8"])),
        ("a tile of 2048 rows", rejected(&["variant=block_2d", "tile=2048x64x8"])),
        ("thread tiles that leave a rest", rejected(&["variant=block_2d", "tile=64x60x8", "thread=8x8"])),
        ("a rung of single elements with thread tiles", rejected(&["variant=smem_tiled", "thread=2x2"])),
        ("a rung of columns with rows", rejected(&["variant=block_1d", "thread=8x2"])),
        ("threads that do not divide what they copy", rejected(&["variant=block_2d", "tile=24x24x5", "thread=8x8"])),
        ("columns of a tile that do not come in pairs", rejected(&["variant=pipelined", "tile=64x64x3"])),
        ("too many threads", rejected(&["variant=naive", "tile=64x64x1"])),
        ("warps of 30 threads", rejected(&["variant=warp_tiled", "warp=5x6"])),
        ("warps that do not divide the block", rejected(&["variant=warp_tiled", "tile=64x64x8", "warp=16x2"])),
        ("vectors of 8 bytes", rejected(&["variant=vectorized", "vector=8"])),
        ("padding that tears vectors apart", rejected(&["variant=vectorized", "smem_a=pad3"])),
        ("a swizzle that tears vectors apart", rejected(&["variant=vectorized", "smem_a=Sw<2,0,3>"])),
        ("a swizzle beyond the tile", rejected(&["variant=vectorized", "smem_b=Sw<3,4,7>"])),
        ("a swizzle of what is no power of two", {
            rejected(&["variant=vectorized", "tile=96x128x16", "thread=6x8", "smem_a=Sw<2,3,3>"])
        }),
        (
            "more shared memory than is declared in a text",
            rejected(&["variant=block_2d", "tile=128x128x64", "thread=8x8"]),
        ),
        ("too many values of a thread", rejected(&["variant=block_2d", "tile=256x256x8", "thread=16x16"])),
        (
            "more blocks than registers",
            rejected(&["variant=pipelined", "tile=128x128x8", "thread=8x8", "min_blocks=4"]),
        ),
        ("more blocks than threads", rejected(&["variant=naive", "min_blocks=3"])),
        ("conflicts that are denied", rejected(&["variant=pipelined", "smem_a=pad0"])),
        ("conflicts that are denied on a rung that has them", rejected(&["variant=block_2d", "conflicts=deny"])),
    ]
}

fn pipelines() -> Rejects {
    vec![
        ("one stage", rejected(&["stages=1"])),
        ("stages without a pipeline", rejected(&["variant=vectorized", "stages=3"])),
        ("stages that exceed shared memory", rejected(&["tile=128x128x32", "stages=8"])),
        ("tiles of which two exceed shared memory", rejected(&["tile=256x128x128", "min_blocks=1", "conflicts=allow"])),
        ("no part of K", rejected(&["split_k=0"])),
        ("parts of K without a pipeline", rejected(&["variant=naive", "split_k=4"])),
        ("65 parts of K", rejected(&["split_k=65"])),
        ("parts of K beside a wave", rejected(&["split_k=2", "wave=264"])),
        ("a wave without a pipeline", rejected(&["variant=naive", "wave=264"])),
        ("a wave of 65536 blocks", rejected(&["wave=65536"])),
    ]
}

/// Views that are not those of the kernel.
fn launches() -> Rejects {
    let rows = "variant=naive";
    let bias = "variant=naive\nepilogue=|a, b, c| a + c\naux=f16:(0,1)";
    let batched = "variant=naive\nbatched=true";
    vec![
        (
            "no C",
            unbound(rows, |v| {
                v.remove(2);
            }),
        ),
        ("a matrix of halves", unbound(rows, |v| v[0].dtype = DType::F16)),
        ("a D that is not mutable", unbound(rows, |v| v[3].access = Access::Read)),
        ("a batch too many", unbound(rows, |v| v[0].layout = layout(&[8, 4, 1], &[4, 1, 32]))),
        ("another K in B", unbound(rows, |v| v[1].layout = layout(&[5, 6], &[6, 1]))),
        ("A turned", unbound(rows, |v| v[0].layout = layout(&[4, 8], &[8, 1]))),
        ("a C of one row", unbound(rows, |v| v[2].layout = layout(&[1, 6], &[6, 1]))),
        ("a bias of one row, not broadcast", unbound(bias, |v| v[2].layout = layout(&[1, 6], &[6, 1]))),
        ("another number of batches", unbound(batched, |v| v[1].layout = layout(&[4, 6, 3], &[6, 1, 24]))),
        ("columns where rows are contiguous", unbound(rows, |v| v[0].layout = layout(&[8, 4], &[1, 8]))),
        ("rows where columns are contiguous", {
            unbound("variant=naive\nb=col", |v| v[1].layout = layout(&[4, 6], &[6, 1]))
        }),
        ("a negative extent", unbound(rows, |v| v[0].layout = layout(&[8, -4], &[4, 1]))),
        ("a leading dimension below K", unbound(rows, |v| v[0].layout = layout(&[8, 4], &[3, 1]))),
        ("a leading dimension of A below M, where columns are contiguous", {
            unbound("variant=naive\na=col", |v| v[0].layout = layout(&[8, 4], &[1, 7]))
        }),
        ("a leading dimension of B below N", unbound(rows, |v| v[1].layout = layout(&[4, 6], &[5, 1]))),
        ("a leading dimension of C below N", unbound(rows, |v| v[2].layout = layout(&[8, 6], &[5, 1]))),
        ("a leading dimension of D below N", unbound(rows, |v| v[3].layout = layout(&[8, 6], &[5, 1]))),
        ("a leading dimension that runs backwards", unbound(rows, |v| v[1].layout = layout(&[4, 6], &[-6, 1]))),
        ("a D whose batches are one", unbound(batched, |v| v[3].layout = layout(&[8, 6, 2], &[6, 1, 0]))),
        ("a D whose batches overlap", unbound(batched, |v| v[3].layout = layout(&[8, 6, 2], &[6, 1, 40]))),
        ("a scalar too few", {
            let plan = plan(rows);
            plan.bind_with(&views(&plan, &[8, 6, 4]), &[1.0]).expect_err("refused").diagnostics().to_vec()
        }),
        ("more rows than a grid holds", {
            unbound(rows, |v| {
                v[0].layout = layout(&[1 << 22, 4], &[4, 1]);
                v[2].layout = layout(&[1 << 22, 6], &[6, 1]);
                v[3].layout = layout(&[1 << 22, 6], &[6, 1]);
            })
        }),
        ("more sums of parts than an index counts", {
            unbound("variant=pipelined\nsplit_k=2", |v| {
                for (i, view) in (1..).zip(v) {
                    *view = ViewRef { ptr: i << 58, available: Elements(1 << 40), ..*view };
                    let rows = if i == 2 { 4 } else { 1 << 20 };
                    let cols = if i == 1 { 4 } else { 1 << 13 };
                    view.layout = layout(&[rows, cols], &[cols, 1]);
                }
            })
        }),
    ]
}

/// Memory that is shared, short or crooked.
fn memory() -> Rejects {
    let rows = "variant=vectorized";
    vec![
        ("2 bytes past a multiple of 4", unbound(rows, |v| v[0].ptr += 2)),
        ("a D that is not aligned to an element", unbound(rows, |v| v[3].ptr += 1)),
        ("memory that ends early", unbound(rows, |v| v[1].available = Elements(23))),
        ("D in place of A", {
            unbound(rows, |v| {
                v[3].layout = layout(&[8, 6], &[6, 1]);
                v[0].ptr = v[3].ptr;
            })
        }),
        ("D begins within the last row of A", unbound(rows, |v| v[3].ptr = v[0].ptr + 4 * 30)),
        ("D in place of B", unbound(rows, |v| v[1].ptr = v[3].ptr)),
        ("D one row behind C", unbound(rows, |v| v[3].ptr = v[2].ptr + 24)),
        ("D in place of C with another leading dimension", {
            unbound(rows, |v| v[3] = ViewRef { ptr: v[2].ptr, layout: layout(&[8, 6], &[8, 1]), ..v[3] })
        }),
        ("D in place of a bias", {
            unbound("variant=naive\nepilogue=|a, b, c| a + c\naux=f32:(0,1)", |v| v[2].ptr = v[3].ptr)
        }),
    ]
}
