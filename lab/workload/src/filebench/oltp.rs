//! oltp: a database. Each of 200 users reads 2 KiB at random, of the data files in turn, and posts to the log writer and
//! to all ten database writers. After each thousand posts, a database writer writes 100 random pages of 2 KiB at the
//! same time and makes them durable; after each 3,200, the log writer writes 256 KiB at a random place of the log.
//! Users wait when they are more than 2,000 posts (log writer: 1,000) ahead of a writer. So one page is written for
//! each page read.
//!
//! The last of the files is the log. Pages of 2 KiB are half a block of the file system: a block that is not in the
//! cache is read before it is written.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_sim::signal::Signal;

use super::Setting;
use super::personality::{Figures, Shrinks};
use super::set::{FileSet, Held};
use super::thread::Thread;
use crate::client::Over;

pub(super) const FIGURES: Figures = Figures {
    threads: 200,
    files: 11,
    mean_size: 10 << 20,
    dir_width: 1_024,
    existing: 1.0,
    io_size: 2 << 10,
    shrinks: Shrinks::Size,
    ..Figures::USUAL
};

const WRITERS: u64 = 10;
const PAGES_A_ROUND: u64 = 100;
const LOG_SIZE: u64 = 256 << 10;

pub(super) fn start(setting: &Setting<'_>) -> Option<()> {
    let data = setting.set("data", (setting.plan.files - 1).max(1), 1.0)?;
    let log = setting.set("log", 1, 1.0)?;
    let gate = |value, ahead| Rc::new(Gate::new(setting, value, ahead));
    let log_gate = gate(3_200, 1_000);
    let gates: Vec<Rc<Gate>> = (0..WRITERS).map(|_| gate(1_000, 2_000)).collect();

    let (mut writer, inner) = (setting.thread("log", 0), log_gate.clone());
    setting.spawn(async move {
        loop {
            write_log(&mut writer, &log).await?;
            inner.pass().await;
        }
    });
    for (number, gate) in gates.iter().cloned().enumerate() {
        let (mut writer, data) = (setting.thread("writer", number as u64), data.clone());
        setting.spawn(async move {
            loop {
                write_pages(&mut writer, &data).await?;
                gate.pass().await;
            }
        });
    }
    for number in 0..setting.spec.threads {
        let (mut user, data) = (setting.thread("user", number.into()), data.clone());
        let (log_gate, gates) = (log_gate.clone(), gates.clone());
        setting.spawn(async move {
            loop {
                read_page(&mut user, &data).await?;
                user.pause().await;
                log_gate.post().await;
                for gate in &gates {
                    gate.post().await;
                }
            }
        });
    }
    Some(())
}

/// A random offset for this number of bytes in a file, a multiple of them.
fn place(thread: &mut Thread, held: Held, bytes: u64) -> u64 {
    let places = thread.fs.bytes(held.file) / bytes;
    if places == 0 { 0 } else { thread.rng.below(places) * bytes }
}

async fn read_page(user: &mut Thread, data: &FileSet) -> Result<(), Over> {
    let held = data.to_read().await;
    let from = place(user, held, user.io_size);
    user.read_part(held.file, from, user.io_size).await?;
    data.release(held);
    Ok(())
}

/// Writes pages at the same time.
async fn write_pages(writer: &mut Thread, data: &FileSet) -> Result<(), Over> {
    let begun = writer.client.sim().now();
    let mut pages = Vec::new();
    for _ in 0..PAGES_A_ROUND {
        let held = data.to_read().await;
        pages.push((held.file, place(writer, held, writer.io_size), writer.io_size));
        data.release(held);
    }
    writer.fs.overwrite_all(&pages).await?;
    writer.fs.sync_data().await?;
    writer.client.operation("write_pages", begun);
    Ok(())
}

async fn write_log(writer: &mut Thread, log: &FileSet) -> Result<(), Over> {
    let begun = writer.client.sim().now();
    let held = log.to_read().await;
    let from = place(writer, held, LOG_SIZE);
    writer.fs.overwrite_all(&[(held.file, from, LOG_SIZE)]).await?;
    writer.fs.sync_data().await?;
    log.release(held);
    writer.client.operation("write_log", begun);
    Ok(())
}

/// A counting semaphore: many threads post, and one waits for a number of posts.
struct Gate {
    /// Posts that the waiting thread consumes at once.
    value: u64,
    /// Posts not yet consumed, and further posts allowed.
    posts: Cell<u64>,
    room: Cell<u64>,
    changed: Signal,
}

impl Gate {
    /// Allows posts to be `ahead` of the waiting thread.
    fn new(setting: &Setting<'_>, value: u64, ahead: u64) -> Gate {
        let changed = Signal::new(setting.client.sim());
        Gate { value, posts: Cell::new(0), room: Cell::new(ahead), changed }
    }

    /// Waits until there are enough posts, and consumes them.
    async fn pass(&self) {
        self.room.set(self.room.get() + self.value);
        self.changed.notify();
        while self.posts.get() < self.value {
            self.changed.changed().await;
        }
        self.posts.set(self.posts.get() - self.value);
    }

    /// Posts, or waits until a post is allowed.
    async fn post(&self) {
        while self.room.get() == 0 {
            self.changed.changed().await;
        }
        self.room.set(self.room.get() - 1);
        self.posts.set(self.posts.get() + 1);
        if self.posts.get() >= self.value {
            self.changed.notify();
        }
    }
}
