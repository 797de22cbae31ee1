//! What a kernel did wrong: who, to what, at which line of the PTX and of its source, and the rule that is broken.

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

/// One thing that the kernel did wrong, at its first occurrence. What breaks the same rule at the same line, or at the same pair of
/// lines, has one cause and is one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The rule that it breaks.
    pub rule: Rule,
    /// Which entry did it; `None` where the kernel has but one.
    pub entry: Option<String>,
    /// Who did it; `None` where it was noticed only afterwards.
    pub who: Option<Who>,
    /// Where in the kernel.
    pub site: Option<Site>,
    /// Whether it was a write.
    pub write: bool,
    /// Bytes of the access; 0 where it is none.
    pub bytes: u64,
    /// What was hit.
    pub target: Option<Target>,
    /// The access that a race is with.
    pub other: Option<Box<Other>>,
    /// Where an uninitialised value comes from; `None` where it was a register that no instruction has written.
    pub origin: Option<Box<Origin>>,
    /// The signal that ended the kernel.
    pub signal: Option<u32>,
    /// What else is known: who waits where, a sanitizer's words.
    pub detail: String,
    /// How often it happened, by whatever threads.
    pub count: u64,
    /// How many threads did it; 0 where that is not known, as where C++ was run.
    pub threads: u64,
    /// How many blocks these threads are of; 0 where that is not known.
    pub blocks: u64,
    /// Instructions of this cause, or pairs of them where there is another access; 0 where that is not known.
    pub places: u64,
    /// PTX lines of the first of these beside the one that is shown, each with that of the other access or 0.
    pub further: Vec<[u32; 2]>,
}

impl Finding {
    /// One that breaks a rule, of which nothing else is known yet.
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
            signal: None,
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

    /// What else has the same cause, as further lines.
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
        match (&self.target, self.signal) {
            (Some(target), None) => {
                let verb = if self.write { "writes" } else { "reads" };
                let size = if self.bytes > 0 { format!("{} B at ", self.bytes) } else { String::new() };
                text.push_str(&format!(" {verb} {size}{target}"));
            }
            (target, Some(signal)) => {
                text.push_str(&format!(" gets signal {signal} ({})", signal_name(signal)));
                if let Some(target) = target {
                    text.push_str(&format!(" for {target}"));
                }
            }
            (None, None) => {}
        }
        // Places in PTX are long, and have a line of their own.
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

fn signal_name(signal: u32) -> &'static str {
    // Linux, asm-generic/signal.h.
    match signal {
        4 => "illegal instruction",
        6 => "abort",
        7 => "bus error",
        8 => "arithmetic error",
        9 => "killed",
        11 => "segmentation fault",
        _ => "unknown",
    }
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
