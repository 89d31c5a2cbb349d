//! Sanitize (Base 5.1.22, 8.1.24): drops all data of all namespaces in the background, through controller resets and power
//! cuts. Commands that use data are rejected meanwhile.
//!
//! A block erase erases all used flash; an overwrite programs it with a pattern first. A cryptographic erase is modelled as
//! forgetting the key of all data, so the flash content is meaningless. If a block cannot be erased, the operation fails.
//! Then commands that use data are rejected until another operation succeeds, or the host exits this failure mode, if the
//! operation allowed that.
//!
//! Left out: media verification; Identify does not offer it.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::offers::{Overwrite, Sanitization};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::manage::{self, Sanitize, SanitizeStatus};
use zerocopy::FromZeros;

use super::NvmSubsystem;
use crate::admin::Event;
use crate::engine::{Chore, NvmeController};

/// SPROG when nothing is in progress.
const NO_PROGRESS: u16 = 0xffff;

/// The last or current sanitize operation.
pub(crate) struct Sanitizing {
    /// SSTAT, without its flag and its number of passes.
    status: Cell<u16>,
    progress: Cell<u16>,
    command: Cell<Sanitize>,
    /// The pattern of an overwrite.
    pattern: Cell<u32>,
    /// Whether it failed, no later one succeeded, and the host has not exited the failure mode.
    in_failure: Cell<bool>,
    /// Host bytes written when the drive last held no host data: at its creation, until an operation begins, or after a
    /// successful operation.
    erased_at: Cell<Option<u64>>,
    /// The number of the controller whose host is notified of the end; its identifier may have been reused.
    by: Cell<u64>,
}

/// An operation, as noted.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct SanitizeNote {
    status: u16,
    command: u32,
    pattern: u32,
    in_failure: bool,
    erased_at: Option<u64>,
}

impl Default for Sanitizing {
    fn default() -> Sanitizing {
        Sanitizing {
            status: Cell::new(manage::SANITIZE_NEVER),
            progress: Cell::new(NO_PROGRESS),
            command: Cell::new(Sanitize(0)),
            pattern: Cell::new(0),
            in_failure: Cell::new(false),
            erased_at: Cell::new(Some(0)),
            by: Cell::new(0),
        }
    }
}

impl Sanitizing {
    /// The status of commands that are rejected because an operation is in progress, or failed.
    pub(crate) fn refuses(&self) -> Option<Status> {
        match () {
            () if self.status.get() == manage::SANITIZE_IN_PROGRESS => Some(Status::SANITIZE_IN_PROGRESS),
            () if self.in_failure.get() => Some(Status::SANITIZE_FAILED),
            () => None,
        }
    }

    /// The work on the flash; a cryptographic erase leaves the flash as it is.
    fn how(&self) -> Option<Sanitization> {
        let (command, pattern) = (self.command.get(), self.pattern.get());
        match command.action() {
            Sanitize::BLOCK_ERASE => Some(Sanitization::Erase),
            Sanitize::OVERWRITE => {
                let (passes, inverts) = (command.passes(), command.inverts());
                Some(Sanitization::Overwrite(Overwrite { passes, pattern, inverts }))
            }
            _ => None,
        }
    }

    pub(super) fn note(&self) -> SanitizeNote {
        SanitizeNote {
            status: self.status.get(),
            command: self.command.get().0,
            pattern: self.pattern.get(),
            in_failure: self.in_failure.get(),
            erased_at: self.erased_at.get(),
        }
    }

    fn report(&self, done: u64, all: u64) {
        self.progress.set((done * u64::from(NO_PROGRESS - 1) / all.max(1)) as u16);
    }
}

impl NvmSubsystem {
    /// Begins to sanitize everything on behalf of a controller. `pattern` is that of an overwrite.
    pub(crate) fn begin_sanitize(&self, command: Sanitize, pattern: u32, by: u64) -> Result<(), Status> {
        let sanitizing = &self.sanitizing;
        // A failure that only a successful operation may end must not become one that the host may exit.
        if sanitizing.in_failure.get() && command.allows_exit() && !sanitizing.command.get().allows_exit() {
            return Err(Status::SANITIZE_FAILED);
        }
        if sanitizing.status.get() == manage::SANITIZE_NEVER {
            sanitizing.erased_at.set(None);
        }
        // The event of an earlier operation is obsolete (Base 8.1.24.4).
        self.all_controllers().iter().for_each(|controller| controller.withdraw(Event::SANITIZED));
        sanitizing.status.set(manage::SANITIZE_IN_PROGRESS);
        sanitizing.progress.set(0);
        sanitizing.command.set(command);
        sanitizing.pattern.set(pattern);
        sanitizing.by.set(by);
        self.self_tests.abort(manage::SELF_TEST_SANITIZED, self.sim.now());
        self.update_sanitizing();
        self.start_sanitize();
        Ok(())
    }

    fn start_sanitize(&self) {
        self.note();
        // A restart after a power cut waits for it as for a command.
        self.slots.begin_background();
        self.chores.start(Chore::Sanitize(self.handle()));
    }

    /// Resumes the noted operation: one in progress starts over, because a sanitize operation continues until all data is
    /// gone. After a kill, the host bytes written are unknown, so any data counts as written since the last operation.
    pub(super) fn resume_sanitize(&self, note: &SanitizeNote, was_killed: bool) {
        let sanitizing = &self.sanitizing;
        sanitizing.status.set(note.status);
        sanitizing.command.set(Sanitize(note.command));
        sanitizing.pattern.set(note.pattern);
        sanitizing.in_failure.set(note.in_failure);
        let is_erased = || !self.set.storage().may_hold_data();
        let after_kill = |_| is_erased().then(|| self.set.storage().bytes_written());
        sanitizing.erased_at.set(if was_killed { note.erased_at.and_then(after_kill) } else { note.erased_at });
        self.update_sanitizing();
        if note.status == manage::SANITIZE_IN_PROGRESS {
            sanitizing.progress.set(0);
            self.start_sanitize();
        }
    }

    /// Exits the failure mode, if it is set.
    pub(crate) fn leave_sanitize_failure(&self) -> Result<(), Status> {
        let sanitizing = &self.sanitizing;
        if sanitizing.in_failure.get() && !sanitizing.command.get().allows_exit() {
            return Err(Status::SANITIZE_FAILED);
        }
        sanitizing.in_failure.set(false);
        self.note();
        self.update_sanitizing();
        Ok(())
    }

    /// Sets in all namespaces whether commands are rejected.
    fn update_sanitizing(&self) {
        let status = self.sanitizing.refuses();
        self.namespaces.all().iter().for_each(|namespace| namespace.set_sanitizing(status));
    }

    /// Removes all data. After a power cut, it continues once the drive has restarted.
    pub(crate) async fn sanitize(&self) {
        let ended = loop {
            match self.sanitize_once().await {
                Err(Status::ABORTED_POWER_LOSS) => {
                    self.slots.end_background();
                    self.power.is_back().await;
                    self.slots.begin_background();
                }
                ended => break ended,
            }
        };
        let sanitizing = &self.sanitizing;
        sanitizing.in_failure.set(ended.is_err());
        let succeeded = if ended.is_ok() { manage::SANITIZE_SUCCEEDED } else { manage::SANITIZE_FAILED };
        sanitizing.status.set(succeeded);
        sanitizing.progress.set(NO_PROGRESS);
        if ended.is_ok() {
            sanitizing.erased_at.set(Some(self.set.storage().bytes_written()));
        }
        self.note();
        self.update_sanitizing();
        let begun_by = |controller: &&Rc<NvmeController>| controller.number == sanitizing.by.get();
        self.controllers.all().iter().filter(begun_by).for_each(|controller| controller.raise(Event::SANITIZED));
        self.slots.end_background();
    }

    async fn sanitize_once(&self) -> Result<(), Status> {
        let _change = self.changes.begin().await;
        if self.power.is_restarting() {
            return Err(Status::ABORTED_POWER_LOSS);
        }
        // By number: draining waits for each reference to a namespace.
        let (all, how) = (self.namespaces.above(0), self.sanitizing.how());
        let mut namespaces = Vec::new();
        for nsid in &all {
            namespaces.extend(self.drain_to_sanitize(*nsid).await);
        }
        if let Some(how) = how {
            let set = self.set.administration().ok_or(Status::SANITIZE_FAILED)?;
            return set.sanitize(how, &|done, all| self.sanitizing.report(done, all)).await;
        }
        for (done, namespace) in namespaces.iter().enumerate() {
            self.sanitizing.report(done as u64, all.len() as u64);
            self.erase(namespace).await;
        }
        Ok(())
    }

    /// Whether nothing was written since the creation of the drive, if no operation has begun, or since the last successful
    /// operation (Base 5.1.12.1.33, Global Data Erased). A drive may be created with data.
    fn is_erased(&self) -> bool {
        let sanitizing = &self.sanitizing;
        let is_untouched = sanitizing.erased_at.get() == Some(self.set.storage().bytes_written());
        is_untouched && (sanitizing.status.get() != manage::SANITIZE_NEVER || !self.set.storage().may_hold_data())
    }

    /// To be called if the drive gets data other than by commands before it starts: it no longer counts as erased.
    pub fn was_filled(&self) {
        self.sanitizing.erased_at.set(None);
    }

    /// Sanitize Status log.
    pub(crate) fn sanitize_status(&self) -> SanitizeStatus {
        let (mut log, sanitizing) = (SanitizeStatus::new_zeroed(), &self.sanitizing);
        let (status, command) = (sanitizing.status.get(), sanitizing.command.get());
        let is_done = status == manage::SANITIZE_SUCCEEDED;
        let erased = if self.is_erased() { manage::GLOBAL_DATA_ERASED } else { 0 };
        // Each block gets all its passes before the next block.
        let passes = if is_done && command.action() == Sanitize::OVERWRITE { command.passes() } else { 0 };
        let passes = u16::from(passes) << manage::SANITIZE_PASSES;
        (log.progress, log.status) = (sanitizing.progress.get().into(), (status | erased | passes).into());
        log.cdw10 = command.0.into();
        // The drive reports no estimates.
        log.estimates = [u32::MAX.into(); 6];
        log
    }
}
