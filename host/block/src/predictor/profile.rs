//! The time of a disk for a command, by distance from the previous command and by size (Li 3.1.6).
//!
//! Left out: the angle of the platters, which a host does not see. A profile therefore holds means, and a single
//! command takes up to half a revolution more or less.

use nandscape_sim::Span;

use crate::request::Request;

/// Blocks of the commands by which distances are measured.
pub(super) const SIZE: u32 = 8;

/// Mean times by distance, in ascending order of distance.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Distances(pub(super) Vec<(u64, u64)>);

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskProfile {
    /// Of reads and of writes, forward and backward.
    pub(super) distances: [[Distances; 2]; 2],
    /// Nanoseconds for each further block, of reads and of writes.
    pub(super) block: [f64; 2],
    /// The time of commands without a seek or transfer.
    pub(super) idle: Span,
}

impl DiskProfile {
    /// How long a command takes when the one before it has ended just before block `from`.
    pub fn takes(&self, from: u64, request: &Request) -> Span {
        if request.blocks == 0 {
            return self.idle;
        }
        let (kind, is_back) = (usize::from(!request.is_read), usize::from(request.slba < from));
        let at = self.distances[kind][is_back].at(request.slba.abs_diff(from));
        let further = self.block[kind] * (f64::from(request.blocks) - f64::from(SIZE));
        Span::from_ns((at + further).max(0.0) as u64)
    }
}

impl Distances {
    /// Between two measured distances, a straight line.
    fn at(&self, distance: u64) -> f64 {
        let above = self.0.partition_point(|(measured, _)| *measured < distance);
        let point = |index: usize| self.0.get(index).map(|(distance, ns)| (*distance as f64, *ns as f64));
        match (above.checked_sub(1).and_then(point), point(above)) {
            (Some((d0, t0)), Some((d1, t1))) => t0 + (t1 - t0) * (distance as f64 - d0) / (d1 - d0),
            (Some((_, ns)), None) | (None, Some((_, ns))) => ns,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use nandscape_sim::Time;

    /// 1 ms at no distance, 2 ms at 1,000 blocks and beyond, twice that for writes; 1 us a further block.
    pub(in crate::predictor) fn profile() -> DiskProfile {
        let reads = Distances(vec![(0, 1_000_000), (1_000, 2_000_000)]);
        let writes = Distances(vec![(0, 2_000_000), (1_000, 4_000_000)]);
        let both = |side: &Distances| [side.clone(), side.clone()];
        let distances = [both(&reads), both(&writes)];
        DiskProfile { distances, block: [1_000.0; 2], idle: Span::from_us(10) }
    }

    pub(in crate::predictor) fn request(is_read: bool, slba: u64, blocks: u32) -> Request {
        let arrived = Time::from_ns(0);
        Request { is_read, slba, blocks, class: 0, tenant: 0, deadline: None, arrived }
    }

    #[test]
    fn times_lie_between_those_measured_and_grow_with_the_size() {
        let profile = profile();
        let us = |from, request: Request| profile.takes(from, &request).as_us();
        assert_eq!(us(0, request(true, 0, 8)), 1_000.0);
        assert_eq!(us(0, request(true, 500, 8)), 1_500.0);
        assert_eq!(us(5_500, request(true, 5_000, 108)), 1_600.0);
        assert_eq!(us(0, request(true, u64::MAX, 8)), 2_000.0);
        assert_eq!(us(u64::MAX, request(false, 0, 8)), 4_000.0);
        assert_eq!(us(0, request(true, 0, 0)), 10.0);
        let empty = DiskProfile { distances: Default::default(), ..profile.clone() };
        assert_eq!(empty.takes(7, &request(true, 0, 1)), Span::ZERO);
    }
}
