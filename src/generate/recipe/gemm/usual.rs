//! The recipes that most callers begin with: for a type, and with a bias.

use super::{Factors, Gemm};
use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::expr::{Expr, Function};
use crate::plan::ModeStride;
use crate::recipe::TensorSpec;

/// No tensor core multiplies this type.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "gemm does not multiply {0}\n  \
     found:    A and B of {0}\n  \
     required: f16, bf16, or f32, which is multiplied as tf32\n  \
     because:  these are the types that this family has tensor core instructions for\n  \
     help:     sgemm multiplies f32 with all its bits"
)]
pub struct NoFactors(pub DType);

debug_as_display!(NoFactors);

impl TryFrom<DType> for Factors {
    type Error = NoFactors;

    /// f32 is multiplied as tf32.
    fn try_from(dtype: DType) -> Result<Self, NoFactors> {
        Self::ALL.iter().copied().find(|factors| factors.dtype() == dtype).ok_or(NoFactors(dtype))
    }
}

impl Gemm {
    /// The usual recipe for A and B of a type; f32 is multiplied as tf32.
    ///
    /// # Errors
    /// No tensor core multiplies the type.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::Gemm;
    ///
    /// assert_eq!(Gemm::of(DType::Bf16)?.dtype.dtype(), DType::Bf16);
    /// let refused = Gemm::of(DType::I8).unwrap_err().to_string();
    /// assert!(refused.contains("required: f16, bf16, or f32, which is multiplied as tf32"));
    /// # Ok::<(), cutemplate::recipe::gemm::NoFactors>(())
    /// ```
    pub fn of(dtype: DType) -> Result<Self, NoFactors> {
        Ok(Self::default().with_factors(dtype.try_into()?))
    }

    /// The same with the epilogue D = activation(A @ B + bias), one bias of D's type for each column of D.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm::of(DType::Bf16)?.bias(|x| x.gelu()).plan(&Targets::default())?;
    /// let operands: Vec<String> = plan.operands().iter().map(|o| format!("{} {}", o.name, o.stride_text())).collect();
    /// assert_eq!(operands, ["A (?,1)", "B (1,?)", "Bias (0,1)", "D (?,1)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bias<F>(self, activation: F) -> Self
    where
        F: for<'t> FnOnce(Expr<'t>) -> Expr<'t>,
    {
        let function = Function::binary(|a, bias| activation(a + bias)).named(&["a", "bias"]);
        let function = function.unwrap_or_else(|defect| unreachable!("two inputs have two names: {defect}"));
        let mut strides = vec![ModeStride::Broadcast, ModeStride::Unit];
        strides.extend(self.batched.then_some(ModeStride::Broadcast));
        let bias = TensorSpec { dtype: self.out, strides };
        self.with_epilogue(function, vec![bias])
    }
}
