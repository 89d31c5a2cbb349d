//! Positions of the arm and the platters, and the time of a command.
//!
//! Sectors are numbered along a track, then along the tracks of a cylinder, then along cylinders. Track skew offsets the
//! first sector of each track against the previous track, so that it arrives just when the arm does.

use nandscape_drive::command::Extent;
use nandscape_sim::{Span, Time};

use crate::spec::{DiskSpec, Seek};

/// The parts of a command's time at the arm.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Access {
    /// Moving the arm, or changing to another head.
    pub(crate) seek: Span,
    /// The rotational latency until the first sector.
    pub(crate) rotation: Span,
    /// From the first sector to the end of the last.
    pub(crate) transfer: Span,
}

/// See the file.
pub(crate) struct Mechanics {
    spec: DiskSpec,
    revolution: u64,
    /// The track skew in sectors.
    skew: u64,
    /// Of reads and of writes.
    curves: [Curve; 2],
    /// The track of the arm.
    track: u64,
}

#[derive(Copy, Clone)]
struct Curve {
    single: f64,
    a: f64,
    b: f64,
}

impl Curve {
    fn of(seek: &Seek, cylinders: u32) -> Curve {
        let (a, b) = seek.coefficients(cylinders);
        Curve { single: seek.single.ns() as f64, a, b }
    }

    fn over(&self, cylinders: u64) -> Span {
        let further = cylinders.saturating_sub(1) as f64;
        Span::from_ns((self.single + self.a * further.sqrt() + self.b * further) as u64)
    }
}

impl Mechanics {
    /// The arm is at the first track, and its first sector is under the head at time zero.
    pub(crate) fn new(spec: DiskSpec) -> Mechanics {
        let revolution = spec.revolution().ns();
        let switch = spec.read.single.max(spec.write.single).ns();
        let skew = (switch * u64::from(spec.sectors)).div_ceil(revolution) + 1;
        let curves = [Curve::of(&spec.read, spec.cylinders), Curve::of(&spec.write, spec.cylinders)];
        Mechanics { revolution, skew, curves, track: 0, spec }
    }

    /// Carries out a command that begins at `now`.
    pub(crate) fn access(&mut self, extent: Extent, is_write: bool, now: Time) -> Access {
        let sectors = u64::from(self.spec.sectors);
        let (first, last) = (extent.slba / sectors, (extent.slba + u64::from(extent.blocks) - 1) / sectors);
        let seek = self.seek(first, is_write);
        let rotation = self.until(first, extent.slba % sectors, now + seek);
        let passing = u64::from(extent.blocks) + (last - first) * self.skew;
        self.track = last;
        Access { seek, rotation, transfer: self.pass(passing) }
    }

    /// Moving from the arm's track to another.
    fn seek(&self, to: u64, is_write: bool) -> Span {
        let heads = u64::from(self.spec.heads);
        let distance = (to / heads).abs_diff(self.track / heads);
        let curve = self.curves[usize::from(is_write)];
        // Changing to another head of the cylinder takes as long as going to the next track.
        if to == self.track { Span::ZERO } else { curve.over(distance.max(1)) }
    }

    /// The time until a sector of a track arrives.
    fn until(&self, track: u64, sector: u64, now: Time) -> Span {
        let sectors = u64::from(self.spec.sectors);
        let place = (sector + track % sectors * self.skew) % sectors;
        let at = self.pass(place).ns();
        Span::from_ns((at + self.revolution - now.ns() % self.revolution) % self.revolution)
    }

    /// Time in which sectors pass.
    fn pass(&self, sectors: u64) -> Span {
        Span::from_ns(sectors * self.revolution / u64::from(self.spec.sectors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(slba: u64, blocks: u32) -> Extent {
        Extent { slba, blocks }
    }

    #[test]
    fn seeks_have_the_times_of_the_sheet() {
        let spec = DiskSpec::constellation_2();
        let of_cylinder = u64::from(spec.sectors * spec.heads);
        let mut arm = Mechanics::new(spec.clone());
        let mut seek =
            |cylinder: u64, is_write| arm.access(extent(cylinder * of_cylinder, 1), is_write, Time::from_ns(0)).seek;
        assert_eq!(seek(0, false), Span::ZERO);
        assert_eq!(seek(1, false), spec.read.single);
        assert_eq!(seek(0, true), spec.write.single);
        let close = |one: Span, other: Span| one.ns().abs_diff(other.ns()) < 1_000;
        assert!(close(seek(165_799, false), spec.read.full));
        assert!(close(seek(0, true), spec.write.full));
    }

    #[test]
    fn a_sector_comes_once_a_revolution_and_tracks_follow_each_other() {
        let spec = DiskSpec::constellation_2();
        let sectors = u64::from(spec.sectors);
        let mut arm = Mechanics::new(spec.clone());
        let at = |ns| Time::from_ns(ns);
        let first = arm.access(extent(0, 8), false, at(0));
        assert_eq!((first.seek, first.rotation), (Span::ZERO, Span::ZERO));
        // The next sectors arrive at once, and those just read after nearly a revolution.
        let next = arm.access(extent(8, 8), false, at(first.transfer.ns()));
        assert!(next.rotation <= Span::from_ns(1), "{}", next.rotation);
        let again = arm.access(extent(0, 8), false, at(first.transfer.ns()));
        assert_eq!(again.rotation + first.transfer, spec.revolution());
        // The end of a track: the first sector of the next track arrives as soon as the head is there.
        let mut arm = Mechanics::new(spec.clone());
        let end = arm.access(extent(sectors - 1, 1), false, at(0));
        let passed = end.rotation + end.transfer;
        let over = arm.access(extent(sectors, 1), true, at(passed.ns()));
        assert!(over.seek == spec.write.single && over.rotation < Span::from_us(20), "{over:?}");
        let mut arm = Mechanics::new(spec);
        let both = arm.access(extent(sectors - 1, 2), true, at(0));
        let apart = passed + over.seek + over.rotation + over.transfer;
        assert!((both.rotation + both.transfer).ns().abs_diff(apart.ns()) < 10, "{both:?} {apart}");
    }
}
