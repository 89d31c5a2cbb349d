//! Null commands through rings: each pair is a ring between a client's thread and a reactor, with its own drive at the
//! end. Reactors have a core each; if there are more pairs than reactors, the drives are spread over the reactors.

use std::rc::Rc;

use anyhow::{anyhow, ensure};
use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Connect, Export};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::wall::cores::{of_pair, stay_on};
use crate::wall::live::{Live, Served, fixed_delay};
use nandscape_lab_ledger::machine;

/// Commands of a pair at a time.
pub(crate) const DEPTH: usize = 256;
/// Polls in vain before the client lets another thread of its core run.
const POLLS_BEFORE_YIELD: u32 = 64;
/// The longest wait for a completion.
const PATIENCE: Span = Span::from_s(60);

/// The drive at the end of a queue pair.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    /// A drive that completes each command at once.
    Nothing,
    /// An NVMe controller, whose Flush has nothing to flush.
    Controller,
}

/// Completes each command as it is submitted.
struct NullDrive;

impl Drive for NullDrive {
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
        io.token.complete(Completion::of(Status::SUCCESS));
    }
}

impl Connect for NullDrive {
    fn info(&self) -> DriveInfo {
        Drive::info(self)
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(NullDrive))
    }
}

impl Export for NullDrive {}

/// Pairs, and the reactors that they end at.
pub(crate) struct Pairs {
    clients: Vec<(RingHost, WallClock)>,
    reactors: Vec<Live>,
}

/// The work of some pairs together.
#[derive(Copy, Clone, Default)]
pub(crate) struct Done {
    pub(crate) commands: u64,
    /// The time of all clients together.
    pub(crate) elapsed: Span,
}

impl Pairs {
    /// Makes `count` pairs, as many drives, and as many reactors as there are cores for them, but `most` at most.
    pub(crate) fn new(behind: Behind, count: usize, most: usize, seed: u64) -> anyhow::Result<Pairs> {
        let threads = count.min(machine::cores()).min(most);
        let reactor = |number: usize| {
            let drives = (number..count).step_by(threads);
            let core = of_pair(number).0;
            match behind {
                Behind::Nothing => Live::with(core, move |_| {
                    let of = |drive| (null_drive(), Served { name: name(drive), nqn: String::new(), queue_pairs: 0 });
                    Ok(drives.map(of).unzip())
                }),
                Behind::Controller => {
                    let specs = drives.map(|drive| {
                        let mut spec = fixed_delay(&name(drive), Span::ZERO)?;
                        (spec.number, spec.keeps_data) = (drive as u64, false);
                        Ok(spec)
                    });
                    Live::start_on(core, specs.collect::<anyhow::Result<_>>()?, seed)
                }
            }
        };
        let reactors = (0..threads).map(reactor).collect::<anyhow::Result<Vec<Live>>>()?;
        let client = |pair: usize| {
            let handle = reactors[pair % threads].handle();
            let host = RingHost::connect(handle, (pair / threads) as u16, DEPTH);
            Ok((host.map_err(|status| anyhow!("no queue pair: {status}"))?, handle.clock()))
        };
        let clients = (0..count).map(client).collect::<anyhow::Result<_>>()?;
        Ok(Pairs { clients, reactors })
    }

    /// Reactors, each with a thread.
    pub(crate) fn reactors(&self) -> usize {
        self.reactors.len()
    }

    /// Keeps all pairs full of null commands for this time.
    pub(crate) fn run(&mut self, lasting: Span, done: &mut Done) -> anyhow::Result<()> {
        let outcomes: Vec<anyhow::Result<Done>> = std::thread::scope(|scope| {
            let clients = self.clients.iter_mut().enumerate().map(|(pair, (host, clock))| {
                scope.spawn(move || {
                    stay_on(of_pair(pair).1);
                    keep_full(host, *clock, lasting)
                })
            });
            let clients: Vec<_> = clients.collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap_or_else(|_| Err(anyhow!("a client failed"))))
                .collect()
        });
        for outcome in outcomes {
            let Done { commands, elapsed } = outcome?;
            done.commands += commands;
            done.elapsed += elapsed;
        }
        Ok(())
    }

    /// Commands a second of all pairs together.
    pub(crate) fn rate(&self, done: &Done) -> f64 {
        done.commands as f64 * self.clients.len() as f64 / done.elapsed.as_s()
    }
}

fn name(drive: usize) -> String {
    format!("null-{drive}")
}

fn null_drive() -> Rc<dyn Export> {
    Rc::new(NullDrive)
}

/// Keeps one pair full.
fn keep_full(host: &mut RingHost, clock: WallClock, lasting: Span) -> anyhow::Result<Done> {
    let command = SubmissionEntry::io(IoOpcode::FLUSH, host.info().nsid);
    let begun = clock.now();
    let (mut now, mut commands, mut in_flight) = (begun, 0, 0);
    let submit = |host: &mut RingHost| {
        ensure!(host.submit(0, command, Vec::new()).is_ok(), "more in flight than the ring holds");
        Ok(())
    };
    while in_flight < DEPTH {
        submit(host)?;
        in_flight += 1;
    }
    let (mut quiet, mut last) = (0u32, Time::ZERO);
    while in_flight > 0 {
        let mut came = 0;
        while let Some(reply) = host.poll() {
            ensure!(reply.status.is_success(), "a null command: {}", reply.status);
            came += 1;
            if now.since(begun) < lasting {
                submit(host)?;
            } else {
                in_flight -= 1;
            }
            // The ring may never be empty.
            if came == DEPTH as u64 {
                break;
            }
        }
        now = clock.now();
        commands += came;
        if came > 0 {
            (quiet, last) = (0, now);
            continue;
        }
        quiet += 1;
        if quiet > POLLS_BEFORE_YIELD {
            ensure!(!host.is_disconnected(), "the drive has gone");
            ensure!(now.since(last.max(begun)) < PATIENCE, "no completion within {} s", PATIENCE.as_s());
            std::thread::yield_now();
        }
    }
    Ok(Done { commands, elapsed: now.since(begun) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_drive_and_every_command_ends() {
        for behind in [Behind::Nothing, Behind::Controller] {
            for most in [1, 8] {
                let mut pairs = Pairs::new(behind, 3, most, 1).unwrap();
                let drives: usize = pairs.reactors.iter().map(|reactor| reactor.served().len()).sum();
                assert_eq!((drives, pairs.reactors()), (3, machine::cores().min(3).min(most)));
                let mut done = Done::default();
                pairs.run(Span::from_ms(2), &mut done).unwrap();
                assert!(done.commands >= 3 * DEPTH as u64 && pairs.rate(&done) > 0.0, "{behind:?}");
            }
        }
    }
}
