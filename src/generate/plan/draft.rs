//! A kernel as its family decides it: every field that a launch needs, written once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::{Name, interned, path, word};
use crate::arch::Targets;
use crate::plan::{Abi, Entry, KernelPlan, Operand, ParamStruct, Plan, ProblemShape, Rule};
use crate::settings::Settings;

/// Operands, parameters, entries, the shape of problems, and the rule for grids and parameters. A family fills one in; the plan
/// and the bundle keep it as an [`Abi`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The kernel family, as `cutemplate list` names it.
    #[serde(deserialize_with = "interned")]
    pub family: Name,
    /// The Rust type of the recipe: its name in [`crate::recipe`](mod@crate::recipe), or its path from its crate on, as in
    /// [`RUST_TYPE`](crate::recipe::Recipe::RUST_TYPE).
    #[serde(deserialize_with = "path")]
    pub rust_type: Name,
    /// The name of the kernel: of the entry that computes, and of its files.
    #[serde(deserialize_with = "word")]
    pub name: String,
    /// The recipe in its `Debug` form.
    pub recipe: String,
    /// The recipe as settings, from which the same recipe can be made again.
    pub settings: Settings,
    /// The architectures it was checked for.
    pub targets: Targets,
    /// The tensors, in argument order.
    pub operands: Vec<Operand>,
    /// The parameter struct.
    pub params: ParamStruct,
    /// The `__global__` functions, in the order in which a launch runs them. One has the name of the kernel, the others have a
    /// suffix behind it.
    pub entries: Vec<Entry>,
    /// The names of the run-time scalars, in order.
    pub scalars: Vec<String>,
    /// How the shapes of the tensors belong together, where they do.
    pub problem: Option<ProblemShape>,
    /// The arguments of a launch as its user writes them, for the help of a refusal.
    pub call: Call,
    /// How a launch makes grids and parameters of views.
    pub rule: Rule,
}

/// The arguments of a launch as its user writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The views: `GemmArgs::new(a, b, d).c(c)`.
    pub views: String,
    /// The scalars behind them: `.scalar(alpha)`.
    pub scalars: String,
}

impl Draft {
    /// The plan, without facts.
    ///
    /// # Safety
    /// A launch of the plan's kernel is a safe call. So this holds for all views and scalars that [`Abi::bind_with`] accepts, with the
    /// grids and parameters that the rule makes. The text's entries touch the views, the workspace and their own shared
    /// memory, and nothing else. They write no view that is read, and their threads do not race. The proofs of the tiling and the
    /// rule's bounds are the reasons.
    pub unsafe fn plan(self, kernel: impl KernelPlan + 'static) -> Plan {
        Plan {
            abi: Abi::new(self),
            shared: Vec::new(),
            warnings: Vec::new(),
            facts: Vec::new(),
            kernel: Arc::new(kernel),
            texts: Vec::new(),
        }
    }
}
