//! The state of a drive over time. A sample is taken when a request completes and the last sample is old enough, so
//! that sampling changes nothing; each sample has its exact time.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::Stats;
use nandscape_device_media::{BlockId, Media};
use nandscape_device_ssd::{Part, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::CAUSES;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::intervals::MOST;

/// How long after a look the next one follows in a short run.
const FIRST: Span = Span::from_us(100);

/// The state of a drive over time.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Samples {
    /// When the sample was taken, from the beginning of the measured phase; the first is at its beginning.
    pub t_s: Vec<f64>,
    /// Erased blocks of the whole drive.
    pub free_blocks: Vec<u64>,
    /// Erases of the block erased least often, since the drive was made.
    pub erases_min: Vec<u32>,
    /// The mean over all blocks in use.
    pub erases_mean: Vec<f64>,
    /// Of the block erased most often.
    pub erases_max: Vec<u32>,
    /// Blocks that garbage collection has erased since the beginning of the measured phase.
    pub gc_blocks: Vec<u64>,
    /// Units programmed over units the host wrote, since the look before; null without writes, and at the beginning.
    pub waf: Vec<Option<f64>>,
    /// Share of the time since the look before that the array of a plane was busy, mean over all planes, by cause; null
    /// at the beginning.
    pub busy_die: BTreeMap<&'static str, Vec<Option<f64>>>,
}

struct Look {
    at: Time,
    stats: Stats,
    busy_ns: [u64; CAUSES],
}

pub(super) struct Recorder {
    looks: Vec<Look>,
    step: Span,
    next: Time,
    unit_bytes: f64,
    arrays: f64,
    blocks: f64,
}

impl Recorder {
    pub(super) fn new(begun: Time, ssd: &Ssd) -> Recorder {
        let media = || ssd.parts().iter().map(Part::media);
        let arrays = |media: &Media| {
            media.geometry().planes() / media.geometry().counts().planes_per_die * media.arrays_per_die()
        };
        let is_good = |media: &Media, block: &u32| !media.is_factory_bad(BlockId(*block));
        let good = media().map(|media| (0..media.geometry().blocks()).filter(|block| is_good(media, block)).count());
        Recorder {
            looks: vec![look(begun, ssd)],
            step: FIRST,
            next: begun + FIRST,
            unit_bytes: f64::from(ssd.media().geometry().unit_size()),
            arrays: f64::from(media().map(arrays).sum::<u32>()),
            blocks: good.sum::<usize>().max(1) as f64,
        }
    }

    /// Time has passed.
    #[inline]
    pub(super) fn passed(&mut self, now: Time, ssd: &Ssd) {
        if now >= self.next {
            self.look(now, ssd);
        }
    }

    fn look(&mut self, now: Time, ssd: &Ssd) {
        self.looks.push(look(now, ssd));
        if self.looks.len() > MOST {
            let mut index = 0;
            self.looks.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step = Span::from_ns(self.step.ns() * 2);
        }
        self.next = now + self.step;
    }

    pub(super) fn finish(mut self, ended: Time, ssd: &Ssd) -> Samples {
        // The last look is at the end. One that was taken just before would stand for next to nothing.
        if self.looks.len() > 1 && self.looks.last().is_some_and(|last| last.at + self.step > ended) {
            self.looks.pop();
        }
        if self.looks.last().is_none_or(|last| last.at < ended) {
            self.looks.push(look(ended, ssd));
        }
        let mut samples = Samples::default();
        let first = &self.looks[0];
        samples.push(&self, first, None);
        self.looks.windows(2).for_each(|pair| samples.push(&self, &pair[1], Some(&pair[0])));
        // Causes of trouble are listed only if they occurred.
        for (cause, name) in cause::ALL.iter().filter(|(cause, _)| cause::is_of_trouble(*cause)) {
            let of = |look: Option<&Look>| look.map(|look| look.busy_ns[cause.index()]);
            if of(self.looks.first()) == of(self.looks.last()) {
                samples.busy_die.remove(name);
            }
        }
        samples
    }
}

fn look(at: Time, ssd: &Ssd) -> Look {
    let mut busy_ns = [0; CAUSES];
    for array in ssd.parts().iter().flat_map(|part| part.media().array_usage()) {
        cause::ALL.iter().for_each(|(cause, _)| busy_ns[cause.index()] += array.by(*cause).ns());
    }
    Look { at, stats: ssd.ftl_stats(), busy_ns }
}

impl Samples {
    fn push(&mut self, of: &Recorder, look: &Look, before: Option<&Look>) {
        let first = &of.looks[0];
        let (least, most, sum) = look.stats.erases;
        self.t_s.push((look.at - first.at).as_s());
        self.free_blocks.push(look.stats.free_blocks);
        self.erases_min.push(least);
        self.erases_mean.push(sum as f64 / of.blocks);
        self.erases_max.push(most);
        self.gc_blocks.push(look.stats.gc_blocks - first.stats.gc_blocks);
        let since = before.map(|before| look.stats.since(&before.stats)).filter(|since| since.host_bytes > 0);
        self.waf.push(since.map(|since| since.programmed_units() as f64 * of.unit_bytes / since.host_bytes as f64));
        for (cause, name) in cause::ALL {
            let share = before.filter(|before| before.at < look.at).map(|before| {
                let busy = look.busy_ns[cause.index()] - before.busy_ns[cause.index()];
                busy as f64 / ((look.at - before.at).ns() as f64 * of.arrays)
            });
            self.busy_die.entry(name).or_default().push(share);
        }
    }
}
