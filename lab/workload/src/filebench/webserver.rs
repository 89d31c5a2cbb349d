//! webserver: static pages, and one log. In each round a thread reads ten pages whole and appends to the log.
//!
//! The log of filebench grows without end. Here it begins anew when it has reached a tenth of the drive's room for data.

use std::rc::Rc;

use super::Setting;
use super::personality::Figures;
use super::thread::Thread;
use crate::client::Over;
use crate::filesystem::FileId;

pub(super) const FIGURES: Figures =
    Figures { threads: 100, files: 1_000, dir_width: 20, existing: 1.0, ..Figures::USUAL };

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    let set = setting.main_set()?;
    let most = setting.fs.free_bytes().min(setting.fs.room_bytes() / 10);
    let log = Rc::new(Log { file: setting.fs.add_file(setting.fs.lay_out_directory(1)?), most });
    for number in 0..setting.spec.threads {
        let (mut thread, set, log) = (setting.thread("thread", number.into()), set.clone(), log.clone());
        setting.spawn(async move {
            loop {
                let round = async |thread: &mut Thread| {
                    for _ in 0..10 {
                        thread.read_next(&set).await?;
                    }
                    log.append(thread).await
                };
                thread.timed(round).await?;
            }
        });
    }
    Some(())
}

struct Log {
    file: FileId,
    /// Bytes from which on it begins anew.
    most: u64,
}

impl Log {
    async fn append(&self, thread: &mut Thread) -> Result<(), Over> {
        if thread.fs.bytes(self.file) + thread.append_size > self.most {
            thread.fs.truncate(self.file);
        }
        thread.append_to(self.file).await
    }
}
