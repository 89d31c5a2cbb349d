//! Links of Markdown files to files of the workspace must be valid. External links and section names are not checked.

use std::collections::BTreeSet;

use super::Problem;
use crate::files::Text;
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
    problems
}

/// Lines, from 1, and targets of links to files.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    let mut code = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code || line.starts_with("    ") {
            continue;
        }
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
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let files = [file("docs/a.md", text), file("docs/b.md", ""), file("sim/src/lib.rs", "")];
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
}
