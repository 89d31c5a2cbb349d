//! Talking to a reactor from another thread: handing it clients, asking for figures, ending it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use nandscape_drive::DriveInfo;
use nandscape_sim::{Histogram, Time};

use crate::client::Client;
use crate::clock::WallClock;
use crate::timing::Timing;
use crate::waiter::Waker;

/// Makes a client on the reactor's thread, once it is connected.
pub type MakeClient = Box<dyn FnOnce(DriveInfo) -> Box<dyn Client> + Send>;

/// What is asked of a reactor.
pub(crate) enum Message {
    Connect { export: u16, make: MakeClient },
    Figures(Sender<Figures>),
    Stop,
}

/// Figures of a reactor since it began.
#[derive(Clone, Default)]
pub struct Figures {
    /// Drive time.
    pub now: Time,
    /// By drive, in the order of the setup.
    pub exports: Vec<ExportFigures>,
    /// How well it keeps up.
    pub timing: Timing,
    /// Clients connected.
    pub clients: usize,
    /// Commands in the drives.
    pub outstanding: usize,
    /// Why what arrives is not recorded, or not any more, though it should be.
    pub recording_problem: Option<String>,
}

/// Figures of one drive.
#[derive(Clone, Default)]
pub struct ExportFigures {
    /// Its name.
    pub name: String,
    /// Reads, compares, verifies.
    pub reads: Tally,
    /// Writes of any kind.
    pub writes: Tally,
    /// Everything without data: flushes, deallocations.
    pub others: Tally,
    /// What the drive itself counts, by name.
    pub counters: BTreeMap<&'static str, f64>,
}

/// Commands of one kind.
#[derive(Clone, Default)]
pub struct Tally {
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Latencies in drive time of those that succeeded.
    pub latency: Histogram,
}

/// A way to a reactor. Once the reactor has ended, nothing that is asked has an effect.
#[derive(Clone)]
pub struct Handle {
    messages: Sender<Message>,
    waker: Waker,
    clock: WallClock,
}

impl Handle {
    pub(crate) fn new(waker: Waker, clock: WallClock) -> (Handle, Receiver<Message>) {
        let (messages, inbox) = channel();
        (Handle { messages, waker, clock }, inbox)
    }

    /// The clock that the reactor takes its time from: the time since a completion's stamp is what passed since then.
    pub fn clock(&self) -> WallClock {
        self.clock
    }

    /// Connects a client to a drive. If the drive refuses, or the reactor has ended, `make` is dropped.
    pub fn connect(&self, export: u16, make: MakeClient) {
        self.send(Message::Connect { export, make });
    }

    /// Figures since the beginning; `None` when the reactor has ended.
    pub fn figures(&self) -> Option<Figures> {
        let (reply, figures) = channel();
        self.send(Message::Figures(reply));
        figures.recv().ok()
    }

    /// Asks the reactor to take in nothing more, to finish what it has, to flush, and to end.
    pub fn stop(&self) {
        self.send(Message::Stop);
    }

    /// Wakes the reactor to look after its clients.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    fn send(&self, message: Message) {
        // A reactor that has ended does not listen.
        let _ = self.messages.send(message);
        self.waker.wake();
    }
}
