//! Which test program runs, and which of its tests take long, from what cargo and libtest print:
//!
//! ```text
//!      Running tests/server.rs (target/debug/deps/server-12ab)
//! test a::quick ... ok
//! test a::slow has been running for over 60 seconds
//! ```
//!
//! Left out: tests that have begun within the last minute; libtest prints nothing about them.

use std::collections::BTreeSet;

/// What has been seen so far.
#[derive(Default)]
pub(super) struct Progress {
    program: Option<String>,
    /// Tests of it that took long and have not ended.
    slow: BTreeSet<String>,
    ended: usize,
}

impl Progress {
    /// Takes a line of output.
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(program) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            *self = Progress { program: Some(program.to_owned()), ..Progress::default() };
        } else if let Some(test) = line.strip_prefix("test ") {
            self.test(test);
        }
    }

    fn test(&mut self, line: &str) {
        if let Some((name, _)) = line.split_once(" has been running for over ") {
            self.slow.insert(name.to_owned());
        } else if let Some((name, _)) = line.split_once(" ... ") {
            self.slow.remove(name);
            self.ended += 1;
        }
    }

    /// What has begun and not ended.
    pub(super) fn pending(&self) -> String {
        let program = self.program.as_deref().map_or_else(String::new, |program| format!("{program}: "));
        let slow = match self.slow.len() {
            0 => "none has run for a minute".to_owned(),
            _ => format!("begun and not ended: {}", self.slow.iter().cloned().collect::<Vec<_>>().join(", ")),
        };
        format!("{program}{} tests have ended; {slow}", self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_have_begun_and_not_ended_are_known() {
        let mut progress = Progress::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/one-1)\n",
            "test x has been running for over 60 seconds\n",
            "     Running tests/two.rs (target/debug/deps/two-2)\n",
            "running 4 tests\n",
            "test a ... ok\n",
            "test slow::b has been running for over 60 seconds\n",
            "test slow::c has been running for over 60 seconds\n",
            "test slow::b ... ok\n",
        ] {
            progress.line(line);
        }
        let right = "tests/two.rs (target/debug/deps/two-2): 2 tests have ended; begun and not ended: slow::c";
        assert_eq!(progress.pending(), right);
    }
}
