//! Reads settings into a recipe.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use crate::near;
use crate::recipe::field::{SettingValue, Unreadable};
use crate::settings::{Setting, Settings};

/// Reads settings into a recipe and collects their mistakes.
pub struct Reader<'a> {
    family: &'static str,
    known: &'static [Setting],
    settings: &'a Settings,
    found: Vec<Diagnostic>,
    /// Keys whose values cannot be read.
    unread: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// Refuses keys that the family does not know, each with the nearest one that it does.
    pub fn new(family: &'static str, known: &'static [Setting], settings: &'a Settings) -> Self {
        let mut reader = Self { family, known, settings, found: Vec::new(), unread: Vec::new() };
        for (key, value) in settings.iter() {
            if known.iter().all(|s| s.key != key) {
                reader.unknown(key, value);
            }
        }
        reader
    }

    fn unknown(&mut self, key: &str, value: &str) {
        let keys = self.known.iter().map(|s| s.key);
        let nearest = near::nearest(key, keys.clone());
        self.push(
            Code::UnknownSetting,
            format!("{key}={value}"),
            format!("one of {}", keys.collect::<Vec<_>>().join(", ")),
            "a setting that is silently ignored would leave you with another kernel than you asked for",
            match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "see `cutemplate list`".into(),
            },
        );
    }

    fn push(&mut self, code: Code, found: String, required: String, because: &str, help: String) {
        let recipe = self.family.to_owned();
        let severity = Severity::Error;
        let because = because.into();
        self.found.push(Diagnostic { severity, code, kernel: None, recipe, found, required, because, help });
    }

    /// Overwrites `slot` with the setting's value, if it is set and can be read. What cannot be read is said once.
    pub fn read<T: SettingValue>(&mut self, key: &'static str, slot: &mut T) {
        let Some(value) = self.settings.get(key) else { return };
        match T::read(value) {
            Ok(read) => *slot = read,
            Err(why) if !self.unread.contains(&key) => {
                self.unread.push(key);
                self.unreadable(key, value, why);
            }
            Err(_) => {}
        }
    }

    fn unreadable(&mut self, key: &'static str, value: &str, why: Unreadable) {
        let setting = self.known.iter().find(|s| s.key == key);
        let (doc, example) = setting.map_or(("", ""), |s| (s.doc, s.example));
        let example = format!("for example {key}={example}");
        let help = if why.help.is_empty() { example } else { why.help };
        let found = format!("{key}={value}");
        let Some(at) = why.at.filter(|_| !value.contains('\n')) else {
            let required = if why.required.is_empty() { doc.to_owned() } else { why.required };
            return self.push(Code::BadValue, found, required, &why.because, help);
        };
        let columns = |bytes: &str| bytes.chars().count();
        let before = columns(key) + 1 + columns(value.get(..at.start).unwrap_or(value));
        let marks = columns(value.get(at).unwrap_or(" ")).max(1);
        let mark = format!("{}{} {}", " ".repeat(before), "^".repeat(marks), why.because);
        self.push(
            Code::BadValue,
            format!("{found}\n{}", mark.trim_end()),
            why.required,
            &format!("{key}: {doc}"),
            help,
        );
    }

    /// The mistakes, if any.
    pub fn finish(self) -> Result<(), crate::diagnostic::PlanError> {
        Ok(Diagnostics::refuse(self.found)?)
    }
}
