//! The meaning of a kernel: what its outputs must be. A family says it, and everything that verifies or measures reads it.

use core::fmt;
use core::ops::Range;

use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::expr::{ExprError, Outputs};
use crate::plan::{Abi, Operand, Product};
use crate::tensor::Tensor;
use crate::view::Access;

/// What the outputs of a kernel must be for given inputs. Each family brings its own.
///
/// The references of products, elementwise functions and row sums are made with this trait alone. A family whose outputs are
/// functions of coordinates takes [`Each`](crate::reference::Each).
pub trait Reference: fmt::Debug + Send + Sync {
    /// The values that are right, for inputs of these shapes: one item for each group of outputs that are compared together.
    /// Together the groups have each output once, in the order of the operands that are written.
    ///
    /// # Errors
    /// The inputs do not fit together, or the baseline says nothing about them.
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError>;

    /// The value of a run-time scalar, by number from 0, where nothing is said of it; `None` where it has to be said.
    fn usual_scalar(&self, _: usize) -> Option<f64> {
        None
    }

    /// Operations of a launch on the problem of these extents, as a rate in FLOP/s counts them; `None` where only bytes count.
    fn flop(&self, _extents: &[i64]) -> Option<f64> {
        None
    }

    /// Bytes that a launch has to read and write, where that is not each element of each operand once: a lookup reads some rows of its
    /// table. A device copy of as many bytes is the baseline of kernels that are no products.
    fn bytes(&self, _extents: &[i64]) -> Option<u64> {
        None
    }

    /// The product of matrices that it is, where it is one: libraries have a baseline of it.
    fn product(&self) -> Option<&Product> {
        None
    }
}

/// One launch, as its outputs are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a, 'c> {
    /// The kernel.
    pub abi: &'a Abi,
    /// What it reads, in the order of its operands.
    pub inputs: &'c [&'a Tensor],
    /// The values of its run-time scalars.
    pub scalars: &'c [f64],
    /// The shapes of what it writes, in the order of its operands; empty where they are not known.
    pub written: &'c [Vec<i64>],
    /// Sums of another implementation, which take the place of sums computed here.
    pub baseline: Option<Baseline<'a>>,
}

impl<'a> Case<'a, '_> {
    /// The operands that are read.
    pub fn read(&self) -> impl Iterator<Item = &'a Operand> + use<'a> {
        self.abi.operands().iter().filter(|operand| operand.access == Access::Read)
    }

    /// Refuses a baseline: for kernels that are no products of matrices.
    ///
    /// # Errors
    /// There is one.
    pub fn alone(&self) -> Result<(), ReferenceError> {
        match self.baseline {
            None => Ok(()),
            Some(_) => Err(ReferenceError::Baseline { found: "a product, and a kernel that computes none".to_owned() }),
        }
    }

    /// Inputs that are not the kernel's.
    pub fn unfit(&self, found: impl Into<String>) -> ReferenceError {
        ReferenceError::Inputs { family: self.abi.family().to_owned(), found: found.into() }
    }
}

/// Another implementation's product of matrices, in f32 and any order, each addition and multiplication rounded or fused.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// A @ B, `(M,N)`, with batches `(M,N,L)`.
    pub product: &'a Tensor,
    /// `|A| @ |B|`, of the same shape.
    pub sizes: &'a Tensor,
}

/// The accepted values at each coordinate of outputs of one shape.
pub trait Accepted: Sync {
    /// How many outputs these are.
    fn outputs(&self) -> usize;

    /// Their shape; `None` where nothing says so.
    fn shape(&self) -> Option<Vec<i64>>;

    /// How many coordinates are best looked at one after the other.
    fn grain(&self) -> u64;

    /// From the `index`-th coordinate on, in row-major order.
    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_>;

    /// Whether a part of the outputs is right, as far as that is seen without evaluating each element.
    fn is_right(&self, _outputs: &[&Tensor], _part: &Range<u64>) -> bool {
        false
    }
}

/// Coordinate after coordinate.
pub trait Cursor {
    /// The accepted values at the next coordinate, one for each output.
    ///
    /// # Errors
    /// The function cannot be evaluated there.
    fn accepted(&mut self) -> Result<Outputs, ExprError>;

    /// Whether a kernel writes that coordinate: a row of no group keeps what it held.
    fn is_written(&self) -> bool {
        true
    }

    /// The inputs of that coordinate, for a report.
    fn inputs(&self) -> Vec<InputElement>;

    /// Whether an operation that passes payloads on could have made a NaN of these bits there.
    fn carries(&self, dtype: DType, bits: u64) -> bool;
}

/// One element of an input.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputElement {
    /// The operand.
    pub name: String,
    /// Its type.
    #[serde(serialize_with = "dtype_name")]
    pub dtype: DType,
    /// Its bits.
    pub bits: u64,
}

pub(crate) fn dtype_name<S: serde::Serializer>(dtype: &DType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(dtype.name())
}

/// The reason why there is no reference.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The inputs are not those of the kernel.
    #[error("these are not the inputs of a kernel of `{family}`: {found}")]
    Inputs {
        /// The family.
        family: String,
        /// The given inputs.
        found: String,
    },
    /// The outputs are not those of the kernel.
    #[error("these are not the outputs of a kernel of `{family}`: found {found}, required {required}")]
    Outputs {
        /// The family.
        family: String,
        /// The given outputs.
        found: String,
        /// The outputs that the kernel writes.
        required: String,
    },
    /// The family does not declare the function of its kernels.
    #[error("the family `{family}` does not say what its kernels compute")]
    Family {
        /// The family.
        family: String,
    },
    /// The other implementation's result says nothing about the kernel.
    #[error("the baseline cannot be compared with: found {found}")]
    Baseline {
        /// Its contents.
        found: String,
    },
}

debug_as_display!(ReferenceError);
