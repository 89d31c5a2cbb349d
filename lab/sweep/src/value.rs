//! Values of parameters: as text for people and tables, and as numbers for axes. A value is a value of TOML; times, sizes and
//! shares are strings in it, such as `"40us"`, and numbers here.

use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

/// A value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Value(pub toml::Value);

/// The unit of a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A number without a unit.
    None,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Us,
    /// A share of one.
    Ratio,
}

impl Unit {
    /// The ending of a column's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "_bytes",
            Unit::Us => "_us",
            Unit::Ratio => "_ratio",
        }
    }
}

impl Value {
    /// Reads a value as TOML, else as text.
    pub fn parse(text: &str) -> Value {
        let text = text.trim();
        let table = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
        let value = table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
        Value(value.unwrap_or_else(|| toml::Value::String(text.to_owned())))
    }

    /// The value as one of a key: `10k` of a rate or a count is the number.
    pub(crate) fn of_key(self, key: &str) -> Value {
        let word = key.rsplit('.').next().unwrap_or(key).replace('-', "_");
        let is_count = ["rate_iops", "io_count", "warmup_count"].contains(&word.as_str());
        match self.0.as_str().filter(|_| is_count).map(nandscape_lab_workload::number) {
            Some(Ok(number)) if number.fract() == 0.0 => Value(toml::Value::Integer(number as i64)),
            Some(Ok(number)) => Value(toml::Value::Float(number)),
            _ => self,
        }
    }

    /// Reads values separated by commas; those within brackets and quotation marks do not separate.
    pub fn list(text: &str) -> Vec<Value> {
        let (mut depth, mut quoted, mut from, mut values) = (0i32, None, 0, Vec::new());
        for (at, c) in text.char_indices() {
            match (c, quoted) {
                ('"' | '\'', None) => quoted = Some(c),
                (_, Some(end)) => quoted = if c == end { None } else { quoted },
                ('[' | '{', _) => depth += 1,
                (']' | '}', _) => depth -= 1,
                (',', _) if depth == 0 => {
                    values.push(Value::parse(&text[from..at]));
                    from = at + 1;
                }
                _ => {}
            }
        }
        values.push(Value::parse(&text[from..]));
        values
    }

    /// As text for people and tables: strings without quotation marks.
    pub fn text(&self) -> String {
        match &self.0 {
            toml::Value::String(text) => text.clone(),
            toml::Value::Float(number) => number.to_string(),
            other => other.to_string(),
        }
    }

    /// As a number with its unit, if it is one.
    pub fn number(&self) -> Option<(f64, Unit)> {
        match &self.0 {
            toml::Value::Integer(number) => Some((*number as f64, Unit::None)),
            toml::Value::Float(number) => number.is_finite().then_some((*number, Unit::None)),
            toml::Value::String(text) => number_with_unit(text),
            _ => None,
        }
    }
}

fn number_with_unit(text: &str) -> Option<(f64, Unit)> {
    let ratio = || text.parse().ok().filter(|_| text.ends_with('%')).map(|Ratio(share)| (share, Unit::Ratio));
    let span = || text.parse::<Span>().ok().map(|span| (span.as_us(), Unit::Us));
    let bytes = || text.parse().ok().map(|Bytes(bytes)| (bytes as f64, Unit::Bytes));
    ratio().or_else(span).or_else(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_commas_outside_of_brackets() {
        let texts = |text: &str| Value::list(text).iter().map(Value::text).collect::<Vec<_>>();
        assert_eq!(texts("1, 2,4k"), ["1", "2", "4k"]);
        assert_eq!(texts("\"a,b\",[1, 2],greedy"), ["a,b", "[1, 2]", "greedy"]);
        assert_eq!(texts("[\"40us\",\"50us\"],\"60us\"").len(), 2);
        assert_eq!(texts("zipf:0.9,uniform"), ["zipf:0.9", "uniform"]);
        assert_eq!(texts("true"), ["true"]);
    }

    #[test]
    fn numbers_have_their_units() {
        let number = |text: &str| Value::parse(text).number();
        assert_eq!(number("12"), Some((12.0, Unit::None)));
        assert_eq!(number("0.5"), Some((0.5, Unit::None)));
        assert_eq!(number("7%"), Some((0.07, Unit::Ratio)));
        assert_eq!(number("1.5ms"), Some((1_500.0, Unit::Us)));
        assert_eq!(number("4k"), Some((4_096.0, Unit::Bytes)));
        assert_eq!(number("greedy"), None);
        assert_eq!(number("true"), None);
        assert_eq!(number("nan"), None);
        assert_eq!(Value::parse("10k").of_key("job.writes.rate_iops").number(), Some((10_000.0, Unit::None)));
        assert_eq!(Value::parse("10k").of_key("bs").number(), Some((10_240.0, Unit::Bytes)));
    }
}
