//! networkfs: home folders on a network file server, ten rounds a second. In each round a thread reads three files whole;
//! six times reads a file whole, writes one of the same size under a new name, and deletes the first; and appends to
//! three.
//!
//! Sizes of files, and of the calls that read and write them, come from tables; calls are rounded up to whole blocks.
//! The file to read or create is drawn: a number from the gamma distribution of shape 0.1 and mean 0.1, times half of
//! the files, so files with low numbers are used most.

use super::Setting;
use super::personality::Figures;
use super::set::{FileSet, Held};
use super::tables::SizeTable;
use super::thread::Thread;
use crate::client::Over;
use crate::filesystem::BLOCK;
use crate::gamma::gamma;

pub(super) const FIGURES: Figures = Figures {
    threads: 1,
    files: 100_000,
    mean_size: MEAN_FILE,
    dir_width: 20,
    existing: 0.6,
    rounds_per_s: 10.0,
    sizes: Some(&FILES),
    ..Figures::USUAL
};

/// Sizes of files. Their mean is 26.71 KiB.
pub(super) const FILES: SizeTable = SizeTable(&[
    (33, 1, 1),
    (21, 1, 3),
    (13, 3, 5),
    (10, 5, 11),
    (8, 11, 21),
    (5, 21, 43),
    (4, 43, 85),
    (3, 85, 171),
    (2, 171, 341),
    (1, 341, 1_707),
]);
pub(super) const MEAN_FILE: u64 = 27_351;
/// Bytes of a call that reads.
pub(super) const READS: SizeTable = SizeTable(&[(85, 8, 8), (8, 17, 23), (4, 33, 39), (2, 65, 71), (1, 129, 135)]);
/// Bytes of a call that writes, and the bound of appends.
pub(super) const WRITES: SizeTable =
    SizeTable(&[(50, 9, 15), (14, 17, 23), (14, 33, 39), (12, 65, 71), (10, 129, 135)]);

const SHAPE: f64 = 0.1;

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    let files = setting.plan.files;
    setting.spawn_rounds(&setting.main_set()?, async move |thread, set| round(thread, set, files).await);
    Some(())
}

async fn round(thread: &mut Thread, set: &FileSet, files: u64) -> Result<(), Over> {
    for _ in 0..3 {
        let held = set.to_read_from(number(thread, files)).await;
        read(thread, held).await?;
        set.release(held);
    }
    for _ in 0..6 {
        replace(thread, set, files).await?;
    }
    for _ in 0..3 {
        let held = set.to_change_from(number(thread, files)).await;
        thread.append_size = WRITES.next(&mut thread.rng);
        thread.append(held).await?;
        set.release(held);
    }
    Ok(())
}

async fn replace(thread: &mut Thread, set: &FileSet, files: u64) -> Result<(), Over> {
    let old = set.to_change_from(number(thread, files)).await;
    read(thread, old).await?;
    let mut new = set.to_make_from(number(thread, files)).await;
    new.size = old.size;
    let new = thread.create_as(set, new).await?;
    thread.io_size = in_blocks(WRITES.next(&mut thread.rng));
    thread.write_whole(new).await?;
    set.release(new);
    thread.delete(set, old).await
}

async fn read(thread: &mut Thread, held: Held) -> Result<(), Over> {
    thread.io_size = in_blocks(READS.next(&mut thread.rng));
    thread.read_whole(held).await
}

fn in_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

/// The file at which the search starts.
fn number(thread: &mut Thread, files: u64) -> u32 {
    let at = gamma(&mut thread.rng, SHAPE, SHAPE) * (files / 2) as f64;
    (at as u64 % files) as u32
}
