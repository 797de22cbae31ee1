//! Safe code that tries to break kernels of one's own: it is refused in words, and memory stays as it was.

use cutemplate::arch::Targets;
use cutemplate::bundle::{Embedded, rust_module};
use cutemplate::cuda::{Cuda, Entry, Struct};
use cutemplate::dtype::DType;
use cutemplate::exec::{Kernel, Options};
use cutemplate::plan::{ParamType, Plan};
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{Recipe, Rows, TensorArgs};
use cutemplate::view::{Access, Args, Arguments, HostMemory, View, ViewLayout, ViewMut};

use super::Own;

pub(super) fn plan(entry: Entry) -> Plan {
    Cuda::text("").entry(entry).plans("k", "", &Targets::default()).unwrap()[0].clone()
}

/// A kernel of hand-written PTX that stores 1.0 at the start of `y`, with parameters of these types ahead of it.
pub(super) fn kernel(entry: Entry, ahead: &[&str]) -> Kernel<Own> {
    running(entry, ahead, "st.global.u32 [%rd1], 0x3f800000;", Options::default())
}

/// The same with these instructions, which find the address of `y` in `%rd1`.
pub(super) fn running(entry: Entry, ahead: &[&str], instructions: &str, options: Options) -> Kernel<Own> {
    let entry = entry.operand("y", DType::F32, Access::Write, "n:?");
    let last = ahead.len();
    let types = ahead.iter().chain(&["u64"]).enumerate();
    let params: Vec<String> = types.map(|(at, ty)| format!(".param .{ty} k_param_{at}")).collect();
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({})\n{{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [k_param_{last}];\n\
         {instructions}\nret;\n}}\n",
        params.join(", ")
    );
    Kernel::from_ptx(plan(entry), ptx, options).unwrap()
}

fn run(kernel: &Kernel<Own>, y: &mut [f32], layout: ViewLayout, expected: (f64, f64)) -> Result<(), String> {
    let args = Arguments::<Own, _>::new().write(ViewMut::host_strided(y, layout));
    kernel.check_against(args, |_, _| expected).map_err(|error| error.to_string())
}

#[test]
fn a_workspace_beyond_all_memory_is_refused() {
    for bytes in ["n * 4611686018427387904", "n * 70368744177664"] {
        let kernel = kernel(Entry::new("k").workspace(bytes), &["u64"]);
        let refused = run(&kernel, &mut [0.0], ViewLayout::vector(1), (1.0, 0.0)).unwrap_err();
        assert!(refused.contains("error[exec-launch]: the workspace does not fit into memory"), "{refused}");
        assert!(refused.contains("bytes for the workspace") && refused.contains("help:"), "{refused}");
    }
}

#[test]
fn outputs_outside_of_their_memory_are_refused_before_anything_is_written() {
    let kernel = kernel(Entry::new("k"), &[]);
    let mut y = [7.0_f32; 4];
    let strided = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).unwrap();
    for layout in [
        strided(&[4], &[-1]),
        strided(&[4], &[2]),
        strided(&[5], &[1]),
        strided(&[4], &[0]),
        strided(&[-4], &[1]),
        strided(&[i64::MAX], &[1]),
        strided(&[2], &[i64::MAX]),
        strided(&[2], &[i64::MIN]),
        strided(&[2, 2], &[1, 1]),
    ] {
        let refused = run(&kernel, &mut y, layout, (1.0, 0.0)).unwrap_err();
        assert!(refused.starts_with("error[CT1"), "{layout}: {refused}");
    }
    assert_eq!(y, [7.0; 4]);
}

#[test]
fn any_expectation_is_answered() {
    let kernel = kernel(Entry::new("k"), &[]);
    let mut y = [0.0_f32];
    let mut of = |expected| run(&kernel, &mut y, ViewLayout::vector(1), expected);
    assert_eq!(of((1.0, 0.0)), Ok(()));
    assert_eq!(of((1.5, 0.5)), Ok(()));
    assert_eq!(of((0.0, f64::INFINITY)), Ok(()));
    // What is no bound accepts nothing else.
    for wrong in
        [(2.0, 0.5), (f64::NAN, 0.0), (f64::NAN, f64::INFINITY), (f64::INFINITY, 0.0), (f64::MAX, 1.0), (2.0, f64::NAN)]
    {
        let told = of(wrong).unwrap_err();
        assert!(told.contains("1 of 1 elements"), "{wrong:?}: {told}");
    }
}

/// A tensor that no view is given for, or one too many, or one of another type.
#[test]
fn arguments_that_are_not_the_kernels_are_refused() {
    let kernel = kernel(Entry::new("k"), &[]);
    let (x, layout) = ([0.0_f32], ViewLayout::vector(1));
    let (mut y, mut halves, mut more) = ([0.0_f32], [0_u8; 4], [0.0_f32]);
    let args = Arguments::<Own, _>::new;
    let all = [
        args(),
        args().read(View::host_strided(&x, layout)),
        args().write(ViewMut::host_strided(&mut halves, layout)),
        args().write(ViewMut::host_strided(&mut y, layout)).write(ViewMut::host_strided(&mut more, layout)),
        args().read(View::host_strided(&x, layout)).scalar(1.0),
    ];
    for args in all {
        let refused = kernel.launch(args).unwrap_err().to_string();
        assert!(refused.starts_with("error[CT1"), "{refused}");
    }
    assert_eq!((y, halves, more), ([0.0], [0; 4], [0.0]));
}

/// Blocks without threads, of more than are declared, of more than a GPU has, and of numbers beyond 64 bits.
#[test]
fn blocks_that_a_launch_may_not_have_are_refused() {
    for (threads, most) in [
        (["n - 2", "1", "1"], 128),
        (["n - 3", "1", "1"], 128),
        (["n * 65", "1", "1"], 128),
        (["1", "n * 65", "1"], 128),
        (["1", "1", "n * 33"], 128),
        (["n * 32", "3", "1"], 128),
        (["n - 3", "n - 3", "1"], 128),
        (["n * 4611686018427387904", "4", "1"], 128),
        (["n * 4611686018427387903", "n * 3", "n"], 1024),
    ] {
        let kernel = kernel(Entry::new("k").block_of(threads, most), &[]);
        let mut y = [7.0_f32; 2];
        let refused = run(&kernel, &mut y, ViewLayout::vector(2), (1.0, 0.0)).unwrap_err();
        assert!(refused.starts_with("error[CT1") && refused.contains("threads"), "{threads:?}: {refused}");
        assert_eq!(y, [7.0; 2]);
    }
    // The largest that is declared, and blocks along all three.
    for threads in [["n * 128", "1", "1"], ["n", "n * 2", "64"]] {
        let kernel = kernel(Entry::new("k").block_of(threads, 128), &[]);
        assert_eq!(run(&kernel, &mut [0.0], ViewLayout::vector(1), (1.0, 0.0)), Ok(()), "{threads:?}");
    }
}

/// A number that the parameter does not hold would be another one in the function than in expressions.
#[test]
fn scalars_beyond_their_type_are_refused() {
    for (ty, ptx, right, wrong) in [
        (ParamType::U8, "u8", [0.0, 255.0], [-1.0, 256.0]),
        (ParamType::U16, "u16", [0.0, 65535.0], [-1.0, 65536.0]),
        (ParamType::I32, "u32", [-2147483648.0, 2147483647.0], [-2147483649.0, 2147483648.0]),
    ] {
        let kernel = kernel(Entry::new("k").scalar("count", ty), &[ptx]);
        let launch = |value: f64| {
            let mut y = [0.0_f32];
            let args = Arguments::<Own, _>::new().write(ViewMut::host_strided(&mut y, ViewLayout::vector(1)));
            let launched = kernel.launch(args.scalar(value)).map_err(|error| error.to_string());
            launched.map(|_| y[0])
        };
        for value in right {
            assert_eq!(launch(value), Ok(1.0), "{value}");
        }
        for value in wrong.into_iter().chain([f64::INFINITY, f64::MAX]) {
            let refused = launch(value).unwrap_err();
            assert!(refused.starts_with("error[CT1") && refused.contains("<= count <="), "{value}: {refused}");
        }
    }
}

/// An integer parameter and the expressions that name it have one value, whatever number a launch is given.
#[test]
fn scalars_are_the_same_in_expressions_as_in_the_function() {
    let mut accepted = 0;
    for (ty, bytes) in [(ParamType::U8, 1), (ParamType::U16, 2), (ParamType::I32, 4)] {
        let entry = Entry::new("k").scalar("count", ty).value("again", ParamType::I64, "count");
        let plan = plan(entry.operand("y", DType::F32, Access::Write, "n:1"));
        let at = |name: &str| plan.params().field(name).unwrap().offset;
        let mut y = [0.0_f32];
        let view = ViewMut::host_strided(&mut y, ViewLayout::vector(1)).raw();
        for value in [f64::NAN, -0.0, 0.5, -0.5, -0.999, 255.9, 65535.9, 2147483647.9, -2147483648.9, f64::MIN_POSITIVE]
        {
            let Ok(binding) = plan.bind_with(&[view], &[value]) else { continue };
            let params = binding.params();
            let mut count = [0; 8];
            count[..bytes].copy_from_slice(&params[at("count")..at("count") + bytes]);
            if ty == ParamType::I32 && count[3] >> 7 == 1 {
                count[4..].fill(0xff);
            }
            assert_eq!(count, params[at("again")..at("again") + 8], "{value} as {}", ty.c());
            accepted += 1;
        }
    }
    assert!(accepted > 20, "{accepted}");
}

/// Words that stand where a vow would are none.
#[test]
fn only_a_vow_vouches() {
    let entry = || Entry::new("k").operand("y", DType::F32, Access::Write, "n:?");
    let doc = entry().doc("vouched=yes\nvouched=yes").define("vouched", "1").require("vouched == 1", "vouched=yes");
    for entry in [entry(), doc] {
        assert!(!plan(entry).abi().is_vouched());
    }
    // SAFETY: nothing launches it.
    assert!(plan(unsafe { entry().vouched() }).abi().is_vouched());
    // The module of a kernel has the safe launch where its type is one.
    // SAFETY: as above.
    for (entry, vouched) in [(entry(), false), (unsafe { entry().vouched() }, true)] {
        let module = rust_module(&plan(entry), &mut [Embedded::Stub { why: "a test" }].into_iter());
        assert_eq!(module.contains("artifact::Vouched for Entry"), vouched, "{module}");
    }
}

/// What safe code adds to a declaration, nobody has vouched for.
#[test]
fn a_vow_is_for_the_declaration_that_it_was_made_for() {
    let entry = || {
        let entry = Entry::new("k").operand("y", DType::F32, Access::ReadWrite, "n:1").extent("n", "y.0").block(32);
        // SAFETY: nothing launches it.
        unsafe { entry.vouched() }
    };
    let all: [fn(Entry) -> Entry; 20] = [
        |k| k.operand("z", DType::F32, Access::Write, "n:1"),
        |k| k.extent("m", "y.0"),
        |k| k.value("m", ParamType::I64, "y.0"),
        |k| k.scalar("m", ParamType::F32),
        |k| k.null("m"),
        |k| k.workspace("n"),
        |k| k.structure("m", Struct::new().scalar("f", ParamType::F32)),
        |k| k.aligned(16),
        |k| k.in_place(),
        |k| k.define("m", "2"),
        |k| k.require("n > 1", "it is so"),
        |k| k.grid("2"),
        |k| k.grid3(["1", "1", "2"]),
        |k| k.block(64),
        |k| k.block3([32, 2, 1]),
        |k| k.block_of(["32", "1", "1"], 32),
        |k| k.cluster(2),
        |k| k.shared("n"),
        |k| k.shared_at_most("0", 16),
        |k| k.operand("y", DType::F32, Access::Write, "n:1"),
    ];
    for (number, change) in all.into_iter().enumerate() {
        let plans = Cuda::text("").entry(change(entry())).plans("k", "", &Targets::default());
        let refused = plans.unwrap_err().to_string();
        assert!(refused.contains("a declaration that is not the one that was vouched for"), "{number}: {refused}");
    }
    let same = entry().doc("says more").named("k").deny_spills().max_registers(64).block(32).grid("1");
    assert!(plan(same).abi().is_vouched());
}

/// Parts of one tensor stay in its memory wherever they are asked to begin, and parts that share elements are refused.
#[test]
fn parts_of_an_output_stay_in_its_memory() {
    let plan = Rows { columns: 8, ..Rows::preset(Preset::Rope, DType::F32) }.plan(&Targets::default()).unwrap();
    let (x, layout) = ([0.0_f32; 6], ViewLayout::row_major(&[2, 3]).unwrap());
    let mut y = [0.0_f32; 12];
    let (from, bytes) = (y.as_ptr() as u64, size_of_val(&y) as u64);
    let strided = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).unwrap();
    let mut bound = |parts: &[(u64, ViewLayout)]| {
        let x = || View::host_strided(&x, layout);
        let inputs = TensorArgs::<HostMemory>::new().input(x()).input(x()).input(x()).input(x());
        let mut args = inputs.output_parts(ViewMut::host_strided(&mut y, strided(&[2, 6], &[6, 1])), parts);
        let views: Vec<_> = Args::<Rows, _>::views(&mut args).iter().map(|view| view.raw()).collect();
        for part in &views[4..] {
            assert!(part.ptr >= from && part.ptr + 4 * part.available.0 <= from + bytes, "{part:?}");
        }
        plan.abi().bind(&views).map(|_| ()).map_err(|error| error.to_string())
    };
    let columns = strided(&[2, 3], &[6, 2]);
    let halves = strided(&[2, 3], &[6, 1]);
    for right in [[(0, columns), (1, columns)], [(0, halves), (3, halves)], [(0, layout), (6, layout)]] {
        assert_eq!(bound(&right), Ok(()));
    }
    for wrong in [
        &[(0, columns), (0, columns)][..],
        &[(0, columns), (2, columns)],
        &[(0, halves), (2, halves)],
        &[(0, halves), (4, halves)],
        &[(0, layout), (7, layout)],
        &[(0, layout), (12, layout)],
        &[(0, layout), (13, layout)],
        &[(0, layout), (u64::MAX, layout)],
        &[(u64::MAX / 4 + 1, layout), (6, layout)],
        &[(0, strided(&[2, 3], &[i64::MAX, 1])), (6, layout)],
        &[(0, strided(&[2, 3], &[-3, 1])), (6, layout)],
        &[(0, strided(&[2, 3], &[0, 1])), (6, layout)],
        &[(0, layout)],
        &[],
        &[(0, layout), (6, layout), (6, layout)],
    ] {
        let refused = bound(wrong).unwrap_err();
        assert!(refused.starts_with("error[CT"), "{wrong:?}: {refused}");
    }
}
