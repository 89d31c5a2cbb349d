//! Reports of Flexible Data Placement: log pages 20h to 23h, and features 1Dh and 1Eh (Base 5.1.12.1.28 to 5.1.12.1.31,
//! 5.1.25.1.20, 5.1.25.1.21).
//!
//! The one endurance group has one configuration, which is always enabled: the profile sets Flexible Data Placement, and a
//! host cannot change it.

use nandscape_device_ftl_core::{Isolation, PlacementReport};
use nandscape_drive::HostMem;
use nandscape_wire_nvme::fdp::{self, Configuration, ConfigurationsHead, Event, Statistics};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};
use zerocopy::{FromZeros, IntoBytes};

use super::Answer;
use crate::command_set::Placement;
use crate::command_set::nvm::fdp::KINDS;
use crate::engine::NvmeController;
use crate::namespace::MAX_NAMESPACES;
use crate::refusal::Refusal;

/// The endurance group with Flexible Data Placement.
const GROUP: u16 = 1;

/// The log pages.
pub(super) const LOGS: [u8; 4] = [fdp::CONFIGURATIONS, fdp::USAGE, fdp::STATISTICS, fdp::EVENTS];

/// Whether a feature belongs to Flexible Data Placement.
pub(super) fn is_feature(id: u8) -> bool {
    [fdp::FEATURE, fdp::FEATURE_EVENTS].contains(&id)
}

impl NvmeController {
    /// Whether hosts place data.
    pub(super) fn has_placement(&self) -> bool {
        self.subsystem.set.places()
    }

    /// One of the log pages, of the endurance group that the Log Specific Identifier names.
    pub(super) fn placement_log(&self, lid: u8, entry: &SubmissionEntry) -> Result<Vec<u8>, Refusal> {
        let Placement { report, fdp } = self.subsystem.set.placement().ok_or(Status::INVALID_LOG_PAGE)?;
        if (entry.cdw11.get() >> 16) as u16 != GROUP {
            return Err(Refusal::field(11, 16));
        }
        Ok(match lid {
            fdp::CONFIGURATIONS => configurations(&report),
            fdp::USAGE => usage(report.handles.len(), !self.subsystem.namespaces.above(0).is_empty()),
            fdp::STATISTICS => statistics(&report),
            // Log Specific Parameter, bit 0: host events.
            _ => events(&fdp.events(entry.cdw10.get() >> 8 & 1 != 0)),
        })
    }

    /// Get Features of features 1Dh and 1Eh.
    pub(super) fn get_placement(&self, id: u8, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let Placement { fdp, .. } = self.subsystem.set.placement().ok_or(Refusal::field(10, 0))?;
        let cdw11 = entry.cdw11.get();
        if id == fdp::FEATURE {
            // Enabled (bit 0), by configuration 0 (bits 15:8).
            return if cdw11 as u16 == GROUP { Ok(Answer::value(1)) } else { Err(Refusal::field(11, 0)) };
        }
        self.check_placed_namespace(entry)?;
        let (handle, most) = (cdw11 as u16, (cdw11 >> 16) as u8);
        fdp.wants(handle, 0).ok_or(Refusal::field(11, 0))?;
        let attributes = |kind: &u8| [*kind, u8::from(fdp.wants(handle, *kind) == Some(true))];
        let list: Vec<u8> = KINDS.iter().take(most.into()).flat_map(attributes).collect();
        Ok(Answer { value: KINDS.len() as u32, ..Answer::data(&list) })
    }

    /// Set Features of features 1Dh and 1Eh.
    pub(super) fn set_placement(&self, id: u8, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Refusal> {
        let Placement { fdp, .. } = self.subsystem.set.placement().ok_or(Refusal::field(10, 0))?;
        if id == fdp::FEATURE {
            return Err(Status::FEATURE_NOT_CHANGEABLE.into());
        }
        self.check_placed_namespace(entry)?;
        let (cdw11, enables) = (entry.cdw11.get(), entry.cdw12.get() & 1 != 0);
        let (handle, count) = (cdw11 as u16, (cdw11 >> 16 & 0xff) as usize);
        fdp.wants(handle, 0).ok_or(Refusal::field(11, 0))?;
        mem.must_cover(count)?;
        let mut kinds = vec![0; count];
        mem.read(0, &mut kinds);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        if kinds.iter().any(|kind| !KINDS.contains(kind)) {
            return Err(Status::INVALID_FIELD.into());
        }
        kinds.iter().for_each(|kind| fdp.set_wanted(handle, *kind, enables));
        Ok(Answer::default())
    }

    /// Feature 1Eh acts on the placement handles of a namespace.
    fn check_placed_namespace(&self, entry: &SubmissionEntry) -> Result<(), Refusal> {
        match entry.nsid.get() {
            nsid if self.namespaces.get(nsid).is_some() => Ok(()),
            1..=MAX_NAMESPACES => Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID)),
            _ => Err(Status::INVALID_NAMESPACE.into()),
        }
    }
}

fn configurations(report: &PlacementReport) -> Vec<u8> {
    let handles = report.handles.len();
    let mut configuration = Configuration::zeroed();
    let bytes = (size_of::<Configuration>() + 4 * handles).next_multiple_of(8);
    configuration.bytes = (bytes as u16).into();
    configuration.attributes = fdp::CONFIGURATION_VALID;
    (configuration.groups, configuration.handles) = (1.into(), (handles as u16).into());
    configuration.max_identifiers_z = (handles as u16 - 1).into();
    configuration.namespaces = MAX_NAMESPACES.into();
    configuration.unit_bytes = report.unit_bytes.into();
    let mut head = ConfigurationsHead::new_zeroed();
    let all = size_of::<ConfigurationsHead>() + bytes;
    head.bytes = (all as u32).into();
    let isolation = match report.isolation {
        Isolation::Initial => fdp::INITIALLY_ISOLATED,
        Isolation::Persistent => fdp::PERSISTENTLY_ISOLATED,
    };
    let mut page = [head.as_bytes(), configuration.as_bytes()].concat();
    (0..handles).for_each(|_| page.extend_from_slice(&[isolation, 0, 0, 0]));
    page.resize(all, 0);
    page
}

/// Each namespace has all handles in its list.
fn usage(handles: usize, is_any_namespace: bool) -> Vec<u8> {
    let attributes = if is_any_namespace { fdp::HANDLE_OF_HOST } else { 0 };
    let mut page = (handles as u64).to_le_bytes().to_vec();
    (0..handles).for_each(|_| page.extend_from_slice(&u64::from(attributes).to_le_bytes()));
    page
}

fn statistics(report: &PlacementReport) -> Vec<u8> {
    let mut log = Statistics::new_zeroed();
    log.host_written = report.handles.iter().map(|handle| handle.host_written).sum::<u64>().into();
    log.media_written = report.media_written.into();
    log.media_erased = report.media_erased.into();
    log.as_bytes().to_vec()
}

fn events(events: &[Event]) -> Vec<u8> {
    let mut page = vec![0; fdp::EVENTS_HEAD];
    page[..4].copy_from_slice(&(events.len() as u32).to_le_bytes());
    events.iter().for_each(|event| page.extend_from_slice(event.as_bytes()));
    page
}
