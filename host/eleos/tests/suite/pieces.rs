//! Pages of pieces through the queue of a drive in simulated time, whose power is cut at random times.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem, QueueDrive, QueueId};
use nandscape_host_eleos::{Buffer, Error, PieceBuffer, PieceLimits, format_for_pieces, read, read_pieces};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::lss::{Head, LIST, PAGE};
use nandscape_wire_nvme::pieces::{DELTA, Entry, head};
use nandscape_wire_nvme::vendor::{ATOMIC_WRITE, BATCHED_READ, LSS_FLUSH};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::chains::{ChainWay, KnownChains, piece};
use crate::drive::{FAILING, Rig, number};

impl Rig {
    fn admin(&self, sim: &Sim) -> Rc<QueueDrive> {
        QueueDrive::new(sim, self.ssd.controller(), QueueId::ADMIN, 32).expect("an admin queue")
    }

    /// Formats the namespace for pieces.
    async fn with_pieces(&self, sim: &Sim) -> PieceLimits {
        let (admin, info) = (self.admin(sim), self.drive.info());
        format_for_pieces(&self.issuer, &*admin, &info, true).await.expect("it can be formatted");
        PieceLimits::ask(&self.issuer, &*admin, &info).await.expect("it answers").expect("it has pieces")
    }
}

/// Flushes and reads at random, with power cuts at random times; returns how many flushes met a cut, and how many of
/// these are stored.
fn cut(changes: &[&str], seed: u64) -> (u32, u32) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, changes);
    let (clock, cutter) = (sim.clone(), rig.ssd.clone());
    let mut times = Seed::new(seed).child("cuts").rng();
    let mut rng = Seed::new(seed).child("pages").rng();
    executor
        .block_on(async {
            let limits = rig.with_pieces(&sim).await;
            sim.spawn(async move {
                for _ in 0..25 {
                    clock.sleep(Span::from_us(200 + times.below(60_000))).await;
                    cutter.media().cut_power(Span::from_us(50));
                }
            });
            let way = ChainWay { issuer: &rig.issuer, drive: &*rig.drive, limits };
            let mut known = KnownChains::new(format!("seed {seed}, {changes:?}"), 900, 1 << (6 + rng.below(8)));
            while rig.ssd.media().power_cuts() < 25 {
                known.flush(&way, &mut rng, 60).await;
                known.check_some(&way, &mut rng, 40).await;
            }
            known.check_all(&way).await;
            rig.ssd.check().expect("sound");
            let fails = changes.contains(&FAILING[1]);
            assert_eq!(rig.failed() > 3, fails, "seed {seed}, {changes:?}: {} programs failed", rig.failed());
            (known.cuts, known.outlived)
        })
        .unwrap_or_else(|_| panic!("seed {seed}: the drive stands still"))
}

#[test]
fn a_buffer_of_pieces_is_there_as_a_whole_or_not_at_all_and_what_was_acknowledged_is() {
    let first = number("NANDSCAPE_TEST_SEED");
    for seed in first..first + number("NANDSCAPE_TEST_SEEDS") {
        let (mut cuts, mut outlived) = (0, 0);
        for changes in [
            &["buffer.mode=volatile"][..],
            &["buffer.mode=programmed"],
            &["buffer.mode=through"],
            &["buffer.mode=capacitor"],
            &["lba_size=4KiB", "ftl.ox_block.transactions=true", "buffer.mode=volatile"],
            &["lba_size=4KiB", "ftl.ox_block.transactions=true", "buffer.mode=capacitor"],
            &["ftl.mapping_unit=16KiB", "buffer.size=1MiB", "buffer.mode=volatile"],
            &["buffer.mode=volatile", FAILING[0], FAILING[1]],
            &["buffer.mode=through", FAILING[0], FAILING[1]],
            &["buffer.mode=capacitor", FAILING[0], FAILING[1]],
        ] {
            let (met, there) = cut(changes, seed);
            (cuts, outlived) = (cuts + met, outlived + there);
        }
        assert!(cuts > 0 && outlived < cuts, "seed {seed}: {cuts} flushes met a power cut, {outlived} are there");
    }
}

#[test]
fn a_namespace_that_is_nearly_full_is_cleaned_and_stays_what_it_was() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["buffer.mode=volatile"]);
    let mut rng = Seed::new(number("NANDSCAPE_TEST_SEED")).child("full").rng();
    executor
        .block_on(async {
            let limits = rig.with_pieces(&sim).await;
            let way = ChainWay { issuer: &rig.issuer, drive: &*rig.drive, limits };
            let mut known = KnownChains::new("full".to_owned(), 2_900, 3_000);
            let mut fullest = 0;
            for _ in 0..900 {
                known.flush(&way, &mut rng, 60).await;
                known.check_some(&way, &mut rng, 20).await;
                fullest = fullest.max(known.bytes());
            }
            known.check_all(&way).await;
            let nsid = rig.drive.info().nsid;
            let report = PieceLimits::report(&rig.issuer, &*rig.admin(&sim), nsid).await.expect("it answers");
            assert_eq!(
                (report.bytes.get(), report.pages.get()),
                (known.bytes() as u64, known.pages.values().filter(|chain| !chain.is_empty()).count() as u64)
            );
            assert!(report.moved_bytes.get() > 1 << 20 && report.checkpoints.get() > 3, "{report:?}");
            assert!(fullest as u64 > limits.capacity / 2, "{fullest} bytes of {}", limits.capacity);
            // A cut, and all is read from flash again.
            rig.ssd.media().cut_power(Span::from_us(50));
            known.check_all(&way).await;
            rig.ssd.check().expect("sound");
        })
        .expect("it ends");
}

#[test]
fn what_does_not_fit_is_refused_and_all_of_the_rest_stays() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["buffer.mode=volatile"]);
    executor
        .block_on(async {
            let limits = rig.with_pieces(&sim).await;
            let info = rig.drive.info();
            let mut flushed = 0;
            let full = loop {
                let mut buffer = PieceBuffer::new(&info, &limits);
                let bytes = limits.room().min(limits.page_bytes);
                buffer.put(flushed, &piece(flushed, 1, bytes)).unwrap();
                match buffer.flush(&rig.issuer, &*rig.drive).await {
                    Ok(()) => flushed += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(full, Error::Full);
            assert_eq!(flushed, limits.capacity / limits.page_bytes as u64);
            for lpid in 0..=flushed {
                let found = read_pieces(&rig.issuer, &*rig.drive, &limits, &[lpid]).await.unwrap();
                let right = if lpid < flushed { vec![piece(lpid, 1, limits.page_bytes)] } else { Vec::new() };
                assert!(found[0] == right, "page {lpid}");
            }
            // Pages can still be replaced and deleted.
            let mut buffer = PieceBuffer::new(&info, &limits);
            buffer.put(0, &piece(0, 2, limits.page_bytes)).unwrap();
            buffer.drop_page(1).unwrap();
            buffer.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let mut buffer = PieceBuffer::new(&info, &limits);
            buffer.put(flushed, &piece(flushed, 2, limits.page_bytes)).unwrap();
            buffer.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let found = read_pieces(&rig.issuer, &*rig.drive, &limits, &[0, 1, flushed]).await.unwrap();
            let new = |lpid| vec![piece(lpid, 2, limits.page_bytes)];
            assert!(found == [new(0), Vec::new(), new(flushed)]);
        })
        .expect("it ends");
}

#[test]
fn a_namespace_has_pages_of_one_form_until_it_is_formatted() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    executor
        .block_on(async {
            let info = rig.drive.info();
            let fixed = rig.limits(&sim).await.expect("it knows buffers");
            assert_eq!(PieceLimits::ask(&rig.issuer, &*rig.admin(&sim), &info).await, Ok(None));
            let mut old = Buffer::new(&info, &fixed);
            old.put(3, &[7; PAGE]).unwrap();
            old.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let limits = rig.with_pieces(&sim).await;
            assert_eq!(limits.capacity, info.blocks * 512 / 4 * 3);
            let mut buffer = PieceBuffer::new(&info, &limits);
            buffer.put(3, b"base").unwrap();
            buffer.append(3, b"delta").unwrap();
            buffer.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let found = read_pieces(&rig.issuer, &*rig.drive, &limits, &[3, 4]).await.unwrap();
            assert_eq!(found, [vec![b"base".to_vec(), b"delta".to_vec()], Vec::new()]);
            // Commands on blocks, and buffers and batches of the other form.
            let execute = async |entry, mem| rig.issuer.execute(&*rig.drive, entry, mem).await.status.meaning();
            for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::WRITE_ZEROES, IoOpcode::VERIFY, ATOMIC_WRITE] {
                let blocks = SubmissionEntry::blocks(opcode, 1, 0, 8);
                assert_eq!(execute(blocks, HostMem::zeroed(2 * PAGE)).await, Status::INVALID_NAMESPACE, "{opcode:?}");
            }
            assert_eq!(
                execute(SubmissionEntry::deallocate(1, 1), HostMem::zeroed(16)).await,
                Status::INVALID_NAMESPACE
            );
            assert_eq!(execute(SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await, Status::SUCCESS);
            old.put(3, &[7; PAGE]).unwrap();
            let flushed = old.flush(&rig.issuer, &*rig.drive).await;
            assert_eq!(flushed, Err(Error::Failed(Status::INVALID_FIELD)));
            // After another format it has blocks, and no data of the pages.
            format_for_pieces(&rig.issuer, &*rig.admin(&sim), &info, false).await.unwrap();
            assert_eq!(PieceLimits::ask(&rig.issuer, &*rig.admin(&sim), &info).await, Ok(None));
            assert_eq!(read(&rig.issuer, &*rig.drive, &fixed, &[0, 1, 2, 3]).await, Ok(vec![None; 4]));
            buffer.put(3, b"base").unwrap();
            assert!(buffer.flush(&rig.issuer, &*rig.drive).await.is_err());
            // And a third time, it is empty.
            let limits = rig.with_pieces(&sim).await;
            assert_eq!(read_pieces(&rig.issuer, &*rig.drive, &limits, &[3]).await, Ok(vec![Vec::new()]));
        })
        .expect("it ends");
}

#[test]
fn a_drive_of_another_kind_does_not_know_them() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["ftl.kind=page"]);
    executor
        .block_on(async {
            let (admin, info) = (rig.admin(&sim), rig.drive.info());
            assert_eq!(format_for_pieces(&rig.issuer, &*admin, &info, true).await, Err(Error::Unsupported));
            let mut format = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
            (format.nsid, format.cdw12) = (1.into(), 1.into());
            let status = rig.issuer.execute(&*admin, format, HostMem::none()).await.status.meaning();
            assert_eq!(status, Status::INVALID_FIELD);
        })
        .expect("it ends");
}

/// A flush of a buffer with these entries and `bytes` bytes.
fn raw(head: Head, entries: &[Entry], bytes: usize) -> (SubmissionEntry, HostMem) {
    let mut data = [head.as_bytes(), entries.as_bytes()].concat();
    data.resize(bytes, 9);
    let mut entry = SubmissionEntry::io(LSS_FLUSH, 1);
    entry.cdw10 = ((bytes / PAGE) as u32 - 1).into();
    (entry, HostMem::from_bytes(&data))
}

#[test]
fn each_bad_field_has_its_status_and_changes_nothing() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    executor
        .block_on(async {
            let limits = rig.with_pieces(&sim).await;
            let execute = async |(entry, mem)| rig.issuer.execute(&*rig.drive, entry, mem).await.status.meaning();
            assert_eq!(execute(raw(head(1), &[Entry::of(5, 40, 9, false)], PAGE)).await, Status::SUCCESS);
            let one = Entry::of(3, 100, 9, false);
            let lpids = limits.lpids;
            for (bad, right) in [
                (raw(head(0), &[one], PAGE), Status::INVALID_FIELD),
                (raw(head(4_097), &[one], 20 * PAGE), Status::INVALID_FIELD),
                (raw(head(300), &[one], PAGE), Status::INVALID_FIELD),
                (raw(Head::of(1), &[one], PAGE), Status::INVALID_FIELD),
                (raw(Head { version: 3.into(), ..head(1) }, &[one], PAGE), Status::INVALID_FIELD),
                (raw(Head { magic: *b"NONE", ..head(1) }, &[one], PAGE), Status::INVALID_FIELD),
                (raw(Head { reserved_6: 1.into(), ..head(1) }, &[one], PAGE), Status::INVALID_FIELD),
                (raw(Head { reserved_12: 1.into(), ..head(1) }, &[one], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(3, 31, 9, false)], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(3, 4_088, 9, false)], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(3, u32::MAX, 9, false)], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry { kind_bytes: (9 | 1 << 24).into(), ..one }], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry { kind_bytes: (9 | 1 << 30).into(), ..one }], PAGE), Status::INVALID_FIELD),
                // A delta without a base, one without bytes, and a page with too many bytes or pieces.
                (raw(head(1), &[Entry::of(3, 100, 9, true)], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(5, 100, 0, true)], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(3, 100, 65_537, false)], 20 * PAGE), Status::INVALID_FIELD),
                (raw(head(2), &[one, Entry::of(5, 100, 65_528, true)], 20 * PAGE), Status::INVALID_FIELD),
                (raw(head(32), &[Entry::of(5, 600, 1, true); 32], PAGE), Status::INVALID_FIELD),
                (raw(head(1), &[Entry::of(lpids, 100, 9, false)], PAGE), Status::LBA_OUT_OF_RANGE),
                (raw(head(1), &[Entry::of(u64::MAX, 100, 9, false)], PAGE), Status::LBA_OUT_OF_RANGE),
                // The second piece is invalid: the first is not stored.
                (raw(head(2), &[one, Entry::of(lpids, 100, 9, false)], PAGE), Status::LBA_OUT_OF_RANGE),
                (raw(head(1), &[one], 600 * PAGE), Status::COMMAND_SIZE_LIMIT_EXCEEDED),
                (
                    raw(head(5), &[1, 2, 3, 4, 6].map(|lpid| Entry::of(lpid, 100, 60_000, false)), 20 * PAGE),
                    Status::COMMAND_SIZE_LIMIT_EXCEEDED,
                ),
            ] {
                let what = format!("{:?} {right}", bad.0);
                assert_eq!(execute(bad).await, right, "{what}");
            }
            let (entry, mem) = raw(head(1), &[one], 2 * PAGE);
            assert_eq!(execute((entry, HostMem::none())).await, Status::DATA_SGL_LENGTH_INVALID);
            assert_eq!(execute((entry, mem.part(0, PAGE))).await, Status::DATA_SGL_LENGTH_INVALID);
            let found = read_pieces(&rig.issuer, &*rig.drive, &limits, &[3, 5]).await;
            assert_eq!(found, Ok(vec![Vec::new(), vec![vec![9; 9]]]), "nothing was changed");
            // Entries apply in order, and pieces may be anywhere after them.
            let entries = [(3, 7, 0), (3, 2, DELTA), (5, 0, 0), (5, 1, 0), (5, 3, DELTA)];
            let entries = entries.map(|(lpid, bytes, kind)| Entry {
                kind_bytes: (bytes | kind).into(),
                ..Entry::of(lpid, 500, 0, false)
            });
            assert_eq!(execute(raw(head(5), &entries, PAGE)).await, Status::SUCCESS);
            let found = read_pieces(&rig.issuer, &*rig.drive, &limits, &[3, 5]).await;
            assert_eq!(found, Ok(vec![vec![vec![9; 7], vec![9; 2]], vec![vec![9; 1], vec![9; 3]]]));
        })
        .expect("it ends");
}

#[test]
fn each_bad_batch_has_its_status_and_a_page_without_room_is_left_out() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    executor
        .block_on(async {
            let limits = rig.with_pieces(&sim).await;
            let mut buffer = PieceBuffer::new(&rig.drive.info(), &limits);
            buffer.put(1, &piece(1, 1, 5_000)).unwrap();
            buffer.put(2, &piece(2, 1, 3_000)).unwrap();
            buffer.flush(&rig.issuer, &*rig.drive).await.unwrap();
            let batch = async |lpids: &[u64], count: u32, pages: u32, bytes: usize| {
                let list: Vec<u8> = lpids.iter().flat_map(|lpid| lpid.to_le_bytes()).collect();
                let mem = HostMem::zeroed(bytes);
                mem.write(0, &list);
                let mut entry = SubmissionEntry::io(BATCHED_READ, 1);
                (entry.cdw10, entry.cdw11) = ((count - 1).into(), (pages - 1).into());
                let status = rig.issuer.execute(&*rig.drive, entry, mem.clone()).await.status.meaning();
                (status, mem.to_vec())
            };
            let bytes = LIST + PAGE;
            let (status, data) = batch(&[1, 9, 2], 3, 2, bytes).await;
            assert_eq!(status, Status::SUCCESS);
            assert_eq!(&data[..24], b"\x88\x13\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\xb8\x0b\0\0\x01\0\0\0");
            assert_eq!(&data[LIST..LIST + 4], b"\xb8\x0b\0\0");
            assert_eq!(data[LIST + 4..LIST + 3_004], piece(2, 1, 3_000));
            assert_eq!(batch(&[0], 1, 1, bytes).await.0, Status::INVALID_FIELD);
            assert_eq!(batch(&[0], 513, 2, bytes).await.0, Status::INVALID_FIELD);
            assert_eq!(batch(&[0], 1, 600, 600 * PAGE).await.0, Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            assert_eq!(batch(&[0, limits.lpids], 2, 2, bytes).await.0, Status::LBA_OUT_OF_RANGE);
            assert_eq!(batch(&[u64::MAX], 1, 2, bytes).await.0, Status::LBA_OUT_OF_RANGE);
            assert_eq!(batch(&[0], 1, 2, bytes - 1).await.0, Status::DATA_SGL_LENGTH_INVALID);
        })
        .expect("it ends");
}
