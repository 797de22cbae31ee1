//! The rule that a finding breaks. The texts are in `rules`.

use core::fmt;

use super::FindingKind;
use super::rules::Said;

pub use super::rules::Rule;

impl Rule {
    /// The stable word, as in `rule proxy-fence`.
    pub fn as_str(self) -> &'static str {
        self.said().word
    }

    /// The kind of a finding that breaks the rule.
    pub fn kind(self) -> FindingKind {
        self.said().kind
    }

    /// The requirement, in one line.
    pub fn required(self) -> &'static str {
        self.said().required
    }

    /// Why it is required, in one line.
    pub fn because(self) -> &'static str {
        self.said().because
    }

    /// The title of the section of the PTX ISA; empty without one.
    pub fn section(self) -> &'static str {
        self.said().section
    }

    /// The remedy, in one line.
    pub fn help(self) -> &'static str {
        self.said().help
    }

    /// The reason, with the section.
    pub(super) fn reason(self) -> String {
        let Said { because, section, .. } = self.said();
        if section.is_empty() { (*because).to_owned() } else { format!("{because} (PTX ISA, \"{section}\")") }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<FindingKind> for Rule {
    /// The most general rule of a kind.
    fn from(kind: FindingKind) -> Rule {
        match kind {
            FindingKind::OutOfBounds => Rule::InBounds,
            FindingKind::Misaligned => Rule::Aligned,
            FindingKind::WriteToInput => Rule::InputsAreRead,
            FindingKind::Uninitialized => Rule::Initialised,
            FindingKind::Race => Rule::Ordered,
            FindingKind::BarrierMisuse => Rule::Barrier,
            FindingKind::Asynchrony => Rule::Asynchronous,
            FindingKind::TensorMap => Rule::TensorMap,
            FindingKind::Deadlock => Rule::Arrival,
            FindingKind::Timeout => Rule::End,
            FindingKind::Trap => Rule::NoTrap,
            FindingKind::Assert => Rule::Assertion,
            FindingKind::Undefined => Rule::Defined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;
    use std::collections::BTreeSet;

    #[test]
    fn each_rule_has_a_word_of_its_own_and_one_line_of_everything() {
        let words: BTreeSet<&str> = Rule::ALL.iter().map(|r| r.as_str()).collect();
        assert_eq!(words.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.as_str().chars().all(is_word), "{rule}");
            for line in [rule.required(), rule.because(), rule.help()] {
                assert!(!line.is_empty() && !line.contains('\n') && !line.ends_with('.'), "{rule}: {line}");
                assert!(line.len() <= 125, "{rule}: {} characters: {line}", line.len());
            }
        }
    }

    #[test]
    fn a_kind_s_general_rule_is_of_that_kind() {
        for rule in Rule::ALL {
            assert_eq!(Rule::from(rule.kind()).kind(), rule.kind());
        }
    }
}
