//! A drive of this process: the model behind a live drive, on its own thread.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nandscape_drive::{Drive, Issuer, QueueDrive, QueueId};
use nandscape_host_path::Config as HostConfig;
use nandscape_sim::{Executor, Sim, Span};
use nandscape_transport_reactor::ring::{RingHost, RingSetup};
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};
use rustix::event::{EventfdFlags, eventfd};

use super::admin::Admin;
use super::ring::RingDrive;
use super::signals;
use crate::live::{LiveDrives, SsdExport};
use crate::precompletion::{NEEDS_NOTICES, NO_ROOM, give_window};
use crate::watched::{LiveReport, LiveWatch};

/// The drive among the exports of its reactor.
const DRIVE: u16 = 0;
/// Its admin queue.
const ADMIN: u16 = 1;
/// Admin commands at a time.
const ADMIN_DEPTH: usize = 4;

/// See the module. Dropping it ends the drive.
pub struct InProcess {
    name: String,
    handle: Handle,
    /// The queue of notices, if the host wants them.
    notices: Option<QueueId>,
    /// Whether clients reach its admin queue: layers pass no admin commands.
    has_admin: bool,
    thread: Option<JoinHandle<Result<Option<LiveReport>, String>>>,
}

impl InProcess {
    /// Makes the first of `drives`, or all of them below layers that take several, and starts their thread; `with_report` if [`InProcess::finish`] is to have one. The drive announces
    /// the ends of reads if the policy of `completion` needs that. Blocks until the drive is ready.
    ///
    /// # Errors
    /// Why the drive cannot be made.
    pub fn start(
        drives: LiveDrives,
        poll: PollMode,
        with_report: bool,
        completion: Option<&HostConfig>,
    ) -> Result<InProcess, String> {
        let window = signals(completion).notices.map(|ns| Span::from_ns(ns.into()));
        let name = drives.drives.first().map_or_else(String::new, |drive| drive.name.clone());
        let (tell, ready) = channel();
        let own_name = name.clone();
        let life = move || -> Result<Option<LiveReport>, String> {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let built = drives.build(std::slice::from_mut(&mut executor), &()).map_err(|error| error.to_string())?;
            let drive = built.into_iter().next().expect("a drive was specified");
            // Clients reach it without layers.
            let model = drive.alone();
            let admin = model.map(|model| admin_queue(&sim, model)).transpose()?;
            let notices = match (window, model, &admin) {
                (None, ..) => None,
                (Some(window), Some(model), Some(admin)) => Some(announce(&mut executor, model, &**admin, window)?),
                (Some(_), ..) => return Err(BELOW_LAYERS.to_owned()),
            };
            let mut names = vec![own_name];
            names.extend(admin.iter().map(|_| "admin".to_owned()));
            let admin = admin.map(|admin| Rc::new(Admin(admin)) as Rc<dyn Export>);
            let has_admin = admin.is_some();
            let mut port = Port::new(&sim, [drive.clone() as Rc<dyn Export>].into_iter().chain(admin).collect());
            let watch = with_report
                .then(|| LiveWatch::start(std::slice::from_ref(&sim), drives.seed, std::slice::from_ref(&drive)));
            if let Some(watch) = watch.clone() {
                port.observe(move |released| watch.released(released));
            }
            let setup = Setup { timelines: vec![executor], port, names, poll, log: Box::new(|_| ()) };
            let (reactor, handle) = Reactor::new(setup).map_err(|error| error.to_string())?;
            // The thread that started this one waits for it.
            let _ = tell.send((handle, notices, has_admin));
            reactor.run().map(drop).map_err(|error| error.to_string())?;
            Ok(watch.and_then(|watch| watch.finish().pop()))
        };
        let thread =
            std::thread::Builder::new().name("drive".to_owned()).spawn(life).map_err(|error| error.to_string())?;
        match ready.recv() {
            Ok((handle, notices, has_admin)) => {
                Ok(InProcess { name, handle, notices, has_admin, thread: Some(thread) })
            }
            Err(_) => Err(thread
                .join()
                .map_or_else(|_| "its thread has panicked".to_owned(), |end| end.err().unwrap_or_default())),
        }
    }

    /// Connects to a namespace; `None` is the first. `interrupts` if completions are to signal an event descriptor.
    pub(super) fn connect(&self, depth: u32, nsid: Option<u32>, interrupts: bool) -> Result<RingDrive, String> {
        if let Some(nsid) = nsid
            && let Err(refused) = self.handle.info(DRIVE, Some(nsid))
        {
            return Err(refused.to_string());
        }
        let setup = RingSetup { nsid, notices: self.notices.is_some(), ..RingSetup::of_depth(depth as usize) };
        self.connect_to(DRIVE, setup, interrupts)
    }

    /// Connects to the admin queue.
    pub(super) fn connect_admin(&self, interrupts: bool) -> Result<RingDrive, String> {
        match self.has_admin {
            true => self.connect_to(ADMIN, RingSetup::of_depth(ADMIN_DEPTH), interrupts),
            false => Err("layers pass no admin commands, by which streams and windows of notices are set; a drive without layers \
                          takes them"
                .to_owned()),
        }
    }

    /// The queue of notices, if the drive was started with it.
    pub(super) fn notices(&self) -> Option<QueueId> {
        self.notices
    }

    fn connect_to(&self, export: u16, setup: RingSetup, interrupts: bool) -> Result<RingDrive, String> {
        let event = interrupts.then(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)).transpose();
        let event = event.map_err(|error| std::io::Error::from(error).to_string())?;
        let signalled = event.as_ref().map(OwnedFd::try_clone).transpose().map_err(|error| error.to_string())?;
        let ring = RingHost::connect_with(&self.handle, export, RingSetup { event: signalled, ..setup });
        let ring = ring.map_err(|status| {
            format!("the drive has no room for another queue pair: {status}; raise controller.queue_pairs, or run fewer jobs")
        })?;
        Ok(RingDrive::new(self.name.clone(), ring, event))
    }
}

/// Why there are no notices.
const BELOW_LAYERS: &str = "layers pass no notices of a drive, for which host.completion=precompletion waits; another policy is valid, or a \
    drive without layers";

/// The admin queue of a drive.
fn admin_queue(sim: &Sim, drive: &SsdExport) -> Result<Rc<QueueDrive>, String> {
    let (controller, entries) = (drive.ssd().controller(), ADMIN_DEPTH as u32 + 1);
    let admin = QueueDrive::new(sim, controller, QueueId::ADMIN, entries);
    admin.map_err(|status| format!("the drive has no admin queue: {status}"))
}

/// Has the drive announce the ends of reads this long ahead; zero is its own window. Returns the queue of notices.
fn announce(executor: &mut Executor, drive: &SsdExport, admin: &dyn Drive, window: Span) -> Result<QueueId, String> {
    if drive.profile().precompletion_window().is_none() {
        return Err(NEEDS_NOTICES.to_owned());
    }
    let queue = drive.announce().map_err(|status| format!("{NO_ROOM}: {status}; raise controller.queue_pairs"))?;
    let issuer = Issuer::new(&executor.sim());
    let given = executor.block_on(give_window(&issuer, admin, queue, window)).map_err(|stalled| stalled.to_string())?;
    given.map_err(|status| format!("host.window: the drive refuses a window of {window}: {status}"))?;
    Ok(queue)
}

impl InProcess {
    /// Ends the drive: its report, if one was wanted and a command has completed.
    ///
    /// # Errors
    /// Why the drive has ended by itself.
    pub fn finish(mut self) -> Result<Option<LiveReport>, String> {
        self.handle.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(None), |ended| ended.unwrap_or_else(|_| Err("its thread has panicked".to_owned())))
    }

    /// Ends the drive, and does not wait for the commands that it has in work: they may take long, and are of no use.
    pub fn abandon(mut self) {
        self.thread = None;
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.handle.stop();
        // The reason for its end does not change the measurements.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use nandscape_device_ssd::Profile;
    use nandscape_drive::io::Sink;
    use nandscape_drive::{Completion, HostMem, Io, Precondition, Token};
    use nandscape_wire_nvme::vendor::{NOTICE, NOTICES, Notices};
    use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
    use zerocopy::FromBytes as _;

    use super::super::pacer::Source as _;
    use super::*;
    use crate::chain::Chain;
    use crate::live::DriveSpec;

    /// A full drive of one plane whose pages all take the same time.
    fn drives(changes: &[&str]) -> LiveDrives {
        let mut profile = Profile::load("default").unwrap();
        let one = ["geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes_per_die=1"];
        let equal = ["capacity=16MiB", "timing.cell=slc", "timing.read=1ms", "timing.program=1ms"];
        one.iter().chain(&equal).chain(changes).for_each(|change| profile.set(change).unwrap());
        let drive = DriveSpec {
            name: "one".to_owned(),
            number: 0,
            profile_name: "default".to_owned(),
            profile: profile.resolve().unwrap().to_toml(),
            keeps_data: false,
            precondition: Precondition::Full,
            from_state: None,
            is_shared: false,
            own_seed: None,
        };
        LiveDrives {
            version: String::new(),
            seed: 1,
            drives: vec![drive],
            layers: Chain::default(),
            is_engine: false,
            assign: Vec::new(),
        }
    }

    fn start(changes: &[&str], settings: &[&str]) -> Result<InProcess, String> {
        let mut config = HostConfig::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        InProcess::start(drives(changes), PollMode::Adaptive, false, Some(&config))
    }

    /// Announcements and ends, in their order.
    #[derive(Default)]
    struct Log(RefCell<Vec<(u64, Option<Span>)>>);

    impl Sink for Log {
        fn complete(&self, tag: u64, completion: Completion) {
            assert!(completion.status.is_success(), "{completion:?}");
            self.0.borrow_mut().push((tag, None));
        }

        fn announced(&self, tag: u64, remaining: Span) {
            self.0.borrow_mut().push((tag, Some(remaining)));
        }

        fn is_stopped(&self) -> bool {
            false
        }
    }

    /// Runs a command to its end.
    fn run(drive: &RingDrive, log: &Rc<Log>, tag: u64, command: SubmissionEntry, mem: HostMem) {
        drive.submit(Io { command, mem, token: Token::new(log.clone(), tag) });
        while !log.0.borrow().contains(&(tag, None)) {
            drive.poll().unwrap();
            std::thread::yield_now();
        }
    }

    const WINDOW: &str = "controller.precompletion.window=300us";
    const PRECOMPLETION: &str = "host.completion=precompletion";

    /// Reads one after another. The first teaches the drive how long its chip takes; each later one is announced the window ahead,
    /// before it ends. The host changes the window over the admin queue.
    #[test]
    fn reads_are_announced_over_the_ring_by_the_window_in_force() {
        for (settings, first) in [(&[PRECOMPLETION][..], 300), (&[PRECOMPLETION, "host.window=100us"], 100)] {
            let drive = start(&[WINDOW], settings).unwrap();
            let (reads, admin) = (drive.connect(4, None, false).unwrap(), drive.connect_admin(false).unwrap());
            let log = Rc::new(Log::default());
            let asking = |tag: u64| {
                let command = SubmissionEntry::blocks(IoOpcode::READ, 1, tag * 8, 8);
                SubmissionEntry { cdw2: NOTICE.into(), ..command }
            };
            let ahead = |tags: std::ops::Range<u64>| {
                let before = log.0.borrow().len();
                tags.clone().for_each(|tag| run(&reads, &log, tag, asking(tag), HostMem::zeroed(4_096)));
                let announced = log.0.borrow()[before..].to_vec();
                let of_read = |(pair, tag): (&[(u64, Option<Span>)], u64)| match pair {
                    [(announced, Some(remaining)), ended] if (*announced, *ended) == (tag, (tag, None)) => *remaining,
                    other => panic!("read {tag}: {other:?}"),
                };
                assert_eq!(announced.len() as u64, 2 * (tags.end - tags.start), "{announced:?}");
                announced.chunks(2).zip(tags).map(of_read).collect::<Vec<Span>>()
            };
            run(&reads, &log, 0, asking(0), HostMem::zeroed(4_096));
            assert_eq!(*log.0.borrow(), [(0, None)], "nothing is known of the chip");
            assert_eq!(ahead(1..10), [Span::from_us(first); 9]);
            let queue = drive.notices().unwrap();
            let value = Notices::new(queue.0, 50_000);
            let given = HostMem::from_bytes(zerocopy::IntoBytes::as_bytes(&value));
            run(&admin, &log, 100, SubmissionEntry::set_features(NOTICES, 0), given);
            assert_eq!(ahead(10..20), [Span::from_us(50); 10]);
            let got = HostMem::zeroed(64);
            run(&admin, &log, 101, SubmissionEntry::get_features(NOTICES), got.clone());
            let got = Notices::read_from_bytes(&got.to_vec()).unwrap();
            assert_eq!((got.queue.get(), got.window_ns.get(), got.asked.get()), (queue.0, 50_000, 20));
            assert_eq!((got.sent.get(), got.early.get() + got.late.get(), got.missing.get()), (19, 0, 1));
        }
    }

    /// Layers over one drive, and over two that clients reach as one: the report is that of a simulation of the same layers.
    #[test]
    fn layers_lie_over_the_drives_of_a_ring() {
        let layered = |layers: &str, count: u64| {
            let plain = drives(&[]);
            let drive = |number| DriveSpec { name: format!("drive-{number}"), number, ..plain.drives[0].clone() };
            LiveDrives { layers: layers.parse().unwrap(), drives: (0..count).map(drive).collect(), ..plain.clone() }
        };
        for (layers, names) in
            [("block top=cache,memory=1MiB", ["block", "top"]), ("raid1:2 cache,memory=1MiB", ["array", "cache"])]
        {
            let count = if names[0] == "array" { 2 } else { 1 };
            let drive = InProcess::start(layered(layers, count), PollMode::Adaptive, true, None).unwrap();
            let (reads, log) = (drive.connect(4, None, false).unwrap(), Rc::new(Log::default()));
            let read = |tag: u64| SubmissionEntry::blocks(IoOpcode::READ, 1, tag % 10 * 8, 8);
            (0..20).for_each(|tag| run(&reads, &log, tag, read(tag), HostMem::zeroed(4_096)));
            assert!(drive.connect_admin(false).err().unwrap().contains("layers pass no admin commands"));
            drop(reads);
            let (chain, layers_us, latency_us, parts) = match drive.finish().unwrap().unwrap() {
                LiveReport::Drive(live) => (live.report.chain, live.report.layers_us, live.report.latency_us, 1),
                LiveReport::Group(name, live) => {
                    let (host, drives) = (live.finished.host, live.finished.drives);
                    assert!(name == "array" && live.finished.details.is_some());
                    assert!(drives.iter().all(|drive| drive.details.is_some() && drive.report.clock == Some("wall")));
                    (host.chain, host.layers_us, host.latency_us, drives.len() as u64)
                }
            };
            assert_eq!((parts, latency_us["read"].count), (count, 20), "{layers}");
            assert_eq!(chain.iter().map(|section| section.layer.clone()).collect::<Vec<_>>(), names);
            let (sum, mean) = (layers_us["read"].values().sum::<f64>(), latency_us["read"].mean.unwrap());
            assert!((sum - mean).abs() < 1e-6, "{layers}: {layers_us:?} of {mean}");
        }
        let mut config = HostConfig::default();
        config.set(PRECOMPLETION).unwrap();
        let refused = InProcess::start(layered("cache", 1), PollMode::Adaptive, false, Some(&config));
        assert_eq!(refused.err().unwrap(), BELOW_LAYERS);
    }

    #[test]
    fn a_drive_without_notices_or_room_for_their_queue_is_refused() {
        let refused = |changes: &[&str]| start(changes, &[PRECOMPLETION]).err().unwrap();
        assert_eq!(refused(&[]), NEEDS_NOTICES);
        // The queue of notices is the only pair.
        let drive = start(&[WINDOW, "controller.queue_pairs=1"], &[PRECOMPLETION]).unwrap();
        let problem = drive.connect(1, None, true).err().unwrap();
        assert!(problem.contains("raise controller.queue_pairs"), "{problem}");
        drop(drive);
        let plain = start(&[WINDOW, "controller.queue_pairs=1"], &["host.completion=interrupt"]).unwrap();
        assert!(plain.notices().is_none() && plain.connect(1, None, true).is_ok());
    }
}
