//! `top_k`: the largest elements of each row with their columns, each row read from memory once.

mod decide;
#[cfg(feature = "emit")]
mod emit;
mod reference;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::dtype::DType;
use crate::plan::Plan;
use crate::recipe::field::recipe;
use crate::recipe::{OfTensors, Recipe};
use crate::settings::Setting;

/// The most results of a row.
pub const MOST: u32 = 128;

recipe! {
    /// The `k` largest elements of each row of X `(M,N):(?,1)`, in descending order: `Values (M,k)` of X's type, and their columns
    /// `Indices (M,k)` in i32. Rows have any width from `k` on.
    ///
    /// Of equal elements the lower column comes first; -0 equals 0. NaN beats every number, and NaNs are equal.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Recipe, TopK};
    ///
    /// let plan = TopK { k: 8, ..Default::default() }.plan(&Targets::default())?;
    /// assert_eq!((plan.threads(), plan.operands().len()), (128, 3));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct TopK |this| {
        /// element type of X: f16, bf16, f32
        dtype: DType, "bf16";
        /// results of a row, 1 to 128
        k: u32, "64";
        /// threads of a row, a multiple of 32 and at least `k`; auto to choose
        threads: Option<u32>, "128";
        /// vectors of 16 bytes that a thread has of a row at a time; auto to choose
        chunks: Option<u32>, "4";
    }
}

impl Default for TopK {
    /// 64 of f32.
    fn default() -> Self {
        Self { dtype: DType::F32, k: 64, threads: None, chunks: None }
    }
}

impl OfTensors for TopK {}

impl Recipe for TopK {
    const FAMILY: &'static str = "top_k";
    const RUST_TYPE: &'static str = "TopK";
    const SUMMARY: &'static str = "the k largest elements of each row and their columns, k up to 128";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const CATALOGUE: &'static [&'static str] = &["dtype=bf16"];
    const PROBLEM: &'static [i64] = &[32768, 4096];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("run", "--set k=5 --problem 20x1000")];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        decide::plan_as(self, name, targets)
    }

    fn default_name(&self) -> String {
        format!("{}_{}_{}", Self::FAMILY, self.dtype, self.k)
    }
}
