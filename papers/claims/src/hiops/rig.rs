//! Runs of the experiments on the host's I/O path: threads of the thesis' machine read at random from drives on an AHCI controller.
//!
//! Left out: everything that one claim alone asks.

use anyhow::{Context as _, Result, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_host_path::Profile as Host;
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{Precondition, RigDrive, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

use crate::costs;
use nandscape_lab_ledger::experiment::{Choice, Parameter, Run};
use nandscape_lab_ledger::figures::Figures;

/// Ports of the controller.
pub(crate) const PORTS: u32 = 6;
/// Threads of the micro-benchmark.
pub(crate) const THREADS: u32 = 128;

/// The path of Linux before blk-mq.
pub(crate) const SCSI: &[&str] = &["host.path=scsi"];
/// All switches, with interrupts: *IRQ I/O* of the thesis.
pub(crate) const IRQ: &[&str] = &["host.path=cooperative"];

/// One run.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Case {
    pub(crate) drives: u32,
    pub(crate) bytes: u64,
    /// Threads, or clients on another machine, each with one read at a time.
    pub(crate) threads: u32,
    pub(crate) host: &'static [&'static str],
    pub(crate) setting: Setting,
}

/// What the thesis leaves open, one reading each.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// The costs of the host, times this.
    costs: f64,
    /// Changes of the drive.
    drive: &'static [&'static str],
}

/// The host and the drive as their profiles have them.
pub(crate) const GIVEN: Setting = Setting { name: "as given", costs: 1.0, drive: &[] };
/// All readings.
pub(crate) const SETTINGS: [Setting; 4] = [
    GIVEN,
    Setting { name: "host costs halved", costs: 0.5, ..GIVEN },
    Setting { name: "host costs doubled", costs: 2.0, ..GIVEN },
    Setting { name: "drives without firmware time", costs: 1.0, drive: &["controller.processors.command_time=0us"] },
];
/// What they are readings of.
pub(crate) const OPEN: &str =
    "the costs of the host, and the rate of a drive with 512 B reads, which the thesis does not give";

/// The parameters that all have.
pub(crate) const HOST: Parameter = Parameter {
    what: "host i7-4770",
    value: "4 cores with 2 threads each, 3.4 GHz, CFS; `nandscape hosts show i7-4770` has the source of each cost",
    source: "Shin 2017, 3.4; costs are not those of its results",
};
pub(crate) const CONTROLLER: Parameter = Parameter {
    what: "ahci:6",
    value: "32 tags a port, an uplink of 1.5 GB/s, one interrupt on processor 0, RAID-0 with chunks of 128 KiB",
    source: "Shin 2017, 3.4",
};
pub(crate) const DRIVE: Parameter = Parameter {
    what: "drive 840-pro",
    value: "100,000 reads of 4 KiB a second at depth 32, 9,900 at depth 1",
    source: "Samsung's data sheet",
};
pub(crate) const LOAD: Parameter = Parameter {
    what: "load",
    value: "128 threads, each with one direct read at a random place",
    source: "Shin 2017, 3.4: fio 2.1.4, O_DIRECT, 128 threads",
};
/// Choices that all take.
pub(crate) const COSTS: Choice = Choice {
    open: "the costs of interrupts, softirqs, switches and of the layers of the kernel",
    taken: "those of the profile, and all of them at half and at twice",
    why: "the thesis gives none; published figures of other machines, and estimates where none separates them",
};
pub(crate) const RATE: Choice = Choice {
    open: "the rate of a drive with 512 B reads",
    taken: "that of the data sheet for 4 KiB, and one limited by its flash alone (no firmware time)",
    why: "the data sheet has 4 KiB only; 671 K from six drives are more than 100 K each, and that figure is a result",
};
pub(crate) const KERNEL: Choice = Choice {
    open: "file system, RAID and fio",
    taken: "no cost of their own",
    why: "the thesis gives none; they are the same on all paths",
};
pub(crate) const LOCKS: Choice = Choice {
    open: "locks",
    taken: "SCSI: a lock a request queue, held by the block layer, and that of the controller, held by the driver and its handler, as \
            in Linux 3.2. The strategies: that of the controller alone",
    why: "the thesis names no lock; the FIFO, the tags and the registers of its driver, which was adopted from libata's, need one",
};
pub(crate) const CAPACITY: Choice = Choice {
    open: "capacity",
    taken: "2 GiB a drive with all channels and planes, written once",
    why: "reads at random places of a written drive take the same time at any capacity",
};

const SIZE: &[&str] = &["capacity=2GiB"];
/// The same channels and planes with blocks of fewer pages.
const SIZE_OF_A_MOMENT: &[&str] = &["capacity=256MiB", "geometry.pages_per_block=16"];

/// The host of a case.
fn host(case: &Case, run: &Run<'_>) -> Result<Host> {
    costs::host(case.host, case.setting.costs, run)
}

/// Runs `requests` reads, in a full run, after a tenth of that.
pub(crate) fn measure(case: &Case, requests: u64, run: &Run<'_>) -> Result<Figures> {
    let mut profile = Profile::load("840-pro")?;
    // Written once, a small drive takes a fraction of the time to make.
    profile.set_all(if run.effort.is_a_moment() { SIZE_OF_A_MOMENT } else { SIZE })?;
    profile.set_all(case.setting.drive)?;
    let profile = profile.resolve()?;
    let drive = |number: u32| RigDrive {
        name: format!("drive{number}"),
        profile: profile.clone(),
        store: StoreKind::None,
        precondition: Precondition::Full,
        seed: run.seed.child("drives").nth(u64::from(number)),
    };
    let job = JobSpec {
        rw: "randread".parse()?,
        bs: case.bytes.to_string().parse()?,
        iodepth: case.threads,
        ..JobSpec::default()
    };
    let requests = run.effort.of(requests);
    let chain: Chain = format!("ahci:{}", case.drives).parse().map_err(anyhow::Error::msg)?;
    let layers = chain.resolve().map_err(anyhow::Error::msg)?;
    let workload = Workload { limit: Limit::Requests(requests), warmup: requests / 10, ..Workload::of(job) };
    let (drives, seed) = ((0..case.drives).map(drive).collect(), run.seed.child("workload").value());
    let simulation = Simulation { layers, host: Some(host(case, run)?), ..Simulation::of(drives, workload, seed) };
    let finished = simulation.run(std::rc::Rc::new(()))?;
    let report = &finished.chain().context("a controller is a layer")?.host;
    ensure!(report.requests == requests, "{} of {requests} reads succeeded", report.requests);
    let mut figures = Figures::default();
    let cpu = report.cpu.as_ref().expect("a run with a host");
    figures.add("reads a second", report.iops.unwrap_or(0.0), "");
    figures.add("longest handler", cpu.longest_interrupt_us, "us");
    figures.add("processor time a read", cpu.request_us.unwrap_or(0.0), "us");
    figures.add("busy", 100.0 * cpu.busy, "%");
    figures.add("interrupts a read", cpu.interrupts_per_request.unwrap_or(0.0), "");
    if let Some(network) = &cpu.network {
        figures.add("links to clients", 100.0 * network.to_clients, "%");
        figures.add("clients busy", 100.0 * network.clients_busy, "%");
    }
    figures.add("mean", report.latency_us.get("read").and_then(|latency| latency.mean).unwrap_or(0.0), "us");
    Ok(figures)
}
