//! A client's bytes. What a client sends is read as far as its command needs, and what it does not take stops its commands: so a client
//! holds a bounded amount of memory. After some work for a client, all others have their turn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};

use super::line::Part;
use super::queue::Queue;
use crate::engine::Engine;

/// The longest command line; of a longer `get` or `gets`, the longest part.
pub const MOST_LINE: usize = 64 << 10;
/// Bytes that may wait for a client before its next command is served.
const MOST_UNSENT: usize = 256 << 10;
/// The most work for a client in a turn: commands, keys, and pieces of answers, some tens of microseconds in all.
const WORK: u32 = 128;
/// Bytes of an answer that are as much work as a piece of it.
const PIECE: usize = 4 << 10;

/// See the file.
pub struct Wire {
    sim: Sim,
    input: RefCell<Queue>,
    output: RefCell<Queue>,
    /// Bytes at the beginning of the input that are no line's end.
    looked: Cell<usize>,
    /// What becomes of the rest of a line of which a part was served.
    rest: Cell<Rest>,
    /// Bytes that came and that were sent, until they are counted.
    counts: Cell<[u64; 2]>,
    /// Bytes that the present command needs at once.
    needs: Cell<usize>,
    /// Something came, was sent, or ended.
    changed: Signal,
    /// A command is in work.
    is_busy: Cell<bool>,
    /// It waits for the rest of its data.
    is_partial: Cell<bool>,
    /// Commands that have ended.
    commands: Cell<u64>,
    /// The work for it at a time.
    work: Cell<(Time, u32)>,
    /// It waits for room in the engine, with its data.
    is_throttled: Cell<bool>,
    /// Bytes of data that the present command has taken.
    taken: Cell<usize>,
    /// Nothing more comes.
    is_gone: Cell<bool>,
    /// Nothing is sent any more.
    is_deaf: Cell<bool>,
    /// Its commands are not served any more.
    is_cut: Cell<bool>,
    /// The server ends: what the client does not take now it does not get.
    is_last: Cell<bool>,
    is_ended: Cell<bool>,
    /// Set when whoever moves its bytes has something to do: bytes to send, room for more, or its end.
    notice: Rc<Cell<bool>>,
    /// There is more to send, or it has ended.
    answered: Signal,
}

/// The rest of a line.
#[derive(Copy, Clone, Default)]
enum Rest {
    /// There is none.
    #[default]
    None,
    /// It has further keys of this command.
    Keys(&'static [u8]),
    /// It is passed over.
    Dropped,
}

impl Wire {
    /// A client that has sent nothing yet. `notice` is set when there is something to do for whoever moves its bytes.
    pub fn new(sim: &Sim, notice: &Rc<Cell<bool>>) -> Rc<Wire> {
        Rc::new(Wire {
            sim: sim.clone(),
            input: RefCell::default(),
            output: RefCell::default(),
            looked: Cell::new(0),
            rest: Cell::default(),
            counts: Cell::default(),
            needs: Cell::new(MOST_LINE),
            changed: Signal::new(sim),
            is_busy: Cell::new(false),
            is_partial: Cell::new(false),
            commands: Cell::new(0),
            work: Cell::default(),
            is_throttled: Cell::new(false),
            taken: Cell::new(0),
            is_gone: Cell::new(false),
            is_deaf: Cell::new(false),
            is_cut: Cell::new(false),
            is_last: Cell::new(false),
            is_ended: Cell::new(false),
            notice: notice.clone(),
            answered: Signal::new(sim),
        })
    }

    /// Bytes that may be given to it now.
    pub fn wants(&self) -> usize {
        self.needs.get().saturating_sub(self.input.borrow().len())
    }

    /// The client has sent bytes.
    pub fn received(&self, bytes: &[u8]) {
        self.input.borrow_mut().append(bytes);
        let [received, sent] = self.counts.get();
        self.counts.set([received + bytes.len() as u64, sent]);
        self.changed.notify();
    }

    /// The client sends nothing more. What it has sent is served.
    pub fn hang_up(&self) {
        self.is_gone.set(true);
        self.changed.notify();
    }

    /// The client takes nothing any more. What it has sent is served.
    pub fn close(&self) {
        self.is_deaf.set(true);
        self.output.take();
        self.hang_up();
    }

    /// The client is cut off: nothing of it is served that has not begun.
    pub fn cut(&self) {
        self.is_cut.set(true);
        self.input.take();
        self.looked.set(0);
        self.close();
    }

    /// The server ends: nothing more is read, and no answer is waited for.
    pub fn finish(&self) {
        self.is_last.set(true);
        self.hang_up();
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        self.input.borrow().held() + self.output.borrow().held() + self.taken.get()
    }

    /// Whether its command waits for room in the engine: it is the server that it waits for.
    pub fn is_throttled(&self) -> bool {
        self.is_throttled.get()
    }

    /// Whether it waits for the server: a command of it is in work, and whole.
    pub fn is_served(&self) -> bool {
        self.is_busy.get() && !self.is_partial.get()
    }

    /// Commands of it that have ended.
    pub fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Whether there is something to send.
    pub fn has_output(&self) -> bool {
        self.output.borrow().len() > 0
    }

    /// Has bytes sent: `send` takes some and returns how many.
    pub fn send<E>(&self, send: impl FnOnce(&[u8]) -> Result<usize, E>) -> Result<usize, E> {
        let mut output = self.output.borrow_mut();
        let sent = send(output.rest())?;
        output.pass(sent);
        let [received, before] = self.counts.get();
        self.counts.set([received, before + sent as u64]);
        self.changed.notify();
        Ok(sent)
    }

    /// Bytes that have come and that were sent since the last call.
    pub(crate) fn take_counts(&self) -> [u64; 2] {
        self.counts.take()
    }

    /// Whether it is to be closed once everything is sent.
    pub fn is_ended(&self) -> bool {
        self.is_ended.get()
    }

    /// Waits until there is something to send, or it has ended.
    pub async fn answer(&self) {
        while !self.has_output() && !self.is_ended() {
            self.answered.changed().await;
        }
    }

    pub(crate) fn end(&self) {
        self.is_ended.set(true);
        self.notice.set(true);
        self.answered.notify();
    }

    /// Appends to what is sent.
    pub(crate) fn put(&self, bytes: &[u8]) {
        if self.is_deaf.get() {
            return;
        }
        self.output.borrow_mut().append(bytes);
        self.count_work(1 + (bytes.len() / PIECE) as u32);
        self.notice.set(true);
        self.answered.notify();
    }

    /// Appends a line to what is sent.
    pub(crate) fn put_line(&self, line: &str) {
        self.put(line.as_bytes());
        self.put(b"\r\n");
    }

    fn count_work(&self, more: u32) {
        let (at, work) = self.work.get();
        let now = self.sim.now();
        self.work.set((now, if at == now { work.saturating_add(more) } else { more }));
    }

    /// A command or a key of one was served. Waits for the others if that was much at a time.
    pub(crate) async fn share(&self) {
        self.count_work(1);
        if self.work.get().1 > WORK {
            self.sim.sleep(Span::from_ns(1)).await;
        }
    }

    /// Notes how many bytes the present command needs at once.
    fn need(&self, bytes: usize) {
        self.needs.set(bytes);
        self.notice.set(true);
    }

    /// Waits until little waits to be sent; whether the next command is served.
    pub(crate) async fn room(&self) -> bool {
        while self.output.borrow().len() > MOST_UNSENT {
            if self.is_last.get() {
                return false;
            }
            self.changed.changed().await;
        }
        true
    }

    /// The next command line without its end, or a part of a longer one; `None` when there is none any more.
    pub(crate) async fn line(&self) -> Option<(Vec<u8>, Part)> {
        self.need(MOST_LINE);
        if self.is_busy.replace(false) {
            self.commands.set(self.commands.get() + 1);
        }
        self.taken.set(0);
        loop {
            let found = self.input.borrow().rest()[self.looked.get()..].iter().position(|byte| *byte == b'\n');
            if let Some(found) = found {
                let end = self.looked.take() + found;
                self.is_busy.set(true);
                let mut line = self.input.borrow().rest()[..end].to_vec();
                self.input.borrow_mut().pass(end + 1);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                match self.rest.take() {
                    Rest::None => return Some((line, Part::default())),
                    Rest::Keys(command) => {
                        return Some(([command, &line].concat(), Part { follows: true, continues: false }));
                    }
                    Rest::Dropped => {
                        self.is_busy.set(false);
                        continue;
                    }
                }
            }
            self.looked.set(self.input.borrow().len());
            if let Rest::Dropped = self.rest.get() {
                self.input.take();
                self.looked.set(0);
                self.notice.set(true);
            }
            if self.looked.get() >= MOST_LINE {
                let part = self.part();
                if part.is_none() {
                    self.put_line("CLIENT_ERROR line too long");
                }
                return part;
            }
            if self.is_gone.get() {
                return None;
            }
            self.changed.changed().await;
        }
    }

    /// The keys so far of a `get` that is too long for a line: it may have any number of them.
    fn part(&self) -> Option<(Vec<u8>, Part)> {
        let mut input = self.input.borrow_mut();
        let (follows, command): (bool, &'static [u8]) = match self.rest.get() {
            Rest::Keys(command) => (true, command),
            _ if input.rest().starts_with(b"get ") => (false, b"get "),
            _ if input.rest().starts_with(b"gets ") => (false, b"gets "),
            _ => return None,
        };
        let own = if follows { 0 } else { command.len() };
        let last = own + input.rest()[own..].iter().rposition(|byte| *byte == b' ')?;
        let keys = input.rest()[own..=last].to_vec();
        input.pass(last + 1);
        self.looked.set(0);
        self.is_busy.set(true);
        self.rest.set(Rest::Keys(command));
        Some(([command, &keys].concat(), Part { follows, continues: true }))
    }

    /// The rest of the line is passed over, if this was a part of one.
    pub(crate) fn drop_rest(&self) {
        if let Rest::Keys(_) = self.rest.get() {
            self.rest.set(Rest::Dropped);
        }
    }

    /// The data of a command, `len` bytes and a line's end, once the engine has room for it: `Some(None)` if the end is not where it belongs,
    /// `None` if the client has left.
    pub(crate) async fn data(&self, len: usize, engine: &Engine) -> Option<Option<Rc<[u8]>>> {
        let all = len.saturating_add(2);
        self.need(all);
        self.is_partial.set(true);
        while self.input.borrow().len() < all {
            if self.is_gone.get() {
                return None;
            }
            self.changed.changed().await;
        }
        self.is_partial.set(false);
        self.is_throttled.set(true);
        // A failure is what the command reports.
        let _ = engine.wait_for_room_unless(|| self.is_cut.get()).await;
        self.is_throttled.set(false);
        if self.is_cut.get() {
            return None;
        }
        self.need(MOST_LINE);
        self.taken.set(len);
        let mut input = self.input.borrow_mut();
        let is_right = &input.rest()[len..all] == b"\r\n";
        let value = is_right.then(|| Rc::from(&input.rest()[..len]));
        input.pass(all);
        Some(value)
    }

    /// Passes over the data of a command that is not served. Whether the client is still there.
    pub(crate) async fn skip(&self, len: u64) -> bool {
        let mut left = len.saturating_add(2);
        self.need(MOST_LINE);
        self.is_partial.set(true);
        loop {
            {
                let mut input = self.input.borrow_mut();
                let now = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                input.pass(now);
                left -= now as u64;
                self.notice.set(true);
            }
            if left == 0 {
                self.is_partial.set(false);
                return true;
            }
            if self.is_gone.get() {
                return false;
            }
            self.changed.changed().await;
        }
    }
}
