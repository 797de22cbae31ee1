//! Declarations that are not what the text has. What nvcc made tells most of them; the executor finds the others.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cutemplate::arch::Arch;
use cutemplate::artifact::Kind;
use cutemplate::build::{Config, Error};
use cutemplate::bundle::{self, Bundle};
use cutemplate::cuda::{Cuda, Entry, Struct};
use cutemplate::dtype::DType;
use cutemplate::exec::Kernel;
use cutemplate::plan::ParamType;
use cutemplate::plan::ParamType::{Bf16, F16, F32, F64, I32, I64, U8, U16};
use cutemplate::view::{Access, Arguments, HostMemory, View, ViewLayout, ViewMut};
use expect_test::expect_file;

use super::{Own, built, kernel, path};

fn x(entry: Entry) -> Entry {
    entry.operand("x", DType::F32, Access::Read, "(rows,cols):(cols,1)")
}

fn y(entry: Entry) -> Entry {
    entry.operand("y", DType::F32, Access::Write, "(rows,cols):(cols,1)")
}

/// `scale` as it is, up to its extents.
fn tensors() -> Entry {
    y(x(Entry::new("scale"))).grid("ceil_div(rows * cols, 128)").block(128)
}

fn scale() -> Entry {
    tensors().extent("rows", "x.0").extent("cols", "x.1").scalar("factor", F32)
}

/// Vectors of a function.
fn vectors(function: &str) -> Entry {
    let entry = Entry::new(function).operand("x", DType::F32, Access::Read, "n:1");
    entry.operand("y", DType::F32, Access::Write, "n:1").grid("ceil_div(n, 128)").block(128)
}

fn fields() -> Struct {
    Struct::new().extent("rows", "x.0").scalar("factor", F64).scalar("bias", F32)
}

/// What is right, and has to stay so.
fn right() -> Vec<Entry> {
    vec![
        scale(),
        vectors("by_struct").structure("p", fields()),
        vectors("wide").value("n", I64, "x.0"),
        Entry::new("vectors<3>")
            .operand("x", DType::F32, Access::Read, "n:1")
            .aligned(16)
            .operand("y", DType::F32, Access::Write, "n:1")
            .aligned(16)
            .extent("quads", "x.0 / 4")
            .grid("ceil_div(n, 512)")
            .block(128),
        vectors("reversed").extent("n", "x.0").shared("512"),
        vectors("clustered").extent("n", "x.0").cluster(2).grid("round_up(ceil_div(n, 128), 2)"),
        wide_elements("(n,2):(2,1)", DType::I32),
        narrow([U8, F16, U16, Bf16]),
        by_narrow_struct(F16),
        any_block().block_of(["min(round_up(n, 32), 256)", "1", "1"], 256),
    ]
}

/// What nvcc's PTX tells to be wrong, all in one text.
fn wrong() -> Vec<(&'static str, Entry)> {
    let n = |entry: Entry| entry.extent("n", "x.0");
    let element = |dtype| {
        let entry = Entry::new("scale").operand("x", dtype, Access::Read, "(rows,cols):(cols,1)");
        y(entry).extent("rows", "x.0").extent("cols", "x.1").scalar("factor", F32).block(128)
    };
    let sizes = |entry: Entry| entry.extent("rows", "x.0").extent("cols", "x.1");
    vec![
        ("operands in another order", sizes(x(y(Entry::new("scale")))).scalar("factor", F32)),
        ("scalars in another order", tensors().scalar("factor", F32).extent("rows", "x.0").extent("cols", "x.1")),
        ("an integer where a float is", tensors().extent("rows", "x.0").extent("cols", "x.1").scalar("factor", I32)),
        ("a float where an integer is", tensors().scalar("height", F32).extent("cols", "x.1").scalar("factor", F32)),
        ("64 bits where 32 are", tensors().value("rows", I64, "x.0").extent("cols", "x.1").scalar("factor", F32)),
        ("32 bits where 64 are", vectors("wide").extent("n", "x.0")),
        ("double where float is", sizes(tensors()).scalar("factor", F64)),
        ("the last parameter is missing", sizes(tensors())),
        ("one in the middle is missing", tensors().extent("rows", "x.0").scalar("factor", F32)),
        ("an extra scalar", scale().scalar("bias", F32)),
        ("an extra workspace", scale().workspace("rows * 4")),
        ("no parameter but the operands", tensors()),
        ("halves where floats are", element(DType::F16)),
        ("doubles where floats are", element(DType::F64)),
        ("integers where floats are", element(DType::I32)),
        ("bytes where floats are", element(DType::U8)),
        (
            "const is written",
            sizes(y(Entry::new("scale").operand("x", DType::F32, Access::ReadWrite, "(rows,cols):(cols,1)")))
                .scalar("factor", F32),
        ),
        (
            "an operand where an integer is",
            tensors().operand("count", DType::I32, Access::Read, "1").extent("cols", "x.1").scalar("factor", F32),
        ),
        (
            "an integer where a pointer is",
            y(Entry::new("scale").scalar("x", I64)).extent("rows", "y.0").extent("cols", "y.1").scalar("factor", F32),
        ),
        ("a struct in another order", {
            let fields = Struct::new().scalar("factor", F64).extent("rows", "x.0").scalar("bias", F32);
            vectors("by_struct").structure("p", fields)
        }),
        ("a struct of one size in another order", {
            let fields = Struct::new().scalar("bias", F32).scalar("factor", F64).extent("rows", "x.0");
            vectors("by_struct").structure("p", fields)
        }),
        ("a struct without a field", {
            vectors("by_struct").structure("p", Struct::new().extent("rows", "x.0").scalar("factor", F64))
        }),
        ("a struct with a narrower field", {
            let fields = Struct::new().extent("rows", "x.0").scalar("factor", F32).scalar("bias", F32);
            vectors("by_struct").structure("p", fields)
        }),
        ("a struct as its fields", {
            vectors("by_struct").extent("rows", "x.0").scalar("factor", F64).scalar("bias", F32)
        }),
        ("more threads than __launch_bounds__", scale().block(256)),
        ("a cluster that is not declared", n(vectors("clustered"))),
        ("a cluster that the text has not", n(vectors("reversed")).cluster(2).shared("512")),
        ("another cluster", n(vectors("clustered")).cluster(4)),
        ("shared memory that is not declared", n(vectors("reversed"))),
        ("shared memory that the text has not", scale().shared("1024")),
        ("vectors without their alignment", n(vectors("vectors<3>"))),
        ("a function that another kernel has", scale()),
        ("an operand where a tensor map is", y(x(Entry::new("mapped"))).block(32)),
        ("32 bits where elements of 64 are", wide_elements("(n,2):(2,1)", DType::F32)),
        ("no pairs where elements of 64 bits are", wide_elements("n:1", DType::I32)),
        ("a null that the text has not", scale().null("bias")),
        ("a byte where 16 bits are", narrow([U8, F16, U8, Bf16])),
        ("32 bits where a byte is", narrow([I32, F16, U16, Bf16])),
        ("another float of 16 bits", narrow([U8, Bf16, U16, F16])),
        ("an integer where a float of 16 bits is", narrow([U8, U16, U16, Bf16])),
        ("a float where an integer of 16 bits is", narrow([U8, F16, F16, Bf16])),
        ("a struct with another float of 16 bits", by_narrow_struct(Bf16)),
        ("a struct with a wider float", by_narrow_struct(F32)),
        ("a block that grows beyond __launch_bounds__", any_block().block_of(["min(n, 512)", "1", "1"], 512)),
        ("a block that changes where the text has one", {
            vectors("one_block").extent("n", "x.0").grid("1").block_of(["min(n, 128)", "1", "1"], 128)
        }),
        ("another block than the text's", vectors("one_block").extent("n", "x.0").block(64)),
    ]
}

/// Scalars of fewer than 32 bits.
fn narrow([flag, factor, code, bias]: [ParamType; 4]) -> Entry {
    let entry = vectors("narrow").scalar("flag", flag).scalar("factor", factor).scalar("code", code);
    entry.scalar("bias", bias).extent("n", "x.0")
}

/// The same in a struct, with a gap of a byte and one of three.
fn by_narrow_struct(factor: ParamType) -> Entry {
    let fields = Struct::new().scalar("flag", U8).scalar("factor", factor).extent("n", "x.0").scalar("last", U8);
    vectors("by_narrow_struct").structure("p", fields)
}

fn any_block() -> Entry {
    vectors("any_block").extent("n", "x.0").grid("1")
}

/// Integers of 64 bits are pairs of 32; a pointer that is left out is null.
fn wide_elements(layout: &str, dtype: DType) -> Entry {
    let entry = Entry::new("wide_elements").operand("x", dtype, Access::Read, layout).aligned(8).null("y");
    entry.extent("n", "x.0").block(32)
}

/// What the compiler cannot find in the text.
fn unknown() -> Vec<(&'static str, Entry)> {
    vec![
        ("a function that is not there", vectors("scales").extent("n", "x.0")),
        ("a template without its arguments", vectors("vectors").extent("n", "x.0")),
        ("a field that is not there", vectors("by_struct").structure("p", Struct::new().extent("row", "x.0"))),
    ]
}

fn config(name: &str, entries: impl IntoIterator<Item = Entry>) -> Config {
    let cuda = entries.into_iter().fold(Cuda::file(path("wrong.cu")), Cuda::entry);
    Config::new().arch(Arch::Sm90a).cuda(name, cuda)
}

/// The message without what changes from place to place.
fn told(error: &Error) -> String {
    let text = error.to_string().replace(env!("CARGO_MANIFEST_DIR"), "..");
    let keeps = |line: &&str| !line.starts_with("  command:");
    let text: Vec<&str> = text.split("\n  all that nvcc says:").next().unwrap().lines().filter(keeps).collect();
    text.join("\n")
}

#[test]
fn declarations_that_are_not_the_text_are_refused_when_it_is_built() {
    let out = tempfile::tempdir().unwrap();
    let named = |(at, (_, entry)): (usize, (&str, Entry))| entry.named(&format!("kernel{at}"));
    // The last one is the function of a right one.
    let entries = [scale().named("first")].into_iter().chain(wrong().into_iter().enumerate().map(named));
    let error = config("wrong", entries).out_dir(out.path()).try_compile().unwrap_err();
    let Error::Several(errors) = &error else { panic!("{error}") };
    assert_eq!(errors.len(), wrong().len(), "{error}");
    let mut text = String::new();
    for ((what, _), error) in wrong().iter().zip(errors) {
        assert!(matches!(error, Error::Signature(_)), "{what}: {error}");
        let _ = writeln!(text, "## {what}\n\n{}\n", told(error));
    }
    for (at, (what, entry)) in unknown().into_iter().enumerate() {
        let error = config(&format!("unknown{at}"), [entry]).out_dir(out.path()).try_compile().unwrap_err();
        assert!(matches!(error, Error::Compile(_)), "{what}: {error}");
        let _ = writeln!(text, "## {what}\n\n{}\n", told(&error));
    }
    let broken = "// Line 1\nextern \"C\" __global__ void f(float* x)\n{\n  x[0] = factor;\n}\n";
    let entry = Entry::new("f").operand("x", DType::F32, Access::Write, "1").block(1);
    let config = Config::new().arch(Arch::Sm90a).cuda("broken", Cuda::text(broken).entry(entry));
    let error = config.out_dir(out.path()).try_compile().unwrap_err();
    let _ = writeln!(text, "## a text that is no C++\n\n{}\n", told(&error));
    let config = Config::new().cuda("absent", Cuda::file("kernels/absent.cu").entry(scale()));
    let error = config.out_dir(out.path()).try_compile().unwrap_err();
    let _ = writeln!(text, "## a file that is not there\n\n{}\n", told(&error));
    expect_file!["wrong.txt"].assert_eq(&text);
}

#[test]
fn right_declarations_are_compiled() {
    let out = tempfile::tempdir().unwrap();
    let all = built(config("right", right()), out.path());
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let expected = [
        "right_scale",
        "right_by_struct",
        "right_wide",
        "right_vectors_3",
        "right_reversed",
        "right_clustered",
        "right_wide_elements",
        "right_narrow",
        "right_by_narrow_struct",
        "right_any_block",
    ];
    assert_eq!(names, expected);
    let of = |name: &str| kernel(out.path(), all.iter().find(|one| one.name == name).unwrap());
    let x: Vec<f32> = (0_u16..300).map(f32::from).collect();
    let launch = |name: &str, count: usize, scalars: &[f64], expected: &dyn Fn(f64) -> f64| {
        let (mut y, layout) = (vec![0.0_f32; count], ViewLayout::row_major(&[count as i64]).unwrap());
        let args = Arguments::new().read(View::host_strided(&x, layout)).write(ViewMut::host_strided(&mut y, layout));
        let args = scalars.iter().fold(args, |args, value| args.scalar(*value));
        of(name).check_against(args, |_, at| (expected(at[0] as f64), 0.0)).unwrap();
    };
    launch("right_narrow", 300, &[200.0, 0.5, 60000.0, -3.0], &|x| 0.5 * x - 3.0);
    launch("right_by_narrow_struct", 300, &[1.0, -0.25, 7.0], &|x| -0.25 * x);
    // Blocks of 32, 160 and 256 threads.
    for count in [1, 150, 300] {
        launch("right_any_block", count, &[], &|x| x);
    }
}

/// Several kernels of one text: one fatbin, a module each, and the same from a bundle.
#[test]
fn a_bundle_of_own_kernels_stands_for_compiling() {
    let place = tempfile::tempdir().unwrap();
    let [compiled, taken] = ["compiled", "taken"].map(|name| place.path().join(name));
    let path = place.path().join("kernels.bundle");
    built(config("right", right()), &compiled);
    let (bytes, _) = config("right", right()).pack().unwrap();
    fs::write(&path, &bytes).unwrap();
    let inspected = bundle::inspect(&path).unwrap();
    assert!(inspected.refused.iter().all(Option::is_none), "{:?}", inspected.refused);
    let files: Vec<&str> = inspected.contents.files.iter().map(|file| file.name.as_str()).collect();
    let of_text = |end: &str| files.iter().filter(|file| file.ends_with(end)).count();
    // The text itself is its author's to hand on.
    assert_eq!([".fatbin", ".ptx.z", ".abi.json", ".cu"].map(of_text), [1, 1, right().len(), 0], "{files:?}");

    assert!(config("right", right()).bundle(&path).out_dir(&taken).try_compile().unwrap().is_empty());
    for file in ["right.fatbin", "right.ptx", "right_scale.abi.json", "cutemplate.rs"] {
        // A bundle has its kernels by name.
        let sorted = |folder: &Path| {
            let mut bytes = fs::read(folder.join(file)).unwrap();
            if file == "cutemplate.rs" {
                bytes.sort_unstable();
            }
            bytes
        };
        assert!(sorted(&compiled) == sorted(&taken), "{file} of {}", place.path().display());
    }
    // SAFETY: nothing is loaded onto a GPU.
    let bundle = unsafe { Bundle::of_unchecked(bytes) }.unwrap();
    run(&Kernel::<Own>::load(&bundle.kernel("right_scale").unwrap()).unwrap()).unwrap();
    let other = Kernel::<Scale>::load(&bundle.kernel("right_wide").unwrap()).unwrap_err().to_string();
    assert_eq!(other, "the artifact is kernel `right_wide`, the type asks for `right_scale`");

    // Another declaration is another kernel.
    let mut entries = right();
    entries[0] = scale().grid("ceil_div(rows * cols, 64)");
    let stale = config("right", entries).bundle(&path).out_dir(&taken).try_compile().unwrap_err();
    assert!(matches!(stale, Error::Stale(_)), "{stale}");
}

/// The type of one kernel, as its module has it.
struct Scale;

impl Kind for Scale {
    const FAMILY: &'static str = cutemplate::cuda::FAMILY;
    const KERNEL: Option<&'static str> = Some("right_scale");
}

/// Gates are those of an entry, not of its text.
#[test]
fn registers_and_spills_are_limited() {
    let out = tempfile::tempdir().unwrap();
    let mut entries = right();
    entries[0] = scale().deny_spills().max_registers(255);
    entries[1] = entries[1].clone().max_registers(4);
    let error = config("right", entries).out_dir(out.path()).try_compile().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "error[build]: right_by_struct takes too many registers");
    assert!(
        lines[1].contains("right_by_struct on sm_90a: ")
            && lines[2] == "  required: at most 4, as Entry::max_registers asks"
    );
}

/// What only the executor finds.
fn found() -> Vec<(&'static str, Entry)> {
    let n = |entry: Entry| entry.extent("n", "x.0");
    let pair = |function: &str, stride: &str| {
        let entry = Entry::new(function).operand("x", DType::F32, Access::Read, stride);
        entry.operand("y", DType::F32, Access::Write, "1").grid("ceil_div(x.0, 128)").block(128)
    };
    let clusters = "round_up(ceil_div(x.0, 128), 2)";
    vec![
        ("a grid that misses elements", scale().grid("rows * cols / 128")),
        ("a block that misses elements", vectors("wide").value("n", I64, "x.0").block(64)),
        ("shared memory that is too small", n(vectors("reversed")).shared("256")),
        ("what is declared to be read is written", n(pair("writes", "1"))),
        ("what is declared to be written is read", n(pair("adds", "1"))),
        ("vectors at addresses that are not aligned to them", n(pair("casts", "1"))),
        ("a grid beyond the elements", pair("unguarded", "1")),
        (
            "a block that grows too little",
            vectors("each").extent("n", "x.0").grid("ceil_div(n, 128)").block_of(["min(n, 64)", "1", "1"], 64),
        ),
        ("strides that the text does not have", n(pair("clustered", "?")).cluster(2).grid(clusters)),
        ("an extent that is not the text's", {
            let entry = Entry::new("vectors<1>").operand("x", DType::F32, Access::Read, "n:1").aligned(16);
            let entry = entry.operand("y", DType::F32, Access::Write, "n:1").aligned(16).extent("quads", "x.0");
            entry.grid("ceil_div(n, 128)").block(128)
        }),
    ]
}

#[test]
fn declarations_that_the_text_does_not_keep_are_found_on_the_executor() {
    let out = tempfile::tempdir().unwrap();
    let named = |(at, (_, entry)): (usize, (&str, Entry))| entry.named(&format!("kernel{at}"));
    let all = built(config("found", found().into_iter().enumerate().map(named)), out.path());
    let mut text = String::new();
    for ((what, _), one) in found().iter().zip(&all) {
        let error = run(&kernel(out.path(), one)).err().unwrap_or_else(|| panic!("{what}: nothing is found"));
        // What follows upon a first fault depends on where memory lies.
        let error = error.to_string();
        let first = error.match_indices("\nerror[").next().map_or(&*error, |(at, _)| &error[..at]);
        let _ = writeln!(text, "## {what}\n\n{first}\n");
    }
    expect_file!["found.txt"].assert_eq(&text);
}

/// y has to be x: 300 elements, or 5 x 60.
fn run(kernel: &Kernel<Own>) -> Result<(), cutemplate::exec::Error> {
    let x: Vec<f32> = (0_u16..700).map(f32::from).collect();
    let mut y = vec![0.0_f32; 700];
    let abi = kernel.abi();
    let layout = |operand: usize| match (abi.operands()[operand].strides.len(), &*abi.operands()[operand].stride_text())
    {
        (2, _) => ViewLayout::row_major(&[5, 60]).unwrap(),
        (_, "?") => ViewLayout::strided(&[300], &[2]).unwrap(),
        _ => ViewLayout::strided(&[300], &[1]).unwrap(),
    };
    let stride = layout(0).stride()[0];
    // Off a multiple of 16 bytes, where that is not declared.
    let on = |data: *const f32| (data as usize / 4) % 4;
    let off = |data: *const f32| (4 - on(data)) % 4 + usize::from(abi.name() == "kernel5");
    let (at_x, at_y) = (off(x.as_ptr()), off(y.as_ptr()));
    let columns = if abi.operands()[0].strides.len() == 2 { 60 } else { 1 };
    let (from, to) = (View::host_strided(&x[at_x..], layout(0)), ViewMut::host_strided(&mut y[at_y..], layout(1)));
    let args = Arguments::<Own, HostMemory>::new().read(from).write(to);
    let args = abi.scalars().iter().fold(args, |args, _| args.scalar(1.0));
    kernel.check_against(args, |_, at| {
        let index = at.iter().fold(0, |index, at| index * columns + at);
        let index = if columns == 1 { index * stride } else { index };
        (f64::from(x[at_x + index as usize]), 0.0)
    })
}
