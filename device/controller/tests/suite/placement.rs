//! Flexible Data Placement: the view of a host, random commands against a model, and the effect on write amplification.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed of the random commands; failures print their seed.

use crate::common::{BLOCKS, Drive, host, placing_drive, read, write};
use nandscape_device_ftl_core::{Ftl, Isolation, PlacementConfig, PlacementReport, Plant};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Rng, Seed, Sim};
use nandscape_wire_nvme::fdp::{self, Event, HandleStatus, Statistics};
use nandscape_wire_nvme::identify::{self, cns};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, log};
use zerocopy::{FromBytes, IntoBytes};

const SEEDS: u64 = 12;
/// Bytes of a page and of a block.
const PAGE: u64 = 16 << 10;
const BLOCK: u64 = 16 * PAGE;
/// Bytes of a reclaim unit: a block on each of four planes.
const UNIT: u64 = 4 * BLOCK;

fn with<T>(handles: u8, isolation: Isolation, test: impl AsyncFnOnce(&Sim, &Drive) -> T) -> T {
    with_faults(handles, isolation, &[], test)
}

fn with_faults<T>(handles: u8, isolation: Isolation, faults: &[&str], test: impl AsyncFnOnce(&Sim, &Drive) -> T) -> T {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = placing_drive(&sim, PlacementConfig { handles, isolation, ..PlacementConfig::default() }, faults);
    let result = executor.block_on(test(&sim, &drive)).unwrap();
    drive.subsystem().ftl().check().unwrap();
    result
}

/// A write with a directive.
fn placed(slba: u64, blocks: u32, directive: u8, identifier: u16) -> (SubmissionEntry, HostMem) {
    let (entry, mem) = write(slba, blocks);
    let cdw12 = entry.cdw12.get() | u32::from(directive) << 20;
    (SubmissionEntry { cdw12: cdw12.into(), cdw13: (u32::from(identifier) << 16).into(), ..entry }, mem)
}

async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.unwrap();
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

async fn page(admin: &Host, lid: u8, group: u16, host_events: bool, bytes: u32) -> Result<Vec<u8>, Status> {
    let entry = SubmissionEntry::get_log_page(lid, 0, bytes);
    let (cdw10, cdw11) = (entry.cdw10.get() | u32::from(host_events) << 8, entry.cdw11.get());
    let cdw11 = cdw11 | u32::from(group) << 16;
    let entry = SubmissionEntry { cdw10: cdw10.into(), cdw11: cdw11.into(), ..entry };
    let mem = HostMem::zeroed(bytes as usize);
    run(admin, entry, mem.clone()).await.map(|_| mem.to_vec())
}

async fn statuses(io: &Host, handles: usize) -> Vec<HandleStatus> {
    let bytes = fdp::STATUS_HEAD + handles * 32;
    let entry = SubmissionEntry {
        cdw10: u32::from(fdp::HANDLE_STATUS).into(),
        cdw11: (bytes as u32 / 4 - 1).into(),
        ..SubmissionEntry::io(IoOpcode::IO_MANAGEMENT_RECEIVE, 1)
    };
    let mem = HostMem::zeroed(bytes);
    run(io, entry, mem.clone()).await.unwrap();
    let page = mem.to_vec();
    assert_eq!(page[14..16], (handles as u16).to_le_bytes());
    page[fdp::STATUS_HEAD..].chunks(32).map(|bytes| HandleStatus::read_from_bytes(bytes).unwrap()).collect()
}

async fn update(io: &Host, identifiers: &[u16]) -> Result<u32, Status> {
    let cdw10 = u32::from(fdp::HANDLE_UPDATE) | (identifiers.len() as u32 - 1) << 16;
    let entry = SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::io(IoOpcode::IO_MANAGEMENT_SEND, 1) };
    let list: Vec<u8> = identifiers.iter().flat_map(|identifier| identifier.to_le_bytes()).collect();
    run(io, entry, HostMem::from_bytes(&list)).await
}

fn feature(opcode: AdminOpcode, id: u8, cdw11: u32, cdw12: u32) -> SubmissionEntry {
    let entry = SubmissionEntry::admin(opcode);
    let nsid = u32::from(id == fdp::FEATURE_EVENTS).into();
    SubmissionEntry { nsid, cdw10: u32::from(id).into(), cdw11: cdw11.into(), cdw12: cdw12.into(), ..entry }
}

fn report(drive: &Drive) -> PlacementReport {
    drive.subsystem().ftl().offers().placement.unwrap().report()
}

/// Programs the write buffer, which a host's Flush does not do if capacitors keep the buffer.
async fn program_all(drive: &Drive) {
    if let Some(settling) = drive.subsystem().ftl().flush() {
        settling.settled().await.unwrap();
    }
}

/// The events of hosts, or those of the controller, the newest first.
async fn events(admin: &Host, of_hosts: bool) -> Vec<Event> {
    let bytes = page(admin, fdp::EVENTS, 1, of_hosts, 4_096).await.unwrap();
    let all: Vec<Event> =
        bytes[fdp::EVENTS_HEAD..].chunks(64).map(|bytes| Event::read_from_bytes(bytes).unwrap()).collect();
    all.into_iter().take(bytes[0].into()).collect()
}

/// Enables recording of the controller's events for a handle.
async fn want_own_events(admin: &Host, handle: u32) {
    let kinds = HostMem::from_bytes(&[fdp::EVENT_REALLOCATED, fdp::EVENT_IMPLICITLY_MODIFIED]);
    let set = feature(AdminOpcode::SET_FEATURES, fdp::FEATURE_EVENTS, handle | 2 << 16, 1);
    run(admin, set, kinds).await.unwrap();
}

#[test]
fn data_that_is_moved_is_an_event_of_its_handle_unless_it_stays_isolated() {
    for isolation in [Isolation::Initial, Isolation::Persistent] {
        with(2, isolation, async |sim, drive| {
            let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
            want_own_events(&admin, 1).await;
            let mut rng = Seed::new(5).rng();
            while report(drive).handles[1].moved == 0 {
                let (entry, mem) = placed(rng.below(BLOCKS / 8) * 8, 8, fdp::DTYPE_PLACEMENT, rng.below(2) as u16);
                run(&io, entry, mem).await.unwrap();
            }
            let told = events(&admin, false).await;
            assert!(events(&admin, true).await.is_empty());
            assert!(told.iter().all(|event| (event.kind, event.handle, event.identifier.get()) == (0x80, 1, 1)));
            let valid = fdp::EVENT_IDENTIFIER_VALID | fdp::EVENT_LOCATION_VALID;
            assert!(told.iter().all(|event| (event.flags, event.nsid.get(), event.specific[0]) == (valid, 0, 0)));
            let blocks = |event: &Event| u64::from(u16::from_le_bytes([event.specific[2], event.specific[3]]));
            let moved = told.iter().map(blocks).sum::<u64>() * 512;
            let expected = if isolation == Isolation::Initial { report(drive).handles[1].moved } else { 0 };
            assert!(told.len() < fdp::MOST_EVENTS && moved == expected, "{moved} bytes, {expected} expected");
        });
    }
}

#[test]
fn a_block_that_a_handle_leaves_on_its_own_is_an_event() {
    with_faults(2, Isolation::Initial, &["fail program nth=3"], async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        want_own_events(&admin, 0).await;
        want_own_events(&admin, 1).await;
        for slba in (0..2_048).step_by(8) {
            let (entry, mem) = placed(slba, 8, fdp::DTYPE_PLACEMENT, 1);
            run(&io, entry, mem).await.unwrap();
        }
        program_all(drive).await;
        let told: Vec<_> = events(&admin, false).await.iter().map(|event| (event.kind, event.handle)).collect();
        // The data of the failed block was moved out too.
        assert_eq!(told, [(fdp::EVENT_REALLOCATED, 1), (fdp::EVENT_IMPLICITLY_MODIFIED, 1)]);
    });
}

#[test]
fn a_host_finds_the_handles() {
    with(3, Isolation::Persistent, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let mem = HostMem::zeroed(4_096);
        run(&admin, SubmissionEntry::identify(cns::CONTROLLER, 0), mem.clone()).await.unwrap();
        let data = identify::Controller::read_from_bytes(&mem.to_vec()).unwrap();
        let wanted = identify::CTRATT_PLACEMENT | identify::CTRATT_ENDURANCE_GROUPS;
        assert_eq!((data.ctratt.get() & wanted, data.endgidmax.get()), (wanted, 1));
        run(&admin, SubmissionEntry::identify(cns::NAMESPACE, 1), mem.clone()).await.unwrap();
        assert_eq!(identify::Namespace::read_from_bytes(&mem.to_vec()).unwrap().endgid.get(), 1);

        let bytes = page(&admin, fdp::CONFIGURATIONS, 1, false, 96).await.unwrap();
        assert_eq!((bytes[0], bytes[4], bytes[16], bytes[18]), (0, 96, 80, fdp::CONFIGURATION_VALID));
        assert_eq!((bytes[20], bytes[24], bytes[26]), (1, 3, 2), "a group, handles, identifiers from zero");
        assert_eq!(bytes[32..40], UNIT.to_le_bytes());
        assert_eq!(bytes[80..92], [2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0], "persistently isolated");
        let bytes = page(&admin, fdp::USAGE, 1, false, 32).await.unwrap();
        assert_eq!((bytes[0], bytes[8], bytes[16], bytes[24]), (3, 1, 1, 1));
        assert_eq!(page(&admin, fdp::STATISTICS, 2, false, 64).await, Err(Status::INVALID_FIELD));
        assert!(page(&admin, log::ENDURANCE_GROUP, 1, false, 512).await.is_ok());

        let get = run(&admin, feature(AdminOpcode::GET_FEATURES, fdp::FEATURE, 1, 0), HostMem::none()).await;
        assert_eq!(get, Ok(1), "enabled, by the first configuration");
        let set = run(&admin, feature(AdminOpcode::SET_FEATURES, fdp::FEATURE, 1, 0), HostMem::none()).await;
        assert_eq!(set, Err(Status::FEATURE_NOT_CHANGEABLE));
        let left: Vec<u64> = statuses(&io, 3).await.iter().map(|status| status.left.get() * 512).collect();
        assert_eq!(left, [UNIT; 3]);
    });
}

#[test]
fn a_drive_without_handles_has_none_of_it() {
    with(0, Isolation::Initial, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        assert_eq!(page(&admin, fdp::STATISTICS, 1, false, 64).await, Err(Status::INVALID_LOG_PAGE));
        let get = feature(AdminOpcode::GET_FEATURES, fdp::FEATURE, 1, 0);
        assert_eq!(run(&admin, get, HostMem::none()).await, Err(Status::INVALID_FIELD));
        assert_eq!(update(&io, &[0]).await, Err(Status::INVALID_OPCODE));
        let (entry, mem) = placed(0, 8, fdp::DTYPE_PLACEMENT, 0);
        assert_eq!(run(&io, entry, mem).await, Err(Status::INVALID_FIELD));
    });
}

#[test]
fn identifiers_that_there_are_not_are_events_of_writes_and_errors_of_updates() {
    with(2, Isolation::Initial, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let events = async || events(&admin, true).await;
        let invalid = async || {
            let (entry, mem) = placed(8, 8, fdp::DTYPE_PLACEMENT, 2);
            run(&io, entry, mem).await
        };
        assert_eq!(invalid().await, Ok(0), "the first handle places it");
        assert!(events().await.is_empty(), "nobody has asked for it");
        let kinds = HostMem::from_bytes(&[fdp::EVENT_INVALID_IDENTIFIER, fdp::EVENT_NOT_FULL]);
        let set =
            |handle: u32, enable| feature(AdminOpcode::SET_FEATURES, fdp::FEATURE_EVENTS, handle | 2 << 16, enable);
        run(&admin, set(0, 1), kinds.clone()).await.unwrap();
        assert_eq!(run(&admin, set(2, 1), kinds.clone()).await, Err(Status::INVALID_FIELD), "no such handle");
        let supported = HostMem::zeroed(8);
        let get = feature(AdminOpcode::GET_FEATURES, fdp::FEATURE_EVENTS, 4 << 16, 0);
        assert_eq!(run(&admin, get, supported.clone()).await, Ok(4));
        assert_eq!(supported.to_vec(), [0, 1, 3, 1, 0x80, 0, 0x81, 0]);
        invalid().await.unwrap();
        let told = events().await;
        assert_eq!((told.len(), told[0].kind, told[0].identifier.get(), told[0].nsid.get()), (1, 3, 2, 1));

        // An update of a unit that is written in part.
        program_all(drive).await;
        assert!(statuses(&io, 2).await[0].left.get() * 512 < UNIT);
        update(&io, &[0, 1]).await.unwrap();
        assert_eq!(statuses(&io, 2).await[0].left.get() * 512, UNIT);
        assert_eq!(events().await.iter().map(|event| event.kind).collect::<Vec<_>>(), [0, 3], "the newest first");
        assert_eq!(update(&io, &[0, 2]).await, Err(Status::INVALID_FIELD));
        let streams = placed(0, 8, 1, 1);
        assert_eq!(run(&io, streams.0, streams.1).await, Err(Status::INVALID_FIELD), "no streams");
    });
}

/// The expected contents and counts of the drive.
struct Model {
    data: Vec<u8>,
    written: Vec<u64>,
}

async fn random_commands(sim: &Sim, drive: &Drive, handles: u8, rng: &mut Rng) {
    let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
    let mut model = Model { data: vec![0; BLOCKS as usize], written: vec![0; handles.into()] };
    for number in 0..3_000u64 {
        let blocks = 1 + rng.below(64);
        let slba = rng.below(BLOCKS - blocks);
        let range = slba as usize..(slba + blocks) as usize;
        match rng.below(100) {
            0..70 => {
                // One beyond the last.
                let (identifier, byte) = (rng.below(u64::from(handles) + 1) as u16, number as u8 | 1);
                let directive = if rng.below(4) > 0 { fdp::DTYPE_PLACEMENT } else { 0 };
                let (entry, _) = placed(slba, blocks as u32, directive, identifier);
                run(&io, entry, HostMem::from_bytes(&vec![byte; blocks as usize * 512])).await.unwrap();
                let is_placed = directive > 0 && identifier < handles.into();
                model.written[if is_placed { usize::from(identifier) } else { 0 }] += blocks * 512;
                model.data[range].fill(byte);
            }
            70..90 => {
                let mem = HostMem::zeroed(blocks as usize * 512);
                run(&io, read(slba, blocks as u32), mem.clone()).await.unwrap();
                let expected = model.data[range].iter().flat_map(|byte| [*byte; 512]).collect::<Vec<u8>>();
                assert!(mem.to_vec() == expected, "blocks {slba} and {blocks} more");
            }
            90..96 => {
                let identifiers: Vec<u16> =
                    (0..1 + rng.below(handles.into())).map(|_| rng.below(handles.into()) as u16).collect();
                update(&io, &identifiers).await.unwrap();
            }
            _ => program_all(drive).await,
        }
    }
    program_all(drive).await;
    sim.sleep(nandscape_sim::Span::from_ms(500)).await;
    let report = report(drive);
    assert_eq!(report.handles.iter().map(|handle| handle.host_written).collect::<Vec<_>>(), model.written);
    let (counts, stats) = (drive.subsystem().ftl().media().counts(), drive.subsystem().ftl().stats());
    assert_eq!((report.media_written, report.media_erased), (counts.programs * PAGE, counts.erases * BLOCK));
    assert_eq!(report.handles.iter().map(|handle| handle.programmed).sum::<u64>(), stats.host_units * 4_096);
    let moved = report.handles.iter().map(|handle| handle.moved).sum::<u64>() + report.mixed_moved;
    assert_eq!(moved, stats.moved() * 4_096);
    let log = Statistics::read_from_bytes(&page(&admin, fdp::STATISTICS, 1, false, 64).await.unwrap()).unwrap();
    let expected = [stats.host_bytes, report.media_written, report.media_erased];
    assert_eq!([log.host_written, log.media_written, log.media_erased].map(|counter| counter.low.get()), expected);
    assert_eq!(log.as_bytes().len(), 64);
}

#[test]
fn random_commands_leave_what_a_model_holds() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + SEEDS {
        let ended = std::panic::catch_unwind(|| {
            let mut rng = Seed::new(seed).rng();
            let isolation = if rng.below(2) == 0 { Isolation::Initial } else { Isolation::Persistent };
            let handles = 1 + rng.below(if isolation == Isolation::Initial { 4 } else { 3 }) as u8;
            with(handles, isolation, async |sim, drive| random_commands(sim, drive, handles, &mut rng).await);
        });
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

/// Two tenants in halves of the drive, one writing in order and one at random, in turn. Returns the write amplification.
fn tenants(isolation: Isolation, places: bool) -> (f64, PlacementReport) {
    with(2, isolation, async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let (mut rng, half) = (Seed::new(9).rng(), BLOCKS / 2);
        let mut ordered = 0;
        for number in 0..40_000u64 {
            let is_ordered = number % 2 == 0;
            let slba = if is_ordered { ordered } else { half + rng.below(half / 8) * 8 };
            ordered = if is_ordered { (ordered + 8) % half } else { ordered };
            let (entry, mem) = placed(slba, 8, fdp::DTYPE_PLACEMENT, u16::from(places && !is_ordered));
            run(&io, entry, mem).await.unwrap();
        }
        program_all(drive).await;
        let (stats, report) = (drive.subsystem().ftl().stats(), report(drive));
        ((stats.host_units + stats.moved()) as f64 / stats.host_units as f64, report)
    })
}

#[test]
fn placement_lowers_write_amplification_of_mixed_tenants() {
    for isolation in [Isolation::Initial, Isolation::Persistent] {
        let ((mixed, _), (apart, report)) = (tenants(isolation, false), tenants(isolation, true));
        assert!(apart < mixed, "{isolation:?}: {apart} with placement, {mixed} without");
        let [ordered, random] = [0, 1].map(|handle| report.handles[handle].write_amplification());
        assert!(ordered < random, "{isolation:?}: {ordered} for what is written in order, {random} at random");
    }
}

/// Two tenants that write alike on a full drive, each its half by its handle.
fn alike(isolation: Isolation) -> PlacementReport {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = placing_drive(&sim, PlacementConfig { handles: 2, isolation, ..PlacementConfig::default() }, &[]);
    drive.subsystem().ftl().plant(Plant::Full, Seed::new(1), &mut |_| ());
    let io = host(&sim, &drive, QueueId(1));
    let ran = async {
        let mut rng = Seed::new(9).rng();
        for number in 0..BLOCKS / 2 {
            let handle = number % 2;
            let slba = handle * BLOCKS / 2 + rng.below(BLOCKS / 16) * 8;
            let (entry, mem) = placed(slba, 8, fdp::DTYPE_PLACEMENT, handle as u16);
            run(&io, entry, mem).await.unwrap();
        }
        program_all(&drive).await;
        report(&drive)
    };
    executor.block_on(ran).unwrap()
}

#[test]
fn what_a_drive_was_full_of_counts_for_no_handle() {
    for isolation in [Isolation::Initial, Isolation::Persistent] {
        let report = alike(isolation);
        let [first, second] = [0, 1].map(|handle| report.handles[handle].write_amplification());
        assert!((first / second - 1.0).abs() < 0.1, "{isolation:?}: {first} and {second} of tenants that are alike");
        assert!(first > 1.05, "{isolation:?}: {first} is hardly anything moved");
        assert!(report.planted_moved > 0, "{isolation:?}: {report:?}");
    }
}
