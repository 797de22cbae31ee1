//! `gemm`: D = A @ B on tensor cores, 16-bit factors, f32 accumulation. Each group of architectures has a text of its own:
//! `cp.async`, `ldmatrix` and `mma.sync` from sm_80 on; TMA, WGMMA, clusters and persistent CTAs on sm_90a.

mod args;
mod decide;
#[cfg(feature = "emit")]
mod emit;
mod launch;
mod predict;
mod tilings;

pub use args::GemmArgs;

use std::sync::Arc;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::plan::{GridRule, Plan, read};
use crate::recipe::Recipe;
use crate::recipe::field::recipe;
use crate::recipe::product::Extents;
use crate::settings::Setting;

recipe! {
    /// `D = A @ B`: A `(M,K)` and B `(K,N)` of f16 or bf16, both contiguous along K; D `(M,N)` of the same type or f32, contiguous
    /// along N, anywhere. Any M, N and K whose rows are aligned to 16 bytes: addresses, leading dimensions of A and B, and K are
    /// multiples of 8 elements.
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
        /// type of A and B: f16, bf16
        dtype: DType, "bf16";
        /// type of D: f32, or that of A and B
        out: DType, "f32";
        /// sm_90a: tile of a CTA in elements, BMxBNxBK; BK is 16, 32 or 64
        tile: Extents<3>, "256x128x64";
        /// sm_90a: k-tiles in shared memory at a time, 2 to 16
        stages: u32, "3";
        /// sm_90a: CTAs of a cluster along M and N, which share what they read: 1 or 2 of each
        cluster: Extents<2>, "1x2";
        /// sm_90a: tiles of a cluster along M that are computed before the next along N
        group: u32, "4";
        /// sm_90a: CTAs that are launched, at most; each computes tiles until there are none left
        ctas: u32, "128";
        /// older architectures: tile of a CTA
        sm80_tile: Extents<3>, "128x256x32";
        /// older architectures: k-tiles in shared memory at a time, 2 to 16
        sm80_stages: u32, "4";
    }
}

impl Default for Gemm {
    fn default() -> Self {
        Self {
            dtype: DType::F16,
            out: DType::F16,
            tile: Extents([128, 256, 64]),
            stages: 4,
            cluster: Extents([2, 1]),
            group: 8,
            ctas: 132,
            sm80_tile: Extents([128, 128, 64]),
            sm80_stages: 3,
        }
    }
}

impl Recipe for Gemm {
    const FAMILY: &'static str = "gemm";
    const RUST_TYPE: &'static str = "Gemm";
    const SUMMARY: &'static str =
        "D = A @ B on tensor cores: f16 or bf16 in, f32 accumulation, any of the three out; A and B K-major";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// Every type, every swizzle, one to three warpgroups that compute, clusters of one, two and four.
    const CATALOGUE: &'static [&'static str] = &[
        "out=f16",
        "out=f32\ntile=64x256x32\ncluster=1x2\nsm80_tile=64x256x32\nsm80_stages=4",
        "dtype=bf16\nout=f32\ntile=192x64x16\nstages=2\ncluster=1x1\nsm80_tile=128x64x16\nsm80_stages=2",
        "dtype=bf16\nout=bf16\ntile=256x96x64\nstages=3\ncluster=2x2\nsm80_tile=64x96x64",
    ];
    const PROBLEM: &'static [i64] = &[4096, 4096, 4096];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan(self, name, targets)
    }

    fn grid_rule(numbers: serde_json::Value) -> Result<Arc<dyn GridRule>, serde_json::Error> {
        read::<launch::Rule>(numbers)
    }

    fn default_name(&self) -> String {
        let usual = Self::default();
        let mut name = format!("{}_{}", Self::FAMILY, self.dtype);
        if self.out != self.dtype {
            name += &format!("_{}", self.out);
        }
        if self.tile != usual.tile {
            name += &format!("_{}", self.tile);
        }
        if self.stages != usual.stages {
            name += &format!("_stages{}", self.stages);
        }
        if self.cluster != usual.cluster {
            name += &format!("_cluster{}", self.cluster);
        }
        name
    }
}
