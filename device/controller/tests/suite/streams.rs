//! The Streams directive: the view of a host, limits, resets and power cuts, and random commands against a model.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed of the random commands; failures print their seed.

use std::collections::BTreeMap;

use crate::common::{BLOCKS, Drive, host, placing_drive, read, write};
use nandscape_device_ftl_core::{Ftl, Interface, Isolation, PlacementConfig};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::directive::{self, Parameters};
use nandscape_wire_nvme::identify::{self, cns};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, log};
use zerocopy::FromBytes;

const SEEDS: u64 = 12;
const ALL: u32 = u32::MAX;

fn with<T>(streams: u8, isolation: Isolation, test: impl AsyncFnOnce(&Sim, &Drive) -> T) -> T {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let placement = PlacementConfig { handles: streams + 1, isolation, interface: Interface::Streams };
    let drive = placing_drive(&sim, placement, &[]);
    let result = executor.block_on(test(&sim, &drive)).unwrap();
    drive.subsystem().ftl().check().unwrap();
    result
}

async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.unwrap();
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

async fn send(admin: &Host, nsid: u32, (kind, operation): (u8, u8), specific: u16, cdw12: u32) -> Result<u32, Status> {
    let entry = directive::command(AdminOpcode::DIRECTIVE_SEND, nsid, kind, operation, specific, cdw12);
    run(admin, entry, HostMem::none()).await
}

/// Enables or disables a directive.
async fn enable(admin: &Host, nsid: u32, kind: u8, enables: bool) -> Result<u32, Status> {
    send(admin, nsid, (directive::IDENTIFY, directive::ENABLE), 0, directive::enable(kind, enables)).await
}

async fn receive(admin: &Host, nsid: u32, (kind, operation): (u8, u8), bytes: u32) -> Result<Vec<u8>, Status> {
    let entry = directive::command(AdminOpcode::DIRECTIVE_RECEIVE, nsid, kind, operation, 0, 0);
    let mem = HostMem::zeroed(bytes as usize);
    run(admin, SubmissionEntry { cdw10: (bytes / 4 - 1).into(), ..entry }, mem.clone()).await?;
    Ok(mem.to_vec())
}

/// Supported, enabled, persistent.
async fn directives(admin: &Host) -> [u8; 3] {
    let bytes = receive(admin, 1, (directive::IDENTIFY, directive::RETURN_PARAMETERS), 4_096).await.unwrap();
    [bytes[0], bytes[32], bytes[64]]
}

async fn parameters(admin: &Host, nsid: u32) -> Result<Parameters, Status> {
    let bytes = receive(admin, nsid, (directive::STREAMS, directive::RETURN_PARAMETERS), 32).await?;
    Ok(Parameters::read_from_bytes(&bytes).unwrap())
}

/// NSSA, NSSO, NSA, NSO.
async fn counts(admin: &Host) -> [u16; 4] {
    let all = parameters(admin, 1).await.unwrap();
    [all.available, all.open, all.allocated, all.namespace_open].map(|field| field.get())
}

async fn open(admin: &Host, nsid: u32) -> Vec<u16> {
    let bytes = receive(admin, nsid, (directive::STREAMS, directive::GET_STATUS), 64).await.unwrap();
    let words: Vec<u16> = bytes.chunks(2).map(|word| u16::from_le_bytes([word[0], word[1]])).collect();
    words[1..=usize::from(words[0])].to_vec()
}

async fn allocate(admin: &Host, wanted: u16) -> Result<u32, Status> {
    let operation = directive::ALLOCATE_RESOURCES;
    let opcode = AdminOpcode::DIRECTIVE_RECEIVE;
    run(admin, directive::command(opcode, 1, directive::STREAMS, operation, 0, wanted.into()), HostMem::none()).await
}

async fn release(admin: &Host, identifier: u16) -> Result<u32, Status> {
    send(admin, 1, (directive::STREAMS, directive::RELEASE_IDENTIFIER), identifier, 0).await
}

async fn release_all(admin: &Host) -> Result<u32, Status> {
    send(admin, 1, (directive::STREAMS, directive::RELEASE_RESOURCES), 0, 0).await
}

/// A write with a directive.
async fn write_to(io: &Host, kind: u8, identifier: u16) -> Result<u32, Status> {
    let (entry, mem) = write(0, 8);
    run(io, directed(entry, kind, identifier), mem).await
}

fn directed(entry: SubmissionEntry, kind: u8, identifier: u16) -> SubmissionEntry {
    let cdw12 = entry.cdw12.get() | u32::from(kind) << 20;
    SubmissionEntry { cdw12: cdw12.into(), cdw13: (u32::from(identifier) << 16).into(), ..entry }
}

/// Bytes that hosts have written by each handle.
fn written(drive: &Drive) -> Vec<u64> {
    drive
        .subsystem()
        .ftl()
        .offers()
        .placement
        .unwrap()
        .report()
        .handles
        .iter()
        .map(|handle| handle.host_written)
        .collect()
}

#[test]
fn a_host_finds_and_enables_streams() {
    with(3, Isolation::Persistent, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let mem = HostMem::zeroed(4_096);
        run(&admin, SubmissionEntry::identify(cns::CONTROLLER, 0), mem.clone()).await.unwrap();
        let data = identify::Controller::read_from_bytes(&mem.to_vec()).unwrap();
        assert_ne!(data.oacs.get() & identify::OACS_DIRECTIVES, 0);
        assert_eq!(data.ctratt.get() & identify::CTRATT_PLACEMENT, 0, "no Flexible Data Placement");
        run(&admin, SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096), mem.clone()).await.unwrap();
        assert!([0x19, 0x1a].iter().all(|opcode| mem.to_vec()[opcode * 4] & 1 != 0));

        assert_eq!(directives(&admin).await, [0b11, 0b01, 0], "streams are not enabled yet");
        assert_eq!(parameters(&admin, 1).await, Err(Status::INVALID_FIELD));
        assert_eq!(release(&admin, 1).await, Err(Status::INVALID_FIELD));
        for (kind, identifier) in [(directive::STREAMS, 5), (directive::PLACEMENT, 1), (7, 7)] {
            assert_eq!(write_to(&io, kind, identifier).await, Ok(0), "fields are ignored");
        }
        assert_eq!(written(drive), [3 * 4_096, 0, 0, 0]);

        enable(&admin, 1, directive::STREAMS, true).await.unwrap();
        assert_eq!(directives(&admin).await, [0b11, 0b11, 0]);
        let all = parameters(&admin, 1).await.unwrap();
        assert_eq!((all.most.get(), all.capability), (3, 0));
        assert_eq!((all.write_size.get(), all.granularity.get()), (32, 64), "a page of 16 KiB, a block on four planes");
        assert_eq!(counts(&admin).await, [3, 0, 0, 0]);
        let whole = parameters(&admin, ALL).await.unwrap();
        assert_eq!((whole.most.get(), whole.available.get(), whole.write_size.get()), (3, 3, 0));

        assert_eq!(write_to(&io, directive::STREAMS, 0xffff).await, Ok(0));
        assert_eq!(write_to(&io, directive::STREAMS, 5).await, Ok(0));
        assert_eq!(write_to(&io, directive::STREAMS, 0).await, Ok(0), "no stream");
        assert_eq!(write_to(&io, directive::PLACEMENT, 1).await, Err(Status::INVALID_FIELD), "another is enabled");
        assert_eq!(written(drive), [4 * 4_096, 4_096, 4_096, 0]);
        assert_eq!((open(&admin, 1).await, open(&admin, ALL).await), (vec![5, 0xffff], vec![5, 0xffff]));
        let spoil = SubmissionEntry::blocks(nandscape_wire_nvme::IoOpcode::WRITE_UNCORRECTABLE, 1, 0, 8);
        assert_eq!(run(&io, directed(spoil, directive::STREAMS, 9), HostMem::none()).await, Ok(0), "it has no data");
        assert_eq!(counts(&admin).await, [3, 2, 0, 2]);
        release(&admin, 5).await.unwrap();
        release(&admin, 77).await.unwrap();
        assert_eq!(open(&admin, 1).await, [0xffff]);
        enable(&admin, ALL, directive::STREAMS, false).await.unwrap();
        assert_eq!(directives(&admin).await, [0b11, 0b01, 0]);
        enable(&admin, ALL, directive::STREAMS, true).await.unwrap();
        assert_eq!(counts(&admin).await, [3, 0, 0, 0], "they were closed");
    });
}

#[test]
fn bad_fields_are_refused() {
    with(2, Isolation::Initial, async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        enable(&admin, 1, directive::STREAMS, true).await.unwrap();
        let invalid = Err(Status::INVALID_FIELD);
        assert_eq!(enable(&admin, 1, directive::IDENTIFY, true).await, invalid, "it is always enabled");
        assert_eq!(enable(&admin, 1, directive::PLACEMENT, true).await, invalid, "not supported");
        assert_eq!(enable(&admin, 2, directive::STREAMS, true).await, invalid, "no such namespace");
        assert_eq!(enable(&admin, 0, directive::STREAMS, true).await, Err(Status::INVALID_NAMESPACE));
        assert_eq!(send(&admin, 1, (directive::IDENTIFY, 2), 0, 0x101).await, invalid);
        assert_eq!(send(&admin, 1, (directive::STREAMS, 3), 0, 0).await, invalid);
        assert_eq!(send(&admin, 1, (directive::PLACEMENT, 1), 0, 0).await, invalid);
        assert_eq!(send(&admin, ALL, (directive::STREAMS, 1), 5, 0).await, invalid);
        for command in [(directive::IDENTIFY, 2), (directive::STREAMS, 4), (directive::PLACEMENT, 1), (9, 1)] {
            assert_eq!(receive(&admin, 1, command, 32).await.err(), Some(Status::INVALID_FIELD), "{command:?}");
        }
        assert_eq!(receive(&admin, ALL, (directive::IDENTIFY, 1), 32).await.err(), Some(Status::INVALID_FIELD));
        let status = (directive::STREAMS, directive::GET_STATUS);
        assert_eq!(receive(&admin, 1, status, 256 << 10).await.err(), Some(Status::INVALID_FIELD), "over the limit");
        assert_eq!(receive(&admin, 1, status, 4).await, Ok(vec![0; 4]));
    });
}

#[test]
fn resources_of_a_namespace_are_its_own() {
    with(3, Isolation::Initial, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        enable(&admin, 1, directive::STREAMS, true).await.unwrap();
        for identifier in [10, 20, 30] {
            write_to(&io, directive::STREAMS, identifier).await.unwrap();
        }
        assert_eq!(allocate(&admin, 2).await, Ok(2));
        assert_eq!((open(&admin, 1).await, counts(&admin).await), (vec![20, 30], [1, 0, 2, 2]));
        assert_eq!(allocate(&admin, 1).await, Err(Status::INVALID_FIELD), "they are to be released first");
        write_to(&io, directive::STREAMS, 20).await.unwrap();
        write_to(&io, directive::STREAMS, 40).await.unwrap();
        assert_eq!(open(&admin, 1).await, [20, 40], "the stream written least recently has made room");
        assert_eq!(open(&admin, ALL).await, [0; 0], "they use resources of the namespace");
        release(&admin, 20).await.unwrap();
        assert_eq!(counts(&admin).await, [1, 0, 2, 1], "the resource stays with the namespace");
        release_all(&admin).await.unwrap();
        release_all(&admin).await.unwrap();
        assert_eq!(counts(&admin).await, [3, 0, 0, 0]);
        assert_eq!(allocate(&admin, 9).await, Ok(3), "as many as there are");
        release_all(&admin).await.unwrap();
    });
}

#[test]
fn resets_power_cuts_and_format_release_streams() {
    with(2, Isolation::Initial, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        enable(&admin, 1, directive::STREAMS, true).await.unwrap();
        allocate(&admin, 1).await.unwrap();
        write_to(&io, directive::STREAMS, 6).await.unwrap();
        let format = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
        run(&admin, format, HostMem::none()).await.unwrap();
        assert_eq!(counts(&admin).await, [1, 0, 1, 0], "streams are closed, resources stay");
        write_to(&io, directive::STREAMS, 6).await.unwrap();
        drive.subsystem().ftl().media().cut_power(Span::from_ms(1));
        sim.sleep(Span::from_s(1)).await;
        assert_eq!(directives(&admin).await[1], 0b01, "disabled");
        enable(&admin, 1, directive::STREAMS, true).await.unwrap();
        assert_eq!(counts(&admin).await, [2, 0, 0, 0]);
    });
}

/// The expected contents of the drive, and the expected open streams.
struct Model {
    data: Vec<u8>,
    /// The number of the last write, by identifier.
    open: BTreeMap<u16, u64>,
    own: usize,
    enabled: bool,
    /// Bytes written without a stream, and with one.
    written: [u64; 2],
}

impl Model {
    fn write(&mut self, identifier: u16, number: u64, most: usize, bytes: u64) {
        let has_stream = self.enabled && identifier > 0;
        self.written[usize::from(has_stream)] += bytes;
        if has_stream {
            self.open.insert(identifier, number);
            self.shrink(if self.own > 0 { self.own } else { most });
        }
    }

    fn shrink(&mut self, most: usize) {
        while self.open.len() > most {
            let oldest = *self.open.iter().min_by_key(|(_, number)| **number).unwrap().0;
            self.open.remove(&oldest);
        }
    }
}

async fn random_commands(sim: &Sim, drive: &Drive, streams: u8, rng: &mut Rng) {
    let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
    let most = usize::from(streams);
    let mut model =
        Model { data: vec![0; BLOCKS as usize], open: BTreeMap::new(), own: 0, enabled: false, written: [0; 2] };
    for number in 0..2_000u64 {
        let (blocks, identifier) = (1 + rng.below(64), rng.below(2 * u64::from(streams) + 1) as u16);
        let slba = rng.below(BLOCKS - blocks);
        let range = slba as usize..(slba + blocks) as usize;
        match rng.below(100) {
            0..70 => {
                let byte = number as u8 | 1;
                let (entry, _) = write(slba, blocks as u32);
                let mem = HostMem::from_bytes(&vec![byte; blocks as usize * 512]);
                run(&io, directed(entry, directive::STREAMS, identifier), mem).await.unwrap();
                model.write(identifier, number, most, blocks * 512);
                model.data[range].fill(byte);
            }
            70..80 => {
                let mem = HostMem::zeroed(blocks as usize * 512);
                run(&io, read(slba, blocks as u32), mem.clone()).await.unwrap();
                let expected = model.data[range].iter().flat_map(|byte| [*byte; 512]).collect::<Vec<u8>>();
                assert!(mem.to_vec() == expected, "blocks {slba} and {blocks} more");
            }
            80..85 => {
                let enables = rng.below(4) > 0;
                enable(&admin, 1, directive::STREAMS, enables).await.unwrap();
                model.enabled = enables;
                if !enables {
                    (model.own, model.open) = (0, BTreeMap::new());
                }
            }
            85..90 => {
                let wanted = rng.below(u64::from(streams) + 2) as u16;
                let expected = match model.enabled && model.own == 0 {
                    true => Ok(u32::from(wanted.min(streams.into()))),
                    false => Err(Status::INVALID_FIELD),
                };
                assert_eq!(allocate(&admin, wanted).await, expected);
                if let Ok(given) = expected {
                    model.own = given as usize;
                    model.shrink(if given > 0 { model.own } else { most });
                }
            }
            90..95 => {
                let expected = if model.enabled { Ok(0) } else { Err(Status::INVALID_FIELD) };
                assert_eq!(release(&admin, identifier).await, expected);
                model.open.remove(&identifier);
            }
            95..97 if model.enabled => {
                release_all(&admin).await.unwrap();
                if model.own > 0 {
                    model.own = 0;
                }
                model.open.clear();
            }
            _ if model.enabled => {
                assert_eq!(open(&admin, 1).await, model.open.keys().copied().collect::<Vec<_>>());
                let [of_all, own, open] = [most - model.own, model.own, model.open.len()].map(|count| count as u16);
                let shared = if own > 0 { 0 } else { open };
                assert_eq!(counts(&admin).await, [of_all, shared, own, open]);
            }
            _ => assert_eq!(parameters(&admin, 1).await, Err(Status::INVALID_FIELD)),
        }
    }
    let written = written(drive);
    assert_eq!([written[0], written[1..].iter().sum()], model.written);
}

#[test]
fn random_commands_leave_what_a_model_holds() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + SEEDS {
        let ended = std::panic::catch_unwind(|| {
            let mut rng = Seed::new(seed).rng();
            let isolation = if rng.below(2) == 0 { Isolation::Initial } else { Isolation::Persistent };
            let streams = 1 + rng.below(if isolation == Isolation::Initial { 3 } else { 2 }) as u8;
            with(streams, isolation, async |sim, drive| random_commands(sim, drive, streams, &mut rng).await);
        });
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}
