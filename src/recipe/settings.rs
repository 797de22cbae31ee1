//! Settings: a recipe as `key=value` text, for the command line, for manifests and for artifacts.

use core::fmt;

use crate::plan::{Code, Diagnostic, Diagnostics, Severity};
use crate::recipe::field::SettingValue;

/// One setting that a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// What it means, with its unit.
    pub doc: &'static str,
    /// What a value looks like.
    pub example: &'static str,
}

/// An ordered list of `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// No settings: everything keeps its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a setting.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(slot) => slot.1 = value,
            None => self.0.push((key, value)),
        }
        self
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Key and value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Reads what `Display` writes: one `key=value` a line. A line without `=` becomes a key without a value, which no
    /// family knows.
    pub fn parse_lines(text: &str) -> Self {
        let mut settings = Self::new();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            settings.set(key.trim(), value.trim());
        }
        settings
    }
}

impl fmt::Display for Settings {
    /// One `key=value` a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Reads settings into a recipe and collects what is wrong with them.
pub(crate) struct Reader<'a> {
    family: &'static str,
    known: &'static [Setting],
    settings: &'a Settings,
    found: Vec<Diagnostic>,
    /// Keys whose values cannot be read.
    unread: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// Refuses keys that the family does not know, each with the nearest one that it does.
    pub(crate) fn new(family: &'static str, known: &'static [Setting], settings: &'a Settings) -> Self {
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
        let nearest = keys.clone().min_by_key(|k| (strsim::damerau_levenshtein(k, key), *k)).unwrap_or_default();
        let close = strsim::damerau_levenshtein(nearest, key) <= 1 + nearest.len() / 3;
        self.push(
            Code::UnknownSetting,
            format!("{key}={value}"),
            format!("one of {}", keys.collect::<Vec<_>>().join(", ")),
            "a setting that is silently ignored would leave you with another kernel than you asked for",
            if close { format!("did you mean `{nearest}`?") } else { "see `cutemplate list`".into() },
        );
    }

    fn push(&mut self, code: Code, found: String, required: String, because: &str, help: String) {
        let recipe = self.family.to_owned();
        let severity = Severity::Error;
        self.found.push(Diagnostic { severity, code, recipe, found, required, because: because.into(), help });
    }

    /// Overwrites `slot` with the setting's value, if it is set and can be read. What cannot be read is said once.
    pub(crate) fn read<T: SettingValue>(&mut self, key: &'static str, slot: &mut T) {
        let Some(value) = self.settings.get(key) else { return };
        match T::read(value) {
            Ok(read) => *slot = read,
            Err(because) if !self.unread.contains(&key) => {
                self.unread.push(key);
                let setting = self.known.iter().find(|s| s.key == key);
                let doc = setting.map_or_else(String::new, |s| s.doc.to_owned());
                let help = setting.map_or_else(String::new, |s| format!("for example {key}={}", s.example));
                self.push(Code::BadValue, format!("{key}={value}"), doc, &because, help);
            }
            Err(_) => {}
        }
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.settings.get(key).is_some()
    }

    /// What was wrong, if anything.
    pub(crate) fn finish(self) -> Result<(), crate::plan::PlanError> {
        Ok(Diagnostics::refuse(self.found)?)
    }
}
