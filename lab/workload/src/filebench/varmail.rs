//! varmail: a mail spool with one file a message. In each round a thread deletes a message; creates one, writes it and
//! makes it durable; reads one whole, appends to it and makes it durable; reads one whole.

use super::Setting;
use super::personality::Figures;
use super::set::FileSet;
use super::thread::Thread;
use crate::client::Over;

pub(super) const FIGURES: Figures = Figures::USUAL;

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    setting.spawn_rounds(&setting.main_set()?, async |thread, set| round(thread, set).await);
    Some(())
}

async fn round(thread: &mut Thread, set: &FileSet) -> Result<(), Over> {
    thread.delete_next(set).await?;
    let new = thread.create(set).await?;
    thread.append(new).await?;
    thread.fsync().await?;
    set.release(new);
    let old = set.to_change().await;
    thread.read_whole(old).await?;
    thread.append(old).await?;
    thread.fsync().await?;
    set.release(old);
    thread.read_next(set).await
}
