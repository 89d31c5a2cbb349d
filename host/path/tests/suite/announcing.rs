//! A drive that announces the end of reads that ask, as one with a precompletion window does, and returns the free space of its write
//! buffer.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::vendor::{Hints, NOTICE};

use crate::rig::DRIVE_US;

/// How a drive announces.
#[derive(Copy, Clone)]
pub(crate) struct Lead {
    /// How long before the end; `None` announces nothing.
    pub(crate) before: Option<Span>,
    /// The time that it predicts then.
    pub(crate) predicts: Span,
    /// The free space that it returns.
    pub(crate) free: u32,
}

/// The deadlines (CDW3) of submitted commands, and when each was submitted.
pub(crate) type Deadlines = Rc<RefCell<Vec<(u32, Time)>>>;

/// See the file.
pub(crate) struct Announcing {
    me: Weak<Announcing>,
    sim: Sim,
    below: Rc<dyn Drive>,
    lead: Rc<Cell<Lead>>,
    deadlines: Deadlines,
    passing: RefCell<Slots<Token>>,
}

impl Announcing {
    pub(crate) fn over(sim: &Sim, below: Rc<dyn Drive>, lead: &Rc<Cell<Lead>>, deadlines: &Deadlines) -> Rc<dyn Drive> {
        let (sim, lead, deadlines) = (sim.clone(), lead.clone(), deadlines.clone());
        Rc::new_cyclic(|me| Announcing { me: me.clone(), sim, below, lead, deadlines, passing: RefCell::default() })
    }
}

impl Drive for Announcing {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        self.deadlines.borrow_mut().push((command.cdw3.get(), self.sim.now()));
        let asks = command.cdw2.get() & NOTICE != 0;
        let key = self.passing.borrow_mut().insert(token);
        let me = self.me.upgrade().expect("a drive in use is alive");
        let Lead { before, predicts, .. } = self.lead.get();
        if let Some(before) = before.filter(|_| asks && IoOpcode(command.opcode) == IoOpcode::READ) {
            let me = me.clone();
            self.sim.spawn(async move {
                me.sim.sleep(Span::from_us(DRIVE_US) - before).await;
                let announcer = me.passing.borrow().get(key).map(Token::announcer);
                announcer.into_iter().for_each(|announce| announce(predicts));
            });
        }
        self.below.submit(Io { command, mem, token: Token::new(me, key.to_bits()) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let key = self.passing.borrow().find(|token| token.is_of(command));
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a drive in use is alive");
        key.is_some_and(|key| self.below.cancel(CommandRef::new(&me, key.to_bits())))
    }
}

impl Sink for Announcing {
    fn complete(&self, tag: u64, completion: Completion) {
        let token = self.passing.borrow_mut().remove(Key::from_bits(tag));
        let dw1 = Hints(completion.dw1).with_buffer_free(self.lead.get().free).0;
        token.into_iter().for_each(|token| token.complete(Completion { dw1, ..completion.clone() }));
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}
