//! `nandscape memcached`: memcached's protocols over the storage engine on several drives, in real time.
//!
//! | file | what |
//! |---|---|
//! | `files` | drives in files or in memory |
//! | `remote` | remote drives, and orders about them |

mod files;
mod remote;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use clap::{Args, ValueEnum};
use nandscape_apps_memcached_engine::policy::{Need, POLICIES, policy};
use nandscape_apps_memcached_engine::{Ack, Config, ControlError as Lack, EngineError, OpenError, Placement, Stats};
use nandscape_apps_memcached_run::live::{Place, ServeError, ServeSpec, ServedDrive, Serving, serve};
use nandscape_device_ssd::Resolved;
use nandscape_lab_report::dashboard_page;
use nandscape_lab_report::format::{bytes, count};
use nandscape_lab_run::Target;
use nandscape_sim::Span;
use nandscape_sim::units::Bytes;
use nandscape_transport_control::{DashboardServer, NONCE_MARK, TOKEN_MARK};
use nandscape_transport_reactor::socket::{Address, Listening, remove_socket_files};

use crate::engine::{check_drives, check_parts, drive_of, known, placement, small_items};
use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;
use crate::serve::stores::NewFiles;
use crate::serve::{descriptors, watch_signals};
use files::Anew;

/// Serve memcached's protocols over a storage engine on several drives, in real time.
///
/// Any client of memcached can connect: the text and the meta protocol are served. Items lie on the drives, mirrored and striped
/// (RAID-1+0) or with parity; memory holds the index, a cache, and changes that wait for their drives. A line on standard output reports that clients can
/// connect, and where.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape memcached --listen 127.0.0.1:11211
        four drives of 1 GiB in memory
  nandscape memcached --listen 127.0.0.1:11211 --store cache \\
      --set capacity=8GiB --memory 512MiB
        drives in files of the folder cache, which a restart continues with
  nandscape memcached --listen unix:m.sock --drives 5 --placement parity
  nandscape memcached --listen unix:m.sock --drives 2 --policy epochs \\
      --ack all
  nandscape memcached --listen 127.0.0.1:11211 --store cache --rebuild
        the file of a drive is missing: it is made anew from its mirror
  nandscape memcached --listen 127.0.0.1:11211 \\
      --drive nvme-tcp://127.0.0.1:4420/NQN \\
      --drive nvme-tcp://127.0.0.1:4421/NQN
        two drives of other servers (nandscape serve --nvme-tcp)
  nandscape memcached --listen unix:m.sock --dashboard 127.0.0.1:8090
        a page of the drives at work, for a browser
  nandscape ctl memcached replace m.control d1 nvme-tcp://HOST:PORT/NQN
        put another drive in the place of a lost one (--control m.control)

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, once all is on the drives; 1 when the server has failed, or a second signal has ended it
at once; 2 for bad usage or input.")]
pub(crate) struct MemcachedArgs {
    /// How the drives hold the items: copies on pairs of drives, or parity: data on all drives but one, and their parity on that one. A store
    /// keeps its placement
    #[arg(long, value_name = "NAME", default_value = "copies", value_parser = placement)]
    placement: Placement,
    /// Drives, in pairs of an even and an odd one; with parity, 3 to 16. 1 is valid if the drive has several FTLs, each of which is a drive
    /// of the engine. Left out: 4, or the remote drives
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_DRIVES))]
    drives: Option<u64>,
    /// Profile of the drives; or, once for each drive and in the store's order, a remote one: nvme-tcp://HOST:PORT/NQN. Its
    /// options, as ?namespace=N&patience=SECONDS: the namespace, which a drive with several needs, and how long the drive may be out of reach or
    /// silent before it has failed (10)
    #[arg(long, value_name = "P|URL", default_value = "default")]
    drive: Vec<String>,
    /// Empty the remote drives, and make a new store on them
    #[arg(long)]
    overwrite: bool,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 1GiB, lba_size 4KiB and
    /// buffer.mode capacitor
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// When drives are written and collect garbage, and which of them are read
    #[arg(long, value_name = "NAME", default_value = "gc_control", value_parser = known)]
    policy: String,
    /// Where clients connect: unix:PATH or HOST:PORT; may be repeated
    #[arg(long, value_name = "ADDR", required = true, value_parser = client_address)]
    listen: Vec<Address>,
    /// Take orders at a unix socket: `nandscape ctl` replaces lost drives, prints statistics and ends the server
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Serve a live page about the drives over HTTP at HOST:PORT, for a browser: latency, throughput, dies, causes, wear
    #[arg(long, value_name = "ADDR")]
    dashboard: Option<Address>,
    /// Allow TCP addresses that other machines can reach. There is no authentication
    #[arg(long)]
    allow_remote: bool,
    /// A folder for a file of each drive, which are made if they do not exist; left out, the drives are in memory
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,
    /// What the drives in files acknowledge outlasts the host's loss of power, too, not only the end of the process
    #[arg(long)]
    store_sync: bool,
    /// Make the missing files of a store anew, from the drives' twins, while clients are served. Without it a store whose drives lack their twins is served from
    /// those that remain
    #[arg(long)]
    rebuild: bool,
    /// Memory for index, cached values and changes that wait
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    memory: Bytes,
    /// Of that, for changes that wait for their drives; a change that finds as much waits. Left out: a quarter of --memory, at most
    /// 16MiB
    #[arg(long, value_name = "BYTES")]
    dirty: Option<Bytes>,
    /// Items of at most this many bytes of key and value share blocks of 4 KiB. Memory holds 32 bytes a block instead of an index entry an
    /// item; each change writes a block. 0 is off; 1024 is the maximum
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = small_items)]
    small_items: Bytes,
    /// When a change counts as done: in memory, on one replica, or on all
    #[arg(long, value_enum, default_value = "cache")]
    ack: AckArg,
    /// How long a change may wait in memory before it is flushed
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = flush_after)]
    flush_after: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    // Otherwise clap takes it for --overwrite, which empties drives.
    #[arg(long, hide = true)]
    over: Option<String>,
}

/// A time in milliseconds. A plain number is one of milliseconds.
fn flush_after(text: &str) -> Result<u64, String> {
    let ns = match text.parse::<u64>() {
        Ok(ms) => ms.saturating_mul(1_000_000),
        Err(_) => text.parse::<Span>().map_err(|error| error.to_string())?.ns(),
    };
    match (ns % 1_000_000, ns / 1_000_000) {
        (0, ms @ 1..=3_600_000) => Ok(ms),
        _ => Err("whole milliseconds from 1ms to 3600s are valid".to_owned()),
    }
}

/// An address for clients.
fn client_address(text: &str) -> Result<Address, String> {
    let is_unix = text.starts_with("unix:");
    text.parse().map_err(|error| match is_unix {
        true => error,
        false => format!("{text:?} is no address: unix:PATH, or HOST:PORT as in 127.0.0.1:11211, is valid"),
    })
}

#[derive(Copy, Clone, ValueEnum)]
enum AckArg {
    Cache,
    One,
    All,
}

/// Models, unless their number is chosen.
const DRIVES: u64 = 4;
const MOST_DRIVES: u64 = 64;
/// The version of memcached whose commands are served, the first with the meta protocol. libmemcached rejects a server of a version 0.
const LIKE: &str = "1.6.0";

/// What built-in drives have unless it is set; the last one only if they have zones, whose width divides their six planes.
const DEFAULTS: [(&str, &str); 4] =
    [("capacity", "1GiB"), ("lba_size", "4KiB"), ("buffer.mode", "capacitor"), ("ftl.zone.width", "2")];

impl MemcachedArgs {
    fn needs_zones(&self) -> bool {
        policy(&self.policy).is_some_and(|policy| policy.needs() == Need::Zones)
    }

    fn defaults(&self) -> &'static [(&'static str, &'static str)] {
        if self.needs_zones() { &DEFAULTS } else { &DEFAULTS[..DEFAULTS.len() - 1] }
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if let Some(layers) = &self.over {
            return wrong(format!("--over {layers}: memcached takes no layers; `nandscape paper engine --over` does"));
        }
        self.check_remote()?;
        if self.is_remote() {
            check_drives(self.count(), self.placement, &self.policy)?;
        }
        if self.memory.0 < 1 << 20 {
            return wrong(format!("--memory {}: 1MiB or more is valid", self.memory));
        }
        let dirty = self.dirty();
        if dirty.0 < 1 << 16 || dirty.0 > self.memory.0 / 2 {
            return wrong(format!("--dirty {dirty}: 64KiB to half of --memory are valid"));
        }
        if self.store.is_some() && self.needs_zones() {
            return wrong(format!(
                "--store: a drive with zones cannot be in a file, only one whose FTL is \"page\" or \"ox_block\"; another --policy than {} is valid, or leave --store out",
                self.policy
            ));
        }
        if self.store_sync && self.store.is_none() {
            return wrong("--store-sync: no drive is in a file; give --store FOLDER, or leave it out".to_owned());
        }
        if self.rebuild && self.store.is_none() {
            return wrong("--rebuild: no drive is in a file; give --store FOLDER, or leave it out".to_owned());
        }
        for address in &self.listen {
            address.check(self.allow_remote).map_err(|error| cannot_listen(("--listen", address), &error))?;
        }
        Ok(())
    }

    /// The sockets of `--control` and `--dashboard`. They are bound before the drives are opened, so that an address that
    /// cannot be used is reported before any client is served.
    fn listen(&self) -> Result<(Option<Listening>, Option<Listening>), Failure> {
        let control = self.control.as_ref().map(|path| Address::Unix(path.clone()).listen(false));
        let control = control.transpose().map_err(|error| self.no_control(&error))?;
        let dashboard = self.dashboard.as_ref().map(|address| {
            address.listen(self.allow_remote).map_err(|error| cannot_listen(("--dashboard", address), &error))
        });
        Ok((control, dashboard.transpose()?))
    }

    fn no_control(&self, error: &io::Error) -> Failure {
        let path = self.control.as_deref().unwrap_or(Path::new("")).display();
        Failure::Run(anyhow::anyhow!("--control {path}: {error}"))
    }

    /// Whether the drives are remote.
    fn is_remote(&self) -> bool {
        self.drive.iter().any(|drive| Target::is_one(drive))
    }

    /// Drives.
    fn count(&self) -> u64 {
        self.drives.unwrap_or(if self.is_remote() { self.drive.len() as u64 } else { DRIVES })
    }

    fn dirty(&self) -> Bytes {
        self.dirty.unwrap_or(Bytes((self.memory.0 / 4).min(16 << 20)))
    }

    fn config(&self) -> Config {
        let ack = match self.ack {
            AckArg::Cache => Ack::Cache,
            AckArg::One => Ack::One,
            AckArg::All => Ack::All,
        };
        let now = now();
        Config {
            memory: self.memory.0,
            dirty: self.dirty().0,
            segment: None,
            flush_after_ms: self.flush_after,
            ack,
            caches: true,
            placement: self.placement,
            small: self.small_items.0,
            start_s: now.as_secs(),
            start_ns: now.subsec_nanos(),
            id: now.as_nanos() as u64 | 1,
            ..Config::default()
        }
    }

    /// The drives, the settings of the engine on them, and how drives of this process are made anew.
    fn all(&self, new: &mut NewFiles) -> Result<(Vec<Place>, Config, Option<Anew>), Failure> {
        if self.is_remote() {
            let targets = self.targets()?;
            let patience = targets.iter().map(|target| target.patience).max().unwrap_or_default();
            let config = Config { patience_ms: patience.ns() / 1_000_000, ..self.config() };
            return Ok((targets.into_iter().map(Place::Remote).collect(), config, None));
        }
        let profile = drive_of(&self.drive[0], &self.set, (self.defaults(), &self.policy), (&[], &[]))?;
        let ftls = profile.parts().len().max(1);
        self.check_ftls(&profile, ftls as u64)?;
        check_offers(&self.policy, &profile)?;
        profile.notes.iter().for_each(|note| output::note(note));
        let places = Place::of_ftls(self.places(&profile, new)?, ftls);
        Ok((places, self.config(), Some(Anew::of(self, profile))))
    }

    /// Checks the drives of this process. Each of their FTLs is a drive of the engine.
    fn check_ftls(&self, profile: &Resolved, ftls: u64) -> Result<(), Failure> {
        let count = self.count();
        check_drives(count * ftls, self.placement, &self.policy)?;
        check_parts((profile, count as usize), (&self.policy, self.placement))?;
        if count * ftls > MOST_DRIVES {
            return Err(Failure::Input(anyhow::anyhow!(
                "--drives {count}: each drive has {ftls} FTLs; at most {} drives are valid",
                MOST_DRIVES / ftls
            )));
        }
        if count == 1 && policy(&self.policy).is_some_and(|policy| policy.replicas() > 1) {
            output::note("all FTLs are of one drive: the loss of the drive is the loss of all items");
        }
        Ok(())
    }

    /// The order that has a missing drive rebuilt.
    fn how_to_rebuild(&self, drive: u64) -> String {
        let (name, order) = (files::name(drive), "nandscape ctl memcached replace");
        match &self.control {
            Some(path) => {
                format!("to rebuild {name}, start with --rebuild, or run: {order} {} {name} new", path.display())
            }
            None => format!(
                "to rebuild {name}, start with --rebuild; a server with --control SOCKET also takes: {order} SOCKET {name} new"
            ),
        }
    }

    /// Why nothing is served.
    fn refused(&self, error: ServeError) -> Failure {
        match error {
            ServeError::Open(OpenError::Engine(EngineError::Control { drive, error })) if is_need(&error) => {
                Failure::Input(anyhow::anyhow!("--policy {}: drive d{drive}: {error}; {WITHOUT_NEEDS}", self.policy))
            }
            ServeError::Open(OpenError::Engine(error)) => Failure::Run(anyhow::anyhow!("{error}")),
            ServeError::Open(error) => {
                let store = self.store.as_ref().map(|folder| format!("--store {}: ", folder.display()));
                let drives = match error {
                    OpenError::Other { .. } => format!(" (--drives {})", self.count()),
                    _ => String::new(),
                };
                Failure::Input(anyhow::anyhow!("{}{error}{drives}", store.unwrap_or_default()))
            }
            ServeError::Refused(problem) => Failure::Input(anyhow::anyhow!(problem)),
            ServeError::Other(problem) => Failure::Run(anyhow::anyhow!(problem)),
        }
    }
}

/// The policies that are valid on any drive.
const WITHOUT_NEEDS: &str = "--policy epochs or mixed is valid";

/// Whether a drive lacks what a policy needs.
fn is_need(error: &Lack) -> bool {
    matches!(error, Lack::Unsupported | Lack::NoWindows | Lack::NoPlacement(_) | Lack::NoZones)
}

/// Checks that drives of a profile have what a policy needs, before files are made for them. Zones are checked with the profile.
fn check_offers(name: &str, profile: &Resolved) -> Result<(), Failure> {
    let keys = &profile.keys;
    let has_stripes = keys.ftl.rain.width.is_some_and(|width| width > 1);
    let lack = match policy(name).map_or(Need::Nothing, |policy| policy.needs()) {
        Need::Orders => (profile.kind() != "page" || has_stripes).then_some(Lack::Unsupported),
        Need::Windows => (keys.controller.predictable_latency != Some(true)).then_some(Lack::NoWindows),
        Need::Placement(handles) => {
            (keys.ftl.fdp.handles.unwrap_or(0) < u32::from(handles)).then_some(Lack::NoPlacement(handles))
        }
        Need::Nothing | Need::Zones => None,
    };
    lack.map_or(Ok(()), |lack| {
        Err(Failure::Input(anyhow::anyhow!("--policy {name}: drive {}: {lack}; {WITHOUT_NEEDS}", profile.name)))
    })
}

/// The time of day.
#[allow(clippy::disallowed_methods, reason = "items expire at a time of day")]
fn now() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// A forbidden address is wrong usage; a busy address may be free later.
fn cannot_listen((option, address): (&str, &Address), error: &io::Error) -> Failure {
    use io::ErrorKind::{InvalidInput, PermissionDenied};
    let reported = anyhow::anyhow!("{option} {address}: {error}");
    if matches!(error.kind(), InvalidInput | PermissionDenied) {
        Failure::Input(reported)
    } else {
        Failure::Run(reported)
    }
}

/// The page about the drives, which takes no orders.
fn show(listening: Listening, serving: &Serving) -> Result<DashboardServer, Failure> {
    let page = dashboard_page(NONCE_MARK, TOKEN_MARK);
    let shown = DashboardServer::start(listening, vec![serving.handle()], page, false)
        .map_err(|error| Failure::Run(anyhow::anyhow!("--dashboard: {error}")))?;
    output::note(&match shown.address() {
        Address::Tcp(address) => format!("dashboard at http://{address}/"),
        Address::Unix(path) => format!("dashboard: curl --unix-socket {} http://localhost/", path.display()),
    });
    Ok(shown)
}

/// Why the server ends.
enum Ending {
    /// A signal.
    Asked,
    /// It has failed.
    Failed(String),
}

/// Serves until a signal ends it, or it fails.
pub(crate) fn run(args: &MemcachedArgs) -> Result<(), Failure> {
    args.check()?;
    let (tell, ending) = channel();
    let (asked, ordered, is_serving) = (tell.clone(), tell.clone(), Arc::<AtomicBool>::default());
    let watched = watch_signals(move || asked.send(Ending::Asked).is_ok(), is_serving.clone(), args.store.is_some());
    watched.map_err(Failure::Run)?;
    let mut new = NewFiles::default();
    let (places, config, anew) = args.all(&mut new)?;
    let can_renew = anew.as_ref().is_none_or(|anew| anew.check(0).is_ok());
    let missing = places.iter().position(|place| matches!(place, Place::Missing(_)));
    let policy = POLICIES.into_iter().find(|known| *known == args.policy).unwrap_or(POLICIES[0]);
    let spec = ServeSpec {
        drives: (0..).zip(places).map(|(number, place)| ServedDrive { name: files::name(number), place }).collect(),
        policy,
        config,
        overwrites: args.overwrite,
        version: format!("{LIKE}-nandscape-{}", env!("CARGO_PKG_VERSION")),
        listen: args.listen.clone(),
        allow_remote: args.allow_remote,
        most_clients: descriptors::clients_each(1),
        seed: args.seed,
        failed: Arc::new(move |reason| drop(tell.send(Ending::Failed(reason)))),
        log: Arc::new(output::note),
    };
    let (control, dashboard) = args.listen()?;
    let serving = serve(spec).map_err(|error| args.refused(error))?;
    new.keep();
    // The one who waits for the end may have left.
    let on_stop = move || drop(ordered.send(Ending::Asked));
    let control = control.map(|listening| remote::control(listening, (&serving, anew), on_stop)).transpose();
    let begun = control
        .map_err(|error| args.no_control(&error))
        .and_then(|control| Ok((control, dashboard.map(|listening| show(listening, &serving)).transpose()?)));
    let (control, dashboard) = match begun {
        Ok(begun) => begun,
        // Clients may have been served already.
        Err(failure) => {
            return Err(serving.stop().map_or_else(|problem| Failure::Run(anyhow::anyhow!(problem)), |_| failure));
        }
    };
    if let Some(drive) = missing {
        output::note(&match can_renew {
            true => args.how_to_rebuild(drive as u64),
            false => format!("to rebuild {}, start with --rebuild", files::name(drive as u64)),
        });
    }
    is_serving.store(true, Ordering::SeqCst);
    let (items, limit) = (serving.items, Bytes(serving.item_limit as u64));
    output::result(&format!(
        "memcached at {}, policy {policy}: {items} {} found, of at most {limit} each",
        serving.addresses().join(", "),
        if items == 1 { "item" } else { "items" }
    ))?;
    let failed = match ending.recv() {
        Ok(Ending::Failed(reason)) => {
            // Drives that have failed may take long to end.
            output::error(&format!("failed: {reason}"));
            true
        }
        Ok(Ending::Asked) | Err(_) => false,
    };
    // An order that waits for the loop returns when the loop has ended.
    let ended = serving.stop();
    drop((control, dashboard));
    remove_socket_files();
    match ended {
        Err(problem) => Err(Failure::Run(anyhow::anyhow!("failed: {problem}"))),
        Ok(_) if failed => Err(Failure::Run(anyhow::anyhow!("failed, and ended in order: see above"))),
        Ok(stats) => output::result(&summary(&stats)),
    }
}

/// What a server has done, at its end.
fn summary(stats: &Stats) -> String {
    let Stats { items, gets, memory_hits, drive_hits, written_bytes, .. } = *stats;
    format!(
        "{} {}; {} of {} gets were hits; {} written to drives",
        count(items),
        if items == 1 { "item" } else { "items" },
        count(memory_hits + drive_hits),
        count(gets),
        bytes(written_bytes as f64)
    )
}
