//! The requests of a load generated from characteristics.

use nandscape_drive::DriveInfo;
use nandscape_sim::units::Bytes;
use nandscape_sim::{Rng, Seed, Span};

use super::Characteristics;
use super::gaps::{Bursts, Gaps};
use super::sizes::{SizeSpec, Sizes};
use crate::distribution::Sampler;
use crate::record::Direction;
use crate::request::{Request, RequestSource, RequestStream, SourceError, TimedRequest};

impl RequestStream for Characteristics {
    fn open(&self, drive: &DriveInfo, _: u32, seed: Seed) -> Result<Box<dyn RequestSource>, SourceError> {
        self.fits(drive.bytes(), drive.lba_bytes)?;
        Ok(Box::new(Generator::new(self, drive.bytes(), seed)?))
    }

    fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        self.fits(capacity, lba_bytes)
    }

    fn describe(&self) -> String {
        let Characteristics { reads, read_size, write_size, align, sequential, footprint, distribution, .. } = self;
        let size = |of: &SizeSpec| format!("{} in the mean, {} at most", Bytes(of.mean), Bytes(of.max));
        let when = match (self.interval_ns, self.bursts) {
            (Some(mean), Some(Bursts { requests, gap })) => {
                format!(" interval={} burst_requests={requests} burst_gap={gap}", Span::from_ns(mean as u64))
            }
            (Some(mean), None) => format!(" interval={}", Span::from_ns(mean as u64)),
            (None, _) => String::new(),
        };
        format!(
            "reads={:.1}% of {}; writes of {}; align={} sequential={:.1}% footprint={footprint} distribution={distribution}{when}",
            reads * 100.0,
            size(read_size),
            size(write_size),
            Bytes(*align),
            sequential * 100.0
        )
    }

    fn interval_s(&self) -> f64 {
        self.interval_ns.unwrap_or(0.0) / 1e9
    }

    fn is_timed(&self) -> bool {
        self.interval_ns.is_some()
    }
}

/// Draws an endless sequence of requests.
struct Generator {
    reads: f64,
    sequential: f64,
    align: u64,
    /// Bytes of the part of the drive that is used.
    space: u64,
    /// Sizes of reads and of writes, for directions that occur.
    sizes: [Option<Sizes>; 2],
    sampler: Sampler,
    gaps: Option<Gaps>,
    rng: Rng,
    /// Arrival time of the last request, in nanoseconds, and its end address.
    at_ns: f64,
    end: Option<u64>,
}

impl Generator {
    fn new(spec: &Characteristics, capacity: u64, seed: Seed) -> Result<Generator, String> {
        let mut rng = seed.child("addresses").rng();
        let space = spec.footprint.bytes(capacity) / spec.align * spec.align;
        Ok(Generator {
            reads: spec.reads,
            sequential: spec.sequential,
            align: spec.align,
            space,
            sizes: [
                (spec.reads > 0.0).then(|| Sizes::new(spec.read_size, spec.align)),
                (spec.reads < 1.0).then(|| Sizes::new(spec.write_size, spec.align)),
            ],
            sampler: Sampler::new(&spec.distribution, space / spec.align, &mut rng),
            gaps: spec.interval_ns.map(|mean| Gaps::new(mean, spec.bursts)).transpose()?,
            rng: seed.child("requests").rng(),
            at_ns: 0.0,
            end: None,
        })
    }

    fn offset(&mut self, bytes: u64) -> u64 {
        let follows = self.rng.chance(self.sequential);
        match self.end {
            // A sequential request that would reach beyond the end of the space gets a random address.
            Some(end) if follows && end + bytes <= self.space => end,
            _ => (self.sampler.next(&mut self.rng) * self.align).min(self.space - bytes),
        }
    }
}

impl RequestSource for Generator {
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError> {
        if let Some(gaps) = &self.gaps {
            self.at_ns += gaps.next_ns(&mut self.rng);
        }
        let direction = if self.rng.chance(self.reads) { Direction::Read } else { Direction::Write };
        let sizes = self.sizes[direction as usize].as_ref().expect("sizes of every direction that comes");
        let bytes = sizes.next(&mut self.rng);
        let offset = self.offset(bytes);
        self.end = Some(offset + bytes);
        let at = Span::from_ns(libm::round(self.at_ns) as u64);
        Ok(Some(TimedRequest::new(at, Request { direction, offset, bytes })))
    }
}
