//! `gemm`: D = A @ B on tensor cores, f16 in, f32 accumulation. Each group of architectures has a text of its own: `cp.async`,
//! `ldmatrix` and `mma.sync` from sm_80 on, TMA and WGMMA on sm_90a.

mod args;
mod decide;
mod emit;
mod launch;
mod predict;
mod tilings;

pub use args::GemmArgs;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::recipe::field::recipe;
use crate::recipe::product::Extents;
use crate::settings::Setting;

recipe! {
    /// `D = A @ B`: A `(M,K)` and B `(K,N)` of f16, both contiguous along K; D `(M,N)` of f16 or f32, contiguous along N. Any M, N
    /// and K whose rows are aligned to 16 bytes: addresses, leading dimensions of A and B, and K are multiples of 8 elements.
    ///
    /// Products are exact, sums are f32 in an order of the tensor cores', and each element of D is rounded once.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm { out: DType::F32, ..Default::default() }.plan(&Targets::default())?;
    /// // One recipe, one typed launch; a text, an entry and parameters for each group of architectures.
    /// assert_eq!((plan.operands().len(), plan.parts().len()), (3, 2));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct Gemm |this| {
        /// type of D: f16, f32
        out: DType, "f32";
        /// tile of a CTA in elements, BMxBNxBK; BK is 16, 32 or 64
        tile: Extents<3>, "128x256x64";
        /// k-tiles in shared memory at a time, 2 to 16
        stages: u32, "3";
    }
}

impl Default for Gemm {
    fn default() -> Self {
        Self { out: DType::F16, tile: Extents([128, 128, 64]), stages: 3 }
    }
}

impl Recipe for Gemm {
    const FAMILY: &'static str = "gemm";
    const RUST_TYPE: &'static str = "Gemm";
    const SUMMARY: &'static str =
        "D = A @ B on tensor cores: f16 in, f32 accumulation, f16 or f32 out; A and B K-major";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Both types of D, and every swizzle.
    const CATALOGUE: &'static [&'static str] =
        &["out=f16", "out=f32\ntile=64x256x32\nstages=4", "out=f32\ntile=128x64x16\nstages=2"];
    const PROBLEM: &'static [i64] = &[4096, 4096, 4096];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        let usual = Self::default();
        let mut name = format!("{}_{}", Self::FAMILY, self.out);
        if self.tile != usual.tile {
            name += &format!("_{}", self.tile);
        }
        if self.stages != usual.stages {
            name += &format!("_stages{}", self.stages);
        }
        name
    }
}
