//! `nandscape hosts`: the built-in hosts, their keys, and the source of each cost; a profile of this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_host_path::{BUILTIN, Config, Profile};

use crate::failure::Failure;
use crate::output;

/// List the built-in hosts, explain one, or measure this machine as one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape hosts
  nandscape hosts show server
  nandscape hosts show i7-4770 --set host.cores=2
  nandscape hosts measure --out mine.toml
  nandscape sim --drive default --host mine.toml --rw randread

Exit status: 0 when shown or measured, 1 when a measurement failed, 2 for bad usage, or an invalid host.")]
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
    /// Measure switches, wake-ups, system calls, timers and interrupts of this machine, and write a host profile (Linux)
    ///
    /// Needs no privileges. Costs that a program does not see are taken from --base. Each key has its source: the method
    /// and the spread of its samples, or the profile that it is taken from.
    #[command(after_help = "\
Examples:
  nandscape hosts measure --out mine.toml
  nandscape sim --drive default --host mine.toml --rw randread --iodepth 4
  nandscape hosts measure --base i7-4770 --rounds 10000 > old.toml

Exit status: 0 when measured, 1 when a measurement failed, 2 for bad usage, or an invalid host.")]
    Measure(MeasureArgs),
}

#[derive(Args)]
struct MeasureArgs {
    /// The host, by name or file, whose costs replace those that cannot be measured
    #[arg(long, value_name = "HOST", default_value = "server")]
    base: String,
    /// Samples of a figure; figures whose samples take long have fewer
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// Write the profile into this file, and print a table [default: print the profile]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Lists, explains one, or measures one.
pub(crate) fn run(args: &HostsArgs) -> Result<(), Failure> {
    match &args.command {
        None | Some(HostsCommand::List) => list(),
        Some(HostsCommand::Show { host, set }) => show(host, set),
        Some(HostsCommand::Measure(args)) => measure(args),
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
    let settings = profile.config.settings();
    let wide = |column: fn(&(&str, String)) -> usize| settings.iter().map(column).max().unwrap_or(0);
    let (keys, values) = (wide(|(key, _)| key.len()), wide(|(_, value)| value.len()));
    for ((key, meaning), (_, value)) in Config::keys().zip(&settings) {
        text.push_str(&format!("{key:keys$}  {value:values$}  {meaning}\n"));
        let source = if changed(key) { Some("--set".to_owned()) } else { profile.source_of(key) };
        source.iter().for_each(|source| text.push_str(&format!("{:1$}source: {source}\n", "", keys + values + 4)));
    }
    output::result(&text)
}

#[cfg(not(target_os = "linux"))]
fn measure(args: &MeasureArgs) -> Result<(), Failure> {
    let MeasureArgs { base, rounds, out } = args;
    let _ = (rounds, out);
    Err(Failure::Input(anyhow::anyhow!(
        "hosts measure: works on Linux only; `nandscape hosts show {base}` has the base"
    )))
}

#[cfg(target_os = "linux")]
fn measure(args: &MeasureArgs) -> Result<(), Failure> {
    use std::path::Path;

    use anyhow::Context as _;
    use nandscape_lab_host::{MEASUREMENTS, profile};

    use crate::files::Files;
    use crate::progress::Runs;

    let base = Profile::load(&args.base).map_err(|error| Failure::Input(anyhow::anyhow!("--base {error}")))?;
    let failed =
        |out: &Path, error| Failure::Input(anyhow::Error::new(error).context(format!("--out {}", out.display())));
    if let Some(out) = &args.out {
        Files::default().reads("--base", Path::new(&args.base)).writes("--out", out).check()?;
        nandscape_files::output::check_can_write(out).map_err(|error| failed(out, error))?;
    }
    let runs = Runs::of(MEASUREMENTS.len() as u64);
    let measured = nandscape_lab_host::measure(args.rounds as usize, &|name, index| runs.next(name, index));
    drop(runs);
    let findings = measured.context("hosts measure").map_err(Failure::Run)?;
    let program = format!("nandscape {}", env!("CARGO_PKG_VERSION"));
    let text = profile(&findings, &base, &program).map_err(|problem| Failure::Run(anyhow::anyhow!("{problem}")))?;
    match &args.out {
        None => output::result(&text),
        Some(out) => {
            nandscape_files::output::replace(out, text.as_bytes()).map_err(|error| failed(out, error))?;
            output::result(&findings_table(&findings, &base, out))
        }
    }
}

/// What was measured and what was not, a line a key.
#[cfg(target_os = "linux")]
fn findings_table(findings: &[nandscape_lab_host::Finding], base: &Profile, out: &std::path::Path) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["key", "value", "how"]);
    for finding in findings {
        if let Ok(measured) = &finding.found {
            let how = match measured.spread.as_str() {
                "" => measured.how.clone(),
                spread => format!("{spread}: {}", measured.how),
            };
            table.add_row([format!("host.{}", finding.key), measured.value.clone(), how]);
        }
    }
    let mut text = format!("{}\n\nnot measured, taken from {}:\n", table.trim_fmt(), base.name);
    for finding in findings {
        if let Err(why) = &finding.found {
            text.push_str(&format!("  host.{:14} {why}\n", finding.key));
        }
    }
    // A word without a slash or an ending is the name of a built-in host.
    let path = out.to_string_lossy();
    let is_path = path.contains('/') || path.ends_with(".toml");
    let used = if is_path { path.clone() } else { format!("./{path}").into() };
    text + &format!("\nwritten to {}; use it with --host {}\n", output::quoted(&path), output::quoted(&used))
}
