//! Features 13h and 14h and the logs 0Ah and 0Bh of Predictable Latency Mode (Base 5.1.25.1.12, 5.1.25.1.13, 5.1.12.1.11,
//! 5.1.12.1.12). The mode itself is in [`latency`](crate::subsystem::latency).

use nandscape_device_ftl_core::offers::LatencyWindow;
use nandscape_drive::HostMem;
use nandscape_wire_nvme::feature::{self, PredictableLatencyWindow};
use nandscape_wire_nvme::predictable_latency::{
    self, AGGREGATE_HEADER, Config, EVENTS, WINDOW_DETERMINISTIC, WINDOW_NON_DETERMINISTIC,
};
use nandscape_wire_nvme::{Status, SubmissionEntry, log};
use zerocopy::{FromBytes, IntoBytes};

use super::Answer;
use super::features::data;
use crate::engine::NvmeController;
use crate::refusal::Refusal;

/// The one NVM Set.
const SET: u16 = 1;

/// The logs.
pub(super) const LOGS: [u8; 2] = [log::PREDICTABLE_LATENCY, log::PREDICTABLE_LATENCY_EVENTS];

/// Whether a feature belongs to the mode.
pub(super) fn is_feature(id: u8) -> bool {
    [feature::PREDICTABLE_LATENCY_CONFIG, feature::PREDICTABLE_LATENCY_WINDOW].contains(&id)
}

/// NVM Set Identifier, in CDW11 of the features.
fn check_set(entry: &SubmissionEntry) -> Result<(), Refusal> {
    if entry.cdw11.get() as u16 == SET { Ok(()) } else { Err(Refusal::field(11, 0)) }
}

impl NvmeController {
    /// Get Features: the current value, or else the default.
    pub(super) fn get_latency(&self, id: u8, entry: &SubmissionEntry, current: bool) -> Result<Answer, Refusal> {
        check_set(entry)?;
        let window = self.subsystem.latency.window().filter(|_| current);
        if id == feature::PREDICTABLE_LATENCY_WINDOW {
            return Ok(Answer::value(match window {
                None => 0,
                Some(LatencyWindow::Deterministic) => WINDOW_DETERMINISTIC,
                Some(LatencyWindow::NonDeterministic) => WINDOW_NON_DETERMINISTIC,
            }));
        }
        let config = if current { self.subsystem.latency.config() } else { Config::zeroed() };
        let enabled = if window.is_some() { predictable_latency::ENABLE } else { 0 };
        Ok(Answer { value: enabled, ..Answer::data(config.as_bytes()) })
    }

    /// Set Features.
    pub(super) fn set_latency(&self, id: u8, entry: &SubmissionEntry, mem: &HostMem) -> Result<(), Refusal> {
        check_set(entry)?;
        let cdw12 = entry.cdw12.get();
        if id == feature::PREDICTABLE_LATENCY_CONFIG {
            let config = Config::read_from_bytes(&data::<512>(mem, size_of::<Config>())?).expect("as many bytes");
            if config.events.get() & !EVENTS != 0 {
                return Err(Status::INVALID_FIELD.into());
            }
            self.subsystem.configure_latency(cdw12 & predictable_latency::ENABLE != 0, config);
            return Ok(());
        }
        let window = match u32::from(PredictableLatencyWindow(cdw12).window()) {
            WINDOW_DETERMINISTIC => LatencyWindow::Deterministic,
            WINDOW_NON_DETERMINISTIC => LatencyWindow::NonDeterministic,
            _ => return Err(Refusal::field(12, 0)),
        };
        match self.subsystem.latency.window() {
            None => Err(Status::COMMAND_SEQUENCE_ERROR.into()),
            Some(same) if same == window => Ok(()),
            Some(_) => {
                self.subsystem.select_window(Some(window));
                Ok(())
            }
        }
    }

    /// One of the logs.
    pub(super) fn latency_page(&self, lid: u8, entry: &SubmissionEntry) -> Result<Vec<u8>, Refusal> {
        if lid == log::PREDICTABLE_LATENCY {
            // Log Specific Identifier.
            return match (entry.cdw11.get() >> 16) as u16 {
                SET => Ok(self.subsystem.latency_log().as_bytes().to_vec()),
                _ => Err(Refusal::field(11, 16)),
            };
        }
        let mut page = vec![0; AGGREGATE_HEADER];
        if self.subsystem.latency.is_to_tell() {
            page[0] = 1;
            page.extend(SET.to_le_bytes());
        }
        Ok(page)
    }
}
