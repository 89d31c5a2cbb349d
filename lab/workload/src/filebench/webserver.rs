//! webserver: static pages, and one log. In each round a thread reads ten pages whole and appends to the log.
//!
//! filebench's log grows without bound. Here it restarts when it has reached a tenth of the drive's data space.

use super::Setting;
use super::personality::Figures;
use super::thread::Thread;

pub(super) const FIGURES: Figures =
    Figures { threads: 100, files: 1_000, dir_width: 20, existing: 1.0, ..Figures::USUAL };

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    let set = setting.main_set()?;
    let most = setting.fs.free_bytes().min(setting.fs.room_bytes() / 10);
    let log = setting.fs.add_file(setting.fs.lay_out_directory(1)?);
    for number in 0..setting.spec.threads {
        let (mut thread, set) = (setting.thread("thread", number.into()), set.clone());
        setting.spawn(async move {
            loop {
                let round = async |thread: &mut Thread| {
                    for _ in 0..10 {
                        thread.read_next(&set).await?;
                    }
                    thread.append_to(log, most).await
                };
                thread.timed(round).await?;
            }
        });
    }
    Some(())
}
