//! The inside of a live SSD: its dies and channels by name, their busy shares, and the wear of its blocks.

use nandscape_device_ftl_core::component::BlockState;
use nandscape_device_media::{BlockId, Media, PlaneId};
use nandscape_device_ssd::{Part, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::{CAUSES, Totals};
use nandscape_transport_reactor::inside::{Busy, DieWear, Inside, Lane, Layout, Wear};

/// The most groups of blocks that a die is drawn as.
const GROUPS: u32 = 64;

/// The parts of a drive by name.
pub(crate) fn layout(ssd: &Ssd) -> Layout {
    let mut layout = Layout { planes_per_die: planes_per_die(ssd.media()), ..Layout::default() };
    for media in ssd.parts().iter().map(Part::media) {
        let counts = media.geometry().counts();
        let (first_die, first_channel) = (layout.dies.len() as u32, layout.channels.len() as u32);
        layout.channels.extend(media.told_channels().iter().map(|channel| format!("channel {channel}")));
        for channel in media.channels_of_drive() {
            layout.dies.extend(media.dies_of_drive().iter().map(|die| format!("channel {channel} die {die}")));
        }
        layout.arrays.resize(layout.dies.len(), media.arrays_per_die());
        let planes = media.plane_tracks().iter().zip(first_die * counts.planes_per_die..);
        layout.lanes.extend(planes.map(|(track, plane)| (track.index(), Lane::Plane(plane))));
        let channels = media.channel_tracks().into_iter().zip(first_channel..);
        layout.lanes.extend(channels.map(|(track, channel)| (track.index(), Lane::Channel(channel))));
    }
    layout
}

/// The busy shares of a drive's parts, and the wear of its blocks if requested.
pub(crate) fn now(ssd: &Ssd, with_wear: bool) -> Inside {
    let mut inside = Inside::default();
    for media in ssd.parts().iter().map(Part::media) {
        let arrays: Vec<Busy> = media.array_usage().iter().map(busy).collect();
        inside.dies.extend(arrays.chunks(media.arrays_per_die() as usize).map(sum));
        inside.channels.extend(media.channel_usage().iter().map(busy));
    }
    inside.wear = with_wear.then(|| wear(ssd));
    inside
}

fn planes_per_die(media: &Media) -> u32 {
    media.geometry().counts().planes_per_die
}

fn busy(totals: &Totals) -> Busy {
    let mut busy = [0; CAUSES];
    cause::ALL.iter().for_each(|(cause, _)| busy[cause.index()] = totals.by(*cause).ns());
    busy
}

fn sum(arrays: &[Busy]) -> Busy {
    let mut sum = [0; CAUSES];
    arrays.iter().for_each(|one| sum.iter_mut().zip(one).for_each(|(sum, ns)| *sum += ns));
    sum
}

fn wear(ssd: &Ssd) -> Wear {
    let counts = ssd.parts().iter().map(|part| *part.media().geometry().counts());
    let blocks_per_die = counts.map(|counts| counts.planes_per_die * counts.blocks_per_plane).max().unwrap_or(1);
    let blocks_per_group = blocks_per_die.div_ceil(GROUPS);
    let of_part = |part: &Part| -> Vec<DieWear> {
        let geometry = part.media().geometry();
        let erases = |block: BlockId| {
            let info = part.block(block);
            (info.state != BlockState::Bad).then_some(info.erases)
        };
        let planes = planes_per_die(part.media());
        let blocks = |die: u32| (die * planes..(die + 1) * planes).flat_map(|plane| geometry.blocks_of(PlaneId(plane)));
        (0..geometry.planes() / planes).map(|die| DieWear::of(blocks(die).map(erases), blocks_per_group)).collect()
    };
    Wear { dies: ssd.parts().iter().flat_map(of_part).collect(), blocks_per_group }
}

#[cfg(test)]
mod tests {
    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::Profile;
    use nandscape_sim::{Executor, Seed};

    use super::*;

    #[test]
    fn every_die_channel_and_plane_has_its_place() {
        let by_dies = "version = 1\nbase = \"default\"\ngeometry.channels = 4\ngeometry.dies_per_channel = 3\n\
            [[ftl.parts]]\nchannels = \"0-3\"\ndies = \"0,2\"\n[[ftl.parts]]\nchannels = \"0-3\"\ndies = \"1\"\n";
        let by_dies = Profile::parse("by-dies.toml", by_dies).unwrap();
        let builtin = ["default", "two-ftls", "ox-block"].map(|name| Profile::load(name).unwrap());
        for mut profile in builtin.into_iter().chain([by_dies]) {
            let executor = Executor::new();
            profile.set("capacity=1GiB").unwrap();
            let resolved = profile.resolve().unwrap();
            let ssd = Ssd::new(&executor.sim(), &resolved, StoreKind::None, Seed::new(1)).unwrap();
            let (layout, inside) = (layout(&ssd), now(&ssd, true));
            let wear = inside.wear.unwrap();
            assert_eq!((layout.dies.len(), layout.channels.len()), (inside.dies.len(), inside.channels.len()));
            assert_eq!((layout.dies.len(), layout.dies.len()), (wear.dies.len(), layout.arrays.len()));
            let planes = layout.dies.len() * layout.planes_per_die as usize;
            assert_eq!(layout.lanes.len(), planes + layout.channels.len());
            assert!(
                (1..layout.dies.len()).all(|die| !layout.dies[..die].contains(&layout.dies[die])),
                "{:?}",
                layout.dies
            );
            let blocks: u32 = ssd.parts().iter().map(|part| part.media().geometry().blocks()).sum();
            assert_eq!(wear.dies.iter().map(|die| die.good + die.bad).sum::<u32>(), blocks);
            assert!(wear.dies.iter().all(|die| die.groups.len() <= GROUPS as usize));
        }
    }
}
