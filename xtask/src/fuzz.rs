//! `cargo xtask fuzz`: runs a program of the fuzzer (`fuzz/`), with the known inputs in the repository and
//! inputs that it found before on this machine.
//!
//! Left out: installing the fuzzer, which needs a nightly toolchain and `cargo install cargo-fuzz`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::run::{self, step};
use crate::say;

/// Run a program of the fuzzer.
///
/// It needs a nightly toolchain and cargo-fuzz: `rustup toolchain install nightly`, `cargo install cargo-fuzz`. Inputs that
/// it finds are kept in fuzz/corpus. An input that breaks something is kept in fuzz/artifacts; when that is mended, it
/// belongs in fuzz/seeds, where `cargo test -p nandscape-lab-fuzz` runs it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask fuzz                       lists the targets
  cargo xtask fuzz nbd                   for a minute
  cargo xtask fuzz nbd --minutes 60      for an hour")]
pub(crate) struct FuzzArgs {
    /// The target; without one, they are listed
    target: Option<String>,
    /// How long
    #[arg(long, value_name = "MINUTES", default_value_t = 1)]
    minutes: u64,
}

/// Runs it.
pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    let targets = targets()?;
    let Some(target) = &args.target else {
        say::line(&format!("targets: {}", targets.join(", ")));
        return Ok(());
    };
    if !targets.contains(target) {
        bail!("{target:?} is no target; there are {}", targets.join(", "));
    }
    let corpus = folder().join("corpus").join(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    step(command(target, args.minutes))
}

fn folder() -> PathBuf {
    run::root().join("fuzz")
}

/// The names of the targets: the files of the programs.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = folder().join("fuzz_targets");
    let files = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    let name = |path: &PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = paths.iter().filter_map(name).collect();
    names.sort();
    Ok(names)
}

fn command(target: &str, minutes: u64) -> Command {
    // The fuzzer is a nightly one: the toolchain that runs this would refuse.
    let mut command = Command::new("cargo");
    command.current_dir(run::root()).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command.args(["+nightly", "fuzz", "run", target]);
    command.args(["corpus", "seeds"].map(|inputs| Path::new("fuzz").join(inputs).join(target)));
    command.args(["--", "-timeout=60", "-rss_limit_mb=4096", &format!("-max_total_time={}", minutes * 60)]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_inputs_go_to_the_first_folder() {
        let words = run::words(&command("nbd", 2));
        let right = "cargo +nightly fuzz run nbd fuzz/corpus/nbd fuzz/seeds/nbd -- -timeout=60 -rss_limit_mb=4096 \
                     -max_total_time=120";
        assert_eq!(words, right);
    }

    #[test]
    fn the_targets_are_found() {
        assert!(targets().unwrap().contains(&"nvme_tcp".to_owned()));
    }
}
