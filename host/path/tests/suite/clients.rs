//! Clients on another machine: the latency of a request is the sum of its parts on both machines and between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_machine::{Kind, ThreadSpec};
use nandscape_host_path::{Clients, Threads, stage};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::SubmissionEntry;

use crate::rig::{DRIVE_US, Rig, config, host_us, read, rig, stages, write};

/// A message of 910 bytes is 1,000 on a wire, which take 10 us.
const NETWORK: [&str; 7] = [
    "host.links=1",
    "host.link_rate=100MB/s",
    "host.link_delay=2us",
    "host.link_interval=0",
    "host.packet_in=21us",
    "host.message_in=23us",
    "host.message_out=25us",
];

/// Takes completions, with when they came.
struct Answers {
    sim: Sim,
    all: RefCell<Vec<(u64, Completion)>>,
}

impl Sink for Answers {
    fn complete(&self, _: u64, completion: Completion) {
        self.all.borrow_mut().push((self.sim.now().ns() / 1_000, completion));
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Runs commands of as many clients, all from the beginning, and returns when each ended in microseconds.
fn ask(rig: &mut Rig, clients: &Rc<Clients>, commands: &[SubmissionEntry]) -> Vec<(u64, Completion)> {
    let count = commands.len() as u32;
    let threads = Threads::of_clients(clients, rig.path.info(), (count, count), ThreadSpec::default()).unwrap();
    let answers = Rc::new(Answers { sim: rig.sim.clone(), all: RefCell::default() });
    for command in commands {
        threads.submit(Io { command: *command, mem: HostMem::none(), token: Token::new(answers.clone(), 0) });
    }
    rig.executor.block_on(rig.sim.sleep(Span::from_ms(50))).unwrap();
    answers.all.take()
}

fn both(changes: &[&str]) -> (Rig, Rc<Clients>) {
    let rig = rig(config(1, &[&NETWORK[..], changes].concat()));
    let clients = Clients::new(&rig.path).unwrap();
    (rig, clients)
}

/// Entering a hard interrupt and a softirq, and the switch to a thread, of the rig's machine.
const IRQ: u64 = 1;
const SOFTIRQ: u64 = 2;
const SWITCH: u64 = 16;

#[test]
fn a_read_of_a_client_takes_both_machines_and_the_wires() {
    let (mut rig, clients) = both(&[]);
    let ended = ask(&mut rig, &clients, &[read()]);
    let (latency, completion) = &ended[0];
    // The client's thread begins at once: a switch, half of a system call, and the message of 64 bytes, which take 1.54 us on the wire.
    let request = SWITCH + 10 + 25;
    // Interrupt, softirq, protocols and wake-up, at the server as at the client.
    let received = IRQ + SOFTIRQ + 21 + 11;
    let io = 20 + 5 + 3 + DRIVE_US + (1 + 7) + 9 + 11 + SWITCH;
    let at_server = SWITCH + 23 + 10 + io + 10 + 25;
    // 4,096 bytes and the header: three packets. The client's softirq takes the first two while the others arrive.
    let parts: BTreeMap<&str, u64> = stages(&completion.breakdown).into_iter().collect();
    assert_eq!(parts[stage::RECEIVE], received + 23);
    assert_eq!((parts[stage::SEND], parts[stage::SYSCALL]), (25, 20 + 20));
    assert_eq!(parts[stage::SWITCH], 2 * SWITCH, "of the server: to the request, and to the completion");
    // Two wires: 154 bytes and 2 us; three packets of 4,430 bytes and 2 us.
    assert_eq!(parts[stage::NETWORK], (1_540 + 2_000 + 44_300 + 2_000) / 1_000);
    let at_client = parts[stage::CLIENT] - request;
    assert!(
        (IRQ + SOFTIRQ + 21 + 11 + SWITCH + 23 + 10..=IRQ + SOFTIRQ + 63 + 11 + SWITCH + 23 + 10).contains(&at_client)
    );
    let sum = request + parts[stage::NETWORK] + received + at_server + at_client;
    assert!(latency.abs_diff(sum) <= 1, "{latency} {sum} {parts:?}");
    assert!(latency.abs_diff(host_us(&completion.breakdown) + DRIVE_US) <= parts.len() as u64);
    let softirq = |machine: &nandscape_host_machine::Machine| machine.total().by(Kind::Softirq).ns() / 1_000;
    assert_eq!([rig.path.machine(), clients.machine()].map(softirq), [SOFTIRQ + 21 + 11, SOFTIRQ + 63 + 11]);
}

#[test]
fn the_data_of_a_write_is_in_the_request_and_that_of_a_read_in_the_answer() {
    let carried = |command| {
        let (mut rig, clients) = both(&[]);
        assert_eq!(ask(&mut rig, &clients, &[command]).len(), 1);
        use nandscape_host_network::links::Side;
        [Side::Clients, Side::Server].map(|side| clients.links().carried(side).ns() / 10)
    };
    assert_eq!(carried(read()), [64 + 90, 64 + 4_096 + 3 * 90]);
    assert_eq!(carried(write()), [64 + 4_096 + 3 * 90, 64 + 90]);
}

#[test]
fn stages_of_many_clients_sum_to_their_latencies_on_any_path() {
    for changes in [
        &["host.links=2"][..],
        &["host.completion=poll"],
        &["host.path=cooperative"],
        &["host.path=cooperative", "host.poll_thread=16us"],
        &["host.path=scsi", "host.link_interval=200us"],
        &["host.completion=adaptive", "host.cores=3"],
    ] {
        let (mut rig, clients) = both(changes);
        let commands: Vec<_> = (0..12).map(|number| if number % 3 == 0 { write() } else { read() }).collect();
        let ended = ask(&mut rig, &clients, &commands);
        assert_eq!(ended.len(), 12, "{changes:?}");
        for (latency, completion) in ended {
            let breakdown = &completion.breakdown;
            let sum: u64 = breakdown.causes().map(|(_, _, span)| span.ns()).sum::<u64>() / 1_000 + DRIVE_US;
            assert!(latency.abs_diff(sum) <= 1, "{changes:?}: {latency} {sum} {:?}", stages(breakdown));
        }
        for machine in [rig.path.machine(), clients.machine()] {
            (0..machine.cpus()).for_each(|cpu| _ = machine.usage(cpu));
        }
    }
}
