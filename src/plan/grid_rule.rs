//! From checked views to a launch: what a kernel family computes, and all that it knows then.

use core::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::BindError;
use crate::plan::{Abi, ParamValue};
use crate::units::Bytes;
use crate::view::ViewRef;

/// Grids and parameter values of one launch, as a family computes them from checked views.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Blocks of each entry of the plan, which run one after the other; `None` for an entry that has nothing to do.
    pub(crate) grids: Vec<Option<[u32; 3]>>,
    /// The parameters, in the order of the fields; whoever launches replaces that of the workspace.
    pub(crate) values: Vec<ParamValue>,
    /// Memory for what one entry leaves for the next. Where it is not 0, the field [`WORKSPACE`](super::WORKSPACE)
    /// holds its address.
    pub(crate) workspace: Bytes,
}

impl Geometry {
    /// For a plan of one entry, without a workspace.
    pub(crate) fn new(grid: [u32; 3], values: Vec<ParamValue>) -> Self {
        Self { grids: vec![Some(grid)], values, workspace: Bytes(0) }
    }
}

/// How a family makes grids and parameters of views, by numbers of a plan that a bundle keeps: a launch needs no plan.
pub trait GridRule: fmt::Debug + Send + Sync {
    /// The numbers.
    fn numbers(&self) -> Value;

    /// The grids and the parameters for views that passed the general checks.
    ///
    /// # Errors
    /// What the family cannot launch.
    fn geometry(&self, abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError>;
}

/// How a family reads the numbers of its rule.
pub(crate) type ReadRule = fn(Value) -> Result<Arc<dyn GridRule>, serde_json::Error>;

/// The numbers of a rule.
pub(crate) fn written(rule: &impl Serialize) -> Value {
    serde_json::to_value(rule).unwrap_or_else(|defect| unreachable!("a struct of numbers is an object: {defect}"))
}

/// The rule of such numbers.
pub(crate) fn read<G: GridRule + DeserializeOwned + 'static>(
    numbers: Value,
) -> Result<Arc<dyn GridRule>, serde_json::Error> {
    Ok(Arc::new(serde_json::from_value::<G>(numbers)?))
}
