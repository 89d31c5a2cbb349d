//! The settings of a host: [`kinds`] has the choices by name, [`keys`] the keys by which users give them, [`check`] which hosts are impossible.

mod check;
mod keys;
mod kinds;

use nandscape_host_machine::Config as MachineConfig;
pub use nandscape_host_machine::ConfigError;
use nandscape_host_network::card::LinkConfig;
use nandscape_sim::Span;
use nandscape_sim::units::Rate;

pub use self::keys::{COSTS, KEYS};
pub use self::kinds::{PathKind, RingKind, Window};
use crate::policy::PolicyKind;

/// Work of the kernel for one I/O, on a core of speed 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Entering and leaving the kernel, with the call itself.
    pub syscall: Span,
    /// The block layer, on the way to the drive.
    pub submit: Span,
    /// The SCSI layers (path SCSI): half of it on the way to the drive, half on the way back.
    pub midlayer: Span,
    /// The driver, on the way to the drive.
    pub driver: Span,
    /// The driver's handler, a completion.
    pub handler: Span,
    /// The end of an I/O in the block layer.
    pub complete: Span,
    /// Waking a thread.
    pub wake: Span,
    /// A look at the queue that finds a completion.
    pub poll: Span,
    /// Copying 4 KiB to or from the application.
    pub copy: Span,
    /// What the application does for an I/O.
    pub user: Span,
    /// An entry of a ring, by the application and by the kernel.
    pub ring_entry: Span,
}

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The machine.
    pub machine: MachineConfig,
    /// How a thread learns of a completion.
    pub completion: PolicyKind,
    /// How completions reach the thread.
    pub path: PathKind,
    /// How often a thread looks for completions instead of interrupts (strategies); zero is all the time. `None`: interrupts.
    pub poll_thread: Option<Span>,
    /// Submission queues; 0 is one a processor, or as many as the drive has.
    pub queues: usize,
    /// Completion queues, which submission queues use in turn; 0 is one for each submission queue.
    pub completion_queues: usize,
    /// The processors that the completion queues interrupt, in turn. Empty: each interrupts the first processor that submits to it.
    pub affinity: Vec<usize>,
    /// The part of the mean that `hybrid` sleeps before it polls.
    pub poll_sleep: f64,
    /// The part of the latency that polling has to save so that `adaptive` polls.
    pub poll_gain: f64,
    /// How long before the end of a read `precompletion` has the drive announce it.
    pub window: Window,
    /// How long beyond the expected end `precompletion` polls.
    pub patience: Span,
    /// Whether applications use io_uring.
    pub ring: RingKind,
    /// How long the kernel's thread looks for entries before it sleeps.
    pub sqpoll_idle: Span,
    /// Completions that the drive gathers before it interrupts, or until `coalesce_time` has passed.
    pub coalesce: u32,
    /// The longest time for which it does.
    pub coalesce_time: Span,
    /// Threads that compute all the time, next to the application.
    pub load: usize,
    /// What an I/O costs.
    pub costs: Costs,
    /// The links to a machine like this one, whose clients request the I/Os; without links they are requested here.
    pub network: LinkConfig,
}

/// No link. Where there is one, it has 1 Gb/s and the costs of Linux on a core of speed 1; `docs/techniques/host-path.md` has their sources.
const NETWORK: LinkConfig = LinkConfig {
    links: 0,
    rate: Rate::new(125_000_000, Span::from_s(1)),
    delay: Span::from_us(2),
    interval: Span::from_us(50),
    packet_in: Span::from_ns(924),
    message_in: Span::from_ns(176),
    message_out: Span::from_ns(1_093),
    // That of an I/O, which takes its place.
    wake: Span::ZERO,
};

impl Costs {
    /// Nothing takes time.
    pub const FREE: Costs = Costs {
        syscall: Span::ZERO,
        submit: Span::ZERO,
        midlayer: Span::ZERO,
        driver: Span::ZERO,
        handler: Span::ZERO,
        complete: Span::ZERO,
        wake: Span::ZERO,
        poll: Span::ZERO,
        copy: Span::ZERO,
        user: Span::ZERO,
        ring_entry: Span::ZERO,
    };
}

impl Default for Config {
    /// The default machine with the path of NVMe and interrupts. `profiles/server.toml` has the source of each cost.
    fn default() -> Config {
        Config {
            costs: Costs {
                syscall: Span::from_ns(550),
                submit: Span::from_ns(379),
                driver: Span::from_ns(113),
                handler: Span::from_ns(100),
                complete: Span::from_ns(200),
                wake: Span::from_ns(300),
                poll: Span::from_ns(100),
                ring_entry: Span::from_ns(50),
                ..Costs::FREE
            },
            ..Config::free(MachineConfig::default())
        }
    }
}

impl Config {
    /// A machine on which I/Os cost nothing but what the machine and messages cost.
    pub const fn free(machine: MachineConfig) -> Config {
        Config {
            machine,
            completion: PolicyKind::Interrupt,
            path: PathKind::Nvme,
            poll_thread: None,
            queues: 0,
            completion_queues: 0,
            affinity: Vec::new(),
            poll_sleep: 0.5,
            poll_gain: 0.05,
            window: Window::Drive,
            patience: Span::from_us(20),
            ring: RingKind::Off,
            sqpoll_idle: Span::from_ms(1),
            coalesce: 1,
            coalesce_time: Span::from_us(100),
            load: 0,
            costs: Costs::FREE,
            network: NETWORK,
        }
    }

    /// On the way to the drive: the block layer, and then its part of the SCSI layers.
    pub(crate) fn submit_costs(&self) -> (Span, Span) {
        (self.costs.submit, half(self.midlayer()))
    }

    /// The end of an I/O: the other part of the SCSI layers, and then the block layer.
    pub(crate) fn complete_costs(&self) -> (Span, Span) {
        (self.midlayer() - half(self.midlayer()), self.costs.complete)
    }

    fn midlayer(&self) -> Span {
        if self.path == PathKind::Scsi { self.costs.midlayer } else { Span::ZERO }
    }

    /// The number of completion queues, given that of submission queues.
    pub fn completion_queues(&self, submission: usize) -> usize {
        if self.completion_queues == 0 { submission } else { self.completion_queues.min(submission) }
    }

    /// The processor that completion queue `number` interrupts.
    pub fn processor_of(&self, number: usize) -> usize {
        match self.affinity.len() {
            0 => number,
            count => self.affinity[number % count],
        }
    }

    /// Submission queues on a drive that has room for `most`.
    pub fn queue_pairs(&self, most: usize) -> usize {
        let wanted = match (self.path, self.queues) {
            (PathKind::Scsi, _) => 1,
            (_, 0) => self.machine.cpus(),
            (_, given) => given,
        };
        wanted.min(most.max(1))
    }
}

/// Half of a cost.
pub(crate) fn half(cost: Span) -> Span {
    Span::from_ns(cost.ns() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_pairs_are_one_a_processor_as_far_as_the_drive_has_them() {
        let pairs = |change: &str, most| {
            let mut config = Config::default();
            config.set(change).unwrap();
            config.queue_pairs(most)
        };
        assert_eq!((pairs("host.cores=8", 64), pairs("host.cores=8", 3), pairs("host.queues=2", 64)), (8, 3, 2));
        assert_eq!(pairs("host.path=scsi", 64), 1);
    }
}
