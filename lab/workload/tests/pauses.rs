//! Flushes, pauses, lead-in times and groups of jobs, against a drive that takes 10 us for anything and notes what it was asked. All
//! figures are closed forms.

use std::cell::RefCell;

use nandscape_drive::testing::{self, FakeDrive, Servers, Service};
use nandscape_drive::{DriveInfo, Io};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Outcome, Runner, Workload, parse_fio, parse_table};
use nandscape_sim::{Executor, Seed, Sim, Span, Time};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::io::FUA;

const INFO: DriveInfo = DriveInfo { volatile_cache: true, ..testing::INFO };

#[derive(Copy, Clone, PartialEq, Debug)]
struct Asked {
    at: Time,
    opcode: IoOpcode,
    fua: bool,
}

struct TenMicroseconds {
    sim: Sim,
    asked: RefCell<Vec<Asked>>,
}

impl Service for TenMicroseconds {
    fn begin(&self, io: &Io) -> Span {
        let opcode = IoOpcode(io.command.opcode);
        let fua = opcode == IoOpcode::WRITE && io.command.cdw12.get() & FUA != 0;
        self.asked.borrow_mut().push(Asked { at: self.sim.now(), opcode, fua });
        Span::from_us(10)
    }
}

fn run_on(info: DriveInfo, workload: &Workload) -> (Outcome, Vec<Asked>) {
    assert_eq!(workload.check_on(info.bytes(), info.lba_bytes), Ok(()));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let service = TenMicroseconds { sim: sim.clone(), asked: RefCell::default() };
    let drive = FakeDrive::new(&sim, info, Servers::Unlimited, service);
    let runner = Runner::new(&sim, workload, Box::new(()));
    let outcome = executor.block_on(runner.run(workload, Seed::new(1), |_, _| drive.connect())).expect("it ends");
    (outcome, drive.service().asked.take())
}

fn run(workload: &Workload) -> (Outcome, Vec<Asked>) {
    run_on(INFO, workload)
}

/// A job of a workload file, with its lines.
fn job(lines: &str, limit: Limit) -> Workload {
    let text = format!("version = 1\n[[job]]\nname = \"a\"\nsize = \"1MiB\"\n{lines}");
    Workload { limit, ..parse_table("w", text.parse().unwrap()).unwrap() }
}

fn count(outcome: &Outcome, way: Direction) -> u64 {
    outcome.tally(way).latency.count()
}

#[test]
fn a_flush_follows_every_so_many_writes_but_the_last() {
    // None follows the last write of a run, as in fio.
    for (fsync, writes, flushes) in [(32, 1_000, 31), (1, 10, 9), (10, 100, 9), (10, 101, 10), (1_000, 1_000, 0)] {
        for iodepth in [1, 8] {
            let lines = format!("rw = \"randwrite\"\niodepth = {iodepth}\nfsync = {fsync}\n");
            let (outcome, asked) = run(&job(&lines, Limit::Requests(writes)));
            assert_eq!(count(&outcome, Direction::Write), writes);
            assert_eq!(count(&outcome, Direction::Flush), flushes, "fsync={fsync}, {writes} writes at {iodepth}");
            let places = asked.iter().enumerate().filter(|(_, one)| one.opcode == IoOpcode::FLUSH);
            let expected = (1..=flushes as usize).map(|nth| nth * (fsync as usize + 1) - 1);
            assert!(places.map(|(place, _)| place).eq(expected), "fsync={fsync} at {iodepth}");
        }
    }
}

#[test]
fn a_commit_of_one_slot_is_a_write_and_its_flush() {
    let commits = |info, depth| {
        let lines = format!("rw = \"randwrite\"\niodepth = {depth}\nfsync = 5\n");
        let (outcome, _) = run_on(info, &job(&lines, Limit::Requests(101)));
        outcome.operations.get("commit").map(|times| (times.count(), times.mean_ns()))
    };
    assert_eq!(commits(INFO, 1), Some((20, 20_000.0)));
    // Where the drive needs no flush, the write alone commits.
    assert_eq!(commits(testing::INFO, 1), Some((20, 10_000.0)));
    // With more slots, a flush does not wait for the write.
    assert_eq!(commits(INFO, 2), None);
}

#[test]
fn flushes_count_per_job_and_only_its_writes() {
    let lines = "rw = \"randwrite\"\niodepth = 1\nnumjobs = 2\nfdatasync = 8\n";
    let (outcome, _) = run(&job(lines, Limit::Requests(64)));
    // 32 writes of each clone; of the two that would follow the last writes of all, the budget has none.
    assert_eq!((count(&outcome, Direction::Write), count(&outcome, Direction::Flush)), (64, 6));
    let (outcome, asked) = run(&job("rw = \"randrw\"\niodepth = 1\nfsync = 5\n", Limit::Requests(400)));
    let mut writes = 0;
    for pair in asked.windows(2) {
        writes += u64::from(pair[0].opcode == IoOpcode::WRITE);
        let is_due = pair[0].opcode == IoOpcode::WRITE && writes % 5 == 0;
        assert_eq!(pair[1].opcode == IoOpcode::FLUSH, is_due, "after {writes} writes");
    }
    assert_eq!(count(&outcome, Direction::Read) + count(&outcome, Direction::Write), 400);
    // Arrivals of an open loop do not wait for a flush.
    let (outcome, asked) = run(&job(
        "rw = \"randwrite\"\nrate_iops = 1000000\nrate_process = \"linear\"\nfsync = 4\n",
        Limit::Requests(17),
    ));
    assert_eq!((count(&outcome, Direction::Flush), asked.last().map(|last| last.at.ns())), (4, Some(16_000)));
}

/// It follows the last write, whatever ends the run, and one follows the jobs of each group.
#[test]
fn a_flush_at_the_end_is_the_last_command() {
    let runtime = Limit::Runtime(Span::from_us(100));
    for (lines, limit) in [
        ("rw = \"randwrite\"\niodepth = 8\n", Limit::Requests(100)),
        ("rw = \"randwrite\"\niodepth = 4\n", runtime),
        ("rw = \"randwrite\"\nrate_iops = 1000000\n", Limit::Requests(17)),
    ] {
        let (outcome, asked) = run(&job(&format!("{lines}end_fsync = true\n"), limit));
        let last = asked.last().expect("commands");
        assert_eq!((last.opcode, asked[asked.len() - 2].opcode), (IoOpcode::FLUSH, IoOpcode::WRITE), "{lines}");
        assert_eq!(outcome.ended, last.at + Span::from_us(10), "{lines}");
    }
    let two = "[a]\nrw=write\nsize=8k\nend_fsync=1\nnumjobs=2\n[b]\nstonewall\nrw=write\nsize=4k\nend_fsync=1\n";
    let (outcome, asked) = run(&parse_fio("x.fio", two, None).expect("a job file").workload);
    let opcodes: Vec<bool> = asked.iter().map(|one| one.opcode == IoOpcode::FLUSH).collect();
    assert_eq!(opcodes, [false, false, false, false, true, true, false, true]);
    assert_eq!(count(&outcome, Direction::Flush), 3);
    let (_, asked) = run_on(testing::INFO, &job("rw = \"randwrite\"\nend_fsync = true\n", Limit::Requests(9)));
    assert_eq!(asked.len(), 9, "without a volatile cache there is nothing to flush");
}

#[test]
fn synchronous_writes_have_force_unit_access() {
    for (word, fua) in
        [("\"sync\"", true), ("\"dsync\"", true), ("1", true), ("true", true), ("\"none\"", false), ("0", false)]
    {
        let (_, asked) = run(&job(&format!("rw = \"randrw\"\nsync = {word}\n"), Limit::Requests(50)));
        let is_write = |one: &Asked| one.opcode == IoOpcode::WRITE;
        assert!(
            asked.iter().any(is_write) && asked.iter().all(|one| one.fua == (fua && is_write(one))),
            "sync = {word}"
        );
    }
}

/// Linux sends a drive without a volatile cache neither.
#[test]
fn a_drive_without_a_volatile_cache_gets_no_flush_and_the_run_has_a_note() {
    let workload = job("rw = \"randwrite\"\nfsync = 1\nsync = 1\n", Limit::Requests(20));
    let (outcome, asked) = run_on(testing::INFO, &workload);
    assert!(asked.len() == 20 && asked.iter().all(|one| one.opcode == IoOpcode::WRITE && !one.fua));
    assert!(outcome.notes[0].contains("fsync=1 sync=1 of job a has no effect: the drive has no volatile write cache"));
}

/// With requests of L and pauses of T after B of them, N requests take N L + (N / B - 1) T up to the last completion.
#[test]
fn throughput_with_pauses_is_that_of_the_closed_form() {
    for (time_us, blocks, requests) in [(90, 1, 100), (90, 4, 100), (5, 10, 1_000)] {
        let lines = format!("rw = \"read\"\niodepth = 1\nthinktime = {time_us}\nthinktime_blocks = {blocks}\n");
        let (outcome, _) = run(&job(&lines, Limit::Requests(requests)));
        let expected = requests * 10 + (requests / blocks - 1) * time_us;
        assert_eq!(outcome.elapsed(), Span::from_us(expected), "{time_us} us after {blocks}");
    }
    // 1 s of 10 us requests and 90 us pauses: 10,000 a second.
    let workload = job("rw = \"read\"\niodepth = 1\nthinktime = \"90us\"\n", Limit::Runtime(Span::from_s(1)));
    assert_eq!(run(&workload).0.requests(), 10_000);
}

/// With several outstanding, all complete before a pause: a round has D + B - 1 requests if completed ones count, and B if issued
/// ones do.
#[test]
fn all_requests_complete_before_a_pause() {
    let starts = |lines: &str, requests| {
        let (_, asked) = run(&job(&format!("rw = \"read\"\nthinktime = \"1ms\"\n{lines}"), Limit::Requests(requests)));
        let mut rounds: Vec<(u64, u64)> = Vec::new();
        for at in asked.iter().map(|one| one.at.ns() / 1_000) {
            match rounds.last_mut().filter(|(begun, _)| at < begun + 500) {
                Some((_, count)) => *count += 1,
                None => rounds.push((at, 1)),
            }
        }
        rounds
    };
    assert_eq!(starts("iodepth = 4\n", 12), [(0, 4), (1_010, 4), (2_020, 4)]);
    assert_eq!(starts("iodepth = 4\nthinktime_blocks = 3\n", 12), [(0, 6), (1_020, 6)]);
    let issued = "iodepth = 4\nthinktime_blocks = 3\nthinktime_blocks_type = \"issue\"\n";
    assert_eq!(starts(issued, 9), [(0, 3), (1_010, 3), (2_020, 3)]);
}

#[test]
fn a_lead_in_is_not_measured() {
    let workload = job("rw = \"read\"\niodepth = 1\n", Limit::Requests(50));
    let ramp = Workload { ramp: Span::from_us(200), ..workload };
    let (outcome, asked) = run(&ramp);
    assert_eq!((outcome.requests(), asked.len(), outcome.started.ns()), (50, 70, 200_000));
    let timed = Workload { limit: Limit::Runtime(Span::from_us(300)), ..ramp.clone() };
    assert_eq!((run(&timed).0.requests(), run(&timed).1.len()), (30, 50), "it comes on top of the run time");
    let both = Workload { warmup: 30, ..ramp };
    assert_eq!(run(&both).1.len(), 80, "whichever ends later");
}

#[test]
fn jobs_behind_a_stone_wall_wait_for_those_before_it() {
    let text = "[global]\nrw=read\nbs=4k\nsize=1m\n[a]\nnumber_ios=20\n[b]\nnumber_ios=30\n[c]\nstonewall\nnumber_ios=40\nrw=write\n\
                [d]\nwait_for_previous\nrw=read\nnumber_ios=5\n";
    let workload = parse_fio("x.fio", text, None).unwrap().workload;
    assert_eq!(workload.groups(), [0..2, 2..3, 3..4]);
    assert_eq!([0, 1, 2].map(|group| workload.limit_of(group)), [50, 40, 5].map(Limit::Requests));
    let (outcome, asked) = run(&workload);
    let writes: Vec<bool> = asked.iter().map(|one| one.opcode == IoOpcode::WRITE).collect();
    let expected = [vec![false; 50], vec![true; 40], vec![false; 5]].concat();
    assert_eq!(writes, expected);
    assert_eq!(
        (asked[50].at.ns(), asked[90].at.ns()),
        (250_000, 650_000),
        "each group begins when the one before has ended"
    );
    let flows: Vec<(u64, Option<Span>)> = outcome
        .flows
        .iter()
        .map(|flow| (flow.tallies.iter().map(|tally| tally.latency.count()).sum(), flow.elapsed))
        .collect();
    let us = |us| Some(Span::from_us(us));
    assert_eq!(flows, [(25, us(250)), (25, us(250)), (40, us(400)), (5, us(50))]);
    assert_eq!(outcome.elapsed(), Span::from_us(700));
}

/// Slots of an earlier group that wait for their time issue nothing in a later one.
#[test]
fn what_waits_at_the_end_of_a_group_ends_with_it() {
    let text = "version = 1\nruntime = \"1ms\"\n[[job]]\nname = \"slow\"\nrw = \"read\"\nrate_iops = 1500\nrate_process = \"linear\"\n\
                [[job]]\nname = \"bursts\"\nrw = \"read\"\niodepth = 2\nburst = \"100us/5ms\"\n\
                [[job]]\nname = \"after\"\nrw = \"write\"\niodepth = 1\nstonewall = true\n";
    let workload = parse_table("w", text.parse().unwrap()).unwrap();
    let (outcome, asked) = run(&workload);
    let first_write = asked.iter().position(|one| one.opcode == IoOpcode::WRITE).expect("a write");
    assert!(asked[first_write..].iter().all(|one| one.opcode == IoOpcode::WRITE));
    assert_eq!(asked.len() - first_write, 100);
    let reads: u64 = outcome.flows[..2].iter().map(|flow| flow.tally(Direction::Read).latency.count()).sum();
    assert_eq!(reads, first_write as u64);
}

#[test]
fn words_that_do_not_go_together_are_errors() {
    let error = |lines: &str| {
        let text = format!("version = 1\n[[job]]\n{lines}\n");
        parse_table("w", text.parse().unwrap()).unwrap_err().to_string()
    };
    assert!(error("rw = \"read\"\nfsync = 4").contains("fsync is for jobs that write, which read does not"));
    assert!(error("rw = \"write\"\nsync = \"x\"").contains("none, sync and dsync are valid"));
    assert!(error("rw = \"write\"\nthinktime = 5\nrate_iops = 5").contains("thinktime is for closed loops"));
    assert!(error("rw = \"write\"\nthinktime_blocks = 5").contains("thinktime = 200us"));
    let zoned = "rw = \"write\"\nzonemode = \"zbd\"\n[[job]]\nrw = \"write\"\nstonewall = true";
    assert!(error(zoned).contains("stonewall does not go with zonemode"));
    let loads = "rw = \"read\"\n[[job]]\nrw = \"write\"\nstonewall = true\n[[ycsb]]\nworkload = \"a\"";
    assert!(error(loads).contains("stonewall is for files of jobs"));
    let ends = Workload {
        limit: Limit::Requests(1),
        ramp: Span::from_s(u64::MAX / 2_000_000_000),
        ..Workload::of(JobSpec::default())
    };
    assert!(ends.check_on(1 << 30, 512).is_ok() || ends.check_on(1 << 30, 512).unwrap_err().contains("years"));
}
