//! `sum`: any traced function of matrices, summed along rows, by a warp or a block for each row. A name for settings of `rows`, whose
//! checks, text and launch are its own.

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::expr::Function;
use crate::expr::rows::Reduction;
use crate::plan::{ModeStride, Plan};
pub use crate::recipe::TensorArgs as SumArgs;
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::reader::Reader;
use crate::recipe::rows::{self, Hold, Rows};
use crate::recipe::{OfTensors, Recipe, TensorSpec};
use crate::settings::{Setting, named};

named! {
    /// Which threads add up a row.
    #[derive(Default)]
    Group, "group of threads":
    /// The threads of a warp: for short rows, or many.
    #[default]
    Warp = "warp",
    /// The threads of a block.
    Block = "block",
}

as_displayed!(Group);

recipe! {
    /// `y(m)` is the sum over n of `function(a(m,n), b(m,n), ..)`, evaluated and added in f32; a row without elements gives 0.
    ///
    /// Rows have any width. The order of the additions follows from the settings, from the width of a row, and from whether rows are
    /// aligned: launches on the same elements give the same bits. Where a tensor is f64, sums are f64.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Recipe, Sum};
    ///
    /// let plan = Sum::default().plan(&Targets::default())?;
    /// assert_eq!((plan.threads(), plan.operands().len()), (256, 2));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Sum |this| {
        /// the function of inputs a to h, or as |x, bias| names them; run-time scalars as in |a, b; alpha|
        function = "expr": Function, "a * b";
        /// type and strides of each input, (M,N): 1 contiguous, 0 broadcast, ? given at launch
        inputs = "in": Vec<TensorSpec>, "f16:(?,1), f32:(0,1)";
        /// type of the sums
        out: DType, "f32";
        /// threads that add up a row: warp, block
        by: Group, "warp";
        /// threads of a block: a multiple of 32, a power of two by block
        threads: u32, "256";
    }
}

impl Default for Sum {
    /// Rows of f32.
    fn default() -> Self {
        Self::new(Function::unary(|a| a), DType::F32)
    }
}

impl Sum {
    /// Row-major inputs of one type, sums of f32, a warp for each row.
    pub fn new(function: Function, dtype: DType) -> Self {
        let inputs = vec![TensorSpec::row_major(dtype, 2); function.inputs()];
        Self { function, inputs, out: DType::F32, by: Group::Warp, threads: 256 }
    }

    /// The same kernel as a recipe of `rows`.
    ///
    /// ```
    /// use cutemplate::recipe::Sum;
    ///
    /// assert_eq!(Sum::default().rows().function.to_string(), "sum(a)");
    /// ```
    pub fn rows(&self) -> Rows {
        let rows = Rows::new(self.function.reduced(Reduction::Sum), DType::F32);
        Rows {
            inputs: self.inputs.clone(),
            outputs: vec![TensorSpec { dtype: self.out, strides: vec![ModeStride::Dynamic] }; self.function.outputs()],
            threads: Some(if self.by == Group::Warp { 32 } else { self.threads }),
            block: Some(self.threads),
            hold: Some(Hold::Memory),
            ..rows
        }
    }
}

impl OfTensors for Sum {}

impl Recipe for Sum {
    const FAMILY: &'static str = "sum";
    const RUST_TYPE: &'static str = "Sum";
    const SUMMARY: &'static str = "sums along rows of any function of 1 to 8 matrices, in f32";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// A warp and a block for each row, a broadcast input and one of any strides.
    const CATALOGUE: &'static [&'static str] = &[
        "expr=a",
        "expr=|a, b; alpha| alpha * a * b\nin=f16:(?,1), f32:(0,1)\nout=f16\nby=block",
        "expr=abs(a)\nin=bf16:(?,?)\nout=bf16\nthreads=128",
    ];
    const PROBLEM: &'static [i64] = &[16384, 8192];
    const REDUCES_ROWS: bool = true;
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("run", "--set 'expr=abs(a)' --problem 100x5000")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        rows::plan_as(&self.rows(), self, name, targets)
    }

    fn default_name(&self) -> String {
        format!("{}_{}_{}", Self::FAMILY, self.out, self.by)
    }

    fn base(reader: &mut Reader<'_>) -> Self {
        let Self { mut function, .. } = Self::default();
        reader.read("expr", &mut function);
        Self::new(function, DType::F32)
    }
}
