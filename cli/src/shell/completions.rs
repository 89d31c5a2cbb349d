//! `nandscape completions`: the script with which a shell completes the words of a command line. The shell then asks the
//! program itself at each word, so that the answers are those of the installed program.

use std::str::FromStr as _;

use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use super::candidates::with_candidates;
use crate::Cli;
use crate::failure::Failure;
use crate::output;

/// The environment variable with which a shell asks for the words that fit.
const ASKED: &str = "NANDSCAPE_COMPLETE";

/// Print what a shell reads to complete the command line: commands, options, drives, keys, workloads.
#[derive(Args)]
#[command(after_help = "\
Examples, each for the start file of the shell:
  source <(nandscape completions bash)
        ~/.bashrc
  source <(nandscape completions zsh)
        ~/.zshrc, after compinit
  nandscape completions fish | source
        ~/.config/fish/config.fish
  eval (nandscape completions elvish | slurp)
        ~/.config/elvish/rc.elv
  nandscape completions powershell | Out-String | Invoke-Expression
        $PROFILE

Exit status: 0 when printed, 2 for a shell that is not known.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

/// Prints the script. It calls the program by the name that found this one.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let program = std::env::args_os().next().map_or("nandscape".into(), |name| name.to_string_lossy().into_owned());
    output::result(&script(&args.shell, &program)?)
}

fn script(shell: &str, program: &str) -> Result<String, Failure> {
    let shell = Shell::from_str(shell).map_err(|problem| Failure::Input(anyhow::anyhow!(problem)))?;
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).expect("each shell has one");
    let mut text = Vec::new();
    completer.write_registration(ASKED, "nandscape", "nandscape", program, &mut text).map_err(Failure::run)?;
    String::from_utf8(text).map_err(Failure::run)
}

/// Answers a shell that asks for the words that fit, and ends the program then. Otherwise it does nothing.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_candidates(with_papers(Cli::command()))).var(ASKED).complete();
}

/// Adds the commands of `paper`, which also run without that word.
fn with_papers(command: Command) -> Command {
    let papers = command.find_subcommand("paper").cloned();
    let inside: Vec<Command> = papers.iter().flat_map(Command::get_subcommands).cloned().collect();
    command.subcommands(inside.into_iter().map(|inside| inside.hide(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_that_is_offered_has_a_script() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = script(shell, "/opt/a b/nandscape").unwrap();
            assert!(script.contains(ASKED) && script.contains("/opt/a b/nandscape"), "{shell}: {script}");
        }
    }
}
