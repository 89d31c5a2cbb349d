//! One source file: its header, its length, and forbidden content.

use super::Problem;
use crate::files::Text;

/// The most lines of a file.
const MOST_LINES: usize = 800;

/// Words for unfinished work. Split, so that this file does not contain them.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Prefixes of machine-specific paths.
const MACHINE: [&str; 4] = [concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/tm", "p"), concat!("/Us", "ers/")];

/// Files that may contain `unsafe` code, each with its purpose.
const UNSAFE: &[(&str, &str)] = &[
    ("drive/src/mem/mapping.rs", "maps files that other processes share"),
    ("sim/src/table.rs", "maps memory for large tables"),
];

/// Files that may open a file by its path without `nandscape_files`, each with its purpose: none of these paths comes
/// from a user.
const READERS: &[(&str, &str)] = &[
    ("cli/src/documented.rs", "the pages of the documentation"),
    ("cli/src/serve/memory.rs", "memory of the machine, from /proc"),
    ("cli/src/serve/mod.rs", "memory of the process, from /proc"),
    ("device/media/src/durable/store_file.rs", "a folder, to sync it"),
    ("files/src/input.rs", "pipes, whose writer it waits for"),
    ("lab/guest/src/guest.rs", "what a guest has printed, in a temporary folder"),
    ("lab/guest/src/kit/tree.rs", "files of an unpacked package"),
    ("lab/guest/src/pulse.rs", "processor time of a guest, from /proc"),
    ("lab/guest/src/saved.rs", "processors, random bytes, and a file to sync"),
    ("lab/host/src/calls.rs", "/dev/zero, to measure a system call"),
    ("lab/host/src/nodes.rs", "NUMA nodes of the machine, from /sys"),
    ("lab/host/src/processors.rs", "processors of the machine, from /proc and /sys"),
    ("lab/ledger/build/digest.rs", "the sources, during a build"),
    ("lab/ledger/src/machine.rs", "the machine, from /proc"),
    ("papers/claims/src/wall/cores.rs", "processor time of a thread, from /proc"),
    ("transport/control/src/dashboard/access.rs", "random bytes"),
    ("transport/control/src/host.rs", "the name of the machine, from /proc"),
    ("transport/reactor/src/socket.rs", "a folder, to name a socket in it"),
];

/// Calls that read a file of any kind and length.
const READS: [&str; 4] = [
    concat!("fs::read", "("),
    concat!("fs::read_to_", "string("),
    concat!(" File::op", "en("),
    concat!("::File::op", "en("),
];

/// Kinds of source, by the start of their headers.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Rust,
    /// Shell and Python: `#` comments, after the line that names the interpreter.
    Script,
    Other,
}

fn kind(file: &Text) -> Kind {
    let ending = file.path.rsplit('/').next().and_then(|name| name.split_once('.')).map(|(_, ending)| ending);
    match ending {
        Some("rs") => Kind::Rust,
        Some("sh" | "py") => Kind::Script,
        _ if file.text.starts_with("#!") => Kind::Script,
        _ => Kind::Other,
    }
}

/// The problems of a file.
pub(crate) fn check(file: &Text) -> Vec<Problem> {
    let kind = kind(file);
    let machine_readable =
        ["lock", "json", "jsonl", "svg"].iter().any(|ending| file.path.ends_with(&format!(".{ending}")));
    if machine_readable || file.path.starts_with("LICENSE") {
        return Vec::new();
    }
    let mut problems = lines(file, kind);
    if kind == Kind::Other {
        return problems;
    }
    let count = file.text.lines().count();
    if count > MOST_LINES {
        problems
            .push(Problem::in_file(&file.path, format!("has {count} lines; {MOST_LINES} is the most, 150 is usual")));
    }
    if !has_header(file, kind) {
        let header = if kind == Kind::Rust { "`//!`" } else { "`#`" };
        problems.push(Problem::at_line(&file.path, 1, format!("begins with no {header} comment on what it is")));
    }
    if kind == Kind::Rust && holds_unsafe(&file.text) && !UNSAFE.iter().any(|(path, _)| *path == file.path) {
        let listed: Vec<&str> = UNSAFE.iter().map(|(path, _)| *path).collect();
        problems.push(Problem::in_file(&file.path, format!("holds unsafe code; only {} may", listed.join(", "))));
    }
    if kind == Kind::Rust && is_product(&file.path) && !READERS.iter().any(|(path, _)| *path == file.path) {
        let code = without_tests(&file.text);
        let reads = |line: &str| READS.iter().any(|call| line.contains(call));
        problems.extend(code.lines().zip(1..).filter(|(line, _)| reads(line)).map(|(_, number)| {
            let what = "opens a file of any kind and length; `nandscape_files::input` opens what a user names, and READERS of \
                        tidy lists the exceptions";
            Problem::at_line(&file.path, number, what)
        }));
    }
    problems
}

/// The text of a source before a module of tests in it.
fn without_tests(text: &str) -> &str {
    let begins = |at: usize| {
        let below = text[at..].lines().find(|line| !line.starts_with('#'));
        below.is_some_and(|line| line.contains("mod ") && line.contains('{'))
    };
    let mut marks = text.match_indices("\n#[cfg(").map(|(at, _)| at + 1);
    let tests = marks.find(|at| text[*at..].lines().next().is_some_and(|line| line.contains("test")) && begins(*at));
    &text[..tests.unwrap_or(text.len())]
}

/// Whether a source is part of a program or a library that users run.
fn is_product(path: &str) -> bool {
    path.contains("/src/") && !path.starts_with("xtask/") && !path.contains("/tests/") && !path.ends_with("/tests.rs")
}

fn lines(file: &Text, kind: Kind) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        let mut wrong = |what: String| problems.push(Problem::at_line(&file.path, number, what));
        if line.ends_with([' ', '\t']) {
            wrong("ends in blanks".to_owned());
        }
        if line.contains('\t') {
            wrong("holds a tab; indentation is by blanks".to_owned());
        }
        if let Some(word) = UNFINISHED.iter().find(|word| holds_word(line, word)) {
            wrong(format!("holds {word}; finish it, or write down what is left out and why"));
        }
        if let Some(path) = MACHINE.iter().find(|path| names_path(line, path)) {
            wrong(format!("names {path}, which is right on one machine only"));
        }
    }
    if kind != Kind::Other && !file.text.ends_with('\n') {
        problems.push(Problem::in_file(&file.path, "does not end in a new line"));
    }
    problems
}

fn has_header(file: &Text, kind: Kind) -> bool {
    let mut lines = file.text.lines();
    match kind {
        Kind::Rust => lines.next().is_some_and(|line| line.starts_with("//! ") && line.len() > 10),
        _ => {
            let header = lines.find(|line| !line.starts_with("#!"));
            header.is_some_and(|line| ["# ", "\"\"\""].iter().any(|begin| line.starts_with(begin)))
        }
    }
}

/// Whether `word` stands by itself.
fn holds_word(line: &str, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(letter) && !line[at + word.len()..].starts_with(letter))
}

/// Whether an absolute path begins with it; `https://host/home/` does not.
fn names_path(line: &str, path: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || "._-/$}".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(inner))
}

/// Whether code, not a comment, has the keyword `unsafe`.
fn holds_unsafe(text: &str) -> bool {
    let word = concat!("uns", "afe");
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.into_iter()
        .any(|line| [" {", " fn", " impl", " trait"].iter().any(|next| line.contains(&format!("{word}{next}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let file = Text { path: path.to_owned(), text: text.to_owned() };
        check(&file).into_iter().map(|problem| format!("{}: {}", problem.at, problem.what)).collect()
    }

    #[test]
    fn a_tidy_file_has_no_problems() {
        assert!(problems("a/src/b.rs", "//! What this is.\n\nfn f() {}\n").is_empty());
        assert!(problems("run.sh", "#!/bin/sh\n# What this does.\nset -eu\n").is_empty());
        assert!(problems("x.py", "\"\"\"What this does.\"\"\"\n").is_empty());
        assert!(problems("README.md", "# Title\n").is_empty());
    }

    #[test]
    fn sources_have_headers_and_bounds() {
        assert!(problems("b.rs", "fn f() {}\n")[0].starts_with("b.rs:1: begins with no `//!`"));
        assert!(problems(".ci/run", "#!/bin/sh\nset -eu\n")[0].contains("begins with no `#`"));
        let long = format!("//! What this is.\n{}", "\n".repeat(MOST_LINES));
        assert!(problems("b.rs", &long)[0].starts_with("b.rs: has 801 lines"));
        assert!(problems("b.rs", "//! What this is.")[0].contains("new line"));
    }

    #[test]
    fn unfinished_work_and_one_machines_paths_are_found() {
        for word in UNFINISHED {
            assert_eq!(problems("b.rs", &format!("//! What this is.\n// {word}: more\n")).len(), 1, "{word}");
            assert!(problems("b.rs", &format!("//! What this is.\n// {word}S\n")).is_empty(), "{word}");
        }
        for path in MACHINE {
            assert_eq!(problems("c.toml", &format!("file = \"{path}x\"\n")).len(), 1, "{path}");
            assert!(problems("d.md", &format!("https://example.org{path}x\n")).is_empty(), "{path}");
        }
    }

    #[test]
    fn blanks_at_the_end_and_tabs_are_found() {
        assert!(problems("b.rs", "//! What this is. \n")[0].starts_with("b.rs:1: ends in blanks"));
        assert!(problems("b.toml", "a\t= 1\n")[0].starts_with("b.toml:1: holds a tab"));
        assert!(problems("Cargo.lock", "a\t= 1 \n").is_empty());
    }

    #[test]
    fn inputs_are_opened_through_one_crate() {
        for call in READS {
            let text = format!(
                "//! What this is.\nlet a ={}{call}path)?;\n",
                if call.starts_with(' ') { "" } else { " std::" }
            );
            assert!(problems("a/src/b.rs", &text)[0].starts_with("a/src/b.rs:2: opens a file"), "{text}");
            for path in ["a/tests/b.rs", "a/src/b/tests.rs", "xtask/src/b.rs", READERS[0].0] {
                assert!(problems(path, &text).is_empty(), "{path}");
            }
        }
        assert!(problems("a/src/b.rs", "//! What this is.\n#[cfg(test)]\nmod tests { std::fs::read(1) }\n").is_empty());
        assert!(problems("a/src/b.rs", "//! What this is.\nlet a = StoreFile::open(path);\n").is_empty());
    }

    #[test]
    fn unchecked_code_stays_in_its_files() {
        let text = format!("//! What this is.\nfn f() {{ {} {{}} }}\n", concat!("uns", "afe"));
        assert_eq!(problems("b.rs", &text).len(), 1);
        assert!(problems("sim/src/table.rs", &text).is_empty());
        assert!(problems("b.rs", "//! What this is.\n// no unsafe { } here\n").is_empty());
    }
}
