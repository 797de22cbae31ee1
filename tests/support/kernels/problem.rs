//! One launch: where every tensor lies, what it holds, and whether the outputs are right.

use std::fmt;

use cutemplate::dtype::DType;
#[cfg(feature = "ptx")]
use cutemplate::exec::{self, Buffer, Job, Program, Report};
use cutemplate::expr::round;
use cutemplate::plan::{ModeStride, Operand, Plan};
use cutemplate::recipe::{Append, Attention, Gemm, Recipe, Sgemm, TopK, W4a16};
use cutemplate::units::Elements;
use cutemplate::verify::{self, Fill, Tensor, TensorLayout};
use cutemplate::view::{Access, ViewLayout, ViewRef};

use super::{Random, append, attention, sgemm, w4a16};

/// Extents around the borders of vectors, warps and tiles.
const EXTENTS: &[i64] = &[
    1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 37, 61, 63, 64, 65, 67, 127, 128, 129, 255, 256, 257, 511,
    512, 513, 1000, 1023, 1024, 1025, 2049,
];
pub(super) const SCALARS: &[f64] = &[0.5, 0.0, -2.0, 3.0, 7.0, -1.0, 0.1, 100.0];

/// Shapes, strides, offsets, scalars and fill of one launch.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Of inputs, then of outputs.
    pub(crate) layouts: Vec<TensorLayout>,
    /// The output in whose place each input lies.
    pub(crate) in_place: Vec<Option<usize>>,
    pub(crate) scalars: Vec<f64>,
    /// What each input is filled with.
    pub(crate) fills: Vec<Fill>,
    /// Single elements of inputs: which input, where, and what, as a 16-bit type rounds it.
    pub(crate) planted: Vec<(usize, Vec<u64>, f32)>,
    pub(crate) seed: u64,
}

/// How the tensors of a problem lie.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// Without gaps, at aligned addresses.
    Dense,
    /// Each with its own order of modes, gaps and offset.
    Own,
    /// All with the same, so that they are misaligned together.
    Together,
    /// Gaps and offsets that keep vectors aligned.
    Aligned,
}

impl Problem {
    pub(crate) fn drawn(plan: &Plan, random: &mut Random, elements: i64) -> Problem {
        match plan.family() {
            Gemm::FAMILY | Sgemm::FAMILY => sgemm::problem(plan, random, elements),
            Attention::FAMILY => attention::problem(plan, random, elements),
            Append::FAMILY => append::problem(plan, random),
            W4a16::FAMILY => w4a16::problem(plan, random, elements),
            _ => Problem::of_tensors(plan, random, elements),
        }
    }

    fn of_tensors(plan: &Plan, random: &mut Random, elements: i64) -> Problem {
        let operands = plan.operands();
        let mut shape = shape(random, operands[0].strides.len(), elements);
        if plan.family() == TopK::FAMILY {
            // A row has at least as many columns as results.
            let results = plan.shapes(&shape).expect("as many extents as the inputs have modes")[1][1];
            // Of some rows a few warps have as many as they can.
            let full = 128 * (1 + random.below(10) as i64);
            shape[1] = if random.chance(40) { full } else { shape[1] }.max(results);
        }
        if plan.problem_shape().is_some_and(|all| all.extents().len() > shape.len()) {
            // Rows that an index names, of which there is one at least.
            shape.push(random.pick(&[1, 2, 7, 40]));
        }
        let shapes = plan.shapes(&shape).expect("as many extents as the inputs have modes");
        let (layouts, in_place) = Problem::placed(operands, random, &shapes);
        // Half of the problems hold small integers, which tell elements apart and are exact everywhere.
        let fill = random.pick(&[Fill::Integers, Fill::Integers, Fill::Normal, Fill::Specials]);
        let scalars = plan.scalars().iter().map(|_| random.pick(SCALARS)).collect();
        let (fills, planted) = (vec![fill; in_place.len()], Vec::new());
        Problem { layouts, in_place, scalars, fills, planted, seed: random.word() >> 32 }
    }

    /// Where operands of these shapes lie, and which inputs lie in place of an output.
    pub(super) fn placed(
        operands: &[Operand],
        random: &mut Random,
        shapes: &[Vec<i64>],
    ) -> (Vec<TensorLayout>, Vec<Option<usize>>) {
        let style =
            random.pick(&[Style::Dense, Style::Own, Style::Own, Style::Together, Style::Together, Style::Aligned]);
        let common = random.clone();
        let mut layouts: Vec<TensorLayout> = Vec::new();
        for (operand, shape) in operands.iter().zip(shapes) {
            let mut again = common.clone();
            let random = if matches!(style, Style::Together) { &mut again } else { &mut *random };
            layouts.push(layout(random, operand, shape, style));
        }
        let inputs = operands.iter().filter(|o| o.access == Access::Read).count();
        let (read, written) = operands.split_at(inputs);
        let mut in_place = vec![None; inputs];
        for (o, output) in written.iter().enumerate() {
            let same = |i: &Operand| i.in_place && i.dtype == output.dtype && i.strides == output.strides;
            let has_place = |i: &usize| same(&read[*i]) && shapes[*i] == shapes[inputs + o] && in_place[*i].is_none();
            let places: Vec<usize> = (0..inputs).filter(has_place).collect();
            if !places.is_empty() && random.chance(30) {
                let place = random.pick(&places);
                in_place[place] = Some(o);
                // The output's: an input may be broadcast where an output may not.
                layouts[place] = layouts[inputs + o];
            }
        }
        (layouts, in_place)
    }

    pub(crate) fn size(&self) -> u64 {
        self.layouts.last().and_then(|l| l.layout.size()).unwrap_or(0)
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place.iter().any(Option::is_some)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layouts: Vec<String> = self.layouts.iter().map(ToString::to_string).collect();
        write!(f, "{}, in place {:?}, ", layouts.join(", "), self.in_place)?;
        let fills: Vec<&str> = self.fills.iter().map(|fill| fill.name()).collect();
        write!(f, "scalars {:?}, {} from seed {}", self.scalars, fills.join(", "), self.seed)?;
        if self.planted.is_empty() { Ok(()) } else { write!(f, ", planted {:?}", self.planted) }
    }
}

fn shape(random: &mut Random, rank: usize, elements: i64) -> Vec<i64> {
    let mut shape: Vec<i64> = (0..rank).map(|_| random.pick(EXTENTS)).collect();
    while shape.iter().product::<i64>() > elements {
        let largest = shape.iter().copied().max().unwrap_or(1);
        let cut: Vec<usize> = (0..rank).filter(|i| 3 * shape[*i] >= largest).collect();
        let at = random.pick(&cut);
        shape[at] = (shape[at] / 3).max(1) + random.below(2) as i64;
    }
    shape
}

/// A layout of the operand's strides: nested, with gaps, the modes of any stride in any order.
fn layout(random: &mut Random, operand: &Operand, shape: &[i64], style: Style) -> TensorLayout {
    let of = |want: ModeStride| (0..shape.len()).rev().filter(move |i| operand.strides[*i] == want);
    let mut order: Vec<usize> = of(ModeStride::Dynamic).collect();
    let natural = matches!(style, Style::Dense | Style::Aligned) || random.chance(50);
    if !natural {
        random.shuffle(&mut order);
    }
    let gap = |random: &mut Random, next: i64| match style {
        Style::Dense => next,
        Style::Own | Style::Together => next + random.pick(&[0, 0, 1, 3, 8]),
        Style::Aligned => (next + 15) / 16 * 16 + random.pick(&[0, 16]),
    };
    let mut stride = vec![0; shape.len()];
    let mut next = 1;
    for (place, mode) in of(ModeStride::Unit).chain(order).enumerate() {
        let read = operand.access == Access::Read;
        // What is given at launch may be 0 for an input, and anything where there is one coordinate.
        match operand.strides[mode] {
            ModeStride::Dynamic if read && random.chance(6) => continue,
            _ if shape[mode] == 1 && random.chance(30) => stride[mode] = random.pick(&[0, 1, 5]),
            _ => {
                let is_first = place == 0;
                stride[mode] =
                    if is_first && operand.strides[mode] == ModeStride::Unit { 1 } else { gap(random, next) };
                next = stride[mode] * shape[mode];
            }
        }
    }
    let offset = match style {
        Style::Dense => 0,
        Style::Own | Style::Together => random.pick(&[0, 1, 2, 3, 4, 5, 7, 8, 9]),
        Style::Aligned => random.pick(&[0, 16]),
    };
    let layout = ViewLayout::strided(shape, &stride).expect("rank 1 to 5");
    TensorLayout::from(layout).at_offset(Elements(offset))
}

/// Writes an element of a tensor.
fn plant(tensor: &mut Tensor, coordinate: &[u64], value: f32) {
    let layout = tensor.layout().layout;
    let offset: u64 = coordinate.iter().zip(layout.stride()).map(|(c, d)| c * *d as u64).sum();
    let (dtype, size) = (tensor.dtype(), tensor.dtype().bytes().0 as usize);
    let bytes = round::bits(dtype, value.into()).to_le_bytes();
    let at = tensor.start().0 as usize + size * offset as usize;
    tensor.storage_mut()[at..at + size].copy_from_slice(&bytes[..size]);
}

/// The memory of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Tensors {
    /// What the kernel reads, and what an input held that lies in place of an output.
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

impl Tensors {
    /// Inputs are filled; outputs hold what no right kernel writes, or the input that lies in their place.
    pub(crate) fn new(plan: &Plan, problem: &Problem) -> Tensors {
        let make = |(operand, layout): (&Operand, &TensorLayout)| Tensor::new(operand.dtype, *layout).expect("memory");
        let mut inputs: Vec<Tensor> = plan.operands().iter().zip(&problem.layouts).map(make).collect();
        let mut outputs = inputs.split_off(problem.in_place.len());
        let shapes: Vec<&[i64]> = problem.layouts.iter().map(|layout| layout.layout.shape()).collect();
        let known = plan.problem_shape().and_then(|shape| Some((shape, shape.problem_of(&shapes)?)));
        let numbers = |operand| known.as_ref().and_then(|(shape, extents)| shape.numbers(operand, extents));
        for (seed, (input, fill)) in (problem.seed..).zip(inputs.iter_mut().zip(&problem.fills)) {
            input.fill_of(numbers((seed - problem.seed) as usize), *fill, seed);
        }
        for (input, coordinate, value) in &problem.planted {
            plant(&mut inputs[*input], coordinate, *value);
        }
        let read: Vec<&Tensor> = inputs.iter().collect();
        verify::fill_unwritten(plan, &read, &problem.scalars, &mut outputs).expect("the plan's inputs");
        for (input, place) in inputs.iter().zip(&problem.in_place) {
            if let Some(output) = place {
                outputs[*output].copy_elements_from(input).expect("of the same layout");
            }
        }
        Tensors { inputs, outputs }
    }

    /// What the launch is bound to: inputs, then outputs.
    pub(crate) fn views(&self, problem: &Problem) -> Vec<ViewRef> {
        let input = |(tensor, place): (&Tensor, &Option<usize>)| match place {
            None => tensor.raw(Access::Read),
            Some(output) => self.outputs[*output].raw(Access::Read),
        };
        let inputs = self.inputs.iter().zip(&problem.in_place).map(input);
        inputs.chain(self.outputs.iter().map(|o| o.raw(Access::Write))).collect()
    }

    /// Runs a job, which was bound to these views, on an executor.
    #[cfg(feature = "ptx")]
    pub(crate) fn run(
        &mut self,
        program: &Program,
        job: &Job<'_>,
        problem: &Problem,
        views: &[ViewRef],
    ) -> Result<Report, exec::Error> {
        let count = self.inputs.len();
        let inputs = self.inputs.iter_mut().zip(&problem.in_place);
        let inputs = inputs.zip(views).map(|((tensor, place), view)| match place {
            Some(output) => Buffer::InPlace(count + output),
            None => buffer(tensor, view),
        });
        let outputs = self.outputs.iter_mut().zip(&views[count..]).map(|(tensor, view)| buffer(tensor, view));
        let mut buffers: Vec<Buffer<'_>> = inputs.chain(outputs).collect();
        program.run(job, &mut buffers)
    }

    /// What is wrong with the outputs, in words.
    /// Whether the outputs are the same bits.
    pub(crate) fn gives(&self, others: &Tensors) -> bool {
        self.outputs.iter().map(Tensor::storage).eq(others.outputs.iter().map(Tensor::storage))
    }

    pub(crate) fn wrong(&self, plan: &Plan, problem: &Problem) -> Option<String> {
        let (read, written): (Vec<&Tensor>, Vec<&Tensor>) =
            (self.inputs.iter().collect(), self.outputs.iter().collect());
        let verdicts = verify::check(plan, &read, &problem.scalars, &written).expect("the plan's inputs");
        let names = plan.operands().iter().skip(read.len()).map(|o| o.name);
        let wrong = names.zip(&verdicts).filter(|(_, v)| !v.is_right()).map(|(name, v)| format!("{name}: {v}"));
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| wrong.join("\n  "))
    }
}

/// The memory of a view within its tensor.
#[cfg(feature = "ptx")]
fn buffer<'a>(tensor: &'a mut Tensor, view: &ViewRef) -> Buffer<'a> {
    let start = tensor.start().0 as usize;
    let range = start..start + (view.available.0 * view.dtype.bytes().0) as usize;
    match view.access {
        Access::Read => Buffer::Read(&tensor.storage()[range]),
        Access::Write | Access::ReadWrite => Buffer::Write(&mut tensor.storage_mut()[range]),
    }
}
