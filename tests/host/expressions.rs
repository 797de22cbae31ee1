//! Contract: what an expression's C++ computes, the evaluator accepts, and where the evaluator knows one result it is that
//! one, bit for bit, and nothing that it does is undefined. The text is compiled for the CPU executor, once for each
//! compute type.

#![cfg(feature = "host")]

use crate::expr as support;
use crate::host_common;

use std::fmt::Write as _;

use cutemplate::dtype::DType;
use cutemplate::emit::SourceFile;
use cutemplate::exec::cxx::{Mode, Program, Source};
use cutemplate::exec::{Buffer, Executor, Finding, FindingKind, Job};
use cutemplate::expr::{Compute, Evaluator, Function, Helpers, round};
use cutemplate::plan::{BoundTensor, EntryLaunch};
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use support::{INPUTS, SCALARS, config};

const ROWS: usize = 256;
const OUTPUTS: usize = 4;

const PICKED: &[&str] = &[
    "relu(a)",
    "max(a, 0)",
    "a * b + c",
    "fma(a, b, c)",
    "let t0 = alpha * a + beta; t0, relu(t0), -t0",
    "sigmoid(a), silu(a), gelu(a), gelu_tanh(a)",
    "exp(a), exp2(a), log(a), log2(a)",
    "sqrt(a), rsqrt(a), 1 / sqrt(a), recip(a)",
    "sin(a), cos(a), tanh(a), erf(a)",
    "pow(a, b), pow(a, 2), pow(2, a), pow(a, 0.5)",
    "min(a, b), max(a, b), clamp(a, -1, 1), abs(a)",
    "select(a < b && b < c || !(a != c), a, b)",
    "select(a == b, inf, -inf), nan, -0, 1e-30",
    "a - (b - c), a / (b / c), -(a + b), -a * -b",
    "cast(f16, a), cast(bf16, a), cast(e4m3, a), cast(e5m2, a)",
    "cast(i32, a), cast(i16, a), cast(i8, a), cast(u8, a)",
    "saturate(f16, a), saturate(bf16, a), saturate(f32, a), saturate(i8, a)",
    "cast(bool, a), saturate(e4m3, a), saturate(bool, a), cast(f64, a)",
];

const PICKED_INTEGERS: &[&str] = &[
    "a * b + c, a - b, -a, abs(a)",
    "relu(a), min(a, b), max(a, b), clamp(a, -100, 100)",
    "cast(i16, a), cast(i8, a), cast(u8, a), cast(bool, a)",
    "saturate(i16, a), saturate(i8, a), saturate(u8, a), saturate(i32, a)",
    "select(a < b, alpha, beta), a * -2147483648, a + 2147483647, alpha - a",
];

/// Pairs that differ in a detail: what is computed for the first is not what the second accepts.
const DIFFERENT: &[(&str, &str)] = &[
    ("relu(a)", "max(a, 0)"),
    ("a * b + c", "fma(a, b, c)"),
    ("recip(a)", "a"),
    ("rsqrt(a)", "cast(f16, rsqrt(a))"),
    ("exp(a)", "exp(a * 1.000001)"),
    ("a / b", "a * (1 / b)"),
    ("cast(f16, a)", "saturate(f16, a)"),
    ("cast(e4m3, a)", "cast(f16, a)"),
    ("select(a < b, a, b)", "min(a, b)"),
    ("gelu(a)", "gelu_tanh(a)"),
    ("-a", "0 - a"),
];

/// A function with the element types of its inputs and outputs.
struct Case {
    function: Function,
    inputs: [DType; INPUTS],
    outputs: Vec<DType>,
}

impl Case {
    fn new(function: Function, number: usize, compute: DType) -> Case {
        let all = DType::ALL;
        let inputs =
            core::array::from_fn(
                |i| if number.is_multiple_of(3) { compute } else { all[(number + 4 * i) % all.len()] },
            );
        // The compute type itself shows most; the others show the conversions.
        let output =
            |i: usize| if (number + i).is_multiple_of(2) { compute } else { all[(number / 2 + 3 * i) % all.len()] };
        let outputs = (0..function.outputs()).map(output).collect();
        Case { function, inputs, outputs }
    }

    /// The functor, its helpers and a function that calls it, in a namespace of their own.
    fn text(&self, number: usize, compute: Compute, [alpha, beta]: [f64; 2]) -> String {
        let mut helpers = Helpers::new(compute);
        let functor = self.function.check(compute).expect("the compute type has it").functor("Op", &mut helpers);
        let loads: Vec<String> = (0..INPUTS)
            .map(|i| helpers.load(self.inputs[i], &format!("element<{}>(in[{i}])", self.inputs[i].cxx())))
            .collect();
        let mut stores = String::new();
        for (i, dtype) in self.outputs.iter().enumerate() {
            let one = if self.outputs.len() == 1 { "result".to_owned() } else { format!("cute::get<{i}>(result)") };
            writeln!(stores, "  out[{i}] = bits<{}>({});", dtype.cxx(), helpers.store(*dtype, &one)).expect("memory");
        }
        let (type_, arguments) = (compute.cxx(), loads.join(", "));
        format!(
            "// {}\nnamespace f{number} {{\n{helpers}\n{functor}\n\
             CUTE_HOST_DEVICE void call(uint64_t const *in, uint64_t *out) {{\n\
             \x20 {type_} const alpha = {alpha}, beta = {beta};\n\
             \x20 auto const result = Op{{alpha, beta}}({arguments});\n{stores}}}\n}}\n\n",
            self.function,
        )
    }
}

/// All cases in one kernel, the threads of which take one row of each case.
fn program(cases: &[Case], compute: Compute, scalars: [f64; 2]) -> Program {
    let mut text = "#include <cute/tensor.hpp>\n\n\
         template <class T> CUTE_HOST_DEVICE T element(uint64_t bits) { T x; memcpy(&x, &bits, sizeof(T)); return x; }\n\
         template <class T> CUTE_HOST_DEVICE uint64_t bits(T x) { uint64_t bits = 0; memcpy(&bits, &x, sizeof(T)); return bits; }\n"
        .to_owned();
    let mut calls = String::new();
    for (number, case) in cases.iter().enumerate() {
        text += &case.text(number, compute, scalars);
        writeln!(calls, "  f{number}::call(p.in + ({number} * {ROWS} + row) * {INPUTS}, p.out + ({number} * {ROWS} + row) * {OUTPUTS});")
            .expect("memory");
    }
    let name = "expressions";
    write!(
        text,
        "struct Params {{ uint64_t const *in; uint64_t *out; }};\n\
         extern \"C\" __global__ void {name}(Params const p) {{\n  int const row = threadIdx.x;\n{calls}}}\n"
    )
    .expect("memory");
    let files = [SourceFile { name: format!("{name}.cu"), text }];
    match Program::compile(Source::new(name, &files), Mode::Bounds, &host_common::options()) {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    }
}

fn view(data: &[u64], columns: usize, access: Access) -> ViewRef {
    let extents = [data.len() / columns, columns].map(|extent| extent as i64);
    ViewRef {
        dtype: DType::F64,
        ptr: data.as_ptr() as u64,
        available: Elements(data.len() as u64),
        layout: ViewLayout::matrix(extents, columns as i64),
        access,
    }
}

fn bytes(data: &mut [u64]) -> &mut [u8] {
    // SAFETY: any eight bytes are a u64, and u64 has no padding.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}

fn run(program: &Program, inputs: &mut [u64], outputs: &mut [u64]) {
    let tensors = [
        BoundTensor { name: "in", view: view(inputs, INPUTS, Access::Read), param_offset: 0 },
        BoundTensor { name: "out", view: view(outputs, OUTPUTS, Access::Write), param_offset: 8 },
    ];
    let launches =
        [EntryLaunch { entry: 0, grid: [1; 3], block: [ROWS as u32, 1, 1], dynamic_smem: 0, overlaps: false }];
    let job = Job { launches: &launches, params: &[0; 16], tensors: &tensors, workspace: None, tensor_maps: &[] };
    let mut buffers = [Buffer::Read(bytes(inputs)), Buffer::Write(bytes(outputs))];
    let report = program.run(&job, &mut buffers).expect("the kernel runs");
    // CUTLASS 4.2 itself makes the mask `(1 << 31) - 1` of an int when it narrows a number of one exponent, 31 below the
    // smallest normal one. The result is right nevertheless.
    let in_cutlass = |finding: &Finding| {
        let line = finding.line();
        finding.kind == FindingKind::Undefined
            && line.is_some_and(|line| ["half.h", "float8.h"].contains(&line.file.as_str()))
    };
    assert!(report.findings.iter().all(in_cutlass), "{report}\n{}", report.printed);
}

/// Elements of every size, the special ones, and bits at random.
fn inputs(cases: &[Case]) -> Vec<u64> {
    let special =
        [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0, 1e-45, -1e-310, 1e-40, 3.4e38, 1e300];
    let special =
        special.into_iter().chain([65519.9, 65520.0, 448.0, 479.0, -2147483648.0, 2147483647.0, 0.5, 88.8, -104.0]);
    let special: Vec<f64> = special.collect();
    let mut state = 0x5eed_u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ (state >> 29)
    };
    let mut all = Vec::new();
    for case in cases {
        for _ in 0..ROWS {
            for dtype in case.inputs {
                let unit = (random() >> 11) as f64 / (1u64 << 53) as f64;
                let bits = match random() % 4 {
                    0 => round::bits(dtype, special[random() as usize % special.len()]),
                    1 => random() & (u64::MAX >> (64 - dtype.bits())),
                    _ => round::bits(dtype, (unit - 0.5) * 20.0),
                };
                // Every NaN is a quiet one.
                let nan = round::value(dtype, bits).is_nan();
                all.push(if nan { round::bits(dtype, f64::NAN) } else { bits });
            }
        }
    }
    all
}

/// How many results were right in how many cases, and how many of them were the only right ones.
#[derive(Debug, Default)]
struct Count {
    right: usize,
    exact: usize,
    wrong: usize,
    first: String,
}

fn compare(case: &Case, evaluator: &mut Evaluator, inputs: &[u64], outputs: &[u64]) -> Count {
    let mut count = Count::default();
    for (row, found) in inputs.chunks(INPUTS).zip(outputs.chunks(OUTPUTS)) {
        let values: Vec<f64> = row.iter().zip(case.inputs).map(|(bits, dtype)| round::value(dtype, *bits)).collect();
        let accepts = evaluator.evaluate(&values).expect("three inputs");
        for ((accept, dtype), bits) in accepts.iter().zip(&case.outputs).zip(found) {
            let exact = accept.exact(*dtype);
            if accept.accepts(*dtype, *bits) && exact.is_none_or(|exact| exact == *bits) {
                count.right += 1;
                count.exact += usize::from(exact.is_some());
            } else {
                count.wrong += 1;
                if count.wrong == 1 {
                    count.first = format!("{} of {values:?} gives {bits:#x} as {dtype}: {accept:?}", case.function);
                }
            }
        }
    }
    count
}

fn parsed(text: &str) -> Function {
    Function::parse(text, INPUTS, &SCALARS).expect("the grammar")
}

fn check(compute: Compute, cases: &[Case], scalars: [f64; 2]) -> Vec<u64> {
    let program = program(cases, compute, scalars);
    let mut inputs = inputs(cases);
    let mut outputs = vec![0; cases.len() * ROWS * OUTPUTS];
    run(&program, &mut inputs, &mut outputs);
    let (mut right, mut exact) = (0, 0);
    let rows = inputs.chunks(ROWS * INPUTS).zip(outputs.chunks(ROWS * OUTPUTS));
    for (case, (inputs, outputs)) in cases.iter().zip(rows) {
        let mut evaluator = case.function.check(compute).expect("checked").evaluator(&scalars).expect("two scalars");
        let count = compare(case, &mut evaluator, inputs, outputs);
        assert_eq!(count.wrong, 0, "{compute}: {} right, first: {}", count.right, count.first);
        right += count.right;
        exact += count.exact;
    }
    eprintln!("{compute}: {} functions, {right} results, {exact} of them determined", cases.len());
    assert!(2 * exact > right, "most results are determined");
    outputs
}

fn float_cases(dtype: DType) -> Vec<Case> {
    let mut runner = TestRunner::new(config());
    let random = (0..40).map(|_| support::floats().new_tree(&mut runner).expect("a sample").current().trace(false));
    let picked = PICKED.iter().map(|text| parsed(text));
    let pairs = DIFFERENT.iter().map(|(text, _)| parsed(text));
    let cases: Vec<Case> =
        picked.chain(random).enumerate().map(|(number, function)| Case::new(function, number, dtype)).collect();
    let pairs = pairs.map(|function| Case { function, inputs: [dtype; INPUTS], outputs: vec![dtype] });
    cases.into_iter().chain(pairs).collect()
}

fn check_floats(compute: Compute, dtype: DType) {
    let scalars = [0.75, -2.0];
    let cases = float_cases(dtype);
    let outputs = check(compute, &cases, scalars);
    let inputs = inputs(&cases);
    // The same results are refused for functions that differ in a detail.
    let first = cases.len() - DIFFERENT.len();
    for (number, (text, other)) in (first..).zip(DIFFERENT) {
        let other = parsed(other).check(compute).expect("checked");
        let mut evaluator = other.evaluator(&scalars).expect("two scalars");
        let (at, to) = (number * ROWS, (number + 1) * ROWS);
        let (inputs, outputs) = (&inputs[at * INPUTS..to * INPUTS], &outputs[at * OUTPUTS..to * OUTPUTS]);
        let count = compare(&cases[number], &mut evaluator, inputs, outputs);
        assert!(count.wrong > 0, "{compute}: nothing tells {text} from {}", other.function());
    }
}

#[test]
fn f32_is_what_the_evaluator_says() {
    check_floats(Compute::F32, DType::F32);
}

#[test]
fn f64_is_what_the_evaluator_says() {
    check_floats(Compute::F64, DType::F64);
}

#[test]
fn i32_is_what_the_evaluator_says() {
    let mut runner = TestRunner::new(config());
    let random = (0..40).map(|_| support::integers().new_tree(&mut runner).expect("a sample").current().trace(true));
    let picked = PICKED_INTEGERS.iter().map(|text| parsed(text));
    let cases: Vec<Case> =
        picked.chain(random).enumerate().map(|(number, function)| Case::new(function, number, DType::I32)).collect();
    check(Compute::I32, &cases, [3.0, -7.0]);
}
