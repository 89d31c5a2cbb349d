//! Kinds of figures: the valid values of a field of a report, and their description.

use nandscape_drive::Stage;
use serde_json::Value;

use super::{Wrong, joined};

/// More than any figure of a run: nanoseconds of 30 years, bytes of an exabyte.
const MOST: f64 = 1e18;

/// The valid values of a place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A whole number that is not negative.
    Count,
    /// The same, or null.
    CountOrNull,
    /// A number that is not negative.
    Amount,
    /// The same, or null.
    AmountOrNull,
    /// Text.
    Text,
    /// Text or null.
    TextOrNull,
    /// True or false.
    Flag,
    /// An object.
    Object,
    /// An object or null.
    ObjectOrNull,
    /// A list.
    List,
    /// A list of the numbers of members.
    Members,
    /// The member that is rebuilt and its share, or null.
    Rebuilding,
    /// Times by stage, and objects of times by cause.
    Stages,
}

impl Kind {
    /// The valid values, in words.
    fn valid(self) -> &'static str {
        match self {
            Kind::Count => "a whole number, 0 or more",
            Kind::CountOrNull => "a whole number, 0 or more, or null",
            Kind::Amount => "a number from 0 to 1e18",
            Kind::AmountOrNull => "a number from 0 to 1e18, or null",
            Kind::Text => "text",
            Kind::TextOrNull => "text, or null",
            Kind::Flag => "true or false",
            Kind::Object => "an object",
            Kind::ObjectOrNull => "an object, or null",
            Kind::List => "a list",
            Kind::Members => "a list of numbers of members",
            Kind::Rebuilding => "[MEMBER, SHARE], or null",
            Kind::Stages => "an object of numbers by stage",
        }
    }

    /// Checks the value of a place.
    pub(super) fn check(self, value: &Value, place: &str) -> Result<(), Wrong> {
        let fits = match self {
            Kind::Count => value.is_u64(),
            Kind::CountOrNull => value.is_u64() || value.is_null(),
            Kind::Amount => is_amount(value),
            Kind::AmountOrNull => is_amount(value) || value.is_null(),
            Kind::Text => value.is_string(),
            Kind::TextOrNull => value.is_string() || value.is_null(),
            Kind::Flag => value.is_boolean(),
            Kind::Object => value.is_object(),
            Kind::ObjectOrNull => value.is_object() || value.is_null(),
            Kind::List => value.is_array(),
            Kind::Members => value.as_array().is_some_and(|members| members.iter().all(Value::is_u64)),
            Kind::Rebuilding => value.is_null() || is_rebuilding(value),
            Kind::Stages => return stages(value, place),
        };
        if fits { Ok(()) } else { Err(Wrong::value(place, value, self.valid())) }
    }
}

fn is_amount(value: &Value) -> bool {
    value.as_f64().is_some_and(|amount| (0.0..=MOST).contains(&amount))
}

fn is_rebuilding(value: &Value) -> bool {
    match value.as_array().map(Vec::as_slice) {
        Some([member, share]) => member.is_u64() && share.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
        _ => false,
    }
}

/// Times by stage; of waits also by cause, under the name of the stage and `_by`. A stage that is not known here is read only if
/// it is a number.
fn stages(value: &Value, place: &str) -> Result<(), Wrong> {
    let Some(stages) = value.as_object() else { return Err(Wrong::value(place, value, Kind::Stages.valid())) };
    if let Some(missing) = Stage::ALL.iter().find(|stage| !stages.contains_key(stage.name())) {
        return Err(Wrong::Missing { of: place.to_owned(), field: missing.name().to_owned() });
    }
    let is_known = |name: &str| Stage::ALL.iter().any(|stage| stage.name() == name);
    stages.iter().try_for_each(|(name, value)| {
        let place = joined(place, name);
        match name.strip_suffix("_by") {
            Some(stage) if is_known(stage) => {
                Kind::Object.check(value, &place)?;
                let mut causes = value.as_object().into_iter().flatten();
                causes.try_for_each(|(cause, us)| Kind::AmountOrNull.check(us, &joined(&place, cause)))
            }
            None if is_known(name) || value.is_number() => Kind::AmountOrNull.check(value, &place),
            _ => Ok(()),
        }
    })
}
