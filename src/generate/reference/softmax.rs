//! Attention: the softmax of scores as weights of values, in f64, with bounds that follow from the roundings of an online softmax.

mod places;
mod weights;

use core::f64::consts::LOG2_E;
use std::sync::Arc;

use self::places::{between, gathered, in_pages};
use self::weights::Weights;
use super::spread::Spread;
use crate::dtype::DType;
use crate::expr::{self, Bounds, Checked, Evaluator, ExprError, Outputs};
use crate::plan::{Accepted, Arithmetic, Case, Cursor, InputElement, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor};

/// Half the distance between 1 and the next f32.
const U: f64 = 1.0 / 16_777_216.0;

/// Inputs of the function of scores ahead of elements: the score, its batch, head, query and key.
const PLACES: usize = 5;

/// The keys that a query sees. Query i of SQ is aligned with key i + SK - SQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visible {
    /// All.
    All,
    /// Those up to its own.
    UpToOwn,
    /// So many ahead of its own, and so many behind: the scalars of numbers 1 and 2, negative for all.
    Window,
}

/// `O = softmax(scale * Q @ K^T) @ V` for each head: Q `(B,SQ,HQ,D)`, K `(B,SK,HK,D)`, V `(B,SK,HK,DV)`; scalar 0 is the scale. A
/// query whose scores are all -inf, or that sees no key, has 0, and a logarithm of -inf.
#[derive(Clone, Debug)]
pub struct Softmax {
    /// The keys that a query sees.
    pub visible: Visible,
    /// The type that weights are rounded to.
    pub weights: DType,
    /// Keys of a step, after which maxima change.
    pub step: i64,
    /// Whether sequences lie one after the other: Q `(TQ,HQ,D)`, K `(TK,HK,D)`, V `(TK,HK,DV)`, and where the queries, and the keys, of
    /// each sequence begin, with the end of the last behind them. Queries of no sequence see no key.
    pub packed: bool,
    /// Whether K and V are `(PAGES,PAGE,HK,..)`, and two further inputs say where keys lie: `(B,ENTRIES)`, the page of each part of a
    /// sequence, and `(B)`, the keys of each. What names no page is taken for the nearest. The function's tensors, `(B,HQ,SQ,KEYS)`,
    /// bound the keys of a sequence, too. If queries are packed, where they begin comes ahead of the two, and the tensors are
    /// `(HQ,TQ,KEYS)`.
    pub paged: bool,
    /// Whether the logarithm of each row's sum of exponentials is an output, behind O.
    pub lse: bool,
    /// The function of scores. Its inputs are the scaled score, the numbers of batch, head, query and key, and an element of each
    /// further tensor, `(B,HQ,SQ,SK)` or `(HQ,TQ,TK)`. A query has the number of the key that it is aligned with.
    pub score: Option<Checked>,
    /// Whether the last input, `(HQ)`, has a score for each head that has a weight and no value.
    pub sinks: bool,
    /// Whether two inputs ahead of the function's tensors, `(HK)` in f32, have what K and what V of each head are multiplied by. A
    /// product with the scale that is not finite leaves results open, and so does a factor of V.
    pub scales: bool,
}

/// Scalars ahead of those of the function.
fn own_scalars(visible: Visible) -> usize {
    if visible == Visible::Window { 3 } else { 1 }
}

impl Reference for Softmax {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        case.alone()?;
        let problem = Problem::of(self, case.inputs, case.scalars);
        let unfit = || case.unfit(format!("{:?}, which do not fit together", case.inputs));
        let problem = Arc::new(problem.ok_or_else(unfit)?);
        let of = |what| Box::new(Output { problem: problem.clone(), what }) as Box<dyn Accepted + 'a>;
        let mut all = vec![of(What::Values)];
        all.extend(self.lse.then(|| of(What::Logarithms)));
        Ok(all)
    }

    fn usual_scalar(&self, index: usize) -> Option<f64> {
        Some(if index == 0 { 0.125 } else { -1.0 })
    }
}

/// Rows of one sequence among all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    queries: [usize; 2],
    keys: [usize; 2],
}

/// The inputs of a launch.
struct Problem<'a> {
    softmax: &'a Softmax,
    /// The function of scores, and the tensors that it reads.
    score: Option<Evaluator>,
    aux: Vec<&'a Tensor>,
    /// A score of each head, without a key.
    sinks: Vec<f32>,
    /// Of each key head, what K and V are multiplied by.
    scales: [Vec<f32>; 2],
    /// Elements in row-major order.
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    /// The shape of O.
    shape: Vec<i64>,
    /// Each begins where the one before ends.
    sequences: Vec<Sequence>,
    /// Query heads and key heads.
    heads: [usize; 2],
    /// Elements of a row of Q and K, and of V.
    elements: [usize; 2],
    scale: f64,
    /// Keys ahead of a query's own, and behind.
    window: [Option<i64>; 2],
}

fn elements(tensor: &Tensor) -> Vec<f32> {
    Elements::starting_at(tensor, 0).map(|(value, _)| value as f32).collect()
}

fn size(extent: i64) -> usize {
    usize::try_from(extent).unwrap_or(0)
}

impl<'a> Problem<'a> {
    fn of(softmax: &'a Softmax, inputs: &[&'a Tensor], scalars: &[f64]) -> Option<Self> {
        let [q, k, v, others @ ..] = inputs else { return None };
        let count = match (softmax.packed, softmax.paged) {
            (true, true) => 3,
            (false, false) => 0,
            _ => 2,
        };
        let (starts, others) = others.split_at_checked(count)?;
        let (scales, others) = others.split_at_checked(if softmax.scales { 2 } else { 0 })?;
        let (aux, sinks) = others.split_at_checked(others.len() - usize::from(softmax.sinks))?;
        let (mut of_k, mut of_v) = (elements(k), elements(v));
        let (shape, sequences) = if softmax.paged {
            let ([pages, page, ..], true) = (k.shape(), k.shape()[..3] == v.shape()[..3]) else { return None };
            let [of_queries @ .., table, lengths] = starts else { return None };
            let limit = aux.first().and_then(|aux| aux.shape().last()).map(|keys| size(*keys));
            let batches = size(*lengths.shape().first()?);
            let (places, keys) = in_pages([table, lengths], [*pages, *page].map(size), batches, limit)?;
            [&mut of_k, &mut of_v].into_iter().for_each(|all| *all = gathered(all, &places, size(pages * page)));
            match (q.shape(), of_queries) {
                ([tq, _, _], [starts]) => {
                    let mut all = between([starts, starts], [size(*tq), 0]);
                    for (number, sequence) in all.iter_mut().enumerate() {
                        let own = number.checked_sub(1).and_then(|number| keys.get(number));
                        sequence.keys = own.copied().unwrap_or([0; 2]);
                    }
                    (&q.shape()[..1], all)
                }
                ([_, sq, _, _], []) => {
                    let of = |batch: usize| [batch * size(*sq), (batch + 1) * size(*sq)];
                    let of = |(batch, keys): (usize, &[usize; 2])| Sequence { queries: of(batch), keys: *keys };
                    (&q.shape()[..2], keys.iter().enumerate().map(of).collect())
                }
                _ => return None,
            }
        } else if softmax.packed {
            let ([tq, _, _], [tk, _, _], [tv, _, _]) = (q.shape(), k.shape(), v.shape()) else { return None };
            let [of_queries, of_keys] = starts else { return None };
            (tk == tv && of_queries.shape() == of_keys.shape()).then_some(())?;
            (&q.shape()[..1], between([of_queries, of_keys], [*tq, *tk].map(size)))
        } else {
            let ([b, sq, _, _], [bk, sk, _, _], [bv, sv, _, _]) = (q.shape(), k.shape(), v.shape()) else {
                return None;
            };
            (b == bk && bk == bv && sk == sv).then_some(())?;
            let rows = |batch: usize, rows: &i64| [batch * size(*rows), (batch + 1) * size(*rows)];
            let of = |batch| Sequence { queries: rows(batch, sq), keys: rows(batch, sk) };
            (&q.shape()[..2], (0..size(*b)).map(of).collect())
        };
        let score = match &softmax.score {
            Some(score) if score.function().inputs() != aux.len() + PLACES => return None,
            Some(score) => Some(score.evaluator(scalars.get(own_scalars(softmax.visible)..)?).ok()?),
            None => None,
        };
        let [.., hq, d] = q.shape() else { return None };
        let ([.., hk, dk], [.., hv, dv]) = (k.shape(), v.shape()) else { return None };
        let whole = *hq == 0 || (*hk > 0 && hq % hk == 0);
        (hk == hv && d == dk && whole).then_some(())?;
        let bound = |index: usize| scalars.get(index).map(|keys| *keys as i32).filter(|keys| *keys >= 0);
        let window = match softmax.visible {
            Visible::All => [None, None],
            Visible::UpToOwn => [None, Some(0)],
            Visible::Window => [1, 2].map(|index| bound(index).map(i64::from)),
        };
        Some(Self {
            softmax,
            score,
            aux: aux.to_vec(),
            sinks: sinks.iter().flat_map(|sinks| elements(sinks)).collect(),
            scales: [0, 1].map(|of| scales.get(of).map_or_else(Vec::new, |scales| elements(scales))),
            q: elements(q),
            k: of_k,
            v: of_v,
            shape: shape.iter().copied().chain([*hq, *dv]).collect(),
            sequences,
            heads: [*hq, *hk].map(size),
            elements: [*d, *dv].map(size),
            // As the parameter holds it.
            scale: f64::from(*scalars.first()? as f32),
            window,
        })
    }

    /// The keys that a query of a sequence sees.
    fn seen(&self, sequence: Sequence, query: usize) -> core::ops::Range<usize> {
        let [queries, keys] = [sequence.queries, sequence.keys].map(|[begin, end]| (end - begin) as i64);
        let own = (query - sequence.queries[0]) as i64 + keys - queries;
        let first = self.window[0].map_or(0, |left| (own - left).clamp(0, keys));
        let end = self.window[1].map_or(keys, |right| (own + right + 1).clamp(0, keys));
        let at = |key: i64| sequence.keys[0] + key as usize;
        at(first)..at(end.max(first))
    }

    /// Keys of the longest sequence.
    fn longest(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.keys[1] - sequence.keys[0]).max().unwrap_or(0)
    }

    /// A row of K or V.
    fn row<'r>(&self, of: &'r [f32], elements: usize, (key, head): (usize, usize)) -> &'r [f32] {
        let at = key * self.heads[1] + head;
        of.get(at * elements..(at + 1) * elements).unwrap_or(&[])
    }

    /// The weights of the query of that number, queries and their heads one after the other.
    fn weights(&self, number: usize) -> Weights<'_> {
        let heads = self.heads[0].max(1);
        let (query, head) = (number / heads, number % heads);
        let batch = self.sequences.partition_point(|sequence| sequence.queries[1] <= query);
        let sequence = self.sequences.get(batch).copied().unwrap_or(Sequence { queries: [query; 2], keys: [0; 2] });
        let group = head / (heads / self.heads[1].max(1)).max(1);
        let d = self.elements[0];
        let q = self.q.get(number * d..(number + 1) * d).unwrap_or(&[]);
        let spread = Spread::of(d.next_multiple_of(16), Arithmetic::TensorCores);
        // A scale of K is multiplied with that of scores in f32.
        let of_k = self.scales[0].get(group).copied();
        let own = of_k.map_or(self.scale, |of_k| f64::from(self.scale as f32 * of_k));
        // Base 2: the scale takes up log2(e), which is rounded, and so is the product.
        let scale = own.abs() * LOG2_E;
        let mut all = Weights::new((sequence, group), self.seen(sequence, query), self.softmax);
        all.anything |= of_k.is_some() && !own.is_finite();
        all.of_v = self.scales[1].get(group).copied().map(f64::from);
        let mut score_of = self.score.clone();
        for key in all.keys.clone() {
            let k = self.row(&self.k, d, (key, group));
            let products = q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k));
            let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| {
                (sum + product, size + if product.is_finite() { product.abs() } else { 0.0 })
            });
            let score = own * sum;
            // A partial sum, or its product with the scale, may overflow.
            let most = spread.greatest(size);
            all.anything |= most > f64::from(f32::MAX) || most * scale.max(1.0) > f64::from(f32::MAX);
            let error = own.abs() * spread.error(size);
            match &mut score_of {
                Some(function) => {
                    all.scored(function.evaluate_bounds(&self.given(score, error, [batch, head, query, key], sequence)))
                }
                None => all.push(score * LOG2_E, LOG2_E * error + 3.0 * U * (score * LOG2_E).abs()),
            }
        }
        all.finish(self.sinks.get(head).copied());
        all
    }
}

impl Problem<'_> {
    /// What the function of scores is given: the score with its rounding, its places, and elements.
    fn given(&self, score: f64, error: f64, [batch, head, query, key]: [usize; 4], of: Sequence) -> Vec<Bounds> {
        // The product with the scale is rounded, which may be to 0.
        let error = error + 2.0 * U * score.abs() + f64::from(f32::MIN_POSITIVE);
        let [q, k] = [query - of.queries[0], key - of.keys[0]];
        let own = (q + of.keys[1] - of.keys[0]) as f64 - (of.queries[1] - of.queries[0]) as f64;
        // Packed sequences are numbered from the first start on.
        let number = batch as f64 - if self.softmax.packed { 1.0 } else { 0.0 };
        let exact = score.is_finite() && error.is_finite();
        let score = if exact { Bounds::between(score - error, score + error) } else { Bounds::point(score) };
        let places = [number, head as f64, own, k as f64].map(Bounds::point);
        let at = match (self.softmax.packed, self.softmax.paged) {
            (true, false) => vec![head, query, key],
            (true, true) => vec![head, query, k],
            (false, _) => vec![batch, head, q, k],
        };
        let at: Vec<u64> = at.into_iter().map(|at| at as u64).collect();
        let element = |tensor: &&Tensor| {
            Bounds::point(tensor.bits_at(&at).map_or(f64::NAN, |bits| expr::round::value(tensor.dtype(), bits)))
        };
        core::iter::once(score).chain(places).chain(self.aux.iter().map(element)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// O.
    Values,
    /// Logarithms of the sums.
    Logarithms,
}

/// One output.
struct Output<'a> {
    problem: Arc<Problem<'a>>,
    what: What,
}

impl Output<'_> {
    /// Elements of a query.
    fn of_query(&self) -> usize {
        if self.what == What::Values { self.problem.elements[1].max(1) } else { 1 }
    }
}

impl Accepted for Output<'_> {
    fn outputs(&self) -> usize {
        1
    }

    fn shape(&self) -> Option<Vec<i64>> {
        let mut shape = self.problem.shape.clone();
        shape.truncate(shape.len() - usize::from(self.what == What::Logarithms));
        Some(shape)
    }

    fn grain(&self) -> u64 {
        let work = (self.problem.longest() * (self.problem.elements[0] + self.problem.elements[1])).max(1) as u64;
        (GRAIN / work).max(1) * self.of_query() as u64
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Next { output: self, index: index as usize, weights: None, last: None })
    }
}

/// One element after the other.
struct Next<'a> {
    output: &'a Output<'a>,
    index: usize,
    /// Those of the query of that number.
    weights: Option<(usize, Weights<'a>)>,
    last: Option<(f64, f64)>,
}

impl Cursor for Next<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        let (problem, of_query) = (&self.output.problem, self.output.of_query());
        let (query, element) = (self.index / of_query, self.index % of_query);
        self.index += 1;
        if self.weights.as_ref().is_none_or(|(of, _)| *of != query) {
            self.weights = Some((query, problem.weights(query)));
        }
        let accept = self.weights.as_ref().map(|(_, weights)| match self.output.what {
            What::Values => weights.value(problem, element),
            What::Logarithms => weights.logarithm(),
        });
        self.last = accept.and_then(|accept| accept.range());
        Ok(Outputs::from_iter(accept))
    }

    fn inputs(&self) -> Vec<InputElement> {
        let ends = self.last.unwrap_or((f64::NAN, f64::NAN));
        let end =
            |name: &str, value: f64| InputElement { name: name.to_owned(), dtype: DType::F64, bits: value.to_bits() };
        vec![end("least", ends.0), end("greatest", ends.1)]
    }

    /// Tensor cores and conversions give NaNs of their own.
    fn carries(&self, _: DType, _: u64) -> bool {
        false
    }
}
