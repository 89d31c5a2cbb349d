//! webproxy: the cache of a proxy. In each round a thread deletes a page, creates one and writes it, and reads five.

use super::Setting;
use super::personality::Figures;
use super::set::FileSet;
use super::thread::Thread;
use crate::client::Over;

pub(super) const FIGURES: Figures = Figures { threads: 100, files: 10_000, ..Figures::USUAL };

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    setting.spawn_rounds(&setting.main_set()?, async |thread, set| round(thread, set).await);
    Some(())
}

async fn round(thread: &mut Thread, set: &FileSet) -> Result<(), Over> {
    thread.delete_next(set).await?;
    let new = thread.create(set).await?;
    thread.append(new).await?;
    set.release(new);
    for _ in 0..5 {
        thread.read_next(set).await?;
    }
    Ok(())
}
