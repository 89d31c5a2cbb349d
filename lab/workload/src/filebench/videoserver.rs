//! videoserver: streams of videos, and new ones that replace old. Each thread repeatedly reads one of the active videos
//! from beginning to end, 256 KiB at a time; a common limit applies to the rate of all. One writer deletes a passive
//! video and writes a new one every ten seconds.
//!
//! One seventh of the files is active (32 of 226); half of the passive ones exist at the start.

use std::rc::Rc;

use nandscape_sim::Span;

use super::Setting;
use super::pace::Pace;
use super::personality::{Figures, Shrinks};
use super::set::FileSet;
use super::thread::Thread;
use crate::client::Over;
use crate::filesystem::FileId;

pub(super) const FIGURES: Figures = Figures {
    threads: 48,
    files: ACTIVE + PASSIVE,
    mean_size: 10 << 30,
    dir_width: 20,
    existing: 0.5,
    rate: Some(96 << 20),
    shrinks: Shrinks::Size,
    ..Figures::USUAL
};

const ACTIVE: u64 = 32;
const PASSIVE: u64 = 194;
pub(super) const READ_SIZE: u64 = 256 << 10;
const REPLACEMENT_INTERVAL: Span = Span::from_s(10);

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    let files = setting.plan.files;
    let active_files = (files * ACTIVE / (ACTIVE + PASSIVE)).max(1);
    let active = setting.set("active", active_files, 1.0)?;
    let passive = setting.set("passive", (files - active_files).max(1), FIGURES.existing)?;
    let pace = Rc::new(Pace::new(setting.spec.rate.map(|rate| rate as f64)));
    for number in 0..setting.spec.threads {
        let (mut thread, active, pace) = (setting.thread("reader", number.into()), active.clone(), pace.clone());
        setting.spawn(async move {
            let video = active.to_read().await.file;
            loop {
                stream(&mut thread, video, &pace).await?;
            }
        });
    }
    let mut writer = setting.thread("writer", 0);
    setting.spawn(async move {
        loop {
            replace(&mut writer, &passive).await?;
            writer.client.sim().sleep(REPLACEMENT_INTERVAL).await;
        }
    });
    Some(())
}

/// Reads a video once, at its pace.
async fn stream(thread: &mut Thread, video: FileId, pace: &Pace) -> Result<(), Over> {
    let bytes = thread.fs.bytes(video);
    let mut from = 0;
    while from < bytes {
        let size = READ_SIZE.min(bytes - from);
        let turn = pace.turn(thread.client.sim().now(), size);
        thread.client.sim().sleep_until(turn).await;
        thread.read_part(video, from, size).await?;
        from += size;
    }
    Ok(())
}

async fn replace(writer: &mut Thread, passive: &FileSet) -> Result<(), Over> {
    writer.delete_next(passive).await?;
    let new = writer.create(passive).await?;
    writer.write_whole(new).await?;
    passive.release(new);
    Ok(())
}
