//! The verdicts of the page of claims, as a table in the program. A fresh clone has no results, and another build has measured the
//! verdicts of the page. A claim and its verdict are a line.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};

use crate::ledger::Ledger;
use crate::score;

/// The page.
pub const PAGE: &str = "docs/validation/claims.md";

/// Verdicts by claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded(BTreeMap<String, String>);

impl Recorded {
    /// Of the text of a table.
    ///
    /// # Errors
    /// The line that is no claim with its verdict.
    pub fn parse(text: &str) -> anyhow::Result<Recorded> {
        let mut verdicts = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let wrong = || format!("{line:?} is not a claim and its verdict, such as \"femu-delay missed\"");
            let (id, verdict) = line.split_once(' ').with_context(wrong)?;
            ensure!(
                verdicts.insert(id.to_owned(), verdict.to_owned()).is_none(),
                "{id} has a line already; one is valid"
            );
        }
        Ok(Recorded(verdicts))
    }

    /// Of a page that `nandscape lab report` wrote.
    ///
    /// # Errors
    /// When the page has no table of verdicts.
    pub fn of_page(page: &str) -> anyhow::Result<Recorded> {
        let rows = score::rows(page)?;
        Ok(Recorded(rows.into_iter().map(|(id, verdict)| (id.to_owned(), verdict)).collect()))
    }

    /// The verdict of a claim, if the page has it.
    pub fn of(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    /// The text of the table, in the order of the ledger.
    pub fn text(&self, ledger: &Ledger) -> String {
        let ids = ledger.experiments.iter().map(|experiment| experiment.claim.id);
        let lines = ids.filter_map(|id| Some(format!("{id} {}\n", self.of(id)?)));
        let head = format!("# The verdicts of {PAGE}, from: nandscape lab score --verdicts --page {PAGE}\n");
        lines.fold(head, |text, line| text + &line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_claim_and_its_verdict_in_each_line() {
        let table = Recorded::parse("# head\na reproduced in order, not in size\nb missed\n").unwrap();
        assert_eq!((table.of("a"), table.of("b")), (Some("reproduced in order, not in size"), Some("missed")));
        assert_eq!(table.of("c"), None);
        for (text, problem) in [("a\n", "\"a\" is not a claim"), ("a b\na c\n", "a has a line already")] {
            assert!(Recorded::parse(text).unwrap_err().to_string().contains(problem), "{text}");
        }
    }
}
