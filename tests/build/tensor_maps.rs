//! Tensor maps are what CuTe's own `make_tma_copy` asks the driver for, with the types of the emitted text: for every swizzle, both
//! factors, and boxes from the smallest to the largest; but that those of a factor with fewer rows have as many.
//!
//! nvcc compiles it, as C++, since the body of the call is not there under another compiler, and tensor maps are made by the host; the
//! driver's function is one of the program's own, so that no GPU is needed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::dtype::DType;
use cutemplate::emit::{SourceFile, render};
use cutemplate::plan::{ModeStride, Plan};
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::settings::Settings;
use cutemplate::tiling::{MapType, TensorMapSpec};
use cutemplate::units::Elements;
use cutemplate::view::{ViewLayout, ViewRef};
use cutlass_sys::Finder;

use crate::made;

/// Every BK has a swizzle of its own, and so has what lies in a row of a part of D; CTAs of a cluster ask for parts of a tile. The
/// stages of some are no whole number of the swizzle's periods.
const RECIPES: &[&str] = &[
    "tile=64x32x16\nstages=2\ncluster=1x1",
    "tile=256x64x16\nstages=2\ncluster=2x1",
    "dtype=bf16\nout=bf16\ntile=128x96x32\nstages=2\ncluster=1x2",
    "tile=128x128x64\ncluster=2x2",
    "tile=64x256x64\nstages=2\ncluster=1x1",
    "out=f32\ntile=256x64x64\nstages=2\ncluster=2x2",
    "dtype=bf16\nout=f32\ntile=192x96x32\nstages=2\ncluster=1x1",
    "a=col\nb=row\ntile=128x128x64\ncluster=2x2",
    "a=col\ntile=64x32x16\nstages=2\ncluster=1x2",
    "b=row\nd=col\ntile=192x96x32\nstages=2\ncluster=1x2",
    "dtype=bf16\nout=f32\nb=row\nbatched=true\ntile=256x16x64\nstages=2\ncluster=2x1",
    "batched=true\na=col\nd=col\ntile=128x64x32\ncluster=2x2",
    "dtype=tf32",
    "dtype=tf32\ntile=128x48x32\nstages=5",
    "dtype=tf32\na=col\ntile=64x16x8\nstages=7\ncluster=1x2",
    "dtype=tf32\nb=row\nbatched=true\ntile=192x96x16\nstages=2\ncluster=2x2",
    "epilogue=relu(a), a\ntile=128x96x64",
    "epilogue=relu(a), a\nout=f32\nd=col\nbatched=true\ntile=64x64x32\ncluster=1x2",
];

/// Batches, where there are any.
const BATCHES: i64 = 3;

/// M, N, K, and elements behind each row.
const PROBLEMS: &[[i64; 4]] = &[[1000, 520, 72, 8], [1, 8, 8, 0], [129, 72, 4096, 0], [1 << 20, 300_000, 1 << 16, 40]];

const HEAD: &str = r#"
template <class Op, class T, class Strides, class Smem, class Tile, class Sharers>
void show(uint64_t address, int rows, int columns, int64_t leading, int batches, int64_t apart)
{
  auto const stride = [&](auto mode) {
    auto const fixed = get<decltype(mode)::value>(Strides{});
    if constexpr (is_static<decltype(fixed)>::value) { return fixed; } else { return leading; }
  };
  auto const stage = composition(Smem{}.layout_a(), Smem{}.offset(), Smem{}.layout_b()(_,_,_0{}));
  auto const pointer = make_gmem_ptr(reinterpret_cast<T*>(address));
  if constexpr (rank(Strides{}) == 3) {
    auto layout = make_layout(make_shape(rows, columns, batches), make_stride(stride(_0{}), stride(_1{}), apart));
    make_tma_copy(Op{}, make_tensor(pointer, layout), stage, Tile{}, Sharers{});
  } else {
    auto layout = make_layout(make_shape(rows, columns), make_stride(stride(_0{}), stride(_1{})));
    make_tma_copy(Op{}, make_tensor(pointer, layout), stage, Tile{}, Sharers{});
  }
}

extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* address,
    cuuint64_t const* dims, cuuint64_t const* strides, cuuint32_t const* box, cuuint32_t const* steps,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
  printf("type %d at %llu:", int(type), (unsigned long long)(address));
  for (cuuint32_t i = 0; i < rank; ++i) {
    unsigned long long stride = i > 0 ? strides[i - 1] : 0;
    printf(" %llu:%llu box %u step %u,", (unsigned long long)(dims[i]), stride, box[i], steps[i]);
  }
  printf(" interleave %d swizzle %d l2 %d fill %d\n", int(interleave), int(swizzle), int(l2), int(fill));
  return CUDA_SUCCESS;
}
"#;

/// The arguments of CuTe's call, with the numbers of cuda.h: promotion to 128 bytes, which is 2, whatever the launch asks for.
fn line(spec: &TensorMapSpec) -> String {
    let kind = match spec.dtype {
        MapType::Of(DType::F16) => 6,
        MapType::Of(DType::F32) => 7,
        MapType::Of(DType::Bf16) => 9,
        MapType::Tf32 => 11,
        other => panic!("no factor and no D has type {other}"),
    };
    let mut text = format!("type {kind} at {}:", spec.address);
    for i in 0..spec.rank as usize {
        let stride = if i > 0 { spec.strides[i - 1] } else { 0 };
        let _ = write!(text, " {}:{stride} box {} step 1,", spec.dims[i], spec.extents[i]);
    }
    text + &format!(" interleave 0 swizzle {} l2 2 fill 0", spec.swizzle.bits())
}

/// What a plan's text says ahead of its first assertion: the types that its kernels copy by.
fn types_of(plan: &Plan) -> String {
    let unit = render(plan);
    let (types, _) =
        unit.header().text.split_once("\n//\n// Preconditions").expect("types, and what is asserted of them");
    format!("{types}\n}}}}\n")
}

/// What stands between the angle brackets of `using TmaA = Tma<..>;`.
fn tilings_text<'a>(types: &'a str, copy: &str) -> &'a str {
    let begin = format!("using {copy} = Tma<");
    let line = types.lines().find_map(|line| line.strip_prefix(&begin)).expect("the copy's type");
    line.split_once(">;").expect("a type").0
}

/// Views of a problem that lie nowhere, rows at multiples of 16 bytes.
fn views(plan: &Plan, [m, n, k, gap]: [i64; 4]) -> Vec<ViewRef> {
    let batches = (plan.operands()[0].strides.len() == 3).then_some(BATCHES);
    let problem: Vec<i64> = [m, n, k].into_iter().chain(batches).collect();
    let shapes = plan.shapes(&problem).expect("extents of a product");
    let one = |((operand, shape), place): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let inner = operand.strides.iter().position(|s| *s == ModeStride::Unit).expect("a contiguous mode");
        let leading = (shape[inner] + 7) / 8 * 8 + if operand.name == "D" { 0 } else { gap };
        let layout: ViewLayout = operand.layout(shape, Some(leading)).expect("few elements");
        let available = Elements(layout.span().expect("few elements"));
        ViewRef { dtype: operand.dtype, ptr: place << 44, available, layout, access: operand.access }
    };
    plan.operands().iter().zip(&shapes).zip(1..).map(one).collect()
}

/// Of these recipes; how many maps there are.
fn compare(recipes: &[&str]) -> usize {
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let mut files: Vec<SourceFile> = Vec::new();
    let (mut includes, mut calls, mut expected) = (String::new(), String::new(), Vec::new());
    for (index, settings) in recipes.iter().enumerate() {
        let recipe = Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
        let plan = recipe.plan_as(&format!("maps{index}"), &targets).expect("a right recipe").texts()[0].clone();
        let (unit, types) = (render(&plan), types_of(&plan));
        let header = SourceFile { name: unit.header().name.clone(), text: types.clone() };
        let _ = writeln!(includes, "#include \"{}\"", header.name);
        // The parameters that the header includes stay as they are.
        files.extend(unit.files().iter().filter(|file| file.name.ends_with(".h")).cloned().chain([header]));
        let large = plan.bind(&views(&plan, PROBLEMS[0])).expect("it fits");
        for problem in PROBLEMS {
            let views = views(&plan, *problem);
            let binding = plan.bind(&views).expect("it fits");
            // Where D is M-major, B and A transposed are multiplied.
            let turned = plan.settings().get("d") == Some("col");
            // TMA stores D, and E as D, where their rows, or columns, end at multiples of 16 bytes.
            let written = 2..plan.operands().len();
            let inner = problem[usize::from(!turned)] as u64 * plan.operands()[2].dtype.bytes().0;
            let stored = if inner.is_multiple_of(16) { written.len() } else { 0 };
            assert_eq!(binding.tensor_maps().len(), 2 + stored);
            let factors = if turned { [1, 0] } else { [0, 1] };
            let copies = ["A", "B"].into_iter().zip(factors).chain(written.map(|view| ("D", view)));
            for (((name, view), map), large) in copies.zip(binding.tensor_maps()).zip(large.tensor_maps()) {
                let layout = &views[view].layout;
                // A is (M,K), B (N,K) and D (M,N), whatever they are to the launch.
                let modes = if view == 1 || view >= 2 && turned { [1, 0] } else { [0, 1] };
                let [rows, columns] = modes.map(|mode| layout.shape()[mode]);
                let [s0, s1] = modes.map(|mode| layout.stride()[mode]);
                let (leading, inner, others) = if s1 == 1 { (s0, columns, rows) } else { (s1, rows, columns) };
                // A row with nothing behind it has no leading dimension.
                let leading = if others > 1 { leading } else { (inner + 7) / 8 * 8 };
                let apart = layout.stride().get(2).copied().unwrap_or(0);
                // What does not lie along K, and has to, is turned while it is packed: rows at multiples of 64 elements.
                let padded = (columns + 63) / 64 * 64;
                let [leading, apart] = if map.in_workspace { [padded, rows * padded] } else { [leading, apart] };
                // The arguments of the text's own type of the copy.
                let (aliases, mut spec) = (tilings_text(&types, &format!("Tma{name}")), map.spec);
                if name != "D" {
                    // CuTe's box, of which a factor that is K-major and has fewer rows fills no more.
                    let k_major = s1 == 1 || spec.dtype == MapType::Tf32;
                    let whole = large.spec.extents;
                    let most = if k_major { rows as u32 } else { u32::MAX };
                    assert_eq!(spec.extents[1], whole[1].min(most), "{name} of {settings}, {problem:?}");
                    spec.extents = whole;
                }
                let _ = writeln!(calls, "  {{ using namespace cutemplate::{};", plan.name());
                let arguments = format!("{}ull, {rows}, {columns}, {leading}, {BATCHES}, {apart}", spec.address);
                let _ = writeln!(calls, "    show<{aliases}>({arguments}); }}");
                expected.push(line(&spec));
            }
        }
    }
    // The header takes as long as all of the calls.
    let text = format!(
        "#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL\n#include <cstdio>\n#include <cuda.h>\n{includes}\
         using namespace cute;\n{HEAD}\nint main()\n{{\n{calls}  return 0;\n}}\n"
    );
    files.push(SourceFile { name: "maps.cpp".into(), text });
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let toolchain = compiler.toolchain();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    // Where a wheel of nvcc has its libraries.
    let root = toolchain.nvcc.path.parent().and_then(Path::parent).expect("a toolkit");
    let include = &toolchain.cutlass.as_ref().expect("a toolchain of CuTe").include;
    let (include, cxx, lib) = (text(include), text(&toolchain.cxx.path), text(&root.join("lib")));
    let arguments =
        ["-x", "c++", "-std=c++17", "-isystem", &include, "-ccbin", &cxx, "-L", &lib, "-o", "maps", "maps.cpp"];
    let maps = made::once(&compiler, &arguments, &files, "maps").unwrap_or_else(|e| panic!("{e}"));
    let run = Command::new(maps).output().expect("the program runs");
    let told = String::from_utf8_lossy(&run.stdout);
    let told: Vec<&str> = told.lines().collect();
    assert!(run.status.success() && !told.is_empty(), "no call: {}", String::from_utf8_lossy(&run.stderr));
    let differ = told.iter().zip(&expected).filter(|(told, expected)| told != expected);
    let differ: String = differ.map(|(told, expected)| format!("CuTe {told}\nRust {expected}\n")).collect();
    assert_eq!(differ, "");
    assert_eq!(told.len(), expected.len());
    println!("{} tensor maps, such as {}", told.len(), told[0]);
    told.len()
}

#[test]
fn tensor_maps_are_those_of_make_tma_copy() {
    // The C++ compiler takes long for CuTe's call: two programs, each by a processor of its own.
    let maps: usize = std::thread::scope(|scope| {
        let halves: Vec<_> =
            RECIPES.chunks(RECIPES.len().div_ceil(2)).map(|half| scope.spawn(|| compare(half))).collect();
        halves.into_iter().map(|half| half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    });
    assert!(maps >= 2 * PROBLEMS.len() * RECIPES.len(), "{maps}");
}
