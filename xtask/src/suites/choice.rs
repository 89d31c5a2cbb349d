//! Which tests of a program run: all, those of a module, or those with a text in their name.

use super::Suite;

/// A choice of tests. The default is all.
#[derive(Clone, Copy, Default)]
pub(crate) struct Choice<'a> {
    /// Only the tests of this module, as Rust names it.
    pub(crate) module: Option<&'a str>,
    /// Only tests with this in their name.
    pub(crate) filter: Option<&'a str>,
}

impl<'a> Choice<'a> {
    /// The tests with this in their name.
    pub(crate) fn of(filter: Option<&'a str>) -> Choice<'a> {
        Choice { module: None, filter }
    }

    /// The words that choose the tests of a program. A program's own filter finds a text anywhere in a name, so the tests of a module
    /// are named one by one.
    pub(super) fn words(self, suite: &Suite) -> Vec<String> {
        let Some(module) = self.module else { return self.filter.map(str::to_owned).into_iter().collect() };
        let listed = suite.command().args(["--list", "--format", "terse"]).output();
        let listed =
            listed.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
        self.named(module, &listed)
    }

    /// The tests of a module in a program's list. The module itself, which is no test, keeps an empty choice from being all tests.
    fn named(self, module: &str, listed: &str) -> Vec<String> {
        let begins = format!("{module}::");
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let names =
            names.filter(|name| name.starts_with(&begins) && self.filter.is_none_or(|part| name.contains(part)));
        ["--exact", module].into_iter().chain(names).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_not_those_whose_names_end_alike() {
        let listed = "arrays::one: test\nfar_arrays::two: test\narrays::more::three: test\narrays_of: test\n\n4 tests, 0 benchmarks\n";
        let choice = |filter| Choice { module: Some("arrays"), filter }.named("arrays", listed).join(" ");
        assert_eq!(choice(None), "--exact arrays arrays::one arrays::more::three");
        assert_eq!(choice(Some("three")), "--exact arrays arrays::more::three");
        assert_eq!(choice(Some("two")), "--exact arrays");
    }

    #[test]
    fn without_a_module_the_filter_is_that_of_the_program() {
        let suite = Suite { name: "a".to_owned(), program: "sh".into(), folder: ".".into() };
        assert_eq!(Choice::default().words(&suite), [""; 0]);
        assert_eq!(Choice::of(Some("bad")).words(&suite), ["bad"]);
        // A program that lists nothing runs nothing.
        assert_eq!(Choice { module: Some("a"), filter: None }.words(&suite), ["--exact", "a"]);
    }
}
