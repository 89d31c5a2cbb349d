//! Options of `nandscape sweep` as parts of a sweep.

use std::str::FromStr;

use nandscape_lab_sweep::{Axis, Value};

/// `KEY=VALUE`.
#[derive(Clone)]
pub(super) struct Setting(pub(super) String, pub(super) Value);

/// `KEY=A,B,C`.
#[derive(Clone)]
pub(super) struct Varied(pub(super) Axis);

/// `1,2,3` or `1-5`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Seeds(pub(super) Vec<u64>);

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (key, value) = text.split_once('=').ok_or("a setting is KEY=VALUE, for example rw=randread")?;
        Ok(Setting(key.trim().to_owned(), Value::parse(value)))
    }
}

impl FromStr for Varied {
    type Err = String;

    fn from_str(text: &str) -> Result<Varied, String> {
        let (key, values) = text.split_once('=').ok_or("it is KEY=A,B,C, for example iodepth=1,8,32")?;
        Ok(Varied(Axis::of_key(key.trim(), Value::list(values))))
    }
}

/// The most seeds of a range.
const MAX_SEEDS: u64 = 10_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let wrong = || format!("\"{text}\" is no list such as 1,2,3 and no range of up to {MAX_SEEDS} such as 1-5");
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let part = |part: &str| match part.split_once('-') {
            None => number(part).map(|seed| vec![seed]),
            Some((from, to)) => match (number(from)?, number(to)?) {
                (from, to) if from <= to && to - from < MAX_SEEDS => Ok((from..=to).collect()),
                _ => Err(wrong()),
            },
        };
        let parts: Vec<Vec<u64>> = text.split(',').map(part).collect::<Result<_, _>>()?;
        Ok(Seeds(parts.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_lists_and_ranges() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|Seeds(seeds)| seeds);
        assert_eq!(seeds("3"), Ok(vec![3]));
        assert_eq!(seeds("1-3,7"), Ok(vec![1, 2, 3, 7]));
        for wrong in ["", "x", "3-1", "1-", "0-99999999", "-1"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
