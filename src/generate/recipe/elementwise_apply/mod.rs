//! `elementwise_apply`: any traced function of up to 8 tensors, as in the last part of NVIDIA's CuTe DSL notebook
//! `elementwise_add.ipynb`, on every rung of its ladder.

mod classes;
mod decide;
#[cfg(feature = "emit")]
mod emit;
mod facts;
mod function;
mod launch;
mod predict;
mod predict_turned;
mod spec;
mod tilings;
mod turn;

pub use crate::recipe::tensor_args::TensorArgs as ElementwiseApplyArgs;
pub(in crate::generate::recipe) use decide::plan_as;
pub use spec::Variant;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::expr::{Compute, Function};
use crate::layout::Layout;
use crate::plan::{ModeStride, Plan};
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::reader::Reader;
use crate::recipe::{OfTensors, Recipe, TensorSpec};
use crate::settings::Setting;
use crate::units::Bytes;

recipe! {
    /// `(y, ..) = function(a, b, ..)`, elementwise, on tensors of one shape with types and strides of their own.
    ///
    /// The function is traced from a closure, evaluated in its compute type, and each output is converted as Rust's `as`
    /// does. Vectors, threads and unrolling are chosen from types and strides, unless they are set.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::Function;
    /// use cutemplate::recipe::{ElementwiseApply, Recipe};
    ///
    /// let mul_relu = ElementwiseApply::new(Function::binary(|a, b| (a * b).relu()), DType::F16);
    /// let plan = mul_relu.plan(&Targets::default())?;
    /// assert_eq!(plan.operands().len(), 3);
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct ElementwiseApply |this| {
        /// the function of inputs a to h, or as |x, bias| names them; several outputs with commas; run-time scalars as in |a, b; alpha|
        function = "expr": Function, "relu(a * b)";
        /// type and strides of each input: 1 contiguous, 0 broadcast, ? given at launch
        inputs = "in": Vec<TensorSpec>, "f16:(?,1), f32:(0,1)";
        /// type and strides of each output
        outputs = "out": Vec<TensorSpec>, "f16:(?,1)";
        /// type that the function is evaluated in: f32, f64, i32; auto for f64 where a tensor is f64, i32 where all are
        /// integers, else f32
        compute: Option<Compute>, "f32";
        /// auto, or a rung: naive, vectorized, tv, remapped, transposed
        variant: Variant, "vectorized";
        /// threads of a block, 0 to choose
        threads: u32, "256";
        /// bytes of one load or store of the widest type, 0 for 16
        vector: Bytes, "16";
        /// vectors of each tensor in flight per thread, 0 to choose
        unroll: u32, "2";
        /// tv, remapped: thread layout (ThrM,ThrN) -> tid, which gives the threads of a block
        thr_layout = "thr": Layout, "(4,64):(64,1)", if matches!(this.variant, Variant::Tv | Variant::Remapped);
        /// tv, remapped: value layout of one thread in bytes, (ValM,ValBytes) -> vid
        val_layout_bytes = "val": Layout, "(1,16):(16,1)", if matches!(this.variant, Variant::Tv | Variant::Remapped);
    }
    also
        /// element type of all tensors that `in` and `out` do not give
        "dtype", "bf16";
}

as_displayed!(Variant);

/// Row-major `(rows,cols):(cols,1)`.
fn row_major([rows, cols]: [i64; 2]) -> Layout {
    let layout = tilings::numbered([rows, cols], 1);
    layout.unwrap_or_else(|defect| unreachable!("({rows},{cols}):({cols},1) is a layout: {defect}"))
}

impl ElementwiseApply {
    /// Row-major matrices of one type.
    pub fn new(function: Function, dtype: DType) -> Self {
        let spec = TensorSpec::row_major(dtype, 2);
        let [thr_layout, val_layout_bytes] = [[4, 64], [1, 16]].map(row_major);
        Self {
            inputs: vec![spec.clone(); function.inputs()],
            outputs: vec![spec; function.outputs()],
            function,
            compute: None,
            variant: Variant::Auto,
            threads: 0,
            vector: Bytes(0),
            unroll: 0,
            thr_layout,
            val_layout_bytes,
        }
    }
}

impl Default for ElementwiseApply {
    /// `a + b` on row-major f16 matrices.
    fn default() -> Self {
        Self::new(Function::binary(|a, b| a + b), DType::F16)
    }
}

impl OfTensors for ElementwiseApply {}

impl Recipe for ElementwiseApply {
    const FAMILY: &'static str = "elementwise_apply";
    const RUST_TYPE: &'static str = "ElementwiseApply";
    const SUMMARY: &'static str = "any function of 0 to 8 tensors, elementwise, with types and strides of their own";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// The rungs of the ladder, and the layouts and types that differ in their text.
    const CATALOGUE: &'static [&'static str] = &[
        "expr=a + b\nvariant=naive",
        "expr=a + b\nvariant=vectorized",
        "expr=a + b\nvariant=tv",
        "expr=a + b\nvariant=remapped",
        "expr=relu(a * b)\ndtype=bf16",
        "expr=a + b\nin=f32:(1,?), f32:(?,1)\nout=f32:(?,1)",
        "expr=|a, b; alpha| gelu(alpha * a + b)\nin=f16:(?,?,1), f32:(0,0,1)\nout=f16:(?,?,1)",
    ];
    const PROBLEM: &'static [i64] = &[16384, 8192];
    /// The variants that any tensors allow.
    const RUNGS: &'static [&'static str] = &["naive", "vectorized", "tv", "remapped"];
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("run", "--set 'expr=relu(a * b)' --set 'in=f32:(1,?), f32:(?,1)' --output y.npy")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        plan_as(self, self, "Y", name, targets)
    }

    fn default_name(&self) -> String {
        let dtype = self.outputs.first().map_or("none", |o| o.dtype.name());
        match self.variant {
            Variant::Auto => format!("{}_{dtype}", Self::FAMILY),
            variant => format!("{}_{dtype}_{variant}", Self::FAMILY),
        }
    }

    fn base(reader: &mut Reader<'_>) -> Self {
        let mut dtype = DType::F16;
        reader.read("dtype", &mut dtype);
        // Inputs and outputs that are not set are as many as the function's.
        let Self { mut function, .. } = Self::default();
        reader.read("expr", &mut function);
        let mut recipe = Self::new(function, dtype);
        reader.read("in", &mut recipe.inputs);
        // Without `out`, the outputs are like the first input that is not broadcast.
        if let Some(first) = recipe.inputs.iter().find(|i| !i.strides.contains(&ModeStride::Broadcast)) {
            recipe.outputs = vec![first.clone(); recipe.function.outputs()];
        }
        recipe
    }
}

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/elementwise.md")]
struct TheElementwiseLadder;
