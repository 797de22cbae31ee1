//! `elementwise_apply`: any traced function of up to 8 tensors, as in the last part of NVIDIA's CuTe DSL notebook
//! `elementwise_add.ipynb`, on every rung of its ladder.

mod args;
mod decide;
mod emit;
mod function;
mod launch;
mod predict;
mod spec;
mod turn;

use core::fmt;

pub use args::ElementwiseApplyArgs;
pub use spec::{UnknownVariant, Variant};

use crate::arch::Targets;
use crate::dtype::DType;
use crate::expr::{Compute, ExprError, Function};
use crate::layout::Layout;
use crate::plan::{ModeStride, Plan, PlanError};
use crate::recipe::settings::Reader;
use crate::recipe::tensor_spec::SpecList;
use crate::recipe::{Recipe, Setting, Settings, TensorSpec};
use crate::units::Bytes;

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
/// # Ok::<(), cutemplate::plan::PlanError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ElementwiseApply {
    /// What is computed of one element of each input.
    pub function: Function,
    /// The inputs, in the order of the function's.
    pub inputs: Vec<TensorSpec>,
    /// The outputs, in the order of the function's.
    pub outputs: Vec<TensorSpec>,
    /// The type that the function is evaluated in; `None` for f64 where a tensor is f64, i32 where all are integers, else
    /// f32.
    pub compute: Option<Compute>,
    /// The structure of the kernel.
    pub variant: Variant,
    /// Threads of a block; 0 to choose. The variants with a thread-value layout take them from `thr_layout`.
    pub threads: u32,
    /// Bytes of one load or store of the widest type; 0 for 16.
    pub vector: Bytes,
    /// Vectors of each tensor in flight per thread; 0 to choose.
    pub unroll: u32,
    /// For `tv` and `remapped`: thread layout `(ThrM,ThrN) -> tid`.
    pub thr_layout: Layout,
    /// For `tv` and `remapped`: value layout of one thread in bytes of the widest type, `(ValM,ValBytes) -> vid`.
    pub val_layout_bytes: Layout,
}

impl ElementwiseApply {
    /// Row-major matrices of one type.
    pub fn new(function: Function, dtype: DType) -> Self {
        let spec = TensorSpec::row_major(dtype, 2);
        let [thr_layout, val_layout_bytes] = [[4, 64], [16, 16]].map(crate::recipe::elementwise_add::row_major);
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

impl fmt::Debug for ElementwiseApply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, compute, variant, threads, vector, unroll, .. } = self;
        let (inputs, outputs) = (SpecList(self.inputs.clone()), SpecList(self.outputs.clone()));
        write!(f, "ElementwiseApply {{ function: {function}, inputs: [{inputs}], outputs: [{outputs}], compute: ")?;
        match compute {
            Some(compute) => write!(f, "{compute}")?,
            None => write!(f, "auto")?,
        }
        write!(f, ", variant: {variant}, threads: {threads}, vector: {vector}, unroll: {unroll}")?;
        if matches!(variant, Variant::Tv | Variant::Remapped) {
            write!(f, ", thr_layout: {}, val_layout: {}", self.thr_layout, self.val_layout_bytes)?;
        }
        write!(f, " }}")
    }
}

/// What is wrong with an expression, as the reason why a setting cannot be read.
fn one_line(error: ExprError) -> String {
    let ExprError { found, required, help, position, .. } = error;
    let at = position.map_or_else(String::new, |p| format!(" at position {p}"));
    let help = if help.is_empty() { help } else { format!("; {help}") };
    format!("found {found}{at}, required {required}{help}")
}

/// What can be set.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "expr",
        doc: "the function of inputs a to h; several outputs with commas; run-time scalars as in |a, b; alpha|",
        example: "relu(a * b)",
    },
    Setting { key: "dtype", doc: "element type of all tensors that `in` and `out` do not tell", example: "bf16" },
    Setting {
        key: "in",
        doc: "type and strides of each input: 1 contiguous, 0 broadcast, ? given at launch",
        example: "f16:(?,1), f32:(0,1)",
    },
    Setting { key: "out", doc: "type and strides of each output", example: "f16:(?,1)" },
    Setting { key: "compute", doc: "type that the function is evaluated in: auto, f32, f64, i32", example: "f32" },
    Setting {
        key: "variant",
        doc: "auto, or a rung: naive, vectorized, tv, remapped, transposed",
        example: "vectorized",
    },
    Setting { key: "threads", doc: "threads of a block, 0 to choose", example: "256" },
    Setting { key: "vector", doc: "bytes of one load or store of the widest type, 0 for 16", example: "16" },
    Setting { key: "unroll", doc: "vectors of each tensor in flight per thread, 0 to choose", example: "2" },
    Setting { key: "thr", doc: "tv, remapped: thread layout (ThrM,ThrN) -> tid", example: "(4,64):(64,1)" },
    Setting {
        key: "val",
        doc: "tv, remapped: value layout of one thread in bytes, (ValM,ValBytes) -> vid",
        example: "(16,16):(16,1)",
    },
];

/// The kernels of the catalogue: the rungs of the ladder, and the layouts and types that differ in their text.
pub const CATALOGUE: &[&str] = &[
    "expr=a + b\nvariant=naive",
    "expr=a + b\nvariant=vectorized",
    "expr=a + b\nvariant=tv",
    "expr=a + b\nvariant=remapped",
    "expr=relu(a * b)\ndtype=bf16",
    "expr=a + b\nin=f32:(1,?), f32:(?,1)\nout=f32:(?,1)",
    "expr=|a, b; alpha| gelu(alpha * a + b)\nin=f16:(?,?,1), f32:(0,0,1)\nout=f16:(?,?,1)",
];

impl Recipe for ElementwiseApply {
    const FAMILY: &'static str = "elementwise_apply";
    const RUST_TYPE: &'static str = "ElementwiseApply";

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        let dtype = self.outputs.first().map_or("none", |o| o.dtype.name());
        match self.variant {
            Variant::Auto => format!("{}_{dtype}", Self::FAMILY),
            variant => format!("{}_{dtype}_{variant}", Self::FAMILY),
        }
    }

    fn from_settings(settings: &Settings) -> Result<Self, PlanError> {
        let mut reader = Reader::new(Self::FAMILY, SETTINGS, settings);
        let mut dtype = DType::F16;
        reader.read("dtype", &mut dtype);
        let (mut inputs, mut outputs) = (SpecList(Vec::new()), SpecList(Vec::new()));
        reader.read("in", &mut inputs);
        reader.read("out", &mut outputs);
        let mut function = Function::binary(|a, b| a + b);
        reader.read_with("expr", &mut function, |text| text.parse().map_err(one_line));
        let mut recipe = Self::new(function, dtype);
        if settings.get("in").is_some() {
            recipe.inputs = inputs.0;
        }
        if settings.get("out").is_some() {
            recipe.outputs = outputs.0;
        } else if let Some(first) = recipe.inputs.iter().find(|i| !i.strides.contains(&ModeStride::Broadcast)) {
            // Without `out`, the outputs are like the first input that is not broadcast.
            recipe.outputs = vec![first.clone(); recipe.function.outputs()];
        }
        let mut compute = recipe.compute;
        reader.read_with("compute", &mut compute, |text| match text {
            "auto" => Ok(None),
            other => other.parse().map(Some).map_err(one_line),
        });
        recipe.compute = compute;
        reader.read("variant", &mut recipe.variant);
        reader.read("threads", &mut recipe.threads);
        reader.read("vector", &mut recipe.vector.0);
        reader.read("unroll", &mut recipe.unroll);
        reader.read_layout("thr", &mut recipe.thr_layout);
        reader.read_layout("val", &mut recipe.val_layout_bytes);
        reader.finish().map(|()| recipe)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new();
        settings
            .set("expr", self.function.to_string())
            .set("in", SpecList(self.inputs.clone()).to_string())
            .set("out", SpecList(self.outputs.clone()).to_string())
            .set("compute", self.compute.map_or_else(|| "auto".to_owned(), |c| c.to_string()))
            .set("variant", self.variant.to_string())
            .set("threads", self.threads.to_string())
            .set("vector", self.vector.0.to_string())
            .set("unroll", self.unroll.to_string())
            .set("thr", self.thr_layout.to_string())
            .set("val", self.val_layout_bytes.to_string());
        settings
    }
}

// The chapter's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/elementwise.md")]
struct TheElementwiseLadder;
