//! Reads settings into a recipe.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use crate::near;
use crate::recipe::field::SettingValue;
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

    /// The mistakes, if any.
    pub fn finish(self) -> Result<(), crate::diagnostic::PlanError> {
        Ok(Diagnostics::refuse(self.found)?)
    }
}
