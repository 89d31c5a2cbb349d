//! `cargo xtask release`: the release program, optimised for the branches that training runs take.
//!
//! Three steps: a build with counters, the training runs, and a build with their counts. LLVM's `llvm-profdata`
//! merges the counts; it is part of the toolchain's component `llvm-tools`.
//!
//! Left out: training of commands that are not simulations or servers. Code that no run has reached is optimised for size.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::bench::servers::{Folder, Server};
use crate::run::{cargo, output, root, step, target};
use crate::say;

/// Build the release program with a profile of training runs: 5 to 10% fewer instructions a command. Takes three times as long
/// as a plain release build.
#[derive(Args)]
#[command(after_help = "\
Example:
  cargo xtask release         the program is target/profiled/nandscape afterwards

Needs llvm-profdata of the toolchain's LLVM: rustup component add llvm-tools.")]
pub(crate) struct ReleaseArgs {}

/// Simulations, after `nandscape sim --json`: reads, writes under garbage collection, mixes, small and large requests, data that
/// is kept, several drives' ways to collect.
const SIMULATIONS: [&str; 8] = [
    "--drive default --set capacity=2GiB --set geometry.channels=8 --set geometry.dies_per_channel=8 \
     --set geometry.pages_per_block=48 --rw randread --bs 4k --iodepth 32 --precondition full --io-count 200000",
    "--drive default --set capacity=2GiB --set geometry.channels=8 --set geometry.dies_per_channel=8 \
     --set geometry.pages_per_block=48 --rw randwrite --bs 4k --iodepth 32 --precondition steady --io-count 200000",
    "--drive default --set capacity=2GiB --set geometry.channels=8 --set geometry.dies_per_channel=8 \
     --set geometry.pages_per_block=48 --rw randrw --bs 4k --iodepth 32 --precondition steady --io-count 100000",
    "--drive femu-blackbox --set capacity=2GiB --rw randrw --bs 4k --iodepth 16 --precondition steady --io-count 50000",
    "--drive samsung-970pro --set capacity=4GiB --rw randrw --bs 16k --iodepth 16 --precondition steady --io-count 20000",
    "--drive default --set capacity=2GiB --rw write --bs 128k --iodepth 8 --io-count 10000",
    "--drive default --set capacity=2GiB --rw randread --bs 64k --iodepth 8 --precondition full --io-count 10000",
    "--drive default --set capacity=2GiB --store ram --rw randrw --bs 512 --iodepth 8 --io-count 20000",
];

/// Clients of a live drive, as options of fio.
const CLIENTS: [&[&str]; 3] = [
    &["--rw=randread", "--bs=4k", "--iodepth=1", "--number_ios=20000"],
    &["--rw=randrw", "--bs=4k", "--iodepth=32", "--number_ios=40000"],
    &["--rw=randrw", "--bs=256k", "--iodepth=4", "--number_ios=1000"],
];

/// Builds it.
pub(crate) fn run(_: &ReleaseArgs) -> anyhow::Result<()> {
    let program = build(root(), &target().join("profiled"))?;
    say::line(&format!("\nThe program is {}", program.display()));
    Ok(())
}

/// Builds the program of a tree in a folder, and returns its path.
pub(crate) fn build(tree: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let toolchain = Toolchain::here()?;
    let merge = toolchain.merger()?;
    let counts = folder.join("counts");
    if counts.exists() {
        std::fs::remove_dir_all(&counts).with_context(|| format!("cannot empty {}", counts.display()))?;
    }
    let counting = toolchain.compile(tree, folder, &format!("-Cprofile-generate={}", counts.display()))?;
    train(&counting)?;
    let (counted, merged) = (raw_counts(&counts)?, counts.join("merged.profdata"));
    step({
        let mut command = Command::new(merge);
        command.args(["merge", "--output"]).arg(&merged).args(counted);
        command
    })?;
    let built = toolchain.compile(tree, folder, &format!("-Cprofile-use={}", merged.display()))?;
    let program = folder.join("nandscape");
    std::fs::copy(built, &program).context("cannot keep the program built")?;
    Ok(program)
}

/// The training runs.
fn train(program: &Path) -> anyhow::Result<()> {
    for words in SIMULATIONS {
        let mut command = Command::new(program);
        step({
            command.args(["sim", "--json"]).args(words.split_whitespace()).stdout(Stdio::null());
            command
        })?;
    }
    let folder = Folder::new()?;
    let server = Server::nandscape(&folder, program, "training", &["--no-delay"])?;
    for words in CLIENTS {
        if server.fio(words)?.is_none() {
            say::line("fio is not installed: the server is not trained, and is slower for it");
            break;
        }
    }
    server.end().map(|_| ())
}

fn raw_counts(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("no counts in {}", folder.display()))?;
    let files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
    Ok(files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "profraw")).collect())
}

/// The compiler in use.
struct Toolchain {
    sysroot: PathBuf,
    host: String,
    /// The major version of its LLVM, on which the format of counts depends.
    llvm: String,
}

impl Toolchain {
    fn here() -> anyhow::Result<Toolchain> {
        let rustc = || {
            let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
            command.current_dir(root());
            command
        };
        let sysroot = output(rustc().args(["--print", "sysroot"]))?;
        let version = output(rustc().arg("-vV"))?;
        let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let host = field("host:").context("rustc -vV names no host")?;
        let llvm = field("LLVM version:").and_then(|version| version.split('.').next());
        let llvm = llvm.context("rustc -vV names no version of LLVM")?;
        Ok(Toolchain { sysroot: sysroot.trim().into(), host: host.to_owned(), llvm: llvm.to_owned() })
    }

    /// The program that merges counts: the toolchain's own, or one of the same version of LLVM on the search path.
    fn merger(&self) -> anyhow::Result<PathBuf> {
        let own = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/llvm-profdata");
        let candidates = [own, format!("llvm-profdata-{}", self.llvm).into(), "llvm-profdata".into()];
        let fits = |program: &&PathBuf| {
            let version = Command::new(program).arg("--version").output();
            version.is_ok_and(|version| is_version(&String::from_utf8_lossy(&version.stdout), &self.llvm))
        };
        match candidates.iter().find(fits) {
            Some(program) => Ok(program.clone()),
            None => bail!(
                "there is no llvm-profdata of LLVM {0}, neither in the toolchain nor on the search path. \
                 It comes with: rustup component add llvm-tools, or with Debian's package llvm-{0}",
                self.llvm
            ),
        }
    }

    /// Builds the program in the profile `fastest`, with a flag. A target is named so that the flag is not for build scripts and macros.
    fn compile(&self, tree: &Path, folder: &Path, flag: &str) -> anyhow::Result<PathBuf> {
        let mut command = cargo();
        command.current_dir(tree).args([
            "build",
            "--profile",
            "fastest",
            "--package",
            "nandscape-cli",
            "--target",
            &self.host,
        ]);
        let before = std::env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{before} {flag}").trim()).env("CARGO_TARGET_DIR", folder);
        step(command)?;
        Ok(folder.join(&self.host).join("fastest/nandscape"))
    }
}

/// Whether a program's answer to `--version` names this major version of LLVM.
fn is_version(text: &str, llvm: &str) -> bool {
    let version = text.split("LLVM version ").nth(1);
    version.and_then(|version| version.split('.').next()).is_some_and(|major| major == llvm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_merger_of_the_same_llvm_reads_the_counts() {
        let text = "LLVM (http://llvm.org/):\n  LLVM version 22.1.2-rust-1.95.0-stable\n  Optimized build.\n";
        assert!(is_version(text, "22") && !is_version(text, "2") && !is_version("Debian LLVM version 14.0.6", "22"));
        assert!(!is_version("no such program", "22"));
    }

    #[test]
    fn the_toolchain_is_known() {
        let toolchain = Toolchain::here().unwrap();
        assert!(toolchain.sysroot.join("lib").exists(), "{}", toolchain.sysroot.display());
        assert!(toolchain.llvm.parse::<u32>().is_ok() && toolchain.host.contains('-'));
    }
}
