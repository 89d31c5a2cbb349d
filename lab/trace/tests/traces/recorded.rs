//! Recordings of live drives as traces, made by a port to a drive that completes everything at once.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io};
use nandscape_lab_trace::{Format, Trace, convert};
use nandscape_lab_workload::Direction;
use nandscape_sim::{Executor, Time};
use nandscape_transport_reactor::recording::{Kept, Recorder};
use nandscape_transport_reactor::{Connect, Export, Order, Port};
use nandscape_wire_nvme::io::{DsmRange, FUA};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes as _;

use crate::files::{file, open, requests};

struct Instant;

impl Drive for Instant {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: 1 << 20,
            lba_bytes: 512,
            metadata_bytes: 0,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: true,
            keeps_data: false,
        }
    }

    fn submit(&self, io: Io) {
        io.token.complete(Completion::of(Status::SUCCESS));
    }

    fn cancel(&self, _: CommandRef) -> bool {
        false
    }
}

impl Connect for Instant {
    fn info(&self) -> DriveInfo {
        Drive::info(self)
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(Instant))
    }
}

impl Export for Instant {
    fn order(&self, _: &Order) -> Result<(), String> {
        Ok(())
    }
}

/// A read, a write with Force Unit Access, a trim of two ranges and a flush, a microsecond apart.
fn record(folder: &Path, kept: Kept) -> PathBuf {
    let path = folder.join("run.rec");
    let mut executor = Executor::new();
    let mut port = Port::new(&executor.sim(), vec![Rc::new(Instant)]);
    port.record(Recorder::create(&path, r#"{"drives": [{"name": "a drive"}]}"#).unwrap().keeping(kept));
    let connection = port.open(0).unwrap();
    let range = |slba: u64, blocks: u32| DsmRange { slba: slba.into(), blocks: blocks.into(), ..DsmRange::default() };
    let ranges = [range(8, 16), range(100, 1)];
    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 4_096, 2);
    let forced = SubmissionEntry { cdw12: (write.cdw12.get() | FUA).into(), ..write };
    let commands = [
        (SubmissionEntry::blocks(IoOpcode::READ, 1, 7, 8), HostMem::zeroed(4_096)),
        (forced, HostMem::from_bytes(&[9; 1_024])),
        (SubmissionEntry::deallocate(1, 2), HostMem::from_bytes(ranges.as_bytes())),
        (SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()),
    ];
    for ((entry, mem), us) in commands.into_iter().zip(5..) {
        let at = Time::from_ns(us * 1_000);
        executor.advance(at, u32::MAX);
        executor.arrive(at);
        port.begin_turn(0, None);
        port.submit(connection, 0, entry, mem);
    }
    port.end_recording().unwrap();
    path
}

#[test]
fn a_recording_has_its_commands_as_requests() {
    for kept in [Kept::All, Kept::Timing] {
        let folder = tempfile::tempdir().unwrap();
        let trace = open(record(folder.path(), kept)).unwrap();
        let disk = || "a_drive".to_owned();
        let mut expected = [
            (0, disk(), Direction::Read, 7 * 512, 4_096),
            (1_000, disk(), Direction::Fua, 4_096 * 512, 1_024),
            (2_000, disk(), Direction::Trim, 8 * 512, 16 * 512),
            (2_000, disk(), Direction::Trim, 100 * 512, 512),
            (3_000, disk(), Direction::Flush, 0, 0),
        ];
        assert_eq!((trace.format(), requests(&trace)), (Format::Recording, expected.to_vec()), "{kept:?}");
        let mut text = Vec::new();
        convert(&trace, Format::FioV3, &mut text).unwrap();
        let (_folder, converted) = file(&text);
        // fio's log has no Force Unit Access.
        expected[1].2 = Direction::Write;
        assert_eq!(requests(&open(converted).unwrap()), expected, "{kept:?}");
        assert!(convert(&trace, Format::Recording, &mut text).is_err(), "recordings are not written");
    }
}

/// The requests of a drive that is behind keep their times, and their distances, next to those of another drive.
#[test]
fn drives_with_separate_timelines_have_their_own_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let mut executors = Executor::apart(2);
    let sims: Vec<_> = executors.iter().map(Executor::sim).collect();
    let mut port = Port::apart(&sims, vec![Rc::new(Instant), Rc::new(Instant)]);
    port.record(Recorder::create(&path, r#"{"drives": [{"name": "behind"}, {"name": "other"}]}"#).unwrap());
    let connections = [0, 1].map(|export| port.open(export).unwrap());
    for turn in 1..=4 {
        for (drive, us) in [turn, 100 * turn].into_iter().enumerate() {
            let at = Time::from_ns(us * 1_000);
            executors[drive].advance(at, u32::MAX);
            executors[drive].arrive(at);
            port.begin_turn(drive, None);
        }
        // The other drive's command is recorded first.
        for drive in [1, 0] {
            let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, turn, 8);
            port.submit(connections[drive], 0, entry, HostMem::zeroed(4_096));
        }
    }
    port.end_recording().unwrap();
    let found: Vec<(u64, String)> =
        requests(&open(path).unwrap()).into_iter().map(|(at, disk, ..)| (at, disk)).collect();
    let of = |us: u64, disk: &str| ((us - 1) * 1_000, disk.to_owned());
    let behind = (1..=4).map(|us| of(us, "behind"));
    let other = (1..=4).map(|turn| of(100 * turn, "other"));
    assert_eq!(found, behind.chain(other).collect::<Vec<_>>());
}

#[test]
fn a_torn_recording_is_read_as_far_as_it_goes_and_a_damaged_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = record(folder.path(), Kept::All);
    let whole = std::fs::read(&path).unwrap();
    for len in 9..whole.len() {
        let (_folder, torn) = file(&whole[..len]);
        let notes = |trace: &Trace| trace.notes().join(" ");
        match open(torn) {
            Ok(trace) => assert!(notes(&trace).contains("breaks off"), "{len}: {}", notes(&trace)),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("is torn") || text.contains("no request"), "{len}: {text}");
            }
        }
    }
    for at in 8..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        let (_folder, damaged) = file(&damaged);
        let text = open(damaged).map(drop).unwrap_err().to_string();
        assert!(text.contains("damaged at record "), "{at}: {text}");
    }
    for (bytes, words) in [(&b"NSCREC4\nmore"[..], "a recording of format 4"), (b"NSCREC8\n", "the header is missing")]
    {
        let (_folder, path) = file(bytes);
        assert!(open(path).map(drop).unwrap_err().to_string().contains(words));
    }
}
