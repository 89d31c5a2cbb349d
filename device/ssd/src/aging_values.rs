//! The syntax of values of `[wear]`: times of months, and models of error rates.

use std::fmt;
use std::str::FromStr;

use nandscape_device_media::aging::ErrorRates;
use nandscape_sim::Span;

/// A time in the life of a drive: "18months". A year has 365 days and a month is a twelfth of it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Age(pub Span);

const HOURS: [(&str, f64); 13] = [
    ("h", 1.0),
    ("hour", 1.0),
    ("hours", 1.0),
    ("d", 24.0),
    ("day", 24.0),
    ("days", 24.0),
    ("week", 168.0),
    ("weeks", 168.0),
    ("month", 730.0),
    ("months", 730.0),
    ("y", 8_760.0),
    ("year", 8_760.0),
    ("years", 8_760.0),
];
/// The oldest drive: a century.
const OLDEST_HOURS: f64 = 876_000.0;
const HOUR: u64 = 3_600;

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim());
        let unit = HOURS.iter().find(|(name, _)| *name == unit);
        let hours = number.parse::<f64>().ok().zip(unit).map(|(number, (_, hours))| number * hours);
        match hours {
            Some(hours) if hours <= OLDEST_HOURS => Ok(Age(Span::from_s((hours * HOUR as f64).round() as u64))),
            Some(_) => Err(format!("\"{text}\" is out of range; up to \"100years\" is valid")),
            None if !text.is_empty() && number == text => {
                Err(format!("\"{text}\" has no unit; \"{text}months\" is valid (hours, days, weeks, months, years)"))
            }
            None => match text.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                Some(rest) if rest.parse::<Age>().is_ok() => {
                    Err(format!("\"{text}\" is negative, and an age is not; \"{rest}\" is valid"))
                }
                _ => Err(format!("\"{text}\" is not a time such as \"18months\" (hours, days, weeks, months, years)")),
            },
        }
    }
}

impl fmt::Display for Age {
    /// Prints the largest unit that gives a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.ns() / 1_000_000_000;
        let units = [("years", 8_760), ("months", 730), ("days", 24), ("hours", 1)];
        match units.iter().find(|(_, hours)| seconds > 0 && seconds.is_multiple_of(hours * HOUR)) {
            Some((unit, hours)) => write!(f, "{}{unit}", seconds / (hours * HOUR)),
            None => write!(f, "{}hours", seconds as f64 / HOUR as f64),
        }
    }
}

/// A model of the raw bit error rate: a name, or its numbers.
#[derive(Clone, PartialEq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(
    untagged,
    expecting = "expected \"tlc-72-layers\", \"qlc-from-tlc\", \"none\", or nine numbers: base, a, k, b, m, n, c, p, q"
)]
pub enum ErrorModel {
    /// By name.
    Named(String),
    /// By its numbers.
    Numbers(Vec<f64>),
}

impl ErrorModel {
    /// The model; `None` is no model.
    ///
    /// # Errors
    /// The valid values.
    pub(crate) fn rates(&self) -> Result<Option<ErrorRates>, String> {
        match self {
            ErrorModel::Named(name) if name == "none" => Ok(None),
            ErrorModel::Named(name) => match ErrorRates::ALL.iter().find(|(known, _)| known == name) {
                Some((_, rates)) => Ok(Some(*rates)),
                None => {
                    let known: Vec<String> = ErrorRates::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                    Err(format!("\"{name}\" is no model; {}, \"none\" or nine numbers are valid", known.join(", ")))
                }
            },
            ErrorModel::Numbers(numbers) => {
                let given: [f64; 9] = numbers.as_slice().try_into().map_err(|_| {
                    format!("has {} numbers; nine are valid: base, a, k, b, m, n, c, p, q", numbers.len())
                })?;
                match given.iter().find(|number| !(0.0..=1e6).contains(*number)) {
                    Some(number) => Err(format!("{} is out of range; from 0 to 1e6 is valid", shown(*number))),
                    None => Ok(Some(ErrorRates::of(given))),
                }
            }
        }
    }
}

/// A number in short notation, without hundreds of zeros.
pub(crate) fn shown(number: f64) -> String {
    if number != 0.0 && !(1e-6..1e15).contains(&number.abs()) { format!("{number:e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_and_written() {
        for (text, days, written) in [
            ("18months", 547.5, "18months"),
            ("2 years", 730.0, "2years"),
            ("90days", 90.0, "90days"),
            ("1.5d", 1.5, "36hours"),
            ("1week", 7.0, "7days"),
            ("0h", 0.0, "0hours"),
        ] {
            let age: Age = text.parse().unwrap();
            assert_eq!((age.0.as_s(), age.to_string().as_str()), (days * 86_400.0, written));
            assert_eq!(age.to_string().parse::<Age>(), Ok(age));
        }
        let problem = "0".parse::<Age>().unwrap_err();
        assert_eq!(problem, "\"0\" has no unit; \"0months\" is valid (hours, days, weeks, months, years)");
        let problem = "-1h".parse::<Age>().unwrap_err();
        assert_eq!(problem, "\"-1h\" is negative, and an age is not; \"1h\" is valid");
        for text in ["18", "months", "-1days", "1.2.3h", "2fortnights", "101years", ""] {
            assert!(text.parse::<Age>().is_err(), "{text}");
        }
    }

    #[test]
    fn models_are_named_or_given_in_numbers() {
        let named = |name: &str| ErrorModel::Named(name.to_owned()).rates();
        assert_eq!(named("tlc-72-layers"), Ok(Some(ErrorRates::TLC_72_LAYERS)));
        assert_eq!(named("qlc-from-tlc"), Ok(Some(ErrorRates::QLC_FROM_TLC)));
        assert_eq!(named("none"), Ok(None));
        assert!(named("tlc").unwrap_err().contains("tlc-72-layers"));
        let numbers = |numbers: &[f64]| ErrorModel::Numbers(numbers.to_vec()).rates();
        assert_eq!(numbers(&ErrorRates::TLC_72_LAYERS.numbers()), Ok(Some(ErrorRates::TLC_72_LAYERS)));
        assert!(numbers(&[1.0]).unwrap_err().contains("nine"));
        assert!(numbers(&[-1.0; 9]).unwrap_err().contains("out of range"));
        assert_eq!(numbers(&[1e308; 9]).unwrap_err(), "1e308 is out of range; from 0 to 1e6 is valid");
        assert!(numbers(&[f64::NAN; 9]).unwrap_err().contains("out of range"));
    }
}
