//! Predictable Latency Mode (Base 8.1.18) of a drive with one NVM Set: a window without background work of the
//! drive, and one with it.
//!
//! A drive ends the deterministic window by itself when it has lasted too long, or when the drive has no room left for what is written.
//!
//! Left out: the events of the mode; several NVM Sets.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::predictable_latency::{Config, ENABLE, Log, WINDOW_DETERMINISTIC, WINDOW_NON_DETERMINISTIC};
use nandscape_wire_nvme::{Status, SubmissionEntry, feature, identify, log};
use zerocopy::{FromBytes, IntoBytes};

use crate::Error;
use crate::admin::Admin;

/// The NVM Set.
const SET: u32 = 1;

/// A window.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Window {
    /// No background work: the drive serves its host only.
    Deterministic,
    /// The drive does its background work.
    NonDeterministic,
}

/// What a drive reports of its windows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WindowTimes {
    /// Mapping units that a deterministic window typically takes.
    pub writes_typical: u64,
    /// The longest deterministic window.
    pub longest: Span,
    /// The shortest time in the other window, after little use and after much.
    pub work: [Span; 2],
}

/// A drive with the mode.
pub struct PredictableLatency {
    admin: Admin,
}

impl PredictableLatency {
    /// Enables the mode. The non-deterministic window begins.
    ///
    /// # Errors
    /// When the drive lacks the mode.
    pub async fn open(sim: &Sim, admin: Rc<dyn Drive>) -> Result<PredictableLatency, Error> {
        let latency = PredictableLatency { admin: Admin::new(sim, admin) };
        let attributes = latency.admin.identify().await?.map_or(0, |data| data.ctratt.get());
        if attributes & identify::CTRATT_PREDICTABLE_LATENCY == 0 {
            return Err(Error::NoWindows);
        }
        latency.enable().await?;
        Ok(latency)
    }

    async fn enable(&self) -> Result<(), Error> {
        let entry = SubmissionEntry::set_features(feature::PREDICTABLE_LATENCY_CONFIG, SET);
        let entry = SubmissionEntry { cdw12: ENABLE.into(), ..entry };
        self.admin.execute(entry, &HostMem::from_bytes(Config::zeroed().as_bytes())).await.map(drop)
    }

    /// Begins a window. A drive that has lost power has forgotten the mode: it is enabled again.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn select(&self, window: Window) -> Result<(), Error> {
        let value = match window {
            Window::Deterministic => WINDOW_DETERMINISTIC,
            Window::NonDeterministic => WINDOW_NON_DETERMINISTIC,
        };
        let entry = SubmissionEntry::set_features(feature::PREDICTABLE_LATENCY_WINDOW, SET);
        let entry = SubmissionEntry { cdw12: value.into(), ..entry };
        match self.admin.execute(entry, &HostMem::none()).await {
            Err(Error::Rejected(Status::COMMAND_SEQUENCE_ERROR)) => {
                self.enable().await?;
                self.admin.execute(entry, &HostMem::none()).await.map(drop)
            }
            ended => ended.map(drop),
        }
    }

    /// The present window; `None` if the drive has forgotten the mode.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn window(&self) -> Result<Option<Window>, Error> {
        let entry = SubmissionEntry::get_features(feature::PREDICTABLE_LATENCY_WINDOW);
        let entry = SubmissionEntry { cdw11: SET.into(), ..entry };
        Ok(match self.admin.execute(entry, &HostMem::none()).await?.dw0 {
            WINDOW_DETERMINISTIC => Some(Window::Deterministic),
            WINDOW_NON_DETERMINISTIC => Some(Window::NonDeterministic),
            _ => None,
        })
    }

    /// How long its windows are.
    ///
    /// # Errors
    /// When the drive rejects the command, or returns another structure.
    pub async fn times(&self) -> Result<WindowTimes, Error> {
        let bytes = size_of::<Log>();
        let entry = SubmissionEntry::get_log_page(log::PREDICTABLE_LATENCY, 0, bytes as u32);
        // The set is the Log Specific Identifier.
        let entry = SubmissionEntry { cdw11: (entry.cdw11.get() | SET << 16).into(), ..entry };
        let mem = HostMem::zeroed(bytes);
        self.admin.execute(entry, &mem).await?;
        let log = Log::read_from_bytes(&mem.to_vec()).map_err(|_| Error::NoWindows)?;
        Ok(WindowTimes {
            writes_typical: log.writes_typical.get(),
            longest: time_of(log.longest_ms.get()),
            work: [log.other_ms_low.get(), log.other_ms_high.get()].map(time_of),
        })
    }
}

/// The longest time that is taken from a drive, in milliseconds: an hour.
const LONGEST_MS: u64 = 3_600_000;

/// A time that a drive reports. No drive keeps its host waiting for years.
fn time_of(ms: u64) -> Span {
    Span::from_ms(ms.min(LONGEST_MS))
}
