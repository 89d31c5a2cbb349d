//! A client on the calling thread that keeps a number of 4 KiB random reads in flight through a shared-memory queue pair,
//! and spins for their completions. Each block holds its own address, and every read is checked for it.

use anyhow::{bail, ensure};
use nandscape_sim::rng::Rng;
use nandscape_sim::{Histogram, Seed, Span, Time};
use nandscape_transport_reactor::ring::{Reply, RingHost};
use nandscape_transport_reactor::{Handle, WallClock};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// Bytes of a read.
const READ: usize = 4_096;

/// The client.
pub(crate) struct Load {
    host: RingHost,
    clock: WallClock,
    rng: Rng,
    /// For each read in flight: its address and time of submission.
    sent: Vec<(u64, Time)>,
    buffers: Vec<Vec<u8>>,
    /// Blocks of the drive in a read, and reads in the drive.
    blocks: u32,
    places: u64,
}

/// Its measurements.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// From submission to the completion seen.
    pub(crate) latency: Histogram,
    /// From the model's completion time to the completion seen.
    pub(crate) late: Histogram,
    /// Time in which reads were in flight.
    pub(crate) elapsed: Span,
}

impl Seen {
    /// Reads a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latency.count() as f64 / self.elapsed.as_s()
    }
}

impl Load {
    /// Connects to a drive and writes all of it.
    pub(crate) fn connect(handle: &Handle, export: u16, depth: usize, seed: Seed) -> anyhow::Result<Load> {
        let host = match RingHost::connect(handle, export, depth) {
            Ok(host) => host,
            Err(status) => bail!("the drive takes no more clients: {status}"),
        };
        let info = host.info();
        let blocks = READ as u32 / info.lba_bytes;
        let places = info.blocks / u64::from(blocks);
        let (sent, buffers) = (vec![(0, Time::ZERO); depth], vec![vec![0; READ]; depth]);
        let rng = seed.child("load").nth(export.into()).rng();
        let mut load = Load { host, clock: handle.clock(), rng, sent, buffers, blocks, places };
        load.fill()?;
        Ok(load)
    }

    /// Keeps `depth` reads in flight for this time, adding the measurements to `seen`. All reads are done when it
    /// returns.
    pub(crate) fn run(&mut self, depth: usize, lasting: Span, seen: &mut Seen) -> anyhow::Result<()> {
        let start = self.clock.now();
        let end = start + lasting;
        for slot in 0..depth {
            let (place, buffer) = (self.rng.below(self.places), std::mem::take(&mut self.buffers[slot]));
            self.submit(slot, IoOpcode::READ, place, start, buffer)?;
        }
        let (mut in_flight, mut now) = (depth, start);
        while in_flight > 0 {
            let Reply { tag, status, at, data, .. } = self.reply()?;
            now = self.clock.now();
            let slot = tag as usize;
            let (place, submitted) = self.sent[slot];
            ensure!(
                status.is_success() && data[..8] == place.to_le_bytes(),
                "a read of block {place}: {status}, or other data"
            );
            seen.latency.record(now.since(submitted));
            seen.late.record(now.since(at));
            if now < end {
                let place = self.rng.below(self.places);
                self.submit(slot, IoOpcode::READ, place, now, data)?;
            } else {
                self.buffers[slot] = data;
                in_flight -= 1;
            }
        }
        seen.elapsed += now.since(start);
        Ok(())
    }

    /// Writes every block of the drive.
    fn fill(&mut self) -> anyhow::Result<()> {
        let (mut next, mut done) = (0, 0);
        while done < self.places {
            while next < self.places
                && let Some(mut buffer) = self.buffers.pop()
            {
                buffer[..8].copy_from_slice(&u64::to_le_bytes(next));
                self.submit(0, IoOpcode::WRITE, next, Time::ZERO, buffer)?;
                next += 1;
            }
            let Reply { status, data, .. } = self.reply()?;
            ensure!(status.is_success(), "a write failed: {status}");
            self.buffers.push(data);
            done += 1;
        }
        Ok(())
    }

    fn submit(&mut self, slot: usize, opcode: IoOpcode, place: u64, now: Time, data: Vec<u8>) -> anyhow::Result<()> {
        self.sent[slot] = (place, now);
        let blocks = u64::from(self.blocks);
        let command = SubmissionEntry::blocks(opcode, self.host.info().nsid, place * blocks, self.blocks);
        ensure!(self.host.submit(slot as u64, command, data).is_ok(), "more in flight than the ring holds");
        Ok(())
    }

    /// Spins for a completion.
    fn reply(&mut self) -> anyhow::Result<Reply> {
        loop {
            if let Some(reply) = self.host.poll() {
                return Ok(reply);
            }
            ensure!(!self.host.is_disconnected(), "the drive has gone");
            std::hint::spin_loop();
        }
    }
}
