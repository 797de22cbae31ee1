//! `w4a16`: products of 16-bit activations and 4-bit weights, which are dequantised in registers.

mod decide;
#[cfg(feature = "emit")]
mod emit;
mod launch;
mod pack;
mod reference;
mod tilings;

pub use pack::{PackError, pack, unpack};

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::expr::{Compute, Function};
use crate::plan::{Groups, Plan};
use crate::recipe::field::recipe;
use crate::recipe::product::{Epilogue, Extents};
use crate::recipe::{OfTensors, Recipe, TensorSpec};
use crate::settings::Setting;

recipe! {
    /// `D = epilogue(A @ B, C, ..)`: A `(M,K)` of f16 or bf16, B `(N,K)` of 4 bits, D `(M,N)`. A weight q, 0 to 15, stands for
    /// `(q - z) * s`, rounded to A's type. `group` weights along K share the scale s and the zero point z. Scales are `(K/group,N)`. z is
    /// 8, or with `zeros=true` the lower four bits of an element of Zeros `(K/group,N)`.
    ///
    /// [`pack`] reorders the weights once, ahead of all launches: W `(N,K/8)` holds eight of them in each i32. N is a multiple of 64, K one
    /// of `group`.
    ///
    /// The epilogue is a function as `gemm` has it, of the f32 sum, of C's element and of auxiliary elements.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Recipe, W4a16};
    ///
    /// let plan = W4a16 { zeros: true, ..W4a16::default() }.plan(&Targets::default())?;
    /// let shapes = plan.shapes(&[5, 192, 256]).ok_or("three extents")?;
    /// let operands: Vec<String> = plan.operands().iter().zip(shapes).map(|(o, shape)| format!("{} {shape:?}", o.name)).collect();
    /// assert_eq!(operands, ["A [5, 256]", "W [192, 32]", "Scales [2, 192]", "Zeros [2, 192]", "D [5, 192]"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct W4a16 |this| {
        /// type of A and of the scales: f16, bf16
        dtype: DType, "f16";
        /// type of D, and of C if it is read: f16, bf16, f32; auto: A's
        out: Option<DType>, "f32", if this.out.is_some();
        /// weights along K that share a scale: 32, 64, 128
        group: u32, "32";
        /// whether weights that share a scale have a zero point of their own; else it is 8: true, false
        zeros: bool, "true", if this.zeros;
        /// the function of the accumulator, of C's element and of auxiliary elements, in this order; they are a, b, c, .. unless it names them
        epilogue: Function, "|a, bias| gelu(a + bias)", if !this.epilogue.is_first_input();
        /// type and strides of each auxiliary tensor, (M,N): stride 0 broadcasts a row or column
        aux: Vec<TensorSpec>, "f32:(0,1)", if !this.aux.is_empty();
        /// CTA tile in elements, BMxBNxBK: BM is 16, 32, 48 or 64; BN 64, 128 or 256; BK, what a slice multiplies at a time, 32, 64, 128 or 256
        tile: Extents<3>, "64x128x64";
        /// parts of a CTA's share of K: each has warps and stages of its own, and their sums are added at the end
        slices: u32, "2";
        /// stages of each slice: k-tiles in shared memory at a time
        stages: u32, "3";
        /// CTAs that run at a time. Each has an equal share of the k-tiles of all tiles of D. A second kernel adds the sums of shared tiles
        /// in order. 0: a CTA for each tile. An H200 has 132 multiprocessors
        ctas: u32, "132";
    }
}

impl Default for W4a16 {
    /// Few rows of bf16, groups of 128.
    fn default() -> Self {
        let accumulator = Function::nary(1, |_, x| [x[0]]);
        Self {
            dtype: DType::Bf16,
            out: None,
            group: 128,
            zeros: false,
            epilogue: accumulator.unwrap_or_else(|defect| unreachable!("an input is a function: {defect}")),
            aux: Vec::new(),
            tile: Extents([16, 64, 64]),
            slices: 4,
            stages: 4,
            ctas: 396,
        }
    }
}

/// Operands that products of other families do not have.
const OWN: [&str; 3] = ["W", "Scales", "Zeros"];

impl W4a16 {
    /// The type of D.
    fn out(&self) -> DType {
        self.out.unwrap_or(self.dtype)
    }

    fn epilogue(&self) -> Epilogue<'_> {
        let W4a16 { epilogue: function, aux, .. } = self;
        Epilogue {
            function,
            aux,
            batched: false,
            groups: Groups::None,
            outputs: 1,
            sums: 1,
            compute: Compute::F32,
            others: &OWN,
        }
    }
}

impl OfTensors for W4a16 {}

impl Recipe for W4a16 {
    const FAMILY: &'static str = "w4a16";
    const RUST_TYPE: &'static str = "W4a16";
    const SUMMARY: &'static str = "D = epilogue(A @ B, C, ..), A of 16 bits, B of 4 bits with scales and zero points";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const CATALOGUE: &'static [&'static str] = &[
        "dtype=bf16",
        "dtype=f16\ngroup=32\nzeros=true\nout=f32\nepilogue=|a, bias| gelu(a + bias)\naux=f32:(0,1)\ntile=64x128x64\nslices=2\nstages=3\nctas=132",
    ];
    const PROBLEM: &'static [i64] = &[16, 24576, 7168];
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("run", "--set group=32 --set zeros=true --problem 5x192x96"), ("bench", "--graph --problem 1x24576x7168")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan_as(self, name, targets)
    }

    fn default_name(&self) -> String {
        let usual = Self::default();
        let told = [
            (self.out.is_some_and(|out| out != self.dtype), format!("_{}", self.out())),
            (true, format!("_group{}", self.group)),
            (self.zeros, "_zeros".to_owned()),
            (true, format!("_{}", self.tile)),
            (self.slices != usual.slices, format!("_slices{}", self.slices)),
            (self.stages != usual.stages, format!("_stages{}", self.stages)),
        ];
        let name = format!("{}_{}", Self::FAMILY, self.dtype);
        told.into_iter().filter(|(differs, _)| *differs).fold(name, |name, (_, choice)| name + &choice)
    }
}
