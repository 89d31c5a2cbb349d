//! Exact: a formula or a table must match to the published digits. A number is rounded to the decimals of the published
//! number; a table is compared as text, entry by entry.

use super::Criterion;
use crate::figures::Value;

/// A number against the published one, in its printed form: `0.2108`, `17,584`.
///
/// # Panics
/// When the published one is not a number, which is a bug of the experiment.
pub fn number(what: impl Into<String>, measured: f64, unit: &str, published: &str) -> Criterion {
    let plain = published.replace(',', "");
    let value: f64 = plain.parse().unwrap_or_else(|_| panic!("{published} is no number"));
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let rounded: Option<f64> = format!("{measured:.decimals$}").parse().ok();
    let holds = rounded == Some(value);
    let published = published.to_owned();
    Criterion {
        published: published.clone(),
        ..Criterion::exact(what, Value::Number(measured), unit, published, holds)
    }
}

/// A table against the published one, both as texts of one character per entry.
pub fn table(what: impl Into<String>, measured: &str, published: &str) -> Criterion {
    let differs = measured.chars().zip(published.chars()).position(|(one, other)| one != other);
    let (length, due) = (measured.chars().count(), published.chars().count());
    let must_be = match differs {
        Some(place) => format!("as published; entry {place} differs"),
        None if length != due => format!("as published: {due} entries"),
        None => "as published".to_owned(),
    };
    let shown = Value::Text(published.to_owned()).to_string();
    let criterion = Criterion::exact(what, Value::Text(measured.to_owned()), "", must_be, measured == published);
    Criterion { published: shown, ..criterion }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_given_decide() {
        for (published, measured, holds) in [
            ("108", 108.0, true),
            ("108", 108.4, true),
            ("108", 108.6, false),
            ("0.2108", 0.210_84, true),
            ("0.2108", 0.210_86, false),
            ("0.2108", 0.21, false),
            ("17,584", 17_584.0, true),
            ("17,584", 17_585.0, false),
            ("-1.5", -1.52, true),
            ("0.0", -0.04, true),
            ("5", f64::NAN, false),
            ("5", f64::INFINITY, false),
        ] {
            assert_eq!(number("x", measured, "", published).holds, holds, "{measured} for {published}");
        }
    }

    #[test]
    fn tables_are_equal_entry_by_entry() {
        assert!(table("types", "1122", "1122").holds);
        let differs = table("types", "1121", "1122");
        assert!(!differs.holds && differs.must_be.contains("entry 3"), "{differs:?}");
        let short = table("types", "112", "1122");
        assert!(!short.holds && short.must_be.contains("4 entries"), "{short:?}");
        assert!(!table("types", "11222", "1122").holds);
    }
}
