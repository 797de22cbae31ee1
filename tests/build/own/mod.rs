//! Contract: CUDA C++ of one's own with a declared signature is compiled, compared with its declaration, bundled and run on the executor
//! as a recipe's kernel is; a declaration that is not the text's is refused, or found on the executor, in words.
#![cfg(all(target_os = "linux", feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod memory;
mod sound;
mod versions;
mod wrong;

use std::fs;
use std::path::Path;

use cutemplate::arch::{Arch, Targets};
use cutemplate::artifact::Kind;
use cutemplate::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy};
use cutemplate::build::{Built, Compiler, Config};
use cutemplate::bundle;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::{DType, f16};
use cutemplate::exec::{Kernel, Options};
use cutemplate::layout::{Layout, Swizzle};
use cutemplate::plan::ParamType;
use cutemplate::recipe::ElementwiseAdd;
use cutemplate::view::{Access, Arguments, View, ViewLayout, ViewMut};
use cutlass_sys::{Env, Finder};

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

/// CuTe agrees that the types which Rust writes are those that its own functions make.
#[test]
fn constants_of_rust_are_types_of_cute() {
    let text = r#"
#include "constants_constants.cuh"
static_assert(is_same_v<Mma, decltype(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2,_2,_1>, Stride<_1,_2,_4>>{}, Tile<_32,_32,_16>{}))>);
static_assert(is_same_v<decltype(Copy{}.get_layoutS_TV()),
  decltype(make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{}, Layout<Shape<_16,_8>, Stride<_8,_1>>{}, Layout<Shape<_1,_8>>{}).get_layoutS_TV())>);
static_assert(is_same_v<Element, __half> && Stages == 3 && Pads);
static_assert(Smem{}(1, 0) == 9 && cosize(Smem{}) == 64);
__global__ void stages(int* y) { if (threadIdx.x < Stages) y[threadIdx.x] = size(Smem{}); }
"#;
    let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN").unwrap();
    let mma = TiledMma::new(mma, &layout("(2,2,1):(1,2,4)"), &"[32,32,16]".parse().unwrap()).unwrap();
    let copy = CopyAtom::named("UniversalCopy<uint128_t>", 16).unwrap();
    let copy = make_tiled_copy(&copy, &layout("(16,8):(8,1)"), &layout("(1,8):(0,1)")).unwrap();
    let entry = Entry::new("stages").operand("y", DType::I32, Access::Write, "3:1").block(32);
    let cuda = Cuda::text(text)
        .constant("Mma", &mma)
        .constant("Copy", &copy)
        .constant("Smem", &(Swizzle::new(2, 0, 3).unwrap(), &layout("(8,8):(8,1)")))
        .constant("Element", &DType::F16)
        .constant("Stages", &3_i32)
        .constant("Pads", &true)
        .entry(entry);
    let out = tempfile::tempdir().unwrap();
    let all = built(Config::new().arch(Arch::Sm80).cuda("constants", cuda), out.path());
    let mut y = [0_i32; 3];
    let args = Arguments::<Own, _>::new().write(ViewMut::host_strided(&mut y, ViewLayout::row_major(&[3]).unwrap()));
    kernel(out.path(), &all[0]).check_against(args, |_, _| (64.0, 0.0)).unwrap();
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// cargo runs a build script again where a header changes that the text includes.
#[test]
fn headers_beside_a_text_are_found_and_watched() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    fs::write(root.join("count.cuh"), "constexpr int COUNT = 3;\n").unwrap();
    let text = "#include \"count.cuh\"\nextern \"C\" __global__ void three(int* y) { *y = COUNT; }\n";
    fs::write(root.join("three.cu"), text).unwrap();
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).unwrap();
    let listing = compiler.list(&root.join("three.cu"), &Targets::new([Arch::Sm80]).unwrap()).unwrap();
    assert_eq!(listing.entries[0].symbol, "three");
    assert!(listing.compiled.inputs().contains(&root.join("count.cuh")), "{:?}", listing.compiled.inputs());
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
    let matrix = |cols: usize| ViewLayout::matrix([rows as i64, cols as i64], cols as i64);
    let kernel = kernel(out.path(), one);
    let args = Arguments::<Own, _>::new()
        .write(ViewMut::host_strided(&mut x, matrix(2 * half)))
        .read(View::host_strided(&cosines, matrix(half)))
        .read(View::host_strided(&sines, matrix(half)))
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

/// nvcc and a C++ compiler alone, an empty cache, and nothing that may be fetched.
fn without_cutlass(cache: &Path) -> Finder {
    let nvcc = Finder::from_env().nvcc(&mut ()).unwrap().path;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of = [("NVCC", nvcc.into_os_string()), ("CUTEMPLATE_CACHE_DIR", cache.as_os_str().to_owned()), ("PATH", path)];
    Finder::new(Env::from_pairs(of))
}

/// y = 2 * y, without CUTLASS.
const TWICE: &str =
    "extern \"C\" __global__ void twice(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] *= 2; }\n";

fn twice() -> Cuda {
    let entry = Entry::new("twice").operand("y", DType::F32, Access::ReadWrite, "n:1").extent("n", "y.0").block(64);
    Cuda::text(TWICE).entry(entry)
}

#[test]
fn plain_cuda_is_built_where_there_is_no_cutlass() {
    let place = tempfile::tempdir().unwrap();
    let finder = without_cutlass(&place.path().join("cache"));
    let plain = twice;
    let config = |cuda| Config::new().arch(Arch::Sm80).finder(finder.clone()).cuda("twice", cuda);
    let here = built(config(plain()), &place.path().join("here"));
    let manifest = here[0].manifest.as_ref().unwrap();
    assert_eq!(manifest.cutlass, "");
    assert!(manifest.to_string().starts_with("twice.fatbin: "), "{manifest}");
    assert!(!manifest.to_string().contains("CUTLASS"), "{manifest}");
    // CUTLASS that is there makes no difference.
    let there = built(Config::new().arch(Arch::Sm80).cuda("twice", plain()), &place.path().join("there"));
    assert_eq!(there[0].manifest.as_ref().unwrap().fatbin, manifest.fatbin);
    // Nothing of CUTLASS is in a bundle of it.
    let bundle = place.path().join("plain.bundle");
    fs::write(&bundle, config(plain()).pack().unwrap().0).unwrap();
    let of: Vec<String> = bundle::inspect(&bundle).unwrap().contents.licences.into_iter().map(|l| l.licence).collect();
    assert_eq!(of, ["MIT OR Apache-2.0", "CUDA Toolkit End User License Agreement"]);
    // A text that asks for it is told what is missing, and so is a recipe.
    for config in [config(plain().cutlass()), config(plain()).recipe("add", &ElementwiseAdd::default())] {
        let told = config.out_dir(place.path()).try_compile().unwrap_err().to_string();
        assert!(told.starts_with("error[fetch-not-allowed]: CUTLASS not found, and fetching is not allowed"), "{told}");
    }
    // A file is listed.
    fs::write(place.path().join("twice.cu"), TWICE).unwrap();
    let compiler = Compiler::of_cuda(&finder, &mut ()).unwrap();
    let listing = compiler.list(&place.path().join("twice.cu"), &Targets::new([Arch::Sm80]).unwrap()).unwrap();
    assert_eq!(listing.entries[0].symbol, "twice");
}
