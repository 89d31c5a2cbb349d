//! A context runs code: a thread, an interrupt or a softirq.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use crate::affinity::Affinity;
use crate::config::ConfigError;
use crate::running::Work;
use crate::scheduler::Nice;
use crate::state::{Place, Request, Shared, Units, Waker};
use crate::times::{Kind, Role, Times, Waits};

/// A thread, an interrupt or a softirq; see [`Machine`](crate::Machine) for how it is made. It awaits one thing at a time.
///
/// An interrupt begins at its first work, which includes entering it, and ends when it is dropped. Dropping a thread ends it.
pub struct Context {
    pub(crate) shared: Rc<Shared>,
    pub(crate) key: Key,
}

/// Where a thread works. An interrupt's and a softirq's work is time of their own kinds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Outside the kernel.
    User,
    /// Inside the kernel.
    Kernel,
}

/// How a thread gets its processor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Policy {
    /// It shares with others by weight.
    Fair(Nice),
    /// Before all that share, the highest priority first, until it waits (`SCHED_FIFO`).
    Realtime(u8),
}

/// What a thread is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ThreadSpec {
    /// How it gets its processor.
    pub policy: Policy,
    /// The processors that it may use.
    pub affinity: Affinity,
    /// What it is for.
    pub role: Role,
}

impl Default for ThreadSpec {
    /// A thread of an application: nice 0, on every processor.
    fn default() -> ThreadSpec {
        ThreadSpec { policy: Policy::Fair(Nice::default()), affinity: Affinity::ALL, role: Role::Application }
    }
}

/// What has happened to a thread.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// How often it got a processor.
    pub switches: u64,
    /// How often it lost its processor to another thread.
    pub preempted: u64,
    /// How often it got another processor than the last time.
    pub migrations: u64,
    /// How long it waited for a processor: from its waking, or its loss, to the switch to it.
    pub delay: Span,
}

impl Context {
    /// Does work of a length, and ends when it is done. A thread that was away is woken for it.
    pub fn work(&self, span: Span, mode: Mode) -> Work<'_> {
        let kind = if mode == Mode::User { Kind::User } else { Kind::Kernel };
        Work::new(self, Request { work: Units::of(span), kind, home: None })
    }

    /// Leaves the processor for a time, which a timer of this processor ends.
    pub async fn sleep(&self, span: Span) {
        self.leave();
        self.shared.sim.sleep(span).await;
        Work::resumed(self, Waker::Timer).await;
    }

    /// Leaves the processor until another future is ready, and ends when it has one again.
    pub async fn blocked<F: Future>(&self, future: F) -> F::Output {
        self.leave();
        let output = future.await;
        Work::resumed(self, Waker::Outside).await;
        output
    }

    /// Gives the processor to those that wait for it, if any do.
    pub async fn yield_now(&self) {
        Work::yielded(self).await;
    }

    /// Keeps the processor busy until another future is ready, and ends when it has its processor then.
    pub async fn spin_until<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut spin = Work::new(self, Request { work: Units::FOREVER, kind: Kind::Spin, home: None });
        let output = std::future::poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            if polled.is_pending() {
                let spins = std::pin::Pin::new(&mut spin).poll(context);
                debug_assert!(spins.is_pending(), "a spin ends when it is revised");
            }
            polled
        })
        .await;
        spin.revise(Request { kind: Kind::Spin, ..Request::NOTHING });
        spin.await;
        output
    }

    /// Its name in a [`Scheduler`](crate::scheduler::Scheduler).
    pub fn key(&self) -> Key {
        self.key
    }

    /// The processor that it has, or had last. For an interrupt, its own.
    pub fn cpu(&self) -> usize {
        self.shared.state.borrow().entity(self.key).cpu
    }

    /// The core of that processor.
    pub fn core(&self) -> usize {
        self.cpu() / self.shared.config.threads
    }

    /// Its time up to now, by kind.
    pub fn times(&self) -> Times {
        let mut state = self.shared.state.borrow_mut();
        if let Place::On(index) | Place::Raised(index) = state.entity(self.key).place {
            state.settle(index);
        }
        state.entity(self.key).times
    }

    /// How long it has waited for its processor up to now, by who had it. A real-time thread waits for any processor: the holders
    /// are those of its last one.
    pub fn waits(&self) -> Waits {
        self.shared.state.borrow().waits(self.key)
    }

    /// What has happened to it.
    pub fn counts(&self) -> Counts {
        self.shared.state.borrow().entity(self.key).counts
    }

    /// The processors that it may use.
    pub fn affinity(&self) -> Affinity {
        self.shared.state.borrow().entity(self.key).affinity
    }

    /// From now on the thread may use these processors only. On another one, it loses that at once. An interrupt stays where it is.
    ///
    /// # Errors
    /// That a processor does not exist, or that there is none.
    pub fn set_affinity(&self, affinity: Affinity) -> Result<(), ConfigError> {
        check_affinity(affinity, self.shared.config.cpus())?;
        self.shared.state.borrow_mut().set_affinity(self.key, affinity);
        Ok(())
    }

    /// Leaves the processor now.
    pub(crate) fn leave(&self) {
        self.shared.state.borrow_mut().leave(self.key);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.shared.sim.is_stopped() {
            self.shared.state.borrow_mut().remove(self.key);
        }
    }
}

/// Whether a thread may have an affinity on a machine.
pub(crate) fn check_affinity(affinity: Affinity, cpus: usize) -> Result<(), ConfigError> {
    let problem = match affinity.missing(cpus) {
        Some(missing) => format!("processor {missing} does not exist; valid are 0 to {}", cpus - 1),
        None if affinity.is_empty() => format!("no processor is left; valid are sets of 0 to {}", cpus - 1),
        None => return Ok(()),
    };
    Err(ConfigError::new("affinity", problem))
}
