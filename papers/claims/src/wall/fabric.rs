//! Hosts of NVMe/TCP targets on this machine: each host has a thread, one I/O queue, and its own drive at the end.
//! Drives are spread over reactors with a core each, and keep no data: the transport is measured, not the drive.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_lab_run::Precondition;
use nandscape_sim::{Span, Time};
use nandscape_transport_nvme_tcp::{Address, Listener, ListenerConfig, Subsystem};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wall::cores::{of_pair, stay_on};
use crate::wall::live::{Live, drive};
use nandscape_lab_ledger::machine;

/// Commands of a queue at a time.
pub(crate) const DEPTH: u16 = 32;
/// The longest wait for a completion, and for a socket between two looks.
const PATIENCE: Span = Span::from_s(60);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A load: one direction, one size, sequential.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transfers {
    pub(crate) writes: bool,
    pub(crate) bytes: u32,
}

/// The work of some queues together.
#[derive(Copy, Clone, Default)]
pub(crate) struct Done {
    pub(crate) commands: u64,
    /// The time of all hosts together.
    pub(crate) elapsed: Span,
    /// Processor time of the targets.
    pub(crate) cpu: Span,
}

impl Done {
    /// Commands a second of `queues` queues together.
    pub(crate) fn rate(&self, queues: usize) -> f64 {
        self.commands as f64 * queues as f64 / self.elapsed.as_s()
    }

    /// Cores that the targets kept busy.
    pub(crate) fn cores(&self, queues: usize) -> f64 {
        self.cpu.as_s() * queues as f64 / self.elapsed.as_s()
    }
}

/// Targets and their hosts.
pub(crate) struct Fabric {
    hosts: Vec<Host>,
    /// Ends before the reactors.
    _listener: Listener,
    reactors: Vec<Live>,
}

struct Host {
    orders: Option<Sender<(Transfers, Span)>>,
    answers: Receiver<anyhow::Result<(u64, Span)>>,
    thread: Option<JoinHandle<()>>,
}

impl Fabric {
    /// Makes `queues` drives and hosts. Called on a thread that is not kept on a core.
    pub(crate) fn new(queues: usize, seed: u64) -> anyhow::Result<Fabric> {
        let threads = queues.min(machine::cores());
        let reactor = |number: usize| {
            let specs = (number..queues).step_by(threads).map(|place| {
                let none = ["read", "program", "erase"].map(|what| format!("timing.{what}=0us"));
                let [read, program, erase] = &none;
                let changes = ["capacity=256MiB", "controller.firmware_time=0us", read, program, erase];
                let mut spec = drive(&format!("target-{place}"), "femu-blackbox", &changes)?;
                (spec.number, spec.keeps_data, spec.precondition) = (place as u64, false, Precondition::Full);
                Ok(spec)
            });
            Live::start_on(of_pair(number).0, specs.collect::<anyhow::Result<_>>()?, seed)
        };
        let reactors = (0..threads).map(reactor).collect::<anyhow::Result<Vec<Live>>>()?;
        let subsystems = (0..queues).map(|place| {
            let (live, number) = (&reactors[place % threads], place / threads);
            let nqn = live.served()[number].nqn.clone();
            Subsystem { nqn, handle: live.handle().clone(), number: number as u16 }
        });
        let subsystems: Vec<Subsystem> = subsystems.collect();
        let nqns: Vec<String> = subsystems.iter().map(|subsystem| subsystem.nqn.clone()).collect();
        let listener = Listener::start(ListenerConfig {
            address: Address::Tcp("127.0.0.1:0".to_owned()),
            allow_remote: false,
            max_clients: 2 * queues,
            patience: Duration::from_secs(20),
            subsystems,
            log: Box::new(|_| {}),
        })?;
        let address = listener.address().to_string();
        let host = |(place, nqn): (usize, String)| {
            let target = Target { keeps_data: false, depth: DEPTH, ..Target::new(&address, nqn) };
            Host::start(place, target)
        };
        let hosts = nqns.into_iter().enumerate().map(host).collect::<anyhow::Result<_>>()?;
        Ok(Fabric { hosts, _listener: listener, reactors })
    }

    /// Has the first `queues` hosts transfer for this time.
    pub(crate) fn run(
        &self,
        queues: usize,
        transfers: Transfers,
        lasting: Span,
        done: &mut Done,
    ) -> anyhow::Result<()> {
        let before = self.cpu()?;
        for host in &self.hosts[..queues] {
            let orders = host.orders.as_ref().context("the host has ended")?;
            orders.send((transfers, lasting)).context("the host has ended")?;
        }
        // All of them end before the processor time is taken.
        let outcomes: Vec<_> = self.hosts[..queues].iter().map(|host| host.answers.recv()).collect();
        done.cpu += self.cpu()? - before;
        for outcome in outcomes {
            let (commands, elapsed) = outcome.context("a host has ended")??;
            done.commands += commands;
            done.elapsed += elapsed;
        }
        Ok(())
    }

    /// Processor time of all targets so far.
    fn cpu(&self) -> anyhow::Result<Span> {
        self.reactors.iter().try_fold(Span::ZERO, |sum, live| Ok(sum + live.cpu()?))
    }
}

impl Host {
    fn start(place: usize, target: Target) -> anyhow::Result<Host> {
        let (orders, inbox) = channel();
        let (tell, answers) = channel();
        let thread = std::thread::Builder::new().name("host".to_owned()).spawn(move || {
            stay_on(of_pair(place).1);
            let clock = WallClock::start();
            let drive = match NvmeTcp::connect(target, Box::new(move || clock.now())) {
                Ok(drive) => drive,
                Err(error) => return drop(tell.send(Err(error.into()))),
            };
            // The thread that started this one waits for it.
            let _ = tell.send(Ok((0, Span::ZERO)));
            let mut work = Work::new(drive, clock);
            while let Ok((transfers, lasting)) = inbox.recv() {
                let _ = tell.send(work.run(transfers, lasting));
            }
        })?;
        let host = Host { orders: Some(orders), answers, thread: Some(thread) };
        host.answers.recv().map_err(|_| anyhow!("a host ended before it was connected"))??;
        Ok(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // Its outcomes have been received.
            let _ = thread.join();
        }
    }
}

/// Commands that have ended.
#[derive(Default)]
struct Ended(RefCell<Vec<Status>>);

impl Sink for Ended {
    fn complete(&self, _: u64, completion: Completion) {
        self.0.borrow_mut().push(completion.status);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// A host's work.
struct Work {
    drive: NvmeTcp,
    clock: WallClock,
    ended: Rc<Ended>,
    /// The next block.
    slba: u64,
}

impl Work {
    fn new(drive: NvmeTcp, clock: WallClock) -> Work {
        Work { drive, clock, ended: Rc::default(), slba: 0 }
    }

    /// Transfers for this time: commands, and the time until the last of them had ended.
    fn run(&mut self, transfers: Transfers, lasting: Span) -> anyhow::Result<(u64, Span)> {
        let begun = self.clock.now();
        let (mut commands, mut in_flight, mut last) = (0, 0, begun);
        loop {
            let now = self.clock.now();
            while in_flight < DEPTH && now.since(begun) < lasting {
                self.submit(transfers)?;
                in_flight += 1;
            }
            if in_flight == 0 {
                return Ok((commands, now.since(begun)));
            }
            self.drive.poll()?;
            let statuses = std::mem::take(&mut *self.ended.0.borrow_mut());
            for status in &statuses {
                ensure!(status.is_success(), "a transfer: {status}");
            }
            in_flight -= statuses.len() as u16;
            commands += statuses.len() as u64;
            if statuses.is_empty() {
                self.wait(last)?;
            } else {
                last = now;
            }
        }
    }

    fn submit(&mut self, Transfers { writes, bytes }: Transfers) -> anyhow::Result<()> {
        let info = self.drive.info();
        let blocks = bytes / info.lba_bytes;
        ensure!(blocks > 0 && blocks <= info.max_blocks, "the target takes no transfers of {bytes} bytes");
        if self.slba + u64::from(blocks) > info.blocks {
            self.slba = 0;
        }
        let opcode = if writes { IoOpcode::WRITE } else { IoOpcode::READ };
        let command = SubmissionEntry::blocks(opcode, info.nsid, self.slba, blocks);
        self.slba += u64::from(blocks);
        let token = Token::new(self.ended.clone(), 0);
        self.drive.submit(Io { command, mem: HostMem::none(), token });
        Ok(())
    }

    /// Waits for the socket.
    fn wait(&self, last: Time) -> anyhow::Result<()> {
        if self.clock.now().since(last) > PATIENCE {
            bail!("no completion within {} s", PATIENCE.as_s());
        }
        match poll(&mut [PollFd::from_borrowed_fd(Remote::socket(&self.drive), PollFlags::IN)], Some(&LOOK)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_transfer_in_each_direction() {
        let fabric = Fabric::new(3, 1).unwrap();
        for (writes, bytes) in [(false, 4_096), (true, 4_096), (false, 65_536), (true, 65_536)] {
            for queues in [1, 3] {
                let mut done = Done::default();
                fabric.run(queues, Transfers { writes, bytes }, Span::from_ms(2), &mut done).unwrap();
                assert!(done.commands >= u64::from(DEPTH) && done.rate(queues) > 0.0, "{writes} {bytes} {queues}");
            }
        }
    }
}
