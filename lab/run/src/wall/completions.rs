//! Policies on completions at the wall clock: the thread of the loop learns of each command as a thread of a simulated host does.
//! Interrupts are event descriptors or sockets that it waits for in the system; polling keeps its processor busy.
//!
//! Where several commands are outstanding, it polls while any of them is to be polled for. Other commands of the same thread count as
//! others that want its processor.
//!
//! Left out: when the drive ended a command. The time from there to the thread is taken to be what the [control](super::control) has
//! measured. When a notice was posted is known only from what follows: a thread that polls until the end has lost of the announced time what is left of it
//! then, and one that finds the end has lost all of it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Token};
use nandscape_host_path::Config;
use nandscape_host_path::policy::{CompletionPolicy, Ended, Notice, PolicyKind, Submitted, Way};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::vendor::{Hints, NOTICE};

use super::completion_report::Learnt;
use super::control::Control;
use crate::host::thread_cpu;

/// What the loop does when nothing moved.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    /// It looks again at once.
    Look,
    /// It sleeps, and no completion wakes it.
    Sleep(Span),
    /// It waits for a completion, or for a time.
    Wait(Span),
}

/// What was counted. See [`CompletionReport`](super::CompletionReport).
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) learnt: [u64; Learnt::ALL.len()],
    pub(super) waits: u64,
    pub(super) sleeps: u64,
    pub(super) looks: u64,
}

/// See the file.
pub(super) struct Completions {
    me: Weak<Completions>,
    sim: Sim,
    clock: WallClock,
    kind: PolicyKind,
    policy: Box<dyn CompletionPolicy>,
    control: Control,
    flights: RefCell<Slots<Flight>>,
    counts: RefCell<Counts>,
    /// Gives the drive another window for its notices.
    set_window: RefCell<Option<SetWindow>>,
    /// The window that the drive was given last.
    window: Cell<Option<Span>>,
    /// Processor time of the thread when counting began.
    cpu: Cell<Span>,
}

type SetWindow = Box<dyn Fn(Span)>;

/// A command that has not ended.
struct Flight {
    of: Submitted,
    notice: Notice,
    token: Token,
    /// When the drive's notice says that it ends, as the thread saw it, and how long ahead that was.
    ends: Option<(Time, Span)>,
    /// The loop has polled for it; since the notice, if one is waited for.
    has_looked: bool,
    /// The loop has waited in the system since.
    has_waited: bool,
}

impl Completions {
    /// By the policy of a host's settings. `control` is what a wake-up takes.
    pub(super) fn new(sim: &Sim, clock: WallClock, config: &Config, control: Control) -> Rc<Completions> {
        Rc::new_cyclic(|me| Completions {
            me: me.clone(),
            sim: sim.clone(),
            clock,
            kind: config.completion,
            policy: config.completion.make(config),
            control,
            flights: RefCell::new(Slots::new()),
            counts: RefCell::default(),
            set_window: RefCell::default(),
            window: Cell::new(None),
            cpu: Cell::new(thread_cpu()),
        })
    }

    /// A drive whose commands are learnt of by the policy.
    pub(super) fn over(&self, base: Rc<dyn Drive>) -> Rc<dyn Drive> {
        Rc::new(Policed { base, completions: self.me.upgrade().expect("it is alive while it is called") })
    }

    /// Calls `set` with each window that the policy wants the drive's notices to have, the first at once.
    pub(super) fn on_window(&self, set: impl Fn(Span) + 'static) {
        self.set_window.replace(Some(Box::new(set)));
        self.renew_window();
    }

    /// The window that the drive was given last, if by the policy.
    pub(super) fn window(&self) -> Option<Span> {
        self.window.get()
    }

    fn renew_window(&self) {
        let set = self.set_window.borrow();
        if let Some((set, window)) = set.as_ref().and_then(|set| Some((set, self.policy.new_window()?))) {
            self.window.set(Some(window));
            set(window);
        }
    }

    /// The policy.
    pub(super) fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// What a wake-up takes.
    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// Counts from now on.
    pub(super) fn count_anew(&self) {
        self.counts.take();
        self.cpu.set(thread_cpu());
    }

    /// Processor time of the thread since then.
    pub(super) fn cpu(&self) -> Span {
        thread_cpu() - self.cpu.get()
    }

    /// What was counted.
    pub(super) fn counts(&self) -> Counts {
        self.counts.borrow().clone()
    }

    /// What to do now that nothing moved, for `longest` at most.
    pub(super) fn rest(&self, now: Time, longest: Span) -> Rest {
        let mut flights = self.flights.borrow_mut();
        let mut sleep: Option<Time> = None;
        let (mut looks, mut waits) = (false, false);
        for flight in flights.values_mut() {
            match flight.wants(now) {
                Wants::Look => {
                    looks = true;
                    flight.has_looked = true;
                }
                Wants::SleepUntil(at) => sleep = Some(sleep.map_or(at, |other| other.min(at))),
                Wants::Interrupt => waits = true,
            }
        }
        let longest = sleep.map_or(longest, |at| longest.min(at.since(now)));
        let mut counts = self.counts.borrow_mut();
        if looks {
            counts.looks += 1;
            return Rest::Look;
        }
        if sleep.is_some() && !waits {
            counts.sleeps += 1;
            return Rest::Sleep(longest);
        }
        // Without commands it waits for the next one of the load.
        counts.waits += u64::from(waits);
        flights.values_mut().for_each(|flight| flight.has_waited |= flight.wants(now) == Wants::Interrupt);
        Rest::Wait(longest)
    }

    fn submit(&self, base: &dyn Drive, io: Io) {
        let Io { mut command, mem, token } = io;
        let info = base.info();
        let others = self.flights.borrow().len();
        let of = Submitted { others, ..Submitted::by(self.clock.now(), &command, (info.lba_bytes, info.unit_bytes)) };
        if self.policy.asks() && of.can_ask() {
            command.cdw2 = (command.cdw2.get() | NOTICE).into();
        }
        let notice = self.policy.notice(&of);
        let flight = Flight { of, notice, token, ends: None, has_looked: false, has_waited: false };
        let key = self.flights.borrow_mut().insert(flight);
        let sink: Rc<dyn Sink> = self.me.upgrade().expect("it is alive while it is called");
        base.submit(Io { command, mem, token: Token::new(sink, key.to_bits()) });
    }

    /// The policy sees how a command has ended.
    fn end(&self, flight: &Flight, completion: &Completion) {
        let (now, wake) = (self.clock.now(), self.control.median());
        let learnt = flight.learnt(now);
        self.counts.borrow_mut().learnt[learnt as usize] += 1;
        let passed = now.since(flight.of.at.min(now));
        let (way, delay) = match learnt {
            Learnt::Woken | Learnt::Missing => (Way::Interrupt, wake.min(passed)),
            Learnt::GaveUp => (Way::GaveUp, wake.min(passed)),
            Learnt::Late => (Way::Late, Span::ZERO),
            Learnt::Ready => (Way::Ready, Span::ZERO),
            // It found the completion without waiting.
            Learnt::AtOnce | Learnt::Polled => (Way::Poll, Span::ZERO),
        };
        let has_count = self.policy.asks() && flight.of.can_ask() && completion.status.is_success();
        self.policy.completed(
            &flight.of,
            &Ended {
                took: passed - delay,
                way,
                delay,
                noticed: flight.noticed(learnt, now),
                buffer_free: has_count.then(|| Hints(completion.dw1).buffer_free().into()),
            },
        );
        self.renew_window();
    }
}

/// What a command asks of a loop that rests.
#[derive(PartialEq, Eq)]
enum Wants {
    Look,
    SleepUntil(Time),
    Interrupt,
}

impl Flight {
    fn wants(&self, now: Time) -> Wants {
        match self.notice {
            Notice::Interrupt => Wants::Interrupt,
            Notice::Poll(sleep) if now < self.of.at + sleep => Wants::SleepUntil(self.of.at + sleep),
            Notice::Poll(_) => Wants::Look,
            Notice::PollFor(span) if now <= self.of.at + span => Wants::Look,
            Notice::PollFor(_) => Wants::Interrupt,
            Notice::Announced(patience) => match self.ends {
                Some((ends, _)) if now <= ends + patience => Wants::Look,
                _ => Wants::Interrupt,
            },
        }
    }

    /// The time from the drive's notice to the thread. A thread that was late has missed all of the announced time; it counts half as much again, as the
    /// policy may want a window up to an eighth longer than the drive's. How long a thread took that gave up, the end does not show.
    fn noticed(&self, learnt: Learnt, now: Time) -> Option<Span> {
        let (ends, remaining) = self.ends?;
        match learnt {
            Learnt::Ready => Some(ends.since(now.min(ends))),
            Learnt::Late => Some(remaining + remaining / 2),
            _ => None,
        }
    }

    fn learnt(&self, now: Time) -> Learnt {
        let gave_up = self.has_waited && self.wants(now) == Wants::Interrupt;
        match (self.notice, self.ends) {
            (Notice::Interrupt, _) if self.has_waited => Learnt::Woken,
            (Notice::Interrupt, _) => Learnt::AtOnce,
            (Notice::Poll(_), _) => Learnt::Polled,
            (Notice::PollFor(_), _) if gave_up => Learnt::GaveUp,
            (Notice::PollFor(_), _) => Learnt::Polled,
            (Notice::Announced(_), None) => Learnt::Missing,
            (Notice::Announced(_), Some(_)) if gave_up => Learnt::GaveUp,
            (Notice::Announced(_), Some(_)) if self.has_looked => Learnt::Ready,
            (Notice::Announced(_), Some(_)) => Learnt::Late,
        }
    }
}

impl Sink for Completions {
    fn complete(&self, tag: u64, completion: Completion) {
        let Some(flight) = self.flights.borrow_mut().remove(Key::from_bits(tag)) else { return };
        self.end(&flight, &completion);
        flight.token.complete(completion);
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let now = self.clock.now();
        if let Some(flight) = self.flights.borrow_mut().get_mut(Key::from_bits(tag)) {
            flight.ends.get_or_insert((now + remaining, remaining));
            flight.has_waited = false;
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// A drive whose commands are learnt of by a policy.
struct Policed {
    base: Rc<dyn Drive>,
    completions: Rc<Completions>,
}

impl Drive for Policed {
    fn info(&self) -> DriveInfo {
        self.base.info()
    }

    fn submit(&self, io: Io) {
        self.completions.submit(&*self.base, io);
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Executor;
    use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

    use super::*;

    /// Keeps commands until the test ends them.
    #[derive(Default)]
    struct Held(RefCell<Vec<Io>>);

    impl Drive for Held {
        fn info(&self) -> DriveInfo {
            DriveInfo {
                nsid: 1,
                blocks: 1 << 20,
                lba_bytes: 512,
                metadata_bytes: 0,
                max_blocks: 256,
                unit_bytes: 4_096,
                volatile_cache: false,
                keeps_data: false,
            }
        }

        fn submit(&self, io: Io) {
            self.0.borrow_mut().push(io);
        }
    }

    struct Nobody;

    impl Sink for Nobody {
        fn complete(&self, _: u64, completion: Completion) {
            assert!(completion.status.is_success());
        }

        fn is_stopped(&self) -> bool {
            false
        }
    }

    struct Rig {
        held: Rc<Held>,
        drive: Rc<dyn Drive>,
        completions: Rc<Completions>,
        _executor: Executor,
    }

    fn rig(settings: &[&str]) -> Rig {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        let executor = Executor::new();
        let control = Control::of(vec![Span::from_us(5)], Span::ZERO);
        let completions = Completions::new(&executor.sim(), WallClock::start(), &config, control);
        let held = Rc::new(Held::default());
        Rig { drive: completions.over(held.clone()), held, completions, _executor: executor }
    }

    impl Rig {
        fn read(&self) -> Time {
            let command = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
            let token = Token::new(Rc::new(Nobody), 0);
            self.drive.submit(Io { command, mem: nandscape_drive::HostMem::none(), token });
            self.completions.flights.borrow_mut().values_mut().map(|flight| flight.of.at).max().unwrap()
        }

        fn end(&self) {
            let Io { token, .. } = self.held.0.borrow_mut().remove(0);
            token.complete(Completion::of(Status::SUCCESS));
        }

        fn learnt(&self, how: Learnt) -> u64 {
            self.completions.counts().learnt[how as usize]
        }
    }

    const LONGEST: Span = Span::from_s(3);

    #[test]
    fn an_interrupt_is_waited_for_and_polling_is_not() {
        let rig1 = rig(&["host.completion=interrupt"]);
        assert_eq!(rig1.completions.rest(Time::ZERO, LONGEST), Rest::Wait(LONGEST), "there is no command");
        let at = rig1.read();
        assert_eq!(rig1.completions.rest(at, LONGEST), Rest::Wait(LONGEST));
        rig1.end();
        rig1.read();
        rig1.end();
        assert_eq!((rig1.learnt(Learnt::Woken), rig1.learnt(Learnt::AtOnce)), (1, 1));
        let counts = rig1.completions.counts();
        assert_eq!((counts.waits, counts.sleeps, counts.looks), (1, 0, 0), "a wait without a command is none");
        let polled = rig(&["host.completion=poll"]);
        let at = polled.read();
        assert_eq!(polled.completions.rest(at + LONGEST, LONGEST), Rest::Look);
        polled.end();
        assert_eq!((polled.learnt(Learnt::Polled), polled.completions.counts().looks), (1, 1));
        polled.completions.count_anew();
        assert_eq!(polled.completions.counts().looks, 0);
    }

    #[test]
    fn hybrid_sleeps_for_a_part_of_the_mean_and_then_looks() {
        let rig = rig(&["host.completion=hybrid", "host.poll_sleep=100%"]);
        let at = rig.read();
        assert_eq!(rig.completions.rest(at, LONGEST), Rest::Look, "nothing is known");
        rig.end();
        let at = rig.read();
        let Rest::Sleep(mean) = rig.completions.rest(at, LONGEST) else { panic!("it sleeps") };
        assert!(mean > Span::ZERO && mean < LONGEST, "{mean}");
        assert_eq!(rig.completions.rest(at, mean / 2), Rest::Sleep(mean / 2), "a task is due before");
        assert_eq!(rig.completions.rest(at + mean, LONGEST), Rest::Look);
        rig.end();
        assert_eq!((rig.learnt(Learnt::Polled), rig.completions.counts().sleeps), (2, 2));
    }

    #[test]
    fn a_window_follows_what_of_the_announced_time_was_lost() {
        let rig = rig(&["host.completion=precompletion", "host.window=adaptive"]);
        let windows = Rc::new(RefCell::new(Vec::new()));
        let given = windows.clone();
        rig.completions.on_window(move |window| given.borrow_mut().push(window));
        assert_eq!((windows.borrow().len(), rig.completions.window()), (1, windows.borrow().first().copied()));
        let read = |looks: bool| {
            rig.read();
            let announce = rig.held.0.borrow()[0].token.announcer();
            announce(rig.completions.window().unwrap());
            if looks {
                assert_eq!(rig.completions.rest(Time::ZERO, LONGEST), Rest::Look);
            }
            rig.end();
        };
        // The end is there each time the thread sees the notice: the window grows by steps.
        (0..20).for_each(|_| read(false));
        assert_eq!(rig.learnt(Learnt::Late), 20);
        let grown = windows.borrow().clone();
        assert!(grown.len() > 5 && grown.is_sorted() && grown[grown.len() - 1] > grown[0] * 4, "{grown:?}");
        // Without a notice nothing is known of the window.
        rig.read();
        rig.end();
        assert_eq!(windows.borrow().len(), grown.len());
    }

    #[test]
    fn what_a_notice_has_lost_shows_when_the_command_ends() {
        let (ends, remaining) = (Time::ZERO + Span::from_us(50), Span::from_us(20));
        let notice = Notice::Announced(Span::from_us(20));
        let of = Submitted::by(Time::ZERO, &SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8), (512, 4_096));
        let token = Token::new(Rc::new(Nobody), 0);
        let flight = Flight { of, notice, token, ends: Some((ends, remaining)), has_looked: true, has_waited: false };
        let after = |us| Time::ZERO + Span::from_us(us);
        // The thread saw it at 30 us, for 50 us. It ended at 44 us: 6 of 20 us had passed.
        assert_eq!(flight.noticed(Learnt::Ready, after(44)), Some(Span::from_us(6)));
        assert_eq!(flight.noticed(Learnt::Ready, after(60)), Some(Span::ZERO), "it ended later than announced");
        assert!(flight.noticed(Learnt::Late, after(31)) > Some(remaining));
        assert_eq!(
            (flight.noticed(Learnt::GaveUp, after(90)), flight.noticed(Learnt::Missing, after(90))),
            (None, None)
        );
        flight.token.complete(Completion::of(Status::SUCCESS));
    }

    #[test]
    fn a_notice_ends_the_wait_and_patience_ends_the_polling() {
        let rig = rig(&["host.completion=precompletion", "host.patience=20us"]);
        let asked = |index: usize| rig.held.0.borrow()[index].command.cdw2.get() & NOTICE != 0;
        let announce = |index: usize| rig.held.0.borrow()[index].token.announcer()(Span::from_s(1));
        let at = rig.read();
        assert!(asked(0));
        assert_eq!(rig.completions.rest(at, LONGEST), Rest::Wait(LONGEST));
        announce(0);
        assert_eq!(rig.completions.rest(at, LONGEST), Rest::Look);
        rig.end();
        assert_eq!(rig.learnt(Learnt::Ready), 1);
        // It was not looked for in between, and without a notice.
        rig.read();
        announce(0);
        rig.end();
        rig.read();
        rig.end();
        assert_eq!((rig.learnt(Learnt::Late), rig.learnt(Learnt::Missing)), (1, 1));
        let at = rig.read();
        announce(0);
        assert_eq!(rig.completions.rest(at + Span::from_s(60), LONGEST), Rest::Wait(LONGEST), "it is long overdue");
        // One that is to be polled for has all of them looked at.
        let at = rig.read();
        announce(1);
        assert_eq!(rig.completions.rest(at, LONGEST), Rest::Look);
        rig.end();
        rig.end();
    }
}
