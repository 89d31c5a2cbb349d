//! `cargo xtask`: the one door for everything a contributor or continuous integration does here.
//!
//! | file | what |
//! |---|---|
//! | `test` | everything that must pass, in one command |
//! | `lint` | formatting, Clippy, documentation |
//! | `layering` | which crate may depend on which |
//! | `tidy` | what files look like: headers, lengths, links |
//! | `tools` | other people's programs that tests are run with |
//! | `bench` | speed and memory, alone or against another revision |
//! | `run`, `say`, `files`, `clock` | programs run, lines printed, files found, time taken |

mod bench;
mod clock;
mod files;
mod layering;
mod lint;
mod run;
mod say;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The one door: what a contributor and continuous integration run.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true, max_term_width = 110)]
#[command(after_help = "\
Start here:
  cargo xtask test            before a commit: everything that must pass
  cargo xtask test --quick    while at work: the same without documentation and its examples
  cargo xtask bench --runs 3 --against main
                              whether a change made it faster or slower

Each command exits with 0 when all is well, and with 1 and a line that says what is not.")]
struct Door {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that must pass: layering, tidy, lint, then all tests
    Test(test::TestArgs),
    /// Check formatting, Clippy's lints and the documentation
    Lint(lint::LintArgs),
    /// Check which crate depends on which
    Layering,
    /// Check what the files look like, and print their measures
    Tidy,
    /// Look for the clients that the tests of live drives need, and install them where that can be done without asking
    Tools,
    /// Measure speed and memory; the results are kept under bench/results
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    let result = match Door::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Layering => layering::run(),
        Command::Tidy => tidy::run(),
        Command::Tools => tools::run(),
        Command::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Door::command().debug_assert();
    }
}
