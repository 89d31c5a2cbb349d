//! The model's output on its way to clients: completions, interrupts, and requests to hosts.
//!
//! Left out: replies, which clients create from it.

use nandscape_wire_nvme::blocks::BlockWork;
use nandscape_wire_nvme::{IoOpcode, Status};

use super::Reactor;
use crate::outbox::{Released, ToHost, What};
use crate::port::ConnectionId;

impl Reactor {
    /// Delivers notices, then completions to their clients: a notice comes before its completion.
    pub(super) fn deliver(&mut self) {
        self.tell_hosts();
        let mut released = std::mem::take(&mut self.released);
        self.port.take_released(&mut released);
        if let Some(watch) = &mut self.watch {
            watch.add(&released);
        }
        for one in released.drain(..) {
            self.count(&one);
            if one.connection == ConnectionId::IN_PROCESS {
                continue;
            }
            self.completed_at.push(one.at);
            // The client may have left in the meantime.
            let Some(&key) = self.by_connection.get(&one.connection) else {
                self.completed_without_client(&one);
                continue;
            };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            if one.queue.is_none() {
                connected.client.complete(one);
            }
            if self.dirty.last() != Some(&key) {
                self.dirty.push(key);
            }
        }
        self.released = released;
    }

    /// Passes on announced ends of commands, interrupts hosts that find their completions in their own memory, and asks these
    /// for transfers.
    fn tell_hosts(&mut self) {
        let mut to_hosts = std::mem::take(&mut self.to_hosts);
        self.port.take_to_hosts(&mut to_hosts);
        for ToHost { connection, what } in to_hosts.drain(..) {
            let Some(&key) = self.by_connection.get(&connection) else { continue };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            match what {
                What::Interrupt(vector) => connected.client.interrupt(vector),
                What::Ask(number, ask) => connected.client.ask(number, *ask),
                What::Notice(tag, remaining) => connected.client.announced(tag, remaining),
            }
            self.dirty.push(key);
        }
        self.to_hosts = to_hosts;
    }

    /// Has clients send the replies of delivered completions.
    pub(super) fn send(&mut self) {
        if self.completed_at.is_empty() && self.dirty.is_empty() {
            return;
        }
        self.flush();
        let now = self.clock.now();
        self.last_activity = now;
        for at in self.completed_at.drain(..) {
            self.timing.release_lag.record(now.since(at));
        }
    }

    /// Counts an I/O command.
    fn count(&mut self, one: &Released) {
        if one.is_admin {
            return;
        }
        let figures = &mut self.figures[usize::from(one.export)];
        let tally = match IoOpcode(one.opcode).block_work() {
            Some(BlockWork::Read) => &mut figures.reads,
            Some(BlockWork::Write) => &mut figures.writes,
            Some(BlockWork::Deallocate) | None => &mut figures.others,
        };
        let latency = one.completion.status.is_success().then(|| one.at - one.arrived);
        tally.add(one.bytes, latency);
        if one.is_forced_write {
            figures.forced_writes.add(one.bytes, latency);
        } else if IoOpcode(one.opcode) == IoOpcode::FLUSH {
            figures.flushes.add(one.bytes, latency);
        }
        if latency.is_none() {
            let of_media = [Status::UNRECOVERED_READ_ERROR, Status::WRITE_FAULT];
            figures.media_errors += u64::from(of_media.contains(&one.completion.status.meaning()));
            self.tell_of_read_only(usize::from(one.export));
        }
    }

    /// A command has failed: logs this the first time that its drive is found read-only.
    #[cold]
    fn tell_of_read_only(&mut self, export: usize) {
        let figures = &mut self.figures[export];
        if figures.read_only.is_none() {
            figures.read_only = self.port.exports()[export].read_only();
            if let Some(why) = &figures.read_only {
                (self.log)(&format!("drive {} is read-only: {why}", figures.name));
            }
        }
    }

    pub(super) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            let Some(connected) = self.clients.get_mut(key) else { continue };
            match connected.client.flush() {
                Ok(()) => self.watch(key),
                Err(gone) => self.lost.push((key, gone)),
            }
        }
        self.dirty = dirty;
    }
}
