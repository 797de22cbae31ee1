//! Settings: a recipe as `key=value` text, for the command line, for manifests and for artifacts.

use core::fmt;

use crate::diagnostic::debug_as_display;

/// One setting that a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its meaning, with its unit.
    pub doc: &'static str,
    /// An example of a value.
    pub example: &'static str,
}

/// An ordered list of `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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

    /// The same without a key.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        Self(self.0.iter().filter(|(k, _)| k != key).cloned().collect())
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

/// Texts of an enum: its names, `Display`, and `FromStr` with the list of known names.
#[macro_export]
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// Its name in settings.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl core::str::FromStr for $name {
            type Err = $crate::settings::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $name::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| $crate::settings::UnknownWord {
                    found: text.to_owned(),
                    what: $what,
                    known: $name::ALL.iter().map(|v| v.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}
pub use named;

/// A word that means nothing here.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{found}`; known are {known}")]
pub struct UnknownWord {
    /// The word.
    pub found: String,
    /// What it was to name.
    pub what: &'static str,
    /// The known words, separated by commas.
    pub known: String,
}

debug_as_display!(UnknownWord);

/// The text form of a type, `Display` and `FromStr`, as its form in JSON.
macro_rules! json_as_text {
    ($($ty:ty),+ $(,)?) => {$(
        impl serde::Serialize for $ty {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $ty {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use json_as_text;
