//! `nandscape man`: pages for man(1), one for each command.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};

use super::roff;
use crate::failure::Failure;
use crate::{Cli, output};

/// Print the manual page of a command, or write all pages into a folder.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape man sim | man -l -                         read a page
  nandscape man --out ~/.local/share/man/man1
        install all: `man nandscape-sim` shows one then

Exit status: 0 when done, 1 when a page cannot be written, 2 for a command that does not exist.")]
pub(crate) struct ManArgs {
    /// The command, such as `sim` or `lab run` [default: the page of nandscape]
    command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints one, or writes all.
pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    let root = tree();
    match &args.out {
        None => output::result(&roff::page(&find(&root, &args.command)?)),
        Some(folder) => {
            output::create_folder(folder).map_err(Failure::Input)?;
            all(&root).iter().try_for_each(|command| write(folder.join(roff::file_name(command)), command))
        }
    }
}

/// The commands of the parser, with their full names.
fn tree() -> Command {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    root
}

fn find(root: &Command, path: &[String]) -> Result<Command, Failure> {
    let step = |command: Command, name: &String| {
        let found = command.find_subcommand(name).cloned();
        found.with_context(|| format!("nandscape has no command `{}`; see `nandscape --help`", path.join(" ")))
    };
    path.iter().try_fold(root.clone(), step).map_err(Failure::Input)
}

/// A command and all below it.
fn all(command: &Command) -> Vec<Command> {
    [command.clone()].into_iter().chain(command.get_subcommands().flat_map(all)).collect()
}

fn write(path: PathBuf, command: &Command) -> Result<(), Failure> {
    let written = nandscape_files::output::replace(&path, roff::page(command).as_bytes());
    written.with_context(|| path.display().to_string()).map_err(Failure::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_an_exit_status() {
        let commands = all(&tree());
        assert!(commands.len() > 20, "{}", commands.len());
        for command in commands {
            let page = roff::page(&command);
            let name = roff::file_name(&command);
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
            assert!(page.contains("Exit status: 0 "), "{name} does not list its exit status: {page}");
        }
    }

    #[test]
    fn a_command_is_found_by_its_words() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(roff::file_name(&find(&tree(), &words("lab run")).unwrap()), "nandscape-lab-run.1");
        let error = find(&tree(), &words("lab sing")).unwrap_err().to_string();
        assert_eq!(error, "nandscape has no command `lab sing`; see `nandscape --help`");
    }
}
