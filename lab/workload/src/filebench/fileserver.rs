//! fileserver: users' files on a server. In each round a thread creates a file and writes it whole, appends to another,
//! reads a third whole, and deletes a fourth.

use super::Setting;
use super::personality::Figures;
use super::set::FileSet;
use super::thread::Thread;
use crate::client::Over;

pub(super) const FIGURES: Figures =
    Figures { threads: 50, files: 10_000, mean_size: 128 << 10, dir_width: 20, ..Figures::USUAL };

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    setting.spawn_rounds(&setting.main_set()?, async |thread, set| round(thread, set).await);
    Some(())
}

async fn round(thread: &mut Thread, set: &FileSet) -> Result<(), Over> {
    let new = thread.create(set).await?;
    thread.write_whole(new).await?;
    set.release(new);
    let old = set.to_change().await;
    thread.append(old).await?;
    set.release(old);
    thread.read_next(set).await?;
    thread.delete_next(set).await
}
