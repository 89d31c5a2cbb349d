//! A client on the calling thread that keeps a number of 4 KiB random reads in flight on a lane, and spins for their
//! completions. It uses the first 64 MiB of a drive. Each block there holds its own address, and every read is checked for it.

use anyhow::{bail, ensure};
use nandscape_sim::rng::Rng;
use nandscape_sim::{Histogram, Seed, Span, Time};
use nandscape_transport_reactor::{Handle, WallClock};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::wall::lane::{Ended, Lane, READ, RingLane};

/// Reads in the part of a drive that is used.
const PLACES: u64 = (64 << 20) / READ as u64;
/// The longest wait for a completion, and the polls between two readings of the clock meanwhile.
const PATIENCE: Span = Span::from_s(60);
const POLLS_A_LOOK: u32 = 1 << 20;

/// The client.
pub(crate) struct Load<L> {
    lane: L,
    clock: WallClock,
    rng: Rng,
    /// For each read in flight: its address and time of submission.
    sent: Vec<(u64, Time)>,
    /// Blocks of the drive in a read, and reads in the part that is used.
    blocks: u32,
    places: u64,
}

/// Its measurements.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// From submission to the completion seen.
    pub(crate) latency: Histogram,
    /// From the model's completion time to the host's, where the lane reports the model's.
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

impl Load<RingLane> {
    /// Connects to a drive over a ring and writes the part that is used.
    pub(crate) fn connect(handle: &Handle, export: u16, depth: usize, seed: Seed) -> anyhow::Result<Load<RingLane>> {
        let lane = RingLane::connect(handle, export, depth)?;
        let mut load = Load::over(lane, handle.clock(), depth, seed.child("load").nth(export.into()));
        load.fill()?;
        Ok(load)
    }
}

impl<L: Lane> Load<L> {
    /// Over a lane whose drive has been written by [`Load::connect`].
    pub(crate) fn over(lane: L, clock: WallClock, depth: usize, seed: Seed) -> Load<L> {
        let drive = lane.drive();
        let blocks = READ as u32 / drive.lba_bytes;
        let places = (drive.blocks / u64::from(blocks)).min(PLACES);
        Load { lane, clock, rng: seed.rng(), sent: vec![(0, Time::ZERO); depth], blocks, places }
    }

    /// The lane.
    pub(crate) fn lane(&self) -> &L {
        &self.lane
    }

    /// Keeps `depth` reads in flight for this time, adding the measurements to `seen`. All reads are done when it
    /// returns.
    pub(crate) fn run(&mut self, depth: usize, lasting: Span, seen: &mut Seen) -> anyhow::Result<()> {
        let start = self.clock.now();
        let end = start + lasting;
        for slot in 0..depth {
            let place = self.rng.below(self.places);
            self.submit(slot, IoOpcode::READ, place, start)?;
        }
        let (mut in_flight, mut now) = (depth, start);
        while in_flight > 0 {
            let Ended { slot, status, at } = self.ended()?;
            now = self.clock.now();
            let (place, submitted) = self.sent[slot];
            ensure!(
                status.is_success() && self.lane.word(slot)? == place,
                "a read of block {place}: {status}, or other data"
            );
            seen.latency.record(now.since(submitted));
            if let Some(at) = at {
                seen.late.record(now.since(at));
            }
            if now < end {
                let place = self.rng.below(self.places);
                self.submit(slot, IoOpcode::READ, place, now)?;
            } else {
                in_flight -= 1;
            }
        }
        self.lane.pause()?;
        seen.elapsed += now.since(start);
        Ok(())
    }

    /// Writes every block that is used.
    fn fill(&mut self) -> anyhow::Result<()> {
        let mut free: Vec<usize> = (0..self.sent.len()).collect();
        let (mut next, mut done) = (0, 0);
        while done < self.places {
            while next < self.places
                && let Some(slot) = free.pop()
            {
                self.lane.put(slot, next)?;
                self.submit(slot, IoOpcode::WRITE, next, Time::ZERO)?;
                next += 1;
            }
            let Ended { slot, status, .. } = self.ended()?;
            ensure!(status.is_success(), "a write failed: {status}");
            free.push(slot);
            done += 1;
        }
        self.lane.pause()
    }

    fn submit(&mut self, slot: usize, opcode: IoOpcode, place: u64, now: Time) -> anyhow::Result<()> {
        self.sent[slot] = (place, now);
        let blocks = u64::from(self.blocks);
        self.lane.submit(slot, SubmissionEntry::blocks(opcode, self.lane.drive().nsid, place * blocks, self.blocks))
    }

    /// Spins for a completion.
    fn ended(&mut self) -> anyhow::Result<Ended> {
        let begun = self.clock.now();
        loop {
            for _ in 0..POLLS_A_LOOK {
                if let Some(ended) = self.lane.poll()? {
                    return Ok(ended);
                }
                self.lane.pause()?;
                std::hint::spin_loop();
            }
            if self.clock.now().since(begun) > PATIENCE {
                bail!("no completion within {} s", PATIENCE.as_s());
            }
        }
    }
}
