//! What a kernel computes, as far as its outputs are concerned.

use crate::expr::Checked;
use crate::plan::Operand;
use crate::view::Access;

/// What a kernel computes: by this it is verified, whatever its structure.
#[derive(Clone, Copy, Debug)]
pub enum Computes<'a> {
    /// The function of the inputs' elements at each coordinate.
    Elementwise(&'a Checked),
    /// `D = epilogue(A @ B, C, ..)`.
    Product(&'a Product),
    /// For each row, the sum of the function of the inputs' elements there, from 0 on.
    RowSum(&'a Checked),
}

/// `D = epilogue(A @ B, C, ..)`: A `(M,K)`, B `(K,N)`, all others `(M,N)`, perhaps each with a last mode L.
///
/// The epilogue is a function of the accumulator, the sum over k of `A(m,k) * B(k,n)` from 0 on, of the element of C, and of
/// those of the auxiliary tensors. The operands are A, B, C where it is read, the auxiliary tensors, and D.
///
/// ```
/// use cutemplate::arch::Targets;
/// use cutemplate::plan::Computes;
/// use cutemplate::recipe::{Recipe, Sgemm};
///
/// let plan = Sgemm::default().plan(&Targets::default())?;
/// let Some(Computes::Product(product)) = plan.computes() else { panic!("a product") };
/// // alpha * (A @ B) + beta * C, as BLAS has it: what is multiplied by 0 is not read.
/// assert!(product.reads_factors(&[1.0, 0.0]) && !product.reads_c(&[1.0, 0.0]));
/// # Ok::<(), cutemplate::diagnostic::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    epilogue: Checked,
    batched: bool,
    has_c: bool,
    alpha: Option<usize>,
    beta: Option<usize>,
    tensor_cores: bool,
}

/// Whether a scalar, as the kernel gets it, is 0.
fn is_zero(scalars: &[f64], index: Option<usize>) -> bool {
    index.and_then(|i| scalars.get(i)).is_some_and(|s| *s as f32 == 0.0)
}

impl Product {
    pub(crate) fn new(epilogue: Checked, batched: bool) -> Self {
        let function = epilogue.function();
        let has_c = function.inputs() > 1 && !function.unused_inputs().contains(&1);
        let (alpha, beta) = (function.only_scaled(0), function.only_scaled(1));
        Self { epilogue, batched, has_c, alpha, beta, tensor_cores: false }
    }

    /// The same, its sums computed by tensor cores.
    pub(crate) fn on_tensor_cores(self) -> Self {
        Self { tensor_cores: true, ..self }
    }

    /// Whether tensor cores compute the sums: products of 16-bit factors are exact there, and additions are truncated.
    pub fn is_on_tensor_cores(&self) -> bool {
        self.tensor_cores
    }

    /// The function of the accumulator, of C's element, and of auxiliary elements.
    pub fn epilogue(&self) -> &Checked {
        &self.epilogue
    }

    /// Whether all tensors have a last mode L.
    pub fn is_batched(&self) -> bool {
        self.batched
    }

    /// Whether C is an operand: the epilogue uses its element.
    pub fn has_c(&self) -> bool {
        self.has_c
    }

    /// The run-time scalar, by number from 0, that spares reading A and B where it is 0.
    pub fn alpha(&self) -> Option<usize> {
        self.alpha
    }

    /// The run-time scalar that spares reading C where it is 0.
    pub fn beta(&self) -> Option<usize> {
        self.beta
    }

    /// The value of a run-time scalar, by number from 0, where nothing is said of it: 1 for [`alpha`](Self::alpha) and 0 for
    /// [`beta`](Self::beta), so that a launch computes a function of A @ B; `None` for any other.
    pub fn usual_scalar(&self, index: usize) -> Option<f64> {
        match Some(index) {
            index if index == self.alpha => Some(1.0),
            index if index == self.beta => Some(0.0),
            _ => None,
        }
    }

    /// Whether a launch with these scalars reads A and B; elsewhere the accumulator is 0.
    pub fn reads_factors(&self, scalars: &[f64]) -> bool {
        !is_zero(scalars, self.alpha)
    }

    /// Whether a launch with these scalars reads C; elsewhere its elements count as 0.
    pub fn reads_c(&self, scalars: &[f64]) -> bool {
        self.has_c && !is_zero(scalars, self.beta)
    }

    /// The modes of a problem: `MxNxK`, with L behind them where there are batches.
    fn modes(&self) -> usize {
        if self.batched { 4 } else { 3 }
    }

    fn shape(&self, operand: &Operand, problem: &[i64]) -> Option<Vec<i64>> {
        let (m, n, k) = (*problem.first()?, *problem.get(1)?, *problem.get(2)?);
        let [rows, cols] = match operand.name {
            "A" => [m, k],
            "B" => [k, n],
            _ => [m, n],
        };
        Some([rows, cols].into_iter().chain(problem.get(3).copied()).collect())
    }
}

impl Computes<'_> {
    /// The extents that a problem is given by: `MxNxK` for a product, with L behind them where there are batches; the shape
    /// of the tensors for an elementwise kernel.
    pub fn problem_modes(&self, operands: &[Operand]) -> usize {
        match self {
            Computes::Elementwise(_) => operands.last().map_or(0, |o| o.strides.len()),
            Computes::RowSum(_) => 2,
            Computes::Product(product) => product.modes(),
        }
    }

    /// How many extents a problem has, and which: `3: MxNxK`.
    pub fn extents(&self, operands: &[Operand]) -> String {
        match (self, self.problem_modes(operands)) {
            (Computes::Product(_), 3) => "3: MxNxK".to_owned(),
            (Computes::Product(_), _) => "4: MxNxKxL".to_owned(),
            (Computes::Elementwise(_), rank) => format!("{rank}, the rank of the tensors"),
            (Computes::RowSum(_), _) => "2: MxN".to_owned(),
        }
    }

    /// A small problem that leaves something over in every mode.
    pub fn example(&self, operands: &[Operand]) -> Vec<i64> {
        let extents: &[i64] = match (self, self.problem_modes(operands)) {
            (Computes::Product(_), 3) => &[255, 130, 67],
            (Computes::Product(_), _) => &[131, 67, 45, 3],
            (_, 1) => &[100_003],
            (_, 2) => &[1023, 511],
            (_, 3) => &[7, 65, 129],
            (_, 4) => &[3, 5, 33, 65],
            _ => &[2, 3, 5, 17, 33],
        };
        extents.to_vec()
    }

    /// The value of a run-time scalar, by number from 0, where nothing is said of it; `None` where it has to be said.
    pub fn usual_scalar(&self, index: usize) -> Option<f64> {
        match self {
            Computes::Product(product) => product.usual_scalar(index),
            Computes::Elementwise(_) | Computes::RowSum(_) => None,
        }
    }

    /// The problem that tensors of these shapes belong to, in the order of the operands: the first tensor's shape, and for a
    /// product what A and B say. `None` where there are too few.
    pub fn problem_of(&self, shapes: &[&[i64]]) -> Option<Vec<i64>> {
        match (self, shapes) {
            (Computes::Elementwise(_) | Computes::RowSum(_), [first, ..]) => Some(first.to_vec()),
            (Computes::Product(_), [a, b, ..]) => match (a, b) {
                ([m, k, batches @ ..], [_, n, ..]) => {
                    Some([*m, *n, *k].into_iter().chain(batches.iter().copied()).collect())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// How many operands, from the first on, tell the problem; why all others have to fit, and what helps.
    pub(crate) fn agreement(&self) -> (usize, &'static str, &'static str) {
        match self {
            Computes::Product(_) => (
                2,
                "D(m,n) is the sum over k of A(m,k) * B(k,n), with C(m,n) and auxiliary elements of the same m and n",
                "A is (M,K), B is (K,N), and the others are (M,N); what is broadcast has stride 0, not extent 1",
            ),
            Computes::Elementwise(_) => (
                1,
                "an elementwise kernel reads each input at each coordinate of the outputs",
                "pass views of one shape; what is broadcast has stride 0, not extent 1",
            ),
            Computes::RowSum(_) => (
                1,
                "each row has one sum, of what all inputs hold there",
                "pass views that fit together; what is broadcast has stride 0, not extent 1",
            ),
        }
    }

    /// The shape of each operand for the extents of a problem; `None` where there is another number of them.
    pub fn shapes(&self, operands: &[Operand], problem: &[i64]) -> Option<Vec<Vec<i64>>> {
        (problem.len() == self.problem_modes(operands)).then_some(())?;
        let shape = |operand: &Operand| match self {
            Computes::RowSum(_) if operand.access == Access::Write => Some(problem.iter().take(1).copied().collect()),
            Computes::Elementwise(_) | Computes::RowSum(_) => Some(problem.to_vec()),
            Computes::Product(product) => product.shape(operand, problem),
        };
        operands.iter().map(shape).collect()
    }
}
