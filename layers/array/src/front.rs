//! Commands of hosts on arrival. A read within one chunk of a whole array is passed to a member, into the host's
//! memory: most reads need no more. Every other command gets a task, and so does such a read after an error.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use nandscape_drive::command::Command;
use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Io, Token};
use nandscape_sim::Time;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::workers::Workers;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::array::{Core, Job, Paths};
use crate::flight::Sent;
use crate::geometry::Segment;
use crate::read::is_busy;
use crate::serve::PASSED;

/// See the file.
pub(crate) struct Front {
    core: Rc<Core>,
    workers: Workers<Job>,
    passed_on: RefCell<Slots<PassedOn>>,
    me: Weak<Front>,
}

/// A read that a member has.
struct PassedOn {
    io: Io,
    begun: Time,
    paths: Paths,
    sent: Sent,
}

impl Front {
    pub(crate) fn new(core: &Rc<Core>) -> Rc<Front> {
        let serving = core.clone();
        let workers = Workers::new(&core.sim, async move |job: &mut Job| serving.clone().serve(job).await);
        Rc::new_cyclic(|me| Front { core: core.clone(), workers, passed_on: RefCell::default(), me: me.clone() })
    }

    pub(crate) fn submit(&self, io: Io, paths: &Paths) {
        match self.core.within_chunk(&io) {
            Some(place) => self.pass_on(io, paths, place),
            None => {
                let job = Job { io: Some(io), begun: self.core.sim.now(), paths: paths.clone(), answer: None };
                self.workers.start(job);
            }
        }
    }

    fn pass_on(&self, io: Io, paths: &Paths, (stripe, segment, attributes): (u64, Segment, u32)) {
        let core = &*self.core;
        let member = core.choose_copy(stripe, segment.index, 0);
        let mut stats = core.stats.borrow_mut();
        stats.reads += 1;
        stats.members[member].reads += 1;
        drop(stats);
        core.in_work.set(core.in_work.get() + 1);
        let sent = core.sent(member);
        let entry = core.sub_command(IoOpcode::READ, sent, (stripe, segment.span()));
        let command = SubmissionEntry { cdw2: attributes.into(), ..entry };
        let mem = io.mem.part(0, core.geometry.bytes(segment.blocks));
        let passed = PassedOn { io, begun: core.sim.now(), paths: paths.clone(), sent };
        let tag = self.passed_on.borrow_mut().insert(passed).to_bits();
        let me = self.me.upgrade().expect("an array in use is alive");
        paths[sent.drive].submit(Io { command, mem, token: Token::new(me, tag) });
    }

    /// Cancels a read that waits in a member.
    pub(crate) fn cancel(&self, command: CommandRef) -> bool {
        let passed_on = self.passed_on.borrow();
        let Some(key) = passed_on.find(|passed| passed.io.token.is_of(command)) else { return false };
        let Some(drive) = passed_on.get(key).map(|passed| passed.paths[passed.sent.drive].clone()) else {
            return false;
        };
        drop(passed_on);
        let me: Rc<dyn Sink> = self.me.upgrade().expect("an array in use is alive");
        drive.cancel(CommandRef::new(&me, key.to_bits()))
    }
}

impl Sink for Front {
    fn complete(&self, tag: u64, completion: Completion) {
        let passed = self.passed_on.borrow_mut().remove(Key::from_bits(tag)).expect("a command completes once");
        let (core, PassedOn { io, begun, paths, sent }) = (&*self.core, passed);
        core.in_work.set(core.in_work.get() - 1);
        if completion.status.is_success() {
            core.passed_read_ended(sent.member, is_busy(&completion));
            core.end(io, begun, Ok(completion.breakdown));
        } else {
            self.workers.start(Job { io: Some(io), begun, paths, answer: Some((sent, completion)) });
        }
    }

    fn is_stopped(&self) -> bool {
        self.core.sim.is_stopped()
    }
}

impl Core {
    /// The place of a read that can be passed on, and its attributes.
    fn within_chunk(&self, io: &Io) -> Option<(u64, Segment, u32)> {
        if IoOpcode(io.command.opcode) != IoOpcode::READ || self.missing_anywhere() != 0 {
            return None;
        }
        let first = self.tail.asks_first()?;
        let Ok(Command::Read(extent)) = Command::parse(io, &self.info) else { return None };
        let (stripe, segment) = self.geometry.within_chunk(extent.slba, extent.blocks)?;
        Some((stripe, segment, io.command.cdw2.get() & PASSED | first))
    }

    /// Counts a stripe read that was one sub-I/O.
    fn passed_read_ended(&self, member: usize, is_busy: bool) {
        let mut stats = self.stats.borrow_mut();
        stats.stripe_reads += 1;
        stats.busy[usize::from(is_busy)] += 1;
        stats.members[member].busy += u64::from(is_busy);
        drop(stats);
        if is_busy && self.level.tolerates() == 0 {
            self.overruns.set(self.overruns.get() + 1);
        }
    }
}
