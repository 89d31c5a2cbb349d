//! Statuses one by one, the drive's reports of itself, and commands by rows.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_drive::mem::Listed;
use nandscape_drive::{Drive, DriveInfo, HostMem, Io, Issuer, QueueDrive};
use nandscape_host_open_channel::{Means, OpenChannel, Place};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::log::{COMMANDS_AND_EFFECTS, CommandsAndEffects, EFFECT_SUPPORTED};
use nandscape_wire_nvme::open_channel::{
    CHUNK_CLOSED, CHUNK_FREE, CHUNK_LOG, CHUNK_OFFLINE, CHUNK_OPEN, GEOMETRY, NOTICE_UNRECOVERABLE, NOTICE_WEAR,
    VECTOR_COPY, VECTOR_READ, VECTOR_RESET, VECTOR_WRITE,
};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::rig::{BLOCK, Rig, bytes_of};

/// Blocks of one program: 3 pages on 2 planes.
const WS: u32 = 12;

fn on_rig<F: Future<Output = ()>>(test: impl FnOnce(Sim) -> F) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor.block_on_within(test(sim), 50_000_000).expect("it ends");
}

fn from(first: u64, blocks: u32) -> Vec<u64> {
    (first..first + u64::from(blocks)).collect()
}

/// The status of a command, and the addresses at fault.
async fn ended(sim: &Sim, queue: &Rc<QueueDrive>, entry: SubmissionEntry, mem: HostMem) -> (Status, u64) {
    let issuer = Issuer::new(sim);
    let ended = issuer.execute(&**queue, entry, mem).await;
    (ended.status.meaning(), u64::from(ended.dw1) << 32 | u64::from(ended.dw0))
}

/// A list of addresses in addition to data.
fn listed(data: HostMem, addresses: &[u64]) -> HostMem {
    let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
    HostMem::over(Rc::new(Listed::new(data, vec![HostMem::from_bytes(&bytes)])))
}

#[test]
fn the_geometry_and_the_logs_tell_the_flash() {
    on_rig(async |sim| {
        let rig = Rig::new(&sim, &["ftl.open_channel.mw_cunits=12"], Means::Vector).await;
        let geometry = rig.host.geometry();
        assert_eq!((geometry.groups, geometry.pus, geometry.sectors), (3, 1, 48));
        assert_eq!((geometry.ws_min, geometry.ws_opt, geometry.mw_cunits), (WS, WS, 12));
        assert_eq!(geometry.chunks, rig.ssd.media().geometry().blocks_per_plane());
        let report = rig.host.report().await.unwrap();
        assert!(report.iter().all(|chunk| (chunk.state, chunk.wear, chunk.written) == (CHUNK_FREE, 0, 0)));
        let effects = HostMem::zeroed(4_096);
        let entry = SubmissionEntry::get_log_page(COMMANDS_AND_EFFECTS, 0, 4_096);
        assert!(ended(&sim, &rig.admin, entry, effects.clone()).await.0.is_success());
        let effects = CommandsAndEffects::read_from_bytes(&effects.to_vec()).unwrap();
        assert_ne!(effects.admin[usize::from(GEOMETRY.0)].get() & EFFECT_SUPPORTED, 0);
        for opcode in [VECTOR_READ, VECTOR_WRITE, VECTOR_COPY, VECTOR_RESET, IoOpcode::DATASET_MANAGEMENT] {
            assert_ne!(effects.io[usize::from(opcode.0)].get() & EFFECT_SUPPORTED, 0, "{opcode:?}");
        }
        assert_eq!(effects.io[usize::from(IoOpcode::WRITE_ZEROES.0)].get(), 0);
        // Other namespaces have no chunks.
        let page = |nsid| SubmissionEntry::get_log_page(CHUNK_LOG, nsid, 32);
        let of_two = ended(&sim, &rig.admin, page(2), HostMem::zeroed(32)).await;
        assert_eq!(of_two.0, Status::INVALID_NAMESPACE);
        let geometry = SubmissionEntry { nsid: 2.into(), ..SubmissionEntry::admin(GEOMETRY) };
        assert_eq!(ended(&sim, &rig.admin, geometry, HostMem::zeroed(4_096)).await.0, Status::INVALID_NAMESPACE);
        // The last descriptor alone, and beyond it.
        let last = SubmissionEntry { cdw12: (report.len() as u32 * 32 - 32).into(), ..page(1) };
        let mem = HostMem::zeroed(32);
        assert!(ended(&sim, &rig.admin, last, mem.clone()).await.0.is_success());
        assert_eq!(mem.to_vec()[8..16], report.last().unwrap().address.to_le_bytes());
        let beyond = SubmissionEntry { cdw12: (report.len() as u32 * 32 + 4).into(), ..page(1) };
        assert_eq!(ended(&sim, &rig.admin, beyond, HostMem::zeroed(32)).await.0, Status::INVALID_FIELD);
    });
}

#[test]
fn a_refused_command_names_the_addresses_at_fault_and_changes_nothing() {
    on_rig(async |sim| {
        let rig = Rig::new(&sim, &[], Means::Vector).await;
        let place = |group, chunk, sector| rig.host.geometry().address(Place { group, pu: 0, chunk, sector });
        rig.write(&from(place(0, 0, 0), WS), &[7; WS as usize]).await.unwrap();
        let data = || HostMem::from_bytes(&bytes_of(&[9; 2 * WS as usize]));
        let write = |addresses: &[u64]| {
            let entry = SubmissionEntry::vector(VECTOR_WRITE, 1, 0, addresses.len() as u32);
            ended(&sim, &rig.drive, entry, listed(data(), addresses))
        };
        let two = |first: u64, second: u64| [from(first, WS), from(second, WS)].concat();
        // The first part would do.
        let cases = [
            (two(place(0, 0, 12), place(1, 0, 12)), Status::OUT_OF_ORDER_WRITE, 0xfff000),
            (two(place(0, 0, 12), place(0, 1, 5)), Status::INVALID_FIELD, 0xfff000),
            (two(place(0, 0, 12), place(0, 0, 36)), Status::OUT_OF_ORDER_WRITE, 0xfff000),
            (two(place(0, 0, 12), place(2, 1_000, 0)), Status::LBA_OUT_OF_RANGE, 0),
        ];
        for (addresses, status, which) in cases {
            let got = write(&addresses).await;
            assert_eq!(got.0, status, "{addresses:?}");
            assert!(which == 0 || got.1 == which, "{addresses:?}: {:x}", got.1);
            assert_eq!(rig.host.report_of(0, 1).await.unwrap()[0].written, u64::from(WS));
        }
        // An invalid pointer, too little memory, and no list.
        let entry = SubmissionEntry::vector(VECTOR_WRITE, 1, 5, 24);
        assert_eq!(ended(&sim, &rig.drive, entry, listed(data(), &[0; 24])).await.0, Status::INVALID_FIELD);
        let entry = SubmissionEntry::vector(VECTOR_WRITE, 1, 0, 24);
        assert_eq!(ended(&sim, &rig.drive, entry, data()).await.0, Status::INVALID_FIELD);
        let short = listed(HostMem::zeroed(BLOCK), &[0; 24]);
        assert_eq!(ended(&sim, &rig.drive, entry, short).await.0, Status::DATA_SGL_LENGTH_INVALID);
        // Contiguous blocks that do not exist, and a part of a chunk.
        let read = SubmissionEntry::blocks(IoOpcode::READ, 1, place(0, 0, 47), 2);
        assert_eq!(ended(&sim, &rig.drive, read, HostMem::zeroed(2 * BLOCK)).await.0, Status::LBA_OUT_OF_RANGE);
        let spoil = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, 0, 1);
        assert_eq!(ended(&sim, &rig.drive, spoil, HostMem::none()).await.0, Status::INVALID_OPCODE);
        assert_eq!(rig.host.reset(&[place(1, 0, 0)]).await.unwrap_err().status, Status::INVALID_RESET);
        rig.ssd.check().unwrap();
    });
}

#[test]
fn what_may_be_reset_is_a_matter_of_keys() {
    on_rig(async |sim| {
        let late = Rig::new(&sim, &["ftl.open_channel.early_reset=false"], Means::Vector).await;
        let first = late.host.geometry().address(Place { group: 1, pu: 0, chunk: 2, sector: 0 });
        late.write(&from(first, WS), &[1; WS as usize]).await.unwrap();
        assert_eq!(late.host.reset(&[first]).await.unwrap_err().status, Status::INVALID_RESET);
        late.write(&from(first + u64::from(WS), 36), &[2; 36]).await.unwrap();
        late.host.reset(&[first]).await.unwrap();
        let often = Rig::new(&sim, &["ftl.open_channel.multiple_resets=true"], Means::Vector).await;
        often.host.reset(&[first]).await.unwrap();
    });
}

#[test]
fn commands_by_rows_do_the_same() {
    on_rig(async |sim| {
        let rig = Rig::new(&sim, &[], Means::Rows).await;
        let place = |group, chunk, sector| rig.host.geometry().address(Place { group, pu: 0, chunk, sector });
        let (a, b) = (place(0, 3, 0), place(2, 1, 0));
        let addresses = [from(a, 48), from(b, 24)].concat();
        let stamps: Vec<u64> = (100..172).collect();
        rig.write(&addresses, &stamps).await.unwrap();
        assert_eq!(rig.read(&addresses).await.unwrap(), stamps);
        let to = place(1, 0, 0);
        let scattered: Vec<u64> = from(a, 12).into_iter().rev().chain(from(b, 12)).collect();
        rig.host.copy(&scattered, &from(to, 24)).await.unwrap();
        let expected: Vec<u64> = (100..112).rev().chain(148..160).collect();
        assert_eq!(rig.read(&from(to, 24)).await.unwrap(), expected);
        rig.host.reset(&[a, b]).await.unwrap();
        assert_eq!(rig.read(&from(a, 2)).await.unwrap(), [0, 0]);
        assert_eq!(rig.host.reset(&[b]).await.unwrap_err().status, Status::INVALID_RESET);
        assert_eq!(rig.host.reset(&[to + 1]).await.unwrap_err().status, Status::INVALID_FIELD);
    });
}

#[test]
fn the_drive_notifies_of_chunks_that_go_out_of_use_and_of_data_that_is_lost() {
    on_rig(async |sim| {
        let faults = "faults=[\"fail erase nth=1\", \"uncorrectable nth=1\"]";
        let rig = Rig::new(&sim, &[faults], Means::Vector).await;
        let first = rig.host.geometry().address(Place { group: 0, pu: 0, chunk: 1, sector: 0 });
        rig.write(&from(first, WS), &[1; WS as usize]).await.unwrap();
        let failed = rig.host.read(&[first + 1, first + 2]).await.unwrap_err();
        assert_eq!((failed.status, failed.which), (Status::UNRECOVERED_READ_ERROR, 0b01));
        assert_eq!(rig.host.reset(&[first]).await.unwrap_err().status, Status::OFFLINE_CHUNK);
        rig.host.notified().await.unwrap();
        let told = rig.host.notifications(0).await.unwrap();
        let of =
            |number: usize| (told[number].nc.get(), told[number].lba.get(), told[number].mask, told[number].nlb.get());
        assert_eq!((told.len(), of(0), of(1)), (2, (1, first + 1, 1, 1), (2, first, 2, 0)));
        assert!(told.iter().all(|notice| notice.state.get() == NOTICE_UNRECOVERABLE));
        assert!(rig.host.notifications(2).await.unwrap().is_empty());
        assert_eq!(rig.host.report_of(1, 1).await.unwrap()[0].state, CHUNK_OFFLINE);
        assert_eq!(
            rig.host.write(&from(first, WS), &vec![0; WS as usize * BLOCK]).await.unwrap_err().status,
            Status::OUT_OF_ORDER_WRITE
        );
    });
}

#[test]
fn no_notification_is_lost_that_the_drive_keeps() {
    on_rig(async |sim| {
        let rig = Rig::new(&sim, &["faults=[\"uncorrectable probability=1\"]"], Means::Vector).await;
        let first = rig.host.geometry().address(Place { group: 0, pu: 0, chunk: 1, sector: 0 });
        rig.write(&from(first, WS), &[1; WS as usize]).await.unwrap();
        let numbers = async |seen| -> Vec<u64> {
            rig.host.notifications(seen).await.unwrap().iter().map(|notice| notice.nc.get()).collect()
        };
        for (reads, seen, expected) in [(1, 0, 1..=1), (100, 1, 2..=101), (154, 0, 1..=255), (45, 255, 256..=300)] {
            for _ in 0..reads {
                rig.host.read(&[first]).await.unwrap_err();
            }
            assert_eq!(numbers(seen).await, Vec::from_iter(expected));
        }
        // More than it keeps: the first number shows how many were dropped.
        assert_eq!(numbers(0).await, Vec::from_iter(46..=300));
        assert!(numbers(300).await.is_empty());
    });
}

#[test]
fn a_copy_by_rows_has_as_many_commands_as_its_sources_need() {
    on_rig(async |sim| {
        let changes = ["controller.max_transfer=2MiB", "buffer.size=2MiB", "geometry.pages_per_block=96"];
        let rig = Rig::new(&sim, &changes, Means::Rows).await;
        let place = |group, chunk| rig.host.geometry().address(Place { group, pu: 0, chunk, sector: 0 });
        let (a, b, to) = (place(0, 1), place(1, 2), place(2, 0));
        let stamps: Vec<u64> = (1_000..1_384).collect();
        for first in [a, b] {
            rig.write(&from(first, 384), &stamps).await.unwrap();
        }
        // No two of them are contiguous.
        let sources: Vec<u64> = (0..300).map(|number| if number % 2 == 0 { a } else { b } + number).collect();
        rig.host.copy(&sources, &from(to, 300)).await.unwrap();
        assert_eq!(rig.read(&from(to, 300)).await.unwrap(), stamps[..300]);
    });
}

#[test]
fn one_range_over_all_addresses_resets_all_chunks_in_a_few_steps_each() {
    // A chunk's block count is not a power of two, so some addresses between chunks are invalid.
    let changes = ["capacity=96MiB", "ftl.open_channel.multiple_resets=true", "geometry.dies_per_channel=3"];
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = executor.block_on(Rig::new(&sim, &changes, Means::Vector)).unwrap();
    let chunks = rig.host.geometry().chunk_places().count() as u64;
    assert!(chunks > 600 && !rig.host.geometry().sectors.is_power_of_two(), "{chunks}");
    let (place, all) = (|group, chunk| Place { group, pu: 0, chunk, sector: 0 }, rig.drive.info().blocks as u32);
    let [first, last] = [place(0, 0), place(2, 1)].map(|place| rig.host.geometry().address(place));
    let dsm = async |slba: u64, blocks: u32, ranges: u32| {
        let range = DsmRange { slba: slba.into(), blocks: blocks.into(), ..DsmRange::default() };
        let ranges = vec![range; ranges as usize];
        let entry = SubmissionEntry::deallocate(1, ranges.len() as u32);
        ended(&sim, &rig.drive, entry, HostMem::from_bytes(ranges.as_bytes())).await.0
    };
    let steps = async {
        for chunk in [first, last] {
            rig.write(&from(chunk, WS), &[1; WS as usize]).await.unwrap();
        }
        assert_eq!(dsm(first, all, 1).await, Status::SUCCESS);
    };
    executor.block_on_within(steps, 40 * chunks).expect("two erases of a chunk are a few steps");
    let rest = async {
        assert!(rig.host.report().await.unwrap().iter().all(|chunk| (chunk.state, chunk.written) == (CHUNK_FREE, 0)));
        assert!(rig.ssd.media().counts().erases >= 2 * chunks);
        // Chunks twice, however often; a part of a chunk; and beyond the last.
        assert_eq!(dsm(first, all, 256).await, Status::INVALID_RESET);
        assert_eq!(dsm(first, 64 + 12, 1).await, Status::INVALID_FIELD);
        assert_eq!(dsm(first + 48, 16, 1).await, Status::LBA_OUT_OF_RANGE);
        assert_eq!(dsm(first, all + 1, 1).await, Status::LBA_OUT_OF_RANGE);
        assert_eq!(dsm(first, 64 + 48, 1).await, Status::SUCCESS);
    };
    executor.block_on(rest).unwrap();
}

#[test]
fn a_program_that_no_vector_can_write_is_refused() {
    let wide = "version = 1\nbase = \"default\"\nlba_size = \"4KiB\"\ncapacity = \"64MiB\"\n[geometry]\nchannels = 1\n\
                planes_per_die = 4\npages_per_block = 12\npage_size = \"32KiB\"\n[timing]\nprogram_unit = \"word_line\"\n\
                planes = \"multi_plane\"\n[buffer]\nmode = \"through\"\nsize = \"2MiB\"\n[controller]\nmax_transfer = \"1MiB\"\n\
                [ftl]\nkind = \"open_channel\"\nover_provisioning = \"50%\"\n";
    let resolve = |changes: &[&str]| {
        let mut profile = Profile::parse("wide.toml", wide).unwrap();
        profile.set_all(changes).unwrap();
        profile.resolve().map(drop).map_err(|error| error.to_string())
    };
    let told = resolve(&[]).unwrap_err();
    assert!(
        told.contains("geometry") && told.contains("one program writes 96 blocks") && told.contains("at most 64"),
        "{told}"
    );
    resolve(&["timing.program_unit=page"]).unwrap();
    resolve(&["geometry.page_size=16KiB"]).unwrap();
}

#[test]
fn a_drive_whose_minimum_write_fits_no_command_is_not_opened() {
    on_rig(async |sim| {
        // A command may move less than it takes.
        let rig = Rig::new(&sim, &[], Means::Vector).await;
        let few = Rc::new(Few(rig.drive.clone()));
        let opened = async |means| OpenChannel::open(&sim, rig.admin.clone(), few.clone(), means).await.map(drop);
        for means in [Means::Vector, Means::Rows] {
            assert_eq!(opened(means).await.unwrap_err().status, Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
    });
}

/// A drive that takes fewer blocks of a command than are written at least.
struct Few(Rc<QueueDrive>);

impl Drive for Few {
    fn info(&self) -> DriveInfo {
        DriveInfo { max_blocks: WS - 1, ..self.0.info() }
    }

    fn submit(&self, io: Io) {
        self.0.submit(io);
    }
}

#[test]
fn wear_is_an_index_and_its_spread_is_notified() {
    on_rig(async |sim| {
        let changes = ["timing.rated_erases=10", "ftl.open_channel.wear_threshold=40"];
        let rig = Rig::new(&sim, &changes, Means::Vector).await;
        let first = rig.host.geometry().address(Place { group: 0, pu: 0, chunk: 0, sector: 0 });
        for _ in 0..2 {
            rig.write(&from(first, WS), &[1; WS as usize]).await.unwrap();
            rig.host.reset(&[first]).await.unwrap();
        }
        assert_eq!(rig.host.report_of(0, 1).await.unwrap()[0].wear, 51);
        let told = rig.host.notifications(0).await.unwrap();
        assert_eq!((told.len(), told[0].state.get(), told[0].lba.get()), (1, NOTICE_WEAR, first));
    });
}

#[test]
fn writes_to_a_chunk_at_depth_are_programmed_in_order_and_chunks_side_by_side() {
    on_rig(async |sim| {
        let rig = Rig::new(&sim, &[], Means::Rows).await;
        let place = |group, chunk| rig.host.geometry().address(Place { group, pu: 0, chunk, sector: 0 });
        let rows = |first: u64| (0..4).map(move |at| first + at * u64::from(WS));
        let issuer = Issuer::new(&sim);
        let begun = sim.now();
        let mut under_way = Vec::new();
        for first in [place(0, 0), place(1, 0), place(2, 0)].into_iter().flat_map(rows) {
            let mem = HostMem::from_bytes(&bytes_of(&vec![first + 1; WS as usize]));
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, first, WS);
            under_way.push(issuer.execute(&*rig.drive, entry, mem));
        }
        for write in under_way {
            assert!(write.await.status.is_success());
        }
        let (at_depth, begun) = (sim.now() - begun, sim.now());
        for first in rows(place(0, 1)) {
            rig.write(&from(first, WS), &[5; WS as usize]).await.unwrap();
        }
        let alone = sim.now() - begun;
        assert!(at_depth < alone * 2, "{at_depth} for three chunks, {alone} for one");
        let states = rig.host.report_of(0, 1).await.unwrap();
        assert_eq!(states[0].state, CHUNK_CLOSED);
        assert_eq!(rig.read(&[place(2, 0) + 13]).await.unwrap(), [place(2, 0) + 13]);
        sim.sleep(Span::from_us(1)).await;
        rig.write(&from(place(0, 2), WS), &[5; WS as usize]).await.unwrap();
        assert_eq!(rig.host.report_of(2, 1).await.unwrap()[0].state, CHUNK_OPEN);
    });
}
