//! The placement by hosts in the measured phase: the bytes of each reclaim unit handle, or of each stream resource.
//!
//! They are the counts of the FDP Statistics log for the measured phase alone: the log counts since the drive was made.
//!
//! [`enable_streams`] is a host's preparation before it writes by streams.

use nandscape_device_ftl_core::{HandleReport, Interface, Isolation, PlacementReport};
use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_wire_nvme::{AdminOpcode, directive};
use serde::Serialize;

/// Placement in the measured phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlacementFigures {
    /// How hosts name handles: `fdp` or `streams`.
    pub interface: &'static str,
    /// What becomes of data that is moved: `initial` or `persistent`.
    pub isolation: &'static str,
    /// Host Bytes with Metadata Written.
    pub host_written_bytes: u64,
    /// Media Bytes with Metadata Written: data, moved data, and padding.
    pub media_written_bytes: u64,
    /// Media Bytes Erased.
    pub media_erased_bytes: u64,
    /// Bytes moved out of blocks with data of several handles, which no handle counts.
    pub mixed_moved_bytes: u64,
    /// Bytes of preconditioning moved out of blocks of one handle, which no handle counts.
    pub planted_moved_bytes: u64,
    /// Each handle. Of streams, the first is for data of no stream.
    pub handles: Vec<HandleFigures>,
}

/// One handle in the measured phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HandleFigures {
    /// Its number.
    pub handle: usize,
    /// Bytes that hosts wrote by it.
    pub host_written_bytes: u64,
    /// Bytes of its data that were programmed from the write buffer.
    pub programmed_bytes: u64,
    /// Bytes that collections moved out of its blocks.
    pub moved_bytes: u64,
    /// Bytes programmed and moved over bytes that hosts wrote; null without writes.
    pub waf: Option<f64>,
}

/// Enables the Streams directive of a host in all of its namespaces, by its admin queue.
///
/// # Errors
/// The drive's reason to refuse.
pub(crate) async fn enable_streams(issuer: &Issuer, admin: &dyn Drive) -> Result<(), String> {
    let (kind, cdw12) = (directive::IDENTIFY, directive::enable(directive::STREAMS, true));
    let enable = directive::command(AdminOpcode::DIRECTIVE_SEND, u32::MAX, kind, directive::ENABLE, 0, cdw12);
    match issuer.execute(admin, enable, HostMem::none()).await.status {
        status if status.is_success() => Ok(()),
        status => Err(format!("dataplacement = streams: the drive refuses them: {status}")),
    }
}

/// The counts of a drive with one FTL that has handles.
pub(crate) fn counts(ssd: &Ssd) -> Option<PlacementReport> {
    ssd.parts().first().and_then(|part| part.placement())
}

impl PlacementFigures {
    /// What was counted between two times.
    pub(crate) fn between(before: &PlacementReport, after: &PlacementReport) -> PlacementFigures {
        let handles: Vec<HandleFigures> = before.handles.iter().zip(&after.handles).enumerate().map(figures).collect();
        PlacementFigures {
            interface: if after.interface == Interface::Handles { "fdp" } else { "streams" },
            isolation: Isolation::ALL.iter().find(|(_, one)| *one == after.isolation).map_or("?", |(name, _)| name),
            host_written_bytes: handles.iter().map(|handle| handle.host_written_bytes).sum(),
            media_written_bytes: after.media_written - before.media_written,
            media_erased_bytes: after.media_erased - before.media_erased,
            mixed_moved_bytes: after.mixed_moved - before.mixed_moved,
            planted_moved_bytes: after.planted_moved - before.planted_moved,
            handles,
        }
    }
}

fn figures((handle, (before, after)): (usize, (&HandleReport, &HandleReport))) -> HandleFigures {
    let [host, programmed, moved] =
        [after.host_written - before.host_written, after.programmed - before.programmed, after.moved - before.moved];
    let waf = (host > 0).then(|| (programmed + moved) as f64 / host as f64);
    HandleFigures { handle, host_written_bytes: host, programmed_bytes: programmed, moved_bytes: moved, waf }
}
