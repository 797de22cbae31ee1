//! What a plan makes of conflicts.

use core::fmt;
use core::str::FromStr;

use super::{Proposal, SharedAnalysis, SharedTensor};
use crate::plan::Code;
use crate::plan::checks::Checks;

/// Whether lanes that meet in a bank are an error, a warning, or a fact of the plan only.
///
/// ```
/// use cutemplate::plan::ConflictLevel;
/// assert_eq!("deny".parse(), Ok(ConflictLevel::Deny));
/// assert_eq!(ConflictLevel::default().to_string(), "warn");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConflictLevel {
    /// The recipe is refused.
    Deny,
    /// The plan has a warning.
    #[default]
    Warn,
    /// The plan says what was counted, and no more.
    Allow,
}

impl fmt::Display for ConflictLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConflictLevel::Deny => "deny",
            ConflictLevel::Warn => "warn",
            ConflictLevel::Allow => "allow",
        })
    }
}

/// The text names no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no level of conflicts; there are deny, warn, allow")]
pub struct UnknownLevel(pub String);

impl FromStr for ConflictLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "deny" => Ok(ConflictLevel::Deny),
            "warn" => Ok(ConflictLevel::Warn),
            "allow" => Ok(ConflictLevel::Allow),
            other => Err(UnknownLevel(other.to_owned())),
        }
    }
}

/// Analyses a tensor of a plan and pushes what the level asks for. `help` writes a proposal as settings: `swizzle=Sw<5,0,5>`,
/// or says what else helps where no layout is better.
pub(crate) fn judge(
    checks: &mut Checks,
    tensor: &SharedTensor,
    level: ConflictLevel,
    help: impl FnOnce(Option<&Proposal>) -> String,
) -> Option<SharedAnalysis> {
    let analysis = match tensor.analyze() {
        Ok(analysis) => analysis,
        Err(error) => {
            checks.push(error.code, error.found, error.required, &error.because, error.help);
            return None;
        }
    };
    let extra = analysis.extra();
    if extra == 0 || level == ConflictLevel::Allow {
        return Some(analysis);
    }
    let best = tensor.proposals(1).unwrap_or_default().into_iter().find(|proposal| proposal.extra < extra);
    let bad: Vec<String> = analysis.accesses.iter().filter(|a| a.extra() > 0).map(ToString::to_string).collect();
    let first = analysis.accesses.iter().find_map(|access| access.conflict.as_ref());
    let found = format!(
        "{} {}: {}{}",
        analysis.name,
        analysis.layout,
        bad.join("; "),
        first.map_or_else(String::new, |conflict| format!("; {conflict}"))
    );
    let all: u64 = analysis.accesses.iter().map(|access| access.wavefronts).sum();
    let required = format!("{} wavefronts for all accesses of a block to the tensor, not {all}", all - extra);
    let because = "in one pass a bank gives one word of 4 bytes, to any number of lanes; every further pass makes the warp wait \
                   (CUDA C++ Best Practices Guide, \"Shared Memory and Memory Banks\")";
    let help = help(best.as_ref());
    match level {
        ConflictLevel::Deny => checks.push(Code::BankConflict, found, required, because, help),
        _ => checks.warn(Code::BankConflict, found, required, because, help),
    }
    Some(analysis)
}
