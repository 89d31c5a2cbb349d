//! The drive of a test: the controller of its host, and the internals that tests inspect.

use std::rc::Rc;

use nandscape_device_controller::Front;
use nandscape_device_ftl_page::PageFtl;
use nandscape_drive::{
    Assignments, BlockSizes, CompletionMemory, Controller, DriveInfo, HostIdentity, HostMemory, Names, QueueId,
    SubmissionMemory, Subsystem, TransportModel,
};
use nandscape_sim::Time;
use nandscape_wire_nvme::{Status, SubmissionEntry};

pub(crate) struct TestDrive {
    controller: Rc<dyn Controller>,
    subsystem: Rc<TestSubsystem>,
}

pub(crate) struct TestSubsystem {
    inner: Rc<dyn Subsystem>,
    ftl: Rc<PageFtl>,
}

impl TestDrive {
    pub(crate) fn new(front: &dyn Front, ftl: Rc<PageFtl>) -> TestDrive {
        let subsystem = Rc::new(TestSubsystem { inner: front.subsystem(), ftl });
        TestDrive { controller: front.controller(), subsystem }
    }

    pub(crate) fn subsystem(&self) -> &Rc<TestSubsystem> {
        &self.subsystem
    }
}

impl TestSubsystem {
    pub(crate) fn ftl(&self) -> &PageFtl {
        &self.ftl
    }
}

impl Controller for TestDrive {
    fn info(&self) -> DriveInfo {
        self.controller.info()
    }

    fn info_of(&self, nsid: u32) -> Option<DriveInfo> {
        self.controller.info_of(nsid)
    }

    fn id(&self) -> u16 {
        self.controller.id()
    }

    fn create_queue_pair(
        &self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        self.controller.create_queue_pair(id, submissions, completions)
    }

    fn create_submission_queue(
        &self,
        id: QueueId,
        to: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
    ) -> Result<(), Status> {
        self.controller.create_submission_queue(id, to, submissions)
    }

    fn delete_queue_pair(&self, id: QueueId) -> Result<(), Status> {
        self.controller.delete_queue_pair(id)
    }

    fn attach(&self, host: Rc<dyn HostMemory>) -> Result<(), Status> {
        self.controller.attach(host)
    }

    fn detach(&self) {
        self.controller.detach();
    }

    fn ring_submission(&self, id: QueueId, tail: u16) {
        self.controller.ring_submission(id, tail);
    }

    fn ring_completion(&self, id: QueueId, head: u16) {
        self.controller.ring_completion(id, head);
    }

    fn register(&self, offset: u32) -> u32 {
        self.controller.register(offset)
    }

    fn set_register(&self, offset: u32, value: u32) {
        self.controller.set_register(offset, value);
    }

    fn reset_function(&self) {
        self.controller.reset_function();
    }

    fn set_keep_alive(&self, timeout_ms: u32) {
        self.controller.set_keep_alive(timeout_ms);
    }

    fn set_priority_class(&self, id: QueueId, class: u8) {
        self.controller.set_priority_class(id, class);
    }

    fn refuse(&self, id: QueueId, command: &SubmissionEntry, status: Status) -> Status {
        self.controller.refuse(id, command, status)
    }

    fn abort(&self, id: QueueId, cid: u16) -> bool {
        self.controller.abort(id, cid)
    }
}

impl Subsystem for TestSubsystem {
    fn names(&self) -> &Names {
        self.inner.names()
    }

    fn info(&self) -> DriveInfo {
        self.inner.info()
    }

    fn block_sizes(&self) -> Rc<BlockSizes> {
        self.inner.block_sizes()
    }

    fn new_controller(&self, host: HostIdentity, model: TransportModel) -> Result<Rc<dyn Controller>, Status> {
        self.inner.new_controller(host, model)
    }

    fn report_several(&self) {
        self.inner.report_several();
    }

    fn assign(&self, rules: &Assignments) {
        self.inner.assign(rules);
    }

    fn controllers(&self) -> Vec<u16> {
        self.inner.controllers()
    }

    fn outages(&self) -> Vec<(Time, Time)> {
        self.inner.outages()
    }
}
