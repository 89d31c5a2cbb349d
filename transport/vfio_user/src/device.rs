//! The reactor's side of a guest: passes on its doorbells and interrupts, and executes requests of the side thread on
//! the reactor's thread.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use nandscape_drive::mem::Ask;
use nandscape_sim::Span;
use nandscape_transport_reactor::client::Gone;
use nandscape_transport_reactor::{Arrival, Client, Intake, Interest, Released};
use nandscape_wire_nvme::register;

use crate::asking::Asking;
use crate::doorbells::Watch;
use crate::interrupts::Interrupts;
use crate::listener::DoorbellMode;
use crate::memory::Memory;
use crate::writer::Outgoing;

/// A request of the side thread. It sends one at a time and waits for the outcome.
pub(crate) type Act = Box<dyn FnOnce(&mut Device, &mut Intake<'_>) + Send>;

/// See the module.
pub(crate) struct Device {
    acts: Receiver<Act>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) interrupts: Interrupts,
    doorbells: Rc<Watch>,
    /// Is notified when the reset under way has ended.
    resetting: Option<Sender<()>>,
    /// Messages to a client with memory that only it reaches.
    asking: Option<Asking>,
    /// Dropped with this: then no memory of the guest is used any more.
    _present: Sender<()>,
}

/// The parts of a device.
pub(crate) struct Parts {
    pub(crate) acts: Receiver<Act>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) interrupts: Interrupts,
    pub(crate) doorbells: Rc<Watch>,
    pub(crate) present: Sender<()>,
}

/// Acts done in one turn.
const ACTS_A_TURN: u32 = 4;
/// Doorbells that do not wake the reactor are checked again after this fraction of their silence, at most after the
/// maximum below. A wake-up takes some microseconds, so the checks use less than a hundredth of a core.
const SHARE_OF_SILENCE: u64 = 8;
const LONGEST_SLEEP: Span = Span::from_ms(2);

impl Device {
    /// A device for a guest that is connected.
    pub(crate) fn new(parts: Parts) -> Device {
        let Parts { acts, memory, interrupts, doorbells, present } = parts;
        Device { acts, memory, interrupts, doorbells, resetting: None, asking: None, _present: present }
    }

    /// The guest writes a dword of the properties.
    pub(crate) fn write_register(&mut self, offset: u32, value: u32, intake: &mut Intake<'_>) {
        let was_enabled = intake.register(register::CC) & register::CC_EN != 0;
        intake.arrive(Arrival::Register { offset, value });
        if offset == register::CC && was_enabled && value & register::CC_EN == 0 {
            self.doorbells.reset();
        }
    }

    /// A reset of the function; `done` is notified when it has ended.
    pub(crate) fn reset(&mut self, done: Sender<()>, intake: &mut Intake<'_>) {
        intake.arrive(Arrival::Reset);
        self.doorbells.reset();
        self.interrupts.reset();
        self.resetting = Some(done);
    }

    /// The client has memory that only it reaches.
    pub(crate) fn asks_by(&mut self, to: Sender<Outgoing>) {
        self.asking = Some(Asking::new(to));
    }

    /// The client has answered a message with a payload, or has refused it.
    pub(crate) fn answered(&mut self, id: u16, payload: Option<Vec<u8>>, intake: &mut Intake<'_>) {
        let Some(asking) = &mut self.asking else { return };
        if let Some((number, answer)) = asking.answered(id, payload) {
            intake.answer(number, answer);
        }
        while let Some(vector) = asking.next_interrupt() {
            self.interrupts.raise(vector);
        }
        self.interrupts.send();
    }

    /// Reports a reset that has ended.
    fn end_reset(&mut self, intake: &Intake<'_>) {
        let ended = |_: &mut Sender<()>| intake.register(register::CSTS) & register::CSTS_RDY == 0;
        if let Some(done) = self.resetting.take_if(ended) {
            // The side thread may have ended.
            let _ = done.send(());
        }
    }
}

impl Client for Device {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn interest(&self) -> Interest {
        Interest::default()
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut came = self.doorbells.look(|arrival| intake.arrive(arrival));
        for _ in 0..ACTS_A_TURN {
            match self.acts.try_recv() {
                Ok(act) => {
                    // Earlier doorbells must be passed on first.
                    self.doorbells.look(|arrival| intake.arrive(arrival));
                    act(self, intake);
                    came = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Gone::quietly()),
            }
        }
        if self.resetting.is_some() {
            self.end_reset(intake);
        }
        Ok(came)
    }

    fn before_sleep(&mut self, silent: Span) -> Option<Span> {
        self.doorbells.ask_for_events();
        let again = Span::from_ns(silent.ns() / SHARE_OF_SILENCE).min(LONGEST_SLEEP);
        // Nothing else would wake the reactor.
        (self.doorbells.mode() == DoorbellMode::Mapped).then_some(again)
    }

    /// Its completions are in its memory.
    fn complete(&mut self, _: Released) {}

    fn interrupt(&mut self, vector: u16) {
        if self.asking.as_mut().is_none_or(|asking| asking.interrupts(vector)) {
            self.interrupts.raise(vector);
        }
    }

    fn ask(&mut self, number: u64, ask: Ask) {
        self.asking.as_mut().expect("it has said that it has such memory").send(number, ask);
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.interrupts.send();
        self.asking.as_ref().map_or(Ok(()), Asking::check)
    }

    fn is_flushed(&self) -> bool {
        true
    }
}
