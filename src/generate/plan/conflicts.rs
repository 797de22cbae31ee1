//! How a plan treats bank conflicts.

use crate::diagnostic::Code;
use crate::model::{Proposal, SharedAnalysis, SharedTensor};
use crate::plan::checks::Checks;
use crate::settings::named;

named! {
    /// Whether lanes that meet in a bank are an error, a warning, or a fact of the plan only.
    ///
    /// ```
    /// use cutemplate::plan::ConflictLevel;
    /// assert_eq!("deny".parse(), Ok(ConflictLevel::Deny));
    /// assert_eq!(ConflictLevel::default().to_string(), "warn");
    /// ```
    #[derive(Default)]
    ConflictLevel, "level of conflicts":
    /// The recipe is refused.
    Deny = "deny",
    /// The plan has a warning.
    #[default]
    Warn = "warn",
    /// The plan only reports the counts.
    Allow = "allow",
}

/// Analyses a tensor of a plan and pushes the diagnostics of the level. `help` writes a proposal as settings,
/// `swizzle=Sw<5,0,5>`, or other advice if no layout is better.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Targets;
    use crate::diagnostic::{Diagnostic, Severity};
    use crate::model::{SharedOp, WarpAccess};
    use crate::units::Bytes;

    /// One warp that touches element `index(lane, step)` of a tile of (32,32) floats.
    fn access(op: SharedOp, steps: i64, index: impl Fn(i64, i64) -> i64) -> WarpAccess {
        WarpAccess::new("access", op, Bytes(4), 32, steps, |thread, step| Some(index(thread, step)))
    }

    fn tile() -> SharedTensor {
        SharedTensor::new("sA", Bytes(4), "(32,32):(32,1)".parse().expect("a layout")).expect("a tensor")
    }

    /// Written along rows and read with lanes down the columns.
    fn transpose() -> SharedTensor {
        tile().with_access(access(SharedOp::Store, 32, |lane, step| step + 32 * lane)).with_access(access(
            SharedOp::Load,
            32,
            |lane, step| lane + 32 * step,
        ))
    }

    /// The diagnostics of a level for a tile with conflicts: errors, warnings.
    fn judged(level: ConflictLevel) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut checks = Checks::new("Tile", &Targets::default());
        let help = |best: Option<&Proposal>| best.map_or_else(|| "nothing".into(), |best| format!("swizzle={best}"));
        let analysis = judge(&mut checks, &transpose(), level, help).expect("an analysis");
        assert_eq!(analysis.extra(), 992);
        let warnings = checks.take_warnings();
        (checks.finish(Some(())).err().map_or_else(Vec::new, |error| error.diagnostics().to_vec()), warnings)
    }

    #[test]
    fn a_level_decides_what_becomes_of_conflicts() {
        assert_eq!(judged(ConflictLevel::Allow), (vec![], vec![]));
        let (errors, none) = judged(ConflictLevel::Deny);
        let (nothing, warnings) = judged(ConflictLevel::Warn);
        assert_eq!((none, nothing), (vec![], vec![]));
        let ([error], [warning]) = (&errors[..], &warnings[..]) else { panic!("one each: {errors:?} {warnings:?}") };
        assert_eq!(Diagnostic { severity: Severity::Error, ..warning.clone() }, *error);
        expect_test::expect![[r#"
        warning[CT023]: threads of a warp meet in a bank of shared memory
          recipe:   Tile for sm_80, sm_90a
          found:    sA (32,32):(32,1): access: 4 B a lane, 32 requests of 32.00 wavefronts (worst 32), least 1.00; warp 0, step 0: 32 words of bank 0 at once: word 0 for lane 0; word 32 for lane 1; word 64 for lane 2; word 96 for lane 3; and 28 more
          required: 64 wavefronts for all accesses of a block to the tensor, not 1056
          because:  in one pass a bank gives one word of 4 bytes, to any number of lanes; every further pass makes the warp wait (CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks")
          help:     swizzle=Sw<5,0,5>"#]].assert_eq(&warning.to_string());
        assert!(error.to_string().starts_with("error[CT023]: "));
        assert!(!warning.one_line().contains('\n'));
    }

    #[test]
    fn what_cannot_be_analysed_is_an_error_at_every_level() {
        let mut checks = Checks::new("Tile", &Targets::default());
        let outside = tile().with_access(access(SharedOp::Load, 1, |lane, _| 1000 + lane));
        assert_eq!(judge(&mut checks, &outside, ConflictLevel::Allow, |_| String::new()), None);
        let errors = checks.finish(Some(())).expect_err("an error").diagnostics().to_vec();
        assert_eq!(errors[0].code, Code::InBounds);
    }
}
