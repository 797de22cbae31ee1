//! candle's kernels, from the package that it publishes: declared as kernels of one's own, built for three architectures, launched with types.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::exec::Kernel;
use cutemplate::plan::ParamType;
use cutemplate::view::{Access, Arguments, HostMemory, View, ViewLayout};

use super::declared::{self, Own, args, kernel_of, numbers, read, roundings, run, write};
use super::kept;

const PACKAGE: &str = "candle-kernels";
const VERSION: &str = "0.9.1";
const SHA256: &str = "9fcd989c2143aa754370b5bfee309e35fbd259e83d9ecf7a73d23d8508430775";

/// The folder of candle's texts, fetched once by cargo, which compares what it unpacks with the package's sha256.
fn texts() -> PathBuf {
    static FETCHED: Mutex<()> = Mutex::new(());
    let _one = FETCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = kept(PACKAGE, SHA256, |folder| {
        let manifest = format!(
            "[package]\nname = \"texts\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n{PACKAGE} = \"={VERSION}\"\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
        fs::write(folder.join("lib.rs"), "").expect("a library");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut vendor = Command::new(cargo);
        let status = vendor.args(["vendor", "--quiet", "packages"]).current_dir(folder).stdout(Stdio::null()).status();
        assert!(status.expect("cargo runs").success(), "{PACKAGE} {VERSION}");
        let told = folder.join("packages").join(PACKAGE).join(".cargo-checksum.json");
        let told = fs::read_to_string(told).expect("cargo's checksums");
        assert!(told.contains(&format!("\"package\":\"{SHA256}\"")), "another {PACKAGE} {VERSION} than was looked at");
    });
    folder.join("packages").join(PACKAGE).join("src")
}

/// The kernels of one of its files.
fn kernels(file: &str, entries: impl IntoIterator<Item = Entry>) -> Vec<(String, Kernel<Own>)> {
    declared::kernels(file.trim_end_matches(".cu"), Cuda::file(texts().join(file)), entries)
}

/// Integers of 64 bits, as pairs.
fn pairs(of: &[i64]) -> Vec<i32> {
    of.iter().flat_map(|value| [*value as i32, (*value >> 32) as i32]).collect()
}

const COUNT: usize = 1000;

/// `extern "C" __global__ void f(size_t numel, size_t num_dims, size_t const* info, T const* inp, T* out)`, contiguous.
fn unary(name: &str, dtype: DType) -> Entry {
    Entry::new(name)
        .value("numel", ParamType::I64, "n")
        .value("num_dims", ParamType::I64, "1")
        .null("info")
        .operand("inp", dtype, Access::Read, "n:1")
        .operand("out", dtype, Access::Write, "n:1")
        .grid("ceil_div(n, 256)")
        .block(256)
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn unary_functions() {
    // Strides from memory: y(i,j) = f(x(i,j)) of a transposed x.
    let strided = Entry::new("uabs_f32")
        .value("numel", ParamType::I64, "size(inp)")
        .value("num_dims", ParamType::I64, "2")
        .operand("info", DType::I32, Access::Read, "(4,2):(2,1)")
        .aligned(8)
        .operand("inp", DType::F32, Access::Read, "(rows,cols):(1,?)")
        .operand("out", DType::F32, Access::Write, "(rows,cols):(cols,1)")
        .grid("ceil_div(numel, 256)")
        .block(256);
    let elu = Entry::new("uelu_f32")
        .value("numel", ParamType::I64, "n")
        .value("num_dims", ParamType::I64, "1")
        .null("info")
        .scalar("alpha", ParamType::F32)
        .operand("inp", DType::F32, Access::Read, "n:1")
        .operand("out", DType::F32, Access::Write, "n:1")
        .grid("ceil_div(n, 256)")
        .block(256);
    let names = ["uneg_f32", "urelu_f32", "usqr_f32", "uexp_f32", "usilu_f32", "ugelu_f32"];
    let f32s = names.map(|name| unary(name, DType::F32));
    let of_doubles = unary("uabs_f64", DType::F64);
    let all = kernels("unary.cu", f32s.into_iter().chain([of_doubles, elu, strided]));
    let x = numbers(COUNT);
    let shape = [COUNT as i64];
    let mut out = vec![0.0_f32; COUNT];
    let mut of = |name: &str, function: &dyn Fn(f64) -> (f64, f64)| {
        run(&all, name, args().read(read(&x, &shape)).write(write(&mut out, &shape)), |at| {
            function(f64::from(x[at[0]]))
        });
    };
    of("uneg_f32", &|x| (-x, 0.0));
    of("urelu_f32", &|x| (x.max(0.0), 0.0));
    of("usqr_f32", &|x| (x * x, 0.0));
    // expf errs by 1 unit in the last place.
    of("uexp_f32", &|x| (x.exp(), roundings(x.exp(), 1.5)));
    // Sum and quotient round, too: 1 + e^-x is at least as large as the error of e^-x.
    of("usilu_f32", &|x| (x / (1.0 + (-x).exp()), roundings(x / (1.0 + (-x).exp()), 4.0)));
    // tanhf errs by 2 units; 1 + tanh cancels where it is near -1, so the error is one of the size of x.
    of("ugelu_f32", &|x| {
        let alpha = x + 0.044715 * x * x * x;
        let value = 0.5 * x * (1.0 + (alpha * (2.0 / std::f64::consts::PI).sqrt()).tanh());
        (value, roundings(x, 12.0))
    });
    run(&all, "uelu_f32", args().read(read(&x, &shape)).write(write(&mut out, &shape)).scalar(0.5), |at| {
        let x = f64::from(x[at[0]]);
        // e^x - 1 has the error of e^x.
        if x > 0.0 { (x, 0.0) } else { (0.5 * (x.exp() - 1.0), roundings(1.0, 2.0)) }
    });
    let doubles: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let mut out = vec![0.0_f64; COUNT];
    run(&all, "uabs_f64", args().read(read(&doubles, &shape)).write(write(&mut out, &shape)), |at| {
        (doubles[at[0]].abs(), 0.0)
    });
    let (rows, cols) = (20_i64, 50_i64);
    let mut out = vec![0.0_f32; COUNT];
    let info = pairs(&[rows, cols, 1, rows]);
    let transposed = ViewLayout::strided(&[rows, cols], &[1, rows]).expect("a layout");
    let given = args()
        .read(read(&info, &[4, 2]))
        .read(View::host_strided(&x, transposed))
        .write(write(&mut out, &[rows, cols]));
    run(&all, "uabs_f32", given, |at| (f64::from(x[at[1] * 20 + at[0]]).abs(), 0.0));
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn binary_functions() {
    let binary = |name: &str, dtype: DType, out: DType| {
        Entry::new(name)
            .value("numel", ParamType::I64, "n")
            .value("num_dims", ParamType::I64, "1")
            .null("dims_and_strides")
            .operand("lhs", dtype, Access::Read, "n:1")
            .operand("rhs", dtype, Access::Read, "n:1")
            .operand("out", out, Access::Write, "n:1")
            .grid("ceil_div(n, 256)")
            .block(256)
    };
    let f32s = ["badd_f32", "bsub_f32", "bmul_f32", "bdiv_f32", "bmaximum_f32"];
    let f32s = f32s.map(|name| binary(name, DType::F32, DType::F32));
    let others = [
        binary("lt_f32", DType::F32, DType::U8),
        binary("badd_f16", DType::F16, DType::F16),
        binary("bminimum_u8", DType::U8, DType::U8),
        binary("badd_u32", DType::I32, DType::I32),
    ];
    let all = kernels("binary.cu", f32s.into_iter().chain(others));
    let (x, y, shape) = (numbers(COUNT), numbers(COUNT + 11)[11..].to_vec(), [COUNT as i64]);
    let mut out = vec![0.0_f32; COUNT];
    let mut of = |name: &str, function: fn(f64, f64) -> f64, ulps: f64| {
        let given = args().read(read(&x, &shape)).read(read(&y, &shape)).write(write(&mut out, &shape));
        run(&all, name, given, |at| {
            let value = function(f64::from(x[at[0]]), f64::from(y[at[0]]));
            (value, if ulps == 0.0 { 0.0 } else { roundings(value, ulps) })
        });
    };
    of("badd_f32", |x, y| x + y, 0.0);
    of("bsub_f32", |x, y| x - y, 0.0);
    of("bmul_f32", |x, y| x * y, 0.0);
    of("bdiv_f32", |x, y| x / y, 0.5);
    of("bmaximum_f32", f64::max, 0.0);
    let mut flags = vec![9_u8; COUNT];
    let given = args().read(read(&x, &shape)).read(read(&y, &shape)).write(write(&mut flags, &shape));
    run(&all, "lt_f32", given, |at| (f64::from(u8::from(x[at[0]] < y[at[0]])), 0.0));
    let halves = |of: &[f32]| of.iter().map(|x| half::f16::from_f32(*x)).collect::<Vec<_>>();
    let (a, b, mut sums) = (halves(&x), halves(&y), halves(&x));
    let given = args().read(read(&a, &shape)).read(read(&b, &shape)).write(write(&mut sums, &shape));
    run(&all, "badd_f16", given, |at| (f64::from(x[at[0]]) + f64::from(y[at[0]]), 0.0));
    let bytes = |step: usize| (0..COUNT).map(|i| (i * step % 251) as u8).collect::<Vec<_>>();
    let (a, b, mut least) = (bytes(7), bytes(13), bytes(1));
    let given = args().read(read(&a, &shape)).read(read(&b, &shape)).write(write(&mut least, &shape));
    run(&all, "bminimum_u8", given, |at| (f64::from(a[at[0]].min(b[at[0]])), 0.0));
    let ints: Vec<i32> = (0..COUNT).map(|i| (i * i) as i32).collect();
    let mut sums = vec![0_i32; COUNT];
    let given = args().read(read(&ints, &shape)).read(read(&ints, &shape)).write(write(&mut sums, &shape));
    run(&all, "badd_u32", given, |at| (2.0 * f64::from(ints[at[0]]), 0.0));
}

/// A matrix with its shape and strides in memory.
fn strided<'a>(info: &'a [i32], x: &'a [f32], shape: &[i64]) -> Arguments<'a, Own, HostMemory> {
    args().read(read(info, &[4, 2])).read(read(x, shape))
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn reductions() {
    let fast = |name: &str, out: DType| {
        Entry::new(name)
            .value("src_numel", ParamType::I64, "rows * cols")
            .value("el_to_sum_per_block", ParamType::I64, "cols")
            .value("num_dims", ParamType::I64, "2")
            .operand("info", DType::I32, Access::Read, "(4,2):(2,1)")
            .aligned(8)
            .operand("src", DType::F32, Access::Read, "(rows,cols):(cols,1)")
            .operand("dst", out, Access::Write, "rows:1")
            .grid("rows")
            .block(64)
    };
    let matrix = |entry: Entry| {
        let entry = entry.operand("src", DType::F32, Access::Read, "(rows,cols):(cols,1)");
        entry.operand("dst", DType::F32, Access::Write, "(rows,cols):(cols,1)")
    };
    let softmax = matrix(Entry::new("softmax_f32")).extent("n_cols", "cols").grid("rows").block3([1, 32, 1]);
    let norm = |entry: Entry| {
        let entry = entry.extent("n_cols", "cols").extent("block_size", "32").scalar("eps", ParamType::F32);
        entry.grid("rows").block(32)
    };
    let rmsnorm = norm(matrix(Entry::new("rmsnorm_f32")).operand("alpha", DType::F32, Access::Read, "cols:1"));
    let layernorm = matrix(Entry::new("layernorm_f32")).operand("alpha", DType::F32, Access::Read, "cols:1");
    let layernorm = norm(layernorm.operand("beta", DType::F32, Access::Read, "cols:1"));
    let plain =
        norm(matrix(Entry::new("layernorm_f32")).null("alpha").null("beta")).named("reduce_plain_layernorm_f32");
    let all = kernels(
        "reduce.cu",
        [fast("fast_sum_f32", DType::F32), fast("fast_max_f32", DType::F32), fast("fast_argmin_f32", DType::I32)]
            .into_iter()
            .chain([softmax, rmsnorm, layernorm]),
    );
    // One function under two declarations: a text for each.
    let without = kernels("reduce.cu", [plain]);
    let (rows, cols) = (7_usize, 150_usize);
    let x: Vec<f32> = numbers(rows * cols).iter().map(|x| x * 16.0).collect();
    let row = |at: usize| x[at * cols..(at + 1) * cols].iter().map(|x| f64::from(*x));
    let (shape, info) = ([rows as i64, cols as i64], pairs(&[rows as i64, cols as i64, cols as i64, 1]));
    let mut out = vec![0.0_f32; rows];
    run(&all, "fast_sum_f32", strided(&info, &x, &shape).write(write(&mut out, &shape[..1])), |at| {
        (row(at[0]).sum(), 0.0)
    });
    run(&all, "fast_max_f32", strided(&info, &x, &shape).write(write(&mut out, &shape[..1])), |at| {
        (row(at[0]).fold(f64::MIN, f64::max), 0.0)
    });
    let mut indices = vec![0_i32; rows];
    kernel_of(&all, "fast_argmin_f32")
        .launch(strided(&info, &x, &shape).write(write(&mut indices, &shape[..1])))
        .expect("clean");
    for (at, index) in indices.iter().enumerate() {
        let least = row(at).fold(f64::MAX, f64::min);
        assert_eq!(row(at).nth(*index as usize), Some(least), "row {at}");
    }
    let y: Vec<f32> = x.iter().map(|x| x / 32.0).collect();
    let row = |at: usize| y[at * cols..(at + 1) * cols].iter().map(|x| f64::from(*x));
    let mut out = vec![0.0_f32; rows * cols];
    run(&all, "softmax_f32", args().read(read(&y, &shape)).write(write(&mut out, &shape)), |at| {
        declared::softmax(&y[at[0] * cols..(at[0] + 1) * cols], at[1], 0)
    });
    let (alpha, beta) = (numbers(cols), numbers(cols + 3)[3..].to_vec());
    let vector = [cols as i64];
    // A sum of 150 squares in any order, then a quotient, a sum, rsqrtf (2 units), and products.
    let rms = |at: &[usize]| {
        let mean: f64 = row(at[0]).map(|x| x * x).sum::<f64>() / cols as f64;
        let value = f64::from(y[at[0] * cols + at[1]]) / (mean + 1e-5).sqrt() * f64::from(alpha[at[1]]);
        (value, roundings(value, 5.0 + 150.0 / 4.0))
    };
    let given = args().read(read(&y, &shape)).write(write(&mut out, &shape)).read(read(&alpha, &vector)).scalar(1e-5);
    run(&all, "rmsnorm_f32", given, rms);
    let normed = |at: &[usize]| declared::normed(&y[at[0] * cols..(at[0] + 1) * cols], at[1]).value;
    let given = args()
        .read(read(&y, &shape))
        .write(write(&mut out, &shape))
        .read(read(&alpha, &vector))
        .read(read(&beta, &vector))
        .scalar(1e-5);
    run(&all, "layernorm_f32", given, |at| {
        let ((value, error), a, b) = (normed(at), f64::from(alpha[at[1]]), f64::from(beta[at[1]]));
        (value * a + b, error * a.abs() + roundings(value * a, 1.0) + roundings(value * a + b, 1.0))
    });
    let given = args().read(read(&y, &shape)).write(write(&mut out, &shape)).scalar(1e-5);
    run(&without, "layernorm_f32", given, normed);
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn sorting() {
    let sort = |name: &str| {
        Entry::new(name)
            .operand("x", DType::F32, Access::Read, "(rows,cols):(cols,1)")
            .operand("dst", DType::I32, Access::Write, "(rows,cols):(cols,1)")
            .extent("ncols", "cols")
            .extent("ncols_pad", "128")
            .require("cols <= 128", "a block sorts a row")
            .grid3(["1", "rows", "1"])
            .block(128)
            .shared("128 * 4")
    };
    let all = kernels("sort.cu", [sort("asort_asc_f32"), sort("asort_desc_f32")]);
    let (rows, cols) = (5_usize, 100_usize);
    let x: Vec<f32> = (0..rows * cols).map(|i| ((i * 7919) % 10_007) as f32).collect();
    let shape = [rows as i64, cols as i64];
    for (name, rising) in [("asort_asc_f32", true), ("asort_desc_f32", false)] {
        let mut order: Vec<Vec<usize>> = vec![(0..cols).collect(); rows];
        for (row, order) in order.iter_mut().enumerate() {
            order.sort_by(|a, b| x[row * cols + a].total_cmp(&x[row * cols + b]));
            if !rising {
                order.reverse();
            }
        }
        let mut found = vec![0_i32; rows * cols];
        let given = args().read(read(&x, &shape)).write(write(&mut found, &shape));
        run(&all, name, given, |at| (order[at[0]][at[1]] as f64, 0.0));
    }
}
