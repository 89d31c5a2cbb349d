//! `nandscape paper`: the commands that run one source paper's system, as the paper measured it.
//!
//! Left out: the commands themselves, each in its module, and the papers' claims (`nandscape lab`).

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::{engine, fox, lsm, mitt, ycsb};

/// Run what a source paper built, as it measured it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper mitt cache
        MittOS: rejections of a busy page cache
  nandscape paper fox oc-0 --drive dfc-mlc
        OX: uFLIP-OC on an open-channel drive
  nandscape paper ycsb --workload a
        OX: a Bw-tree, with pages on the host or on the drive
  nandscape paper engine
        Shin: reads away from writes and collections

`nandscape lab list` has the papers' claims. Each command also runs without the word `paper`.

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct PaperArgs {
    #[command(subcommand)]
    pub(crate) command: PaperCommand,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum PaperCommand {
    /// MittOS: fail fast where a page cache, a shingled disk, a shared core or a runtime is busy
    Mitt(Box<mitt::MittArgs>),
    /// OX: uFLIP-OC, and patterns on chosen parallel units of an open-channel drive
    Fox(Box<fox::FoxArgs>),
    /// OX: YCSB on a log-structured store with a Bw-tree, conventional and offloaded to the drive
    Ycsb(Box<ycsb::YcsbArgs>),
    /// OX: loads of db_bench on an LSM-tree, on a generic FTL and on one that knows sorted runs
    Lsm(Box<lsm::LsmArgs>),
    /// Shin: readers and writers on a storage engine over several drives, the tail of reads under each policy
    Engine(Box<engine::EngineArgs>),
}

/// The command line with the word `paper` before a command of a paper, which may be left out.
pub(crate) fn in_full(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let place = if words.get(1).is_some_and(|word| word == "help") { 2 } else { 1 };
    if words.get(place).is_some_and(|word| PaperCommand::has_subcommand(&word.to_string_lossy())) {
        words.insert(place, "paper".into());
    }
    words
}

/// Runs the command.
pub(crate) fn run(command: &PaperCommand) -> Result<(), Failure> {
    match command {
        PaperCommand::Mitt(args) => mitt::run(args),
        PaperCommand::Fox(args) => fox::run(args),
        PaperCommand::Ycsb(args) => ycsb::run(args),
        PaperCommand::Lsm(args) => lsm::run(args),
        PaperCommand::Engine(args) => engine::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_may_be_left_out() {
        let full = |text: &str| {
            let words = in_full(text.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(full("nandscape mitt cache"), "nandscape paper mitt cache");
        assert_eq!(full("nandscape help fox"), "nandscape help paper fox");
        for same in
            ["nandscape", "nandscape paper lsm", "nandscape sim --drive lsm", "nandscape help sim", "nandscape help"]
        {
            assert_eq!(full(same), same);
        }
    }
}
