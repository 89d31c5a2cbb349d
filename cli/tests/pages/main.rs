//! The pages of the documentation: each output on a page equals the command's output. Commands that take long, real time or
//! another machine show their output in a block without the word `output`, which is not compared.

mod extract;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use extract::{Command as Documented, commands};

/// Lines that depend on the machine begin so, and are not compared.
const OF_THE_MACHINE: [&str; 1] = ["set up in "];

/// Outputs that are compared at least. A page that loses its mark is noticed.
const LEAST: usize = 17;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Markdown files below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// A folder to run commands in, with the files of the repository that pages name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["docs", "facade"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// What a command prints, line by line.
fn printed(folder: &Path, command: &Documented) -> Vec<String> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_nandscape")).args(&command.words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{:?}: {}", command.words, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Whether a text has these lines. `...` stands for any number of lines.
fn fits(text: &[String], shown: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else { return text.is_empty() };
    if first == "..." {
        return (0..=text.len()).any(|skipped| fits(&text[skipped..], rest));
    }
    let same =
        |line: &String| line == first || OF_THE_MACHINE.iter().any(|it| line.starts_with(it) && first.starts_with(it));
    text.first().is_some_and(same) && fits(&text[1..], rest)
}

#[test]
#[expect(clippy::print_stderr, reason = "lists what was compared")]
fn the_outputs_on_the_pages_are_what_the_commands_print() {
    let mut list = vec![root().join("README.md")];
    pages(&root().join("docs"), &mut list);
    let mut compared = Vec::new();
    // Two pages may show one command.
    let mut outputs = BTreeMap::new();
    for page in list {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = folder();
        for command in commands(&text) {
            let Some(shown) = &command.output else { continue };
            let printed = outputs.entry(command.words.clone()).or_insert_with(|| printed(folder.path(), &command));
            assert!(
                fits(printed, shown),
                "{}\nprints\n{}\nand the page shows\n{}",
                place(&page, &command),
                printed.join("\n"),
                shown.join("\n")
            );
            compared.push(place(&page, &command));
        }
    }
    let list = compared.join("\n");
    eprintln!("compared:\n{list}");
    assert!(compared.len() >= LEAST, "{LEAST} outputs were marked with ```output, of which these are left:\n{list}");
}

/// A command with its page and line.
fn place(page: &Path, command: &Documented) -> String {
    format!("{} line {}: nandscape {}", page.display(), command.line, command.words.join(" "))
}

#[test]
fn commands_and_outputs_are_found() {
    let page = "Text with `nandscape drives` in it.\n\n    nandscape sim --rw randread \\\n        --set 'a=b c' | less\n    $ cargo run --release -- demo &\n\n\
                ```output\none\n...\n```\n\n```toml\nnandscape = 1\n```\n";
    let found = commands(page);
    let words: Vec<String> = found.iter().map(|command| command.words.join(",")).collect();
    assert_eq!(words, ["drives", "sim,--rw,randread,--set,a=b c", "demo"]);
    assert_eq!(found[2].output.as_deref(), Some(&["one".to_owned(), "...".to_owned()][..]));
    assert_eq!((found[1].line, &found[1].output), (3, &None));
}

#[test]
fn dots_stand_for_any_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let text = lines("a\nb\nc\nset up in 2 s");
    assert!(fits(&text, &lines("a\n...\nset up in 1 s")) && fits(&text, &lines("...\nc\n...")));
    assert!(!fits(&text, &lines("a\nc\n...")) && !fits(&text, &lines("a\nb\nc")));
}
