//! The commands of the documentation are commands of this program: the test parses each as if typed, with its values. Files and
//! addresses are those of the reader.
//!
//! Left out: their outputs, which the suite `pages` compares.

#[path = "../tests/pages/extract.rs"]
mod extract;

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};

use crate::{Cli, Command, block_words, host_words, sim};

/// The Markdown files for users, below the repository's root.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

/// Words that stand for something else, and options that are named without their values.
fn is_a_pattern(words: &[String]) -> bool {
    let stands_for =
        |word: &String| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase() || letter == ':');
    let is_open = |word: &String| word.contains("...") || word.starts_with('[') || word.contains(['…', '$']);
    words.iter().any(|word| is_open(word) || stands_for(word))
        || words.last().is_some_and(|word| word.starts_with("--"))
}

/// Whether a value is a file or an address of the reader, which this test does not have.
fn is_the_readers(value: &str) -> bool {
    value.contains("://") || value.contains('/') || Path::new(value).extension().is_some_and(|ending| ending.len() > 1)
}

/// Why a command is none of this program.
fn problem(words: &[String]) -> Option<String> {
    let words = ["nandscape".to_owned()].into_iter().chain(words.iter().cloned());
    let error = match Cli::try_parse_from(words) {
        Ok(cli) => return with_unknown_values(&cli.command),
        Err(error) => error,
    };
    let value = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    match error.kind() {
        // A page may name a command without its arguments.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        ErrorKind::ValueValidation if is_the_readers(&value(ContextKind::InvalidValue)) => None,
        _ => Some(error.to_string()),
    }
}

/// The error of a built-in drive with a command's changes. Values that the parser leaves to the run are checked here.
fn with_unknown_values(command: &Command) -> Option<String> {
    let Command::Sim(args) = command else { return None };
    let drive = args.drive.as_deref().filter(|drive| !is_the_readers(drive))?;
    if args.set.iter().any(|change| change.contains(".toml")) || args.host.as_deref().is_some_and(is_the_readers) {
        return None;
    }
    let of_drive = args.layers(&args.set, None).and_then(|(_, set)| {
        let (_, set) = block_words::split(&set)?;
        Ok(host_words::split(args.host.as_deref(), &set)?.1)
    });
    let is_alone = args.array.is_none() && args.over.is_empty();
    let checked = if is_alone { args.check_faults() } else { Ok(()) };
    let resolved = checked.and(of_drive).and_then(|of_drive| sim::resolve_with(drive, &of_drive, &args.fault));
    resolved.err().map(|failure| failure.to_string())
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
            if let Some(problem) = problem(&command.words) {
                wrong.push(format!("{}:{}: {}: {problem}", page.display(), command.line, command.words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 100, "only {parsed} commands were found");
}

#[test]
fn invalid_values_are_found_and_files_of_the_reader_are_not() {
    let problem = |line: &str| problem(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    for wrong in [
        "sim --drive default --store paper",
        "sim --drive default --age never",
        "sim --drive default --fault burn",
        "sim --drive defualt --rw randread",
        "sim --drive default --set ftl.gc.victim=laziest",
        "sim --drive default --set block.deadline=soon",
        "sim --drive default --host server --set host.completion=guess",
        "sim --drive default --depth 3",
    ] {
        assert!(problem(wrong).is_some(), "{wrong}");
    }
    for valid in
        ["sim --drive mine.toml --rw randread", "sim --drive default --set ftl.gc.victim=greedy", "serve", "kv"]
    {
        assert_eq!(problem(valid), None, "{valid}");
    }
}
