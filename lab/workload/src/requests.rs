//! The requests of one job, drawn from its description.

use nandscape_drive::DriveInfo;
use nandscape_sim::{Rng, Seed};

use crate::distribution::Sampler;
use crate::record::Direction;
use crate::request::{Request, RequestSource, SourceError};
use crate::spec::JobSpec;
use crate::words::{Action, BlockSizes, Pattern};

/// The source of a job's requests.
pub(crate) enum Feed {
    /// Drawn from the job's description.
    Drawn(Box<Requests>),
    /// The same, for a mix with separate sizes or addresses of reads and writes.
    Split(Box<Split>),
    /// An external source.
    Source(Box<dyn RequestSource>),
}

impl Feed {
    /// The feed of the `clone`-th of `spec.numjobs` jobs on a drive.
    pub(crate) fn open(spec: &JobSpec, drive: &DriveInfo, clone: u32, seed: Seed) -> Result<Feed, SourceError> {
        Ok(match &spec.source {
            Some(source) => Feed::Source(source.0.open(drive, clone, seed)?),
            None if Split::is_for(spec) => Feed::Split(Box::new(Split::new(spec, drive.bytes(), clone, seed))),
            None => Feed::Drawn(Box::new(Requests::new(spec, drive.bytes(), clone, seed))),
        })
    }

    /// Notes of the source.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Feed::Drawn(_) | Feed::Split(_) => Vec::new(),
            Feed::Source(source) => source.notes(),
        }
    }
}

/// Draws requests of a mix with separate words for reads and writes. Sequential reads each continue where the last read
/// ended, sequential writes where the last write ended.
pub(crate) struct Split {
    rng: Rng,
    /// The number of draws that are reads, and of all.
    reads_of: (u64, u64),
    reads: Requests,
    writes: Requests,
}

impl Split {
    fn is_for(spec: &JobSpec) -> bool {
        spec.rw.action == Action::Mixed && (spec.bs.writes.is_some() || spec.distribution.writes.is_some())
    }

    fn new(spec: &JobSpec, capacity: u64, clone: u32, seed: Seed) -> Split {
        let of = |action: Action, name: &str| {
            let one = JobSpec { rw: Pattern { action, ..spec.rw }, ..spec.clone() };
            Requests::new(&one, capacity, clone, seed.child(name))
        };
        let (reads, writes) = (of(Action::Read, "reads"), of(Action::Write, "writes"));
        Split { rng: seed.rng(), reads_of: reads_of(spec.rwmixread), reads, writes }
    }

    pub(crate) fn next(&mut self) -> Request {
        let (reads, draws) = self.reads_of;
        if self.rng.below(draws) < reads { self.reads.next() } else { self.writes.next() }
    }
}

/// Draws requests.
pub(crate) struct Requests {
    rw: Pattern,
    bs: BlockSizes,
    rng: Rng,
    /// Bytes of the part of the drive that is used, and its first.
    space: u64,
    base: u64,
    align: u64,
    weights: u64,
    /// Where directions are mixed: the number of draws that are reads, and of all equally likely draws.
    reads: u64,
    draws: u64,
    /// A request size, and the highest address at which a request of this size fits into the space, in steps of the
    /// alignment.
    fit: (u64, u64),
    sampler: Sampler,
    /// The address of the next sequential request.
    next: u64,
}

impl Requests {
    /// The stream of the `clone`-th of `spec.numjobs` jobs on a drive of `capacity` bytes. The start addresses of
    /// sequential clones are evenly spread over the space.
    pub(crate) fn new(spec: &JobSpec, capacity: u64, clone: u32, seed: Seed) -> Requests {
        let mut rng = seed.rng();
        let bs = spec.bs.of(spec.rw.action).clone();
        let (align, largest) = (bs.smallest(), bs.largest());
        let base = spec.offset.bytes(capacity).min(capacity - largest.min(capacity)) / align * align;
        let rest = capacity - base;
        let space = spec.size.bytes(capacity).clamp(largest.min(rest), rest);
        let blocks = (space / align).max(1);
        Requests {
            sampler: Sampler::new(spec.distribution.of(spec.rw.action), blocks, &mut rng),
            reads: reads_of(spec.rwmixread).0,
            draws: reads_of(spec.rwmixread).1,
            weights: bs.sizes().iter().map(|(_, weight)| u64::from(*weight)).sum(),
            next: blocks * u64::from(clone) / u64::from(spec.numjobs) * align,
            fit: (space, 0),
            rw: spec.rw,
            bs,
            rng,
            space,
            base,
            align,
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Request {
        let bytes = self.bytes();
        let direction = self.direction();
        // A request that would reach beyond the space is moved back to end there.
        if self.fit.0 != bytes {
            self.fit = (bytes, (self.space - bytes) / self.align * self.align);
        }
        let last = self.fit.1;
        let offset = if self.rw.random {
            (self.sampler.next(&mut self.rng) * self.align).min(last)
        } else {
            let offset = if self.next > last { 0 } else { self.next };
            self.next = offset + bytes;
            offset
        };
        Request { direction, offset: self.base + offset, bytes }
    }

    #[inline]
    fn direction(&mut self) -> Direction {
        match self.rw.action {
            Action::Read => Direction::Read,
            Action::Write => Direction::Write,
            Action::Trim => Direction::Trim,
            Action::Mixed if self.rng.below(self.draws) < self.reads => Direction::Read,
            Action::Mixed => Direction::Write,
        }
    }

    #[inline]
    fn bytes(&mut self) -> u64 {
        match self.bs.sizes() {
            [(bytes, _)] => *bytes,
            _ => self.draw_bytes(),
        }
    }

    fn draw_bytes(&mut self) -> u64 {
        let sizes = self.bs.sizes();
        let mut draw = self.rng.below(self.weights);
        for (bytes, weight) in sizes {
            match draw.checked_sub(u64::from(*weight)) {
                Some(rest) => draw = rest,
                None => return *bytes,
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

/// The number of draws that are reads, and of all draws. Whole percentages draw from a hundred, as they always have: the
/// requests of a seed stay the same.
pub(crate) fn reads_of(percent: f64) -> (u64, u64) {
    if libm::round(percent) == percent {
        (percent as u64, 100)
    } else {
        (libm::round(percent * 1e6) as u64, 100_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(spec: JobSpec, capacity: u64, clone: u32) -> Requests {
        Requests::new(&spec, capacity, clone, Seed::new(1))
    }

    #[test]
    fn sequential_requests_follow_each_other_and_wrap() {
        let spec = JobSpec { rw: "read".parse().unwrap(), ..JobSpec::default() };
        let mut stream = requests(spec.clone(), 3 * 4_096, 0);
        let offsets: Vec<u64> = (0..5).map(|_| stream.next().offset / 4_096).collect();
        assert_eq!(offsets, [0, 1, 2, 0, 1]);
        let spec = JobSpec { numjobs: 2, ..spec };
        assert_eq!(requests(spec, 8 * 4_096, 1).next().offset, 4 * 4_096);
    }

    #[test]
    fn random_requests_are_aligned_and_inside() {
        let spec = JobSpec { bs: "4k/1:64k/1".parse().unwrap(), size: "50%".parse().unwrap(), ..JobSpec::default() };
        let mut stream = requests(spec, 1 << 20, 0);
        let mut large = 0;
        for _ in 0..10_000 {
            let request = stream.next();
            assert!(request.offset.is_multiple_of(4_096) && request.offset + request.bytes <= 1 << 19, "{request:?}");
            large += u32::from(request.bytes == 64 << 10);
        }
        assert!((4_700..5_300).contains(&large), "{large}");
    }

    /// Within five standard deviations of the binomial distribution; nothing and everything exactly.
    #[test]
    fn mixes_of_directions_and_sizes_have_their_shares() {
        let expect = |what: &str, hits: f64, p: f64| {
            let (mean, deviation) = (100_000.0 * p, libm::sqrt(100_000.0 * p * (1.0 - p)));
            assert!((hits - mean).abs() <= 5.0 * deviation, "{what}, seed 1: {hits} instead of {mean}");
        };
        for rwmixread in [0.0, 1.0, 30.0, 33.3, 99.0, 99.9, 100.0] {
            let bs = "4k/70:16k/25:128k/5".parse().unwrap();
            let spec = JobSpec { rw: "randrw".parse().unwrap(), rwmixread, bs, ..JobSpec::default() };
            let mut stream = requests(spec, 1 << 30, 0);
            let drawn: Vec<Request> = (0..100_000).map(|_| stream.next()).collect();
            let count = |wanted: &dyn Fn(&Request) -> bool| drawn.iter().filter(|it| wanted(it)).count() as f64;
            let reads = rwmixread / 100.0;
            expect("reads", count(&|it| it.direction == Direction::Read), reads);
            for (bytes, share) in [(4_096, 0.70), (16_384, 0.25), (131_072, 0.05)] {
                expect(&format!("{bytes} B"), count(&|it| it.bytes == bytes), share);
                // Direction and size are drawn apart.
                let both = count(&|it| it.bytes == bytes && it.direction == Direction::Read);
                expect(&format!("reads of {bytes} B"), both, share * reads);
            }
        }
    }

    /// Sizes, addresses and shares of a mix with separate words for reads and writes.
    #[test]
    fn reads_and_writes_may_have_sizes_and_addresses_of_their_own() {
        let text = |rw: &str| JobSpec {
            rw: rw.parse().unwrap(),
            bs: "4k,64k".parse().unwrap(),
            distribution: "uniform,zoned:100/10:0/90".parse().unwrap(),
            rwmixread: 70.0,
            ..JobSpec::default()
        };
        let mut random = Split::new(&text("randrw"), 1 << 30, 0, Seed::new(1));
        let drawn: Vec<Request> = (0..10_000).map(|_| random.next()).collect();
        let (reads, writes): (Vec<Request>, Vec<Request>) =
            drawn.into_iter().partition(|request| request.direction == Direction::Read);
        assert!((6_800..7_200).contains(&reads.len()), "{}", reads.len());
        assert!(reads.iter().all(|read| read.bytes == 4_096) && reads.iter().any(|read| read.offset > 1 << 29));
        let low = (1 << 30) / 10 + 65_536;
        assert!(writes.iter().all(|write| write.bytes == 65_536 && write.offset < low && write.offset % 65_536 == 0));

        let mut sequential = Split::new(&text("rw"), 1 << 30, 0, Seed::new(1));
        let mut next = [0, 0];
        for _ in 0..1_000 {
            let Request { direction, offset, bytes } = sequential.next();
            let next = &mut next[usize::from(direction == Direction::Write)];
            assert_eq!(offset, *next, "{direction:?}");
            *next += bytes;
        }
    }

    #[test]
    fn mixes_have_their_share() {
        let spec = JobSpec { rw: "randrw".parse().unwrap(), rwmixread: 70.0, ..JobSpec::default() };
        let mut stream = requests(spec, 1 << 30, 0);
        let reads = (0..10_000).filter(|_| stream.next().direction == Direction::Read).count();
        assert!((6_800..7_200).contains(&reads), "{reads}");
    }
}
