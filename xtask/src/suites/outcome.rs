//! The output of a suite: how many tests passed and failed, and which were skipped because a tool is missing.

use std::fmt;
use std::process::ExitStatus;

/// A line of a test that could not check everything begins so. Tests write it to standard error itself, since libtest
/// keeps what passing tests print.
const SKIPPED: &str = "skipped: ";

/// The result of a suite.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// What was skipped, and why.
    pub(crate) skipped: Vec<String>,
    /// Why it failed as a whole: its status, or that it hung.
    error: Option<String>,
    seconds: f64,
}

impl Outcome {
    /// Reads it from a suite's output and end.
    pub(crate) fn of(text: &str, status: &anyhow::Result<ExitStatus>, seconds: f64) -> Outcome {
        let results = text.lines().filter(|line| line.starts_with("test result: "));
        let (passed, failed) = results
            .fold((0, 0), |(passed, failed), line| (passed + count(line, " passed"), failed + count(line, " failed")));
        let skipped = text.lines().filter_map(|line| line.strip_prefix(SKIPPED)).map(str::to_owned).collect();
        let error = match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(status.to_string()),
            Err(error) => Some(format!("{error:#}")),
        };
        Outcome { passed, failed, skipped, error, seconds }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed > 0 || self.error.is_some()
    }

    /// Programs without tests, or with none left by the filter, print nothing.
    pub(crate) fn is_worth_a_line(&self) -> bool {
        self.has_failed() || self.passed > 0
    }
}

/// The number before a word.
fn count(line: &str, word: &str) -> usize {
    let before = line.split_once(word).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { passed, failed, error, seconds, .. } = self;
        write!(out, "{passed} passed, {failed} failed in {seconds:.1} s")?;
        error.as_ref().map_or(Ok(()), |error| write!(out, " ({error})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_and_what_was_skipped_is_kept() {
        let text = "test a ... ok\nskipped: the ledger is not here\ntest b ... FAILED\n\
                    test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.0s\n";
        let outcome = Outcome::of(text, &Err(anyhow::anyhow!("it hangs")), 2.0);
        assert_eq!((outcome.passed, outcome.failed, outcome.has_failed()), (12, 3, true));
        assert_eq!(outcome.skipped, ["the ledger is not here"]);
        assert_eq!(outcome.to_string(), "12 passed, 3 failed in 2.0 s (it hangs)");
    }

    #[test]
    fn a_program_without_tests_is_silent_unless_it_fails() {
        let text = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.0s\n";
        assert!(!Outcome::of(text, &Ok(ExitStatus::default()), 0.1).is_worth_a_line());
        assert!(Outcome::of("", &Err(anyhow::anyhow!("no such program")), 0.1).is_worth_a_line());
    }
}
