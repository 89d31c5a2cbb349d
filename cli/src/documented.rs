//! The commands of the documentation are commands of this program: each is parsed as if it had been typed.
//!
//! Left out: what they print, which the suite `pages` compares.

#[path = "../tests/pages/extract.rs"]
mod extract;

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use crate::Cli;

/// The Markdown files for users, below the repository's root.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

/// Words that stand for something else, and options that are named without their values.
fn is_a_pattern(words: &[String]) -> bool {
    let stands_for = |word: &String| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    let is_open = |word: &String| word.contains("...") || word.contains('[') || word.contains('…');
    words.iter().any(|word| is_open(word) || stands_for(word))
        || words.last().is_some_and(|word| word.starts_with("--"))
}

#[test]
fn every_command_on_the_pages_is_one_of_this_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = pages(&root.join("docs")).into_iter().chain([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    let mut wrong = Vec::new();
    let mut parsed = 0;
    for page in list.filter(|page| page.exists()) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for command in extract::commands(&text).into_iter().filter(|command| !is_a_pattern(&command.words)) {
            parsed += 1;
            let words = ["nandscape".to_owned()].into_iter().chain(command.words.iter().cloned());
            match Cli::command().try_get_matches_from(words).map_err(|error| error.kind()) {
                // A page may name a command without its arguments, or with files and addresses that are not here.
                Ok(_)
                | Err(ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                Err(
                    ErrorKind::ValueValidation
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ) => {}
                Err(kind) => {
                    wrong.push(format!("{}:{}: {kind:?}: {}", page.display(), command.line, command.words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 100, "only {parsed} commands were found");
}
