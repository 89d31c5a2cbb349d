//! Messages of a running server. A side thread prints them, so that serving threads never wait for a terminal or a pipe
//! without a reader. The rate of messages is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::WallClock;

use crate::output;

/// Notes that may wait to be printed.
const WAITING: usize = 256;
/// Notes printed in a second at most.
const A_SECOND: u64 = 20;
/// The longest wait at the end for notes to be printed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Takes notes.
#[derive(Clone)]
pub(super) struct Notes {
    tell: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

/// Prints them until the last of its [`Notes`] is dropped.
pub(super) struct Printer {
    done: Receiver<()>,
}

impl Notes {
    /// Starts printing.
    pub(super) fn start() -> std::io::Result<(Notes, Printer)> {
        let (tell, told) = sync_channel(WAITING);
        let (end, done) = channel();
        let lost = Arc::<AtomicU64>::default();
        let notes = Notes { tell, lost: lost.clone() };
        std::thread::Builder::new().name("notes".to_owned()).spawn(move || {
            print(&told, &lost, output::note);
            // The waiting thread may have ended.
            let _ = end.send(());
        })?;
        Ok((notes, Printer { done }))
    }

    /// Queues a note for printing.
    pub(super) fn say(&self, text: &str) {
        if let Err(TrySendError::Full(_)) = self.tell.try_send(text.to_owned()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Printer {
    /// Waits a moment until all is printed. By then all [`Notes`] should be gone.
    pub(super) fn finish(self) {
        // Without a reader, the rest is lost.
        let _ = self.done.recv_timeout(LAST_WORDS);
    }
}

/// Prints notes until all senders are dropped, at a limited rate per second.
fn print(told: &Receiver<String>, lost: &AtomicU64, note: impl Fn(&str)) {
    let clock = WallClock::start();
    let (mut second, mut printed) = (Time::ZERO, 0);
    loop {
        let next = match lost.load(Ordering::Relaxed) {
            0 => told.recv().map_err(RecvTimeoutError::from),
            _ => told.recv_timeout(Duration::from_secs(1)),
        };
        let now = clock.now();
        if now.since(second) >= Span::from_s(1) || next.is_err() {
            (second, printed) = (now, 0);
            match lost.swap(0, Ordering::Relaxed) {
                0 => {}
                count => note(&format!("and {count} more notes")),
            }
        }
        match next {
            Ok(text) if printed < A_SECOND => {
                note(&text);
                printed += 1;
            }
            Ok(_) => drop(lost.fetch_add(1, Ordering::Relaxed)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn notes_are_printed_in_order_and_floods_are_counted() {
        let (tell, told) = sync_channel(WAITING);
        let notes = Notes { tell, lost: Arc::default() };
        (0..300).for_each(|number| notes.say(&number.to_string()));
        let Notes { tell, lost } = notes;
        assert_eq!(lost.load(Ordering::Relaxed), 44, "more than may wait");
        drop(tell);
        let printed = RefCell::new(Vec::new());
        print(&told, &lost, |text| printed.borrow_mut().push(text.to_owned()));
        let printed = printed.into_inner();
        let (last, first) = printed.split_last().unwrap();
        // It may have taken more than a second, on a machine that is very slow.
        assert!(first.len() >= 20 && first[..20] == (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(last.starts_with("and ") && last.ends_with(" more notes"), "{last}");
    }
}
