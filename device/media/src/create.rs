//! New flash: from its configuration, erased, with the wear of its life before the run.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;

use nandscape_sim::Sim;
use nandscape_sim::divisor::Divisor;
use nandscape_sim::trace::Track;
use nandscape_sim::units::Remembering;

use crate::aging::{Aging, AgingCells};
use crate::bad::{choose_bad, keep_first_blocks};
use crate::contents::Contents;
use crate::durable::DurableMemory;
use crate::features::PlaneMode;
use crate::geometry::{BlockId, Geometry, PlaneId};
use crate::interleave::{Interleaving, Rows};
use crate::lun::Lun;
use crate::media::{Media, MediaConfig, Tracks};
use crate::supply::{Channel, Supply};
use crate::timing::{PageTimes, Timing};

impl Media {
    /// Erased flash, with the wear of its life before the run.
    ///
    /// # Errors
    /// If the system does not provide memory for out-of-band tags.
    pub fn new(sim: &Sim, config: MediaConfig) -> io::Result<Media> {
        let contents = Contents::new(&config.geometry, config.store)?;
        let mut media = Media::with_contents(sim, config, contents, None);
        media.live();
        Ok(media)
    }

    /// Applies the life before the run, if any, to new flash. A file that can no longer be written reports this later.
    pub(crate) fn live(&mut self) {
        let Some(mut aging) = self.aging.take() else { return };
        let mut grown = vec![false; self.geometry.blocks() as usize];
        let (mut worn, mut sum) = (vec![0; grown.len()], 0);
        for block in (0..self.geometry.blocks()).map(BlockId).filter(|block| !self.factory_bad[block.0 as usize]) {
            let (erases, is_bad) = aging.at_start(block);
            self.contents.get_mut().set_block(block, 0, erases);
            (worn[block.0 as usize], grown[block.0 as usize]) = (erases, is_bad && !self.holds_identifier(block));
            sum += u64::from(erases);
        }
        aging.has_lived(sum, &self.geometry);
        self.aging = Some(aging);
        if let Some(file) = self.contents.get_mut().file_mut().filter(|_| sum > 0) {
            let _ = file.live(&worn, &grown);
        }
        self.set_grown_bad(grown);
    }

    /// Flash with its content.
    pub(crate) fn with_contents(
        sim: &Sim,
        config: MediaConfig,
        contents: Contents,
        durable: Option<Rc<DurableMemory>>,
    ) -> Media {
        let MediaConfig { geometry, timing, store: _, factory_bad, lba_bytes, faults, aging, seed, group } = config;
        let supply = match &group {
            Some(group) => group.supply.clone(),
            None => Supply::new(sim, &faults, lba_bytes, timing.features.ecc.engines, seed.child("faults")),
        };
        let (channels_of_drive, dies_of_drive): (Rc<[u32]>, Rc<[u32]>) = match &group {
            Some(group) => (group.channels.clone(), group.dies.clone()),
            None => ((0..geometry.channels()).collect(), (0..geometry.counts().dies_per_channel).collect()),
        };
        let mut factory_bad = choose_bad(&geometry, factory_bad, seed.child("factory-bad-blocks"));
        if group.is_some() {
            keep_first_blocks(&geometry, &mut factory_bad);
        }
        if aging.is_some() {
            supply.faults.look_at_all();
        }
        let planes_per_lun = match timing.features.planes {
            PlaneMode::Independent => 1,
            PlaneMode::Die | PlaneMode::MultiPlane => geometry.counts().planes_per_die,
        };
        let planes = plane_tracks(sim, &geometry, (&channels_of_drive, &dies_of_drive));
        let channels: Vec<Channel> = channels_of_drive.iter().map(|number| supply.channel(sim, *number)).collect();
        Media {
            sim: sim.clone(),
            geometry,
            read_rate: Remembering::new(timing.bus),
            whole_page: timing.features.command + timing.bus.time_for(u64::from(geometry.page_size())),
            page_times: PageTimes::new(&timing, geometry.pages_per_block()),
            luns: (0..geometry.planes() / planes_per_lun).map(|_| Lun::new(sim, &timing)).collect(),
            planes_per_lun: Divisor::new(planes_per_lun),
            rows: (timing.features.interleaving == Interleaving::Rows).then(|| {
                let rows = channels_of_drive.iter().map(|number| supply.row(sim, *number)).collect();
                Box::new(Rows::new(sim, rows, &dies_of_drive, geometry.counts().planes_per_die / planes_per_lun))
            }),
            planes_together: timing.features.planes == PlaneMode::MultiPlane,
            retries: seed.child("read-retry"),
            policies: seed.child("policies"),
            most_retries: most_retries(&timing, aging.as_ref()),
            reads_plainly: most_retries(&timing, aging.as_ref()) == 0
                && timing.features.planes != PlaneMode::MultiPlane
                && timing.features.command.is_zero()
                && timing.features.ecc.time.is_zero(),
            aging: aging.map(|aging| Box::new(AgingCells::new(aging, &geometry, timing.cell, seed.child("aging")))),
            supply,
            tells_of: channels.iter().map(|channel| channel.is_first).collect(),
            contents: RefCell::new(contents),
            tracks: Tracks { planes, channels: channels.iter().map(|channel| channel.track).collect() },
            channels: channels.into_iter().map(|channel| channel.bus).collect(),
            factory_bad,
            grown_bad: Vec::new(),
            group,
            channels_of_drive,
            dies_of_drive,
            durable,
            remote: None,
            watch: OnceCell::new(),
            reads: OnceCell::new(),
            work: OnceCell::new(),
            timing,
        }
    }
}

/// The most retries of a read.
fn most_retries(timing: &Timing, aging: Option<&Aging>) -> u32 {
    let given = timing.features.read_retry.probability.len() as u32;
    aging.map_or(given, |aging| aging.retries.steps.max(given))
}

/// The tracks of planes in the event trace, by the numbers of channels and dies in the drive.
fn plane_tracks(sim: &Sim, geometry: &Geometry, (channels, dies): (&[u32], &[u32])) -> Vec<Track> {
    let plane = |index| {
        let (channel, die, plane) = geometry.place(PlaneId(index));
        let (channel, die) = (channels[channel as usize], dies[die as usize]);
        sim.trace().track(format!("channel {channel} die {die} plane {plane}"))
    };
    (0..geometry.planes()).map(plane).collect()
}
