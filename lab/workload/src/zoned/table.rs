//! The zones of a drive: its report when the run began, updated by the commands of the jobs since. All jobs on a namespace
//! share one table, since a zone has one write pointer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::zns::{ZoneDescriptor, manage_zone, report_zones, send, zones_of};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::spec::NO_ZONES;

/// One zone. Numbers are of logical blocks.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    /// Where it begins.
    pub(crate) start: u64,
    pub(crate) capacity: u64,
    /// Blocks for which writes were issued.
    pub(crate) next: u64,
    /// Blocks of writes that have completed since its reset.
    pub(crate) written: u64,
    /// Writes in progress.
    pub(crate) in_flight: u32,
    /// A job writes or resets it.
    pub(crate) is_held: bool,
    /// What a job may take it for.
    pub(crate) trust: Trust,
    /// How often it had to be asked for in a row, without a command that succeeded in between.
    failures: u32,
}

/// Whether the entry of a zone is reliable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// The entry is reliable.
    Known,
    /// A command to the zone failed: the drive has to be asked before the zone is written again.
    Unknown,
    /// The zone is not written any more.
    Lost,
}

/// The zones of a namespace.
pub(crate) struct Table {
    pub(crate) zones: RefCell<Vec<Zone>>,
    /// A zone has changed.
    pub(crate) changed: Signal,
}

/// The tables of a run, by namespace.
pub(crate) type Tables = BTreeMap<u32, Rc<Table>>;

/// Bytes of a report: its head and 63 descriptors.
const REPORT_BYTES: u32 = 4_096;
/// Zone states that are no longer written: read-only and offline.
const UNUSABLE: [u8; 2] = [0xd, 0xf];
/// Questions for a zone in a row after which it is left alone: a drive that refuses all commands would be asked for ever.
const MOST_FAILURES: u32 = 8;

impl Table {
    /// Asks a drive for its zones.
    ///
    /// # Errors
    /// When it does not report any.
    pub(crate) async fn of(sim: &Sim, drive: &dyn Drive) -> Result<Rc<Table>, String> {
        let (info, issuer) = (drive.info(), Issuer::new(sim));
        let (mut zones, mut from) = (Vec::new(), 0);
        while from < info.blocks {
            let told = report(&issuer, drive, from).await;
            let told = told.map_err(|status| format!("zonemode = zbd: the drive reports no zones: {status}"))?;
            let Some(last) = told.last() else { break };
            from = last.start + 1;
            zones.extend(told);
        }
        if zones.is_empty() {
            return Err(NO_ZONES.to_owned());
        }
        Ok(Rc::new(Table { zones: RefCell::new(zones), changed: Signal::new(sim) }))
    }

    /// Asks the drive for a zone to which a command failed. No task writes the zone meanwhile. A zone missing in the report is
    /// lost.
    pub(crate) async fn ask_again(&self, issuer: &Issuer, drive: &dyn Drive, number: usize) {
        let start = self.zones.borrow()[number].start;
        let told = report(issuer, drive, start).await.unwrap_or_default();
        let zone = &mut self.zones.borrow_mut()[number];
        match told.into_iter().find(|told| told.start == start) {
            Some(told) => (zone.next, zone.written, zone.trust) = (told.next, told.written, told.trust),
            None => zone.trust = Trust::Lost,
        }
    }
}

impl Zone {
    fn of(told: &ZoneDescriptor) -> Zone {
        let trust = if UNUSABLE.contains(&told.state()) { Trust::Lost } else { Trust::Known };
        Zone { trust, ..Zone::new(told.zslba.get(), told.zcap.get(), told.written()) }
    }

    /// One with blocks that are written.
    pub(crate) fn new(start: u64, capacity: u64, written: u64) -> Zone {
        Zone { start, capacity, next: written, written, in_flight: 0, is_held: false, trust: Trust::Known, failures: 0 }
    }

    /// A command to it has ended. Several at a time may fail for one reason, and count once.
    pub(crate) fn ended(&mut self, is_done: bool) {
        match (self.trust, is_done) {
            (Trust::Known, true) => self.failures = 0,
            (Trust::Known, false) => {
                self.failures += 1;
                self.trust = if self.failures < MOST_FAILURES { Trust::Unknown } else { Trust::Lost };
            }
            (Trust::Unknown | Trust::Lost, _) => {}
        }
    }

    /// Whether its entry is reliable.
    pub(crate) fn is_known(&self) -> bool {
        self.trust == Trust::Known
    }

    /// Whether it can be written, once the drive was asked if need be.
    pub(crate) fn is_usable(&self) -> bool {
        self.trust != Trust::Lost
    }
}

/// Report Zones: some of the zones that begin at `from` or after it.
async fn report(issuer: &Issuer, drive: &dyn Drive, from: u64) -> Result<Vec<Zone>, Status> {
    let entry = report_zones(drive.info().nsid, from, REPORT_BYTES);
    let mem = HostMem::zeroed(REPORT_BYTES as usize);
    let ended = issuer.execute(drive, entry, mem.clone()).await;
    if !ended.status.is_success() {
        return Err(ended.status);
    }
    // The first zone may begin before `from`.
    let page = mem.to_vec();
    let zones = zones_of(&page).map(|zone| Zone::of(&zone));
    Ok(zones.filter(|zone| zone.start >= from).collect())
}

/// An action on the zone that begins at `start`.
pub(crate) fn action(nsid: u32, start: u64, which: Action) -> SubmissionEntry {
    let code = match which {
        Action::Reset => send::RESET,
        Action::Finish => send::FINISH,
    };
    manage_zone(nsid, start, code)
}

/// What a job does to a whole zone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Reset,
    Finish,
}

impl Action {
    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Action::Reset => "reset",
            Action::Finish => "finish",
        }
    }
}
