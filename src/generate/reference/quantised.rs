//! Products whose D is quantised: what rounding makes of any value and scale within their bounds.

use std::sync::Arc;

use super::product::Matrices;
use crate::dtype::DType;
use crate::expr::{Accept, Bounds, Evaluator, ExprError, Outputs};
use crate::plan::{Accepted, Cursor, InputElement, SCALED_N};
use crate::tensor::Scalar;

/// Elements of a row that share a scale.
const TOGETHER: usize = SCALED_N as usize;

/// The elements of D, or their scales.
pub(super) struct Quantised<'a> {
    matrices: Arc<Matrices<'a>>,
    quantiser: Evaluator,
    scales: bool,
    /// N and L of D.
    extents: [usize; 2],
}

impl<'a> Quantised<'a> {
    /// The scales, and the elements: in the order of the operands.
    pub(super) fn both(matrices: Matrices<'a>, quantiser: &Evaluator) -> Vec<Box<dyn Accepted + 'a>> {
        let shape = matrices.shape().unwrap_or_default();
        let extents = [1, 2].map(|mode| shape.get(mode).map_or(1, |extent| extent.unsigned_abs() as usize));
        let matrices = Arc::new(matrices);
        let of = |scales| {
            let (matrices, quantiser) = (Arc::clone(&matrices), quantiser.clone());
            Box::new(Quantised { matrices, quantiser, scales, extents }) as Box<dyn Accepted + 'a>
        };
        vec![of(true), of(false)]
    }

    /// Its elements of one row of D.
    fn per_row(&self) -> usize {
        let [n, l] = self.extents;
        l * if self.scales { n.div_ceil(TOGETHER) } else { n }
    }
}

impl Accepted for Quantised<'_> {
    fn outputs(&self) -> usize {
        1
    }

    fn shape(&self) -> Option<Vec<i64>> {
        let mut shape = self.matrices.shape()?;
        if self.scales {
            *shape.get_mut(1)? = self.extents[0].div_ceil(TOGETHER) as i64;
        }
        Some(shape)
    }

    /// Whole rows.
    fn grain(&self) -> u64 {
        let of_row = self.extents.iter().product::<usize>().max(1) as u64;
        self.matrices.grain().div_ceil(of_row) * self.per_row().max(1) as u64
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        let per_row = self.per_row().max(1) as u64;
        let first = index / per_row * self.extents.iter().product::<usize>() as u64;
        Box::new(Rows {
            of: self,
            quantiser: self.quantiser.clone(),
            results: self.matrices.starting_at(first),
            row: Vec::new(),
            largest: Vec::new(),
            next: (index % per_row) as usize,
        })
    }
}

/// What the epilogue gives.
#[derive(Clone, Copy)]
struct Element {
    is: Bounds,
    written: bool,
    /// Whether it may be the NaN of what was never written.
    carries: bool,
}

/// Row after row.
struct Rows<'a> {
    of: &'a Quantised<'a>,
    quantiser: Evaluator,
    results: Box<dyn Cursor + 'a>,
    /// Of one m, `(N,L)`; empty where they are still to be computed.
    row: Vec<Element>,
    /// The largest size of those that share a scale, `(N/128,L)`.
    largest: Vec<Bounds>,
    next: usize,
}

impl Rows<'_> {
    fn read(&mut self) -> Result<(), ExprError> {
        let [n, l] = self.of.extents;
        for _ in 0..n * l {
            let is = self.results.accepted()?.first().map_or(Bounds::point(f64::NAN), Bounds::of);
            let carries = is.may_be_nan() && self.results.carries(DType::F32, f32::UNWRITTEN);
            self.row.push(Element { is, written: self.results.is_written(), carries });
        }
        let groups = (0..n).step_by(TOGETHER).flat_map(|first| (0..l).map(move |l| (first, l)));
        self.largest = groups.map(|(first, l)| largest(self.together(first, l).map(|element| element.is))).collect();
        Ok(())
    }

    /// All that share the scale of column `first` of a matrix.
    fn together(&self, first: usize, l_of: usize) -> impl Iterator<Item = &Element> {
        let [n, l] = self.of.extents;
        (first..n.min(first + TOGETHER)).filter_map(move |n| self.row.get(n * l + l_of))
    }

    /// Columns and matrix of what was last given: its own, or the first one, and its group.
    fn place(&self) -> [usize; 3] {
        let (last, l) = (self.next.saturating_sub(1), self.of.extents[1].max(1));
        let (at, l_of) = (last / l, last % l);
        if self.of.scales { [at * TOGETHER, at, l_of] } else { [at, at / TOGETHER, l_of] }
    }

    /// That element, and the largest size of those that share its scale.
    fn last(&self) -> Option<(Element, Bounds)> {
        let ([at, group, l_of], l) = (self.place(), self.of.extents[1]);
        Some((*self.row.get(at * l + l_of)?, *self.largest.get(group * l + l_of)?))
    }
}

/// The bounds of the largest size.
fn largest(all: impl Iterator<Item = Bounds>) -> Bounds {
    all.fold(Bounds::point(0.0), |largest, is| {
        let nan = largest.may_be_nan() || is.may_be_nan();
        match (largest.range(), is.range()) {
            (Some(largest), Some((low, high))) => {
                let least = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
                Bounds::between(largest.0.max(least), largest.1.max(low.abs()).max(high.abs())).or_nan(nan)
            }
            _ => Bounds::point(f64::NAN),
        }
    })
}

impl Cursor for Rows<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        if self.next == self.of.per_row() {
            self.next = 0;
            self.row.clear();
        }
        if self.row.is_empty() {
            self.read()?;
        }
        self.next += 1;
        let Some((element, largest)) = self.last() else { return Ok(Outputs::new()) };
        if !element.written {
            return Ok([Accept::within(f64::NAN, 0.0)].into_iter().collect());
        }
        let outputs = self.quantiser.evaluate_bounds(&[element.is, largest])?;
        Ok(outputs.into_iter().skip(usize::from(self.of.scales)).take(1).collect())
    }

    fn is_written(&self) -> bool {
        self.last().is_some_and(|(element, _)| element.written)
    }

    fn inputs(&self) -> Vec<InputElement> {
        let Some((Element { is, .. }, largest)) = self.last() else { return Vec::new() };
        let named = [("least result", "greatest result", is), ("least largest size", "greatest largest size", largest)];
        let of = |(least, greatest, bounds): (&str, &str, Bounds)| {
            let (low, high) = bounds.range().unwrap_or((f64::NAN, f64::NAN));
            [(least, low), (greatest, high)].map(|(name, x)| InputElement {
                name: name.to_owned(),
                dtype: DType::F64,
                bits: x.to_bits(),
            })
        };
        named.into_iter().flat_map(of).collect()
    }

    fn carries(&self, dtype: DType, _: u64) -> bool {
        let [_, group, l_of] = self.place();
        let mut all = self.together(group * TOGETHER, l_of);
        !self.is_written() || dtype == DType::F32 && all.any(|element| element.carries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Arch, Targets};
    use crate::dtype::E4m3;
    use crate::plan::Case;
    use crate::recipe::gemm::Factors;
    use crate::recipe::{Gemm, Recipe};
    use crate::tensor::Tensor;

    /// How many scales and elements are wrong, of D (1,130) = A (1,1) times B (1,130), A being 1.
    fn wrong(b: &[E4m3], d: &[u8; 130], scales: [f32; 2]) -> [usize; 2] {
        let recipe = Gemm::default().with_factors(Factors::E4m3).quantised();
        let plan = recipe.plan(&Targets::new([Arch::Sm90a]).expect("one")).expect("a right recipe");
        let tensor = |bits: &[E4m3], shape: &[i64]| Tensor::of(bits, shape).expect("small");
        let (a, b) = (tensor(&[E4m3(0x38)], &[1, 1]), tensor(b, &[1, 130]));
        let case = Case { abi: plan.abi(), inputs: &[&a, &b], scalars: &[], written: &[], baseline: None };
        let groups = plan.reference().expect("a product").accepted(&case).expect("its inputs");
        let found = [scales.map(|x| u64::from(x.to_bits())).to_vec(), d.map(u64::from).to_vec()];
        let count = |(of, dtype): (usize, DType)| {
            let mut cursor = groups[of].starting_at(0);
            let is_wrong = |bits: &&u64| !cursor.accepted().expect("a value")[0].accepts(dtype, **bits);
            found[of].iter().filter(is_wrong).count()
        };
        [(0, DType::F32), (1, DType::E4m3)].map(count)
    }

    #[test]
    fn each_128_of_a_row_share_a_scale() {
        // 2 at column 5, -3 at 129, else 0.
        let (mut b, mut d) = ([E4m3(0); 130], [0_u8; 130]);
        (b[5], b[7], b[129]) = (E4m3(0x40), E4m3(0x38), E4m3(0xc4));
        // 448, 224 and -448.
        (d[5], d[7], d[129]) = (0x7e, 0x76, 0xfe);
        let scales = [2.0 / 448.0, 3.0 / 448.0];
        assert_eq!(wrong(&b, &d, scales), [0, 0]);
        assert_eq!(wrong(&b, &d, [scales[1], scales[0]]), [2, 0]);
        d[7] = 0x75;
        assert_eq!(wrong(&b, &d, scales), [0, 1], "sums that are exact have one result");
        // Where all are 0, so are the elements, and the scale is 1.
        (b[129], d[129], d[7]) = (E4m3(0), 0, 0x76);
        assert_eq!(wrong(&b, &d, [scales[0], 1.0]), [0, 0]);
        // One NaN makes a NaN of the scale that it shares.
        (b[128], d[128]) = (E4m3(0x7f), 0x7f);
        assert_eq!(wrong(&b, &d, [scales[0], f32::NAN]), [0, 0]);
        d[128] = 0;
        assert_eq!(wrong(&b, &d, [scales[0], 1.0]), [1, 1]);
    }

    #[test]
    fn the_largest_size_of_bounds_is_all_that_it_may_be() {
        let of = |all: &[Bounds]| largest(all.iter().copied());
        let known = of(&[Bounds::between(-3.0, 1.0), Bounds::between(-2.5, -2.0)]);
        assert_eq!((known.range(), known.may_be_nan()), (Some((2.0, 3.0)), false));
        assert_eq!(of(&[]).as_point(), Some(0.0));
        let nan = of(&[Bounds::between(1.0, 2.0).or_nan(true), Bounds::point(1.5)]);
        assert_eq!((nan.range(), nan.may_be_nan()), (Some((1.5, 2.0)), true));
        assert_eq!(of(&[Bounds::point(f64::NAN), Bounds::point(1.0)]).range(), None);
    }
}
