//! Findings: the thread that breaks a rule, the memory it accesses, the line in the PTX and in the source, and the rule.

mod kind;
mod rule;
mod rules;
mod site;

use core::fmt;

use crate::Target;
use crate::text::field;

pub use kind::FindingKind;
pub use rule::Rule;
pub use site::{Origin, Other, Path, Site, SourceLine, Who};

/// Further places that a finding's text names.
const NAMED: usize = 4;

/// One fault of the kernel, at its first occurrence. Faults that break the same rule at the same line, or at the same pair of lines,
/// have one cause and are one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of fault.
    pub kind: FindingKind,
    /// The rule that it breaks.
    pub rule: Rule,
    /// The entry; `None` where the kernel has only one.
    pub entry: Option<String>,
    /// The thread; `None` where the fault was noticed only afterwards.
    pub who: Option<Who>,
    /// The instruction.
    pub site: Option<Site>,
    /// Whether the access is a write.
    pub write: bool,
    /// Bytes of the access; 0 without an access.
    pub bytes: u64,
    /// The memory that is accessed.
    pub target: Option<Target>,
    /// The other access of a race.
    pub other: Option<Box<Other>>,
    /// Where an uninitialised value comes from; `None` where it was a register that no instruction has written.
    pub origin: Option<Box<Origin>>,
    /// Details: where threads wait, or the words of a sanitizer.
    pub detail: String,
    /// Number of occurrences, over all threads.
    pub count: u64,
    /// Number of threads with this fault; 0 where unknown.
    pub threads: u64,
    /// Number of blocks of these threads; 0 where unknown.
    pub blocks: u64,
    /// Number of instructions with this cause, or of pairs of instructions for a race; 0 where unknown.
    pub places: u64,
    /// PTX lines of the next few of these places, each with the line of the other access or 0.
    pub further: Vec<[u32; 2]>,
}

impl Finding {
    /// A finding that names only its rule; the caller fills in the rest.
    pub(crate) fn new(rule: impl Into<Rule>) -> Finding {
        let rule = rule.into();
        Finding {
            kind: rule.kind(),
            rule,
            entry: None,
            who: None,
            site: None,
            write: false,
            bytes: 0,
            target: None,
            other: None,
            origin: None,
            detail: String::new(),
            count: 1,
            threads: 0,
            blocks: 0,
            places: 0,
            further: Vec::new(),
        }
    }

    /// The line of the source, where it is known.
    pub fn line(&self) -> Option<&SourceLine> {
        site::line(&self.site)
    }

    /// Further lines: the other occurrences of the same cause.
    fn counts(&self) -> String {
        let mut text = String::new();
        if self.count > 1 {
            text.push_str(&format!("\nthe first of {} times", self.count));
            if self.threads > 0 {
                let (threads, blocks) = (many(self.threads, "thread"), many(self.blocks, "block"));
                text.push_str(&format!(", by {threads} of {blocks}"));
            }
        }
        if !self.further.is_empty() {
            let pair = |[at, other]: &[u32; 2]| {
                if *other == 0 { at.to_string() } else { format!("{at} with {other}") }
            };
            let named: Vec<String> = self.further.iter().take(NAMED).map(pair).collect();
            let more = self.places.saturating_sub(1 + named.len() as u64);
            let more = if more > 0 { format!(" and {}", many(more, "further place")) } else { String::new() };
            text.push_str(&format!("\nalso at PTX lines {}{more}", named.join(", ")));
        }
        text
    }

    fn found(&self) -> String {
        let mut text = self.who.map_or_else(|| "a thread".to_owned(), |who| who.to_string());
        if let Some(entry) = &self.entry {
            text.push_str(&format!(" of {entry}"));
        }
        if let Some(target) = &self.target {
            let verb = if self.write { "writes" } else { "reads" };
            let size = if self.bytes > 0 { format!("{} B at ", self.bytes) } else { String::new() };
            text.push_str(&format!(" {verb} {size}{target}"));
        }
        // Places in PTX are long, so each has its own line.
        let at = |site: &Option<Site>| match site {
            Some(site) if site.ptx_line > 0 => format!("\nat {site}"),
            Some(site) => format!(", at {site}"),
            None => String::new(),
        };
        text.push_str(&at(&self.site));
        if let Some(other) = &self.other {
            let verb = match (other.write, other.in_flight) {
                (_, true) => other.in_words(),
                (true, _) => "wrote it before",
                (false, _) => "read it before",
            };
            text.push_str(&format!("\n{} {verb}{}", other.who, at(&other.site)));
        }
        if let Some(origin) = &self.origin {
            text.push_str(&format!(
                "\nwith {} uninitialised, read by {}\nat {}",
                origin.target, origin.who, origin.site
            ));
        }
        text.push_str(&self.counts());
        if !self.detail.is_empty() {
            text.push('\n');
            text.push_str(&self.detail);
        }
        text
    }
}

/// A number of things, in words.
fn many(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.kind.title())?;
        field(f, "found:", &self.found())?;
        field(f, "required:", &format!("{} (rule {})", self.rule.required(), self.rule))?;
        field(f, "because:", &self.rule.reason())?;
        field(f, "help:", self.rule.help())
    }
}
