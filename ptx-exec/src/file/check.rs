//! Reads JSON objects by the table of keys. An unknown, missing or repeated key, or one of another type, is refused by name.

use super::bad;
use super::json::Json;
use super::keys::{Key, Kind, Need, Object};
use crate::Error;
use crate::near::nearest;

/// An object of a launch file that fits its table.
#[derive(Clone, Debug)]
pub(super) struct Checked<'j> {
    pub(super) value: &'j Json,
    /// Its path, such as `args[2].tensor_map`.
    pub(super) path: String,
}

impl<'j> Checked<'j> {
    pub(super) fn get(&self, key: &str) -> Option<&'j Json> {
        self.value.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn text(&self, key: &str) -> Option<&'j str> {
        self.get(key)?.text()
    }

    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        self.get(key)?.whole()
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key)?.flag()
    }

    pub(super) fn numbers(&self, key: &str) -> Option<Vec<u64>> {
        self.get(key).map(|list| list.items().iter().filter_map(Json::whole).collect())
    }

    /// The path of a key in it.
    pub(super) fn at(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// The objects of a list.
    pub(super) fn list(&self, key: &str) -> impl Iterator<Item = Checked<'j>> + use<'j> {
        let path = self.at(key);
        let items = self.get(key).map_or(&[][..], Json::items).iter().enumerate();
        items.map(move |(i, value)| Checked { value, path: format!("{path}[{i}]") })
    }

    pub(super) fn one(&self, key: &str) -> Option<Checked<'j>> {
        self.get(key).map(|value| Checked { value, path: self.at(key) })
    }

    /// The objects of an object, with their names.
    pub(super) fn named(&self, key: &str) -> impl Iterator<Item = (&'j str, Checked<'j>)> + use<'j> {
        let path = self.at(key);
        let entries = self.get(key).map_or(&[][..], Json::entries).iter();
        entries.map(move |(name, value)| (name.as_str(), Checked { value, path: join(&path, name) }))
    }

    /// The key that names the kind of the object.
    pub(super) fn form(&self, object: &Object) -> Option<&'static str> {
        object.forms().find(|key| self.has(key))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The path with the kind of object, for messages.
fn named(object: &Object, path: &str) -> String {
    if path.is_empty() { object.name.to_owned() } else { format!("{} `{path}`", object.name) }
}

fn list(keys: impl Iterator<Item = &'static str>) -> String {
    keys.collect::<Vec<_>>().join(", ")
}

/// Checks that a value is an object of this kind, with everything in it.
pub(super) fn check<'j>(object: &'static Object, value: &'j Json, path: &str) -> Result<Checked<'j>, Error> {
    let Json::Object(entries) = value else {
        return Err(bad(format!("{} is not an object", named(object, path)))
            .found(value.to_string())
            .required(format!("an object with {}", list(object.keys().map(|key| key.name)))));
    };
    for (name, _) in entries {
        if !object.keys().any(|key| key.name == name) {
            let near = nearest(
                name.trim().to_lowercase().as_str(),
                object.keys().map(|key| key.name).filter(|key| value.get(key).is_none()),
            );
            let known = bad(format!("{} has an unknown key", named(object, path)))
                .found(format!("`{name}`"))
                .required(format!("one of {}", list(object.keys().map(|key| key.name))));
            return Err(match near {
                Some(key) => known.help(format!("the nearest key is `{key}`")),
                None => known,
            });
        }
    }
    for key in object.keys() {
        match value.get(key.name) {
            Some(value) => take(key, value, &join(path, key.name))?,
            None if key.need == Need::Always => {
                return Err(bad(format!("{} has no `{}`", named(object, path), key.name))
                    .found(value.to_string())
                    .required(format!("`{}`: {}, as {}; {}", key.name, key.kind.takes(), key.example, key.meaning)));
            }
            None => {}
        }
    }
    forms(object, value, path)?;
    Ok(Checked { value, path: path.to_owned() })
}

/// The keys fit each other.
fn forms(object: &'static Object, value: &Json, path: &str) -> Result<(), Error> {
    let mut given = object.forms().filter(|key| value.get(key).is_some());
    let (first, second) = (given.next(), given.next());
    if let (Some(first), Some(second)) = (first, second) {
        return Err(bad(format!("{} says two things", named(object, path)))
            .found(format!("`{first}` and `{second}`"))
            .required(format!("one of {}", list(object.forms()))));
    }
    if object.has_form && first.is_none() {
        return Err(bad(format!("{} does not name its kind", named(object, path)))
            .found(value.to_string())
            .required(format!("one of {}", list(object.forms()))));
    }
    for key in object.keys().filter(|key| value.get(key.name).is_some()) {
        if let Need::With(others) = key.need
            && !others.iter().any(|other| value.get(other).is_some())
        {
            return Err(bad(format!("`{}` has no meaning here", join(path, key.name)))
                .found(first.map_or_else(|| value.to_string(), |form| format!("it is next to `{form}`")))
                .required(format!("beside {}", list(others.iter().copied()))));
        }
    }
    Ok(())
}

/// Checks the value of a key.
fn take(key: &Key, value: &Json, path: &str) -> Result<(), Error> {
    if !key.kind.is(value) {
        return Err(bad(format!("`{path}` cannot be read")).found(value.to_string()).required(format!(
            "{}, as {}",
            key.kind.takes(),
            key.example
        )));
    }
    match key.kind {
        Kind::List(object) => {
            for (i, item) in value.items().iter().enumerate() {
                check(object, item, &format!("{path}[{i}]"))?;
            }
        }
        Kind::One(object) => drop(check(object, value, path)?),
        Kind::Named(object) => {
            for (name, item) in value.entries() {
                check(object, item, &join(path, name))?;
            }
        }
        Kind::Words(words) => {
            if let Some(item) = value.items().iter().find(|item| !item.text().is_some_and(|word| words.contains(&word)))
            {
                return Err(word(bad(format!("`{path}` has an unknown word")), item, words));
            }
        }
        Kind::Word(words) if !value.text().is_some_and(|word| words.contains(&word)) => {
            return Err(word(bad(format!("`{path}` has an unknown word")), value, words));
        }
        _ => {}
    }
    Ok(())
}

fn word(error: Error, found: &Json, words: &'static [&'static str]) -> Error {
    let near = found.text().and_then(|word| nearest(word, words.iter().copied()));
    let error = error.found(found.to_string()).required(format!("one of {}", list(words.iter().copied())));
    match near {
        Some(word) => error.help(format!("the nearest word is `{word}`")),
        None => error,
    }
}

impl Kind {
    /// Whether a value has the right JSON type.
    fn is(self, value: &Json) -> bool {
        match self {
            Kind::Text => value.text().is_some(),
            Kind::Path => value.text().is_some_and(|path| !path.is_empty() && !path.contains('\0')),
            Kind::Flag => value.flag().is_some(),
            Kind::Whole { least, most } => value.whole().is_some_and(|n| (least..=most).contains(&n)),
            Kind::Integer { bits, is_signed } => integer(value, bits, is_signed).is_some(),
            Kind::Float { most } => float(value, most).is_some(),
            Kind::Hex => value.text().and_then(hex).is_some(),
            Kind::Word(_) => value.text().is_some(),
            Kind::OneOf(numbers) => value.whole().is_some_and(|n| numbers.contains(&n)),
            Kind::Numbers { least, most, from, to } => match value {
                Json::List(items) => {
                    (least..=most).contains(&items.len())
                        && items.iter().all(|item| item.whole().is_some_and(|n| (from..=to).contains(&n)))
                }
                _ => false,
            },
            Kind::Memory => value.whole().is_some() || value.text().is_some(),
            Kind::Words(_) | Kind::List(_) => matches!(value, Json::List(_)),
            Kind::One(_) | Kind::Named(_) => matches!(value, Json::Object(_)),
        }
    }

    /// The accepted values, in words.
    pub(super) fn takes(self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Path => "a path, relative to the launch file".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole { least, most } => format!("a whole number from {least} to {}", power(most)),
            Kind::Integer { bits, is_signed: true } => format!("a whole number from -2^{0} to 2^{0}-1", bits - 1),
            Kind::Integer { bits, is_signed: false } => format!("a whole number from 0 to 2^{bits}-1"),
            Kind::Float { .. } => r#"a number, "inf", "-inf" or "nan""#.to_owned(),
            Kind::Hex => "a string of two hexadecimal digits a byte".to_owned(),
            Kind::Word(words) => format!("one of {}", list(words.iter().copied())),
            Kind::Words(words) => format!("a list of {}", list(words.iter().copied())),
            Kind::OneOf(numbers) => {
                format!("one of {}", numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            }
            Kind::Numbers { least, most, from, to } => {
                format!("a list of {least} to {most} whole numbers, each from {from} to {}", power(to))
            }
            Kind::Memory => "a number or a name".to_owned(),
            Kind::List(object) => format!("a list of objects, each {}", article(object)),
            Kind::One(object) => format!("an object: {}", object.name),
            Kind::Named(object) => format!("an object whose keys are names, each {}", article(object)),
        }
    }

    /// The accepted JSON types.
    pub(super) fn json(self) -> &'static [&'static str] {
        match self {
            Kind::Text | Kind::Path | Kind::Hex | Kind::Word(_) => &["string"],
            Kind::Flag => &["boolean"],
            Kind::Whole { .. } | Kind::Integer { .. } | Kind::OneOf(_) => &["number"],
            Kind::Float { .. } | Kind::Memory => &["number", "string"],
            Kind::Words(_) | Kind::Numbers { .. } | Kind::List(_) => &["array"],
            Kind::One(_) | Kind::Named(_) => &["object"],
        }
    }
}

/// A limit in words: large limits as a power of two where possible.
fn power(n: u64) -> String {
    match n.checked_add(1) {
        None => "2^64-1".to_owned(),
        Some(next) if n > 1 << 16 && next.is_power_of_two() => format!("2^{}-1", next.trailing_zeros()),
        Some(_) if n > 1 << 16 && n.is_power_of_two() => format!("2^{}", n.trailing_zeros()),
        Some(_) => n.to_string(),
    }
}

/// `an argument` of `the argument`.
fn article(object: &Object) -> String {
    let noun = object.name.trim_start_matches("the ");
    let an = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if an { "an" } else { "a" })
}

/// The bits of an integer, where the type has it.
pub(super) fn integer(value: &Json, bits: u32, is_signed: bool) -> Option<u64> {
    let number = value.number()?;
    if is_signed {
        let most = i64::MAX >> (64 - bits);
        number.as_i64().filter(|n| (-most - 1..=most).contains(n)).map(i64::cast_unsigned)
    } else {
        number.as_u64().filter(|n| *n <= u64::MAX >> (64 - bits))
    }
}

/// The value of a float, where it is not beyond the type's largest number.
pub(super) fn float(value: &Json, most: f64) -> Option<f64> {
    value.float().filter(|v| !v.is_finite() || v.abs() <= most)
}

pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|p| u8::from_str_radix(core::str::from_utf8(p).ok()?, 16).ok()).collect()
}
