//! The processor time that claims take: a table in a file, a claim and its seconds in each line. It is part of the program, and
//! `nandscape lab run --durations` renews it.
//!
//! Left out: wall time, which depends on the cores and on other programs.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

/// The lines before the first claim of a new table.
const HEAD: &str = "\
# Processor time of each claim in full, in seconds.
# nandscape lab run all --fresh --durations FILE renews this table; claims without a line have not been measured.
";

/// A table of durations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Durations {
    /// Its comments.
    head: String,
    seconds: BTreeMap<String, f64>,
}

impl Durations {
    /// A table from its text.
    ///
    /// # Errors
    /// The line that is no claim with its seconds.
    pub fn parse(text: &str) -> anyhow::Result<Durations> {
        let mut durations = Durations::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if line.starts_with('#') {
                durations.head += &format!("{line}\n");
                continue;
            }
            let wrong =
                || format!("line {}: {line:?} is not a claim and its seconds, such as \"femu-delay 116\"", number + 1);
            let (id, seconds) = line.split_once(' ').with_context(wrong)?;
            let seconds: f64 = seconds.trim().parse().with_context(wrong)?;
            if !(seconds.is_finite() && seconds >= 0.0) {
                bail!("{}", wrong());
            }
            if durations.seconds.insert(id.to_owned(), seconds).is_some() {
                bail!("line {}: {id} has a line already; one is valid", number + 1);
            }
        }
        Ok(durations)
    }

    /// The seconds of a claim, if it has been measured.
    pub fn of(&self, id: &str) -> Option<f64> {
        self.seconds.get(id).copied()
    }

    /// Sets the seconds of a claim.
    pub fn set(&mut self, id: &str, seconds: f64) {
        self.seconds.insert(id.to_owned(), seconds);
    }

    /// The text of the table: the claims in this order. Names that are no claim are left out.
    pub fn text<'a>(&self, claims: impl Iterator<Item = &'a str>) -> String {
        let head = if self.head.is_empty() { HEAD } else { &self.head };
        let lines = claims.filter_map(|id| Some(format!("{id} {:.1}\n", self.of(id)?)));
        lines.fold(head.to_owned(), |text, line| text + &line)
    }
}

/// Seconds as a reader estimates them: `<1 s`, `90 s`, `20 min`.
pub fn rounded(seconds: f64) -> String {
    match seconds {
        ..1.0 => "<1 s".to_owned(),
        ..99.5 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written_and_renewed_claim_by_claim() {
        let mut durations = Durations::parse("# two cores\n\nb 3\na 0.25\nold 7\n").unwrap();
        assert_eq!((durations.of("a"), durations.of("b"), durations.of("c")), (Some(0.25), Some(3.0), None));
        durations.set("b", 1234.56);
        let text = durations.text(["a", "b", "c"].into_iter());
        assert_eq!(text, "# two cores\na 0.2\nb 1234.6\n");
        assert_eq!(Durations::parse(&text).unwrap().text(["a", "b"].into_iter()), text);
        let new = Durations::default().text(["a"].into_iter());
        assert_eq!(new, HEAD);
        assert_eq!(Durations::parse(&new).unwrap().of("a"), None);
    }

    #[test]
    fn lines_that_are_no_durations_are_refused() {
        let error = |text: &str| Durations::parse(text).unwrap_err().to_string();
        for line in ["a", "a b", "a -1", "a NaN", "a inf", "a 1 2"] {
            let is_named = error(&format!("# head\n{line}\n")).starts_with(&format!("line 2: {line:?} is not a claim"));
            assert!(is_named, "{line}: {}", error(&format!("# head\n{line}\n")));
        }
        assert_eq!(error("a 1\na 2\n"), "line 2: a has a line already; one is valid");
    }

    #[test]
    fn a_reader_sees_seconds_or_minutes() {
        assert_eq!(
            [0.0, 0.99, 1.0, 99.4, 99.6, 1_200.0].map(rounded),
            ["<1 s", "<1 s", "1 s", "99 s", "2 min", "20 min"]
        );
    }
}
