//! The end of the loop: commands in the drives end, clients take their replies, and every drive is flushed.

use std::io;

use nandscape_drive::HostMem;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::{DRAIN_TIME, Key, Reactor};
use crate::client::Gone;
use crate::outbox::Released;

/// The tag of the final flushes.
const FINAL_FLUSH: u64 = u64::MAX;

impl Reactor {
    /// Whether it was stopped, the drives have finished, and clients have received their replies or had their time.
    pub(super) fn is_finished(&mut self) -> bool {
        let Some(since) = self.stopping else { return false };
        self.dirty.extend(self.by_connection.values());
        self.flush();
        if self.is_working() {
            // The drives have no time limit. The clients' time begins when the drives have finished.
            self.stopping = Some(self.clock.now());
            return false;
        }
        let unsent = self.by_connection.values().filter_map(|key| self.clients.get(*key));
        let mut unsent = unsent.filter(|connected| !connected.client.is_flushed()).peekable();
        if unsent.peek().is_some() && self.clock.now().since(since) <= DRAIN_TIME {
            return false;
        }
        unsent.for_each(|connected| {
            let number = connected.connection.0;
            (self.log)(&format!("client {number}: did not take its last replies within {} s", DRAIN_TIME.as_s()));
        });
        true
    }

    /// Whether the drives have work that they will finish: without an event, inside or outside, they never would.
    fn is_working(&self) -> bool {
        self.port.outstanding() > 0 && (self.timelines.next_due().is_some() || self.sources.outstanding() > 0)
    }

    /// Disconnects every client and flushes every drive.
    pub(super) fn flush_drives(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.reserved).into_iter().for_each(|connection| self.port.close(connection));
        let keys: Vec<Key> = self.by_connection.values().copied().collect();
        keys.iter().for_each(|key| self.disconnect(*key, &Gone::quietly()));
        let exports = self.port.exports().len() as u16;
        self.run_while(|reactor| {
            (0..exports).any(|export| reactor.port.is_leaving(export) || reactor.full(export).is_some())
        })?;
        self.port.record_timing(&self.timing);
        for export in 0..exports {
            let namespaces = self.port.exports()[usize::from(export)].namespaces();
            if let Ok(connection) = self.port.open(export) {
                for info in namespaces {
                    let flush = SubmissionEntry::io(IoOpcode::FLUSH, info.nsid);
                    self.port.submit(connection, FINAL_FLUSH, flush, HostMem::none());
                }
            }
        }
        self.run_while(|reactor| reactor.port.outstanding() > 0)
    }

    /// Runs the model while `busy` and while there are events. It runs at least once: closes and submissions of this
    /// turn's time have their consequences at that time, which a replay runs too.
    fn run_while(&mut self, busy: impl Fn(&Reactor) -> bool) -> io::Result<()> {
        loop {
            self.catch_up();
            if self.serve_sources() {
                continue;
            }
            let goes_on = self.timelines.next_due().is_some() || self.sources.outstanding() > 0;
            if !busy(self) || !goes_on {
                return Ok(());
            }
            let time_to_wait = self.time_to_wait();
            self.waiter.wait(time_to_wait, &mut self.events)?;
        }
    }

    /// A command of a client that has left, or a final flush.
    #[cold]
    pub(super) fn completed_without_client(&mut self, one: &Released) {
        let (status, export) = (one.completion.status, usize::from(one.export));
        // Data that a drive of the model does not flush is lost by its faults.
        if one.tag != FINAL_FLUSH || status.is_success() || self.port.exports()[export].sources().is_empty() {
            return;
        }
        let name = &self.figures[export].name;
        let problem = format!("drive {name} was not flushed at the end: {}", status.name());
        (self.log)(&problem);
        self.flush_problem.get_or_insert(problem);
    }
}
