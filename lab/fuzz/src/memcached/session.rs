//! A server over an engine, a client, and how the client sends and receives.

use std::rc::Rc;

use nandscape_apps_memcached_engine::memcached::{MOST_LINE, Server, Wire};
use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Ack, Config, Engine, Given};
use nandscape_apps_store::Host;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Time};

use super::script::Script;

/// The time at which sessions begin: 2026, in seconds since 1970.
pub(super) const START_S: u64 = 1_767_225_600;
const SEGMENT: u64 = 64 << 10;
/// The most bytes of key and value of an item.
pub(super) const ITEM_LIMIT: usize = 32 << 10;
/// Bytes of a drive.
const DISK: usize = 4 << 20;
/// Bytes that the engine may hold, and changes that may wait in it.
const MEMORY: u64 = 8 << 20;
const DIRTY: u64 = 64 << 10;
/// The most bytes of the server's memory for a client: a line or an item with room ahead, 256 KiB of answers and one more item.
const MOST_HELD: usize = 2 * MOST_LINE + (256 << 10) + ITEM_LIMIT;
/// The most that an idle client holds.
const MOST_IDLE: usize = 8 << 10;
/// Answers beyond this are not taken: the client leaves.
const MOST_TAKEN: usize = 2 << 20;
/// A part of a script is served within this time. Each part begins as much later in its second than the part before, so that no delay of
/// whole seconds ends while a part is served.
const SLOT: Span = Span::from_ms(100);
/// A client that has sent so many pieces sends the rest at once.
const MOST_PIECES: u32 = 2_000;
/// The most bytes of a piece.
const PIECES: [u64; 6] = [1, 2, 7, 60, 1_500, 70_000];
/// So fast that a script takes a fraction of its slot.
const TIMES: Times = Times { read: Span::from_ns(100), write: Span::from_ns(200) };

/// How a client leaves.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Leave {
    HangsUp,
    Closes,
    IsCut,
    Finishes,
}

/// The server, and the end of the client.
pub(super) struct Setting {
    policy: &'static str,
    config: Config,
    leave: Leave,
    /// It does not wait for its last answers.
    is_hasty: bool,
}

impl Setting {
    pub(super) fn of(choice: u8) -> Setting {
        let fixed = Config {
            memory: MEMORY,
            dirty: DIRTY,
            segment: Some(SEGMENT),
            // Between the parts of a script, not within one.
            flush_after_ms: 500,
            start_s: START_S,
            ..Config::default()
        };
        let ack = if choice & 8 == 0 { Ack::Cache } else { Ack::All };
        let config = match choice & 3 {
            0 => Config { ack, ..fixed },
            // Each get reads a drive.
            1 => Config { ack, caches: false, ..fixed },
            2 => Config { ack, small: 1_024, ..fixed },
            // The time of access of an item is forgotten when it leaves for its bucket: that is not while a part is served.
            _ => Config { caches: false, small: 1_024, dirty: MEMORY / 2, ..fixed },
        };
        Setting {
            policy: if choice & 4 == 0 { "mixed" } else { "epochs" },
            config,
            leave: [Leave::HangsUp, Leave::Closes, Leave::IsCut, Leave::Finishes][usize::from(choice >> 4 & 3)],
            is_hasty: choice & 0x40 != 0,
        }
    }

    /// A session with a new server.
    ///
    /// # Panics
    /// When the client holds too much memory, or the server does not answer, or does not serve the next client.
    pub(super) fn session(&self, script: &Script, feed: Feed) -> Session {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ran = executor.block_on(async {
            let server = self.open(&sim).await;
            let mut client = Client::new(&sim, &server, feed);
            client.run(script, self).await;
            client.next_slot(script).await;
            let mut next = Client { begins: client.begins, ..Client::new(&sim, &server, Feed::whole()) };
            next.send(b"set another 0 0 1\r\n\n\r\nget another\r\n").await;
            next.settle().await;
            assert_eq!(next.received, b"STORED\r\nVALUE another 0 1\r\n\n\r\nEND\r\n", "what another client gets");
            assert!(next.wire.held() <= MOST_IDLE, "an idle client holds {} bytes", next.wire.held());
            let misses_some = self.is_hasty && self.leave != Leave::HangsUp;
            Session { is_complete: !client.is_full && !misses_some, received: client.received }
        });
        ran.expect("the server does not stall")
    }

    async fn open(&self, sim: &Sim) -> Rc<Server> {
        let drive = || Some(Given { io: QueueingDrive::new(sim, &Disk::new(DISK), TIMES), admin: None });
        let policy = policy(self.policy).expect("a policy");
        let engine = Engine::open(&Host::free(sim), vec![drive(), drive()], policy, self.config).await;
        let engine = engine.expect("the drives are empty");
        assert_eq!(engine.item_limit(), ITEM_LIMIT);
        Server::new(engine, "1")
    }
}

/// What came of a session.
pub(super) struct Session {
    pub(super) received: Vec<u8>,
    /// Whether those are all answers.
    pub(super) is_complete: bool,
}

/// How a client sends and receives.
pub(super) struct Feed {
    /// The most bytes at a time, and the choice of fewer; `None` takes and sends everything at once.
    pieces: Option<(u64, Rng)>,
    left: u32,
}

impl Feed {
    pub(super) fn whole() -> Feed {
        Feed { pieces: None, left: 0 }
    }

    /// Pieces of a size by the first number, cut by the second.
    pub(super) fn cut(size: u8, seed: u8) -> Feed {
        let most = PIECES[usize::from(size) % PIECES.len()];
        Feed { pieces: Some((most, Seed::new(seed.into()).child("pieces").rng())), left: MOST_PIECES }
    }

    fn piece(&mut self) -> usize {
        let Some((most, rng)) = self.pieces.as_mut().filter(|_| self.left > 0) else { return usize::MAX };
        self.left -= 1;
        1 + rng.below(*most) as usize
    }

    /// How long the client does something else.
    fn pause(&mut self) -> Span {
        self.pieces.as_mut().map_or(Span::from_us(1), |(_, rng)| Span::from_ns(1 + rng.below(1_000)))
    }

    fn waits(&mut self) -> bool {
        self.pieces.as_mut().is_some_and(|(_, rng)| rng.chance(0.5))
    }
}

struct Client {
    sim: Sim,
    server: Rc<Server>,
    wire: Rc<Wire>,
    feed: Feed,
    received: Vec<u8>,
    /// It has taken as many answers as it takes.
    is_full: bool,
    /// When the present slot began.
    begins: Time,
}

impl Client {
    fn new(sim: &Sim, server: &Rc<Server>, feed: Feed) -> Client {
        let wire = Wire::new(sim, &Rc::default());
        server.serve(&wire);
        let (sim, server) = (sim.clone(), server.clone());
        Client { sim, server, wire, feed, received: Vec::new(), is_full: false, begins: Time::ZERO }
    }

    async fn run(&mut self, script: &Script, setting: &Setting) {
        let last = script.parts.len() - 1;
        for (number, (second, bytes)) in script.parts.iter().enumerate() {
            self.begins = begins(*second, number);
            self.sim.sleep_until(self.begins).await;
            self.send(bytes).await;
            if number < last || !setting.is_hasty {
                self.settle().await;
            }
        }
        match setting.leave {
            Leave::HangsUp => self.wire.hang_up(),
            Leave::Closes => self.wire.close(),
            Leave::IsCut => self.wire.cut(),
            Leave::Finishes => self.wire.finish(),
        }
        while !self.wire.is_ended() || self.wire.has_output() {
            self.pause().await;
            self.take();
        }
        assert_eq!(self.server.counters().connections, 0, "a client that has left is counted");
    }

    /// Waits until nothing of the script is due.
    async fn next_slot(&mut self, script: &Script) {
        let (second, _) = script.parts.last().expect("there is one");
        self.begins = begins(*second, script.parts.len());
        self.sim.sleep_until(self.begins).await;
    }

    /// Sends as much as the server takes at a time, and receives meanwhile.
    async fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.wire.is_ended() && !self.is_full {
            let (now, later) = rest.split_at(self.feed.piece().min(rest.len()).min(self.wire.wants()));
            if !now.is_empty() {
                self.wire.received(now);
            }
            rest = later;
            self.take();
            if now.is_empty() || self.feed.waits() {
                self.pause().await;
            }
        }
    }

    /// Receives until the server waits for the client.
    async fn settle(&mut self) {
        loop {
            self.pause().await;
            self.take();
            if !self.wire.has_output() && (!self.wire.is_served() || self.wire.is_ended()) {
                return;
            }
        }
    }

    fn take(&mut self) {
        if self.received.len() > MOST_TAKEN && !self.is_full {
            self.is_full = true;
            self.wire.cut();
        }
        if self.wire.has_output() {
            let most = self.feed.piece();
            let received = &mut self.received;
            let taken = self.wire.send(|bytes| {
                let bytes = &bytes[..most.min(bytes.len())];
                received.extend_from_slice(bytes);
                Ok::<usize, ()>(bytes.len())
            });
            assert!(taken.is_ok());
        }
    }

    async fn pause(&mut self) {
        let held = self.wire.held();
        assert!(held <= MOST_HELD, "a client holds {held} bytes");
        let memory = self.server.engine().stats().memory_bytes;
        assert!(memory <= MEMORY, "the engine holds {memory} bytes");
        assert!(self.sim.now() < self.begins + SLOT, "the server does not answer");
        self.sim.sleep(self.feed.pause()).await;
    }
}

fn begins(second: u64, part: usize) -> Time {
    Time::ZERO + Span::from_s(second) + Span::from_ns(SLOT.ns() * part as u64)
}
