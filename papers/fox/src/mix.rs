//! A mix of reads and writes: a pattern that repeats, such as WWWR.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The operation of a command.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Writes pages.
    Write,
    /// Reads pages.
    Read,
}

/// Most letters of a pattern.
const MOST: usize = 100;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mix(Vec<Kind>);

impl Mix {
    /// The mixes of uOC-0, from writes only to reads only.
    pub fn all() -> Vec<Mix> {
        ["WWWW", "WWWR", "WRWR", "WRRR", "RRRR"].map(|text| text.parse().expect("a pattern")).into()
    }

    /// One kind only.
    pub fn only(kind: Kind) -> Mix {
        Mix(vec![kind; 4])
    }

    /// The kinds, in their order.
    pub fn kinds(&self) -> &[Kind] {
        &self.0
    }

    /// Whether a kind is in it.
    pub fn has(&self, kind: Kind) -> bool {
        self.0.contains(&kind)
    }

    /// How many of the pattern are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.0.iter().filter(|each| **each == kind).count()
    }

    /// The fewest threads that can share its commands so that each has one kind only.
    pub fn fewest_that_share(&self) -> usize {
        let (all, writes) = (self.0.len(), self.count(Kind::Write));
        (1..=all).find(|threads| (threads * writes).is_multiple_of(all)).unwrap_or(all)
    }

    /// Percent of reads, rounded down.
    pub fn reads_percent(&self) -> usize {
        100 * self.count(Kind::Read) / self.0.len()
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let kind = |letter: char| match letter {
            'W' | 'w' => Ok(Kind::Write),
            'R' | 'r' => Ok(Kind::Read),
            _ => Err(format!("\"{text}\" is no mix; valid are 1 to {MOST} letters W and R, such as WWWR")),
        };
        let kinds: Vec<Kind> = text.chars().map(kind).collect::<Result<_, _>>()?;
        match kinds.len() {
            1..=MOST => Ok(Mix(kinds)),
            _ => Err(format!("a mix has 1 to {MOST} letters W and R, such as WWWR")),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|kind| f.write_str(if *kind == Kind::Write { "W" } else { "R" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_letters() {
        let shares: Vec<usize> = Mix::all().iter().map(Mix::reads_percent).collect();
        assert_eq!(shares, [0, 25, 50, 75, 100]);
        assert_eq!("wwwr".parse::<Mix>().unwrap().to_string(), "WWWR");
        for bad in ["", "WX", "W R"] {
            assert!(bad.parse::<Mix>().unwrap_err().contains("such as WWWR"), "{bad}");
        }
        assert!("W".repeat(101).parse::<Mix>().is_err());
    }
}
