//! Counts and busy times of the flash, and its tracks in the event trace.

use nandscape_sim::account::Totals;
use nandscape_sim::trace::Track;

use crate::contents::OpCounts;
use crate::geometry::PlaneId;
use crate::lun::Lun;
use crate::media::Media;

impl Media {
    /// Counts of operations so far.
    pub fn counts(&self) -> OpCounts {
        self.contents.borrow().counts
    }

    /// Arrays of a die that work independently: one for each plane, or one for all.
    pub fn arrays_per_die(&self) -> u32 {
        self.geometry.counts().planes_per_die / self.planes_per_lun.get()
    }

    /// Busy time of each LUN's array by cause: of each plane, or of each die whose planes do not work independently.
    pub fn array_usage(&self) -> Vec<Totals> {
        self.luns.iter().map(|lun| lun.array.usage()).collect()
    }

    /// The time in which a register of each LUN was taken, by cause.
    pub fn register_usage(&self) -> Vec<Totals> {
        self.luns.iter().map(Lun::register_usage).collect()
    }

    /// The drive's numbers of the channels that reports of this flash list. A channel with dies of several owners is
    /// listed by the first of them.
    pub fn told_channels(&self) -> Vec<u32> {
        self.told(&self.channels_of_drive).copied().collect()
    }

    /// Whether the channel of a plane is in use or waited for.
    pub fn is_channel_busy(&self, plane: PlaneId) -> bool {
        !self.channels[self.geometry.channel_of(plane) as usize].is_idle()
    }

    /// Busy time of these channels by cause.
    pub fn channel_usage(&self) -> Vec<Totals> {
        self.told(&self.channels).map(|channel| channel.usage()).collect()
    }

    fn told<'a, T>(&'a self, channels: &'a [T]) -> impl Iterator<Item = &'a T> {
        channels.iter().zip(&self.tells_of).filter(|(_, tells)| **tells).map(|(channel, _)| channel)
    }

    /// The track of each plane's array in the event trace, in the order of planes.
    pub fn plane_tracks(&self) -> &[Track] {
        &self.tracks.planes
    }

    /// The tracks in the event trace of the channels that reports of this flash list.
    pub fn channel_tracks(&self) -> Vec<Track> {
        self.told(&self.tracks.channels).copied().collect()
    }
}
