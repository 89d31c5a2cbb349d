//! The processors of a host: work waits for a free one, first come, first served, and is not interrupted.
//!
//! Each piece of work is a real-time thread of a [`Machine`] on which switches and interrupts take no time; all have
//! one priority. [`Cpu::on`] is a machine with costs, where work has threads of the fair scheduler. In wall time the host's
//! real processors do the work, which takes no time here.

use nandscape_host_machine::{Affinity, Config, Machine, Mode, Policy, Role, ThreadSpec};
use nandscape_sim::{Sim, Span};

/// See the module.
pub struct Cpu {
    machine: Option<Machine>,
    thread: ThreadSpec,
}

/// How each piece of work gets its processor.
const FIRST_COME: ThreadSpec =
    ThreadSpec { policy: Policy::Realtime(0), affinity: Affinity::ALL, role: Role::Application };

impl Cpu {
    /// A host with this number of processors: 1 to [`Affinity::MOST`], whichever is nearest.
    pub fn new(sim: &Sim, cores: usize) -> Cpu {
        let config = Config::free(cores.clamp(1, Affinity::MOST));
        Cpu::free(sim, config)
    }

    /// The same with two hardware threads a core, which slow each other down by [`Config::share`].
    pub fn with_two_threads_a_core(sim: &Sim, cores: usize) -> Cpu {
        let config = Config { threads: 2, ..Config::free(cores.clamp(1, Affinity::MOST / 2)) };
        Cpu::free(sim, config)
    }

    fn free(sim: &Sim, config: Config) -> Cpu {
        Cpu { machine: Some(Machine::new(sim, config).expect("a host that is possible")), thread: FIRST_COME }
    }

    /// The processors of `machine`, with its scheduler and costs. Each piece of work is a separate thread.
    pub fn on(machine: Machine) -> Cpu {
        Cpu { machine: Some(machine), thread: ThreadSpec::default() }
    }

    /// Work takes no time: that is another's business.
    pub fn elsewhere(_: &Sim) -> Cpu {
        Cpu { machine: None, thread: FIRST_COME }
    }

    /// Works for so long on one processor.
    pub async fn work(&self, span: Span) {
        self.steps(&[(span, Mode::User)]).await;
    }

    /// Works for `span` inside the kernel.
    pub async fn kernel(&self, span: Span) {
        self.steps(&[(span, Mode::Kernel)]).await;
    }

    /// One thread does these steps, one after the other.
    pub async fn steps(&self, steps: &[(Span, Mode)]) {
        let some = steps.iter().any(|(span, _)| !span.is_zero());
        let Some(machine) = self.machine.as_ref().filter(|_| some) else { return };
        let thread = machine.thread(self.thread).expect("a thread on every processor");
        for (span, mode) in steps.iter().filter(|(span, _)| !span.is_zero()) {
            thread.work(*span, *mode).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use nandscape_sim::credits::Credits;
    use nandscape_sim::{Cause, Executor, Seed, Wait};

    use super::*;

    /// Works on a host, or on processors that are acquired and released.
    async fn work(of: &(Cpu, Credits, Sim), span: Span, on_host: bool) {
        let (cpu, credits, sim) = of;
        if on_host || span.is_zero() {
            return cpu.work(span).await;
        }
        credits.take(1, &mut Wait::default()).await;
        sim.sleep(span).await;
        credits.give(1);
    }

    /// When each step of each task ended, in this order. Times are round, so that many events coincide.
    fn run(seed: u64, on_host: bool) -> Vec<(u64, u64, u64)> {
        let mut rng = Seed::new(seed).child("cpu").rng();
        let mut executor = Executor::new();
        let (sim, log) = (executor.sim(), Rc::new(RefCell::new(Vec::new())));
        let cores = 1 + rng.below(4) as usize;
        let of = Rc::new((Cpu::new(&sim, cores), Credits::new(&sim, cores, Cause::new(0)), sim.clone()));
        for task in 0..8 {
            let (of, sim, log, mut rng) = (of.clone(), sim.clone(), log.clone(), Seed::new(rng.bits()).rng());
            executor.sim().spawn(async move {
                for step in 0..200 {
                    sim.sleep(Span::from_ns(10 * rng.below(4))).await;
                    work(&of, Span::from_ns(10 * rng.below(5)), on_host).await;
                    work(&of, Span::from_ns(10 * rng.below(3)), on_host).await;
                    log.borrow_mut().push((sim.now().ns(), task, step));
                }
            });
        }
        executor.block_on(sim.sleep(Span::from_ms(1))).unwrap();
        assert_eq!(log.borrow().len(), 1_600);
        log.take()
    }

    #[test]
    fn a_host_serves_as_processors_that_are_taken_and_given_back() {
        let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
        for seed in first..first + 30 {
            assert_eq!(run(seed, true), run(seed, false), "seed {seed}");
        }
    }
}
