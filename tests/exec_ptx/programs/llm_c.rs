//! Forward kernels of llm.c (github.com/karpathy/llm.c), from a folder with its files: softmax, layer norm, attention.

use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::exec::Kernel;
use cutemplate::plan::ParamType;
use cutemplate::view::Access;

use super::declared::{
    Own, args, given, kernel_of, kernels, normed, numbers, read, roundings, run, run_each, softmax, write,
};
use super::kept;

const FOLDER: &str = "CUTEMPLATE_LLM_C";
const COMMON: (&str, &str) = ("dev/cuda/common.h", "cf73117df76f26ce18ba03a5c67c4de96478fb627c0467675c316ad9b05bcfed");

/// What `common.h` names of cuBLAS, for host code that no test runs.
const CUBLAS: &str = "#pragma once
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
typedef struct cublasContext* cublasHandle_t;
typedef struct cublasLtContext* cublasLtHandle_t;
cublasStatus_t cublasCreate(cublasHandle_t*);
cublasStatus_t cublasLtCreate(cublasLtHandle_t*);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
";

/// The device code of a file: what is ahead of the host functions that launch it.
fn device_code(stem: &str, sha256: &str, entries: impl IntoIterator<Item = Entry>) -> Vec<(String, Kernel<Own>)> {
    let file = format!("dev/cuda/{stem}.cu");
    let mut texts = given(FOLDER, &[(&file, sha256), COMMON]);
    let (common, text) = (texts.remove(1), texts.remove(0));
    let headers = kept("llm-c-headers", &format!("{CUBLAS}{common}"), |folder| {
        for (name, text) in [("cublas_v2.h", CUBLAS), ("cublasLt.h", "#include <cublas_v2.h>\n"), ("common.h", &common)]
        {
            std::fs::write(folder.join(name), text).expect("writable");
        }
    });
    let (code, _) = text.split_once("// kernel launcher").expect("as it was looked at");
    kernels(stem, Cuda::text(code).include_dir(headers), entries)
}

/// What a kernel that is not right is refused for.
fn refused(
    all: &[(String, Kernel<Own>)],
    name: &str,
    given: cutemplate::view::Arguments<'_, Own, cutemplate::view::HostMemory>,
) -> String {
    kernel_of(all, name).launch(given).expect_err(name).to_string()
}

#[test]
#[ignore = "CUTEMPLATE_LLM_C names a folder with llm.c's files; compiles them, for minutes"]
fn softmax_forward() {
    let entry = |name: &str, grid: &str, block: u32, shared: &str| {
        let entry = Entry::new(name)
            .operand("out", DType::F32, Access::Write, "(n,c):(c,1)")
            .operand("inp", DType::F32, Access::Read, "(n,c):(c,1)")
            .extent("N", "n")
            .extent("C", "c")
            .grid(grid)
            .block(block);
        if shared == "0" { entry } else { entry.shared(shared) }
    };
    let (by_thread, by_warp, by_block) = ("ceil_div(n, 64)", "ceil_div(n * 32, 128)", "n");
    let all = device_code(
        "softmax_forward",
        "5bc29aae3b655fbccdb40a9dc3a071e64f9b9f53e2c98d0fb0c82e346990013e",
        [
            entry("softmax_forward_kernel1", by_thread, 64, "0"),
            entry("softmax_forward_kernel2", by_block, 128, "128 * 4"),
            entry("softmax_forward_kernel3", by_block, 32, "0"),
            entry("softmax_forward_kernel4", by_block, 128, "128 / 32 * 4"),
            entry("softmax_forward_online_kernel1", by_thread, 64, "0"),
            entry("softmax_forward_online_kernel2", by_warp, 128, "0"),
            entry("softmax_forward_kernel7", by_block, 128, "2 * 128 / 32 * 4"),
            entry("softmax_forward_online_kernel8", by_warp, 128, "0"),
        ],
    );
    let (rows, columns) = (7_usize, 150_usize);
    let (x, shape) = (numbers(rows * columns), [rows as i64, columns as i64]);
    let mut out = vec![0.0_f32; rows * columns];
    // Online: the maximum may rise with each element that a thread reads, and with each of 5 exchanges between lanes.
    for (name, factors) in [
        ("forward_kernel1", 0),
        ("forward_kernel2", 0),
        ("forward_kernel3", 0),
        ("online_kernel1", columns),
        ("online_kernel2", columns / 32 + 1 + 5),
        ("online_kernel8", columns / 32 + 1 + 5),
    ] {
        run(&all, name, args().write(write(&mut out, &shape)).read(read(&x, &shape)), |at| {
            softmax(&x[at[0] * columns..(at[0] + 1) * columns], at[1], factors)
        });
    }
    // A warp may write its sum before another has read the maximum, in the same place.
    let told = refused(&all, "forward_kernel4", args().write(write(&mut out, &shape)).read(read(&x, &shape)));
    assert!(told.contains("exec-race"), "{told}");
    // Threads past the end read the last element, which another divides.
    let told = refused(&all, "forward_kernel7", args().write(write(&mut out, &shape)).read(read(&x, &shape)));
    assert!(told.contains("exec-race"), "{told}");
}

#[test]
#[ignore = "CUTEMPLATE_LLM_C names a folder with llm.c's files; compiles them, for minutes"]
fn layernorm_forward() {
    let rows = "(n,c):(c,1)";
    let entry = |name: &str| {
        Entry::new(name)
            .operand("out", DType::F32, Access::Write, rows)
            .aligned(16)
            .operand("mean", DType::F32, Access::Write, "n:1")
            .operand("rstd", DType::F32, Access::Write, "n:1")
            .operand("inp", DType::F32, Access::Read, rows)
            .aligned(16)
            .operand("weight", DType::F32, Access::Read, "c:1")
            .aligned(16)
            .operand("bias", DType::F32, Access::Read, "c:1")
            .aligned(16)
            .extent("N", "n")
            .extent("C", "c")
    };
    let by_block = |entry: Entry| entry.extent("N", "n").extent("C", "c").value("block_size", ParamType::I32, "128");
    let of_mean = Entry::new("mean_kernel").operand("mean", DType::F32, Access::Write, "n:1");
    let of_mean = by_block(of_mean.operand("inp", DType::F32, Access::Read, rows));
    let of_rstd = Entry::new("rstd_kernel").operand("rstd", DType::F32, Access::Write, "n:1");
    let of_rstd = of_rstd.operand("inp", DType::F32, Access::Read, rows);
    let of_rstd = by_block(of_rstd.operand("mean", DType::F32, Access::Read, "n:1"));
    let all = device_code(
        "layernorm_forward",
        "f17d02e245e9f133e9658f1d3a9e05986f95d6e0471ebd0f1ac48bdea6e544d0",
        [
            entry("layernorm_forward_kernel1").grid("ceil_div(n, 64)").block(64),
            entry("layernorm_forward_kernel3").grid("ceil_div(n * 32, 128)").block(128),
            entry("layernorm_forward_kernel4").grid("ceil_div(n * 32, 128)").block(128),
            entry("layernorm_forward_kernel5").grid("n").block(128),
            entry("layernorm_forward_kernel6").grid("ceil_div(n, 4)").block3([32, 4, 1]).shared("(2 + 4) * c * 4"),
            of_mean.grid("n").block(128).shared("128 * 4"),
            of_rstd.grid("n").block(128).shared("128 * 4"),
        ],
    );
    let (rows, columns) = (7_usize, 152_usize);
    let (x, shape) = (numbers(rows * columns), [rows as i64, columns as i64]);
    let (weight, bias) = (numbers(columns), numbers(columns + 3)[3..].to_vec());
    let row = |at: usize| &x[at * columns..(at + 1) * columns];
    let (mut out, mut mean, mut rstd) = (vec![0.0_f32; x.len()], vec![0.0_f32; rows], vec![0.0_f32; rows]);
    let expected = |tensor: &str, at: &[usize]| match tensor {
        "mean" => normed(row(at[0]), 0).mean,
        "rstd" => normed(row(at[0]), 0).inverse,
        _ => {
            let ((value, error), w, b) =
                (normed(row(at[0]), at[1]).value, f64::from(weight[at[1]]), f64::from(bias[at[1]]));
            (value * w + b, error * w.abs() + roundings(value * w, 1.0) + roundings(value * w + b, 1.0))
        }
    };
    for name in ["kernel1", "kernel3", "kernel4", "kernel5", "kernel6"] {
        let given = args()
            .write(write(&mut out, &shape))
            .write(write(&mut mean, &shape[..1]))
            .write(write(&mut rstd, &shape[..1]))
            .read(read(&x, &shape))
            .read(read(&weight, &shape[1..]))
            .read(read(&bias, &shape[1..]));
        run_each(&all, &format!("layernorm_forward_{name}"), given, expected);
    }
    let given = args().write(write(&mut mean, &shape[..1])).read(read(&x, &shape));
    run_each(&all, "mean_kernel", given, expected);
    let exact: Vec<f32> = (0..rows).map(|at| normed(row(at), 0).mean.0 as f32).collect();
    let given = args().write(write(&mut rstd, &shape[..1])).read(read(&x, &shape)).read(read(&exact, &shape[..1]));
    run_each(&all, "rstd_kernel", given, expected);
}

/// Sequences, tokens, heads, elements of a head.
const B: usize = 2;
const T: usize = 32;
const NH: usize = 2;
const HS: usize = 16;

/// Scores of a row, over the keys up to its own: sums of products that a float holds, a quarter of them.
fn scores(inp: &[f32], [b, h, t]: [usize; 3]) -> Vec<f32> {
    let at = |token: usize, part: usize, i: usize| f64::from(inp[((b * T + token) * 3 + part) * NH * HS + h * HS + i]);
    (0..=t).map(|key| (0..HS).map(|i| at(t, 0, i) * at(key, 1, i)).sum::<f64>() as f32 / 4.0).collect()
}

#[test]
#[ignore = "CUTEMPLATE_LLM_C names a folder with llm.c's files; compiles them, for minutes"]
fn attention_forward() {
    let squares = "(b,nh,t,t):(nh*t*t,t*t,t,1)";
    let packed = "(b,t,3,nh,hs):(t*3*nh*hs,3*nh*hs,nh*hs,hs,1)";
    let (heads, turned) = ("(b,t,nh,hs):(t*nh*hs,nh*hs,hs,1)", "(b,nh,t,hs):(nh*t*hs,t*hs,hs,1)");
    let of = |name: &str| Entry::new(name);
    let read_f32 = |entry: Entry, name: &str, layout: &str| entry.operand(name, DType::F32, Access::Read, layout);
    let write_f32 = |entry: Entry, name: &str, layout: &str| entry.operand(name, DType::F32, Access::Write, layout);
    let sizes = |entry: Entry, names: [&str; 4]| {
        names
            .into_iter()
            .zip(["b", "t", "nh * hs", "nh"])
            .fold(entry, |entry, (name, of)| entry.value(name, ParamType::I32, of))
    };
    let by_token = |entry: Entry| entry.grid("ceil_div(b * t * nh, 64)").block(64);
    let by_element = |entry: Entry| entry.grid("ceil_div(b * t * nh * hs, 64)").block(64);
    let query_key = read_f32(write_f32(of("attention_query_key_kernel1"), "preatt", squares), "inp", packed);
    let query_key = sizes(query_key, ["B", "T", "C", "NH"]).grid("ceil_div(b * nh * t * t, 64)").block(64);
    let weights = read_f32(write_f32(of("attention_softmax_kernel1"), "att", squares), "preatt", squares);
    let weights = weights.extent("B", "att.0").extent("T", "att.2").extent("NH", "att.1");
    let weights = weights.grid("ceil_div(size(att), 64 * att.2)").block(64);
    let values = read_f32(write_f32(of("attention_value_kernel1"), "out", heads), "att", squares);
    let values = by_token(sizes(read_f32(values, "inp", packed), ["B", "T", "C", "NH"]));
    let four = ["B", "N", "NH", "d"];
    let four = |entry: Entry| {
        four.into_iter()
            .zip(["b", "t", "nh", "hs"])
            .fold(entry, |entry, (name, of)| entry.value(name, ParamType::I32, of))
    };
    let permute = ["q", "k", "v"].into_iter().fold(of("permute_kernel"), |entry, name| write_f32(entry, name, turned));
    let permute = by_element(four(read_f32(permute, "inp", packed)));
    let unpermute = by_element(four(write_f32(read_f32(of("unpermute_kernel"), "inp", turned), "out", heads)));
    let all = device_code(
        "attention_forward",
        "ed6c8170cc350ac358ab473ee354b3f227e714ca4ac10fd0857e3940c450486e",
        [query_key, weights, values, permute, unpermute],
    );
    let [b, t, nh, hs] = [B, T, NH, HS].map(|extent| extent as i64);
    let inp = numbers(B * T * 3 * NH * HS);
    let (of_inp, of_squares, of_heads, of_turned) = ([b, t, 3, nh, hs], [b, nh, t, t], [b, t, nh, hs], [b, nh, t, hs]);
    let mut preatt = vec![0.0_f32; B * NH * T * T];
    run(&all, "query_key_kernel1", args().write(write(&mut preatt, &of_squares)).read(read(&inp, &of_inp)), |at| {
        let row = scores(&inp, [at[0], at[1], at[2]]);
        (row.get(at[3]).map_or(f64::NEG_INFINITY, |score| f64::from(*score)), 0.0)
    });
    let mut att = vec![0.0_f32; preatt.len()];
    run(
        &all,
        "attention_softmax_kernel1",
        args().write(write(&mut att, &of_squares)).read(read(&preatt, &of_squares)),
        |at| {
            let row = scores(&inp, [at[0], at[1], at[2]]);
            if at[3] < row.len() { softmax(&row, at[3], 0) } else { (0.0, 0.0) }
        },
    );
    // Weights that a float holds with all sums of their products.
    let att: Vec<f32> = numbers(preatt.len());
    let mut out = vec![0.0_f32; B * T * NH * HS];
    let given = args().write(write(&mut out, &of_heads)).read(read(&att, &of_squares)).read(read(&inp, &of_inp));
    let at = |[b, token, part, head, i]: [usize; 5]| (((b * T + token) * 3 + part) * NH + head) * HS + i;
    run(&all, "attention_value_kernel1", given, |of| {
        let weight = |key: usize| f64::from(att[((of[0] * NH + of[2]) * T + of[1]) * T + key]);
        let value = |key: usize| f64::from(inp[at([of[0], key, 2, of[2], of[3]])]);
        ((0..=of[1]).map(|key| weight(key) * value(key)).sum(), 0.0)
    });
    let (mut q, mut k, mut v) = (out.clone(), out.clone(), out.clone());
    let given =
        args().write(write(&mut q, &of_turned)).write(write(&mut k, &of_turned)).write(write(&mut v, &of_turned));
    run_each(&all, "attention_forward_permute_kernel", given.read(read(&inp, &of_inp)), |tensor, of| {
        let part = ["q", "k", "v"].iter().position(|name| *name == tensor).expect("one of the three");
        (f64::from(inp[at([of[0], of[2], part, of[1], of[3]])]), 0.0)
    });
    run(&all, "unpermute_kernel", args().read(read(&q, &of_turned)).write(write(&mut out, &of_heads)), |of| {
        (f64::from(inp[at([of[0], of[1], 0, of[2], of[3]])]), 0.0)
    });
}
