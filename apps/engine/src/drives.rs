//! The drives of an engine: pairs of an even and an odd one with the same bytes, tokens, and reads under way.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::Drive;
use nandscape_host_control::Control;
use nandscape_host_store::{Disk, Host, Range, StoreError};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::Status;

use crate::error::EngineError;

/// A drive as it is given to an engine.
pub struct Given {
    /// Its queue pair.
    pub io: Rc<dyn Drive>,
    /// Its admin queue, for policies that order garbage collection.
    pub admin: Option<Rc<dyn Drive>>,
}

/// A drive of an engine.
pub struct Member {
    number: usize,
    disk: Disk,
    control: Option<Control>,
    token: Cell<bool>,
    reads: Cell<u32>,
    /// Reads that began while it had a token that keeps reads away. It stays 0.
    reads_at_token: Cell<u64>,
    /// A read has ended, or a token has gone.
    changed: Signal,
}

impl Member {
    pub(crate) async fn new(
        host: &Host,
        number: usize,
        given: Given,
        needs_control: bool,
    ) -> Result<Member, EngineError> {
        let failed = |error| EngineError::Control { drive: number, error };
        let control = match given.admin.filter(|_| needs_control) {
            Some(admin) => Some(Control::open(host.sim(), admin).await.map_err(failed)?),
            None if needs_control => return Err(failed(nandscape_host_control::Error::Unsupported)),
            None => None,
        };
        let disk = Disk::new(host, given.io);
        let (token, reads, reads_at_token) = (Cell::new(false), Cell::new(0), Cell::new(0));
        Ok(Member { number, disk, control, token, reads, reads_at_token, changed: Signal::new(host.sim()) })
    }

    /// The control of its garbage collection, if the policy needs it.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// Its clock.
    pub fn sim(&self) -> &Sim {
        self.disk.host.sim()
    }

    /// Whether it has a token.
    pub fn has_token(&self) -> bool {
        self.token.get()
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(crate) fn failed(&self, error: nandscape_host_control::Error) -> EngineError {
        EngineError::Control { drive: self.number, error }
    }

    pub(crate) fn is_not_ready(&self, waited: Span) -> EngineError {
        EngineError::Busy { drive: self.number, waited }
    }

    pub(crate) fn wrong(&self, error: StoreError) -> EngineError {
        EngineError::Drive { drive: self.number, error }
    }

    pub(crate) fn reads(&self) -> u32 {
        self.reads.get()
    }

    pub(crate) fn reads_at_token(&self) -> u64 {
        self.reads_at_token.get()
    }

    /// Gives it a token. Once it has one, no read begins; those under way are awaited where the policy keeps reads apart.
    pub(crate) async fn take_token(&self, keeps_reads_apart: bool) {
        self.token.set(true);
        while keeps_reads_apart && self.reads.get() > 0 {
            self.changed.changed().await;
        }
    }

    pub(crate) fn leave_token(&self) {
        self.token.set(false);
        self.changed.notify();
    }

    /// Waits until it has no token, if that matters.
    pub(crate) async fn token_left_if(&self, matters: bool) {
        while matters && self.token.get() {
            self.changed.changed().await;
        }
    }

    /// Blocks that hold these bytes, and where the bytes begin in them.
    fn blocks(&self, start: u64, len: usize) -> (Range, usize) {
        let lba = u64::from(self.disk.info.lba_bytes);
        let (first, end) = (start / lba, (start + len as u64).div_ceil(lba));
        (Range { slba: first, blocks: end - first }, (start % lba) as usize)
    }

    /// Reads bytes for a client. `apart` is that the policy allows no read at a token.
    pub(crate) async fn read(&self, start: u64, len: usize, apart: bool) -> Result<Vec<u8>, EngineError> {
        if apart && self.token.get() {
            self.reads_at_token.set(self.reads_at_token.get() + 1);
            debug_assert!(false, "a read at drive {}, which has a token", self.number);
        }
        self.reads.set(self.reads.get() + 1);
        let read = self.read_background(start, len).await;
        self.reads.set(self.reads.get() - 1);
        self.changed.notify();
        read
    }

    /// The same for the engine itself.
    pub(crate) async fn read_background(&self, start: u64, len: usize) -> Result<Vec<u8>, EngineError> {
        let (range, skip) = self.blocks(start, len);
        let mut bytes = self.disk.read(&[range]).await.map_err(|error| self.wrong(error))?.swap_remove(0);
        bytes.truncate(skip + len);
        Ok(bytes.split_off(skip))
    }

    /// The same of bytes that may be damaged: then there are none.
    pub(crate) async fn read_what_is_left(&self, start: u64, len: usize) -> Result<Vec<u8>, EngineError> {
        match self.read_background(start, len).await {
            Err(EngineError::Drive { error: StoreError::Drive(Status::UNRECOVERED_READ_ERROR), .. }) => Ok(Vec::new()),
            read => read,
        }
    }

    /// The first bytes of several places that begin with a block, at once; none of a place that is damaged.
    pub(crate) async fn read_all(&self, starts: &[u64], len: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        let ranges: Vec<Range> = starts.iter().map(|start| self.blocks(*start, len).0).collect();
        match self.disk.read(&ranges).await {
            Err(StoreError::Drive(Status::UNRECOVERED_READ_ERROR)) => {}
            read => return read.map_err(|error| self.wrong(error)),
        }
        let mut heads = Vec::new();
        for start in starts {
            heads.push(self.read_what_is_left(*start, len).await?);
        }
        Ok(heads)
    }

    /// Writes whole blocks. They are durable afterwards.
    pub(crate) async fn write(&self, start: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let lba = u64::from(self.disk.info.lba_bytes);
        self.disk.write(start / lba, bytes).await.map_err(|error| self.wrong(error))
    }
}
