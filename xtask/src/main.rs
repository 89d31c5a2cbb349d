//! `cargo xtask`: the single entry point for contributors and continuous integration.
//!
//! | file | what |
//! |---|---|
//! | `test` | everything that must pass, in one command |
//! | `suites` | test programs, side by side; parts of the workspace by name |
//! | `watchdog` | tests that hang are ended and named |
//! | `lint` | formatting, Clippy, documentation |
//! | `layering` | allowed dependencies between crates |
//! | `tidy` | the form of files: headers, lengths, links |
//! | `sources` | sources of other programs whose tests are run |
//! | `tools` | external programs used by tests |
//! | `fuzz` | hostile input found by a fuzzer |
//! | `bench` | speed and memory, alone or against another revision |
//! | `release` | the release program, optimised with a profile of training runs |
//! | `python` | the tests of the Python package, and its wheel |
//! | `run`, `say`, `files`, `clock` | programs run, lines printed, files found, time taken |

mod bench;
mod clock;
mod files;
mod fuzz;
mod layering;
mod lint;
mod python;
mod release;
mod run;
mod say;
mod sources;
mod suites;
mod test;
mod tidy;
mod tools;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks for contributors and continuous integration.
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
    /// Check the dependencies between crates
    Layering,
    /// Check the form of the files, and print their measures
    Tidy,
    /// Look for the programs that tests need, and install them if that needs no password
    Tools,
    /// Run a program of the fuzzer, which needs a nightly toolchain
    Fuzz(fuzz::FuzzArgs),
    /// Measure speed and memory; the results are kept under bench/results
    Bench(bench::BenchArgs),
    /// Build the wheel of the Python package under target/wheels, and use it in an environment of its own
    Wheel,
    /// Build the release program, optimised with a profile of training runs
    Release(release::ReleaseArgs),
}

fn main() -> ExitCode {
    let result = match Door::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Layering => layering::run(),
        Command::Tidy => tidy::run(),
        Command::Tools => tools::run(),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Wheel => python::wheel(),
        Command::Release(args) => release::run(&args),
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
