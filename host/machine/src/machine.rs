//! The machine, and new contexts on it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use nandscape_sim::slots::Key;
use nandscape_sim::trace::Track;
use nandscape_sim::{Sim, Span};

use crate::affinity::Affinity;
use crate::config::{Config, ConfigError};
use crate::context::{Context, Counts, Policy, ThreadSpec, check_affinity};
use crate::scheduler::{Nice, Scheduler, Share};
use crate::state::{Class, Cpu, Entity, Place, Shared, State, Units};
use crate::times::{Kind, Role, Times, Waits};

/// A host machine. Clones are the same machine.
#[derive(Clone)]
pub struct Machine {
    pub(crate) shared: Rc<Shared>,
}

impl Shared {
    /// Has the sweeper run after the task that is polled now.
    pub(crate) fn wake_sweeper(&self) {
        if let Some(task) = self.sweeper.get() {
            self.sim.wake(task);
        }
    }
}

impl Machine {
    /// An idle machine.
    ///
    /// # Errors
    /// That it is impossible: the key, and what would be valid.
    pub fn new(sim: &Sim, config: Config) -> Result<Machine, ConfigError> {
        let sched = config.sched;
        let settings = config.clone();
        Machine::with_scheduler(sim, config, || sched.make(&settings))
    }

    /// An idle machine with run queues of another policy, one for each processor.
    ///
    /// # Errors
    /// That the machine is impossible: the key, and what would be valid.
    pub fn with_scheduler(
        sim: &Sim,
        config: Config,
        make: impl FnMut() -> Box<dyn Scheduler>,
    ) -> Result<Machine, ConfigError> {
        config.check()?;
        let state = RefCell::new(State::new(sim, &config, make));
        let shared = Rc::new(Shared { sim: sim.clone(), config, state, sweeper: Cell::new(None) });
        let weak = Rc::downgrade(&shared);
        sim.spawn(poll_fn(move |_| sweep(&weak)));
        Ok(Machine { shared })
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Processors: hardware threads of all cores. Processor `n` belongs to core `n / threads`.
    pub fn cpus(&self) -> usize {
        self.shared.config.cpus()
    }

    /// A new thread, which is woken by its first work.
    ///
    /// # Errors
    /// That its affinity names a processor that does not exist, or none.
    pub fn thread(&self, spec: ThreadSpec) -> Result<Context, ConfigError> {
        check_affinity(spec.affinity, self.cpus())?;
        Ok(match spec.policy {
            Policy::Fair(nice) => self.context((Class::Fair, spec.role), nice, spec.affinity, Units::ZERO),
            Policy::Realtime(priority) => {
                self.context((Class::Realtime(priority), spec.role), Nice::default(), spec.affinity, Units::ZERO)
            }
        })
    }

    /// A hard interrupt of a device on a processor. It takes the processor from threads and softirqs at once, and gets in line
    /// behind other hard interrupts.
    ///
    /// # Errors
    /// That the processor does not exist.
    pub fn interrupt(&self, cpu: usize) -> Result<Context, ConfigError> {
        self.raised(Class::Hard, cpu, self.shared.config.interrupt)
    }

    /// A softirq of a processor. It takes the processor from threads at once, and gets in line behind other softirqs.
    ///
    /// # Errors
    /// That the processor does not exist.
    pub fn softirq(&self, cpu: usize) -> Result<Context, ConfigError> {
        self.raised(Class::Soft, cpu, self.shared.config.softirq)
    }

    /// A hard interrupt that one processor sends to another.
    ///
    /// # Errors
    /// That the processor does not exist.
    pub fn ipi(&self, cpu: usize) -> Result<Context, ConfigError> {
        self.raised(Class::Hard, cpu, self.shared.config.ipi)
    }

    /// The time of a processor since the machine began, by kind: all kinds sum to that time.
    ///
    /// # Panics
    /// If the processor does not exist, or its account is wrong.
    pub fn usage(&self, cpu: usize) -> Times {
        self.shared.state.borrow_mut().usage(cpu)
    }

    /// The time of all processors, by kind.
    pub fn total(&self) -> Times {
        let mut total = Times::default();
        (0..self.cpus()).for_each(|cpu| total.merge(&self.usage(cpu)));
        total
    }

    /// The time of contexts that have ended, by kind.
    pub fn ended(&self) -> Times {
        self.shared.state.borrow().gone
    }

    /// How long a thread has waited for its processor up to now, by who had it: see [`Context::waits`].
    ///
    /// # Panics
    /// If the thread does not exist.
    pub fn waits(&self, thread: Key) -> Waits {
        self.shared.state.borrow().waits(thread)
    }

    /// Threads that wait for a processor, without the one that has it.
    ///
    /// # Panics
    /// If the processor does not exist.
    pub fn waiting(&self, cpu: usize) -> usize {
        self.shared.state.borrow().cpus[cpu].queue.waiting()
    }

    /// How often a processor was given to a thread, an interrupt or a softirq.
    pub fn decisions(&self) -> u64 {
        self.shared.state.borrow().decisions
    }

    /// Contexts that exist.
    pub fn contexts(&self) -> usize {
        self.shared.state.borrow().entities.len()
    }

    /// Adds a line for each processor to the event trace, with `name` before its number. Returns the lines, which follow each other.
    pub fn show(&self, name: &str) -> Vec<Track> {
        let mut state = self.shared.state.borrow_mut();
        let line = |(index, cpu): (usize, &mut Cpu)| {
            let track = self.shared.sim.trace().track(format!("{name} {index}"));
            cpu.timeline.track = Some(track);
            track
        };
        state.cpus.iter_mut().enumerate().map(line).collect()
    }

    /// Puts what is under way into the event trace up to now. Otherwise an event appears when the next one begins.
    pub fn end_timelines(&self) {
        self.shared.state.borrow_mut().end_timelines();
    }

    fn raised(&self, class: Class, cpu: usize, enters: Span) -> Result<Context, ConfigError> {
        let affinity = Affinity::one(cpu);
        check_affinity(affinity, self.cpus())?;
        let context = self.context((class, Role::Kernel), Nice::default(), affinity, Units::of(enters));
        self.shared.state.borrow_mut().entity_mut(context.key).cpu = cpu;
        Ok(context)
    }

    fn context(&self, (class, role): (Class, Role), nice: Nice, affinity: Affinity, enters: Units) -> Context {
        let mut state = self.shared.state.borrow_mut();
        state.numbers += 1;
        let entity = Entity {
            task: self.shared.sim.current_task(),
            number: state.numbers,
            class,
            role,
            is_deferred: false,
            place: Place::Away,
            asks: false,
            kind: Kind::Kernel,
            enters,
            entry: Units::ZERO,
            cold: Units::ZERO,
            work: Units::ZERO,
            affinity,
            cpu: 0,
            left_core_at: None,
            home: None,
            queue: 0,
            share: Share::new(nice),
            held: 0,
            masked: 0,
            ready: self.shared.sim.now(),
            times: Times::default(),
            waits: Waits::default(),
            held_before: Waits::default(),
            counts: Counts::default(),
        };
        let key = state.entities.insert(entity);
        Context { shared: self.shared.clone(), key }
    }
}

/// Has contexts leave that did not go on. It runs after the tasks that it waits for, at the same instant.
fn sweep(shared: &Weak<Shared>) -> Poll<()> {
    let Some(shared) = shared.upgrade() else { return Poll::Ready(()) };
    shared.sweeper.set(Some(shared.sim.current_task()));
    shared.state.borrow_mut().sweep();
    Poll::Pending
}
