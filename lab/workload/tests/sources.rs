//! Requests that come from elsewhere, against a drive that takes 10 us for anything and notes what it was asked.

use std::cell::RefCell;
use std::sync::Arc;

use nandscape_drive::testing::{self, FakeDrive, Servers, Service};
use nandscape_drive::{DriveInfo, Io};
use nandscape_lab_workload::{
    Direction, JobSpec, Limit, Outcome, Request, RequestSource, RequestStream, Runner, Source, SourceError,
    TimedRequest, Workload,
};
use nandscape_sim::{Executor, Seed, Sim, Span, Time};
use nandscape_wire_nvme::Status;

const INFO: DriveInfo = DriveInfo { blocks: 1 << 20, max_blocks: 8, volatile_cache: true, ..testing::INFO };

struct TenMicroseconds {
    sim: Sim,
    /// (nanosecond, opcode, blocks), the blocks of reads and writes only.
    asked: RefCell<Vec<(u64, u8, u32)>>,
    /// The opcode that fails.
    fails: Option<u8>,
}

impl Service for TenMicroseconds {
    fn begin(&self, io: &Io) -> Span {
        let blocks = if matches!(io.command.opcode, 1 | 2) { io.command.cdw12.get() + 1 } else { 0 };
        self.asked.borrow_mut().push((self.sim.now().ns(), io.command.opcode, blocks));
        Span::from_us(10)
    }

    fn end(&self, io: &Io, _begun: Time) -> Status {
        if self.fails == Some(io.command.opcode) { Status::WRITE_FAULT } else { Status::SUCCESS }
    }
}

#[derive(Clone, Debug)]
struct Given {
    requests: Vec<TimedRequest>,
    timed: bool,
    /// Whether it breaks off instead of ending.
    breaks: bool,
}

impl RequestStream for Given {
    fn open(&self, drive: &DriveInfo, _clone: u32, _seed: Seed) -> Result<Box<dyn RequestSource>, SourceError> {
        assert_eq!(*drive, INFO);
        Ok(Box::new(Given { requests: self.requests.iter().rev().copied().collect(), ..self.clone() }))
    }

    fn is_timed(&self) -> bool {
        self.timed
    }
}

impl RequestSource for Given {
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError> {
        match self.requests.pop() {
            None if self.breaks => Err("line 7 is torn".into()),
            next => Ok(next),
        }
    }

    fn notes(&self) -> Vec<String> {
        vec!["two were moved".to_owned()]
    }
}

fn at(us: u64, direction: Direction, bytes: u64) -> TimedRequest {
    TimedRequest::new(Span::from_us(us), Request { direction, offset: 0, bytes })
}

fn run(given: Given, workload: impl Fn(Workload) -> Workload) -> (Outcome, Vec<(u64, u8, u32)>) {
    run_with(None, given, workload)
}

/// As [`run`], on a drive that fails the commands of an opcode.
fn run_with(
    fails: Option<u8>,
    given: Given,
    workload: impl Fn(Workload) -> Workload,
) -> (Outcome, Vec<(u64, u8, u32)>) {
    let job = JobSpec { iodepth: 2, source: Some(Source(Arc::new(given))), ..JobSpec::default() };
    let workload = workload(Workload::of(job));
    assert_eq!(workload.check_on(1 << 29, 512), Ok(()));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let service = TenMicroseconds { sim: sim.clone(), asked: RefCell::default(), fails };
    let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, service);
    let runner = Runner::new(&sim, &workload, Box::new(()));
    let outcome = executor.block_on(runner.run(&workload, Seed::new(1), |_, _| drive.connect())).expect("it ends");
    (outcome, drive.service().asked.take())
}

fn three(timed: bool, breaks: bool) -> Given {
    let requests = vec![
        at(1, Direction::Read, 4_096),
        at(5, Direction::Write, 9_216),
        at(5, Direction::Flush, 0),
        at(90, Direction::Trim, 1 << 20),
    ];
    Given { requests, timed, breaks }
}

/// A write with a flush before it begins when the flush ends, and each has its own latency; other requests do not wait.
#[test]
fn a_request_after_a_flush_is_sent_when_the_flush_has_ended() {
    let after = |us, bytes| TimedRequest { after_flush: true, ..at(us, Direction::Fua, bytes) };
    let requests = vec![
        at(5, Direction::Flush, 0),
        after(5, 4_096),
        at(6, Direction::Read, 4_096),
        at(40, Direction::Flush, 0),
        // The flush has ended: nothing to wait for.
        after(60, 4_096),
    ];
    let given = Given { requests, timed: true, breaks: false };
    let (outcome, asked) = run(given.clone(), |workload| workload);
    let order: Vec<_> = asked.iter().map(|(ns, opcode, _)| (ns / 1_000, *opcode)).collect();
    assert_eq!(order, [(5, 0), (6, 2), (15, 1), (40, 0), (60, 1)]);
    assert_eq!((outcome.requests(), outcome.tally(Direction::Fua).latency.max()), (5, Span::from_us(10)));
    // One at a time, all follow each other.
    let (_, asked) = run(Given { timed: false, ..given }, |workload| workload);
    let order: Vec<_> = asked.iter().map(|(ns, opcode, _)| (ns / 1_000, *opcode)).collect();
    assert_eq!(order, [(0, 0), (10, 1), (10, 2), (20, 0), (30, 1)]);
}

/// A write whose flush fails is not sent, and fails as the flush did, as in Linux: whether it waits for the flush, or comes after its end.
#[test]
fn a_request_fails_with_the_flush_before_it() {
    let write = |us| TimedRequest { after_flush: true, ..at(us, Direction::Fua, 4_096) };
    for (timed, iodepth, us) in [(true, 2, 5), (true, 2, 30), (false, 2, 5), (false, 1, 5)] {
        let requests = vec![
            at(5, Direction::Flush, 0),
            write(us),
            at(60, Direction::Read, 4_096),
            // It follows no flush.
            at(70, Direction::Write, 4_096),
        ];
        let given = Given { requests, timed, breaks: false };
        let at_depth = |workload: Workload| {
            let jobs = workload.jobs.into_iter().map(|job| JobSpec { iodepth, ..job });
            Workload { jobs: jobs.collect(), ..workload }
        };
        let (outcome, asked) = run_with(Some(0), given, at_depth);
        let shown = format!("timed {timed}, {iodepth} at a time, the write at {us} us");
        assert_eq!(asked.iter().map(|(_, opcode, _)| *opcode).collect::<Vec<_>>(), [0, 2, 1], "{shown}");
        let failed = outcome.failures().map(|(_, count)| count).sum::<u64>();
        assert_eq!((outcome.requests(), failed), (2, 2), "{shown}");
    }
}

#[test]
fn timed_requests_arrive_at_their_times_whatever_is_outstanding() {
    let (outcome, asked) = run(three(true, false), |workload| workload);
    // 18 blocks are three commands of 8 at most; a range to deallocate is one whatever its length.
    assert_eq!(asked, [(1_000, 2, 8), (5_000, 1, 8), (5_000, 1, 8), (5_000, 1, 2), (5_000, 0, 0), (90_000, 9, 0)]);
    assert_eq!((outcome.requests(), outcome.bytes()), (4, 4_096 + 9_216 + (1 << 20)));
    assert_eq!(outcome.elapsed(), Span::from_us(99));
    assert!(Direction::DISTINCT.iter().all(|way| outcome.tally(*way).latency.max() == Span::from_us(10)));
    assert_eq!((outcome.notes, outcome.broken), (vec!["two were moved".to_owned()], None));
}

#[test]
fn without_times_so_many_are_outstanding() {
    let (outcome, asked) = run(three(false, false), |workload| workload);
    let times: Vec<u64> = asked.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [0, 0, 0, 0, 10_000, 10_000]);
    assert_eq!(outcome.requests(), 4);
}

#[test]
fn limits_and_warm_up_count() {
    let limited = |workload| Workload { limit: Limit::Requests(2), warmup: 1, ..workload };
    let (outcome, asked) = run(three(true, false), limited);
    assert_eq!((outcome.requests(), asked.len()), (2, 5));
    assert_eq!(outcome.tally(Direction::Read).latency.count(), 0);
}

#[test]
fn a_source_that_breaks_off_ends_the_run_and_is_told_of() {
    for timed in [true, false] {
        let (outcome, asked) = run(three(timed, true), |workload| workload);
        assert_eq!(outcome.broken.as_deref(), Some("line 7 is torn"));
        assert_eq!((outcome.requests(), asked.len()), (4, 6));
    }
}
