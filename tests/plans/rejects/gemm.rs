//! Tiles, types and problems that the tensor-core kernels refuse.

use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Diagnostic;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::family;
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{ViewLayout, ViewRef};

pub(crate) fn planned(settings: &str, archs: &[Arch]) -> Result<Plan, Vec<Diagnostic>> {
    let targets = Targets::new(archs.iter().copied()).expect("not empty");
    let family = family("gemm").expect("registered");
    family.plan(&Settings::parse_lines(settings), Some("k"), &targets).map_err(|error| error.diagnostics().to_vec())
}

fn rejected(settings: &str) -> Vec<Diagnostic> {
    planned(settings, &[Arch::Sm80, Arch::Sm90a]).expect_err("refused")
}

/// On an architecture that multiplies 8-bit floats, promotes them and scales blocks.
fn narrow(settings: &str) -> Vec<Diagnostic> {
    planned(settings, &[Arch::Sm90a]).expect_err("refused")
}

/// A, B and D of (M,N,K) without gaps, far apart.
pub(crate) fn views(plan: &Plan, [m, n, k]: [i64; 3]) -> Vec<ViewRef> {
    views_of(plan, &[m, n, k])
}

/// The same for any problem.
pub(crate) fn views_of(plan: &Plan, problem: &[i64]) -> Vec<ViewRef> {
    let shapes = plan.shapes(problem).expect("extents of the problem");
    let view = |((o, shape), place): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let layout = o.layout(shape, None).expect("few elements");
        let available = Elements(1 << 42);
        ViewRef { dtype: o.dtype, ptr: place << 45, available, layout, access: o.access }
    };
    plan.operands().iter().zip(&shapes).zip(1..).map(view).collect()
}

fn unbound(problem: [i64; 3], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    unbound_of("out=f16", problem, change)
}

fn unbound_of(settings: &str, problem: [i64; 3], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = planned(settings, &[Arch::Sm80, Arch::Sm90a]).expect("a right recipe");
    let mut views = views(&plan, problem);
    change(&mut views);
    let refused: Vec<Vec<Diagnostic>> = plan
        .texts()
        .iter()
        .map(|part| {
            let named = part.bind(&views).expect_err("refused by each part").diagnostics().to_vec();
            assert!(named.iter().all(|d| d.kernel.as_deref() == Some(part.name())), "{named:?}");
            named.into_iter().map(|d| Diagnostic { kernel: Some(plan.name().to_owned()), ..d }).collect()
        })
        .collect();
    // Which part a launch takes is the GPU's: the reasons are the same.
    assert!(refused.windows(2).all(|pair| pair[0] == pair[1]), "{refused:?}");
    refused.into_iter().next().expect("a part")
}

/// The views fit both texts, and the plan is that of both.
fn of_two_texts() -> Vec<Diagnostic> {
    let plan = planned("out=f16", &[Arch::Sm80, Arch::Sm90a]).expect("a right recipe");
    let views = views(&plan, [64, 64, 64]);
    plan.texts().iter().for_each(|text| assert!(text.bind(&views).is_ok(), "{}", text.name()));
    let refused = |found: Option<cutemplate::diagnostic::BindError>| found.expect("refused").diagnostics().to_vec();
    assert_eq!(refused(plan.predict(&views).err()), refused(plan.bind(&views).err()));
    refused(plan.bind(&views).err())
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    let strided = |shape: [i64; 2], stride: [i64; 2]| ViewLayout::strided(&shape, &stride).expect("few elements");
    vec![
        ("another type of D", rejected("out=bf16")),
        ("factors of f32", rejected("dtype=f32")),
        ("a launch of two texts", of_two_texts()),
        ("8-bit floats on an architecture without their tensor cores", rejected("dtype=e4m3")),
        (
            "8-bit floats by warps, promoted",
            planned("dtype=e4m3\npromote=128\ntile=128x128x128", &[Arch::Sm89]).expect_err("refused"),
        ),
        ("a type of D that integers have none of", rejected("dtype=i8\nout=e4m3")),
        ("a root of integers", rejected("dtype=i8\nepilogue=sqrt(a)")),
        ("8-bit floats beside others, promoted within k-tiles", narrow("dtype=bf16\ndtype_b=e5m2\npromote=128")),
        ("a scale without the other", narrow("dtype=e4m3\nscale_a=1x128")),
        (
            "an input that is called as the scales of blocks are",
            narrow(
                "dtype=e4m3\npromote=128\nscale_a=1x128\nscale_b=128x128\ntile=128x128x128\nepilogue=|a, scale_a| a * scale_a\naux=f32:(1,0)",
            ),
        ),
        ("a type of scales that there are not", narrow("dtype=e4m3\nscale_type=ue8m0")),
        ("scales of more or fewer elements", narrow("dtype=e4m3\nscale_a=1x128\nscale_b=128x128\ntile=128x128x64")),
        ("a type of D that 8-bit floats have none of", narrow("dtype=e4m3\nout=e5m2\npromote=96")),
        ("rows of a D of 8 bits that no swizzle has", narrow("dtype=e4m3\nout=e4m3\ntile=128x80x128")),
        ("two accumulators for each sum of a large tile", narrow("dtype=e4m3\npromote=128\ntile=128x256x128")),
        ("a quantised D of f32 that lies in columns", narrow("dtype=e4m3\nout=f32\nscale_d=128x128\nd=col")),
        (
            "a quantised D whose columns several CTAs have",
            narrow("dtype=e4m3\nout=e4m3\nscale_d=1x128\ntile=128x192x128\nsplit_k=2"),
        ),
        (
            "pairs that lie in rows, and pieces of K",
            rejected("pairs=true\nepilogue=|gate, up| gate * up\nd=col\nstream_k=1"),
        ),
        (
            "pairs whose D is quantised, and sums that move to f32",
            narrow(
                "dtype=e4m3\nout=e4m3\nscale_d=1x128\npromote=128\npairs=true\nepilogue=|gate, up| gate * up\ntile=64x256x128",
            ),
        ),
        ("one input for a pair", rejected("pairs=true")),
        (
            "pairs with one input for a tensor along N",
            rejected("pairs=true\nepilogue=|gate, up, s| gate * up + s\naux=f32:(0,1)"),
        ),
        (
            "a quantised D of pairs in narrow tiles",
            narrow("dtype=e4m3\nout=e4m3\nscale_d=1x128\npairs=true\nepilogue=|gate, up| gate * up\ntile=128x128x128"),
        ),
        (
            "a launch of pairs of an odd N",
            unbound_of("pairs=true\nepilogue=|gate, up| gate * up", [64, 66, 64], |v| {
                v[1].layout = ViewLayout::strided(&[64, 65], &[1, 64]).expect("few elements");
            }),
        ),
        (
            "a quantised D by warps",
            planned("dtype=e4m3\nout=e4m3\nscale_d=1x128\ntile=128x128x128", &[Arch::Sm89]).expect_err("refused"),
        ),
        ("groups that begin in a column of A, by warps", rejected("a=col\ngroups=rows")),
        ("clusters, groups and CTAs that there are not", rejected("cluster=3x1\ngroup=0\nctas=0\nsm80_ctas=0")),
        ("tiles that no warpgroup, warp or swizzle has", rejected("tile=96x40x24\nsm80_tile=96x48x24")),
        ("a tile of more than a box", rejected("tile=512x128x64")),
        ("an architecture without the instructions", planned("", &[Arch::Sm75, Arch::Sm90a]).expect_err("refused")),
        ("one stage", rejected("stages=1\nsm80_stages=1")),
        ("more stages than fit", rejected("stages=8\nsm80_stages=8")),
        ("a tile that eight warps do not divide", rejected("sm80_tile=128x160x64\nsm80_stages=2")),
        ("a tile of more accumulators than registers", rejected("tile=256x256x16\nsm80_tile=256x256x16")),
        (
            "two teams with tiles of more rows than a warpgroup accumulates",
            rejected("schedule=pingpong\ntile=256x128x64"),
        ),
        (
            "two teams with accumulators that leave no registers for what goes with D",
            rejected("schedule=pingpong\ntile=128x192x64\nepilogue=|a, b, c| a + b + c\naux=f32:(0,1)"),
        ),
        ("a tile whose third warpgroup leaves too few registers", rejected("tile=192x256x64\nstages=3")),
        ("an instruction with more accumulators than a thread is launched with", rejected("tile=192x208x64\nstages=2")),
        (
            "three tensors beside the accumulators of a large tile",
            rejected(
                "tile=256x176x64\nstages=3\nepilogue=|a, c, b, d; beta| a + beta * c + b * d\naux=f32:(?,?), f32:(?,1)",
            ),
        ),
        (
            "two teams with tiles of more accumulators than registers",
            rejected("schedule=pingpong\ntile=128x256x64\nstages=2"),
        ),
        ("parts of K that a cluster does not add up", rejected("split_k=3")),
        ("parts of K in a cluster that is too large", rejected("cluster=2x2\nsplit_k=4")),
        ("parts of K of teams by turns", rejected("schedule=pingpong\ntile=128x128x64\nsplit_k=2")),
        ("tiles that are shared by more than count", rejected("stream_k=65537\nsm80_stream_k=65537")),
        ("tiles that are shared by those that add up", rejected("stream_k=16\nsplit_k=2\ntile=128x128x64")),
        ("tiles that are shared by teams", rejected("stream_k=16\nschedule=pingpong\ntile=128x128x64")),
        ("parts of K of a tile with few columns", rejected("tile=64x32x64\nsplit_k=4")),
        ("groups of rows whose tiles are shared", rejected("groups=rows\nstream_k=16")),
        ("batches of groups of columns", rejected("groups=masked\nbatched=true\nd=col")),
        ("groups along K of operands that lie along K", rejected("groups=k\nschedule=pingpong\ntile=128x128x64")),
        ("an index of rows that lie in columns", rejected("gather=true\na=col\nbatched=true")),
        ("an index of rows of tiles that are shared", rejected("scatter=true\nstream_k=16\nd=col")),
        (
            "scales of 128 rows of groups that begin at any row",
            narrow("groups=rows\ndtype=e4m3\npromote=128\ntile=128x128x128\nscale_a=128x128\nscale_b=128x128"),
        ),
        ("an epilogue of more tensors than are listed", rejected("epilogue=|a, b, c| a + c")),
        ("a row of biases of three modes", rejected("epilogue=|a, b, c| a + c\naux=f32:(0,1,0)")),
        ("a bias without its tensor", rejected("epilogue=|a, bias| gelu(a + bias)")),
        (
            "a second input beside a bias that is not called c",
            rejected("epilogue=|a, old, bias| a + old + bias\naux=f32:(0,1,0)\nbatched=true"),
        ),
        ("B in rows", unbound([128, 128, 64], |v| v[1].layout = strided([64, 128], [128, 1]))),
        ("A of f32", unbound([128, 128, 64], |v| v[0].dtype = DType::F32)),
        ("B of another K", unbound([128, 128, 64], |v| v[1].layout = strided([72, 128], [1, 72]))),
        ("more rows than an index holds", unbound([(1 << 31) - 8, 8, 8], |_| {})),
        ("sums of integers that may not fit", unbound_of("dtype=i8", [64, 64, 1 << 17], |_| {})),
    ]
}
