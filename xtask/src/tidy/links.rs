//! Links of Markdown files to files of the workspace must be valid, and so must paths in backticks that begin with a folder of the
//! workspace, in Markdown and in comments of Rust. External links and section names are not checked.

use std::collections::BTreeSet;

use super::Problem;
use crate::files::{INPUTS, Text};
use crate::run;

/// Broken links.
pub(crate) fn check(files: &[Text]) -> Vec<Problem> {
    let mut known = BTreeSet::new();
    for file in files {
        // A link may lead to a folder.
        known.extend(file.path.match_indices('/').map(|(end, _)| file.path[..end].to_owned()));
        known.insert(file.path.clone());
    }
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in targets(&file.text) {
            // Pictures are not text files, so check for them on disk.
            let there = |path: String| path.is_empty() || known.contains(&path) || run::root().join(path).is_file();
            let found = resolve(&file.path, target).is_some_and(there);
            if !found {
                problems.push(Problem::at_line(&file.path, line, format!("links to {target}, which does not exist")));
            }
        }
    }
    for file in files {
        for (line, path) in paths(file) {
            let begins = path.split_once('/').is_some_and(|(first, _)| known.contains(first));
            let is_input = INPUTS.iter().any(|inputs| path.starts_with(inputs));
            if begins && !is_input && !known.contains(path) {
                problems.push(Problem::at_line(&file.path, line, format!("names {path}, which does not exist")));
            }
        }
    }
    problems
}

/// Lines, from 1, and what looks like a path among the words in backticks.
fn paths(file: &Text) -> Vec<(usize, &str)> {
    let lines = match file.path.rsplit_once('.') {
        Some((_, "md")) => prose(&file.text),
        Some((_, "rs")) => file.text.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with("//")).collect(),
        _ => Vec::new(),
    };
    lines.into_iter().flat_map(|(line, number)| quoted_paths(line).map(move |path| (number, path))).collect()
}

fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let quoted = line.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches('/'));
    quoted.filter(move |word| word.contains('/') && word.chars().all(part))
}

/// The lines of a Markdown text that are not code, with their numbers from 1.
fn prose(text: &str) -> Vec<(&str, usize)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if !code && !line.starts_with("    ") {
            lines.push((line, number));
        }
    }
    lines
}

/// Lines, from 1, and targets of links to files.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (line, number) in prose(text) {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let reference =
            line.starts_with('[').then(|| line.split_once("]: ")).flatten().map(|(_, target)| target.trim());
        let elsewhere =
            |target: &&str| target.contains("://") || target.starts_with(['#', '<']) || target.starts_with("mailto:");
        targets.extend(inline.chain(reference).filter(|target| !elsewhere(target)).map(|target| (number, target)));
    }
    targets
}

/// The path from the root that a link in a file refers to; `None` if it is outside.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        problems_of("docs/a.md", text)
    }

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let files = [file(path, text), file("docs/b.md", ""), file("sim/src/lib.rs", "")];
        check(&files).into_iter().map(|problem| format!("{}: {}", problem.at, problem.what)).collect()
    }

    #[test]
    fn links_to_files_folders_sections_and_elsewhere_are_fine() {
        let text = "[b](b.md) [s](b.md#part) [c](../sim/src/lib.rs), [f](../sim/)\n[w](https://example.org/x) [here](#part)\n\n[r]: b.md\n";
        assert_eq!(problems(text), [""; 0]);
        assert_eq!(problems("```\n[x](nowhere.md)\n```\n    [x](nowhere.md)\n"), [""; 0]);
    }

    #[test]
    fn links_to_nowhere_are_named_with_their_line() {
        assert_eq!(problems("text\n[c](c.md)\n"), ["docs/a.md:2: links to c.md, which does not exist"]);
        assert_eq!(problems("[c](../../out.md)\n").len(), 1);
        assert_eq!(problems("[r]: nowhere.md\n").len(), 1);
    }

    #[test]
    fn paths_in_backticks_exist() {
        let text = "`docs/b.md`, `sim/src/`, `a/b`, `read/write`, `sim/src/NAME.rs of it`\n```\n`sim/x.rs`\n```\n    `sim/x.rs`\n";
        assert_eq!(problems(text), [""; 0]);
        assert_eq!(
            problems("one\n`docs/b.md` and `sim/x.rs`\n"),
            ["docs/a.md:2: names sim/x.rs, which does not exist"]
        );
        assert_eq!(problems_of("sim/a.rs", "//! `docs/b.md`\nlet a = \"`docs/c.md`\";\n"), [""; 0]);
        assert_eq!(problems_of("sim/a.rs", "/// `docs/c.md`\n").len(), 1);
    }
}
