//! Products of matrices: the epilogue's possible results for the bounds of every accumulator.

use core::ops::Range;

use smallvec::SmallVec;

use super::baseline::{Given, GivenSums};
use super::grouping::Grouping;
use super::indexed::{Scattered, named};
use super::quantised::Quantised;
use super::sums::{Computed, ComputedSums};
use crate::dtype::DType;
use crate::expr::{Accept, Bounds, Evaluator, ExprError, MAX_INPUTS, Outputs};
use crate::plan::{
    Accepted, Case, Cursor, Groups, Indexed, InputElement, Product, Reference, ReferenceError, SCALED_K, SCALES,
};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor, carried};

impl Reference for Product {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        let evaluator = self.epilogue().evaluator(case.scalars).map_err(|e| case.unfit(e.found))?;
        let Indexed { gather, scatter } = self.indices();
        let mut inputs = case.inputs;
        // What says which rows there are comes last.
        let [scatter, gather, ends] = [scatter, gather, self.groups().operand().is_some()].map(|is| {
            let (last, others) = inputs.split_last().filter(|_| is)?;
            inputs = others;
            Some(*last)
        });
        let rows = gather.or(scatter).map(Tensor::shape);
        let extents = product_extents(self, case.scalars, inputs, [rows, ends.map(Tensor::shape)]);
        let extents = extents.ok_or_else(|| case.unfit(format!("{:?}, which do not fit together", case.inputs)))?;
        if inputs.len() < case.inputs.len() || self.quantiser().is_some() {
            case.alone()?;
        }
        let sums = match case.baseline {
            Some(baseline) if extents[2] > 0 => Sums::Given(Given::new(baseline, case.inputs, extents, self)?),
            _ => {
                let scales = self.scales(inputs).zip(self.block_scales());
                let groups = Grouping::of(self.groups(), ends, [extents[0], extents[2]]);
                let sums = Computed::new(inputs[0], inputs[1], extents, self.arithmetic(), scales).grouped(groups);
                let sums = sums.given_together(self.sums());
                let rows_of_a = gather.map(|index| named(index, inputs[0].shape()[0]));
                Sums::Computed(Box::new(match rows_of_a {
                    Some(rows) => sums.gathered(&rows),
                    None => sums,
                }))
            }
        };
        let others = &inputs[2..inputs.len() - self.scale_tensors()];
        let matrices = Matrices::new(self, evaluator, (case, 2, others), sums, extents);
        if let Some(index) = scatter {
            return Ok(vec![Box::new(Scattered::new(matrices, index, case)?)]);
        }
        let Some(quantiser) = self.quantiser() else { return Ok(vec![Box::new(matrices)]) };
        let quantiser = quantiser.evaluator(&[]).map_err(|e| case.unfit(e.found))?;
        Ok(Quantised::both(matrices, &quantiser))
    }

    fn usual_scalar(&self, index: usize) -> Option<f64> {
        self.usual_scalar(index)
    }

    /// Two for each product that is added.
    fn flop(&self, extents: &[i64]) -> Option<f64> {
        // Each row, or each k, is of one group.
        let is_once = matches!(self.groups(), Groups::Rows | Groups::K);
        let extents = if is_once { extents.get(..3)? } else { extents };
        Some(2.0 * extents.iter().map(|extent| *extent as f64).product::<f64>())
    }

    fn product(&self) -> Option<&Product> {
        let is_plain = self.sums() == 1
            && self.groups() == Groups::None
            && self.indices() == Indexed::default()
            && self.quantiser().is_none();
        is_plain.then_some(self)
    }
}

impl Product {
    /// Its values where B is made of the operands between A and the others, so many.
    pub(crate) fn accepted_of<'a>(
        &'a self,
        case: &Case<'a, '_>,
        b: &Tensor,
        made_of: usize,
    ) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        case.alone()?;
        let unfit = || case.unfit(format!("{:?}, which do not fit together", case.inputs));
        let evaluator = self.epilogue().evaluator(case.scalars).map_err(|e| case.unfit(e.found))?;
        let (a, others) = case.inputs.split_first().ok_or_else(unfit)?;
        let others = others.get(made_of..).ok_or_else(unfit)?;
        let inputs: Vec<&Tensor> = [*a, b].into_iter().chain(others.iter().copied()).collect();
        let extents = product_extents(self, case.scalars, &inputs, [None, None]).ok_or_else(unfit)?;
        let sums = Sums::Computed(Box::new(Computed::new(a, b, extents, self.arithmetic(), None)));
        Ok(vec![Box::new(Matrices::new(self, evaluator, (case, 1 + made_of, others), sums, extents))])
    }

    /// How many scales are read: the last matrices.
    fn scale_tensors(&self) -> usize {
        self.block_scales().map_or(0, |_| SCALES.len())
    }

    /// The scales of blocks of A and of B, of the matrices that a launch reads.
    pub(super) fn scales<'a>(&self, inputs: &[&'a Tensor]) -> Option<[&'a Tensor; 2]> {
        self.block_scales().and_then(|_| inputs.last_chunk()).copied()
    }
}

/// Where the accumulators of one product are known from.
enum Sums<'a> {
    /// Summed up here.
    Computed(Box<Computed>),
    /// Another implementation's.
    Given(Given<'a>),
}

/// The bounds of one accumulator, or pair of them, after the other.
#[expect(clippy::large_enum_variant, reason = "there is one a thread, asked for every element")]
enum SumsFrom<'a> {
    Computed(ComputedSums<'a>),
    Given(GivenSums<'a>),
}

impl SumsFrom<'_> {
    /// Of the columns that an element of D is made of.
    fn next(&mut self) -> SmallVec<[Bounds; 2]> {
        match self {
            SumsFrom::Computed(sums) => SmallVec::from_slice(sums.next()),
            SumsFrom::Given(sums) => SmallVec::from_slice(&[sums.next()]),
        }
    }

    /// The matrix of B that the sum that was last given is of; `None` where its row is of no group, and never written.
    fn matrix(&self) -> Option<usize> {
        match self {
            SumsFrom::Computed(sums) => sums.matrix(),
            SumsFrom::Given(_) => Some(0),
        }
    }

    /// Whether a NaN of these bits could come from the factors of the sum that was last given.
    fn carry(&self, dtype: DType, bits: u64) -> bool {
        match self {
            SumsFrom::Computed(sums) => carried(dtype, bits, sums.factors().map(|x| u64::from(x.to_bits()))),
            // Its sums are finite, and so are its factors.
            SumsFrom::Given(_) => false,
        }
    }
}

/// `[M, N, K, L]` of the product, where K is 0 if these scalars spare the factors; `None` where the shapes do not belong together.
fn product_extents(
    product: &Product,
    scalars: &[f64],
    inputs: &[&Tensor],
    [rows, ends]: [Option<&[i64]>; 2],
) -> Option<[i64; 4]> {
    let (factors, rest) = inputs.split_at_checked(2)?;
    let [a, b] = [factors[0].shape(), factors[1].shape()];
    let ([rows_a, k, batches @ ..], [k_b, n, batches_b @ ..]) = (a, b) else { return None };
    // Where an index names rows of A, the product has as many as that.
    let m = rows.map_or(Some(rows_a), <[i64]>::first)?;
    (product.indices().gather || m == rows_a).then_some(())?;
    let of_k = product.groups() == Groups::K;
    let matrices = if of_k { ends? } else { batches };
    let shape: Vec<i64> = [*m, *n].into_iter().chain(matrices.iter().copied()).collect();
    let (rest, scales) = rest.split_at_checked(rest.len().checked_sub(product.scale_tensors())?)?;
    let of_groups = ends.filter(|_| !of_k).unwrap_or(batches);
    let (c, aux) = rest.split_at_checked(usize::from(product.has_c()))?;
    let is_other = |other: &[i64]| other == shape || (other.len() == 3 && other == [&[*m, *n], of_groups].concat());
    let is_c = |c: &[i64]| c.iter().eq([*m, *n / product.sums() as i64].iter().chain(&shape[2..]));
    let fits = k == k_b && of_groups == batches_b && aux.iter().all(|t| is_other(t.shape()));
    let fits = fits && c.iter().all(|t| is_c(t.shape())) && n % product.sums() as i64 == 0;
    let fits = fits && (batches.is_empty() || batches == of_groups);
    let blocks = |extent: &i64, of: i64| (*extent + of - 1) / of;
    let scaled = scales.iter().zip(product.block_scales().into_iter().flatten()).enumerate().all(|(of, (t, rows))| {
        let [row, block] = [blocks(&shape[of], rows), blocks(k, SCALED_K)];
        let (own, matrices) = if of == 0 { ([row, block], batches) } else { ([block, row], batches_b) };
        t.shape().iter().eq(own.iter().chain(matrices))
    });
    let fits = fits && scaled;
    (fits && matrices.len() == usize::from(product.is_batched())).then_some(())?;
    let k = if product.reads_factors(scalars) { *k } else { 0 };
    Some([*m, *n, k, matrices.first().copied().unwrap_or(1)])
}

/// The matrices of one product.
pub(super) struct Matrices<'a> {
    evaluator: Evaluator,
    sums: Sums<'a>,
    /// Shape of D.
    shape: Vec<i64>,
    outputs: usize,
    has_c: bool,
    reads_c: bool,
    /// Whether the epilogue has an input for C and does not use it.
    unused_c: bool,
    /// Whether the epilogue gives accumulators as they are.
    only_sums: bool,
    named: Vec<(&'static str, DType)>,
    /// C, where it is an operand, and the auxiliary tensors.
    others: Vec<&'a Tensor>,
    /// Columns of the product that an element of D is made of.
    together: usize,
    /// Of each of the others, how many of its elements are inputs.
    inputs: Vec<usize>,
}

impl<'a> Matrices<'a> {
    /// For matrices that fit together, and the sums of their factors: as many operands, ahead of the others.
    fn new(
        product: &Product,
        evaluator: Evaluator,
        (case, factors, others): (&Case<'a, '_>, usize, &[&'a Tensor]),
        sums: Sums<'a>,
        [m, n, _, l]: [i64; 4],
    ) -> Self {
        let shape = [m, n / product.sums() as i64].into_iter().chain(product.is_batched().then_some(l)).collect();
        let read = || case.read().skip(factors).take(others.len());
        let inputs: Vec<usize> = read().map(|operand| product.inputs_of(operand)).collect();
        Self {
            evaluator,
            sums,
            shape,
            outputs: product.epilogue().function().outputs(),
            has_c: product.has_c(),
            reads_c: product.reads_c(case.scalars),
            unused_c: !product.has_c() && product.epilogue().function().inputs() > product.sums(),
            only_sums: product.epilogue().function().is_first_input(),
            named: read().zip(&inputs).flat_map(|(o, count)| core::iter::repeat_n((o.name, o.dtype), *count)).collect(),
            others: others.to_vec(),
            together: product.sums(),
            inputs,
        }
    }
}

impl Accepted for Matrices<'_> {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(self.shape.clone())
    }

    fn grain(&self) -> u64 {
        match &self.sums {
            Sums::Computed(sums) => sums.grain(),
            Sums::Given(_) => GRAIN,
        }
    }

    fn is_right(&self, outputs: &[&Tensor], part: &Range<u64>) -> bool {
        match (&self.sums, outputs) {
            (Sums::Given(sums), [output]) if self.only_sums => sums.are_right(output, part),
            _ => false,
        }
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Together {
            evaluator: self.evaluator.clone(),
            problem: self,
            sums: match &self.sums {
                Sums::Computed(sums) => SumsFrom::Computed(sums.starting_at(index)),
                Sums::Given(sums) => SumsFrom::Given(sums.starting_at(index)),
            },
            others: self.others.iter().map(|t| Elements::starting_at(t, index)).collect(),
            index,
            bits: Vec::new(),
            accumulators: SmallVec::new(),
        })
    }
}

/// Accumulators and the elements of the other matrices, walked over together.
struct Together<'a> {
    evaluator: Evaluator,
    problem: &'a Matrices<'a>,
    sums: SumsFrom<'a>,
    others: Vec<Elements<'a>>,
    /// The number of the next element of D.
    index: u64,
    bits: Vec<u64>,
    accumulators: SmallVec<[Bounds; 2]>,
}

impl Together<'_> {
    /// The inputs of the next element of D that others than the factors have: values and bits.
    fn read(&mut self, matrix: usize, index: u64) -> SmallVec<[(f64, u64); MAX_INPUTS]> {
        let Matrices { shape, together, inputs, has_c, .. } = self.problem;
        // Matrices of D, and the first column of an auxiliary tensor that goes with its element.
        let matrices = shape.get(2).map_or(1, |l| l.unsigned_abs()).max(1);
        let pair = index / matrices * *together as u64 * matrices + index % matrices;
        let mut all = SmallVec::new();
        for (i, (others, count)) in self.others.iter_mut().zip(inputs).enumerate() {
            let is_c = i == 0 && *has_c;
            if *together == 1 && others.tensor().shape().len() == shape.len() || is_c {
                all.extend(others.next());
                continue;
            }
            for column in 0..*count as u64 {
                let at = pair + column * matrices;
                // One of the product for each group.
                let of_groups =
                    others.tensor().shape().get(shape.len()).map(|groups| at * groups.unsigned_abs() + matrix as u64);
                all.extend(Elements::starting_at(others.tensor(), of_groups.unwrap_or(at)).next());
            }
        }
        all
    }
}

impl Cursor for Together<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        self.accumulators = self.sums.next();
        self.bits.clear();
        let matrix = self.sums.matrix();
        let index = self.index;
        self.index += 1;
        if matrix.is_none() {
            // It keeps the mark of what was never written.
            for others in &mut self.others {
                others.next();
            }
            return Ok((0..self.problem.outputs).map(|_| Accept::within(f64::NAN, 0.0)).collect());
        }
        let mut values = SmallVec::<[Bounds; MAX_INPUTS]>::from_slice(&self.accumulators);
        values.extend(self.problem.unused_c.then(|| Bounds::point(0.0)));
        for (i, (value, bits)) in self.read(matrix.unwrap_or(0), index).into_iter().enumerate() {
            let skipped = i == 0 && self.problem.has_c && !self.problem.reads_c;
            values.push(Bounds::point(if skipped { 0.0 } else { value }));
            self.bits.push(bits);
        }
        let mut outputs = self.evaluator.evaluate_bounds(&values)?;
        // D, which the function gives first, is the last operand.
        outputs.rotate_left(1);
        Ok(outputs)
    }

    fn is_written(&self) -> bool {
        self.sums.matrix().is_some()
    }

    fn inputs(&self) -> Vec<InputElement> {
        let element = |name: &str, dtype, bits| InputElement { name: name.to_owned(), dtype, bits };
        let names = |(least, greatest): (f64, f64)| [("least A @ B", least), ("greatest A @ B", greatest)];
        let ends = self.accumulators.iter().flat_map(|sum| names(sum.range().unwrap_or((f64::NAN, f64::NAN))));
        let ends = ends.map(|(name, value)| element(name, DType::F64, value.to_bits()));
        let others = self.problem.named.iter().zip(&self.bits);
        ends.chain(others.map(|((name, dtype), bits)| element(name, *dtype, *bits))).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        self.sums.matrix().is_none() || self.sums.carry(dtype, bits) || carried(dtype, bits, self.bits.iter().copied())
    }
}
