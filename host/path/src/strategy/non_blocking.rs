//! Non-blocking: a request that finds no free tag waits in a FIFO, not its thread in the driver. Whoever frees a tag issues the next
//! request; without further switches that is the handler of the interrupt, which finishes I/Os, too.

use std::rc::Rc;

use nandscape_host_machine::{Context, Mode};
use nandscape_sim::Time;
use nandscape_sim::slots::Key;

use crate::path::{InFlight, Path};
use crate::stages::stage;

impl InFlight<'_> {
    /// Puts the request at the end of the FIFO, and issues from the head as long as tags are free. Returns the queue whose interrupt
    /// ends the command.
    pub(super) async fn issue(&self, thread: &Context) -> usize {
        let InFlight { path, key, .. } = *self;
        let (port, queue) = path.way_of(key);
        match port {
            Some(port) => {
                path.ports[port].enqueue(key);
                path.issue(thread, port).await;
            }
            None => {
                let held = path.lock_controller(thread, &mut |_| ()).await;
                thread.work(path.config.costs.driver, Mode::Kernel).await;
                path.send(key, false);
                drop(held);
            }
        }
        queue
    }

    pub(super) fn issued(&self) -> Option<Time> {
        self.path.flights.borrow().get(self.key).and_then(|flight| flight.issued)
    }

    pub(super) fn is_woken(&self) -> bool {
        self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.is_woken)
    }
}

impl Path {
    /// Issues requests of a port in the order of the FIFO, as long as tags are free.
    pub(crate) async fn issue(&self, context: &Context, port: usize) {
        while let Some(key) = self.next_request(port) {
            let request = Request { path: self, key, port };
            let held = self.lock_controller(context, &mut |_| ()).await;
            context.work(self.config.costs.driver, Mode::Kernel).await;
            drop(request);
            drop(held);
        }
    }

    /// The next request that a thread still waits for. It has a tag.
    fn next_request(&self, number: usize) -> Option<Key> {
        let port = &self.ports[number];
        while port.can_issue() {
            let key = port.dequeue()?;
            if self.is_unsent(key) {
                port.take_tag();
                return Some(key);
            }
        }
        None
    }

    /// The same at once, for a context that ends before it could.
    pub(crate) fn issue_at_once(&self, port: usize) {
        while let Some(key) = self.next_request(port) {
            drop(Request { path: self, key, port });
        }
    }

    /// Raises the interrupt of a queue, unless its handler is about to run.
    pub(super) fn raise_events(&self, queue: usize) {
        if !self.vectors[queue].is_raised(true) {
            self.vectors[queue].count_interrupt();
            let path = self.me();
            self.sim.spawn(async move { path.handle_events(queue).await });
        }
    }

    /// The handler. It reads the status once: what the drive finishes later raises the interrupt again.
    async fn handle_events(self: Rc<Path>, queue: usize) {
        let vector = &self.vectors[queue];
        let irq = self.enter_interrupt(queue);
        irq.work(self.config.costs.poll, Mode::Kernel).await;
        for _ in 0..vector.waiting() {
            if !self.take_event(&irq, queue, (None, stage::INTERRUPT)).await {
                break;
            }
        }
        self.handled(&irq);
        drop(irq);
        vector.is_raised(false);
        if vector.waiting() > 0 {
            self.raise_events(queue);
        }
    }

    /// Takes a finished command of a queue: gives its tag back, finishes the I/O unless its thread does, wakes the thread unless it is
    /// the one that takes, and issues what waits for the tag. Returns whether there was one.
    pub(super) async fn take_event(
        &self,
        context: &Context,
        queue: usize,
        (own, stage): (Option<Key>, &'static str),
    ) -> bool {
        let Some(key) = self.vectors[queue].take() else { return false };
        let costs = self.config.costs;
        let mut event = Event { path: self, context, key, port: None, is_over: false };
        self.mark(key, stage);
        let held = self.lock_controller(context, &mut |stage| self.mark(key, stage)).await;
        context.work(costs.handler, Mode::Kernel).await;
        self.mark(key, stage);
        drop(held);
        event.port = self.release(key);
        let is_lazy = self.config.path.strategy().is_some_and(|strategy| strategy.lazy);
        if let Some(cpu) = self.submitted_on(key).filter(|_| !is_lazy) {
            let core = cpu / self.machine.config().threads;
            context.work(costs.complete, Mode::Kernel).warm_on(core).await;
            self.mark(key, stage::COMPLETE);
        }
        if own != Some(key) {
            context.work(costs.wake, Mode::Kernel).await;
            self.mark(key, stage::WAKEUP);
        }
        event.is_over = true;
        let port = event.port;
        drop(event);
        if let Some(port) = port {
            self.issue(context, port).await;
        }
        true
    }

    /// The port and the queue of a command.
    pub(super) fn way_of(&self, key: Key) -> (Option<usize>, usize) {
        let flights = self.flights.borrow();
        let flight = flights.get(key).expect("a command at work");
        (flight.port, flight.queue)
    }
}

/// A request with a tag, which is issued when this is dropped: as its work ends, or as the context ends.
struct Request<'a> {
    path: &'a Path,
    key: Key,
    port: usize,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if !self.path.sim.is_stopped() && !self.path.send(self.key, true) {
            self.path.ports[self.port].release_tag();
        }
    }
}

/// A finished command in work. Dropped, its thread is woken.
struct Event<'a> {
    path: &'a Path,
    context: &'a Context,
    key: Key,
    /// Whose tag was given back.
    port: Option<usize>,
    is_over: bool,
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        let Event { path, context, key, port, is_over } = self;
        if path.sim.is_stopped() {
            return;
        }
        path.wake(context, *key);
        if !*is_over && let Some(port) = port.or_else(|| path.release(*key)) {
            path.issue_at_once(port);
        }
    }
}
