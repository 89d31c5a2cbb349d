//! `nandscape hosts`: the built-in hosts, their keys, and the source of each cost.

use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_host_path::{BUILTIN, Config, Profile};

use crate::failure::Failure;
use crate::output;

/// List the built-in hosts, or explain one: its keys, their values and the source of each cost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape hosts
  nandscape hosts show server
  nandscape hosts show i7-4770 --set host.cores=2

Exit status: 0 when shown, 2 for bad usage, or an invalid host.")]
pub(crate) struct HostsArgs {
    #[command(subcommand)]
    command: Option<HostsCommand>,
}

#[derive(Subcommand)]
enum HostsCommand {
    /// List the built-in hosts, as without a command
    #[command(after_help = "Exit status: 0 when shown.")]
    List,
    /// Explain a host: each key with its value, its meaning and its source
    #[command(after_help = "Exit status: 0 when shown, 2 for an invalid host.")]
    Show {
        /// The host, by name or file
        host: String,
        /// Change a key first
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
}

/// Lists, or explains one.
pub(crate) fn run(args: &HostsArgs) -> Result<(), Failure> {
    match &args.command {
        None | Some(HostsCommand::List) => list(),
        Some(HostsCommand::Show { host, set }) => show(host, set),
    }
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["host", "processors", "what it is"]);
    for builtin in BUILTIN {
        let profile = Profile::load(builtin.name).map_err(Failure::input)?;
        table.add_row([profile.name, profile.config.machine.cpus().to_string(), profile.description]);
    }
    output::result(&table.trim_fmt())
}

fn show(host: &str, changes: &[String]) -> Result<(), Failure> {
    let mut profile = Profile::load(host).map_err(Failure::input)?;
    profile.set_all(changes).map_err(Failure::input)?;
    let mut text = format!("{}: {}\n\n", profile.name, profile.description);
    let changed = |key: &str| changes.iter().any(|change| change.split('=').next().is_some_and(|of| of.trim() == key));
    for ((key, meaning), (_, value)) in Config::keys().zip(profile.config.settings()) {
        text.push_str(&format!("{key:20} {value:10} {meaning}\n"));
        let source = match profile.sources.get(key.trim_start_matches("host.")) {
            _ if changed(key) => Some("--set"),
            source => source.map(String::as_str),
        };
        source.iter().for_each(|source| text.push_str(&format!("{:31} source: {source}\n", "")));
    }
    output::result(&text)
}
