//! JSON without loss of keys. `serde_json::Value` silently keeps the last of two equal keys.

use core::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value. The keys of an object are in their order, each once.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Flag(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn entries(&self) -> &[(String, Json)] {
        match self {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self {
            Json::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<&serde_json::Number> {
        match self {
            Json::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn whole(&self) -> Option<u64> {
        self.number()?.as_u64()
    }

    /// The value of a float: a number, or a word such as `nan`. A number that overflows f64 is refused.
    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            Json::Text(text) => {
                text.parse().ok().filter(|v: &f64| v.is_finite() || !text.bytes().any(|b| b.is_ascii_digit()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    /// Its type and its beginning, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(flag) => write!(f, "{flag}"),
            Json::Number(number) => write!(f, "the number {number}"),
            Json::Text(text) if text.chars().count() > 60 => {
                write!(f, "the string {:?}...", text.chars().take(60).collect::<String>())
            }
            Json::Text(text) => write!(f, "the string {text:?}"),
            Json::List(items) if items.is_empty() => f.write_str("an empty list"),
            Json::List(items) => write!(f, "a list of {}", items.len()),
            Json::Object(entries) if entries.is_empty() => f.write_str("an empty object"),
            Json::Object(entries) => {
                let keys: Vec<&str> = entries.iter().take(8).map(|(key, _)| key.as_str()).collect();
                write!(f, "an object with {}", keys.join(", "))
            }
        }
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Json, E> {
        let number = serde_json::Number::from_f64(number);
        number.map(Json::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut all: Vec<(String, Json)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            if all.iter().any(|(known, _)| *known == key) {
                return Err(de::Error::custom(format_args!("the key `{key}` occurs twice in one object")));
            }
            all.push((key, entries.next_value()?));
        }
        Ok(Json::Object(all))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Any)
    }
}
