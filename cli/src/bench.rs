//! `nandscape bench`: a workload on a drive behind a socket or a ring, at the wall clock.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Resolved;
use nandscape_host_block::{Config, PredictorKind};
use nandscape_host_path::Config as HostConfig;
use nandscape_lab_report::format::{bytes, count, rounded, seconds};
use nandscape_lab_run::chain::{BlockOver, LayerReport as _, drives_below};
use nandscape_lab_run::wall::{Endpoint, InProcess, ServerCpu, WallError, WallReport, WallRun};
use nandscape_lab_run::{Chain, DriveSpec, LiveDrives, LiveReport, Precondition, name_of_drive};
use nandscape_sim::Span;
use nandscape_transport_reactor::PollMode;

use crate::failure::Failure;
use crate::numbers::whole;
use crate::over::{self, Over};
use crate::pages::{self, Page};
use crate::serve::PollArg;
use crate::sim::{StoreArg, if_unseen, resolve};
use crate::sim_layers::check_live;
use crate::state_words::live_state;
use crate::trace::TraceWords;
use crate::workload_words::{JOB_WORDS, WorkloadWords};
use crate::{block_words, host_words, output, progress, sim, table};

/// Run a workload on a drive behind a socket or a ring, at the wall clock.
///
/// The workloads are those of `nandscape sim`, and so is the report; latencies are those that a host on this machine sees.
/// Writing workloads overwrite the drive.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape serve --drive default --store none --precondition full \\
      --nbd unix:n.sock
  nandscape bench --to 'nbd+unix:///default?socket=n.sock' --rw randread \\
      --iodepth 1 --runtime 10s

  nandscape bench --to nbd://127.0.0.1:10809/disk --workload ycsb-a --json
  nandscape bench --to ring://default --store none --precondition full \\
      --rw randread --runtime 5s
  nandscape bench --to ring://default --no-delay --rw randread \\
      --io-count 1000000
  nandscape bench --to ring://default --precondition full --rw randread \\
      --iodepth 1 --runtime 5s --set host.completion=hybrid
  nandscape bench --to vfio-user://f.sock --control c.sock --rw randread \\
      --iodepth 1 --runtime 5s --set host.completion=precompletion
  nandscape bench --to ring://default --store none --over raid1:2 \\
      --over cache,memory=64MiB --rw randread --runtime 5s
        a page cache over a mirror of two drives

Drives:
  nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH
        an export of an NBD server, a connection for each job
  nvme-tcp://HOST:PORT/NQN[?OPTIONS]
        a namespace of an NVMe/TCP target, a connection for each job;
        options: namespace=N, queues=N, depth=N, digests=header,data
  vfio-user://PATH
        a PCI function behind a vfio-user socket, a queue pair for each
        job; it is polled, as by a driver in user space, unless
        host.completion says otherwise
  ring://PROFILE
        a drive of this process, over rings between two threads

Exit status: 0 when done, 1 when requests failed or the connection was lost, 2 for bad usage, or a drive that cannot be reached.")]
pub(crate) struct BenchArgs {
    /// A job file of fio as the workload, as in `nandscape sim`
    #[arg(value_name = "JOBS.fio", conflicts_with_all = ["workload", "trace"], conflicts_with_all = JOB_WORDS)]
    jobs: Option<String>,
    /// The drive, see the end of this help
    #[arg(long, value_name = "URL")]
    to: Endpoint,
    /// Put a layer of a host over a ring:// drive: [NAME=]KIND[:N][,KEY=VALUE]..., as in `nandscape sim`; may be repeated, from the bottom
    /// up. The command builds as many drives as the layers need, all on one thread. --set NAME.KEY=VALUE changes a layer
    #[arg(long, value_name = "LAYER")]
    over: Vec<Over>,
    /// Change a key of the profile of a ring:// drive; may be repeated. block.deadline=500us and other keys of block put the
    /// block layer of a host over any drive: docs/techniques/mittos.md. host.completion=hybrid and other policies decide how this
    /// program waits for completions: docs/bench.md
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// State of a ring:// drive at the start [default: none]
    #[arg(long, value_name = "none|full|steady", value_parser = live_state)]
    precondition: Option<Precondition>,
    /// Where a ring:// drive keeps data [default: none]
    #[arg(long, value_enum)]
    store: Option<StoreArg>,
    /// Set the times of flash, link and firmware of a ring:// drive to zero
    #[arg(long)]
    no_delay: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Whether to sleep when nothing is to be done, or to keep a core busy. A ring:// or
    /// vfio-user:// drive is never waited for asleep, except with host.completion
    #[arg(long, value_enum, default_value = "adaptive")]
    poll: PollArg,
    /// The control socket of the server of the drive, on this machine: with host.completion, the report has the processor time of
    /// its process too. A ring:// drive needs no socket: the report always has its processor time
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Give up when a drive has requests and answers nothing for this long [default: 60; for nvme-tcp:// what the URL
    /// says, else 600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..))]
    patience: Option<u16>,
    /// Write the report of a ring:// drive into this folder, as `nandscape sim --out`, and the figures of this program to
    /// bench.json there. The report of another drive is its server's: `nandscape serve --out`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    words: WorkloadWords,
    #[command(flatten)]
    trace_words: TraceWords,
}

/// Runs it and prints the report.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let workload = args.words.workload_of(args.jobs.as_deref(), &args.trace_words, None)?;
    let (completion, set) = host_words::policy_of(&args.set)?;
    let refused = |problem: String| Failure::Input(anyhow::anyhow!("--over: {problem}"));
    let mut chain = over::chain(&args.over);
    let set = if chain.is_empty() { set } else { chain.take(&set).map_err(refused)? };
    let (block, of_drive) = block_and_drive(&set)?;
    if let Some(folder) = &args.out {
        prepare_out(args, folder)?;
    }
    let server = server(args, completion.is_some())?;
    let in_process = in_process(args, (&of_drive, &chain), completion.as_ref())?;
    let (endpoint, seed, busy) = (&args.to, args.seed, PollMode::from(args.poll) == PollMode::Busy);
    let patience = args.patience.map(|seconds| Span::from_s(seconds.into()));
    let in_this = in_process.as_ref();
    let tell = output::note;
    let run =
        WallRun { endpoint, in_process: in_this, workload, seed, block, completion, server, busy, patience, tell };
    let mut report = match run.run(progress::bar()) {
        Ok(report) => report,
        Err(error) => {
            in_process.into_iter().for_each(InProcess::abandon);
            return Err(failure(error));
        }
    };
    report.inputs.set.clone_from(&args.set);
    report.notes.extend((!chain.is_empty()).then(|| format!("over the drive lies {}", chain.in_words())));
    report.host.command = Some(output::command());
    report.notes.iter().for_each(|note| output::note(note));
    if let (Some(folder), Some(drive)) = (&args.out, in_process) {
        write_out(folder, drive, &report).map_err(Failure::Run)?;
    }
    match args.json {
        true => output::result(&report.to_json()),
        false => output::result(&render(&report)),
    }?;
    match report.failed().map(|(_, count)| count).sum() {
        0u64 => Ok(()),
        _ => Err(Failure::Run(anyhow::anyhow!("some requests failed; the report counts them by status"))),
    }
}

/// The server that reports its processor time, if one is given.
fn server(args: &BenchArgs, has_policy: bool) -> Result<Option<Rc<ServerCpu>>, Failure> {
    let Some(path) = &args.control else { return Ok(None) };
    let refused = |problem: String| Failure::Input(anyhow::anyhow!("--control {}: {problem}", path.display()));
    match &args.to {
        Endpoint::Ring(_) => {
            Err(refused("the drive of ring:// is in this process, whose processor time is reported anyway".to_owned()))
        }
        _ if !has_policy => {
            let valid = "the processor time of the server is reported next to a policy; give --set host.completion=interrupt, or another";
            Err(refused(valid.to_owned()))
        }
        _ => {
            let server = ServerCpu::connect(path);
            server
                .map(|server| Some(Rc::new(server)))
                .map_err(|problem| Failure::Input(anyhow::anyhow!("--control {problem}")))
        }
    }
}

/// Checks `--out` before the run.
fn prepare_out(args: &BenchArgs, folder: &Path) -> Result<(), Failure> {
    match &args.to {
        Endpoint::Ring(_) => pages::prepare(folder),
        other => Err(Failure::Input(anyhow::anyhow!(
            "--out {}: the report shows the inside of a drive, and that of {other} is in its server: give --out to `nandscape serve` \
             there; here it is for --to ring://PROFILE",
            folder.display()
        ))),
    }
}

/// Writes the report of the drive, and the figures of this program.
fn write_out(folder: &Path, drive: InProcess, report: &WallReport) -> anyhow::Result<()> {
    if let Some(mut live) = drive.finish().map_err(anyhow::Error::msg)? {
        pages::note_command(&mut live);
        let lines = match &mut live {
            LiveReport::Drive(live) => &mut live.report.inputs.workload_lines,
            LiveReport::Group(_, live) => &mut live.finished.host.workload_lines,
        };
        lines.clone_from(&report.inputs.workload_lines);
        pages::write(folder, &[Page::of(&live)])?;
    }
    sim::write(&folder.join("bench.json"), &(report.to_json() + "\n"))
}

fn failure(error: WallError) -> Failure {
    let input = error.is_input();
    if input { Failure::Input(error.into()) } else { Failure::Run(error.into()) }
}

/// The settings of the block layer, if there are any, and the changes of the drive. By default, the drive decides what is late.
fn block_and_drive(set: &[String]) -> Result<(Option<Config>, Vec<String>), Failure> {
    let (block, of_drive) = block_words::split(set)?;
    let config = |BlockOver { config, is_chosen }: BlockOver| match is_chosen {
        true => config,
        false => Config { predictor: PredictorKind::None, ..config },
    };
    Ok((block.map(config), of_drive))
}

/// The drive of this process, if one is meant.
fn in_process(
    args: &BenchArgs,
    (set, chain): (&[String], &Chain),
    completion: Option<&HostConfig>,
) -> Result<Option<InProcess>, Failure> {
    let Endpoint::Ring(profile) = &args.to else {
        let given = [
            ("--over", !chain.is_empty()),
            ("--set", !set.is_empty()),
            ("--precondition", args.precondition.is_some()),
            ("--store", args.store.is_some()),
            ("--no-delay", args.no_delay),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::Input(anyhow::anyhow!(
                "{option} is for drives of this process (--to ring://PROFILE); this one is as its server made it"
            ))),
            None => Ok(None),
        };
    };
    let resolved = resolve(profile, set)?;
    let resolved = if args.no_delay { resolved.without_delay() } else { resolved };
    resolved.notes.iter().for_each(|note| output::note(note));
    let store = StoreKind::from(args.store.unwrap_or(StoreArg::None));
    if_unseen(&resolved, store).iter().for_each(|note| output::note(note));
    let (mut layers, count) = below(chain, &resolved)?;
    let name = |number: u64| match count {
        1 => resolved.name.clone(),
        _ => name_of_drive(number as usize),
    };
    let drive = |number: u64| DriveSpec {
        name: name(number),
        number,
        profile_name: resolved.name.clone(),
        profile: resolved.to_toml(),
        keeps_data: store == StoreKind::Ram,
        precondition: args.precondition.unwrap_or(Precondition::None),
        from_state: None,
        is_shared: false,
        own_seed: None,
    };
    if args.no_delay {
        layers.without_delay();
    }
    let (version, drives) = (env!("CARGO_PKG_VERSION").to_owned(), (0..count as u64).map(drive).collect());
    let drives = LiveDrives { version, seed: args.seed, drives, layers, is_engine: false, assign: Vec::new() };
    let started = InProcess::start(drives, args.poll.into(), args.out.is_some(), completion);
    started.map(Some).map_err(|problem| Failure::Input(anyhow::anyhow!("--to {}: {problem}", args.to)))
}

/// The layers, and the number of drives that they need.
fn below(chain: &Chain, drive: &Resolved) -> Result<(Chain, usize), Failure> {
    let refused = |problem: String| Failure::Input(anyhow::anyhow!("--over: {problem}"));
    if chain.is_empty() {
        return Ok((Chain::default(), 1));
    }
    let layers = chain.resolve().map_err(refused)?;
    check_live(&layers, (&drive.name, drive))?;
    Ok((chain.clone(), drives_below(&layers)))
}

fn render(report: &WallReport) -> String {
    let WallReport { endpoint, workload, seed, requests, host, .. } = report;
    let speed = match (report.iops, report.bytes_per_s) {
        (Some(iops), Some(rate)) => {
            format!(" in {}: {} IOPS, {}/s", seconds(report.virtual_s), rounded(iops), bytes(rate))
        }
        _ => "; no time passed".to_owned(),
    };
    let mut text = format!(
        "{endpoint} under {workload}, seed {seed}, at the wall clock\n\n{} requests, {}{speed}\n{}\n{}\n",
        count(*requests),
        bytes(report.bytes as f64),
        table::arrivals(report.arrivals.as_ref()),
        table::latencies(&report.latency_us, &report.latency_corrected_us, &report.operations_us),
    );
    text.push_str(&table::flows(&report.flows, None));
    text.extend(report.block.as_ref().map(|block| table::shown(block.shown())));
    text.push_str(&host_words::render_policy(report.completion.as_ref()));
    if let (None, rejected @ 1..) = (&report.block, report.rejected()) {
        text.push_str(&format!("rejected: {} reads, which would have waited too long\n", count(rejected)));
    }
    report.failed().for_each(|(status, failed)| text.push_str(&format!("failed: {failed} commands with {status}\n")));
    let cpu = host.cpu_s.map_or(String::new(), |cpu_s| {
        format!(
            "; {:.2} s of CPU time in this process, {:.2} us a request",
            cpu_s,
            cpu_s * 1e6 / (*requests).max(1) as f64
        )
    });
    text + &format!("connected in {:.2} s, ran for {:.2} s{cpu}\n", host.setup_s, host.wall_s)
}
