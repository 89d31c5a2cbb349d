//! Every opcode, through served chains of layers as a client sends it. A good command that the chain offers ends with the status that
//! is written here, and has its effect; every other opcode is Invalid Command Opcode. Identify and the effects log name the same ones.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use nandscape_device_ssd::Resolved;
use nandscape_drive::conformance::Host;
use nandscape_drive::testing::tenant::{Tenant, run};
use nandscape_drive::{HostMem, Subsystem};
use nandscape_lab_run::chain::{check_chunks, is_over_chunks, offers};
use nandscape_lab_run::{ArraySpec, Chain, DriveSpec, LiveSpec, LowestSpec, Offers, Precondition, offers_of_model};
use nandscape_layers_array::Config;
use nandscape_sim::{Executor, Rng, Seed, Sim};
use nandscape_transport_reactor::Connect as _;
use nandscape_wire_nvme::identify::{self, Controller, Namespace, cns};
use nandscape_wire_nvme::io::{CopyRange, DsmRange};
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::reservation::Keys;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::chains::{FTL, opened, profile, profile_of_chunks, seed};
use crate::kinds::drawn;

/// Blocks that are written before: block `n` is filled with `n + 1`.
const WRITTEN: u64 = 128;
/// The block that is written uncorrectable, between two that can be read.
const SPOILED: u64 = 5;
/// Write Exclusive, as CDW10 of the reservation commands.
const WRITE_EXCLUSIVE: u32 = 1 << 8;

/// Admin commands of all fronts: those of a controller. Asynchronous Event Request stays outstanding, and is not sent.
const ADMIN: [AdminOpcode; 8] = [
    AdminOpcode::GET_LOG_PAGE,
    AdminOpcode::IDENTIFY,
    AdminOpcode::ABORT,
    AdminOpcode::SET_FEATURES,
    AdminOpcode::GET_FEATURES,
    AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST,
    AdminOpcode::KEEP_ALIVE,
    AdminOpcode::DEVICE_SELF_TEST,
];

/// A client of a chain.
struct Client {
    tenant: Tenant,
    lba_bytes: usize,
    /// Whether Write Uncorrectable is offered.
    spoils: bool,
    /// The chain, in messages.
    of: String,
}

impl Client {
    fn new(sim: &Sim, subsystem: &dyn Subsystem, spoils: bool, of: String) -> Client {
        let lba_bytes = subsystem.info().lba_bytes as usize;
        Client { tenant: Tenant::new(sim, subsystem, 7), lba_bytes, spoils, of }
    }

    /// Sends every opcode on both queues.
    async fn sends_all(&self) {
        self.write_all().await;
        let effects = self.effects().await;
        for opcode in 0..=u8::MAX {
            let (entry, mem) = self.good(opcode);
            let expected = if self.offers(opcode) { Status::SUCCESS } else { Status::INVALID_OPCODE };
            self.ends(&self.tenant.io, entry, mem, expected).await;
            assert_eq!(
                is_named(effects.io[usize::from(opcode)].get()),
                self.offers(opcode),
                "{}: {opcode:#04x}",
                self.of
            );
        }
        for opcode in 0..=u8::MAX {
            let offered = ADMIN.contains(&AdminOpcode(opcode));
            assert_eq!(is_named(effects.admin[usize::from(opcode)].get()), offered, "{}: {opcode:#04x}", self.of);
            if AdminOpcode(opcode) != AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST {
                let expected = if offered { Status::SUCCESS } else { Status::INVALID_OPCODE };
                self.ends(&self.tenant.admin, good_admin(opcode), HostMem::zeroed(4_096), expected).await;
            }
        }
        self.check_effects().await;
        self.check_identify().await;
        // Half of a fused pair.
        let half = SubmissionEntry { flags: 1, ..self.good(IoOpcode::READ.0).0 };
        self.ends(&self.tenant.io, half, HostMem::zeroed(self.lba_bytes), Status::INVALID_FIELD).await;
        self.tenant.io.verdict().unwrap_or_else(|fault| panic!("{}: {fault}", self.of));
    }

    /// Whether an I/O opcode is offered: reservations by the front, a Copy also where the front makes it of reads and writes.
    fn offers(&self, opcode: u8) -> bool {
        match opcode {
            0x00 | 0x01 | 0x02 | 0x05 | 0x08 | 0x09 | 0x0c | 0x19 => true,
            0x0d | 0x0e | 0x11 | 0x15 => true,
            0x04 => self.spoils,
            _ => false,
        }
    }

    /// A command that is right if its opcode is known.
    fn good(&self, opcode: u8) -> (SubmissionEntry, HostMem) {
        let blocks = |slba, count| SubmissionEntry::blocks(IoOpcode(opcode), 1, slba, count);
        let io = |cdw10: u32| SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::io(IoOpcode(opcode), 1) };
        let keys = |current: u64, other: u64| {
            HostMem::from_bytes(Keys { current: current.into(), other: other.into() }.as_bytes())
        };
        match IoOpcode(opcode) {
            IoOpcode::FLUSH => (io(0), HostMem::none()),
            IoOpcode::WRITE => (blocks(100, 1), self.pattern(99, 1)),
            IoOpcode::READ => (blocks(3, 1), HostMem::zeroed(self.lba_bytes)),
            IoOpcode::WRITE_UNCORRECTABLE => (blocks(SPOILED, 1), HostMem::none()),
            IoOpcode::COMPARE => (blocks(3, 2), self.pattern(3, 2)),
            IoOpcode::WRITE_ZEROES => (blocks(7, 1), HostMem::none()),
            IoOpcode::DATASET_MANAGEMENT => {
                let range = DsmRange { slba: 120.into(), blocks: 4.into(), ..DsmRange::default() };
                (SubmissionEntry::deallocate(1, 1), HostMem::from_bytes(range.as_bytes()))
            }
            IoOpcode::VERIFY => (blocks(8, 4), HostMem::none()),
            IoOpcode::RESERVATION_REGISTER => (io(0), keys(0, 7)),
            IoOpcode::RESERVATION_REPORT => (SubmissionEntry { cdw11: 1.into(), ..io(1_023) }, HostMem::zeroed(4_096)),
            IoOpcode::RESERVATION_ACQUIRE | IoOpcode::RESERVATION_RELEASE => (io(WRITE_EXCLUSIVE), keys(7, 0)),
            IoOpcode::COPY => {
                let range = |slba: u64, nlb_z: u16| CopyRange {
                    slba: slba.into(),
                    nlb_z: nlb_z.into(),
                    ..CopyRange::default()
                };
                (SubmissionEntry::copy(1, 80, 2, 0), HostMem::from_bytes([range(3, 1), range(40, 2)].as_bytes()))
            }
            IoOpcode(other) if Transfer::of(other) == Transfer::None => (blocks(0, 1), HostMem::none()),
            _ => (blocks(0, 1), HostMem::zeroed(4_096)),
        }
    }

    /// The data of blocks that nothing has changed.
    fn pattern(&self, first: u64, count: u64) -> HostMem {
        let bytes = (first..first + count).flat_map(|block| vec![block as u8 + 1; self.lba_bytes]);
        HostMem::from_bytes(&bytes.collect::<Vec<_>>())
    }

    async fn write_all(&self) {
        for first in (0..WRITTEN).step_by(32) {
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, first, 32);
            self.ends(&self.tenant.io, entry, self.pattern(first, 32), Status::SUCCESS).await;
        }
        // A cache has the pages from now on.
        for block in (0..16).chain(80..88) {
            assert_eq!(self.value(block).await, Ok(block as u8 + 1), "{}: block {block}", self.of);
        }
    }

    /// The first byte of a block.
    async fn value(&self, slba: u64) -> Result<u8, Status> {
        let (entry, mem) = (SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), HostMem::zeroed(self.lba_bytes));
        run(&self.tenant.io, entry, mem.clone()).await.map(|_| mem.to_vec()[0])
    }

    async fn ends(&self, on: &Host, entry: SubmissionEntry, mem: HostMem, expected: Status) {
        let found = run(on, entry, mem).await.err().unwrap_or(Status::SUCCESS);
        assert_eq!(found, expected, "{}: opcode {:#04x}", self.of, entry.opcode);
    }

    /// The blocks are as the commands have left them.
    async fn check_effects(&self) {
        let spoiled = if self.spoils { Err(Status::UNRECOVERED_READ_ERROR) } else { Ok(SPOILED as u8 + 1) };
        let copied =
            [(80, 4), (81, 5), (82, 41), (83, 42), (84, 43), (85, 86)].map(|(block, value)| (block, Ok(value)));
        let others = [(3, Ok(4)), (4, Ok(5)), (SPOILED, spoiled), (6, Ok(7)), (7, Ok(0)), (8, Ok(9)), (100, Ok(100))];
        for (block, expected) in others.into_iter().chain(copied) {
            assert_eq!(self.value(block).await, expected, "{}: block {block}", self.of);
        }
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, SPOILED, 1);
        self.ends(&self.tenant.io, entry, self.pattern(9, 1), Status::SUCCESS).await;
        assert_eq!(self.value(SPOILED).await, Ok(10), "{}: a write heals the block", self.of);
    }

    async fn data(&self, entry: SubmissionEntry) -> Vec<u8> {
        let mem = HostMem::zeroed(4_096);
        self.ends(&self.tenant.admin, entry, mem.clone(), Status::SUCCESS).await;
        mem.to_vec()
    }

    async fn effects(&self) -> CommandsAndEffects {
        let page = SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096);
        CommandsAndEffects::read_from_bytes(&self.data(page).await).unwrap()
    }

    async fn check_identify(&self) {
        let controller = self.data(SubmissionEntry::identify(cns::CONTROLLER, 0)).await;
        let controller = Controller::read_from_bytes(&controller).unwrap();
        let of_drives =
            identify::ONCS_COMPARE | identify::ONCS_DSM | identify::ONCS_WRITE_ZEROES | identify::ONCS_VERIFY;
        let of_front =
            identify::ONCS_SAVE | identify::ONCS_TIMESTAMP | identify::ONCS_RESERVATIONS | identify::ONCS_COPY;
        let spoils = if self.spoils { identify::ONCS_WRITE_UNCORRECTABLE } else { 0 };
        assert_eq!(controller.oncs.get(), of_drives | of_front | spoils, "{}", self.of);
        assert_eq!((controller.fuses.get(), controller.oacs.get()), (0, identify::OACS_SELF_TEST), "{}", self.of);
        let namespace = self.data(SubmissionEntry::identify(cns::NAMESPACE, 1)).await;
        let namespace = Namespace::read_from_bytes(&namespace).unwrap();
        assert_eq!(
            (namespace.lbaf[0].ms.get(), namespace.nlbaf_z),
            (0, 0),
            "{}: one format, without metadata",
            self.of
        );
        let (of_one, of_all) = (u32::from(namespace.mssrl.get()), namespace.mcl.get());
        assert!((1..=of_all).contains(&of_one) && namespace.msrc_z == 127, "{}: {of_one} and {of_all}", self.of);
        // The most that a Copy may move is moved, and no block more.
        let copy = async |blocks: u32| {
            let range = CopyRange { nlb_z: (of_one.min(blocks) as u16 - 1).into(), ..CopyRange::default() };
            let list = vec![range; blocks.div_ceil(of_one) as usize];
            let entry = SubmissionEntry::copy(1, 128, list.len() as u32, 0);
            run(&self.tenant.io, entry, HostMem::from_bytes(list.as_bytes())).await
        };
        let most = of_all / of_one * of_one;
        assert_eq!(copy(most).await, Ok(0), "{}", self.of);
        assert_eq!(copy(of_all + 1).await, Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED), "{}", self.of);
    }
}

fn is_named(effects: u32) -> bool {
    effects & log::EFFECT_SUPPORTED != 0
}

/// An admin command that is right if its opcode is known.
fn good_admin(opcode: u8) -> SubmissionEntry {
    const ARBITRATION: u8 = 1;
    let plain = SubmissionEntry::admin(AdminOpcode(opcode));
    match AdminOpcode(opcode) {
        AdminOpcode::GET_LOG_PAGE => SubmissionEntry::get_log_page(log::SMART, NSID_ALL, 512),
        AdminOpcode::IDENTIFY => SubmissionEntry::identify(cns::CONTROLLER, 0),
        AdminOpcode::ABORT => SubmissionEntry { cdw10: 1.into(), ..plain },
        AdminOpcode::SET_FEATURES => SubmissionEntry::set_features(ARBITRATION, 0),
        AdminOpcode::GET_FEATURES => SubmissionEntry::get_features(ARBITRATION),
        AdminOpcode::DEVICE_SELF_TEST => SubmissionEntry { nsid: 1.into(), cdw10: 1.into(), ..plain },
        _ => plain,
    }
}

fn spec(number: u64, profile: &Resolved) -> DriveSpec {
    DriveSpec {
        name: format!("drive-{number}"),
        number,
        profile_name: "default".to_owned(),
        profile: profile.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
        from_state: None,
        is_shared: false,
        own_seed: None,
    }
}

/// Layers over as many drives as they take.
fn group(words: &[&str]) -> LiveSpec {
    let chain: Chain = words.join(" ").parse().unwrap();
    let layers = chain.resolve().unwrap();
    let profile = if is_over_chunks(&layers) { profile_of_chunks() } else { profile() };
    let drives =
        (0..crate::kinds::takes(words) as u64).map(|number| LowestSpec::Model(spec(number, &profile))).collect();
    LiveSpec { name: "array".to_owned(), drives, chain, is_engine: false }
}

fn every_opcode(words: &[&str]) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let export =
        group(words).build(&mut executor, seed(), Vec::new(), &()).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let is_split = words.iter().any(|word| word.starts_with("raid") || word.starts_with("ahci"));
    let of = format!("{}, seed {}", words.join(" "), seed());
    let offers = export.offers();
    assert_eq!((offers.copy, offers.write_uncorrectable), (!is_split, !is_split), "{of}");
    let client = Client::new(&sim, &*export.subsystem().unwrap(), !is_split, of.clone());
    executor.block_on(client.sends_all()).unwrap();
    export.check().unwrap_or_else(|problem| panic!("{of}: {problem}"));
}

#[test]
fn every_opcode_through_drawn_chains_of_four() {
    let mut rng: Rng = Seed::new(seed()).child("opcodes").rng();
    for number in 0..20 {
        every_opcode(&drawn(&mut rng, (number % 4 == 0).then_some(FTL)));
    }
}

/// Layers of a served drive, and of each drive of a served array.
const CHAINS: [&str; 5] = ["block", "cache,memory=64KiB", "block cache", "cache block", "block a=cache cache"];

#[test]
fn every_opcode_through_layers_of_a_drive_and_of_members() {
    for text in CHAINS {
        let chain: Chain = text.parse().unwrap();
        let mut executor = Executor::new();
        let (sim, small) = (executor.sim(), profile());
        let over = |number| LiveSpec { chain: chain.clone(), ..LowestSpec::Model(spec(number, &small)).into() };
        let export = over(0).build(&mut executor, seed(), Vec::new(), &()).unwrap();
        let client = Client::new(&sim, &*export.subsystem().unwrap(), true, text.to_owned());
        executor.block_on(client.sends_all()).unwrap();
        let array = ArraySpec {
            name: "array".to_owned(),
            shape: "raid5:3".parse().unwrap(),
            config: Config::default(),
            members: (0..3).map(over).collect(),
            creates: false,
            is_degraded: false,
            overwrites: false,
        };
        let export = array.build(&mut executor, seed(), vec![None, None, None], &()).unwrap();
        let client = Client::new(&sim, &*export.subsystem().unwrap(), false, format!("an array over {text}"));
        executor.block_on(client.sends_all()).unwrap();
        every_opcode(&[&[FTL], &text.split(' ').collect::<Vec<_>>()[..]].concat());
    }
}

/// The columns of the table in docs/layers.md, and a chain of each.
const COLUMNS: [(&str, &str); 5] =
    [("`block`", "block"), ("`cache`", "cache"), ("`ftl`", FTL), ("`ahci:N`", "ahci:2"), ("arrays", "raid5:3")];

/// A row of the table: of a command or a field that a layer may take. What a layer takes over a drive that takes nothing, it answers.
fn row(name: &str, has: fn(&Offers) -> bool, otherwise: &str) -> String {
    let all = Offers {
        compare: true,
        deallocate: true,
        write_zeroes: true,
        verify: true,
        write_uncorrectable: true,
        copy: true,
        deadlines: true,
        ..offers_of_model(&nandscape_drive::testing::INFO)
    };
    let cell = |chain: &str| {
        let executor = Executor::new();
        let (_ssds, opened) = opened(&executor.sim(), &chain.parse().unwrap());
        let of = |below| has(&offers(&opened.layers, below));
        match (of(Offers::default()), of(all)) {
            (true, _) => "answers".to_owned(),
            (_, true) => "passes".to_owned(),
            _ => otherwise.to_owned(),
        }
    };
    let cells: Vec<String> = COLUMNS.iter().map(|(_, chain)| cell(chain)).collect();
    format!("| {name} | {} |", cells.join(" | "))
}

/// The row of commands on the chunks of an open-channel drive.
fn row_of_chunks() -> String {
    let cell = |chain: &str| {
        let layers = chain.parse::<Chain>().unwrap().resolve().unwrap();
        if check_chunks(&layers).is_ok() { "passes" } else { "rejects" }
    };
    let cells: Vec<&str> = COLUMNS.iter().map(|(_, chain)| cell(chain)).collect();
    format!("| commands on chunks, of FOX | {} |", cells.join(" | "))
}

#[test]
fn the_table_of_layers_has_what_they_pass() {
    let page = include_str!("../../../../docs/layers.md");
    let titles: Vec<&str> = COLUMNS.iter().map(|(title, _)| *title).collect();
    let rows = [
        format!("| command or field | {} |", titles.join(" | ")),
        row("Compare", |offers| offers.compare, "rejects"),
        row("Dataset Management", |offers| offers.deallocate, "rejects"),
        row("Write Zeroes", |offers| offers.write_zeroes, "rejects"),
        row("Verify", |offers| offers.verify, "rejects"),
        row("Copy", |offers| offers.copy, "reads and writes"),
        row("Write Uncorrectable", |offers| offers.write_uncorrectable, "rejects"),
        row("deadline of a read", |offers| offers.deadlines, "ignores"),
        row_of_chunks(),
    ];
    for row in rows {
        assert!(page.lines().any(|line| line == row), "docs/layers.md lacks the line\n{row}");
    }
}
