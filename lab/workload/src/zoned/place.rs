//! The place of a job's next request: the zone to write, or the blocks to read.

use nandscape_sim::{Rng, Seed};

use super::spec::Zoned;
use super::table::{Trust, Zone};
use crate::distribution::Sampler;
use crate::spec::JobSpec;
use crate::words::Action;

/// One of the zones that the job may write at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// It needs a zone.
    Free,
    /// A task of the job prepares a zone for it.
    Preparing,
    /// It writes this zone.
    Writing(usize),
}

/// What a task that wants to write does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Write these blocks of the zone.
    Write { zone: usize, at: u64, blocks: u64 },
    /// Leave the zone of a lane, if it has one, and get it another.
    MoveOn { lane: usize, from: Option<usize> },
    /// Wait until a write has ended.
    Wait,
}

/// The places of a job.
pub(crate) struct Places {
    zoned: Zoned,
    pub(crate) rng: Rng,
    random: bool,
    /// The number of the zones that the job uses, the first of the drive.
    zones: usize,
    /// Blocks of a zone that are written.
    fill: u64,
    pub(crate) lanes: Vec<Lane>,
    /// The lane whose turn it is, and the zone that is next for writes and resets.
    turn: usize,
    next: usize,
    sampler: Sampler,
    /// Blocks of the step between random addresses.
    step: u64,
    /// The zone and the block of it that is next for sequential reads.
    read: (usize, u64),
}

impl Places {
    /// Those of the `clone`-th of `spec.numjobs` jobs on these zones, in logical blocks of `lba_bytes`. Sequential clones begin evenly
    /// spread over the zones.
    pub(crate) fn new(spec: &JobSpec, zones: &[Zone], lba_bytes: u64, clone: u32, seed: Seed) -> Places {
        let zoned = spec.zoned.unwrap_or_default();
        let mut rng = seed.rng();
        let stride = zones.get(1).map_or(zones[0].capacity, |second| second.start - zones[0].start);
        let size = spec.size.bytes(zones.len() as u64 * stride * lba_bytes) / (stride * lba_bytes);
        let used = (size as usize).clamp(1, zones.len());
        let capacity = zones[0].capacity;
        let fill = zoned.fill.bytes(capacity * lba_bytes).div_ceil(lba_bytes).clamp(1, capacity);
        let reads = if spec.rw.action == Action::Mixed { Action::Read } else { spec.rw.action };
        let step = (spec.bs.of(reads).smallest() / lba_bytes).max(1);
        let first = (used as u64 * u64::from(clone) / u64::from(spec.numjobs)) as usize;
        Places {
            sampler: Sampler::new(spec.distribution.of(reads), (used as u64 * capacity / step).max(1), &mut rng),
            lanes: vec![Lane::Free; zoned.open as usize],
            random: spec.rw.random,
            zones: used,
            turn: 0,
            next: first,
            read: (first, 0),
            zoned,
            rng,
            fill,
            step,
        }
    }

    /// What to write next, in a request of at most this number of blocks.
    pub(crate) fn turn(&mut self, zones: &mut [Zone], most: u64) -> Turn {
        let count = self.lanes.len();
        let first = if self.random { self.rng.below(count as u64) as usize } else { self.turn };
        for lane in (0..count).map(|step| (first + step) % count) {
            self.turn = (lane + 1) % count;
            let number = match self.lanes[lane] {
                Lane::Preparing => continue,
                // Where others have all zones, the job continues with its own zones.
                Lane::Free if !self.has_choice(zones) => continue,
                Lane::Free => return Turn::MoveOn { lane, from: None },
                Lane::Writing(zone) => zone,
            };
            let zone = &mut zones[number];
            if zone.in_flight > 0 && (!self.zoned.append || zone.next >= self.fill || !zone.is_known()) {
                continue;
            }
            if zone.next >= self.fill || !zone.is_known() {
                return Turn::MoveOn { lane, from: Some(number) };
            }
            let (at, blocks) = (zone.start + zone.next, most.min(self.fill - zone.next));
            zone.next += blocks;
            zone.in_flight += 1;
            return Turn::Write { zone: number, at, blocks };
        }
        Turn::Wait
    }

    /// Whether a zone can be taken, or none can ever be.
    fn has_choice(&self, zones: &[Zone]) -> bool {
        let zones = &zones[..self.zones];
        zones.iter().any(|zone| zone.is_usable() && !zone.is_held) || !zones.iter().any(Zone::is_usable)
    }

    /// Whether a zone has all that the job writes to it.
    pub(crate) fn is_filled(&self, zone: &Zone) -> bool {
        zone.next >= self.fill
    }

    /// Takes the next free zone, in order or at random; `None` if no zone is free. The error: no zone can be written any more.
    ///
    /// Zones with a failed command are first: they may be active, and active zones are limited.
    pub(crate) fn take(&mut self, zones: &mut [Zone]) -> Result<Option<usize>, ()> {
        let zones = &mut zones[..self.zones];
        let first = if self.random { self.rng.below(self.zones as u64) as usize } else { self.next };
        let order = || (first..self.zones).chain(0..first).filter(|number| !zones[*number].is_held);
        let failed = order().find(|number| zones[*number].trust == Trust::Unknown);
        let Some(number) = failed.or_else(|| order().find(|number| zones[*number].is_known())) else {
            return if zones.iter().any(Zone::is_usable) { Ok(None) } else { Err(()) };
        };
        zones[number].is_held = true;
        self.next = (number + 1) % self.zones;
        Ok(Some(number))
    }

    /// The blocks of a read of at most this number, below write pointers; `None` if nothing is written.
    pub(crate) fn read(&mut self, zones: &[Zone], most: u64) -> Option<(u64, u64)> {
        let zones = &zones[..self.zones];
        if self.random { self.read_at_random(zones, most) } else { self.read_on(zones, most) }
    }

    fn read_at_random(&mut self, zones: &[Zone], most: u64) -> Option<(u64, u64)> {
        let (at, capacity) = (self.sampler.next(&mut self.rng) * self.step, zones[0].capacity);
        let number = with_data(zones, (at / capacity) as usize % self.zones)?;
        let Zone { start, written, .. } = zones[number];
        let blocks = most.min(written);
        // An address above the write pointer stands for one below it.
        let places = (written - blocks) / self.step + 1;
        let offset = at % capacity / self.step % places * self.step;
        Some((start + offset, blocks))
    }

    fn read_on(&mut self, zones: &[Zone], most: u64) -> Option<(u64, u64)> {
        let (last, offset) = self.read;
        let (number, offset) = match zones[last].written > offset {
            true => (last, offset),
            false => (with_data(zones, last + 1)?, 0),
        };
        let blocks = most.min(zones[number].written - offset);
        self.read = (number, offset + blocks);
        Some((zones[number].start + offset, blocks))
    }
}

/// The first zone with data, from this one on and then from the beginning.
fn with_data(zones: &[Zone], from: usize) -> Option<usize> {
    (from..zones.len()).chain(0..from).find(|number| zones[*number].written > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zones of 100 blocks at multiples of 128, with this many blocks written.
    fn zones(written: &[u64]) -> Vec<Zone> {
        let zone = |(number, written): (usize, &u64)| Zone::new(number as u64 * 128, 100, *written);
        written.iter().enumerate().map(zone).collect()
    }

    fn places(rw: &str, zoned: Zoned, zones: &[Zone]) -> Places {
        let spec = JobSpec { rw: rw.parse().unwrap(), zoned: Some(zoned), ..JobSpec::default() };
        Places::new(&spec, zones, 4_096, 0, Seed::new(1))
    }

    #[test]
    fn writes_wait_for_each_other_and_appends_do_not() {
        for append in [false, true] {
            let mut zones = zones(&[97, 0]);
            let mut places = places("write", Zoned { append, ..Zoned::default() }, &zones);
            assert_eq!(places.turn(&mut zones, 2), Turn::MoveOn { lane: 0, from: None });
            assert_eq!(places.take(&mut zones), Ok(Some(0)));
            places.lanes[0] = Lane::Writing(0);
            assert_eq!(places.turn(&mut zones, 2), Turn::Write { zone: 0, at: 97, blocks: 2 });
            // The rest of the zone, at once or when the write has ended.
            if !append {
                assert_eq!(places.turn(&mut zones, 2), Turn::Wait);
                zones[0].in_flight = 0;
            }
            assert_eq!(places.turn(&mut zones, 2), Turn::Write { zone: 0, at: 99, blocks: 1 });
            assert_eq!(places.turn(&mut zones, 2), Turn::Wait);
            zones[0].in_flight = 0;
            assert_eq!(places.turn(&mut zones, 2), Turn::MoveOn { lane: 0, from: Some(0) });
            assert_eq!(places.take(&mut zones), Ok(Some(1)));
            assert_eq!(places.take(&mut zones), Ok(None));
        }
    }

    #[test]
    fn reads_stay_below_write_pointers() {
        let zones = zones(&[0, 30, 3, 0, 100]);
        let mut random = places("randread", Zoned::default(), &zones);
        let mut met = [0; 5];
        for _ in 0..10_000 {
            let (at, blocks) = random.read(&zones, 4).unwrap();
            let (zone, offset) = ((at / 128) as usize, at % 128);
            assert!(blocks >= 1 && offset + blocks <= zones[zone].written, "seed 1: {at} {blocks}");
            met[zone] += 1;
        }
        assert!(met[1] > 0 && met[2] > 0 && met[4] > met[1], "seed 1: {met:?}");
        let mut ordered = places("read", Zoned::default(), &zones);
        let firsts: Vec<_> = (0..5).map(|_| ordered.read(&zones, 16).unwrap()).collect();
        assert_eq!(firsts, [(128, 16), (144, 14), (256, 3), (512, 16), (528, 16)]);
        let all = (0..6).map(|_| ordered.read(&zones, 16).unwrap()).last();
        assert_eq!(all, Some((128, 16)), "it wraps");
        assert_eq!(places("read", Zoned::default(), &zones[..1]).read(&zones[..1], 4), None);
    }
}
