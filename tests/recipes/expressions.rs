//! Contract: what a function's C++ computes, the evaluator accepts. Where the evaluator knows one result, it is that one, bit for
//! bit. Nothing that the C++ does is undefined. All functions are one program of the host's C++ compiler, under UBSan.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use cutemplate::dtype::DType;
use cutemplate::emit::SourceFile;
use cutemplate::expr::{Bounds, Compute, Emptied, Evaluator, Function, Helpers, functions, round};
use cutlass_sys::{Family, Finder};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::expr::{self as support, INPUTS, SCALARS, config};
use crate::made;

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

/// Conditions under which nothing is left of `a`, by bounds of `b` and `c`: each operation on ranges.
const EMPTIED: &[&str] = &[
    "c <= b",
    "b - c < alpha && c > beta || b == c",
    "abs(b - c) != alpha && !(c >= b)",
    "b * c + 1.5 < -alpha",
    "b / c > alpha",
    "alpha / (b - 3) <= c / 3",
    "min(b, alpha) < max(c, beta)",
    "relu(b) - relu(-c) > 2 / 3 - abs(-1)",
    "cast(i32, b / 4) == cast(i32, c / 4)",
    "cast(f16, b * 3) < saturate(bf16, c) + cast(u8, b)",
    "b < select(c > 0, alpha, c * beta)",
    "1e30 * b * b < c || b > 40 || c == inf",
];

/// The scalars of these.
const OF_EMPTIED: [f64; 2] = [5.0, -2.0];

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
    fn text(&self, space: &str, compute: Compute, [alpha, beta]: [f64; 2]) -> String {
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
            "// {}\nnamespace {space} {{\n{helpers}\n{functor}\n\
             inline void call(uint64_t const *in, uint64_t *out) {{\n\
             \x20 {type_} const alpha = {alpha}, beta = {beta};\n\
             \x20 auto const result = Op{{alpha, beta}}({arguments});\n{stores}}}\n}}\n\n",
            self.function,
        )
    }
}

fn emptied(condition: &str) -> Emptied {
    let function = parsed(&format!("select({condition}, a, -inf)"));
    function.check(Compute::F32).expect("f32 has it").emptied(&[1, 2]).expect("a condition")
}

/// The functor of a condition, its helpers and a function that calls it. A word holds both ends of a range.
fn emptied_text(space: &str, condition: &str) -> String {
    let mut helpers = Helpers::new(Compute::F32);
    let functor = emptied(condition).functor("Empties", &mut helpers);
    let [alpha, beta] = OF_EMPTIED;
    format!(
        "// {condition}\nnamespace {space} {{\n{helpers}\n{functor}\n\
         inline Range range(uint64_t bits) {{ float ends[2]; memcpy(ends, &bits, 8); return {{ends[0], ends[1]}}; }}\n\
         inline void call(uint64_t const *in, uint64_t *out) {{\n\
         \x20 out[0] = Empties{{{alpha}, {beta}}}(range(in[1]), range(in[2]));\n}}\n}}\n\n"
    )
}

/// What nvcc has of its own and the functions' C++ uses, as IEEE 754 and the CUDA Math API define it.
const DEVICE: &str = "\
#include <cmath>
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
template <class Float>
inline int saturated(Float x) { return x != x ? 0 : x <= -0x1p31 ? -0x7fffffff - 1 : x >= 0x1p31 ? 0x7fffffff : int(x); }
inline int __float2int_rz(float x) { return saturated(x); }
inline int __double2int_rz(double x) { return x != x ? -0x7fffffff - 1 : saturated(x); }
inline float rsqrtf(float x) { return float(1.0 / std::sqrt(double(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
";

/// Reads the rows of all cases and writes their results; `planted` does what is undefined, first.
const MAIN: &str = r#"
int main(int count, char**) {
  volatile int most = 2147483647;
  if (count > 1) { most = most + 1; }
  static uint64_t in[ROWS * INPUTS], out[ROWS * OUTPUTS];
  for (auto call : all) {
    if (fread(in, sizeof(in), 1, stdin) != 1) { return 1; }
    for (int row = 0; row < ROWS; ++row) { call(in + row * INPUTS, out + row * OUTPUTS); }
    if (fwrite(out, sizeof(out), 1, stdout) != 1) { return 1; }
  }
}
"#;

/// Functions of one compute type, with the values of their scalars.
struct Group {
    compute: Compute,
    cases: Vec<Case>,
    scalars: [f64; 2],
}

static GROUPS: LazyLock<[Group; 3]> = LazyLock::new(|| {
    let floats = |compute, dtype| Group { compute, cases: float_cases(dtype), scalars: [0.75, -2.0] };
    let integers = Group { compute: Compute::I32, cases: integer_cases(), scalars: [3.0, -7.0] };
    [floats(Compute::F32, DType::F32), floats(Compute::F64, DType::F64), integers]
});

/// The program of all functions.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut text = format!(
        "{DEVICE}#include <cstdio>\n#include <cstring>\n#include <cute/tensor.hpp>\n\
         constexpr int ROWS = {ROWS}, INPUTS = {INPUTS}, OUTPUTS = {OUTPUTS};\n\
         template <class T> T element(uint64_t bits) {{ T x; memcpy(&x, &bits, sizeof(T)); return x; }}\n\
         template <class T> uint64_t bits(T x) {{ uint64_t bits = 0; memcpy(&bits, &x, sizeof(T)); return bits; }}\n"
    );
    let mut calls = String::new();
    for Group { compute, cases, scalars } in GROUPS.iter() {
        for (number, case) in cases.iter().enumerate() {
            let space = format!("{compute}_{number}");
            text += &case.text(&space, *compute, *scalars);
            write!(calls, " {space}::call,").expect("memory");
        }
    }
    for (number, condition) in EMPTIED.iter().enumerate() {
        let space = format!("emptied_{number}");
        text += &emptied_text(&space, condition);
        write!(calls, " {space}::call,").expect("memory");
    }
    write!(text, "void (*const all[])(uint64_t const*, uint64_t*) = {{{calls} }};\n{MAIN}").expect("memory");
    // The host has no such instruction.
    let text = text.replace(r#"asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));"#, "x = exp2f(x);");
    let tools = Finder::from_env().host_toolchain(&mut ()).expect("a C++ compiler, CUTLASS and the CUDA headers");
    let folders = [&tools.cutlass.include].into_iter().chain(&tools.cuda.include_dirs);
    let folders: Vec<String> = folders.map(|folder| format!("-isystem{}", folder.display())).collect();
    // Each product and sum is rounded by itself.
    let mut flags = vec!["-std=c++17", "-w", "-O1", "-g1", "-ffp-contract=off"];
    // Every report is wanted, not the first alone. Nothing here has a `this` that could be null.
    flags.extend(["-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=null,object-size,vptr"]);
    if tools.cxx.family == Family::Gnu {
        flags.extend(["--param", "ggc-min-heapsize=1048576"]);
    }
    flags.extend(folders.iter().map(String::as_str));
    flags.extend(["-o", "functions", "functions.cpp"]);
    let files = [SourceFile { name: "functions.cpp".into(), text }];
    made::by_host(&tools, &flags, &files, "functions").unwrap_or_else(|e| panic!("{e}"))
});

/// What the program writes for these rows, and what UBSan says of the functions.
fn run(rows: &[u64], words: &[&str]) -> (Vec<u64>, Vec<String>) {
    let mut command = Command::new(&*PROGRAM);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("it starts");
    let mut stdin = process.stdin.take().expect("a pipe");
    let bytes: Vec<u8> = rows.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).expect("it reads all"));
    let output = process.wait_with_output().expect("it ends");
    writer.join().expect("it reads all");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    // CUTLASS 4.2 itself makes the mask `(1 << 31) - 1` of an int when it narrows a number of one exponent, 31 below the
    // smallest normal one. The result is right nevertheless.
    let of_cutlass = |line: &str| ["/half.h:", "/float8.h:"].iter().any(|header| line.contains(header));
    let reports = said.lines().filter(|line| line.contains("runtime error") && !of_cutlass(line));
    let words = output.stdout.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    (words.collect(), reports.map(str::to_owned).collect())
}

/// The inputs of a group, and what the program makes of them.
struct Ran {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
}

/// What UBSan said, and of each group what went in and came out.
static RAN: LazyLock<(Vec<String>, Vec<Ran>)> = LazyLock::new(|| {
    let of_groups = GROUPS.iter().map(|group| inputs(&group.cases));
    let inputs: Vec<Vec<u64>> = of_groups.chain([ranges()]).collect();
    let (outputs, reports) = run(&inputs.concat(), &[]);
    let mut left = outputs.as_slice();
    let ran = inputs.into_iter().map(|inputs| {
        let own = left.split_off(..inputs.len() / INPUTS * OUTPUTS).expect("as many rows as went in");
        Ran { inputs, outputs: own.to_vec() }
    });
    (reports, ran.collect())
});

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

/// Ranges of a few numbers, and of many; of small numbers, and of large ones.
fn ranges() -> Vec<u64> {
    let mut state = 0x5eed_u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as u32
    };
    let mut range = || {
        let kind = random() % 8;
        let first = match kind {
            0 => f32::from_bits((random() << 8) & 0xff7f_ffff),
            _ => (random() % 60) as f32 - 20.0,
        };
        let size = if kind == 1 { 3e38 } else { [0.0, 0.0, 7.0, 31.0][random() as usize % 4] };
        let ends =
            [first, (first + size).min(f32::MAX)].map(|end| u64::from(if end.is_nan() { 0 } else { end.to_bits() }));
        ends[0] | (ends[1] << 32)
    };
    (0..EMPTIED.len() * ROWS * INPUTS).map(|_| range()).collect()
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

/// Every result of a group is one that the evaluator accepts, and the only one that it knows.
fn check(group: usize) {
    let (Group { compute, cases, scalars }, Ran { inputs, outputs }) = (&GROUPS[group], &RAN.1[group]);
    let (mut right, mut exact) = (0, 0);
    let rows = inputs.chunks(ROWS * INPUTS).zip(outputs.chunks(ROWS * OUTPUTS));
    for (case, (inputs, outputs)) in cases.iter().zip(rows) {
        let mut evaluator = case.function.check(*compute).expect("checked").evaluator(scalars).expect("two scalars");
        let count = compare(case, &mut evaluator, inputs, outputs);
        assert_eq!(count.wrong, 0, "{compute}: {} right, first: {}", count.right, count.first);
        right += count.right;
        exact += count.exact;
    }
    eprintln!("{compute}: {} functions, {right} results, {exact} of them determined", cases.len());
    assert!(2 * exact > right, "most results are determined");
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

fn integer_cases() -> Vec<Case> {
    let mut runner = TestRunner::new(config());
    let random = (0..40).map(|_| support::integers().new_tree(&mut runner).expect("a sample").current().trace(true));
    let picked = PICKED_INTEGERS.iter().map(|text| parsed(text));
    picked.chain(random).enumerate().map(|(number, function)| Case::new(function, number, DType::I32)).collect()
}

/// The same results are refused for functions that differ in a detail.
fn differ(group: usize) {
    let (Group { compute, cases, scalars }, Ran { inputs, outputs }) = (&GROUPS[group], &RAN.1[group]);
    let first = cases.len() - DIFFERENT.len();
    for (number, (text, other)) in (first..).zip(DIFFERENT) {
        let other = parsed(other).check(*compute).expect("checked");
        let mut evaluator = other.evaluator(scalars).expect("two scalars");
        let (at, to) = (number * ROWS, (number + 1) * ROWS);
        let (inputs, outputs) = (&inputs[at * INPUTS..to * INPUTS], &outputs[at * OUTPUTS..to * OUTPUTS]);
        let count = compare(&cases[number], &mut evaluator, inputs, outputs);
        assert!(count.wrong > 0, "{compute}: nothing tells {text} from {}", other.function());
    }
}

#[test]
fn f32_is_what_the_evaluator_says() {
    check(0);
    differ(0);
}

#[test]
fn f64_is_what_the_evaluator_says() {
    check(1);
    differ(1);
}

#[test]
fn i32_is_what_the_evaluator_says() {
    check(2);
}

/// The C++ says no more than what is known on the host, and where numbers are small it says as much.
#[test]
fn conditions_on_ranges_hold_where_the_host_says_so() {
    let Ran { inputs, outputs } = &RAN.1[GROUPS.len()];
    let rows = inputs.chunks(ROWS * INPUTS).zip(outputs.chunks(ROWS * OUTPUTS));
    for (condition, (inputs, outputs)) in EMPTIED.iter().zip(rows) {
        let (emptied, mut holding) = (emptied(condition), 0);
        for (row, found) in inputs.chunks(INPUTS).zip(outputs.chunks(OUTPUTS)) {
            let ends = |word: &u64| [*word as u32, (word >> 32) as u32].map(|bits| f64::from(f32::from_bits(bits)));
            let ends: Vec<[f64; 2]> = row.iter().map(ends).collect();
            let bounds: Vec<Bounds> = ends.iter().map(|[low, high]| Bounds::between(*low, *high)).collect();
            let (holds, found) = (emptied.holds(&bounds, &OF_EMPTIED).expect("three inputs"), found[0] == 1);
            // Nothing is known of what overflows, or is divided by 0.
            let divides = condition.contains("/ c") || condition.contains("/ (b");
            let small = !divides && ends[1..].iter().flatten().all(|end| end.abs() < 100.0);
            assert!(holds == found || (holds && !small), "{condition}: {ends:?}: {holds}, but {found} in C++");
            holding += usize::from(found);
        }
        assert!(holding > 0 && holding < ROWS, "{condition}: {holding} of {ROWS}");
    }
}

#[test]
fn nothing_that_a_function_does_is_undefined() {
    assert_eq!(RAN.0, [""; 0]);
    // Undefined behaviour that is planted is told.
    let rows: Vec<u64> = RAN.1.iter().flat_map(|ran| ran.inputs.iter().copied()).collect();
    let (_, reports) = run(&rows, &["planted"]);
    assert!(reports.len() == 1 && reports[0].contains("signed integer overflow"), "{reports:?}");
}

#[test]
fn every_function_of_an_expression_is_among_them() {
    for signature in functions() {
        let call = &signature[..=signature.find('(').expect("a call")];
        assert!(PICKED.iter().any(|text| text.contains(call)), "{signature}");
    }
}
