//! One line for each setting of a recipe: field, `Debug`, text form, command line and documentation are made of it.

use core::str::FromStr;

use crate::dtype::DType;
use crate::expr::{Compute, ExprError, Function};
use crate::layout::{Layout, LayoutError};
use crate::plan::ConflictLevel;
use crate::recipe::TensorSpec;
use crate::recipe::reader::Reader;
use crate::recipe::tensor_spec::SpecList;
use crate::settings::Settings;
use crate::units::Bytes;

/// A value that a setting can have.
pub trait SettingValue: Sized {
    /// Reads a text; else why it cannot be read.
    ///
    /// # Errors
    /// Why it cannot be read; a `String` says it in one line.
    fn read(text: &str) -> Result<Self, Unreadable>;

    /// The text that it is read from.
    fn text(&self) -> String;

    /// How a recipe's `Debug` shows it.
    fn shown(&self) -> String {
        self.text()
    }
}

/// Why the value of a setting cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// What is found and why that cannot be read, in one line.
    pub because: String,
    /// Where it goes wrong, in bytes of the value.
    pub at: Option<core::ops::Range<usize>>,
    /// What is required there; what the setting is where this is empty.
    pub required: String,
    /// What to do; the setting's example where this is empty.
    pub help: String,
}

impl From<String> for Unreadable {
    fn from(because: String) -> Unreadable {
        Unreadable { because, ..Unreadable::default() }
    }
}

/// What `recipe!` makes of its lines.
pub trait Fields: Default {
    /// Overwrites each field that is set.
    fn read_fields(&mut self, reader: &mut Reader<'_>);

    /// Each field under its key.
    fn written(&self) -> Settings;
}

/// Types whose `FromStr` and `Display` are the text form.
#[macro_export]
macro_rules! as_displayed {
    ($($ty:ty),+ $(,)?) => {$(
        impl $crate::recipe::field::SettingValue for $ty {
            fn read(text: &str) -> Result<Self, $crate::recipe::field::Unreadable> {
                text.parse().map_err(|e: <$ty as core::str::FromStr>::Err| e.to_string().into())
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
pub use as_displayed;

as_displayed!(u32, bool, String, DType, ConflictLevel);

/// An expression's error: its place is marked in the value.
fn of_expression(text: &str, error: ExprError) -> Unreadable {
    let ExprError { found, required, help, position, .. } = error;
    let word = |start: usize| {
        let word = text[start..].bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        start..start + word.max(1)
    };
    let at = position.map_or(0..text.len(), word);
    // The mark shows what is quoted.
    let because = if found.starts_with('`') { String::new() } else { found };
    Unreadable { because, at: Some(at), required, help }
}

impl SettingValue for Function {
    fn read(text: &str) -> Result<Self, Unreadable> {
        text.parse().map_err(|error| of_expression(text, error))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Compute {
    fn read(text: &str) -> Result<Self, Unreadable> {
        text.parse().map_err(|error| of_expression(text, error))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// `auto`, where it is chosen.
impl<T: SettingValue> SettingValue for Option<T> {
    fn read(text: &str) -> Result<Self, Unreadable> {
        if text == "auto" { Ok(None) } else { T::read(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_owned(), T::text)
    }
}

impl SettingValue for Layout {
    fn read(text: &str) -> Result<Self, Unreadable> {
        let said =
            |e: LayoutError| format!("{}, where {} is required", e.what_was_found(), e.what_is_required()).into();
        text.parse().map_err(said)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Bytes {
    fn read(text: &str) -> Result<Self, Unreadable> {
        text.parse().map(Bytes).map_err(|e: <u64 as FromStr>::Err| e.to_string().into())
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Vec<TensorSpec> {
    fn read(text: &str) -> Result<Self, Unreadable> {
        text.parse().map(|SpecList(specs)| specs).map_err(|e: <SpecList as FromStr>::Err| e.to_string().into())
    }

    fn text(&self) -> String {
        SpecList(self.clone()).to_string()
    }

    fn shown(&self) -> String {
        format!("[{}]", self.text())
    }
}

/// The text of a documentation comment without its first space. Each of its lines begins with one.
pub const fn doc(lines: &'static str) -> &'static str {
    lines.split_at(1).1
}

/// A recipe: a struct whose fields are its settings.
///
/// A line holds documentation (meaning and unit, as `cutemplate list` shows them), field, key if it is another word
/// than the field, type, and an example of a value. After `if` stands when the field means something and `Debug` shows
/// it.
#[macro_export]
macro_rules! recipe {
    (
        $(#[$meta:meta])*
        pub struct $Recipe:ident |$this:ident| {
            $($(#[doc = $doc:literal])+ $field:ident $(= $key:literal)? : $ty:ty, $example:literal $(, if $shown:expr)?;)+
        }
        $(also $($(#[doc = $more_doc:literal])+ $more:literal, $more_example:literal;)+)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $Recipe {
            $($(#[doc = $doc])+ pub $field: $ty,)+
        }

        /// What can be set.
        pub const SETTINGS: &[$crate::settings::Setting] = &[
            $($crate::settings::Setting {
                key: $crate::recipe::field::__setting_key!($field $(= $key)?),
                doc: $crate::recipe::field::doc(concat!($($doc),+)),
                example: $example,
            },)+
            $($($crate::settings::Setting {
                key: $more,
                doc: $crate::recipe::field::doc(concat!($($more_doc),+)),
                example: $more_example,
            },)+)?
        ];

        impl $crate::recipe::field::Fields for $Recipe {
            fn read_fields(&mut self, reader: &mut $crate::recipe::reader::Reader<'_>) {
                $(reader.read($crate::recipe::field::__setting_key!($field $(= $key)?), &mut self.$field);)+
            }

            fn written(&self) -> $crate::settings::Settings {
                let mut settings = $crate::settings::Settings::new();
                $(settings.set(
                    $crate::recipe::field::__setting_key!($field $(= $key)?),
                    $crate::recipe::field::SettingValue::text(&self.$field),
                );)+
                settings
            }
        }

        impl core::fmt::Debug for $Recipe {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $this = self;
                let mut fields = f.debug_struct(stringify!($Recipe));
                $(if true $(&& $shown)? {
                    let shown = $crate::recipe::field::SettingValue::shown(&$this.$field);
                    fields.field(stringify!($field), &format_args!("{shown}"));
                })+
                fields.finish()
            }
        }
    };
}
pub use recipe;

/// The key of a field: its name, unless it has another.
#[doc(hidden)]
#[macro_export]
macro_rules! __setting_key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident = $key:literal) => {
        $key
    };
}
#[doc(hidden)]
pub use __setting_key;
