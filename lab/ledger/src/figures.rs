//! The results of a point: figures by name, in the order of measurement; and the results of all points.

use std::fmt;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Its unit; empty for counts and texts.
    pub unit: String,
}

/// A value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A pattern or table, as text.
    Text(String),
}

/// The figures of one point.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a number.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.0.push(Figure { name: name.into(), value: Value::Number(value), unit: unit.to_owned() });
    }

    /// Adds a text.
    pub fn add_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.push(Figure { name: name.into(), value: Value::Text(text.into()), unit: String::new() });
    }

    /// A number by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn number(&self, name: &str) -> anyhow::Result<f64> {
        match self.find(name)? {
            Value::Number(number) => Ok(*number),
            Value::Text(_) => bail!("{name} is a text where a number is due"),
        }
    }

    /// A text by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&self, name: &str) -> anyhow::Result<&str> {
        match self.find(name)? {
            Value::Text(text) => Ok(text),
            Value::Number(_) => bail!("{name} is a number where a text is due"),
        }
    }

    fn find(&self, name: &str) -> anyhow::Result<&Value> {
        let found = self.0.iter().find(|figure| figure.name == name);
        Ok(&found.with_context(|| format!("there is no figure \"{name}\""))?.value)
    }

    /// All of them.
    pub fn all(&self) -> &[Figure] {
        &self.0
    }

    /// Checks that every number is finite and every name unique.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (place, Figure { name, value, .. }) in self.0.iter().enumerate() {
            ensure!(!matches!(value, Value::Number(number) if !number.is_finite()), "{name} is not a finite number");
            ensure!(self.0[..place].iter().all(|other| other.name != *name), "{name} is measured twice");
        }
        Ok(())
    }
}

/// The figures of all points of an experiment, in their order.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Results(pub Vec<(String, Figures)>);

impl Results {
    /// The figures of a point.
    ///
    /// # Errors
    /// When there is no such point.
    pub fn of(&self, point: &str) -> anyhow::Result<&Figures> {
        let found = self.0.iter().find(|(name, _)| name == point);
        Ok(&found.with_context(|| format!("there is no point \"{point}\""))?.1)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => f.write_str(&short(*number)),
            // The beginning of a table identifies it.
            Value::Text(text) if text.len() > 40 && !text.contains(' ') => {
                let begin: String = text.chars().take(28).collect();
                write!(f, "{begin}... ({} entries)", text.chars().count())
            }
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// A number with about three digits, or all digits of the whole number, thousands set apart.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => {
            let digits = format!("{size:.0}");
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
            format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","))
        }
        size if size >= 100.0 || value == value.trunc() => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_name_and_kind() {
        let mut figures = Figures::default();
        figures.add("latency", 1.5, "us");
        figures.add_text("types", "1122");
        assert_eq!((figures.number("latency").unwrap(), figures.text("types").unwrap()), (1.5, "1122"));
        assert!(figures.number("rate").unwrap_err().to_string().contains("no figure \"rate\""));
        assert!(figures.number("types").is_err() && figures.text("latency").is_err());
        figures.check().unwrap();
        figures.add("latency", 2.0, "us");
        assert!(figures.check().unwrap_err().to_string().contains("twice"));
        let mut figures = Figures::default();
        figures.add("mean", f64::NAN, "us");
        assert!(figures.check().is_err());
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_bit() {
        let mut figures = Figures::default();
        [1.0 / 3.0, 1e-300, 123_456_789.123_456_78].iter().for_each(|value| figures.add(value.to_string(), *value, ""));
        figures.add_text("text", "a \"b\"");
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(serde_json::from_str::<Figures>(&text).unwrap(), figures);
    }

    #[test]
    fn numbers_are_short_and_long_texts_too() {
        let shown = [1.234, 100.0, 12.0, 12_345.4, 2e6, -0.5, -1e4, 9_999.0].map(short);
        assert_eq!(shown, ["1.23", "100", "12", "12,345", "2,000,000", "-0.50", "-10,000", "9999"]);
        let words = "40 to 50, 60 to 70, 80 to 90, 100 to 120, 140";
        assert_eq!(Value::Text(words.to_owned()).to_string(), words);
        assert_eq!(Value::Text("1".repeat(512)).to_string(), format!("{}... (512 entries)", "1".repeat(28)));
    }
}
