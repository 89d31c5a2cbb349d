//! The zones of a drive: what its report told when the run began, and what the jobs have done since. All jobs on a namespace
//! share one table, since a zone has one write pointer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::zns::{REPORT_HEAD, ZoneDescriptor, receive, send};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes;

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
    /// Writes under way.
    pub(crate) in_flight: u32,
    /// A job has it for its writes, or resets it.
    pub(crate) is_held: bool,
    /// It can be written: no command to it has failed.
    pub(crate) is_sound: bool,
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
const FULL: u8 = 0xe;

impl Table {
    /// Asks a drive for its zones.
    ///
    /// # Errors
    /// When it does not report any.
    pub(crate) async fn of(sim: &Sim, drive: &dyn Drive) -> Result<Rc<Table>, String> {
        let (info, issuer) = (drive.info(), Issuer::new(sim));
        let (mut zones, mut from) = (Vec::new(), 0);
        while from < info.blocks {
            let mem = HostMem::zeroed(REPORT_BYTES as usize);
            let ended = issuer.execute(drive, report(info.nsid, from), mem.clone()).await;
            if !ended.status.is_success() {
                return Err(format!("zonemode = zbd: the drive reports no zones: {}", ended.status));
            }
            let page = mem.to_vec();
            let all = page[REPORT_HEAD..].chunks_exact(size_of::<ZoneDescriptor>());
            let all = all.map(|bytes| ZoneDescriptor::read_from_bytes(bytes).expect("64 bytes"));
            let told = all.take_while(|zone| zone.zt != 0).map(|zone| Zone::of(&zone));
            // The first may be the one that `from` is in the middle of.
            let told: Vec<Zone> = told.filter(|zone| zone.start >= from).collect();
            let Some(last) = told.last() else { break };
            from = last.start + 1;
            zones.extend(told);
        }
        if zones.is_empty() {
            return Err(NO_ZONES.to_owned());
        }
        Ok(Rc::new(Table { zones: RefCell::new(zones), changed: Signal::new(sim) }))
    }
}

impl Zone {
    fn of(told: &ZoneDescriptor) -> Zone {
        let (start, capacity, state) = (told.zslba.get(), told.zcap.get(), told.zs >> 4);
        let written = if state == FULL { capacity } else { told.wp.get().saturating_sub(start).min(capacity) };
        let is_sound = !UNUSABLE.contains(&state);
        Zone { start, capacity, next: written, written, in_flight: 0, is_held: false, is_sound }
    }
}

/// Report Zones, of those that begin at `from` or behind it, and the one that it is in.
fn report(nsid: u32, from: u64) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_RECEIVE, nsid, from, 1);
    entry.cdw12 = (REPORT_BYTES / 4 - 1).into();
    entry.cdw13 = u32::from(receive::REPORT).into();
    entry
}

/// An action on the zone that begins at `start`.
pub(crate) fn action(nsid: u32, start: u64, which: Action) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_SEND, nsid, start, 1);
    let code = match which {
        Action::Reset => send::RESET,
        Action::Finish => send::FINISH,
    };
    entry.cdw13 = u32::from(code).into();
    entry
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
