//! Device Self-test (Base 5.1.5, 8.1.7): reads blocks of namespaces in the background. The subsystem runs one test at a time.
//! A short test reads places spread over each namespace; an extended test reads everything. The data stays in the drive.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::manage::{self, SelfTestLog, SelfTestResult};
use zerocopy::FromZeros;

use super::NvmSubsystem;
use crate::command_set::{Culprit, Failure};
use crate::engine::Chore;
use crate::namespace::Namespace;

/// Results kept.
const KEPT: usize = 20;
/// Places of a namespace that a short test reads.
const PLACES: u64 = 64;
/// The segment in which data is read.
const SEGMENT: u8 = 1;
/// The minimum bytes per second of an extended test, for its reported duration (EDSTT).
const RATE: u64 = 500_000_000;
/// Firmware time per read, in addition to the flash time. Blocks without data cost no flash time: without this time, a test
/// of an empty drive would run in one instant, and block a live server.
const LOOK: Span = Span::from_us(10);

/// The self-test in progress, and the results of earlier ones.
#[derive(Default)]
pub(crate) struct SelfTests {
    current: RefCell<Option<SelfTest>>,
    results: RefCell<VecDeque<SelfTestResult>>,
    /// Tests begun so far.
    begun: Cell<u64>,
}

#[derive(Clone, Debug)]
struct SelfTest {
    number: u64,
    code: u8,
    namespaces: Vec<u32>,
    /// The number of the controller that began it.
    by: u64,
    percent: u8,
}

impl SelfTests {
    /// Ends the test in progress, if any, with a result.
    pub(crate) fn abort(&self, result: u8, now: Time) {
        if let Some(test) = self.current.borrow_mut().take() {
            self.keep(SelfTestResult { status: test.code << 4 | result, ..SelfTestResult::new_zeroed() }, now);
        }
    }

    /// A controller is reset: its short test is aborted, its extended test continues (Base 8.1.7).
    pub(crate) fn controller_reset(&self, number: u64, now: Time) {
        let is_short = |test: &SelfTest| test.code == manage::SELF_TEST_SHORT && test.by == number;
        if self.current.borrow().as_ref().is_some_and(is_short) {
            self.abort(manage::SELF_TEST_RESET, now);
        }
    }

    /// A namespace is about to be removed or to lose its data.
    pub(crate) fn namespace_changes(&self, nsid: u32, result: u8, now: Time) {
        if self.current.borrow().as_ref().is_some_and(|test| test.namespaces.contains(&nsid)) {
            self.abort(result, now);
        }
    }

    /// Whether a test is still in progress.
    fn is_current(&self, test: &SelfTest) -> bool {
        self.current.borrow().as_ref().is_some_and(|current| current.number == test.number)
    }

    /// Keeps a result, with the time of the end.
    fn keep(&self, result: SelfTestResult, now: Time) {
        let mut results = self.results.borrow_mut();
        results.truncate(KEPT - 1);
        let power_on_hours = (now.ns() / 3_600_000_000_000).into();
        results.push_front(SelfTestResult { power_on_hours, ..result });
    }

    /// The log page.
    pub(crate) fn log(&self) -> SelfTestLog {
        let mut log = SelfTestLog::new_zeroed();
        if let Some(test) = &*self.current.borrow() {
            (log.current, log.completed) = (test.code, test.percent);
        }
        log.results = [SelfTestResult::unused(); KEPT];
        log.results.iter_mut().zip(&*self.results.borrow()).for_each(|(entry, result)| *entry = *result);
        log
    }
}

impl NvmSubsystem {
    /// Begins a self-test of namespaces on behalf of a controller.
    pub(crate) fn begin_self_test(&self, code: u8, namespaces: Vec<u32>, by: u64) -> Result<(), Status> {
        if self.self_tests.current.borrow().is_some() {
            return Err(Status::SELF_TEST_IN_PROGRESS);
        }
        let number = self.self_tests.begun.get() + 1;
        self.self_tests.begun.set(number);
        self.self_tests.current.replace(Some(SelfTest { number, code, namespaces, by, percent: 0 }));
        self.chores.start(Chore::SelfTest(self.handle()));
        Ok(())
    }

    /// The estimated minutes of an extended self-test (EDSTT).
    pub(crate) fn self_test_minutes(&self) -> u16 {
        (self.namespaces.capacity() / RATE / 60 + 1).min(u16::MAX.into()) as u16
    }

    /// Carries out the self-test in progress.
    pub(crate) async fn self_test(&self) {
        let Some(test) = self.self_tests.current.borrow().clone() else { return };
        let mut failure = None;
        for (index, nsid) in test.namespaces.iter().enumerate() {
            failure = self.test_namespace(&test, index, *nsid).await;
            if failure.is_some() {
                break;
            }
        }
        // An aborted test already has its result, and another may have begun.
        if !self.self_tests.is_current(&test) {
            return;
        }
        self.self_tests.current.replace(None);
        let mut result = SelfTestResult::new_zeroed();
        result.status = test.code << 4 | manage::SELF_TEST_PASSED;
        if let Some((nsid, Failure { status, culprit })) = failure {
            let lba = if let Culprit::Block(lba) = culprit { Some(lba) } else { None };
            (result.status, result.segment) = (test.code << 4 | manage::SELF_TEST_SEGMENT_FAILED, SEGMENT);
            (result.nsid, result.lba) = (nsid.into(), lba.unwrap_or_default().into());
            (result.sct, result.sc, result.valid) =
                (status.kind(), status.code(), 0b1101 | u8::from(lba.is_some()) << 1);
        }
        self.self_tests.keep(result, self.sim.now());
    }

    /// Reads blocks of a namespace. Returns the first failure.
    async fn test_namespace(&self, test: &SelfTest, index: usize, nsid: u32) -> Option<(u32, Failure)> {
        let mut slba = 0;
        loop {
            self.power.is_back().await;
            let namespace = self.namespaces.get(nsid).filter(|namespace| slba < namespace.blocks)?;
            let (size, blocks) =
                (namespace.blocks, u64::from(namespace.max_blocks).min(namespace.blocks - slba) as u32);
            let read = self.test_blocks(namespace, slba, blocks).await;
            self.sim.sleep(LOOK).await;
            if !self.self_tests.is_current(test) {
                return None;
            }
            match read {
                Err(failure) if failure.status.meaning() != Status::ABORTED_POWER_LOSS => return Some((nsid, failure)),
                // A loss of power is a reset, which only an extended test survives: it continues when power returns.
                Err(_) if test.code == manage::SELF_TEST_SHORT => {
                    self.self_tests.abort(manage::SELF_TEST_RESET, self.sim.now());
                    return None;
                }
                Err(_) => {}
                Ok(()) if test.code == manage::SELF_TEST_SHORT => slba += (size / PLACES).max(blocks.into()),
                Ok(()) => slba += u64::from(blocks),
            }
            let done = (index as u64 * 100 + slba.min(size) * 100 / size) / test.namespaces.len() as u64;
            if let Some(current) = &mut *self.self_tests.current.borrow_mut() {
                current.percent = done.min(99) as u8;
            }
        }
    }

    /// Reads blocks like a command: a restart after a power cut and a change of the namespace wait for it.
    async fn test_blocks(&self, namespace: Rc<Namespace>, slba: u64, blocks: u32) -> Result<(), Failure> {
        self.slots.begin_background();
        let read = self.set.storage().test(&namespace, slba, blocks).await;
        let is_leaving = namespace.is_leaving();
        drop(namespace);
        if is_leaving {
            self.changes.released();
        }
        self.slots.end_background();
        read
    }
}
