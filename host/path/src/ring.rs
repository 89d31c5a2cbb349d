//! Applications with io_uring, as a drive: a thread with a ring has several I/Os outstanding, and one system call submits and reaps many.
//!
//! | `host.ring` | who submits | who ends I/Os, and when |
//! |---|---|---|
//! | `defer_taskrun` | the thread, in its system call | the thread, when it is woken in its system call; interrupts only note what has ended |
//! | `iopoll` | the same | the thread, which keeps its processor busy in its system call until one has ended |
//! | `sqpoll` | a thread of the kernel, which looks for entries until it has found none for `host.sqpoll_idle` | the interrupt |
//!
//! `reactor` is no io_uring: see [`Reactor`](crate::Reactor).
//!
//! Left out: registered buffers and files, linked entries, work that the kernel hands to other threads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Token};
use nandscape_host_machine::{ConfigError, Context, Event, Mode, Role, ThreadSpec};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::Key;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::config::{Costs, RingKind, half};
use crate::path::{Path, Taken, copy_of, is_to_drive};
use crate::stages::{Account, Legs, stage};

/// See the file. The threads end with the simulation.
pub struct Ring {
    path: Rc<Path>,
    info: DriveInfo,
    kind: RingKind,
    /// Requests of the application, and when they came.
    asked: RefCell<VecDeque<(Io, Time)>>,
    /// Entries for the thread of the kernel.
    entries: RefCell<VecDeque<Request>>,
    outstanding: RefCell<Vec<Outstanding>>,
    /// The thread of the kernel sleeps here; its task, while it looks for entries.
    kernel: Event,
    kernel_task: Cell<Option<TaskId>>,
    is_kernel_awake: Cell<bool>,
    ended: Rc<Ended>,
}

/// I/Os of a ring whose completions have come, for the thread that takes them.
pub(crate) struct Ended {
    keys: RefCell<VecDeque<Key>>,
    /// The thread sleeps here, for an I/O that ends or one that is requested.
    pub(crate) event: Event,
    /// Its task, while it polls.
    task: Cell<Option<TaskId>>,
    /// Whether the interrupt ends I/Os, or only notes them.
    pub(crate) ends_in_interrupt: bool,
}

impl Ended {
    /// Of a thread that looks for them itself.
    pub(crate) fn polled(event: Event) -> Ended {
        Ended { keys: RefCell::default(), event, task: Cell::new(None), ends_in_interrupt: false }
    }

    /// From now on this task polls, or none does. Returns the one that did.
    pub(crate) fn polls(&self, task: Option<TaskId>) -> Option<TaskId> {
        self.task.replace(task)
    }

    /// Whether an I/O has ended that was not taken.
    pub(crate) fn is_any(&self) -> bool {
        !self.keys.borrow().is_empty()
    }

    /// Takes the one that ended first.
    pub(crate) fn pop(&self) -> Option<Key> {
        self.keys.borrow_mut().pop_front()
    }

    /// The completion of an I/O has come. Returns the task of a thread that polls for it.
    pub(crate) fn push(&self, key: Key) -> Option<TaskId> {
        self.keys.borrow_mut().push_back(key);
        self.task.take()
    }
}

/// A request, with the time that it has spent.
struct Request {
    io: Io,
    legs: Legs,
}

/// A request in the drive.
struct Outstanding {
    key: Key,
    token: Token,
    legs: Legs,
    /// Copying its data to the application.
    copy: Span,
}

impl Ring {
    /// A thread with a ring of a kind, which uses a namespace that `info` describes.
    ///
    /// # Errors
    /// That a thread may not run on any processor.
    pub fn new(path: &Rc<Path>, info: DriveInfo, kind: RingKind, spec: ThreadSpec) -> Result<Rc<Ring>, ConfigError> {
        let machine = path.machine();
        let ended = Rc::new(Ended {
            keys: RefCell::default(),
            event: Event::new(machine),
            task: Cell::new(None),
            ends_in_interrupt: kind == RingKind::Sqpoll,
        });
        let ring = Rc::new(Ring {
            path: path.clone(),
            info,
            kind,
            asked: RefCell::default(),
            entries: RefCell::default(),
            outstanding: RefCell::default(),
            kernel: Event::new(machine),
            kernel_task: Cell::new(None),
            is_kernel_awake: Cell::new(false),
            ended,
        });
        let thread = machine.thread(spec)?;
        path.sim.spawn(ring.clone().serve(thread));
        if kind == RingKind::Sqpoll {
            path.sim.spawn(ring.clone().look(machine.thread(ThreadSpec { role: Role::Kernel, ..spec })?));
        }
        Ok(ring)
    }

    /// Threads: that of the application, and that of the kernel if there is one.
    pub fn count(&self) -> u32 {
        if self.kind == RingKind::Sqpoll { 2 } else { 1 }
    }

    fn costs(&self) -> Costs {
        self.path.config().costs
    }

    fn now(&self) -> Time {
        self.path.sim.now()
    }

    /// Work of a thread on one request, as a stage of it.
    async fn work(&self, thread: &Context, (span, mode): (Span, Mode), (stage, legs): (&'static str, &mut Legs)) {
        if !span.is_zero() {
            thread.work(span, mode).await;
        }
        legs.pass(stage, self.now());
    }

    async fn serve(self: Rc<Ring>, thread: Context) {
        let mut idle = None;
        loop {
            let asked: Vec<(Io, Time)> = self.asked.borrow_mut().drain(..).collect();
            let has_none = self.outstanding.borrow().is_empty() && self.entries.borrow().is_empty();
            if asked.is_empty() && has_none {
                idle = Some((self.now(), Account::of(&thread)));
                self.ended.event.wait(&thread).await;
                continue;
            }
            let since = idle.take();
            let requests = asked.into_iter().map(|(io, arrived)| {
                let found_idle = since.filter(|(since, _)| *since <= arrived);
                let since = found_idle.map(|(_, account)| account.until_now(&thread));
                Request { io, legs: Legs::begin(arrived, self.now(), since.as_ref()) }
            });
            self.submit_all(&thread, requests.collect()).await;
            let slept = self.wait(&thread).await;
            self.reap(&thread, slept).await;
        }
    }

    /// The application writes entries, and they are submitted.
    async fn submit_all(&self, thread: &Context, mut requests: Vec<Request>) {
        let Costs { user, ring_entry, syscall, .. } = self.costs();
        for Request { legs, .. } in &mut requests {
            legs.pass(stage::RING, self.now());
            self.work(thread, (user, Mode::User), (stage::THREAD, legs)).await;
            self.work(thread, (half(ring_entry), Mode::User), (stage::RING, legs)).await;
        }
        if self.kind == RingKind::Sqpoll {
            return self.hand_over(thread, requests).await;
        }
        self.call(thread, half(syscall), requests.iter_mut().map(|request| &mut request.legs)).await;
        for request in requests {
            self.submit_one(thread, request).await;
        }
    }

    /// A part of a system call, in which all these requests take part.
    async fn call<'a>(&self, thread: &Context, span: Span, legs: impl Iterator<Item = &'a mut Legs>) {
        let mut legs: Vec<&mut Legs> = legs.collect();
        legs.iter_mut().for_each(|legs| legs.pass(stage::RING, self.now()));
        if !span.is_zero() {
            thread.work(span, Mode::Kernel).await;
        }
        legs.iter_mut().for_each(|legs| legs.pass(stage::SYSCALL, self.now()));
    }

    /// The kernel takes an entry and gives its command to the drive.
    async fn submit_one(&self, thread: &Context, Request { io, mut legs }: Request) {
        let Costs { ring_entry, driver, .. } = self.costs();
        let Io { command, mem, token } = io;
        let copy = copy_of(&self.path.config, &command, self.info.lba_bytes);
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        legs.pass(stage::RING, self.now());
        self.work(thread, (ring_entry - half(ring_entry), Mode::Kernel), (stage::RING, &mut legs)).await;
        if is_to_drive {
            self.work(thread, (copy, Mode::Kernel), (stage::COPY, &mut legs)).await;
        }
        self.path.block_layer_in(thread, &command, |stage| legs.pass(stage, self.now())).await;
        let held = self.path.lock_controller(thread, &mut |stage| legs.pass(stage, self.now())).await;
        self.work(thread, (driver, Mode::Kernel), (stage::DRIVER, &mut legs)).await;
        let copy = if is_to_drive { Span::ZERO } else { copy };
        let is_armed = self.kind != RingKind::Iopoll;
        // The drive may complete it at once: it is outstanding before.
        let key = self.path.reserve((thread.cpu(), legs.arrived), (self.ended.clone(), is_armed), (command, mem));
        self.outstanding.borrow_mut().push(Outstanding { key, token, legs, copy });
        self.path.send_or_wait(key);
        drop(held);
    }

    /// Gives entries to the thread of the kernel, and wakes it if it sleeps.
    async fn hand_over(&self, thread: &Context, mut requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let is_awake = self.is_kernel_awake.get();
        if !is_awake {
            let Costs { syscall, wake, .. } = self.costs();
            self.call(thread, syscall + wake, requests.iter_mut().map(|request| &mut request.legs)).await;
        }
        self.entries.borrow_mut().extend(requests);
        if let Some(task) = self.kernel_task.take() {
            self.path.sim.wake(task);
        }
        self.kernel.notify_from(thread);
    }

    /// The thread of the kernel: takes entries, looks for more, and sleeps after a time without any.
    async fn look(self: Rc<Ring>, thread: Context) {
        loop {
            let next = self.entries.borrow_mut().pop_front();
            if let Some(request) = next {
                self.is_kernel_awake.set(true);
                self.submit_one(&thread, request).await;
                continue;
            }
            if self.is_kernel_awake.get() {
                self.spin_for_entries(&thread).await;
            }
            if self.entries.borrow().is_empty() {
                self.is_kernel_awake.set(false);
                self.kernel.wait(&thread).await;
            }
        }
    }

    async fn spin_for_entries(&self, thread: &Context) {
        let mut timer = pin!(self.path.sim.sleep(self.path.config.sqpoll_idle));
        let found = poll_fn(|context| {
            if !self.entries.borrow().is_empty() {
                return Poll::Ready(());
            }
            self.kernel_task.set(Some(self.path.sim.current_task()));
            timer.as_mut().poll(context)
        });
        thread.spin_until(found).await;
        self.kernel_task.set(None);
    }

    /// Until an I/O has ended or, where the thread sleeps, another one is requested. Returns the thread's account of that, if it slept.
    async fn wait(&self, thread: &Context) -> Option<Account> {
        let before = Account::of(thread);
        if self.kind == RingKind::Iopoll {
            let ended = poll_fn(|_| {
                if !self.ended.keys.borrow().is_empty() {
                    return Poll::Ready(());
                }
                self.ended.task.set(Some(self.path.sim.current_task()));
                Poll::Pending
            });
            thread.spin_until(ended).await;
            return None;
        }
        let has_news = || !self.ended.keys.borrow().is_empty() || !self.asked.borrow().is_empty();
        if has_news() {
            return None;
        }
        if self.kind == RingKind::Sqpoll {
            // Into the kernel, to sleep there.
            thread.work(half(self.costs().syscall), Mode::Kernel).await;
        }
        while !has_news() {
            self.ended.event.wait(thread).await;
        }
        Some(before.until_now(thread))
    }

    /// Takes what has ended, and hands it to the application.
    async fn reap(&self, thread: &Context, slept: Option<Account>) {
        let keys: Vec<Key> = self.ended.keys.borrow_mut().drain(..).collect();
        let mut all = Vec::with_capacity(keys.len());
        for key in keys {
            let at = self.outstanding.borrow().iter().position(|outstanding| outstanding.key == key);
            let mut outstanding = self.outstanding.borrow_mut().remove(at.expect("it has been submitted"));
            let Taken { port, issued, done, marks, completion, .. } = self.path.take_ended(key, Some(thread));
            let legs = &mut outstanding.legs;
            legs.pass(stage::QUEUE, issued);
            legs.at = done;
            marks.into_iter().for_each(|(stage, at)| legs.pass(stage, at));
            match &slept {
                Some(since) => legs.resumed(since, self.now()),
                None => legs.pass(stage::RING, self.now()),
            }
            all.push((outstanding, completion, port));
        }
        let Costs { syscall, poll, handler, .. } = self.costs();
        for (Outstanding { legs, copy, .. }, _, port) in &mut all {
            legs.pass(stage::RING, self.now());
            if self.kind == RingKind::Iopoll {
                self.work(thread, (poll, Mode::Kernel), (stage::POLL, legs)).await;
                let held = self.path.lock_controller(thread, &mut |stage| legs.pass(stage, self.now())).await;
                self.work(thread, (handler, Mode::Kernel), (stage::COMPLETE, legs)).await;
                drop(held);
            }
            if !self.ended.ends_in_interrupt {
                self.path.block_layer_out(thread, *port, |stage| legs.pass(stage, self.now())).await;
            }
            self.work(thread, (*copy, Mode::Kernel), (stage::COPY, legs)).await;
        }
        // With a thread of the kernel, only one that slept is in a system call.
        let is_inside = self.kind != RingKind::Sqpoll || slept.is_some();
        let leaves = if is_inside { syscall - half(syscall) } else { Span::ZERO };
        self.call(thread, leaves, all.iter_mut().map(|(outstanding, ..)| &mut outstanding.legs)).await;
        for (Outstanding { token, mut legs, .. }, mut completion, _) in all {
            legs.pass(stage::RING, self.now());
            legs.charge(&mut completion);
            token.complete(completion);
        }
    }
}

impl Drive for Ring {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        self.asked.borrow_mut().push_back((io, self.now()));
        self.ended.event.notify();
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut asked = self.asked.borrow_mut();
        let Some(at) = asked.iter().position(|(io, _)| io.token.is_of(command)) else { return false };
        let waiting = asked.remove(at);
        drop(asked);
        waiting.into_iter().for_each(|(io, _)| io.token.complete(Completion::of(Status::ABORT_REQUESTED)));
        true
    }
}
