//! A polling reactor, as of SPDK: a thread with a processor to itself submits for all applications that it serves, and polls for
//! their completions. It runs outside the kernel: no system call, no block layer, no interrupt, no wake-up, no copy.
//!
//! | cost | for |
//! |---|---|
//! | `host.user` | what the application does for an I/O, on the reactor's processor |
//! | `host.driver` | a command that is submitted |
//! | `host.poll`, `host.handler` | a completion that is found and taken |
//!
//! Left out: reactors that pass requests on to each other, and those that sleep without work (SPDK's interrupt mode).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Token};
use nandscape_host_machine::{Affinity, ConfigError, Context, Event, Mode, ThreadSpec};
use nandscape_sim::slots::Key;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::Status;

use crate::config::Costs;
use crate::path::{Path, Taken};
use crate::ring::Ended;
use crate::stages::{Legs, stage};

/// See the file. Its thread ends with the simulation.
pub struct Reactor {
    path: Rc<Path>,
    /// Requests of the applications, and when they came.
    asked: RefCell<VecDeque<(Io, Time)>>,
    outstanding: RefCell<Vec<(Key, Token, Legs)>>,
    ended: Rc<Ended>,
}

impl Reactor {
    /// A reactor on a processor.
    ///
    /// # Errors
    /// That the processor does not exist.
    pub fn new(path: &Rc<Path>, cpu: usize) -> Result<Rc<Reactor>, ConfigError> {
        let spec = ThreadSpec { affinity: Affinity::one(cpu), ..ThreadSpec::default() };
        let thread = path.machine().thread(spec)?;
        let ended = Rc::new(Ended::polled(Event::new(path.machine())));
        let reactor =
            Rc::new(Reactor { path: path.clone(), asked: RefCell::default(), outstanding: RefCell::default(), ended });
        path.sim.spawn(reactor.clone().serve(thread));
        Ok(reactor)
    }

    /// An application that uses a namespace, which `info` describes.
    pub fn connect(self: &Rc<Reactor>, info: DriveInfo) -> Rc<dyn Drive> {
        Rc::new(Served { reactor: self.clone(), info })
    }

    async fn serve(self: Rc<Reactor>, thread: Context) {
        loop {
            let asked = self.asked.borrow_mut().pop_front();
            if let Some((io, arrived)) = asked {
                self.submit(&thread, io, arrived).await;
            }
            let ended = self.ended.pop();
            if let Some(key) = ended {
                self.reap(&thread, key).await;
            }
            let news = poll_fn(|_| {
                let has_news = !self.asked.borrow().is_empty() || self.ended.is_any();
                self.ended.polls((!has_news).then(|| self.path.sim.current_task()));
                if has_news { Poll::Ready(()) } else { Poll::Pending }
            });
            thread.spin_until(news).await;
        }
    }

    /// Work of the reactor for one request, as a stage of it.
    async fn work(&self, thread: &Context, span: Span, (stage, legs): (&'static str, &mut Legs)) {
        if !span.is_zero() {
            thread.work(span, Mode::User).await;
        }
        legs.pass(stage, self.path.sim.now());
    }

    async fn submit(&self, thread: &Context, io: Io, arrived: Time) {
        let Costs { user, driver, .. } = self.path.config.costs;
        let Io { command, mem, token } = io;
        let mut legs = Legs::begin(arrived, self.path.sim.now(), None);
        self.work(thread, user, (stage::THREAD, &mut legs)).await;
        self.work(thread, driver, (stage::DRIVER, &mut legs)).await;
        // The drive may complete it at once: it is outstanding before.
        let key = self.path.reserve((thread.cpu(), legs.arrived), (self.ended.clone(), false), (command, mem));
        self.outstanding.borrow_mut().push((key, token, legs));
        self.path.send_or_wait(key);
    }

    async fn reap(&self, thread: &Context, key: Key) {
        let Costs { poll, handler, .. } = self.path.config.costs;
        let at = self.outstanding.borrow().iter().position(|(of, ..)| *of == key);
        let (_, token, mut legs) = self.outstanding.borrow_mut().swap_remove(at.expect("it has been submitted"));
        let Taken { issued, done, mut completion, .. } = self.path.take_ended(key, Some(thread));
        legs.pass(stage::QUEUE, issued);
        legs.at = done;
        legs.pass(stage::RING, self.path.sim.now());
        self.work(thread, poll, (stage::POLL, &mut legs)).await;
        self.work(thread, handler, (stage::COMPLETE, &mut legs)).await;
        legs.charge(&mut completion);
        token.complete(completion);
    }
}

/// An application that a reactor serves.
struct Served {
    reactor: Rc<Reactor>,
    info: DriveInfo,
}

impl Drive for Served {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        let Reactor { path, asked, ended, .. } = &*self.reactor;
        asked.borrow_mut().push_back((io, path.sim.now()));
        if let Some(task) = ended.polls(None) {
            path.sim.wake(task);
        }
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut asked = self.reactor.asked.borrow_mut();
        let Some(at) = asked.iter().position(|(io, _)| io.token.is_of(command)) else { return false };
        let waiting = asked.remove(at);
        drop(asked);
        waiting.into_iter().for_each(|(io, _)| io.token.complete(Completion::of(Status::ABORT_REQUESTED)));
        true
    }
}
