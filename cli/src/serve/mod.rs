//! `nandscape serve`: live drives in real time, for any client.

mod args;
mod array;
mod assign;
pub(crate) mod descriptors;
mod drives;
mod faults;
mod functions;
mod group;
mod layers;
mod listeners;
mod live_line;
mod memory;
mod notes;
mod plan;
mod reactors;
mod startup;
mod states;
pub(crate) mod stores;
mod summary;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nandscape_lab_report::{Document, dashboard_page};
use nandscape_transport_control::{ControlServer, DashboardServer, MetricsServer, NONCE_MARK, Startup, TOKEN_MARK};
use nandscape_transport_reactor::handle::{ExportFigures, Figures};
use nandscape_transport_reactor::socket::{Address, remove_socket_files};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub(crate) use args::{PollArg, ServeArgs};

use crate::failure::Failure;
use crate::files::Files;
use crate::{output, pages};
use functions::FunctionArg;
use notes::Notes;
use reactors::{LiveDrive, Running, start_all};
use stores::StoreArg;

/// Why the server is to end.
enum Ending {
    /// A signal, or an order over the control socket.
    Asked,
    /// A reactor has ended by itself.
    Broken,
}

/// Serves until a signal or an order stops it.
pub(crate) fn run(mut args: ServeArgs) -> Result<(), Failure> {
    args.arrange()?;
    let args = &args;
    let mut plan = args.plan()?;
    check_zones(&plan, args)?;
    remove_sockets_on_panic();
    check_addresses(args)?;
    let (tell, ending) = channel();
    let serving = Arc::<AtomicBool>::default();
    let in_files = args.stores()?.iter().any(|store| store.path().is_some());
    let asked = tell.clone();
    watch_signals(move || asked.send(Ending::Asked).is_ok(), serving.clone(), in_files).map_err(Failure::run)?;
    prepare_files(args)?;
    tell_of_pages(args, &plan);
    let (notes, printer) = Notes::start().context("cannot start a thread").map_err(Failure::Run)?;
    let startup = Arc::<Startup>::default();
    let control = control(args, &startup, &tell)?;
    let lines = startup::Lines::of(&startup);
    let broken = tell.clone();
    let mut stores = args.stores()?.into_iter();
    let (mut files, mut new) = (Vec::new(), stores::NewFiles::default());
    for part in &mut plan {
        let of_reactor: Vec<StoreArg> =
            stores.by_ref().take(part.drives.iter().map(|drive| drive.models().len()).sum()).collect();
        files.push(stores::open_all(part, &of_reactor, args, &mut new)?);
    }
    let running = start_all(plan.into_iter().zip(files).collect(), args, (&notes, &startup), move || {
        // The receiver is gone once the server has ended.
        let _ = broken.send(Ending::Broken);
    })?;
    drop(lines);
    serving.store(true, Ordering::SeqCst);
    let before = Early { control, startup };
    let served = serve_clients(args, &running, (&notes, before), &ending, &mut new);
    // Also after a start that has failed: drives in files are to be turned off in order.
    let (figures, ends) = running.stop();
    let ended = served.map(|(ended, _beside)| ended);
    drop(notes);
    printer.finish();
    let ended = ended?;
    output::result(&args.summary(&figures))?;
    ends.settle(args)?;
    match ended {
        Ending::Asked => Ok(()),
        Ending::Broken => Err(Failure::Run(anyhow::anyhow!("a drive has ended by itself"))),
    }
}

/// Serves clients until the server is to end. Returns why it ends, and what continues until its drives have ended.
fn serve_clients(
    args: &ServeArgs,
    running: &Running,
    (notes, before): (&Notes, Early),
    ending: &Receiver<Ending>,
    new: &mut stores::NewFiles,
) -> Result<(Ending, Beside), Failure> {
    let Early { control, startup } = before;
    let beside = watch(args, running, control)?;
    let _awake = args.keep_awake();
    check_nqns(&running.drives)?;
    let _listeners = listeners::listen(args, running, notes)?;
    let log = notes.clone();
    let _functions = functions::listen(args, running, &(Arc::new(move |text: &str| log.say(text)) as _))?;
    new.keep();
    startup.serves();
    let _line = live_line::LiveLine::start(running.handles());
    Ok((wait(ending), beside))
}

/// Removes the sockets at a panic: release builds abort without drops.
fn remove_sockets_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        remove_socket_files();
    }));
}

/// Checks before serving that the files to write at the end can be written.
fn prepare_files(args: &ServeArgs) -> Result<(), Failure> {
    let outputs = [("--record", &args.record), ("--chrome-trace", &args.chrome_trace)];
    let outputs = outputs.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
    let of_profiles = || Files::default().reads_all("--drive", args.profile_files());
    let functions: Vec<Address> = args.functions()?.iter().map(FunctionArg::address).collect();
    let addresses = args.addresses();
    let addresses = addresses.chain(functions.iter().map(|address| ("--vfio-user", address)));
    let addresses = addresses.chain(args.metrics.iter().map(|address| ("--metrics", address)));
    let addresses = addresses.chain(args.dashboard.iter().map(|address| ("--dashboard", address)));
    let sockets = addresses.filter_map(|(option, address)| match address {
        Address::Unix(path) => Some((option, path.as_path())),
        Address::Tcp(_) => None,
    });
    let sockets = sockets.chain(args.control.iter().map(|path| ("--control", path.as_path())));
    let stores = args.stores()?;
    let stores = || stores.iter().filter_map(|store| Some(("--store", store.path()?)));
    let files = args.state_files()?.iter().fold(of_profiles(), |files, path| files.reads("--from-state", path));
    // A store is an input too: a drive that may be there already.
    let files = stores().fold(files, |files, (option, path)| files.reads(option, path));
    let files = sockets.fold(files, |files, (option, path)| files.goes_on_in(option, path));
    let files = args.saves()?.iter().flatten().fold(files, |files, path| files.writes("--save-state", path));
    let files = args.out.iter().fold(files, |files, folder| files.writes_into("--out", folder, Document::file_names()));
    outputs.fold(files, |files, (option, path)| files.writes(option, path)).check()?;
    stores().fold(of_profiles(), |files, (option, path)| files.goes_on_in(option, path)).check()?;
    args.out.as_deref().map_or(Ok(()), pages::prepare)?;
    let Some(trace) = &args.chrome_trace else { return Ok(()) };
    crate::sim::can_write(trace).map_err(|error| Failure::Input(error.context("--chrome-trace")))
}

/// Drives without a page.
fn tell_of_pages(args: &ServeArgs, plan: &[plan::Part]) {
    let all = plan.iter().flat_map(|part| &part.drives);
    for drive in all.filter(|drive| args.out.is_some() && !drive.has_report()) {
        let name = &drive.name;
        output::note(&format!(
            "--out: drive {name} has no report; drives whose flash is in this process have, alone, under layers and under recorded arrays or \
             arrays of arrays"
        ));
    }
}

/// Checks that all addresses can be used, before the drives are built, which may take a while.
fn check_addresses(args: &ServeArgs) -> Result<(), Failure> {
    let control = args.control.as_ref().map(|path| Address::Unix(path.clone()));
    let functions: Vec<Address> = args.functions()?.iter().map(FunctionArg::address).collect();
    let clients = args.addresses().chain(functions.iter().map(|address| ("--vfio-user", address)));
    let others = args.metrics.iter().map(|address| ("--metrics", address));
    let others = others.chain(args.dashboard.iter().map(|address| ("--dashboard", address)));
    let all = clients.chain(others).chain(control.iter().map(|address| ("--control", address)));
    let all: Vec<(&str, &Address)> = all.collect();
    if let Some(address) = args.nvme_tcp.iter().find(|address| matches!(address, Address::Unix(_))) {
        let problem = "NVMe/TCP has no unix sockets: give HOST:PORT, as in 127.0.0.1:4420";
        return Err(Failure::Input(anyhow::anyhow!("--nvme-tcp {address}: {problem}")));
    }
    for (number, (word, address)) in all.iter().enumerate() {
        address.check(args.allow_remote).map_err(|error| no_place(word, address, &error))?;
        // Port 0 is a different port each time.
        let taken = |earlier: &Address| earlier == *address && !address.to_string().ends_with(":0");
        if let Some((other, _)) = all[..number].iter().find(|(_, earlier)| taken(earlier)) {
            return Err(Failure::Input(anyhow::anyhow!("{word} {address}: {other} has the same address")));
        }
    }
    Ok(())
}

/// NBD knows neither zones nor chunks: its clients would write where such a drive takes nothing.
fn check_zones(plan: &[plan::Part], args: &ServeArgs) -> Result<(), Failure> {
    let Some(address) = args.nbd.first() else { return Ok(()) };
    let all = plan.iter().flat_map(|part| &part.drives);
    let Some((drive, has)) = all.filter_map(|drive| Some((drive, drives::written_in_order(drive)?))).next() else {
        return Ok(());
    };
    let name = &drive.name;
    Err(Failure::Input(anyhow::anyhow!(
        "--nbd {address}: drive {name} has {has}, which NBD cannot report to its clients; --vfio-user and --nvme-tcp can"
    )))
}

/// Hosts find drives by their NQN: no two of a server may have the same.
fn check_nqns(drives: &[LiveDrive]) -> Result<(), Failure> {
    let same = |number: usize| drives[..number].iter().find(|earlier| earlier.nqn == drives[number].nqn);
    let Some((number, earlier)) = (0..drives.len()).find_map(|number| Some((number, same(number)?))) else {
        return Ok(());
    };
    let (first, second, nqn) = (&earlier.name, &drives[number].name, &earlier.nqn);
    Err(Failure::Input(anyhow::anyhow!(
        "drives {first} and {second} have the same NQN, {nqn}: hosts could not tell them apart. identity.nqn names one \
         drive: give it in the profile of one, or leave it out"
    )))
}

fn wait(ending: &Receiver<Ending>) -> Ending {
    ending.recv().unwrap_or(Ending::Broken)
}

/// Signals within this time of the first one are the same request: `timeout` sends one to the server, and one to its group.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// SIGTERM, SIGINT and SIGHUP end the server in order; a second request ends it at once. Before the server serves, each ends it at
/// once, unless drives are in files: these are shut down in order. `ask` requests the end, and returns whether the server takes it.
#[expect(clippy::disallowed_methods, reason = "signals come in real time")]
pub(crate) fn watch_signals(
    ask: impl Fn() -> bool + Send + 'static,
    serving: Arc<AtomicBool>,
    in_files: bool,
) -> anyhow::Result<()> {
    // A server that was started with `nohup` outlasts its terminal.
    let watched = if ignores_hang_ups() { &[SIGTERM, SIGINT][..] } else { &[SIGTERM, SIGINT, SIGHUP] };
    let mut signals = Signals::new(watched).context("cannot watch for signals")?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first = None::<Instant>;
        for _ in signals.forever() {
            let is_starting = !serving.load(Ordering::SeqCst);
            if is_starting && !in_files {
                remove_socket_files();
                std::process::exit(0);
            }
            if is_starting && first.is_none() {
                output::note("the server ends once its drives are built; a second signal ends it now, and leaves files as a crash does");
            }
            let is_repeated = first.is_some_and(|first| first.elapsed() > ONE_REQUEST);
            if is_repeated || first.is_none() && !ask() {
                remove_socket_files();
                std::process::exit(1);
            }
            first.get_or_insert_with(Instant::now);
        }
    })?;
    Ok(())
}

/// Whether this process was started with SIGHUP ignored (proc_pid_status(5), `SigIgn`: bit n - 1 is signal n).
fn ignores_hang_ups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// The servers next to the drives; dropping them ends them.
struct Beside {
    _metrics: Option<MetricsServer>,
    _dashboard: Option<DashboardServer>,
    _control: Option<ControlServer>,
}

/// What there is before the drives are built, which may take a while.
struct Early {
    control: Option<ControlServer>,
    startup: Arc<Startup>,
}

/// The control socket, which reports the progress of the start.
fn control(args: &ServeArgs, startup: &Arc<Startup>, tell: &Sender<Ending>) -> Result<Option<ControlServer>, Failure> {
    let Some(path) = &args.control else { return Ok(None) };
    let tell = tell.clone();
    // After an earlier request the receiver may be gone.
    let stop = move || drop(tell.send(Ending::Asked));
    let control = ControlServer::start_early(path, startup.clone(), stop);
    control.map(Some).map_err(|error| no_place("--control", &Address::Unix(path.clone()), &error))
}

fn watch(args: &ServeArgs, running: &Running, control: Option<ControlServer>) -> Result<Beside, Failure> {
    let metrics = args.metrics.as_ref().map(|address| {
        MetricsServer::start(address, args.allow_remote, running.handles())
            .map_err(|error| no_place("--metrics", address, &error))
    });
    let dashboard = args.dashboard.as_ref().map(|address| {
        let page = dashboard_page(NONCE_MARK, TOKEN_MARK);
        let start = |listening| DashboardServer::start(listening, running.handles(), page, args.dashboard_control);
        address.listen(args.allow_remote).and_then(start).map_err(|error| no_place("--dashboard", address, &error))
    });
    let (metrics, dashboard) = (metrics.transpose()?, dashboard.transpose()?);
    control.iter().for_each(|control| control.takes_orders(running.handles()));
    if let Some(dashboard) = &dashboard {
        tell_of_dashboard(dashboard.address(), args);
    }
    if let Some(metrics) = &metrics {
        output::note(&match metrics.address() {
            Address::Tcp(address) => format!("metrics at http://{address}/metrics"),
            Address::Unix(path) => {
                format!("metrics: curl --unix-socket {} http://localhost/metrics", path.display())
            }
        });
    }
    Ok(Beside { _metrics: metrics, _dashboard: dashboard, _control: control })
}

fn tell_of_dashboard(address: &Address, args: &ServeArgs) {
    output::note(&match address {
        Address::Tcp(address) => format!("dashboard at http://{address}/"),
        Address::Unix(path) => format!("dashboard: curl --unix-socket {} http://localhost/", path.display()),
    });
    if args.allow_remote && args.dashboard_control {
        output::note("unauthenticated: any client that reaches the dashboard's address can inject faults");
    }
}

fn no_place(word: &str, address: &Address, error: &std::io::Error) -> Failure {
    Failure::Input(anyhow::anyhow!("{word} {address}: cannot listen: {error}"))
}

/// The figures of all drives together.
pub(crate) fn all_exports(figures: &[Figures]) -> impl Iterator<Item = &ExportFigures> {
    figures.iter().flat_map(|figures| &figures.exports)
}
