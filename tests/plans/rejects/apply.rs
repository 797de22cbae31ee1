//! The mistakes that a user can make with `elementwise_apply`, in a recipe and at a launch.

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Diagnostic;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{ElementwiseApply, Recipe, family};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};

fn rejected(settings: &[&str]) -> Vec<Diagnostic> {
    let settings = Settings::parse_lines(&settings.join("\n"));
    let family = family("elementwise_apply").expect("registered");
    family.plan(&settings, Some("k"), &Targets::default()).expect_err("refused").diagnostics().to_vec()
}

fn plan(settings: &str) -> Plan {
    let recipe = ElementwiseApply::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as("k", &Targets::default()).expect("a right recipe")
}

fn layout(shape: &[i64], stride: &[i64]) -> ViewLayout {
    ViewLayout::strided(shape, stride).expect("rank 1 to 5")
}

/// Views of the plan's operands in these layouts, 4 GiB apart; they bind.
fn views(plan: &Plan, layouts: &[ViewLayout]) -> Vec<ViewRef> {
    let views: Vec<ViewRef> = (1..)
        .zip(plan.operands().iter().zip(layouts))
        .map(|(i, (operand, layout))| ViewRef {
            dtype: operand.dtype,
            ptr: i << 32,
            available: Elements(1 << 30),
            layout: *layout,
            access: operand.access,
        })
        .collect();
    plan.bind_with(&views, &vec![1.0; plan.scalars().len()]).expect("legal before the mistake");
    views
}

/// What a launch is refused for, where `change` is made to views that bind.
fn unbound(settings: &str, layouts: &[ViewLayout], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plan = plan(settings);
    let mut views = views(&plan, layouts);
    change(&mut views);
    plan.bind_with(&views, &vec![1.0; plan.scalars().len()]).expect_err("refused").diagnostics().to_vec()
}

/// The same with other scalars.
fn unbound_scalars(settings: &str, layouts: &[ViewLayout], scalars: &[f64]) -> Vec<Diagnostic> {
    let plan = plan(settings);
    plan.bind_with(&views(&plan, layouts), scalars).expect_err("refused").diagnostics().to_vec()
}

type Rejects = Vec<(&'static str, Vec<Diagnostic>)>;

pub(crate) fn all() -> Rejects {
    [texts(), functions(), tensors(), kernels(), launches(), memory()].concat()
}

/// Settings that cannot be read.
fn texts() -> Rejects {
    vec![
        ("a key of another family", rejected(&["raster=n"])),
        ("an unknown variant", rejected(&["variant=fast"])),
        ("an unknown compute type", rejected(&["compute=f16"])),
        ("an expression that ends early", rejected(&["expr=relu(a * b"])),
        ("an expression that goes on", rejected(&["expr=a b"])),
        ("an unknown function", rejected(&["expr=rellu(a)"])),
        ("an input beyond h", rejected(&["expr=a + i"])),
        ("an input that is not declared", rejected(&["expr=|a| a * b"])),
        ("nine inputs declared", rejected(&["expr=|a, b, c, d, e, f, g, h, i| a"])),
        ("an input twice", rejected(&["expr=|x, bias, x| x + bias"])),
        ("an input with the name of a scalar", rejected(&["expr=|x, k; k| x * k"])),
        ("an input called let", rejected(&["expr=|a, let| a"])),
        ("a name that nothing declares", rejected(&["expr=|x, bias; alpha| alpha * x + bais"])),
        ("five outputs", rejected(&["expr=a, a, a, a, a"])),
        ("a scalar with the name of a number", rejected(&["expr=|a; inf| a * inf"])),
        ("a scalar twice", rejected(&["expr=|a; k, k| a * k"])),
        ("a truth value for an output", rejected(&["expr=a < b"])),
        ("an element type that is none", rejected(&["in=f12:(?,1)"])),
        ("a stride that is none", rejected(&["in=f16:(2,1)"])),
        ("no strides", rejected(&["in=f16:()"])),
        ("a parenthesis that stays open", rejected(&["in=f16:(?,1"])),
        ("six modes", rejected(&["out=f16:(?,?,?,?,?,1)"])),
    ]
}

/// Functions that the compute type does not have.
fn functions() -> Rejects {
    vec![
        ("integers divided, and an exponential of them", rejected(&["dtype=i32", "expr=exp(a) / b"])),
        ("half an integer", rejected(&["dtype=i8", "expr=a * 0.5 + b"])),
        ("a constant beyond f32", rejected(&["expr=a * 1e300 + b"])),
        ("a maximum of each row", rejected(&["expr=select(col() < width(), exp(a - max(a)), b)"])),
        ("a sum of a sum", rejected(&["expr=a + b * sum(sum(a))"])),
        ("integers and floats without a compute type", rejected(&["in=f16:(?,1), i32:(?,1)"])),
    ]
}

/// Tensors that are not the function's, or cannot be.
fn tensors() -> Rejects {
    let row = "f16:(?,1)";
    let nine = format!("in={}", [row; 9].join(", "));
    vec![
        ("an input without a tensor", rejected(&["expr=a * b", "in=f16:(?,1)"])),
        ("nine tensors", rejected(&["expr=a + b + c + d + e + f + g + h", &nine])),
        ("an output too many", rejected(&["expr=a + b", "out=f16:(?,1), f16:(?,1)"])),
        ("no output", rejected(&["expr=a + b", "out="])),
        ("a vector beside matrices", rejected(&["expr=a + b", "in=f16:(?,1), f16:1", "out=f16:(?,1)"])),
        ("two contiguous modes", rejected(&["expr=a", "in=f16:(1,1)", "out=f16:(?,1)"])),
        ("an output that is broadcast", rejected(&["expr=a", "in=f16:(?,1)", "out=f16:(0,1)"])),
    ]
}

/// Structures that the tensors, or the GPU, do not have.
fn kernels() -> Rejects {
    let cube = "in=f16:(?,?,1)";
    vec![
        ("tiles of rank 3", rejected(&["expr=a", cube, "variant=tv"])),
        ("nothing to turn", rejected(&["variant=transposed"])),
        (
            "threads that do not share a tile",
            rejected(&["expr=a", "in=f32:(1,?)", "out=f32:(?,1)", "variant=transposed", "threads=100"]),
        ),
        ("too many threads", rejected(&["threads=2000"])),
        ("a vector of 3 bytes", rejected(&["vector=3"])),
        ("a vector smaller than the widest type", rejected(&["expr=a", "in=f64:(?,1)", "out=f16:(?,1)", "vector=4"])),
        ("too many vectors in flight", rejected(&["unroll=100"])),
        (
            "vectors in flight that end within a mode of val",
            rejected(&["variant=tv", "dtype=i8", "vector=2", "unroll=3", "thr=(1,32):(32,1)", "val=(3,8):(8,1)"]),
        ),
        ("vectors in flight that leave a rest", rejected(&["variant=tv", "unroll=3"])),
        ("a thread layout that counts twice", rejected(&["variant=remapped", "thr=(4,64):(0,1)"])),
        ("bytes that are no whole elements", rejected(&["dtype=f64", "variant=tv", "val=(16,12):(12,1)", "vector=8"])),
    ]
}

const SUM: &str = "expr=a + b";

/// Views that are not those of the kernel.
fn launches() -> Rejects {
    let rows = [layout(&[4, 8], &[8, 1]); 3];
    let turned = "expr=a + b\nin=f16:(1,?), f16:(?,1)\nout=f16:(?,1)";
    let mixed = [layout(&[4, 8], &[1, 4]), rows[0], rows[0]];
    let bias = "expr=a + b\nin=f16:(?,1), f16:(0,1)\nout=f16:(?,1)";
    let broadcast = [rows[0], layout(&[4, 8], &[0, 1]), rows[0]];
    let scaled = "expr=|a; alpha, beta| a * alpha + beta";
    vec![
        ("a view too few", unbound(SUM, &rows, |v| v.truncate(2))),
        ("another type", unbound(SUM, &rows, |v| v[0].dtype = DType::Bf16)),
        ("an output that is not mutable", unbound(SUM, &rows, |v| v[2].access = Access::Read)),
        ("another rank", unbound(SUM, &rows, |v| v[1].layout = layout(&[4, 8, 1], &[8, 1, 1]))),
        ("shapes that differ", unbound(SUM, &rows, |v| v[0].layout = layout(&[3, 8], &[8, 1]))),
        ("an extent of 1 for a broadcast mode", unbound(SUM, &rows, |v| v[1].layout = layout(&[1, 8], &[8, 1]))),
        ("a column where rows are vectors", unbound(SUM, &rows, |v| v[0].layout = layout(&[4, 8], &[1, 4]))),
        ("rows where columns are turned", unbound(turned, &mixed, |v| v[0].layout = layout(&[4, 8], &[8, 1]))),
        ("a matrix where one row is broadcast", unbound(bias, &broadcast, |v| v[1].layout = layout(&[4, 8], &[8, 1]))),
        ("a stride that runs backwards", unbound(SUM, &rows, |v| v[0].layout = layout(&[4, 8], &[-8, 1]))),
        ("no columns", unbound(SUM, &rows, |v| v[2].layout = layout(&[4, 0], &[8, 1]))),
        ("a scalar too few", unbound_scalars(scaled, &rows[..2], &[1.0])),
        ("a scalar for a function without", unbound_scalars(SUM, &rows, &[1.0])),
    ]
}

/// Memory that is shared, short, or more than the kernel can count.
fn memory() -> Rejects {
    let rows = [layout(&[4, 8], &[8, 1]); 3];
    let turned = "expr=a + b\nin=f16:(1,?), f16:(?,1)\nout=f16:(?,1)";
    let column = layout(&[8, 8], &[1, 8]);
    let mixed = [column, layout(&[8, 8], &[8, 1]), layout(&[8, 8], &[8, 1])];
    let two = "expr=a + b, a - b";
    let line = [layout(&[100], &[1]); 2];
    let huge = |shape: [i64; 2]| {
        move |v: &mut Vec<ViewRef>| {
            for (i, view) in (1..).zip(v) {
                *view = ViewRef { layout: layout(&shape, &[shape[1], 1]), ptr: i << 60, ..*view };
                view.available = Elements(1 << 58);
            }
        }
    };
    vec![
        ("an output within an input", unbound(SUM, &rows, |v| v[2].ptr = v[0].ptr + 16)),
        (
            "in place with other strides",
            unbound(SUM, &rows, |v| {
                v[2] = ViewRef { ptr: v[0].ptr, layout: layout(&[4, 8], &[16, 1]), ..v[2] };
            }),
        ),
        ("in place of an input that is turned", unbound(turned, &mixed, |v| v[2].ptr = v[0].ptr)),
        ("two outputs in one memory", unbound(two, &[rows[0]; 4], |v| v[3].ptr = v[2].ptr)),
        ("an output whose rows overlap", unbound(SUM, &rows, |v| v[2].layout = layout(&[4, 8], &[7, 1]))),
        ("an output that is broadcast at launch", unbound(SUM, &rows, |v| v[2].layout = layout(&[4, 8], &[0, 1]))),
        ("an input whose rows overlap", unbound(SUM, &rows, |v| v[0].layout = layout(&[4, 8], &[4, 1]))),
        ("half an element off", unbound(SUM, &rows, |v| v[1].ptr += 1)),
        ("memory that ends early", unbound(SUM, &rows, |v| v[1].available = Elements(31))),
        (
            "a span beyond the address space",
            unbound("expr=a\nin=f16:(?,?)\nout=f16:(?,1)", &rows[..2], |v| {
                v[0].layout = layout(&[4, 8], &[i64::MAX / 4, i64::MAX / 64]);
            }),
        ),
        (
            "a vector longer than an index",
            unbound("expr=a\nin=f16:1\nout=f16:1", &line, |v| {
                for (i, view) in (1..).zip(v) {
                    let layout = layout(&[1 << 31], &[1]);
                    *view = ViewRef { layout, ptr: i << 40, available: Elements(1 << 32), ..*view };
                }
            }),
        ),
        ("more vectors than an index counts", unbound(SUM, &rows, huge([1 << 30, 64]))),
        (
            "more elements than threads are counted in",
            unbound("expr=a + b\nvariant=naive", &rows, huge([1 << 16, 1 << 15])),
        ),
        (
            "more tiles than a grid holds",
            unbound("expr=a + b\nvariant=tv", &rows, huge([(1 << 31) - (1 << 17), 1 << 20])),
        ),
    ]
}
