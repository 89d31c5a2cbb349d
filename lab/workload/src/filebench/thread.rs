//! The file operations of a personality's thread, as in filebench. Each is timed from its start to the end of its last
//! request.

use std::rc::Rc;

use nandscape_sim::{Rng, Span, Time};

use super::pace::Pace;
use super::set::{FileSet, Held};
use crate::client::{Client, Over};
use crate::filesystem::{FileId, FileSystem};

/// One thread.
pub(crate) struct Thread {
    pub(crate) client: Rc<Client>,
    pub(crate) fs: Rc<FileSystem>,
    pub(crate) rng: Rng,
    /// Bytes of a call that reads or writes a whole file.
    pub(crate) io_size: u64,
    /// Exclusive upper bound of appends in bytes.
    pub(crate) append_size: u64,
    /// Its pause after each round.
    pub(crate) think: Span,
    /// The rate limit of rounds.
    pub(crate) rounds: Rc<Pace>,
}

impl Thread {
    /// Does a round, and pauses.
    pub(crate) async fn timed(&mut self, round: impl AsyncFnOnce(&mut Thread) -> Result<(), Over>) -> Result<(), Over> {
        let turn = self.rounds.turn(self.now(), 1);
        self.client.sim().sleep_until(turn).await;
        let begun = self.now();
        round(self).await?;
        self.client.operation("round", begun);
        self.pause().await;
        Ok(())
    }

    /// Pauses for the think time.
    pub(crate) async fn pause(&self) {
        if !self.think.is_zero() {
            self.client.sim().sleep(self.think).await;
        }
    }

    fn now(&self) -> Time {
        self.client.sim().now()
    }

    /// Opens the next file, reads all of it, closes it.
    pub(crate) async fn read_next(&mut self, set: &FileSet) -> Result<(), Over> {
        let held = set.to_read().await;
        self.read_whole(held).await?;
        set.release(held);
        Ok(())
    }

    /// Reads a whole file, call by call.
    pub(crate) async fn read_whole(&mut self, held: Held) -> Result<(), Over> {
        let (begun, bytes) = (self.now(), self.fs.bytes(held.file));
        let mut from = 0;
        while from < bytes {
            self.fs.read(held.file, from, self.io_size).await?;
            from += self.io_size;
        }
        self.client.operation("read_file", begun);
        Ok(())
    }

    /// Creates the next file that does not exist, empty and in exclusive use.
    pub(crate) async fn create(&mut self, set: &FileSet) -> Result<Held, Over> {
        let held = set.to_make().await;
        self.create_as(set, held).await
    }

    /// Makes a file that was chosen.
    pub(crate) async fn create_as(&mut self, set: &FileSet, held: Held) -> Result<Held, Over> {
        let begun = self.now();
        self.fs.create(held.file).await?;
        set.made(held);
        self.client.operation("create", begun);
        Ok(held)
    }

    /// Writes a new file to its size, call by call.
    pub(crate) async fn write_whole(&mut self, held: Held) -> Result<(), Over> {
        let begun = self.now();
        let mut left = held.size;
        while left > 0 {
            let bytes = left.min(self.io_size);
            self.fs.append(held.file, bytes).await?;
            left -= bytes;
        }
        self.client.operation("write_file", begun);
        Ok(())
    }

    /// Reads a part of a file.
    pub(crate) async fn read_part(&mut self, file: FileId, from: u64, bytes: u64) -> Result<(), Over> {
        let begun = self.now();
        self.fs.read(file, from, bytes).await?;
        self.client.operation("read_part", begun);
        Ok(())
    }

    /// Appends a random number of bytes, as [`Thread::append_to`] does.
    pub(crate) async fn append(&mut self, held: Held) -> Result<(), Over> {
        self.append_to(held.file, u64::MAX).await
    }

    /// Appends a random number of bytes, uniform from 0 to below the append size. A file that would exceed `most`
    /// restarts at its beginning.
    pub(crate) async fn append_to(&mut self, file: FileId, most: u64) -> Result<(), Over> {
        let begun = self.now();
        let bytes = self.rng.below(self.append_size);
        if bytes > 0 {
            self.fs.append_below(file, bytes, most).await?;
        }
        self.client.operation("append", begun);
        Ok(())
    }

    /// Makes the thread's writes durable.
    pub(crate) async fn fsync(&mut self) -> Result<(), Over> {
        let begun = self.now();
        self.fs.fsync().await?;
        self.client.operation("fsync", begun);
        Ok(())
    }

    /// Deletes the next file that is not in use.
    pub(crate) async fn delete_next(&mut self, set: &FileSet) -> Result<(), Over> {
        let held = set.to_change().await;
        self.delete(set, held).await
    }

    /// Deletes a file in exclusive use.
    pub(crate) async fn delete(&mut self, set: &FileSet, held: Held) -> Result<(), Over> {
        let begun = self.now();
        self.fs.remove(held.file).await?;
        set.removed(held);
        self.client.operation("delete", begun);
        Ok(())
    }
}
