//! The options of `nandscape serve`, and the plan of drives and reactors that they describe.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::chain::{Chain, FtlLayer, LayerWords, check_over};
use nandscape_lab_run::{DriveSpec, LiveSpec, LowestSpec, Precondition, RemoteSpec, notes_of_each};
use nandscape_layers_array::Config;
use nandscape_transport_nbd::Address;
use nandscape_transport_reactor::recording::Kept;
use nandscape_transport_reactor::{NoIdleStates, PollMode};

use super::array::ArrayArg;
use super::functions::{self, DoorbellsArg, FunctionArg};
use super::group::Group;
use super::layers::{self, Arranged};
use super::plan::{Named, Part};
use super::stores::{self, StoreArg};
use super::{assign, drives, faults, memory, plan, states};
use crate::failure::Failure;
use crate::numbers::whole;
use crate::over;
use crate::sim::if_unseen;
use crate::sim_layers;
use crate::state_words::live_state;

/// Serve drives in real time, over NBD, NVMe/TCP and vfio-user.
///
/// A drive is a model that runs by the wall clock: unmodified clients see its latencies, its garbage collection and its
/// limits. Sockets appear when they can serve. SIGTERM, SIGHUP and Ctrl-C drain, flush and end in order.
#[derive(Args)]
#[command(group(ArgGroup::new("transport").args(["nbd", "nvme_tcp", "vfio_user"]).required(true).multiple(true)))]
#[command(after_help = "\
Examples:
  nandscape serve --drive default --set capacity=32GiB --nbd unix:nandscape.sock
  fio --name=a --ioengine=nbd --uri='nbd+unix:///?socket=nandscape.sock' \\
      --rw=randread --iodepth=16 \\
      --runtime=10 --time_based

  nandscape serve --drive fast=default --drive old=mqsim-mlc \\
      --set capacity=32GiB --nbd 127.0.0.1:10809
  nandscape serve --drive default --set capacity=32GiB --nvme-tcp 127.0.0.1:4420
  nvme discover --transport tcp --traddr 127.0.0.1 --trsvcid 4420

  nandscape serve --drive default --set capacity=32GiB --vfio-user n.sock
  qemu-system-x86_64 ... -machine q35,memory-backend=m \\
      -object memory-backend-memfd,id=m,size=1G,share=on \\
   -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"n.sock\"}}'

  nandscape serve --drive far=nvme-tcp://127.0.0.1:4420/NQN --nbd unix:far.sock
        another server's drive, over NBD
  nandscape serve --array raid5:4 --drive femu-teafa \\
      --set array.technique=teafa --set capacity=4GiB --nbd unix:n.sock
        four drives as one, with reads that evade garbage collection
  nandscape serve --drive default --set capacity=32GiB --store file:drive.nand \\
      --nbd unix:n.sock
  nandscape serve --store file:drive.nand --nbd unix:n.sock
        the same drive again, with the profile that its file keeps
  nandscape inspect drive.nand
        what it holds; a later start continues the drive, even after kill -9

  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --record run.rec
  nandscape sim --replay run.rec --chrome-trace run.json
        the same run again, in simulated time
  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --record run.rec --record-data none

  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --out run
        at the end the report of the drive, as of `nandscape sim --out`

  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --dashboard 127.0.0.1:8090
  xdg-open http://127.0.0.1:8090
        the drives at work, live

  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --control n.control
  nandscape ctl fault add n.control 'uncorrectable lba=0-7'

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, once all is flushed; 1 when a drive or a listener ended by itself, data could not be
written to a store, or a recording is incomplete; 2 for bad usage or input.")]
pub(crate) struct ServeArgs {
    /// A drive: a profile's name or file, or nvme-tcp://HOST:PORT/NQN for a drive of any NVMe/TCP target, and the name that
    /// clients use; may be repeated. Clients that give no name get the first. Left out: the drive in the file of --store or
    /// --from-state, with the profile that it was made with
    #[arg(long, value_name = "[NAME=]P", required_unless_present_any = ["store", "from_state"])]
    drive: Vec<String>,
    /// Make one drive of all: an array LEVEL:N with level raid0, raid1, raid5, raid6 or raid10, such as raid5:4, and the name that
    /// clients use. One --drive P gives all N members; else each --drive is one, of this process or behind NVMe/TCP, and those
    /// beyond N are spares. Its keys are set with --set array.KEY=VALUE. Over models in memory it ends with the server; over
    /// files (--store PATH: PATH.0, PATH.1 ...) and drives behind NVMe/TCP it keeps records on its members, and a later start
    /// continues it
    #[arg(long, value_name = "[NAME=]LEVEL:N")]
    array: Option<ArrayArg>,
    #[arg(long, help = crate::over::help_of_serve(), value_name = "LAYER")]
    over: Vec<String>,
    /// The layers below the array.
    #[arg(skip)]
    under: Vec<String>,
    /// Layers with several arrays, or with a recorded one.
    #[arg(skip)]
    group: Option<Group>,
    /// Make the array anew on existing drives, whose data is lost
    #[arg(long)]
    pub(super) array_create: bool,
    /// Open an array without those of its drives that are out of reach or whose files cannot be read: they are rebuilt when they
    /// are back
    #[arg(long, conflicts_with = "array_create")]
    pub(super) array_degraded: bool,
    /// Have an array take drives for spares that are of no array yet, and hold data or are of another server: what they hold is lost
    #[arg(long, conflicts_with = "array_create")]
    pub(super) array_overwrite: bool,
    /// Change a key of every drive's profile: capacity=4GiB; may be repeated. block.deadline=500us and other keys of block put
    /// the block layer of a host between drive and clients: docs/techniques/mittos.md
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Give commands of clients that state no class or tenant those of a rule: host=NQN,class=3 (an NVMe/TCP host), function=0,tenant=7 (a
    /// --vfio-user, by its number among those of its drive), via=nbd,class=15 (nbd, nvme-tcp or vfio-user), queue=2,class=15 or
    /// namespace=1,tenant=7 (namespace N is the NBD export NAME/N). Conditions combine; a rule with a queue comes before one with a
    /// namespace, then one with a host or function, then via. May be repeated; NAME= before it is for one drive:
    /// docs/techniques/arbitration.md
    #[arg(long, value_name = "[NAME=]RULE")]
    pub(super) assign: Vec<String>,
    /// A fault in the flash of a drive, or of every drive if none is named: a rule such as "fail program every=500", as
    /// in `nandscape sim`; may be repeated. A running drive takes rules over --control
    #[arg(long, value_name = "[NAME=]RULE")]
    pub(super) fault: Vec<String>,
    /// Where the flash of a drive is: ram (in memory); none (data is kept nowhere, and reads give zeros); a file, which
    /// outlasts the process and is made if it does not exist (file:none is a file of that name); or an open-channel drive behind
    /// NVMe/TCP, nvme-tcp://HOST:PORT/NQN, over which the FTL of P runs in this process. May be repeated, for each of several
    /// drives. Left out: ram
    #[arg(long, value_name = "[NAME=]ram|none|[file:]PATH|URL")]
    store: Vec<String>,
    /// How garbage collection over an open-channel drive moves data: by copies in the drive, or by reads and writes over the
    /// network. Left out: copy
    #[arg(long, value_enum)]
    store_moves: Option<MovesArg>,
    /// Reset all chunks of the open-channel drives in --store first: what they hold is lost. An FTL begins with chunks that are
    /// reset
    #[arg(long)]
    store_reset: bool,
    /// Serve the file of a member of an array without its array. The array no longer opens with this member: it is rebuilt, or left out.
    /// The same with a member of a memcached store
    #[arg(long)]
    pub(super) outside_array: bool,
    /// What a drive in a file acknowledges outlasts the host's loss of power, too, not only the end of the process
    #[arg(long)]
    pub(super) store_sync: bool,
    /// The state the drives begin in: none (new), full, or steady (that of uniform random overwrites). A drive in a file keeps its
    /// state. Use --from-state to start from a saved state
    #[arg(long, value_name = "none|full|steady", value_parser = live_state, default_value = "none")]
    precondition: Precondition,
    /// Start a drive in a state saved by `nandscape sim --save-state`; with several drives, name one. Several arrays, or a
    /// recorded one, start in the state of all their drives. Profiles may differ in policies, times, buffer and faults. May
    /// be repeated
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(super) from_state: Vec<String>,
    /// At the end, save the state of a drive to a file, for --from-state; with several drives, name one. May be repeated
    #[arg(long, value_name = "[NAME=]FILE", visible_alias = "save-state-after")]
    pub(super) save_state: Vec<String>,
    /// Seed of everything random [default: 1]; a drive that is in a file already keeps its own
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub(super) seed: Option<u64>,
    /// Flash, link and firmware take no time
    #[arg(long)]
    pub(super) no_delay: bool,
    /// Serve NBD at unix:PATH or HOST:PORT; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub(super) nbd: Vec<Address>,
    /// Serve NVMe/TCP at HOST:PORT, with a discovery controller; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub(super) nvme_tcp: Vec<Address>,
    /// Serve a drive as a PCI NVMe controller to a guest of QEMU, over vfio-user at a unix socket; may be repeated. The
    /// first drive, unless another one is named
    #[arg(long, value_name = "[NAME=]PATH")]
    vfio_user: Vec<String>,
    /// How the doorbells of guests come
    #[arg(long, value_enum, default_value = "auto", requires = "vfio_user")]
    pub(super) doorbells: DoorbellsArg,
    /// Serve metrics for Prometheus over HTTP at HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pub(super) metrics: Option<Address>,
    /// Serve a live page about the drives over HTTP at HOST:PORT, for a browser: latency, throughput, dies, causes, wear
    #[arg(long, value_name = "ADDR")]
    pub(super) dashboard: Option<Address>,
    /// The page of --dashboard takes orders, too: it injects faults and removes them
    #[arg(long, requires = "dashboard")]
    pub(super) dashboard_control: bool,
    /// Take orders at a unix socket: statistics, faults, stop
    #[arg(long, value_name = "PATH")]
    pub(super) control: Option<PathBuf>,
    /// Allow TCP addresses that other machines can reach. There is no authentication: any client that reaches them can read
    /// and write the drives
    #[arg(long)]
    pub(super) allow_remote: bool,
    /// Whether the server sleeps when nothing is due, or keeps its cores busy. As root, busy also keeps the processors of its
    /// clients from idle states: the time to leave one adds to each latency
    #[arg(long, value_enum, default_value = "adaptive")]
    poll: PollArg,
    /// Threads that the drives are spread over
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) reactors: usize,
    /// Keep each of those threads on a separate core
    #[arg(long)]
    pub(super) pin: bool,
    /// Record everything that arrives, for `nandscape sim --replay`
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Which data the recording has: all, or none of what writes store. Without it a replay takes the same times and stores
    /// zeros, and a minute is some megabytes
    #[arg(long, value_enum, default_value = "all", requires = "record")]
    pub(super) record_data: RecordData,
    /// Write the event trace of all dies and channels to this file at the end, for chrome://tracing or ui.perfetto.dev. It
    /// is kept in memory until then
    #[arg(long, value_name = "FILE")]
    pub(super) chrome_trace: Option<PathBuf>,
    /// Write the report of `sim --out` into this folder at the end: a page, JSON and CSV, of each drive whose flash is in this
    /// server; of several, each into its own folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Check the drives' tables against each other at the end
    #[arg(long)]
    pub(super) check: bool,
    /// Print the figures at the end as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, ValueEnum)]
pub(crate) enum PollArg {
    Busy,
    Adaptive,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordData {
    All,
    None,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub(crate) enum MovesArg {
    Copy,
    ReadWrite,
}

impl From<RecordData> for Kept {
    fn from(word: RecordData) -> Kept {
        match word {
            RecordData::All => Kept::All,
            RecordData::None => Kept::Timing,
        }
    }
}

impl From<PollArg> for PollMode {
    fn from(word: PollArg) -> PollMode {
        match word {
            PollArg::Busy => PollMode::Busy,
            PollArg::Adaptive => PollMode::Adaptive,
        }
    }
}

impl ServeArgs {
    /// Takes an array among the layers for that of `--array`.
    pub(super) fn arrange(&mut self) -> Result<(), Failure> {
        self.over = over::words(&self.over)?;
        if self.drive.is_empty() && self.over.is_empty() && self.array.is_none() {
            self.over = states::layers(&self.from_state)?;
        }
        self.group = layers::group(&self.over, self.array.as_ref(), self.record.is_some());
        if self.group.is_some() {
            return Ok(());
        }
        if let Some(Arranged { below, array, set, above }) = layers::arrange(&self.over)? {
            if let Some(given) = &self.array {
                return input(format!("--array {}: --over has an array, too; one is served", given.shape));
            }
            (self.under, self.over, self.array) = (below, above, Some(array));
            self.set.splice(0..0, set);
        }
        let options =
            [("create", self.array_create), ("degraded", self.array_degraded), ("overwrite", self.array_overwrite)];
        match options.iter().find(|(_, is_given)| *is_given && self.array.is_none()) {
            Some((option, _)) => {
                input(format!("--array-{option}: there is no array; --array LEVEL:N makes one of the drives"))
            }
            None => Ok(()),
        }
    }

    /// The drives of each reactor.
    pub(super) fn plan(&self) -> Result<Vec<Part>, Failure> {
        if let Some(group) = &self.group {
            return self.plan_group(group);
        }
        let named = self.named()?;
        self.check_array()?;
        let served = self.served(&named).len();
        if !(1..=served).contains(&self.reactors) {
            let (reactors, drives) = (self.reactors, served);
            return input(format!("--reactors {reactors}: each drive runs on one thread, so give 1 to {drives}"));
        }
        if self.reactors > 1 && (self.record.is_some() || self.chrome_trace.is_some()) {
            return input("--record and --chrome-trace cover one reactor; leave out --reactors");
        }
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        for (number, name) in names.iter().enumerate() {
            if names[..number].contains(name) {
                return input(format!("--drive: two drives are called {name:?}; name them, as in --drive b={name}"));
            }
        }
        self.check_remote(&named, &names)?;
        let faults = faults::of_each(&self.fault, &names)?;
        let stores = self.stores_of(&names)?;
        self.check_stores(&named, &stores)?;
        let (array, set) = self.split()?;
        let all: Vec<String> = self.under.iter().chain(&self.over).cloned().collect();
        let (mut chain, set) = layers::split(&all, &set)?;
        if self.no_delay {
            chain.without_delay();
        }
        let over = |problem: String| Failure::Input(anyhow::anyhow!("--over: {problem}"));
        // A block layer that settings have put there is the lowest.
        let below = if self.under.is_empty() { 0 } else { chain.layers.len() - self.over.len() };
        let name_of_ftl = chain.layers.first().filter(|_| chain.has_ftl()).and_then(|words| words.name.clone());
        let ftl = chain.take_ftl().map_err(over)?;
        let below = chain.take_lowest(below.saturating_sub(usize::from(ftl.is_some()))).map_err(over)?;
        let states = states::of_each("--from-state", &self.from_state, &names)?;
        self.check_states(&named, &stores, &states)?;
        let saves = self.saves()?;
        let decided = RefCell::new(Vec::new());
        let spec = |name: String, resolved: Resolved, place: (u64, &StoreArg)| {
            let (spec, notes) = self.spec(name, resolved, place);
            decided.borrow_mut().push((spec.name.clone(), notes));
            spec
        };
        let hosted = |lowest: LowestSpec, layer: &FtlLayer| LiveSpec {
            chain: Chain { layers: vec![LayerWords { name: name_of_ftl.clone(), ..layer.words() }] },
            ..lowest.into()
        };
        let plan = |(number, (name, what)): (usize, (String, Named<'_>))| -> Result<LiveSpec, Failure> {
            match (what, stores[number].target()) {
                (Named::Profile(profile), Some(target)) => {
                    let remote = RemoteSpec { name, target: target.clone(), seed: self.seed() };
                    Ok(hosted(LowestSpec::Remote(remote), &self.of_store(profile, &set)?))
                }
                // A rule that names no drive is for the models.
                (Named::Url(url), _) => {
                    let remote = LowestSpec::Remote(self.remote(name, url)?);
                    Ok(ftl.as_ref().map_or_else(|| remote.clone().into(), |layer| hosted(remote.clone(), layer)))
                }
                (what, _) => {
                    let resolved = what.resolve(&set, &faults[number])?;
                    if let Some(layer) = &ftl {
                        self.check_ftl(&name, layer, &resolved, &stores[number])?;
                        let mut spec = [spec(name.clone(), resolved, (number as u64, &stores[number]))];
                        states::begin_in(&mut spec, states[number].as_deref(), &[layer.clone().into()])?;
                        let [spec] = spec;
                        return Ok(hosted(LowestSpec::Model(spec), layer));
                    }
                    let mut spec = [spec(name, resolved, (number as u64, &stores[number]))];
                    states::begin_in(&mut spec, states[number].as_deref(), &[])?;
                    let [spec] = spec;
                    Ok(LowestSpec::Model(spec).into())
                }
            }
        };
        let mut drives = named.into_iter().enumerate().map(plan).collect::<Result<Vec<_>, Failure>>()?;
        let decided = decided.into_inner();
        let of_drives: Vec<(&str, &[String])> = decided.iter().map(|(name, notes)| (&**name, &**notes)).collect();
        notes_of_each(&of_drives).iter().for_each(|note| crate::output::note(note));
        let (over_each, over_array) =
            if array.is_some() { (Chain::default(), chain) } else { (chain, Chain::default()) };
        layers::over(&mut drives, &over_each)?;
        for ((drive, store), save) in drives.iter().zip(&stores).zip(&saves) {
            save.as_ref().map_or(Ok(()), |path| states::check_save(drive, store.path(), path))?;
        }
        let in_memory = drives.iter().zip(&stores).filter(|(_, store)| **store == StoreArg::Ram);
        memory::tell_if_too_large(in_memory.map(|(drive, _)| drives::memory(drive)).sum());
        if let (Some(array), Some(config)) = (&self.array, array) {
            sim_layers::without_effect(&config, &self.set, true).iter().for_each(|note| crate::output::note(note));
            let wishes = [self.array_create, self.array_degraded, self.array_overwrite];
            let array = array.over(&drives, &stores, (config, &below), wishes)?;
            drives = vec![LowestSpec::Array(Box::new(array)).into()];
        }
        layers::over(&mut drives, &over_array)?;
        let shared = self.shared(drives.len())?;
        drives.iter_mut().zip(&shared).for_each(|(drive, is_shared)| drive.set_shared(*is_shared));
        let assign = assign::of_each(&self.assign, &self.served(&self.named()?))?;
        let share = |reactor: usize| reactor * shared.len() / self.reactors;
        let mut drives = drives.into_iter();
        let part = |reactor: usize| {
            let of_it = share(reactor)..share(reactor + 1);
            let drives = drives.by_ref().take(of_it.len()).collect();
            let assign = assign.iter().skip(of_it.start).take(of_it.len()).cloned().collect();
            Part { seed: self.seed(), drives, shared: shared[of_it].to_vec(), assign }
        };
        Ok((0..self.reactors).map(part).collect())
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The drives by name, each with its kind; of an array, its members and spares.
    pub(super) fn named(&self) -> Result<Vec<(String, Named<'_>)>, Failure> {
        let stored = |(name, profile)| (name, Named::Stored(Box::new(profile)));
        if let Some(array) = self.array.as_ref().filter(|_| self.drive.is_empty()) {
            return input(format!(
                "array {}: give its drives with --drive, such as --drive default. A state of a whole array is served with --record, or \
                 below another array; others take a state of each drive",
                array.shape
            ));
        }
        let named = match (&self.drive[..], &self.from_state[..]) {
            ([], []) => return Ok(vec![stored(stores::held(&self.store)?)]),
            ([], states) => states::drives(states)?.into_iter().map(stored).collect(),
            (words, _) => words.iter().map(|word| plan::named(word)).collect::<Result<Vec<_>, Failure>>()?,
        };
        if let Some(group) = &self.group {
            return group.members(named, &self.set);
        }
        match &self.array {
            Some(array) => array.members(named, sim_layers::parts(array.shape, &self.set)?.0.spares),
            None => Ok(named),
        }
    }

    /// The names that clients use.
    fn served(&self, named: &[(String, Named<'_>)]) -> Vec<String> {
        match (&self.group, &self.array) {
            (Some(Group { name, .. }), _) | (None, Some(ArrayArg { name, .. })) => vec![name.clone()],
            (None, None) => named.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The settings of the array, and the changes of the drives' keys.
    fn split(&self) -> Result<(Option<Config>, Vec<String>), Failure> {
        let Some(array) = &self.array else { return Ok((None, self.set.clone())) };
        let (config, rest) = sim_layers::parts(array.shape, &self.set)?;
        Ok((Some(config), rest))
    }

    /// Options that are of drives alone.
    fn check_array(&self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        match self.save_state.is_empty() {
            false => input(format!("--save-state: a state is of one drive; leave it out with --array {}", array.shape)),
            true => Ok(()),
        }
    }

    pub(super) fn stores_of(&self, names: &[String]) -> Result<Vec<StoreArg>, Failure> {
        match self.array.is_some() || self.group.is_some() {
            true => stores::of_each(&ArrayArg::spread(&self.store, names), names),
            false => stores::of_each(&self.store, names),
        }
    }

    /// Options without effect on remote drives. An option without effect on any drive is rejected.
    fn check_remote(&self, named: &[(String, Named<'_>)], names: &[String]) -> Result<(), Failure> {
        let Some((name, url)) = named.iter().find_map(|(name, what)| match what {
            Named::Url(url) => Some((name, url)),
            Named::Profile(_) | Named::Stored(_) => None,
        }) else {
            return Ok(());
        };
        if self.record.is_some() {
            return input(format!(
                "--record: what drive {name:?} ({url}) answers comes from outside and is not recorded; record where it is served"
            ));
        }
        for word in &self.fault {
            if let (Some(drive), rule) = faults::split(word, names)?
                && let Some((_, Named::Url(url))) = named.iter().find(|(name, _)| name == drive)
            {
                return input(format!("--fault {drive}={rule}: the drive is {url}; faults are set where it is served"));
            }
        }
        if named.iter().any(|(_, what)| matches!(what, Named::Profile(_))) {
            return Ok(());
        }
        let given = [
            (
                "--set",
                self.set
                    .iter()
                    .any(|change| !layers::is_key(change) && (self.array.is_none() || !Config::is_key(change))),
            ),
            ("--fault", !self.fault.is_empty()),
            ("--no-delay", self.no_delay && !layers::begins_with_ftl(&[&self.under[..], &self.over].concat())),
            ("--precondition", self.precondition != Precondition::None),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => input(format!(
                "{option}: no drive here is a model of this process, and {url} is set up where it is served"
            )),
            None => Ok(()),
        }
    }

    /// A file is for a model, and cannot be recorded.
    pub(super) fn check_stores(&self, named: &[(String, Named<'_>)], stores: &[StoreArg]) -> Result<(), Failure> {
        if self.store_sync && stores.iter().all(|store| store.path().is_none()) {
            return input("--store-sync: no drive is in a file; give --store file:PATH, or leave it out");
        }
        if self.outside_array && stores.iter().all(|store| store.path().is_none()) {
            return input("--outside-array: no drive is in a file; give --store file:PATH, or leave it out");
        }
        let has_target = stores.iter().any(|store| store.target().is_some());
        if (self.store_reset || self.store_moves.is_some()) && !has_target {
            let option = if self.store_reset { "--store-reset" } else { "--store-moves" };
            return input(format!(
                "{option}: no drive has its flash in an open-channel drive; give --store nvme-tcp://HOST:PORT/NQN, or leave it out"
            ));
        }
        for ((name, what), store) in named.iter().zip(stores) {
            let path = match store {
                StoreArg::None | StoreArg::Ram => continue,
                StoreArg::File(path) => path.display().to_string(),
                StoreArg::OpenChannel(target) => target.to_string(),
            };
            if let Named::Url(url) = what {
                return input(format!("--store {name}={path}: the drive is {url}; its data is where it is served"));
            }
            if store.target().is_some() {
                self.check_hosted(name, &path)?;
                continue;
            }
            if self.record.is_some() {
                return input(
                    "--record: a recording is replayed on a new drive, so drives in files cannot be recorded",
                );
            }
        }
        Ok(())
    }

    /// Options that concern flash of this process, which a drive over another one's has not.
    fn check_hosted(&self, name: &str, url: &str) -> Result<(), Failure> {
        let refused = |option: &str, why: &str| input(format!("{option}: the flash of drive {name:?} is {url}; {why}"));
        let given = [
            ("--record", self.record.is_some(), "what it answers comes from outside and is not recorded"),
            ("--fault", !self.fault.is_empty(), "faults are set where it is served"),
            ("--precondition", self.precondition != Precondition::None, "an FTL over it begins empty"),
        ];
        given.iter().find(|(_, is_given, _)| *is_given).map_or(Ok(()), |(option, _, why)| refused(option, why))
    }

    /// An FTL of the profile of a drive over the open-channel drive that is its store: `--over ftl` by another name.
    fn of_store(&self, profile: &str, set: &[String]) -> Result<FtlLayer, Failure> {
        let moves = match self.store_moves {
            Some(MovesArg::ReadWrite) => "read-write",
            Some(MovesArg::Copy) | None => "copy",
        };
        let own = [
            format!("profile={profile}"),
            format!("moves={moves}"),
            format!("reset={}", self.store_reset),
            format!("no-delay={}", self.no_delay),
        ];
        let settings: Vec<String> = own.into_iter().chain(set.iter().cloned()).collect();
        FtlLayer::with(&settings).map_err(|problem| Failure::Input(anyhow::anyhow!("--drive {profile}: {problem}")))
    }

    /// Checks that the FTL of a host can lie over a model.
    fn check_ftl(&self, name: &str, layer: &FtlLayer, drive: &Resolved, store: &StoreArg) -> Result<(), Failure> {
        let layers = [layer.clone().into()];
        check_over(&layers, drive).map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))?;
        if let Some(path) = store.path() {
            let path = path.display();
            return input(format!(
                "--store {name}={path}: an open-channel drive is in no file; ram and none are valid"
            ));
        }
        Ok(())
    }

    fn remote(&self, name: String, url: &str) -> Result<RemoteSpec, Failure> {
        match url.parse() {
            Ok(target) => Ok(RemoteSpec { name, target, seed: self.seed() }),
            Err(problem) => input(format!("--drive {problem}")),
        }
    }

    /// Where each drive's flash is.
    pub(super) fn stores(&self) -> Result<Vec<StoreArg>, Failure> {
        let names: Vec<String> = self.named()?.into_iter().map(|(name, _)| name).collect();
        self.stores_of(&names)
    }

    /// The PCI functions.
    pub(super) fn functions(&self) -> Result<Vec<FunctionArg>, Failure> {
        functions::of_words(&self.vfio_user, &self.served(&self.named()?))
    }

    /// Of each drive, whether hosts reach it by several controllers, one of them a PCI function.
    pub(super) fn shared(&self, drives: usize) -> Result<Vec<bool>, Failure> {
        let functions = self.functions()?;
        let of = |drive: usize| functions.iter().filter(|function| function.drive() == drive).count();
        let others = usize::from(!self.nvme_tcp.is_empty());
        Ok((0..drives).map(|drive| of(drive) > 0 && of(drive) + others > 1).collect())
    }

    /// A drive, and the values chosen for it.
    pub(super) fn spec(
        &self,
        name: String,
        resolved: Resolved,
        (number, store): (u64, &StoreArg),
    ) -> (DriveSpec, Vec<String>) {
        let resolved = if self.no_delay { resolved.without_delay() } else { resolved };
        let keeps_data = *store != StoreArg::None;
        let unseen = if_unseen(&resolved, if keeps_data { StoreKind::Ram } else { StoreKind::None });
        let notes = resolved.notes.iter().cloned().chain(unseen.map(str::to_owned)).collect();
        let spec = DriveSpec {
            name,
            number,
            profile_name: resolved.name.clone(),
            profile: resolved.to_toml(),
            keeps_data,
            precondition: self.precondition,
            from_state: None,
            is_shared: false,
            own_seed: None,
        };
        (spec, notes)
    }

    /// The files that states are taken from: one of each drive, or one of all that a group has.
    pub(super) fn state_files(&self) -> Result<Vec<PathBuf>, Failure> {
        let names = match &self.group {
            Some(group) => vec![group.name.clone()],
            None => self.named()?.into_iter().map(|(name, _)| name).collect(),
        };
        Ok(states::of_each("--from-state", &self.from_state, &names)?.into_iter().flatten().collect())
    }

    /// The file that the state of each drive is saved to at the end.
    pub(super) fn saves(&self) -> Result<Vec<Option<PathBuf>>, Failure> {
        states::of_each("--save-state", &self.save_state, &self.served(&self.named()?))
    }

    /// A state is for a model in memory, and is its precondition.
    fn check_states(
        &self,
        named: &[(String, Named<'_>)],
        stores: &[StoreArg],
        states: &[Option<PathBuf>],
    ) -> Result<(), Failure> {
        for (((name, what), store), state) in named.iter().zip(stores).zip(states) {
            let Some(state) = state.as_deref().map(Path::display) else { continue };
            if let Named::Url(url) = what {
                return input(format!(
                    "--from-state {name}={state}: the drive is {url}; its state is where it is served"
                ));
            }
            if let Some(target) = store.target() {
                return input(format!(
                    "--from-state {name}={state}: the flash of the drive is {target}; an FTL over it begins empty"
                ));
            }
            if let Some(path) = store.path() {
                let path = path.display();
                return input(format!(
                    "--from-state {name}={state}: the drive is in {path} and has the state of that file; leave one of the two out"
                ));
            }
            self.check_only_state((name, state))?;
        }
        Ok(())
    }

    /// A state that is given is the only one.
    pub(super) fn check_only_state(&self, (name, state): (&str, impl Display)) -> Result<(), Failure> {
        match self.precondition {
            Precondition::None => Ok(()),
            _ => input(format!(
                "--from-state {name}={state}: the drive begins in the state of the file; leave out --precondition"
            )),
        }
    }

    /// The files that its drives' profiles are read from.
    pub(super) fn profile_files(&self) -> Vec<PathBuf> {
        let named = self.named().unwrap_or_default();
        let files = named.into_iter().map(|(_, what)| match what {
            Named::Profile(profile) => Profile::files(profile),
            Named::Url(_) | Named::Stored(_) => Vec::new(),
        });
        files.flatten().collect()
    }

    pub(super) fn poll_mode(&self) -> PollMode {
        self.poll.into()
    }

    /// Where the server never sleeps, keeps its clients' processors from idle states, if the system allows it.
    pub(super) fn keep_awake(&self) -> Option<NoIdleStates> {
        let PollArg::Busy = self.poll else { return None };
        let request = NoIdleStates::request();
        if let Err(error) = &request {
            crate::output::note(&format!(
                "idle states stay on, and waking a client's processor adds to its latencies ({error})"
            ));
        }
        request.ok()
    }

    pub(super) fn wants_json(&self) -> bool {
        self.json
    }
}

pub(super) fn input<T>(problem: impl std::fmt::Display) -> Result<T, Failure> {
    Err(Failure::Input(anyhow::anyhow!("{problem}")))
}

/// How a client names a drive.
pub(super) fn how_to_connect(address: &Address, name: &str) -> String {
    match address {
        Address::Unix(path) => {
            let path = escape(&path.display().to_string());
            format!("serving {name} at nbd+unix:///{}?socket={path}", escape(name))
        }
        Address::Tcp(address) => format!("serving {name} at nbd://{address}/{}", escape(name)),
    }
}

/// A name or path for use in a URI: reserved characters are percent-encoded (RFC 3986, 2.1).
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
