//! Contract: CUDA C++ of one's own with a declared signature is compiled, compared with its declaration, bundled and run on the executor
//! as a recipe's kernel is; a declaration that is not the text's is refused, or found on the executor, in words.
#![cfg(all(target_os = "linux", feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod wrong;

use std::fs;
use std::path::Path;

use cutemplate::artifact::Kind;
use cutemplate::build::{Built, Config};
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::{DType, f16};
use cutemplate::exec::{Kernel, Options};
use cutemplate::plan::ParamType;
use cutemplate::view::{Access, Arguments, View, ViewLayout, ViewMut};

/// Stands for any kernel of one's own.
struct Own;

impl Kind for Own {
    const FAMILY: &'static str = cutemplate::cuda::FAMILY;
}

fn path(file: &str) -> String {
    format!("{}/tests/build/own/{file}", env!("CARGO_MANIFEST_DIR"))
}

fn rope() -> Entry {
    Entry::new("rope")
        .operand("x", DType::F16, Access::ReadWrite, "(rows,2*half):(?,1)")
        .operand("cosines", DType::F32, Access::Read, "(rows,half):(half,1)")
        .operand("sines", DType::F32, Access::Read, "(rows,half):(half,1)")
        .extent("rows", "x.0")
        .extent("half", "cosines.1")
        .value("ldx", ParamType::I32, "stride(x, 0)")
        .scalar("scale", ParamType::F32)
        .grid("ceil_div(rows * half, 128)")
        .block(128)
}

/// Compiles into a folder of its own.
fn built(config: Config, out: &Path) -> Vec<Built> {
    config.out_dir(out).try_compile().unwrap()
}

fn kernel(out: &Path, built: &Built) -> Kernel<Own> {
    let ptx = fs::read_to_string(
        out.join(format!("{}.ptx", built.fatbin.as_ref().unwrap().file_stem().unwrap().to_string_lossy())),
    );
    Kernel::from_ptx(built.plan.clone(), ptx.unwrap(), Options::default()).unwrap()
}

#[test]
fn a_text_is_compiled_and_runs_on_the_executor() {
    let out = tempfile::tempdir().unwrap();
    let config = Config::new().cuda("rope", Cuda::file(path("rope.cu")).entry(rope()));
    let all = built(config, out.path());
    let [one] = &all[..] else { panic!("one kernel") };
    assert_eq!(one.name, "rope");
    let (rows, half) = (5_usize, 24_usize);
    let numbers = |n: usize| (0..n).map(|i| (i % 17) as f32 - 8.0).collect::<Vec<f32>>();
    let before: Vec<f16> = numbers(rows * 2 * half).into_iter().map(f16::from_f32).collect();
    let (cosines, sines) = (numbers(rows * half), numbers(rows * half + 3));
    let mut x = before.clone();
    let layout = |cols: usize| ViewLayout::matrix([rows as i64, cols as i64], cols as i64);
    let kernel = kernel(out.path(), one);
    let args = Arguments::<Own, _>::new()
        .write(ViewMut::host_strided(&mut x, layout(2 * half)))
        .read(View::host_strided(&cosines, layout(half)))
        .read(View::host_strided(&sines, layout(half)))
        .scalar(0.5);
    kernel.launch(args).unwrap();
    for (at, found) in x.iter().enumerate() {
        let (row, column) = (at / (2 * half), at % (2 * half));
        let j = column % half;
        let of = |i: usize| before[row * 2 * half + i].to_f32();
        let (c, s) = (cosines[row * half + j] * 0.5, sines[row * half + j] * 0.5);
        let want = if column < half { of(j) * c - of(j + half) * s } else { of(j) * s + of(j + half) * c };
        assert_eq!(f16::from_f32(want), *found, "({row},{column})");
    }
}
