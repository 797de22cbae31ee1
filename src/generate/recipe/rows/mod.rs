//! `rows`: any row program, each row held in the registers of its threads and read from memory once.

mod columns;
mod decide;
#[cfg(feature = "emit")]
mod emit;
mod facts;
mod launch;
mod preset;
mod schedule;
mod tensors;
mod tilings;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::expr::Function;
use crate::plan::Plan;
pub use crate::recipe::TensorArgs as RowsArgs;
pub use decide::plan_as;
#[cfg(feature = "emit")]
pub(crate) use emit::Walk;
pub use preset::Preset;
pub use schedule::Hold;

use crate::recipe::field::recipe;
use crate::recipe::reader::Reader;
use crate::recipe::{OfTensors, Recipe, TensorSpec};
use crate::settings::Setting;

recipe! {
    /// Outputs for each element, row, or group of a row, of a function that reduces along rows: softmax, norms, losses, quantisation.
    ///
    /// Inputs are matrices `(M,N)`, where `(0,1)` is one row for all, or vectors `(M)`. An output is `(M,N)`, `(M)` where the
    /// program has one value for a row, `(M,ceil(N/128))` where it has one for a group of 128, and `(N)` where it reduces
    /// columns. Each row is read once and held in registers, so that `columns` limits its width; `hold=memory` has no limit.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Recipe, Rows};
    ///
    /// let softmax = Rows::new("exp(a - max(a)) / sum(exp(a - max(a)))".parse()?, DType::Bf16);
    /// let plan = softmax.plan(&Targets::default())?;
    /// assert_eq!(plan.operands().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Rows |this| {
        /// the row program of inputs a to h, or as |x, w| names them; several outputs with commas; run-time scalars as in |x; eps|
        function = "expr": Function, "|x, w; eps| { let r = rsqrt(mean(x * x) + eps); x * r * w }";
        /// type and strides of each input, (M,N), or (M) with one value for a row: 1 contiguous, 0 broadcast, ? given at launch
        inputs = "in": Vec<TensorSpec>, "bf16:(?,1), bf16:(0,1)";
        /// type and strides of each output: (M,N) for elements, (M) for rows, (M,ceil(N/128)) for groups of 128
        outputs = "out": Vec<TensorSpec>, "bf16:(?,1)";
        /// the input whose rows an index names: row m is row `Index(m)` of its matrix, which has as many rows as it likes
        gather: Option<String>, "x", if this.gather.is_some();
        /// the widest row, where registers hold it; else the usual one
        columns: u32, "4096";
        /// threads of a row, a power of two; auto to choose
        threads: Option<u32>, "128";
        /// vectors of 16 bytes that a thread has of a row; auto to choose
        chunks: Option<u32>, "4";
        /// CTAs of a row, which reduce through each other's shared memory: 1, 2, 4, 8; auto to choose
        cluster: Option<u32>, "2";
        /// CTAs that share the rows, where columns are reduced: each leaves a result for each column; auto to choose
        ctas: Option<u32>, "264";
        /// tiles of rows in shared memory, where columns are reduced: one that a CTA works on, others on their way; auto to choose
        stages: Option<u32>, "4", if this.stages.is_some();
        /// threads of a CTA, each row with `threads` of them; auto to choose
        block: Option<u32>, "256";
        /// where a row lies between its traversals: registers, shared, or memory, where each reads it again; auto to choose
        hold: Option<Hold>, "memory";
    }
    also
        /// a program by name, for `expr`, `in` and `out` together: softmax, rms_norm, layer_norm, residual_rms_norm, cross_entropy, ..
        "preset", "rms_norm";
        /// element type of a preset's tensors
        "dtype", "bf16";
}

impl Default for Rows {
    /// A softmax of f32.
    fn default() -> Self {
        Self::preset(Preset::Softmax, DType::F32)
    }
}

impl Rows {
    /// Row-major inputs and outputs of elements of one type; f32 for what rows and groups have.
    pub fn new(function: Function, dtype: DType) -> Self {
        let inputs = vec![TensorSpec::row_major(dtype, 2); function.inputs()];
        let outputs = tensors::usual_outputs(&function, &inputs);
        Self {
            function,
            inputs,
            outputs,
            gather: None,
            columns: 8192,
            threads: None,
            chunks: None,
            cluster: None,
            ctas: None,
            stages: None,
            block: None,
            hold: None,
        }
    }

    /// The program of that name, for elements of a type.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::Rows;
    /// use cutemplate::recipe::rows::Preset;
    ///
    /// let norm = Rows { columns: 4096, ..Rows::preset(Preset::ResidualRmsNorm, DType::Bf16) };
    /// assert_eq!((norm.inputs.len(), norm.outputs.len()), (3, 2));
    /// ```
    pub fn preset(preset: Preset, dtype: DType) -> Self {
        preset.rows(dtype)
    }

    /// The same with inputs of these types and strides, and the outputs that go with them.
    #[must_use]
    pub fn with_inputs(self, inputs: Vec<TensorSpec>) -> Self {
        let outputs = tensors::usual_outputs(&self.function, &inputs);
        Self { inputs, outputs, ..self }
    }
}

impl OfTensors for Rows {}

impl Recipe for Rows {
    const FAMILY: &'static str = "rows";
    const RUST_TYPE: &'static str = "Rows";
    const SUMMARY: &'static str = "any row program: softmax, norms, losses, reductions along rows and groups of them";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Reductions over lanes and warps, several rows a warp, groups, results of columns, outputs of each kind, strides of each kind.
    const CATALOGUE: &'static [&'static str] = &[
        "expr=|x, w; eps| { let r = rsqrt(mean(x * x) + eps); x * r * w }\nin=bf16:(?,1), bf16:(0,1)\ncolumns=4096",
        "expr=|x, target| { let m = max(x); (m + log(sum(exp(x - m))) - sum(select(col() == target, x, 0)), argmax(x)) }\n\
         in=f16:(?,1), i32:1\nout=f32:1, i32:1\ncolumns=200",
        "expr=|x, y| { let h = silu(x) * y; let s = max_group128(abs(h)) / 448; (saturate(e4m3, h / s), s) }\n\
         in=bf16:(?,1), bf16:(?,1)\nout=e4m3:(?,1), f32:(?,1)\ncolumns=2048",
        "expr=|x, w, dy; eps| { let r = rsqrt(mean(x * x) + eps); let g = dy * w; \
         ((g - x * (mean(g * x) * r * r)) * r, sum_column(dy * (x * r)), max_column(abs(dy))) }\n\
         in=bf16:(?,1), bf16:(0,1), bf16:(?,1)\nout=bf16:(?,1), f32:1, bf16:1\ncolumns=1000\nctas=4",
        "expr=|x| (x - mean(x), select(any(x > 1), 1, 0), prod(x))\nin=f32:(?,?)\nout=f32:(?,?), f32:?, f64:1\ncolumns=1024",
    ];
    const PROBLEM: &'static [i64] = &[32768, 4096];
    const REDUCES_ROWS: bool = true;
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("run", "--set 'expr=|x| { let e = exp(x - max(x)); e / sum(e) }' --problem 100x5000")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan_as(self, self, name, targets)
    }

    fn default_name(&self) -> String {
        let dtype = self.inputs.iter().chain(&self.outputs).next().map_or("none", |spec| spec.dtype.name());
        format!("{}_{dtype}_{}", Self::FAMILY, self.columns)
    }

    fn base(reader: &mut Reader<'_>) -> Self {
        let (mut dtype, mut preset) = (DType::F32, None);
        reader.read("dtype", &mut dtype);
        reader.read("preset", &mut preset);
        let recipe = Self::preset(preset.unwrap_or(Preset::Softmax), dtype);
        let mut function = recipe.function.clone();
        reader.read("expr", &mut function);
        if preset.is_some() && function == recipe.function {
            return recipe;
        }
        // Tensors that are not set are those of the function.
        let mut inputs = Self::new(function.clone(), dtype).inputs;
        reader.read("in", &mut inputs);
        Self::new(function, dtype).with_inputs(inputs)
    }
}
