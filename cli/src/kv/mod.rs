//! `nandscape kv`: the replicated key-value store on drives.

#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod serve;
mod sim;
pub(crate) mod table;
pub(crate) mod words;

use clap::{Args, Subcommand};
use nandscape_host_block::Config;

use crate::block_words;
use crate::failure::Failure;

/// A replicated key-value store on emulated drives, whose clients evade noisy neighbours.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape kv demo
        three servers, one with a noisy neighbour, with and without fail-fast
  nandscape kv sim --servers 20 --clients 20 --noise bursts \\
      --policy base,hedged,mitt
        the same in simulated time, on a cluster

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct KvArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Three servers on this machine, one with a noisy neighbour: gets with and without fail-fast
    #[cfg(target_os = "linux")]
    Demo(demo::DemoArgs),
    /// A cluster in simulated time, under several policies of its clients
    Sim(Box<sim::SimArgs>),
    /// Serve a store on a drive, in real time
    #[cfg(target_os = "linux")]
    Serve(Box<serve::ServeArgs>),
    /// Run gets on servers, in real time
    #[cfg(target_os = "linux")]
    Bench(Box<bench::BenchArgs>),
}

/// Runs it.
pub(crate) fn run(args: &KvArgs) -> Result<(), Failure> {
    match &args.command {
        #[cfg(target_os = "linux")]
        Command::Demo(args) => demo::run(args),
        Command::Sim(args) => sim::run(args),
        #[cfg(target_os = "linux")]
        Command::Serve(args) => serve::run(args),
        #[cfg(target_os = "linux")]
        Command::Bench(args) => bench::run(args),
    }
}

/// The settings of the servers' block layers, if there are any, and the changes of the profile.
fn block_layer(set: &[String]) -> Result<(Option<Config>, Vec<String>), Failure> {
    let (layer, others) = block_words::split(set)?;
    let Some(config) = layer.map(|layer| layer.config) else { return Ok((None, others)) };
    config.check().map_err(Failure::input)?;
    if config.default_deadline().is_some() || config.predict_only {
        return Err(has_own_deadlines("--set block.deadline and block.predict_only"));
    }
    Ok((Some(config), others))
}

/// Settings of block layers, given as `what`, that hold for the reads of all policies.
fn has_own_deadlines(what: &str) -> Failure {
    Failure::Input(anyhow::anyhow!(
        "{what}: the clients' policies have deadlines, and reads that miss them are rejected; --deadline sets them here, and `nandscape sim` \
         takes both keys"
    ))
}
