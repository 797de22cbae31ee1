//! Laws of row programs: text and closure are one, and what any device may compute, in any order, is accepted.

mod pairs;

use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::expr::round::{bits, round_to};
use cutemplate::expr::rows::{Level, Passes, Reading};
use cutemplate::expr::{Accept, Compute, Function};
use cutemplate::plan::{Case, Plan, Reference};
use cutemplate::recipe::{Recipe, Sum};
use cutemplate::reference::RowProgram;
use cutemplate::tensor::Tensor;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::expr::config;
use crate::expr::device::Device;
use crate::row_programs::{Defect, Order, Program, direct, program};

const ROWS: usize = 2;

/// The elements of an input, `ROWS` rows of them, and how many there are in a row.
fn per_row(level: Level, n: usize) -> usize {
    match level {
        Level::Element => n,
        Level::Group(size) => n.div_ceil(size as usize),
        Level::Row | Level::Scalar | Level::Column => 1,
    }
}

/// A problem: the numbers of the inputs.
#[derive(Clone, Debug)]
struct Problem {
    n: usize,
    numbers: Vec<f32>,
    scalars: [f64; 2],
}

impl Problem {
    /// The rows of each input.
    fn rows(&self, program: &Program) -> [Vec<Vec<f64>>; 3] {
        let mut next = self.numbers.iter().cycle().copied();
        program.inputs.map(|level| {
            let mut rows: Vec<Vec<f64>> = Vec::new();
            for row in 0..ROWS {
                let same = row > 0 && level == Level::Scalar;
                let mut new = || next.by_ref().take(per_row(level, self.n)).map(f64::from).collect();
                rows.push(if same { rows[0].clone() } else { new() });
            }
            rows
        })
    }

    fn tensors(&self, program: &Program) -> Vec<Tensor> {
        let rows = self.rows(program);
        let tensor = |(rows, level): (&Vec<Vec<f64>>, Level)| {
            let count = per_row(level, self.n) as i64;
            let (shape, rows) = match level {
                Level::Row => (vec![ROWS as i64], &rows[..]),
                Level::Scalar => (vec![1], &rows[..1]),
                _ => (vec![ROWS as i64, count], &rows[..]),
            };
            let all: Vec<f32> = rows.iter().flatten().map(|x| *x as f32).collect();
            Tensor::of(&all, &shape).expect("the shape of as many")
        };
        rows.iter().zip(program.inputs).map(tensor).collect()
    }
}

/// How costly results and pairs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Kept,
    Again,
    /// Kept, and pairs share a traversal.
    Online,
}

/// The accepted values of a reference, for each output row after row.
fn accepted_by(reference: &RowProgram, tensors: &[Tensor], scalars: &[f64]) -> Vec<Vec<Accept>> {
    let plan: Plan = Sum::default().plan(&Targets::default()).expect("a plan, for its operands' names");
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    let case = Case { abi: plan.abi(), inputs: &inputs, scalars, written: &[], baseline: None };
    let groups = reference.accepted(&case).unwrap_or_else(|error| panic!("{reference:?}: {error}"));
    let mut outputs = Vec::new();
    for group in &groups {
        let shape = group.shape().expect("the elements say it");
        let total: i64 = shape.iter().product();
        let mut cursor = group.starting_at(0);
        let mut found = vec![Vec::new(); group.outputs()];
        for _ in 0..total {
            let all = cursor.accepted().expect("all inputs are there");
            found.iter_mut().zip(all).for_each(|(output, accept)| output.push(accept));
        }
        outputs.extend(found);
    }
    outputs
}

/// The accepted values of a program, for each output row after row.
fn accepted(function: &Function, program: &Program, problem: &Problem, compute: Compute, how: How) -> Vec<Vec<Accept>> {
    let written = |(number, id): (usize, &usize)| match program.of_columns(number) {
        Some(_) => Some(Level::Column),
        None => Some(program.levels[*id]).filter(|level| *level > Level::Scalar),
    };
    let outputs = program.outputs.iter().enumerate().map(written).collect();
    let reading = Reading { inputs: program.inputs.to_vec(), outputs, compute, keep: how != How::Again };
    let passes = if how == How::Online { Passes::online(function, &reading) } else { Passes::of(function, &reading) };
    let passes = passes.unwrap_or_else(|errors| panic!("{function}: {errors:?}"));
    accepted_by(&RowProgram::new(passes), &problem.tensors(program), &problem.scalars)
}

/// The results of a device: each output row after row, broadcast where it is the same in the launch.
fn computed(program: &Program, problem: &Problem, seed: u64, f32s: bool, defect: Option<Defect>) -> Vec<Vec<f64>> {
    let rows = problem.rows(program);
    let mut outputs = vec![Vec::new(); program.outputs.len()];
    for row in 0..ROWS {
        let inputs: Vec<Vec<f64>> = rows.iter().map(|rows| rows[row].clone()).collect();
        let (n, scalars, mut order) = (problem.n, &problem.scalars, Order(seed, defect));
        let results = match f32s {
            true => direct(program, &mut Device::<f32>::new(seed), n, &inputs, scalars, &mut order),
            false => direct(program, &mut Device::<f64>::new(seed), n, &inputs, scalars, &mut order),
        };
        for ((output, result), id) in outputs.iter_mut().zip(results).zip(&program.outputs) {
            match program.levels[*id] {
                Level::Scalar => output.extend(core::iter::repeat_n(result[0], n)),
                _ => output.extend(result),
            }
        }
    }
    for (number, output) in outputs.iter_mut().enumerate() {
        if let Some(name) = program.of_columns(number) {
            *output = (0..problem.n).map(|column| of_column(name, output, (column, problem.n), f32s)).collect();
        }
    }
    outputs
}

/// The rows of a column, the last first: joined as a device joins them.
fn of_column(name: &str, elements: &[f64], (column, n): (usize, usize), f32s: bool) -> f64 {
    let rows = elements.iter().skip(column).step_by(n).rev().copied();
    match name {
        "sum" if f32s => rows.fold(0.0_f32, |sum, x| sum + x as f32).into(),
        "sum" => rows.fold(0.0, |sum, x| sum + x),
        _ if rows.clone().any(f64::is_nan) => f64::NAN,
        "max" => rows.fold(f64::NEG_INFINITY, f64::max),
        _ => rows.fold(f64::INFINITY, f64::min),
    }
}

fn check(program: &Program, problem: &Problem, seed: u64) {
    let text = program.text();
    let function: Function = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(function, program.trace(), "{text}");
    assert_eq!(function.to_string().parse(), Ok(function.clone()), "{text}");
    for compute in [Compute::F32, Compute::F64] {
        let found = computed(program, problem, seed, compute == Compute::F32, None);
        for how in [How::Kept, How::Again, How::Online] {
            let accepted = accepted(&function, program, problem, compute, how);
            for (accepted, found) in accepted.iter().zip(&found) {
                assert_eq!(accepted.len(), found.len(), "{text}");
                for (at, (accept, x)) in accepted.iter().zip(found).enumerate() {
                    for dtype in [DType::F64, DType::F16, DType::E4m3, DType::I8] {
                        let element = bits(dtype, round_to(dtype, *x));
                        let what = || format!("{text} in {compute}, {how:?}: {x:?} at {at}, {accept:?}, {problem:?}");
                        assert!(accept.accepts(dtype, element), "{dtype}: {}", what());
                        if let Some(exact) = accept.exact(dtype) {
                            assert_eq!(exact, element, "{dtype}: {}", what());
                        }
                    }
                }
            }
        }
    }
}

/// Numbers of every size, and the special ones.
fn number() -> impl Strategy<Value = f32> {
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        -1e-40,
        3.4e38,
        65519.0,
        88.8,
        -104.0,
    ]);
    prop_oneof![6 => -10.0f32..10.0, 1 => any::<f32>(), 1 => special, 2 => (-4i8..4).prop_map(f32::from)]
}

fn problems() -> impl Strategy<Value = Problem> {
    let width = prop_oneof![1 => Just(0usize), 3 => 1usize..10, 2 => 10usize..70, 1 => 126usize..131];
    let tame = prop_oneof![vec(-10.0f32..10.0, 1..40), vec((-4i8..4).prop_map(f32::from), 1..40)];
    let numbers = prop_oneof![1 => vec(number(), 1..40), 1 => tame];
    let scalars = prop::array::uniform2(number().prop_map(f64::from));
    (width, numbers, scalars).prop_map(|(n, numbers, scalars)| Problem { n, numbers, scalars })
}

/// As the laws of scalar functions, an eighth of the cases: each is many elements.
fn some() -> ProptestConfig {
    let config = config();
    ProptestConfig { cases: config.cases / 8, max_shrink_iters: 4096, ..config }
}

proptest! {
    #![proptest_config(some())]

    #[test]
    fn what_a_device_computes_in_any_order_is_accepted(
        words in vec(any::<u64>(), 2..14),
        exact in any::<bool>(),
        problem in problems(),
        columns in prop::sample::select(vec![None, Some("sum"), Some("max"), Some("min")]),
        seed in any::<u64>(),
    ) {
        check(&Program { columns, ..program(&words, exact) }, &problem, seed);
    }
}

/// Words and numbers of one case after the other.
struct Drawn(u64);

impl Drawn {
    fn word(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn case(&mut self, exact: bool) -> (Program, Problem) {
        let words: Vec<u64> = (0..2 + self.word() % 10).map(|_| self.word()).collect();
        let small = |word: u64| (word % 9) as f32 - 4.0;
        let n = 1 + self.word() as usize % 40;
        let numbers = (0..37).map(|_| small(self.word())).collect();
        (program(&words, exact), Problem { n, numbers, scalars: [2.0, -1.0] })
    }
}

/// The bounds say something: where arithmetic has one result, they have one value, and else they are narrow.
#[test]
fn what_is_accepted_is_narrow() {
    let (mut drawn, mut all, mut points, mut narrow) = (Drawn(1), 0, 0, 0);
    for round in 0..400 {
        let (program, problem) = drawn.case(round % 2 == 0);
        let function = program.trace();
        for accept in accepted(&function, &program, &problem, Compute::F32, How::Kept).concat() {
            let Some((low, high)) = accept.range() else { continue };
            all += 1;
            points += u32::from(low == high);
            narrow += u32::from(high - low <= 1e-4 * low.abs().max(high.abs()));
        }
    }
    assert!(points * 10 >= all * 6 && narrow * 10 >= all * 8, "{points} and {narrow} of {all}");
}

#[test]
fn reductions_with_a_defect_are_refused() {
    for defect in [Defect::LastTerm, Defect::FirstTwice, Defect::LastOfEqual, Defect::NanDropped, Defect::GroupsMoved] {
        let (mut drawn, mut refused) = (Drawn(2), 0);
        for _ in 0..200 {
            let (program, mut problem) = drawn.case(false);
            if defect == Defect::NanDropped {
                problem.numbers[3] = f32::NAN;
            }
            let accepted = accepted(&program.trace(), &program, &problem, Compute::F32, How::Kept);
            let found = computed(&program, &problem, 3, true, Some(defect));
            let wrong = |(accept, x): (&Accept, &f64)| !accept.accepts(DType::F64, bits(DType::F64, *x));
            refused += u32::from(accepted.iter().flatten().zip(found.iter().flatten()).any(wrong));
        }
        assert!(refused >= 5, "{defect:?}: {refused}");
    }
}

/// The accepted sums of columns of so many rows, each element its row's number times its column's.
fn sums_of_columns(function: &str, rows: i64, chains: u64) -> Vec<Vec<Accept>> {
    const N: i64 = 3;
    let all: Vec<f32> = (0..rows).flat_map(|m| (0..N).map(move |n| (m * n) as f32)).collect();
    let function: Function = function.parse().expect("a program");
    let passes = Passes::of(&function, &Reading::of(&function)).expect("results of columns");
    let x = Tensor::of(&all, &[rows, N]).expect("the shape of as many");
    accepted_by(&RowProgram::new(passes).columns_added_in(chains, 0), &[x], &[])
}

/// All rows count, each once; the more chains share the rows, the narrower the bounds.
#[test]
fn results_of_columns_have_every_row() {
    let all = sums_of_columns("|x| (sum_column(x), max_column(x), x, min_column(x - 1))", 500, 1);
    let sums: Vec<_> = all[0].iter().map(Accept::range).collect();
    assert_eq!(sums, [0.0, 124_750.0, 249_500.0].map(|sum| Some((sum, sum))));
    let ends: Vec<_> = [&all[1][2], &all[3][2]].into_iter().map(Accept::range).collect();
    assert_eq!((ends, all[2].len()), (vec![Some((998.0, 998.0)), Some((-1.0, -1.0))], 1500));
    let widths = [1, 20].map(|chains| {
        let (low, high) = sums_of_columns("|x| sum_column(x * 0.1)", 500, chains)[0][1].range().expect("numbers");
        assert!(low < 12_475.0 && high > 12_475.0, "{low} to {high}");
        high - low
    });
    assert!(widths[1] < widths[0] / 10.0 && widths[0] < 1.0, "{widths:?}");
    let nothing = sums_of_columns("|x| (sum_column(x), max_column(x))", 0, 1);
    assert_eq!(nothing[0][0].range(), Some((0.0, 0.0)));
    assert_eq!(nothing[1][2].range(), Some((f64::NEG_INFINITY, f64::NEG_INFINITY)));
}

/// What cannot be a result of columns is refused, and says what can.
#[test]
fn what_reads_a_column_is_refused() {
    let refused = |text: &str| {
        let function: Function = text.parse().expect("it is read by name");
        let errors = Passes::of(&function, &Reading::of(&function)).expect_err("refused");
        errors.into_iter().map(|error| error.found).collect::<Vec<_>>()
    };
    assert_eq!(refused("|x| x - sum_column(x)"), ["a function of a column's result"]);
    for (text, found) in [
        ("|x| argmax_column(x)", "`argmax_column`"),
        ("|x| select(any_column(x > 1), 1, 0)", "`any_column`"),
        ("|x| sum_column(sum(x))", "`sum_column` of what is one value in a row"),
        ("|x| max(sum_column(x))", "a function of a column's result"),
    ] {
        assert_eq!(text.parse::<Function>().expect_err("refused").found, found, "{text}");
    }
    let function: Function = "|x, w| sum_column(x * w)".parse().expect("a program");
    let of_column = Reading { inputs: vec![Level::Element, Level::Column], ..Reading::of(&function) };
    assert_eq!(Passes::of(&function, &of_column).expect_err("refused")[0].found, "an input for a column");
    for level in [Level::Row, Level::Element] {
        let elsewhere = Reading { outputs: vec![Some(level)], ..Reading::of(&function) };
        assert!(Passes::of(&function, &elsewhere).is_err(), "{level}");
    }
}

/// Pieces of texts, right and wrong.
const PIECES: [&str; 28] = [
    "(",
    ")",
    "{",
    "}",
    ",",
    ";",
    "|",
    "let ",
    "=",
    "sum(",
    "max(",
    "mean_group8(",
    "max_group99999999999(",
    "any(",
    "col()",
    "width()",
    "width_group3()",
    "x",
    "alpha",
    "p9",
    "p9 = ",
    "-",
    "!",
    " && ",
    " < ",
    "1e400",
    "\u{e9}",
    "_group",
];

proptest! {
    #![proptest_config(some())]

    /// A text that is cut, and has pieces where none belong, is read or refused at a place within it.
    #[test]
    fn no_text_panics(
        words in vec(any::<u64>(), 2..10),
        changes in vec((any::<prop::sample::Index>(), 0usize..6, prop::sample::select(&PIECES[..])), 1..4),
    ) {
        let mut text = program(&words, false).text();
        for (at, cut, piece) in changes {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let mut end = (at + cut).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(at..end, piece);
        }
        match text.parse::<Function>() {
            Ok(function) => {
                assert_eq!(function.to_string().parse(), Ok(function.clone()), "{text}");
                if let Err(errors) = Passes::of(&function, &Reading::of(&function)) {
                    assert!(errors.iter().all(|error| !error.found.is_empty() && !error.required.is_empty()), "{text}: {errors:?}");
                }
            }
            Err(error) => {
                let at = error.position.unwrap_or(0);
                assert!(text.is_char_boundary(at) && !error.found.is_empty() && !error.required.is_empty(), "{text}: {error}");
            }
        }
    }
}
