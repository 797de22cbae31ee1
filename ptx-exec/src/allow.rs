//! Findings that a launch allows.

use core::fmt;

use crate::{Finding, FindingKind, Site};

/// A rule that allows findings of a launch. A finding must match every condition of the rule. Allowed findings go to
/// [`Report::allowed`](crate::Report) and do not fail the launch. A launch that stops early allows no findings, since its rest is
/// unchecked.
///
/// ```
/// use ptx_exec::FindingKind;
/// use ptx_exec::Allow;
///
/// let rows = Allow::source("flash.cu", 412).kind(FindingKind::Uninitialized).because("rows beyond the sequence are dropped");
/// assert_eq!(rows.to_string(), "exec-uninitialized at flash.cu:412 (rows beyond the sequence are dropped)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    kind: Option<FindingKind>,
    entry: Option<String>,
    source: Option<(String, u32)>,
    ptx_line: Option<u32>,
    because: String,
}

impl Allow {
    /// Findings at a line of the source. The file is named as in the PTX's `.file`, or by the last parts of its path. The line may be
    /// that of either access of a race, and any line of a chain of inlined calls.
    pub fn source(file: impl Into<String>, line: u32) -> Allow {
        Allow { source: Some((file.into(), line)), ..Allow::default() }
    }

    /// Findings at a line of the PTX. The line may be that of either access of a race.
    pub fn ptx_line(line: u32) -> Allow {
        Allow { ptx_line: Some(line), ..Allow::default() }
    }

    /// Findings of entries whose name contains this text.
    pub fn entry(part: impl Into<String>) -> Allow {
        Allow { entry: Some(part.into()), ..Allow::default() }
    }

    /// Adds the conditions of `other`.
    #[must_use]
    pub(super) fn and(self, other: Allow) -> Allow {
        Allow {
            kind: self.kind.or(other.kind),
            entry: self.entry.or(other.entry),
            source: self.source.or(other.source),
            ptx_line: self.ptx_line.or(other.ptx_line),
            because: self.because,
        }
    }

    /// Only findings of this kind.
    #[must_use]
    pub fn kind(mut self, kind: FindingKind) -> Allow {
        self.kind = Some(kind);
        self
    }

    /// The reason, for readers of the report.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Allow {
        self.because = why.into();
        self
    }

    /// Whether the rule matches a finding, by its first place.
    pub fn allows(&self, finding: &Finding) -> bool {
        let other = finding.other.as_ref().and_then(|other| other.site.clone());
        let sites: Vec<Site> = finding.site.clone().into_iter().chain(other).collect();
        self.allows_kind(finding) && self.allows_place(&sites)
    }

    pub(super) fn allows_kind(&self, finding: &Finding) -> bool {
        self.kind.is_none_or(|kind| kind == finding.kind)
            && self.entry.as_ref().is_none_or(|part| finding.entry.as_ref().is_some_and(|name| name.contains(part)))
    }

    /// Whether the rule matches the place of one of the two accesses.
    pub(super) fn allows_place(&self, sites: &[Site]) -> bool {
        self.ptx_line.is_none_or(|line| sites.iter().any(|site| site.ptx_line == line))
            && self.source.as_ref().is_none_or(|(file, line)| {
                let fits = |site: &Site| site.source.iter().any(|of| of.line == *line && is_same_file(&of.file, file));
                sites.iter().any(fits)
            })
    }
}

/// Whether a path is `file`, or ends in `/file`.
fn is_same_file(path: &str, file: &str) -> bool {
    path.strip_suffix(file)
        .is_some_and(|before| !file.is_empty() && (before.is_empty() || before.ends_with(['/', '\\'])))
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.map_or("findings", FindingKind::as_str))?;
        if let Some((file, line)) = &self.source {
            write!(f, " at {file}:{line}")?;
        }
        if let Some(line) = self.ptx_line {
            write!(f, " at PTX line {line}")?;
        }
        if let Some(entry) = &self.entry {
            write!(f, " in {entry}")?;
        }
        if !self.because.is_empty() {
            write!(f, " ({})", self.because)?;
        }
        Ok(())
    }
}
