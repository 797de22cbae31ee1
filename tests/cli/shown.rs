//! Contract: errors of the library as a program shows them: `main` that returns one prints `Error: ` and its `Debug`, and so does
//! `unwrap`. Each is a message in words, with what helps.

use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::launch::NoGpu;
use cutemplate::recipe::{Gemm, Recipe, Sum, family};
use cutemplate::settings::Settings;
use cutemplate::view::{Args, View, ViewLayout, ViewMut};
use expect_test::{Expect, expect};

/// As `fn main() -> Result<(), Box<dyn Error>>` prints it.
fn shown(error: impl core::fmt::Debug, expected: Expect) {
    expected.assert_eq(&format!("Error: {error:?}\n"));
}

#[test]
fn an_expression_shows_where_and_what_is_near() {
    shown(
        "exq(a)".parse::<Function>().expect_err("no such function"),
        expect![[r#"
        Error: error[expr-parse]: the expression is refused
          found:    `exq(a)` at position 0
          required: one of the functions abs, exp, exp2, log, log2, sqrt, rsqrt, sin, cos, tanh, erf, relu, sigmoid, silu, gelu, gelu_tanh, min, max, pow, cast, clamp, fma, recip, saturate, select
          help:     the nearest name is `exp`
    "#]],
    );
    shown(
        "|x| x * y".parse::<Function>().expect_err("nobody declared y"),
        expect![[r#"
        Error: error[expr-parse]: the expression is refused
          found:    `y` at position 8
          required: an input (x), a part named by `let`, or a function with `(`
          help:     inputs and run-time scalars are declared in front: |x, y| .. or |x; y| ..
    "#]],
    );
}

#[test]
fn a_missing_gpu_says_why_and_promises_nothing() {
    let none = NoGpu { reason: "the driver finds no device".into(), help: "look at what nvidia-smi says" };
    shown(
        none,
        expect![[r#"
        Error: no GPU: the driver finds no device
          help: look at what nvidia-smi says
    "#]],
    );
}

#[test]
fn types_families_and_recipes_are_refused_in_words() {
    shown(
        Gemm::of(DType::I16).expect_err("no tensor core has it"),
        expect![[r#"
            Error: gemm does not multiply i16
              found:    A and B of i16
              required: f16, bf16, e4m3, e5m2, i8, or f32, which is multiplied as tf32
              because:  these are the types that this family has tensor core instructions for
              help:     sgemm multiplies f32 with all its bits
        "#]],
    );
    shown(
        family("gem").expect_err("a slip"),
        expect![[r#"
        Error: there is no kernel family `gem`; did you mean `gemm`?
    "#]],
    );
    let settings = Settings::parse_lines("threads=33");
    shown(
        family("sum").expect("there").plan(&settings, None, &Targets::default()).expect_err("33"),
        expect![[r#"
        Error: error[CT008]: the thread count is outside what a block can have
          recipe:   Sum { function: a, inputs: [f32:(?,1)], out: f32, by: warp, threads: 33 } for sm_80, sm_90a
          found:    33 threads
          required: a multiple of 32, up to 1024
          because:  whole warps have whole rows
          help:     a CTA of 256 threads
    "#]],
    );
}

#[test]
fn a_launch_names_the_tensor() {
    let plan = Sum::default().plan(&Targets::default()).expect("a right recipe");
    let (a, mut y) = ([0.0_f32; 6], [0.0_f32; 3]);
    let mut args = cutemplate::view::Arguments::<Sum, _>::new()
        .read(View::host(&a, [3, 2], 2))
        .write(ViewMut::host_strided(&mut y, ViewLayout::strided(&[2], &[1]).expect("two")));
    let views: Vec<_> = args.views().iter().map(cutemplate::view::AnyView::raw).collect();
    let refused = plan.abi().bind(&views).expect_err("a sum too few").to_string();
    // Where the memory lies differs from run to run.
    let stable: Vec<&str> = refused.lines().filter(|line| !line.contains("0x")).collect();
    expect![[r#"
        error[CT109]: views of one problem have different shapes
          kernel:   sum_f32_warp
          recipe:   Sum { function: a, inputs: [f32:(?,1)], out: f32, by: warp, threads: 256 }
          found:    Y is (2), where A is (3,2)
          required: Y of shape (3)
          because:  a row of each tensor belongs to one row of all others
          help:     pass views that fit together; a broadcast mode has stride 0, not extent 1
    "#]]
    .assert_eq(&(stable.join("\n") + "\n"));
}
