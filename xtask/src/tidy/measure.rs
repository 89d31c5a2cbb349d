//! Measures of the Rust files: their lengths, and the ratio of test lines to code lines. Blank lines and comments count
//! as neither. Tests are files in a folder `tests`, and modules under `cfg(test)`.

use std::fmt;

use crate::files::Text;

/// The measures.
#[derive(Default, PartialEq, Debug)]
pub(crate) struct Measures {
    /// Files.
    files: usize,
    /// Median of their lines, tests included.
    median: usize,
    /// The longest file and its lines.
    longest: (String, usize),
    /// Lines of code.
    code: usize,
    /// Lines of tests.
    tests: usize,
}

/// Measures the Rust files among `files`.
pub(crate) fn of(files: &[Text]) -> Measures {
    let rust: Vec<&Text> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    let mut lengths: Vec<usize> =
        rust.iter().filter(|file| file.path.contains("src/")).map(|file| file.text.lines().count()).collect();
    lengths.sort_unstable();
    let longest =
        rust.iter().map(|file| (file.path.clone(), file.text.lines().count())).max_by_key(|(_, lines)| *lines);
    let (code, tests) = rust.iter().map(|file| split(file)).fold((0, 0), |sum, file| (sum.0 + file.0, sum.1 + file.1));
    Measures {
        files: rust.len(),
        median: lengths.get(lengths.len() / 2).copied().unwrap_or(0),
        longest: longest.unwrap_or_default(),
        code,
        tests,
    }
}

/// Lines of code and of tests in a file. Formatted code has a module's end in the column of its beginning.
fn split(file: &Text) -> (usize, usize) {
    let test_file = file.path.split('/').any(|part| part == "tests" || part == "tests.rs");
    let (mut code, mut tests) = (0, 0);
    let mut lines = file.text.lines().peekable();
    let mut within = false;
    while let Some(line) = lines.next() {
        within |=
            line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        let counts = !line.trim().is_empty() && !line.trim_start().starts_with("//");
        match test_file || within {
            true => tests += usize::from(counts),
            false => code += usize::from(counts),
        }
        within &= line != "}";
    }
    (code, tests)
}

impl fmt::Display for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.tests as f64 / self.code.max(1) as f64;
        write!(
            f,
            "tidy: {} Rust files, median {} lines (aim 150), longest {} with {}; {} lines of tests to {} of code: {share:.2} (aim 0.70)",
            self.files, self.median, self.longest.0, self.longest.1, self.tests, self.code
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Text {
        Text { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn code_and_tests_are_told_apart() {
        let text = "//! Head.\n\nfn f() {\n    // why\n    g();\n}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n\nfn g() {}\n";
        assert_eq!(split(&file("a/src/b.rs", text)), (4, 4));
        assert_eq!(split(&file("a/tests/b.rs", text)), (0, 8));
    }

    #[test]
    fn the_median_and_the_longest_are_found() {
        let files = [
            file("a/src/x.rs", "1\n"),
            file("a/src/y.rs", "1\n2\n"),
            file("a/src/z.rs", "1\n2\n3\n"),
            file("b.md", ""),
        ];
        let measures = of(&files);
        assert_eq!((measures.files, measures.median, measures.longest), (3, 2, ("a/src/z.rs".to_owned(), 3)));
    }
}
