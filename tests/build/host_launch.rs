//! Contract: a `.cuh` is included by a C++ project, and its `launch` asks the runtime for what a binding of the same plan says: the
//! kernels, their grids, their shared memory and every byte of the parameters. What its text cannot run on, and what it cannot count,
//! is refused by the value that it returns.
//!
//! nvcc compiles it; the functions of the CUDA runtime are the program's own, so that no GPU is needed.

use std::fmt::Write as _;
use std::process::Command;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::Compiler;
use cutemplate::dtype::DType;
use cutemplate::emit::{SourceFile, render};
use cutemplate::plan::{Binding, Entry, Operand, ParamType, Plan};
use cutemplate::recipe::family;
use cutemplate::settings::Settings;
use cutemplate::tiling::{MapType, TensorMapSpec};
use cutemplate::units::Elements;
use cutemplate::view::ViewRef;
use cutlass_sys::Finder;

use crate::made;

/// Of every family, and of every way in which a launch follows from its arguments.
const RECIPES: &[(&str, &str)] = &[
    ("elementwise_add", ""),
    ("elementwise_apply", "expr=|a, b; alpha| alpha * a + b\nin=f32:(?,1), f32:(0,1)\nout=f32:(?,1)\nvariant=tv"),
    ("elementwise_apply", "expr=a + b\nin=f16:(1,?), f16:(?,1)\nout=f16:(?,1)"),
    ("elementwise_apply", "expr=a\nin=f32:(?,?,?)\nout=f32:(?,?,?)\nvariant=naive"),
    ("sum", "expr=|a, b; alpha| alpha * a * b\nin=f16:(?,1), f32:(0,1)\nout=f16\nby=block"),
    ("sgemm", "variant=naive"),
    ("sgemm", "a=col\nb=col\nbatched=true\nsplit_k=4"),
    ("sgemm", "wave=264"),
    ("gemm", "batched=true\nstream_k=1\ntile=64x64x32\ncluster=2x1\nctas=4"),
    ("gemm", "out=f32\ntile=64x256x32\ncluster=1x2\nsplit_k=2\nsm80_tile=64x256x32\nsm80_stages=4\nd=col"),
];

/// Cases of each recipe.
const CASES: u64 = 24;

/// Where every launch has its workspace.
const WORKSPACE: u64 = 0x7000;

const HEAD: &str = "#include <cstdio>\nextern int capability;\nextern size_t params_bytes;\n";

/// The stand-in for the runtime.
const RUNTIME: &str = include_str!("../support/runtime.cpp");

/// A number that looks drawn, the same in every run.
struct Draw(u64);

impl Draw {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all[(self.0 >> 33) as usize % all.len()]
    }
}

/// Views of a problem that lie nowhere, with gaps and beside multiples of a vector now and then.
fn views(plan: &Plan, draw: &mut Draw) -> Vec<ViewRef> {
    let rank = plan.problem_shape().expect("said").extents().len();
    let extents = |draw: &mut Draw| draw.of(&[1_i64, 2, 7, 8, 33, 128, 200, 256, 1000, 4096]);
    let problem: Vec<i64> = (0..rank).map(|_| extents(draw)).collect();
    let shapes = plan.shapes(&problem).expect("a problem");
    let (gap, offset) = (draw.of(&[0_i64, 0, 1, 8]), draw.of(&[0_u64, 0, 1, 8]));
    let one = |((operand, shape), place): ((&Operand, &Vec<i64>), u64)| {
        let dense = operand.layout(shape, None).expect("few elements");
        // The extent of the contiguous mode: that of stride 1, or the last.
        let unit = dense.stride().iter().position(|stride| *stride == 1).unwrap_or(shape.len() - 1);
        let layout = operand.layout(shape, Some(shape[unit] + gap)).unwrap_or(dense);
        let available = Elements(layout.span().expect("few elements"));
        let ptr = (place << 44) + offset * operand.dtype.bytes().0;
        ViewRef { dtype: operand.dtype, ptr, available, layout, access: operand.access }
    };
    plan.operands().iter().zip(&shapes).zip(1..).map(one).collect()
}

/// The names of what a launch is given, in the text.
fn arguments(plan: &Plan) -> Vec<String> {
    let unit = render(plan);
    let text = unit.header().text.split_once("struct Arguments {").expect("a host side").1;
    let fields = text.split_once("};").expect("a struct").0.lines().filter_map(|line| line.split_once(';'));
    fields.map(|(field, _)| field.rsplit([' ', '*']).next().expect("a name").to_owned()).collect()
}

/// The arguments that gave these parameters, as C++ initializes them.
fn initializer(plan: &Plan, names: &[String], binding: &Binding) -> String {
    let values = names.iter().map(|name| {
        let field = plan.params().field(name).expect("a parameter");
        let bytes = &binding.params()[field.offset..field.offset + field.ty.bytes()];
        match field.ty {
            ParamType::ConstPtr | ParamType::MutPtr => {
                format!("(void*){:#x}ull", u64::from_ne_bytes(bytes.try_into().expect("8")))
            }
            ParamType::I64 => i64::from_ne_bytes(bytes.try_into().expect("8")).to_string(),
            ParamType::I32 => i32::from_ne_bytes(bytes.try_into().expect("4")).to_string(),
            ParamType::F32 => format!("{:?}f", f32::from_ne_bytes(bytes.try_into().expect("4"))),
            other => panic!("no argument of these recipes is {other:?}"),
        }
    });
    format!("    {{{}}},\n", values.collect::<Vec<_>>().join(", "))
}

/// What the driver's function is told of a map, as `runtime.cpp` writes it down, with the numbers of cuda.h; of one in the workspace
/// the address is behind a base.
fn told(spec: &TensorMapSpec, base: u64) -> Vec<u8> {
    let kind = match spec.dtype {
        MapType::Of(DType::F16) => 6,
        MapType::Of(DType::F32) => 7,
        MapType::Of(DType::Bf16) => 9,
        MapType::Tf32 => 11,
        other => panic!("no factor and no D has type {other}"),
    };
    let rank = spec.rank as usize;
    let used = |i: usize, value: u32| if i < rank { value } else { 0 };
    let mut bytes = (spec.address + base).to_ne_bytes().to_vec();
    let wide = (0..3).map(|i| if i < rank { spec.dims[i] } else { 0 }).chain(spec.strides[..2].iter().copied());
    bytes.extend(wide.flat_map(u64::to_ne_bytes));
    let boxes = (0..3).map(|i| used(i, spec.extents[i])).chain((0..3).map(|i| used(i, 1)));
    // Interleave, swizzle, promotion, of which 64 bytes are 1, zeros for what lies outside.
    let promotion = spec.promotion().0.ilog2() - 5;
    let all = boxes.chain([kind, spec.rank, 0, spec.swizzle.bits() as u32, promotion, 0]);
    bytes.extend(all.flat_map(u32::to_ne_bytes));
    bytes
}

/// What it has to ask for.
fn asked(plan: &Plan, binding: &Binding) -> String {
    let mut params = binding.params().to_vec();
    if let Some(field) = plan.params().field("workspace") {
        params[field.offset..field.offset + 8].copy_from_slice(&WORKSPACE.to_ne_bytes());
    }
    for map in binding.tensor_maps() {
        let told = told(&map.spec, if map.in_workspace { WORKSPACE } else { 0 });
        params[map.param_offset..map.param_offset + told.len()].copy_from_slice(&told);
    }
    let hex: String = params.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut text = String::new();
    for launch in binding.launches() {
        let ([x, y, z], [tx, ty, tz]) = (launch.grid, launch.block);
        let entry = &plan.entries()[launch.entry];
        let (function, how) = (entry.function(plan.name()), if launch.overlaps { " programmatic" } else { "" });
        let _ = write!(text, " {function} {x} {y} {z}, {tx} {ty} {tz}, {}{how},{hex}", launch.dynamic_smem);
    }
    text + " 0"
}

/// The program, compiled and run: what it prints.
fn run(mut files: Vec<SourceFile>, text: String) -> Vec<String> {
    files.push(SourceFile { name: "launches.cu".into(), text });
    files.push(SourceFile { name: "runtime.cpp".into(), text: RUNTIME.into() });
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let tools = compiler.toolchain();
    let [include, cxx] = [&tools.cutlass.as_ref().expect("a toolchain of CuTe").include, &tools.cxx.path];
    let (include, cxx) = (include.to_string_lossy(), cxx.to_string_lossy());
    // PTX is enough: what is launched is not run.
    let arguments = ["-std=c++17", "-O1", "--expt-relaxed-constexpr", "-gencode=arch=compute_90a,code=compute_90a"];
    let strict = ["-cudart", "none", "-Werror", "all-warnings", "-isystem", &*include, "-ccbin", &*cxx];
    let made = ["-o", "launches", "launches.cu", "runtime.cpp"];
    let program = made::once(&compiler, &[&arguments[..], &strict, &made].concat(), &files, "launches");
    let run = Command::new(program.unwrap_or_else(|e| panic!("{e}"))).output().expect("the program runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect()
}

/// The host side of a text, as it stands in the header, behind kernels that do nothing.
fn host_side(plan: &Plan) -> String {
    let unit = render(plan);
    let begin = unit.header().text.find("#if defined(__CUDACC__)").expect("a host side");
    let name = plan.name();
    let kernel = |entry: &Entry| format!("CUTE_DEVICE void {}({name}_params const&) {{}}\n", entry.function(name));
    let kernels: String = plan.entries().iter().map(kernel).collect();
    format!(
        "#pragma once\n#include <cute/tensor.hpp>\n#include \"{name}_params.h\"\nnamespace cutemplate {{\nnamespace {name} {{\n\
         using namespace cute;\n{kernels}}}\n}}\n{}",
        &unit.header().text[begin..]
    )
}

/// The launches of a text, and what each has to ask for.
fn calls_of(plan: &Plan, files: &mut Vec<SourceFile>, draw: &mut Draw, expected: &mut Vec<String>) -> String {
    files.extend(render(plan).files().iter().cloned());
    files.push(SourceFile { name: format!("{}_host.cuh", plan.name()), text: host_side(plan) });
    let (names, named) = (arguments(plan), plan.name());
    let scalars: Vec<f64> = plan.scalars().iter().map(|_| 1.5).collect();
    let (mut rows, mut last) = (String::new(), String::new());
    for _ in 0..CASES {
        let binding = plan.bind_with(&views(plan, draw), &scalars).expect("it fits");
        rows += &initializer(plan, &names, &binding);
        last = asked(plan, &binding);
        expected.push(last.clone());
    }
    // 209: no code for a device of 7.5, nor of 12.0 where the text is of one architecture. 1: the kernel does not count so far.
    let refused = " 209".to_owned();
    let on_120 = if plan.targets().run_on((12, 0)) { last } else { refused.clone() };
    expected.extend([refused, on_120, " 1".to_owned()]);
    let workspace = plan.params().field("workspace").map(|_| format!(", (void*){WORKSPACE:#x}ull")).unwrap_or_default();
    let extent = if plan.params().field("m0").is_some() { "m0" } else { "m" };
    format!(
        "{{\n  using namespace cutemplate::{named};\n  params_bytes = sizeof({named}_params);\n  \
         auto const show = [](Arguments const& args) {{\n    int const error = launch(args{workspace});\n    \
         printf(\" %d\\n\", error);\n  }};\n  Arguments all[] = {{\n{rows}  }};\n  \
         for (auto const& args : all) {{ show(args); }}\n  auto& last = all[{CASES} - 1];\n  \
         capability = 75; show(last); capability = 120; show(last); capability = 90;\n  \
         last.{extent} = 2147483647; show(last);\n}}\n"
    )
}

#[test]
fn a_text_launches_what_its_plan_binds() {
    let mut files = Vec::new();
    let (mut includes, mut calls, mut expected) = (String::new(), String::new(), Vec::new());
    let mut draw = Draw(12);
    let targets = Targets::new([Arch::Sm80, Arch::Sm90a]).expect("not empty");
    for (index, (name, settings)) in RECIPES.iter().enumerate() {
        let settings = Settings::parse_lines(settings);
        let named = format!("host{index}");
        let plan = family(name).expect("a family").plan(&settings, Some(&named), &targets).expect("a right recipe");
        for part in plan.texts() {
            // One text is compiled whole; of the others the host side alone, for their kernels take minutes.
            let side = if includes.is_empty() { "" } else { "_host" };
            let _ = writeln!(includes, "#include \"{}{side}.cuh\"", part.name());
            calls += &calls_of(part, &mut files, &mut draw, &mut expected);
        }
    }
    // A workspace is asked for by its size, and missed.
    let sizes = "  { cutemplate::host6::Arguments args{}; args.m = 100; args.n = 200; args.k = 512; args.l = 3;\n    \
                 printf(\"%zu %d\\n\", cutemplate::host6::get_workspace_size(args), int(cutemplate::host6::launch(args, nullptr))); }\n";
    calls += sizes;
    expected.push(format!("{} 1", 4 * 100 * 200 * 3 * 4));
    // So it is where A and B are packed, each in rows of 64 elements; none is where they are copied as they lie.
    let packed = "  {\n    using namespace cutemplate::host9_sm90a;\n    Arguments args{}; args.m = 100; args.n = args.ldd = 200;\n    \
                  args.k = args.lda = args.ldb = 60; printf(\"%zu %d\\n\", get_workspace_size(args), int(launch(args, nullptr)));\n    \
                  args.k = args.lda = args.ldb = 64; printf(\"%zu\\n\", get_workspace_size(args));\n  }\n";
    calls += packed;
    expected.extend([format!("{} 1", 2 * (100 + 200) * 64), "0".to_owned()]);
    let told = run(files, format!("{includes}{HEAD}\nint main()\n{{\n{calls}  return 0;\n}}\n"));
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(&expected) {
        assert_eq!(told, expected);
    }
    for entry in ["reduce", "direct", "pack", "programmatic"] {
        assert!(expected.iter().any(|line| line.contains(entry)), "{entry} is launched");
    }
    let reduced = expected.iter().filter(|line| line.contains("reduce")).count();
    assert!(reduced > 10, "{reduced} launches add parts of K");
}
