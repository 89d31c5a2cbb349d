//! `nandscape kv demo`: three servers on this machine, one with a noisy neighbour.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use anyhow::Context as _;
use clap::Args;
use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_run::Load;
use nandscape_apps_kv_run::live::Clients;
use nandscape_sim::Span;
use nandscape_transport_reactor::socket::Address;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::bench::{clients, measured};
use super::table;
use super::words::time;
use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;

/// Three servers on this machine, one with a noisy neighbour: gets with and without fail-fast.
///
/// Starts three server processes, each with a drive in memory, at sockets in a temporary folder. Another tenant writes 64 KiB blocks to
/// the first drive all the time. A client gets values, from the first server in the first place: waiting for it (Base), and with a
/// deadline beyond which the drive rejects the read and the next server is asked (Mitt). The first row is Base with a server first that
/// has no such neighbour.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape kv demo
  nandscape kv demo --requests 3000

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(super) struct DemoArgs {
    /// The drive of each server
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drives' profile; may be repeated. Drives have 1 GiB unless capacity is set. Keys of block are those of the servers'
    /// block layers, whose predictor is ssd unless block.predictor is set: docs/techniques/mittos.md
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Writes of the neighbour at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    depth: u32,
    /// The deadline of Mitt
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = time)]
    deadline: Span,
    /// Gets of each row
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of the servers so far. Each note appears once, since the servers have the same drives.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<BTreeSet<String>>>);

impl Said {
    /// Passes on the output of a server until it ends.
    fn listen(&self, stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let said = self.clone();
        spawn(move || BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| said.pass_on(&line)))
    }

    fn pass_on(&self, line: &str) {
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned()) {
            return;
        }
        match (line.strip_prefix("note: "), line.strip_prefix("error: ")) {
            (Some(note), _) => output::note(note),
            (_, Some(error)) => output::error(&error),
            _ => output::note(&format!("a server reports: {line}")),
        }
    }
}

/// The server processes, and the folder of their sockets. They end with this program, also where a signal ends it.
#[derive(Clone, Default)]
struct Processes(Arc<Mutex<Vec<Child>>>);

impl Processes {
    fn lock(&self) -> MutexGuard<'_, Vec<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a signal ends the servers, removes the folder and ends this program.
    fn end_at_signals(&self, folder: &Path) -> anyhow::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be handled")?;
        let (processes, folder) = (self.clone(), folder.to_owned());
        spawn(move || {
            let Some(signal) = signals.forever().next() else { return };
            // While it is locked, no other one starts.
            let mut children = processes.lock();
            end(&mut children);
            let _ = std::fs::remove_dir_all(&folder);
            let _ = emulate_default_handler(signal);
        });
        Ok(())
    }

    /// That all servers are at work.
    fn check(&self) -> anyhow::Result<()> {
        for (number, child) in self.lock().iter_mut().enumerate() {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("server {number} ended during the measurement ({status}): the row does not count");
            }
        }
        Ok(())
    }
}

fn end(children: &mut Vec<Child>) {
    for mut child in children.drain(..) {
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The servers; dropped, they are ended.
struct Servers {
    processes: Processes,
    said: Vec<JoinHandle<()>>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        end(&mut self.processes.lock());
        for said in self.said.drain(..) {
            let _ = said.join();
        }
    }
}

impl Servers {
    fn start(&mut self, args: &DemoArgs, address: &Address, noise: &str, said: &Said) -> anyhow::Result<()> {
        let mut command = Command::new(std::env::current_exe().context("where this program is")?);
        command.args(["kv", "serve", "--drive", &args.drive, "--listen", &address.to_string(), "--noise", noise]);
        command.args(["--seed", &args.seed.to_string()]);
        for (key, otherwise) in [("capacity", "capacity=1GiB"), ("block.predictor", "block.predictor=ssd")] {
            if !args.set.iter().any(|change| change.trim_start().starts_with(key)) {
                command.args(["--set", otherwise]);
            }
        }
        for change in &args.set {
            command.args(["--set", change]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = {
            let mut children = self.processes.lock();
            let mut child = command.spawn().context("a server cannot be started")?;
            self.said.extend(child.stderr.take().map(|stream| said.listen(stream)));
            let out = child.stdout.take();
            children.push(child);
            out.context("a server has no output")?
        };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        anyhow::ensure!(line.starts_with("serving at "), "the server at {address} does not serve");
        Ok(())
    }
}

fn start(args: &DemoArgs, folder: &Path) -> anyhow::Result<(Servers, Vec<Address>)> {
    let addresses: Vec<Address> = (0..3).map(|number| Address::Unix(folder.join(format!("{number}.sock")))).collect();
    let noise = format!("steady:{}", args.depth);
    let said = Said::default();
    let mut servers = Servers { processes: Processes::default(), said: Vec::new() };
    servers.processes.end_at_signals(folder)?;
    for (number, address) in addresses.iter().enumerate() {
        let noise = if number == 0 { noise.as_str() } else { "none" };
        servers.start(args, address, noise, &said)?;
    }
    Ok((servers, addresses))
}

/// Runs it.
pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    // Errors of the drive are reported here rather than by a server.
    let (_, set) = super::block_layer(&args.set)?;
    crate::sim::resolve(&args.drive, &set)?;
    let folder = tempfile::tempdir().context("a folder for sockets").map_err(Failure::Run)?;
    let (servers, addresses) = start(args, folder.path()).map_err(Failure::Run)?;
    let load = Load { records: 2_000, requests: args.requests, ..Load::default() };
    let all = clients(addresses, args.deadline, load, args.seed);
    let rows = [("no neighbour", "base", 1), ("Base", "base", 0), ("Mitt", "mitt", 0)];
    let mut runs = Vec::new();
    for (number, (name, policy, first)) in rows.into_iter().enumerate() {
        let of = Clients { policy: policy.to_owned(), order: Order::Server(first), puts: number == 0, ..all.clone() };
        let outcome = measured(&of)?;
        servers.processes.check().map_err(Failure::Run)?;
        runs.push((name.to_owned(), outcome));
    }
    drop(servers);
    if args.json {
        output::result(&serde_json::to_string_pretty(&table::json(&runs, false)).expect("plain data"))?;
    } else {
        output::result(&table::text(&runs, args.requests))?;
    }
    table::check(&runs)
}
