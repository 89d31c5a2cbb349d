//! Several drives in one simulation, a stripe over them: all times sum up, each drive has its own report, and the same
//! inputs give the same bytes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer, Node, Refused, Use};
use nandscape_lab_run::chain::{Layer, LayerNode, LayerReport, Opening, Section, Shown};
use nandscape_lab_run::{DRIVE, Finished, HostReport, Offers, Precondition, RigDrive, RunError, Simulation, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};
use nandscape_sim::{Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// A stripe of chunks of 4 KiB over this many drives; it takes 3 us for each command before it sends anything.
#[derive(Debug)]
struct Stripe(usize);

/// It, over these.
struct StripeNode {
    sim: Sim,
    below: Vec<Rc<dyn Node>>,
    commands: Rc<Cell<u64>>,
    begun: Cell<u64>,
}

/// What it has counted: no crate but this test knows its kind.
#[derive(PartialEq, Debug)]
struct StripeReport {
    wide: usize,
    commands: u64,
}

const OWN: Span = Span::from_us(3);

struct Striped {
    sim: Sim,
    below: Rc<[Rc<dyn Drive>]>,
    chunk_blocks: u64,
    issuer: Rc<Issuer>,
    commands: Rc<Cell<u64>>,
}

impl Layer for Stripe {
    fn kind(&self) -> &'static str {
        "stripe"
    }

    fn takes(&self) -> usize {
        self.0
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        Ok(Rc::new(StripeNode { sim: how.sim.clone(), below, commands: Rc::default(), begun: Cell::new(0) }))
    }
}

impl Node for StripeNode {
    fn info(&self) -> DriveInfo {
        let info = self.below[0].info();
        DriveInfo { blocks: info.blocks * self.below.len() as u64, ..info }
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let below = self.below.iter().map(|node| node.connect(wanted)).collect::<Result<Vec<_>, _>>()?;
        let chunk_blocks = u64::from(4_096 / below[0].info().lba_bytes);
        let (sim, issuer) = (self.sim.clone(), Rc::new(Issuer::new(&self.sim)));
        Ok(Rc::new(Striped { sim, below: below.into(), chunk_blocks, issuer, commands: self.commands.clone() }))
    }
}

impl LayerNode for StripeNode {
    fn offers(&self, _: Offers) -> Offers {
        Offers::default()
    }

    fn begin(&self) {
        self.begun.set(self.commands.get());
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        let commands = self.commands.get() - self.begun.get();
        Some(Arc::new(StripeReport { wide: self.below.len(), commands }))
    }
}

impl LayerReport for StripeReport {
    fn key(&self) -> &'static str {
        "stripe"
    }

    fn json(&self) -> String {
        format!(r#"{{"wide":{},"commands":{}}}"#, self.wide, self.commands)
    }

    fn settings(&self) -> String {
        format!("{} wide", self.wide)
    }

    fn shown(&self) -> Vec<Shown> {
        vec![Shown::Line(format!("{} commands", self.commands))]
    }
}

impl Striped {
    /// The drive and the command for each chunk that a command touches; commands begin and end with chunks.
    fn parts(&self, command: &SubmissionEntry) -> Vec<(usize, SubmissionEntry)> {
        let blocks = u64::from(command.cdw12.get() & 0xffff) + 1;
        let (first, drives) = (command.slba() / self.chunk_blocks, self.below.len() as u64);
        let part = |chunk: u64| {
            let (opcode, place) = (IoOpcode(command.opcode), chunk / drives * self.chunk_blocks);
            let nsid = self.below[0].info().nsid;
            ((chunk % drives) as usize, SubmissionEntry::blocks(opcode, nsid, place, self.chunk_blocks as u32))
        };
        (first..first + blocks / self.chunk_blocks).map(part).collect()
    }
}

impl Drive for Striped {
    fn info(&self) -> DriveInfo {
        let info = self.below[0].info();
        DriveInfo { blocks: info.blocks * self.below.len() as u64, ..info }
    }

    fn submit(&self, io: Io) {
        self.commands.set(self.commands.get() + 1);
        let (parts, begun) = (self.parts(&io.command), self.sim.now());
        let (sim, below, issuer) = (self.sim.clone(), self.below.clone(), self.issuer.clone());
        self.sim.spawn(async move {
            sim.sleep(OWN).await;
            let sent: Vec<_> =
                parts.iter().map(|(drive, part)| issuer.execute(&*below[*drive], *part, HostMem::none())).collect();
            let mut latest: Option<Completion> = None;
            for part in sent {
                let done = part.await;
                let later = |other: &Completion| done.breakdown.total() >= other.breakdown.total();
                if latest.as_ref().is_none_or(later) {
                    latest = Some(done);
                }
            }
            let mut done = latest.expect("a command has blocks");
            done.breakdown.charge_rest("stripe", sim.now() - begun);
            io.token.complete(done);
        });
    }
}

fn drive(number: usize) -> RigDrive {
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(["capacity=256MiB", "geometry.channels=2", "geometry.dies_per_channel=2"]).unwrap();
    RigDrive {
        name: format!("drive-{number}"),
        profile: profile.resolve().unwrap(),
        store: StoreKind::None,
        precondition: Precondition::Steady,
        seed: Seed::new(9).child("array").nth(number as u64),
    }
}

fn workload(bs: &str) -> Workload {
    let rate = Some(Rate { iops: 4_000.0, process: RateProcess::Poisson });
    let (rw, bs) = ("randrw".parse().unwrap(), bs.parse().unwrap());
    Workload {
        limit: Limit::Requests(3_000),
        warmup: 200,
        ..Workload::of(JobSpec { rw, bs, rate, ..JobSpec::default() })
    }
}

fn stack(drives: usize, bs: &str) -> Simulation {
    let (layers, wanted) = (vec![Stripe(drives).into()], Wanted { trace: true, details: true });
    let given = (0..drives).map(drive).collect();
    Simulation { layers, wanted, check: true, ..Simulation::of(given, workload(bs), 5) }
}

fn run(stack: &Simulation) -> Finished {
    stack.run(Rc::new(())).unwrap_or_else(|error| panic!("{error}"))
}

fn host_of(finished: &Finished) -> &HostReport {
    &finished.chain().unwrap().host
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

#[test]
fn layer_and_drive_sum_to_the_latency() {
    for (drives, bs) in [(1, "4k"), (2, "4k"), (3, "12k")] {
        let finished = run(&stack(drives, bs));
        let host = host_of(&finished);
        for (way, latency) in &host.latency_us {
            let mean = latency.mean.unwrap();
            let layers = &host.layers_us[way];
            assert!(close(layers.values().sum(), mean), "{drives} drives, {way}: {layers:?} of {mean}");
            assert!(close(layers["stripe"], 3.0), "{drives} drives, {way}: {layers:?}");
            let stages: f64 = host.breakdown_us[way].values().filter_map(|stage| stage.as_f64()).sum();
            assert!(close(stages, layers[DRIVE]), "{drives} drives, {way}: {stages}");
        }
    }
}

#[test]
fn a_layer_of_an_unknown_kind_has_its_part_of_the_report() {
    let finished = run(&stack(2, "8k"));
    let [section] = &host_of(&finished).chain[..] else { panic!("one layer") };
    // Requests under way when the measured phase begins are counted by the workload, and not by the layer.
    let commands = section.part::<StripeReport>().expect("a stripe").commands;
    assert!((2_900..=3_000).contains(&commands), "{commands}");
    assert_eq!(section.part(), Some(&StripeReport { wide: 2, commands }));
    assert_eq!((section.called(), &*section.called_with_settings()), ("stripe", "stripe (2 wide)"));
    assert_eq!(section.shown(), [Shown::Line(format!("{commands} commands"))]);
    let of = |section: &Section| serde_json::to_string(section).unwrap();
    let (over, bytes) = (r#""over":["drive-0","drive-1"]"#, section.bytes);
    let expected =
        format!(r#"{{"layer":"stripe",{over},"bytes":{bytes},"stripe":{{"wide":2,"commands":{commands}}}}}"#);
    assert_eq!(of(section), expected);
    let silent = Section { report: None, over: Vec::new(), ..section.clone() };
    assert_eq!(of(&silent), format!(r#"{{"layer":"stripe","over":[],"bytes":{bytes},"other":null}}"#));
    assert_eq!((&*silent.called_with_settings(), silent.shown()), ("stripe", Vec::new()));
}

#[test]
fn each_drive_has_its_own_report_and_timeline() {
    let finished = run(&stack(3, "12k"));
    let host = host_of(&finished);
    assert_eq!(host.requests, 3_000);
    let (reads, writes) = (host.latency_us["read"].count, host.latency_us["write"].count);
    for (number, drive) in finished.drives().iter().enumerate() {
        let (report, details) = (&drive.report, drive.details.as_ref().unwrap());
        assert_eq!(drive.name, format!("drive-{number}"));
        // Each request of three chunks is a command to each drive.
        assert_eq!((report.latency_us["read"].count, report.latency_us["write"].count), (reads, writes));
        assert!(report.latency_us["read"].mean < host.latency_us["read"].mean, "without the stripe's time");
        assert!(report.waf.is_some_and(|waf| waf > 1.0) && report.flash.page_reads > 0, "{report:?}");
        let worked: u64 =
            details.timeline.shares.parts_per_million["read"].iter().flatten().map(|part| u64::from(*part)).sum();
        assert!(worked > 0 && details.timeline.slowest.is_some() && details.timeline.dies.len() == 4);
        assert_eq!(details.drive.gc_blocks.last(), Some(&report.gc.blocks));
    }
    // Each drive has its own steady state.
    assert_ne!(finished.drives()[0].report.gc.blocks, 0);
    let trace = finished.trace.unwrap();
    for name in ["drive-0 channel 0 die 1 plane 0", "drive-2 channel 1", "drive-1 commands"] {
        assert!(trace.contains(name), "{name}");
    }
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let shown = || {
        let finished = run(&stack(2, "8k"));
        let drives: Vec<String> = finished
            .drives()
            .iter()
            .map(|drive| {
                let mut report = serde_json::to_value(&drive.report).unwrap();
                report.as_object_mut().unwrap().remove("host");
                format!("{report} {}", serde_json::to_string(&drive.details).unwrap())
            })
            .collect();
        (serde_json::to_string(host_of(&finished)).unwrap(), drives, finished.trace)
    };
    assert!(shown() == shown());
}

/// Jobs use several drives without a layer in turn: each drive has the requests of its job, as its host sees them.
#[test]
fn drives_without_a_layer_are_used_in_turn() {
    let jobs = ["one", "other"].map(|name| JobSpec { name: name.to_owned(), ..workload("4k").jobs[0].clone() });
    let workload = Workload { jobs: jobs.to_vec(), ..workload("4k") };
    let finished = run(&Simulation { layers: Vec::new(), workload, ..stack(2, "4k") });
    let shown = |latency| serde_json::to_string(latency).unwrap();
    for (flow, drive) in finished.flows().iter().zip(finished.drives()) {
        assert_eq!(shown(&flow.latency_us), shown(&drive.report.latency_us));
    }
    assert_eq!(finished.drives().len(), 2);
}

/// A lone drive is the empty chain: its report has what the workload saw, and the drive has no second view.
#[test]
fn a_lone_drive_is_the_empty_chain() {
    let alone = RigDrive { seed: Seed::new(5), ..drive(0) };
    let mut on =
        Simulation { check: true, ..Simulation::on(alone.profile.clone(), alone.precondition, workload("4k"), 5) };
    on.drives[0].store = alone.store;
    let given = Simulation { layers: Vec::new(), wanted: Wanted::default(), drives: vec![alone], ..stack(1, "4k") };
    assert!(given.is_alone());
    let (one, other) = (run(&on), run(&given));
    assert!(one.chain().is_none() && other.chain().is_none());
    let shown = |finished: &Finished| serde_json::to_string(&finished.report().latency_us).unwrap();
    assert_eq!(shown(&one), shown(&other));
}

#[test]
fn two_drives_of_one_name_are_refused() {
    let twins = Simulation { drives: vec![drive(1), drive(1)], ..stack(2, "4k") };
    match twins.run(Rc::new(())) {
        Err(RunError::Workload(problem)) => assert!(problem.contains("\"drive-1\"; names must differ"), "{problem}"),
        _ => panic!("taken"),
    }
}
