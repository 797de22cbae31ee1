//! Recipes: what a user asks for. One file per kernel family, and the registry that everything else derives from.

pub mod elementwise_add;
pub mod elementwise_apply;
pub(crate) mod field;
pub mod gemm;
pub mod product;
mod reader;
mod registry;
pub mod sgemm;
mod tensor_spec;

use core::fmt;

pub use elementwise_add::ElementwiseAdd;
pub use elementwise_apply::ElementwiseApply;
pub use gemm::Gemm;
pub use registry::{FAMILIES, Family, UnknownFamily, family};
pub use sgemm::Sgemm;
pub use tensor_spec::{SpecError, TensorSpec};

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::plan::Plan;
use crate::settings::Settings;

/// A kernel recipe: a plain, printable struct that a plan can be made of.
pub trait Recipe: fmt::Debug + Clone + PartialEq + Send + Sync + Sized + 'static {
    /// The name of the kernel family, as in [`FAMILIES`].
    const FAMILY: &'static str;

    /// The name of this type in [`crate::recipe`].
    const RUST_TYPE: &'static str;

    /// Runs every check and decides everything. `name` becomes the name of the kernel and of its files.
    ///
    /// # Errors
    /// Every reason why the recipe would not be a right kernel.
    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError>;

    /// The same under the recipe's default name.
    ///
    /// # Errors
    /// As [`Recipe::plan_as`].
    fn plan(&self, targets: &Targets) -> Result<Plan, PlanError> {
        self.plan_as(&self.default_name(), targets)
    }

    /// A name that tells the family and the main choices: `elementwise_add_f16`.
    fn default_name(&self) -> String;

    /// The recipe with the given settings; the rest keeps its default.
    ///
    /// # Errors
    /// Unknown keys, with the nearest known one, and values that cannot be read; all at once.
    fn from_settings(settings: &Settings) -> Result<Self, PlanError>;

    /// All settings, from which [`Recipe::from_settings`] makes the same recipe.
    fn settings(&self) -> Settings;
}
