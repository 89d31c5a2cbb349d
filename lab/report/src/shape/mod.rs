//! The shape of a report that was read from a file: each figure that is read here exists, and can be the figure of a
//! run. A file that was damaged or edited is rejected, with the first invalid place.
//!
//! | file | what |
//! |---|---|
//! | `fields` | the places of figures, and the kind of each |
//! | `kind` | kinds of figures |
//! | `order` | figures that limit each other |
//!
//! Left out: fields that this program does not read, so that a newer program may add some; sums over several fields, which
//! interrupted runs need not keep.

mod fields;
mod kind;
mod order;
#[cfg(test)]
mod tests;

use serde_json::Value;

use fields::{DRIVE, Field, REPORT, TAIL};

/// Why a value is no report, with the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// A field is missing.
    Missing {
        /// The place of the object that lacks it; empty for the report itself.
        of: String,
        /// The field.
        field: String,
    },
    /// A value is invalid at its place.
    Value {
        /// The place: names and numbers of places in lists, separated by dots.
        place: String,
        /// The value, as JSON.
        found: String,
        /// In words, what would be valid.
        valid: String,
    },
}

/// The most characters of a value that are shown.
const MOST_SHOWN: usize = 60;

impl Wrong {
    fn value(place: &str, found: &Value, valid: impl Into<String>) -> Wrong {
        let whole = found.to_string();
        let found = match whole.char_indices().nth(MOST_SHOWN) {
            Some((end, _)) => format!("{}...", &whole[..end]),
            None => whole,
        };
        Wrong::Value { place: place.to_owned(), found, valid: valid.into() }
    }
}

/// Checks the report of a drive or of an array; `place` is its place in the file, empty for the whole.
///
/// # Errors
/// The first invalid place.
pub(crate) fn check(report: &Value, place: &str) -> Result<(), Wrong> {
    all(&REPORT, report, place)?;
    for way in report["details"]["tail"].as_object().into_iter().flat_map(|ways| ways.iter()) {
        all(&TAIL, way.1, &joined(place, &format!("details.tail.{}", way.0)))?;
    }
    for (number, drive) in report["drives"].as_array().into_iter().flatten().enumerate() {
        let place = joined(place, &format!("drives.{number}"));
        all(&DRIVE, drive, &place)?;
        check(&drive["report"], &joined(&place, "report"))?;
    }
    order::check(report, place)
}

/// Checks the fields of an object.
fn all(fields: &[Field], object: &Value, place: &str) -> Result<(), Wrong> {
    if !object.is_object() {
        return Err(Wrong::value(place, object, "an object"));
    }
    fields.iter().try_for_each(|field| {
        let parts: Vec<&str> = field.path.split('.').collect();
        one(field, &parts, object, place)
    })
}

/// Checks a field below a value: every element where its path has a `*`. If an optional parent is missing, so are its fields.
fn one(field: &Field, parts: &[&str], value: &Value, place: &str) -> Result<(), Wrong> {
    let Some((first, rest)) = parts.split_first() else { return field.kind.check(value, place) };
    match (*first, value) {
        ("*", Value::Object(fields)) => {
            fields.iter().try_for_each(|(name, value)| one(field, rest, value, &joined(place, name)))
        }
        ("*", Value::Array(list)) => {
            let mut numbered = list.iter().enumerate();
            numbered.try_for_each(|(number, value)| one(field, rest, value, &joined(place, &number.to_string())))
        }
        (name, Value::Object(fields)) => match fields.get(name) {
            Some(value) => one(field, rest, value, &joined(place, name)),
            None if field.must && rest.is_empty() => {
                Err(Wrong::Missing { of: place.to_owned(), field: name.to_owned() })
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A place below another.
fn joined(place: &str, below: &str) -> String {
    if place.is_empty() { below.to_owned() } else { format!("{place}.{below}") }
}
