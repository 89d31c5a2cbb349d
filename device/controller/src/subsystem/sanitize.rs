//! Sanitize (Base 5.1.22, 8.1.24): all data of all namespaces is dropped, in the background, whatever becomes of the controller
//! or of power. Commands that use data are refused meanwhile.
//!
//! A cryptographic erase is modelled: the key of all data is forgotten, so that what is left in the flash tells nothing.
//! Left out: block erase, overwrite, media verification; Identify does not offer them.

use std::cell::Cell;

use nandscape_drive::breakdown::cause;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::manage::{self, SanitizeStatus};
use zerocopy::FromZeros;

use super::NvmSubsystem;
use crate::admin::Event;
use crate::command_set::CommandSet;
use crate::engine::Chore;

/// SPROG when nothing is in progress.
const NO_PROGRESS: u16 = 0xffff;

/// The last sanitize operation, and the one in progress.
pub(crate) struct Sanitizing {
    /// SSTAT, without its flag.
    status: Cell<u16>,
    progress: Cell<u16>,
    cdw10: Cell<u32>,
    /// Bytes that hosts had written when the last one ended.
    written: Cell<u64>,
    /// The controller whose host is notified of the end.
    by: Cell<u16>,
}

impl Default for Sanitizing {
    fn default() -> Sanitizing {
        Sanitizing {
            status: Cell::new(manage::SANITIZE_NEVER),
            progress: Cell::new(NO_PROGRESS),
            cdw10: Cell::new(0),
            written: Cell::new(0),
            by: Cell::new(0),
        }
    }
}

impl Sanitizing {
    /// Whether an operation is in progress.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.status.get() == manage::SANITIZE_IN_PROGRESS
    }
}

impl<C: CommandSet> NvmSubsystem<C> {
    /// Begins a cryptographic erase of everything on behalf of a controller.
    pub(crate) fn begin_sanitize(&self, cdw10: u32, by: u16) -> Result<(), Status> {
        if self.sanitizing.is_in_progress() {
            return Err(Status::SANITIZE_IN_PROGRESS);
        }
        self.sanitizing.status.set(manage::SANITIZE_IN_PROGRESS);
        self.sanitizing.progress.set(0);
        self.sanitizing.cdw10.set(cdw10);
        self.sanitizing.by.set(by);
        self.self_tests.abort(manage::SELF_TEST_SANITIZED);
        self.namespaces.all().iter().for_each(|namespace| namespace.set_sanitizing(true));
        // A restart after a power cut waits for it as for a command.
        self.slots.take();
        self.chores.start(Chore::Sanitize(self.handle()));
        Ok(())
    }

    /// Drops all data.
    pub(crate) async fn sanitize(&self) {
        {
            let _change = self.changes.begin().await;
            // By number: whoever holds a namespace is waited for.
            let all = self.namespaces.above(0);
            for (done, nsid) in all.iter().enumerate() {
                self.sanitizing.progress.set((done * usize::from(NO_PROGRESS) / all.len()) as u16);
                self.sanitize_namespace(*nsid).await;
            }
        }
        self.namespaces.all().iter().for_each(|namespace| namespace.set_sanitizing(false));
        self.sanitizing.status.set(manage::SANITIZE_SUCCEEDED);
        self.sanitizing.progress.set(NO_PROGRESS);
        self.sanitizing.written.set(self.set.bytes_written());
        for controller in self.controllers_of(&[self.sanitizing.by.get()]).into_iter().flatten() {
            controller.raise(Event::SANITIZED);
        }
        self.give_back_slot(cause::HOST_WRITE);
    }

    /// Sanitize Status log.
    pub(crate) fn sanitize_status(&self) -> SanitizeStatus {
        let mut log = SanitizeStatus::new_zeroed();
        let status = self.sanitizing.status.get();
        let is_erased =
            status == manage::SANITIZE_SUCCEEDED && self.sanitizing.written.get() == self.set.bytes_written();
        let erased = if is_erased { manage::GLOBAL_DATA_ERASED } else { 0 };
        (log.progress, log.status) = (self.sanitizing.progress.get().into(), (status | erased).into());
        log.cdw10 = self.sanitizing.cdw10.get().into();
        // No time is estimated.
        log.estimates = [u32::MAX.into(); 6];
        log
    }
}
