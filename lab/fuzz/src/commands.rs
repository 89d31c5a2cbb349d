//! Commands of two hosts on one drive in simulated time, admin and I/O, with their data: every command ends once, with any
//! fields and data structures, and the drive's tables agree afterwards. [`commands`] has logical blocks; [`command_sets`] has
//! zones, chunks, placement, streams, transactions and pages of any length.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Ssd;
use nandscape_drive::mem::Listed;
use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_drive::{Controller, HostIdentity, HostMem, QueueId, TransportModel};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::identify::{NMIC_SHARED, Namespace};
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::pieces::FORMAT_PIECES;
use nandscape_wire_nvme::register::{CC, CC_EN, CSTS, CSTS_CFS, CSTS_RDY};
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry, open_channel as oc, vendor};
use zerocopy::IntoBytes;

use crate::buffers;
use crate::entry::{ALL, NVM, Opcodes, entry};
use crate::input::Input;
use crate::kinds::{self, KINDS, Kind};
use crate::pair::Pair;

/// Longer than any command takes on so small a drive.
const LONG: Span = Span::from_s(100);
/// Blocks of each namespace.
const BLOCKS: u64 = 16 << 11;
/// The most steps of an input.
const MOST_STEPS: usize = 100;
/// The most bytes of a command's data.
const MOST_DATA: u64 = 256 << 10;

/// Runs a script of commands.
///
/// # Panics
/// When a command does not end, ends twice, or leaves the drive's tables in disagreement.
pub fn commands(bytes: &[u8]) {
    script(&kinds::BLOCKS, NVM, &mut Input::new(bytes));
}

/// The same on a drive that is not only logical blocks: the first byte chooses which.
///
/// # Panics
/// As [`commands`].
pub fn command_sets(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = &KINDS[input.below(KINDS.len())];
    script(kind, ALL, &mut input);
}

fn script(kind: &Kind, opcodes: Opcodes, input: &mut Input<'_>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = drive(&sim, kind);
    let script = async {
        if kind.has_several_namespaces {
            create_namespaces(&sim, &ssd).await;
        }
        if kind.has_pieces {
            format_for_pieces(&sim, &ssd).await;
        }
        run(&sim, &ssd, (opcodes, kind.has_pieces), input).await;
    };
    executor.block_on(script).expect("the drive does not stall");
    ssd.check().expect("the tables agree");
}

fn drive(sim: &Sim, kind: &Kind) -> Ssd {
    let resolved = kind.profile().resolve().expect("a drive");
    Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).expect("there is memory for it")
}

/// A host: its controller, and its admin queue and I/O queues.
struct Host {
    controller: Rc<dyn Controller>,
    pairs: Vec<Pair>,
}

impl Host {
    fn new(sim: &Sim, controller: Rc<dyn Controller>) -> Host {
        let pairs = (0..3).filter_map(|id| Pair::new(sim, &controller, id)).collect();
        Host { controller, pairs }
    }

    /// Resets the controller and creates the queues again.
    async fn reset(&mut self, sim: &Sim, cc: u32) {
        self.controller.set_register(CC, cc & !CC_EN);
        self.wait(sim, 0).await;
        self.controller.set_register(CC, cc | CC_EN);
        self.wait(sim, CSTS_RDY).await;
        // A controller that does not support the configuration does not become ready.
        self.pairs.clear();
        if self.is_ready() {
            self.pairs = Host::new(sim, self.controller.clone()).pairs;
        }
    }

    /// Whether the controller is enabled and has not failed. A controller fails if its host is silent beyond the keep-alive
    /// timeout.
    fn is_ready(&self) -> bool {
        self.controller.register(CSTS) & (CSTS_RDY | CSTS_CFS) == CSTS_RDY
    }

    async fn wait(&self, sim: &Sim, ready: u32) {
        for _ in 0..1_000 {
            if self.controller.register(CSTS) & CSTS_RDY == ready {
                return;
            }
            sim.sleep(Span::from_ms(1)).await;
        }
        assert!(ready != 0, "the controller does not come to rest after a reset");
    }
}

/// Two namespaces of different formats take the place of the one that the drive begins with.
async fn create_namespaces(sim: &Sim, ssd: &Ssd) {
    ssd.subsystem().report_several();
    let admin = Pair::new(sim, &ssd.controller(), 0).expect("it is the first");
    let entry = |opcode, select: u8, nsid: u32| {
        let entry = SubmissionEntry::admin(opcode);
        SubmissionEntry { cdw10: u32::from(select).into(), nsid: nsid.into(), ..entry }
    };
    let management = AdminOpcode::NAMESPACE_MANAGEMENT;
    admin.submit(entry(management, manage::NAMESPACE_DELETE, 1), HostMem::none());
    sim.sleep(LONG).await;
    for (nsid, flbas) in [(1, 0), (2, 2)] {
        let wish =
            Namespace { nsze: BLOCKS.into(), ncap: BLOCKS.into(), flbas, nmic: NMIC_SHARED, ..Namespace::zeroed() };
        admin.submit(entry(management, manage::NAMESPACE_CREATE, 0), HostMem::from_bytes(wish.as_bytes()));
        sim.sleep(LONG).await;
        let list = HostMem::from_bytes(ControllerList::of([IN_PROCESS_CONTROLLER]).as_bytes());
        admin.submit(entry(AdminOpcode::NAMESPACE_ATTACHMENT, manage::NAMESPACE_ATTACH, nsid), list);
        sim.sleep(LONG).await;
    }
    admin.check_ended();
    assert_eq!(ssd.controller().info().blocks, BLOCKS, "a namespace is in place");
    ssd.controller().delete_queue_pair(QueueId::ADMIN).expect("it is there");
}

/// The namespace has pages that are chains of pieces.
async fn format_for_pieces(sim: &Sim, ssd: &Ssd) {
    let admin = Pair::new(sim, &ssd.controller(), 0).expect("it is the first");
    let entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
    let entry = SubmissionEntry { cdw12: FORMAT_PIECES.into(), nsid: 1.into(), ..entry };
    admin.submit(entry, HostMem::none());
    sim.sleep(LONG).await;
    admin.check_ended();
    ssd.controller().delete_queue_pair(QueueId::ADMIN).expect("it is there");
}

async fn run(sim: &Sim, ssd: &Ssd, (opcodes, has_pieces): (Opcodes, bool), input: &mut Input<'_>) {
    let other = HostIdentity {
        hostid: [2; 16],
        hostnqn: "nqn.2014-08.org.nvmexpress:uuid:other".to_owned(),
        ..HostIdentity::default()
    };
    let other = ssd.subsystem().new_controller(other, TransportModel::Message).expect("there is room for it");
    let mut hosts = [Host::new(sim, ssd.controller()), Host { controller: other, pairs: Vec::new() }];
    let cc = hosts[0].controller.register(CC);
    hosts[1].reset(sim, cc).await;
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        step(sim, &mut hosts, (opcodes, cc, has_pieces), input).await;
    }
    hosts.iter().flat_map(|host| &host.pairs).for_each(Pair::ring);
    sim.sleep(LONG).await;
    let ready = hosts.iter().filter(|host| host.is_ready());
    ready.flat_map(|host| &host.pairs).for_each(Pair::check_ended);
}

async fn step(
    sim: &Sim,
    hosts: &mut [Host; 2],
    (opcodes, cc, has_pieces): (Opcodes, u32, bool),
    input: &mut Input<'_>,
) {
    let choice = input.byte();
    let host = &mut hosts[usize::from(choice >> 7)];
    match choice & 0x7f {
        0x70..0x78 => sim.sleep(Span::from_us(input.number() & 0xfffff)).await,
        0x78..0x7c => host.pairs.iter().for_each(|pair| pair.abort(input.byte().into())),
        0x7c => {
            let bits = input.number32();
            host.reset(sim, cc ^ bits << 11 & 7 << 11).await;
        }
        0x7d.. => {
            let (register, value) = (input.byte().into(), input.number32());
            host.controller.set_register(register, value);
            if register == CC {
                // A reset deletes the queues, with commands that will have no completion.
                host.pairs.clear();
            }
        }
        at => {
            let Some(pair) = host.pairs.get(usize::from(at) % 3) else { return };
            let is_admin = usize::from(at) % 3 == 0;
            let mut entry = entry(input, opcodes, is_admin);
            let made = if has_pieces && !is_admin { buffers::of(&mut entry, input) } else { None };
            let sets_windows = is_set_windows(&entry);
            let has_lists = (oc::VECTOR_RESET.0..=oc::VECTOR_COPY.0).contains(&entry.opcode);
            let mem = match made {
                Some(mem) => mem,
                None if has_lists => listed(input),
                None => data(input),
            };
            if sets_windows && mem.len() >= WINDOWS_HEAD.len() {
                mem.write(0, &WINDOWS_HEAD);
            }
            pair.submit(entry, mem);
        }
    }
}

/// Magic and version of [`Windows`](vendor::Windows), which no script would find.
const WINDOWS_HEAD: [u8; 6] = *b"NAND\x01\x00";

/// Whether an entry of an admin queue sets windows by schedule.
fn is_set_windows(entry: &SubmissionEntry) -> bool {
    entry.opcode == AdminOpcode::SET_FEATURES.0 && entry.cdw10.get() as u8 == vendor::WINDOWS
}

/// A length, and the first bytes.
fn data(input: &mut Input<'_>) -> HostMem {
    let len = match input.byte() {
        0 => return HostMem::none(),
        1 => 4_096,
        blocks @ 2..0x80 => usize::from(blocks) * 512,
        _ => (input.number() % MOST_DATA) as usize,
    };
    let given = input.byte().into();
    let given = input.take(given);
    let mut bytes = given.to_vec();
    bytes.resize(len, 0);
    HostMem::from_bytes(&bytes)
}

/// Data, and two lists of addresses, each in a row.
fn listed(input: &mut Input<'_>) -> HostMem {
    let lists = [(); 2].map(|()| {
        let (first, count) = (input.number(), u64::from(input.byte()));
        let bytes: Vec<u8> = (0..count).flat_map(|at| first.wrapping_add(at).to_le_bytes()).collect();
        HostMem::from_bytes(&bytes)
    });
    HostMem::over(Rc::new(Listed::new(data(input), lists.into())))
}
