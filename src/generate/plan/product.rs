//! The function of a kernel, as far as its outputs are concerned.

use crate::expr::Checked;
use crate::plan::{Operand, Shapes};

/// The function of a kernel. It is verified by this, whatever its structure.
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
    arithmetic: Arithmetic,
}

/// How the factors of a product are multiplied and added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// In f32, each operation rounded, or fused.
    #[default]
    F32,
    /// By tensor cores: products of 16-bit factors are exact, and additions are truncated.
    TensorCores,
    /// The same with factors of f32, each rounded to tf32 first, 10 bits of fraction. A value halfway goes either way.
    Tf32,
}

/// Whether a scalar, as the kernel gets it, is 0.
pub(crate) fn is_zero(scalars: &[f64], index: Option<usize>) -> bool {
    index.and_then(|i| scalars.get(i)).is_some_and(|s| *s as f32 == 0.0)
}

impl Product {
    pub(crate) fn new(epilogue: Checked, batched: bool) -> Self {
        let function = epilogue.function();
        let has_c = function.inputs() > 1 && !function.unused_inputs().contains(&1);
        let (alpha, beta) = (function.only_scaled(0), function.only_scaled(1));
        Self { epilogue, batched, has_c, alpha, beta, arithmetic: Arithmetic::F32 }
    }

    /// The same, its sums computed so.
    pub(crate) fn computed(self, arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..self }
    }

    /// How its sums are computed.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// Whether tensor cores compute them.
    pub fn is_on_tensor_cores(&self) -> bool {
        self.arithmetic != Arithmetic::F32
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

    /// The default of a run-time scalar, by number from 0: 1 for [`alpha`](Self::alpha) and 0 for [`beta`](Self::beta),
    /// so that a launch computes a function of A @ B. `None` for any other.
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
}

impl Computes<'_> {
    /// How the shapes of its tensors belong together.
    pub fn tensor_shapes(&self) -> Shapes {
        match self {
            Computes::Elementwise(_) => Shapes::Elementwise,
            Computes::Product(product) => Shapes::Product { batched: product.batched },
            Computes::RowSum(_) => Shapes::RowSum,
        }
    }

    /// As [`Shapes::problem_modes`].
    pub fn problem_modes(&self, operands: &[Operand]) -> usize {
        self.tensor_shapes().problem_modes(operands)
    }

    /// As [`Shapes::extents`].
    pub fn extents(&self, operands: &[Operand]) -> String {
        self.tensor_shapes().extents(operands)
    }

    /// As [`Shapes::example`].
    pub fn example(&self, operands: &[Operand]) -> Vec<i64> {
        self.tensor_shapes().example(operands)
    }

    /// The value of a run-time scalar, by number from 0, where nothing is said of it; `None` where it has to be said.
    pub fn usual_scalar(&self, index: usize) -> Option<f64> {
        match self {
            Computes::Product(product) => product.usual_scalar(index),
            Computes::Elementwise(_) | Computes::RowSum(_) => None,
        }
    }

    /// As [`Shapes::problem_of`].
    pub fn problem_of(&self, shapes: &[&[i64]]) -> Option<Vec<i64>> {
        self.tensor_shapes().problem_of(shapes)
    }

    /// As [`Shapes::problem_of_arrays`].
    pub fn problem_of_arrays(&self, operands: &[Operand], arrays: &[&[i64]]) -> Option<Vec<i64>> {
        self.tensor_shapes().problem_of_arrays(operands, arrays)
    }

    /// As [`Shapes::shapes`].
    pub fn shapes(&self, operands: &[Operand], problem: &[i64]) -> Option<Vec<Vec<i64>>> {
        self.tensor_shapes().shapes(operands, problem)
    }
}
