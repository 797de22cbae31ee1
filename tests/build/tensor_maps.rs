//! Tensor maps are what CuTe's own `make_tma_copy` asks the driver for, with the types of the emitted text: for every swizzle, both
//! factors, and boxes from the smallest to the largest.
//!
//! nvcc compiles it, since the body of the call is not there under another compiler; the driver's function is one of the program's
//! own, so that no GPU is needed.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::settings::Settings;
use cutemplate::tiling::TensorMapSpec;
use cutemplate::units::Elements;
use cutemplate::view::{ViewLayout, ViewRef};
use cutlass_sys::Finder;

/// Every BK has a swizzle of its own.
const RECIPES: &[&str] = &[
    "tile=64x32x16\nstages=2",
    "tile=256x64x16\nstages=2",
    "tile=128x96x32\nstages=2",
    "tile=128x128x64",
    "tile=64x256x64\nstages=2",
    "out=f32\ntile=256x64x64\nstages=2",
];

/// M, N, K, and elements behind each row.
const PROBLEMS: &[[i64; 4]] = &[[1000, 520, 72, 8], [1, 1, 8, 0], [129, 65, 4096, 0], [1 << 20, 300_000, 1 << 16, 40]];

const HEAD: &str = r#"
template <class Smem, class Tile>
void show(uint64_t address, int rows, int k, int64_t leading)
{
  auto matrix = make_tensor(make_gmem_ptr(reinterpret_cast<half_t const*>(address)),
                            make_layout(make_shape(rows, k), make_stride(leading, _1{})));
  make_tma_copy(SM90_TMA_LOAD{}, matrix, Smem{}(_,_,_0{}), Tile{}, _1{});
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

/// The arguments of the call, with the numbers of cuda.h: f16 is 6, promotion to 128 bytes is 2.
fn line(spec: &TensorMapSpec) -> String {
    let mut text = format!("type 6 at {}:", spec.address);
    for i in 0..spec.rank as usize {
        let stride = if i > 0 { spec.strides[i - 1] } else { 0 };
        let _ = write!(text, " {}:{stride} box {} step 1,", spec.dims[i], spec.extents[i]);
    }
    text + &format!(" interleave 0 swizzle {} l2 2 fill 0", spec.swizzle.bits())
}

/// Views of a problem that lie nowhere.
fn views(plan: &Plan, [m, n, k, gap]: [i64; 4]) -> Vec<ViewRef> {
    let shapes = plan.computes().and_then(|c| c.shapes(plan.operands(), &[m, n, k])).expect("extents of a product");
    let one = |((operand, shape), place): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let leading = if operand.name == "D" { n } else { k + gap };
        let layout: ViewLayout = operand.layout(shape, Some(leading)).expect("few elements");
        let available = Elements(layout.span().expect("few elements"));
        ViewRef { dtype: operand.dtype, ptr: place << 44, available, layout, access: operand.access }
    };
    plan.operands().iter().zip(&shapes).zip(1..).map(one).collect()
}

#[test]
fn tensor_maps_are_those_of_make_tma_copy() {
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut includes, mut calls, mut expected) = (String::new(), String::new(), Vec::new());
    for (index, settings) in RECIPES.iter().enumerate() {
        let recipe = Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
        let plan = recipe.plan_as(&format!("maps{index}"), &targets).expect("a right recipe").parts()[0].clone();
        for file in render(&plan).files() {
            fs::write(folder.path().join(&file.name), &file.text).expect("written");
        }
        let _ = writeln!(includes, "#include \"{}.cuh\"", plan.name());
        for problem in PROBLEMS {
            let views = views(&plan, *problem);
            let binding = plan.bind(&views).expect("it fits");
            assert_eq!(binding.tensor_maps().len(), 2);
            let [m, n, k, gap] = *problem;
            for ((factor, rows), map) in [("A", m), ("B", n)].into_iter().zip(binding.tensor_maps()) {
                let (spec, leading) = (map.spec, if rows > 1 { k + gap } else { k });
                let space = format!("cutemplate::{}", plan.name());
                let types = format!("{space}::Smem{factor}, {space}::Tile{factor}");
                let _ = writeln!(calls, "  show<{types}>({}ull, {rows}, {k}, {leading});", spec.address);
                expected.push(line(&spec));
            }
        }
    }
    let text = format!(
        "#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL\n#include <cstdio>\n#include <cuda.h>\n{includes}\
         using namespace cute;\n{HEAD}\nint main()\n{{\n{calls}  return 0;\n}}\n"
    );
    fs::write(folder.path().join("maps.cu"), text).expect("written");
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let toolchain = compiler.toolchain();
    let mut nvcc = Command::new(&toolchain.nvcc.path);
    nvcc.args(["-std=c++17", "-O1", "--expt-relaxed-constexpr", "-gencode=arch=compute_90a,code=sm_90a", "-isystem"]);
    nvcc.arg(&toolchain.cutlass.include).arg("-ccbin").arg(&toolchain.cxx.path);
    // Where a wheel of nvcc has its libraries.
    let root = toolchain.nvcc.path.parent().and_then(std::path::Path::parent).expect("a toolkit");
    nvcc.arg("-L").arg(root.join("lib"));
    let output = nvcc.args(["-o", "maps", "maps.cu"]).current_dir(folder.path()).output().expect("nvcc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Command::new(folder.path().join("maps")).output().expect("the program runs");
    let told = String::from_utf8_lossy(&run.stdout);
    let told: Vec<&str> = told.lines().collect();
    assert!(run.status.success() && !told.is_empty(), "no call: {}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(told, expected);
    println!("{} tensor maps, such as {}", told.len(), told[0]);
}
