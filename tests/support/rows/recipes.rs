//! Random row programs as recipes: operations, reductions, types, strides, widths and schedules.

use cutemplate::dtype::DType;
use cutemplate::plan::ModeStride;
use cutemplate::recipe::rows::Hold;
use cutemplate::recipe::{Rows, TensorSpec};

use crate::kernels::{Kernel, Problem, Random};
use crate::row_programs::program;

const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::E4m3,
    DType::E5m2,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::I32,
    DType::Bool,
    DType::F64,
];
/// Around vectors, warps, threads and tiles.
const COLUMNS: &[u32] =
    &[1, 2, 7, 8, 31, 33, 64, 127, 128, 129, 255, 257, 512, 1000, 1023, 1024, 1025, 2048, 2049, 4100];

/// Strides of two modes that a matrix may have; only an input repeats elements.
fn strides(random: &mut Random, output: bool) -> Vec<ModeStride> {
    use ModeStride::{Broadcast, Dynamic, Unit};
    let own = [[Dynamic, Unit], [Dynamic, Unit], [Dynamic, Unit], [Dynamic, Dynamic], [Unit, Dynamic]];
    let repeated = [[Broadcast, Unit], [Broadcast, Dynamic], [Dynamic, Broadcast], [Broadcast, Broadcast]];
    if output || random.chance(70) { random.pick(&own).to_vec() } else { random.pick(&repeated).to_vec() }
}

/// A recipe with everything that can be typed, but for clusters. `auto`: no schedule is set, so that none can be refused.
pub(crate) fn drawn(index: u64, auto: bool) -> Rows {
    let mut random = Random::new(54, index);
    // Which inputs have one value for a row.
    let [y, z] = [(); 2].map(|()| if random.chance(25) { 0_u8 } else { 3 });
    let kind = u64::from_le_bytes([y, z, random.below(3) as u8, random.below(256) as u8, 0, 0, 0, 0]);
    let steps = 2 + random.below(9);
    let words: Vec<u64> = std::iter::once(kind).chain((0..steps).map(|_| random.word())).collect();
    let function = program(&words, random.chance(40)).trace();
    let wide = random.chance(10);
    let dtype = |random: &mut Random| random.pick(if wide { DTYPES } else { &DTYPES[..DTYPES.len() - 1] });
    let input = |(number, byte): (usize, u8), random: &mut Random| TensorSpec {
        dtype: dtype(random),
        strides: match byte {
            0 => vec![random.pick(&[ModeStride::Unit, ModeStride::Dynamic])],
            // The first is a matrix, from which problems are drawn.
            _ => strides(random, number == 0),
        },
    };
    let inputs = [3, y, z].into_iter().enumerate().map(|of| input(of, &mut random)).collect();
    let mut rows = Rows::new(function, DType::F32).with_inputs(inputs);
    for output in &mut rows.outputs {
        output.dtype = dtype(&mut random);
        output.strides = match output.strides.len() {
            1 if random.chance(70) => vec![random.pick(&[ModeStride::Unit, ModeStride::Dynamic])],
            _ => strides(&mut random, true),
        };
    }
    rows.columns = random.pick(COLUMNS);
    if !auto && random.chance(50) {
        rows.threads = random.chance(50).then(|| 1 << random.below(11));
        rows.chunks = random.chance(30).then(|| 1 + random.below(6) as u32);
        rows.hold = random.chance(60).then(|| random.pick(Hold::ALL));
        rows.block = random.chance(30).then(|| 32 << random.below(5));
    }
    // The first input is a matrix, whose rows an index may name.
    let first = rows.function.input_names().next().map(str::to_owned);
    rows.gather = first.filter(|_| random.chance(15));
    rows
}

/// Problems whose rows are not wider than what the kernel holds, and those of its full width among them.
pub(crate) fn problems(kernel: &Kernel, count: u64, elements: i64) -> Vec<Problem> {
    let settings = kernel.plan.settings();
    let columns: i64 = settings.get("columns").and_then(|c| c.parse().ok()).unwrap_or(i64::MAX);
    let fits = |problem: &Problem| problem.layouts[0].layout.shape()[1] <= columns;
    kernel.problems(60 * count, elements).filter(fits).take(count as usize).collect()
}
