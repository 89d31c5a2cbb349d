//! A file that a side thread writes, so that its user never waits for a disk.
//!
//! Bytes are gathered for a moment and written together. When the program is killed, only the bytes gathered in that
//! moment are lost.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long bytes are gathered.
const MOMENT: Duration = Duration::from_millis(100);
/// Bytes that are written without waiting for the moment to end.
const PLENTY: usize = 1 << 20;
/// Bytes that may wait to be written. A file that is slower than the arrivals is abandoned there.
const MOST: usize = 256 << 20;

/// See the module.
pub(crate) struct SideFile {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Backlog>,
    /// There are bytes to write, or many, or the end is reached.
    news: Condvar,
    /// Set together with the failure: read without the lock.
    failed: AtomicBool,
}

#[derive(Default)]
struct Backlog {
    waiting: Vec<u8>,
    failure: Option<io::Error>,
    ended: bool,
}

impl SideFile {
    /// Starts a thread that hands gathered bytes to `write`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static) -> io::Result<SideFile> {
        let shared = Arc::<Shared>::default();
        let writer = shared.clone();
        let thread = std::thread::Builder::new().name("recording".to_owned()).spawn(move || writer.write_all(write))?;
        Ok(SideFile { shared, thread: Some(thread) })
    }

    /// Has bytes written, unless the file has failed.
    pub(crate) fn write(&self, bytes: &[u8]) {
        if self.has_failed() {
            return;
        }
        let mut state = self.shared.lock();
        let before = state.waiting.len();
        state.waiting.extend_from_slice(bytes);
        let now = state.waiting.len();
        if now > MOST {
            state.waiting = Vec::new();
            let problem = format!("it takes less than arrives, and {} MiB wait to be written", MOST >> 20);
            self.shared.fail(&mut state, io::Error::other(problem));
        }
        drop(state);
        if before == 0 || (before < PLENTY && now >= PLENTY) {
            self.shared.news.notify_one();
        }
    }

    /// Whether writing has ended with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Why.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.as_ref().map(io::Error::to_string)
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// When it cannot be.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.shared.lock().ended = true;
        self.shared.news.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| io::Error::other("its writer has panicked"))?;
        }
        self.shared.lock().failure.take().map_or(Ok(()), Err)
    }
}

impl Drop for SideFile {
    /// The thread ends once it has written all bytes.
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.news.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, state: &mut Backlog, error: io::Error) {
        state.failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// The life of the thread.
    fn write_all(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) {
        let mut bytes = Vec::new();
        while self.gather(&mut bytes) {
            let written = write(&bytes);
            bytes.clear();
            if let Err(error) = written {
                self.fail(&mut self.lock(), error);
                return;
            }
        }
    }

    /// Waits for bytes and takes them; whether there may be more.
    fn gather(&self, bytes: &mut Vec<u8>) -> bool {
        let state = self.lock();
        let nothing = |state: &mut Backlog| state.waiting.is_empty() && !state.ended;
        let state = self.news.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        let little = |state: &mut Backlog| state.waiting.len() < PLENTY && !state.ended;
        let (mut state, _) =
            self.news.wait_timeout_while(state, MOMENT, little).unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(bytes, &mut state.waiting);
        !(state.ended && bytes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    fn start(mut file: File) -> SideFile {
        SideFile::start(move |bytes| file.write_all(bytes)).unwrap()
    }

    #[test]
    fn everything_is_written_in_order_by_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = start(File::create(&path).unwrap());
        let mut expected = Vec::new();
        for number in 0..50_000u32 {
            file.write(&[&number.to_le_bytes()[..], &[7; 96]].concat());
            expected.extend_from_slice(&number.to_le_bytes());
            expected.extend_from_slice(&[7; 96]);
        }
        file.end().unwrap();
        assert!(std::fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn what_waits_is_written_although_nothing_more_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = start(File::create(&path).unwrap());
        file.write(b"one");
        while std::fs::read(&path).unwrap() != b"one" {
            std::thread::yield_now();
        }
        file.end().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_takes_nothing_fails_and_is_not_waited_for() {
        let full = start(File::options().write(true).open("/dev/full").unwrap());
        full.write(b"one");
        while !full.has_failed() {
            std::thread::yield_now();
        }
        full.write(b"two");
        assert!(full.failure().unwrap().contains("No space left"));
        assert!(full.end().is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_takes_less_than_arrives_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        // A pipe that is never read.
        let pipe = File::options().read(true).write(true).open(&path).unwrap();
        let file = start(pipe);
        let megabyte = vec![1; 1 << 20];
        let taken = (0..1_000).take_while(|_| {
            file.write(&megabyte);
            !file.has_failed()
        });
        // The thread may have taken some meanwhile.
        assert!((256..=520).contains(&taken.count()));
        assert!(file.failure().unwrap().contains("takes less than arrives"));
        // Its thread waits for the pipe forever, so it is not joined.
        std::mem::forget(file);
    }
}
