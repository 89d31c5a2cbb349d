//! A JSON value whose objects keep the order of their fields, which a `serde_json::Value` sorts. A layer whose kind is not known here gives its
//! figures as text, and they are written as those of any other part of a report.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Unsigned(value) => serializer.serialize_u64(*value),
            Json::Signed(value) => serializer.serialize_i64(*value),
            Json::Real(value) => serializer.serialize_f64(*value),
            Json::Text(value) => serializer.serialize_str(value),
            Json::List(values) => serializer.collect_seq(values),
            Json::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(OfText)
    }
}

struct OfText;

impl<'de> Visitor<'de> for OfText {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_it_was_read() {
        for text in [
            r#"{"z":1,"a":{"y":[1.0,-2,0.1,2.5e-7,18446744073709551615],"b":null},"t":"a \"word\"","is":true}"#,
            "[]",
            "{}",
            "null",
            "-0.0",
        ] {
            let json: Json = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&json).unwrap(), text);
        }
        assert!(serde_json::from_str::<Json>("{1}").is_err());
    }
}
