//! Class, tenant and deadline of a job, for a drive's arbiter and a host's block layer. Class and tenant are in CDW2 of each of its
//! commands ([`Attributes`]), the deadline in CDW3 of its Reads and Writes. Rules give both to jobs that state none, and to loads.
//!
//! Left out: classes and deadlines that change within a job.

use std::rc::Rc;

use nandscape_drive::{Assignments, CommandRef, Drive, DriveInfo, HostIdentity, Io, QueueId, TransportModel};
use nandscape_sim::Span;
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::vendor::Attributes;

use crate::spec::{JobSpec, Workload};

/// The longest deadline: 32 bits of microseconds.
const LONGEST: Span = Span::from_us(u32::MAX as u64);

/// A drive whose commands have a class, a tenant and a deadline.
struct Attributed {
    below: Rc<dyn Drive>,
    attributes: Attributes,
    /// Microseconds; 0 is none.
    deadline: u32,
}

impl Drive for Attributed {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, mut io: Io) {
        io.command.cdw2 = (io.command.cdw2.get() | self.attributes.0).into();
        if [IoOpcode::READ, IoOpcode::WRITE].contains(&IoOpcode(io.command.opcode)) && self.deadline > 0 {
            io.command.cdw3 = self.deadline.into();
        }
        self.below.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.below.cancel(command)
    }
}

/// A drive whose commands have these; the drive unchanged if there are none.
pub(crate) fn attributed(drive: Rc<dyn Drive>, attributes: Attributes, deadline: u32) -> Rc<dyn Drive> {
    match (attributes, deadline) {
        (Attributes(0), 0) => drive,
        (attributes, deadline) => Rc::new(Attributed { below: drive, attributes, deadline }),
    }
}

impl Workload {
    /// Gives commands that state no class or tenant those of rules. Its jobs and loads are clients in the drive's process; queue 1 is
    /// that of the first job's first clone, and the loads' follow those of the jobs. Rules of an earlier call come first.
    pub fn assign(&mut self, rules: &Assignments) {
        let rules = rules.of_client(&HostIdentity::default(), TransportModel::InProcess);
        if rules.is_empty() {
            return;
        }
        let mut queues = (1..=u16::MAX).map(QueueId);
        for job in &mut self.jobs {
            let queues = queues.by_ref().take(job.numjobs as usize);
            let clones = (0..).zip(queues);
            let complete = |(clone, queue)| rules.complete(queue, job.namespace, job.attributes_of(clone));
            job.assigned = clones.map(complete).collect();
        }
        for (load, queue) in self.loads.iter_mut().zip(queues) {
            load.assigned = rules.complete(queue, 1, load.assigned);
        }
    }
}

impl JobSpec {
    /// A drive for one of its clones, whose commands have the job's class, tenant and deadline.
    pub(crate) fn attributed(&self, clone: u32, drive: Rc<dyn Drive>) -> Rc<dyn Drive> {
        let deadline = self.deadline.map_or(0, |deadline| deadline.ns().div_ceil(1_000) as u32);
        attributed(drive, self.attributes_of(clone), deadline)
    }

    fn attributes_of(&self, clone: u32) -> Attributes {
        let stated = Attributes::of(self.class, self.tenant);
        self.assigned.get(clone as usize).copied().unwrap_or(stated)
    }

    /// The class and the tenant of its commands; `None` if rules give its clones different ones.
    pub(crate) fn attributes(&self) -> Option<Attributes> {
        let first = self.attributes_of(0);
        (1..self.numjobs).all(|clone| self.attributes_of(clone) == first).then_some(first)
    }

    /// Checks them.
    ///
    /// # Errors
    /// The one that is out of range, with the valid range.
    pub(crate) fn check_attributes(&self) -> Result<(), String> {
        if let Some(deadline) = self.deadline
            && !(Span::from_us(1)..=LONGEST).contains(&deadline)
        {
            return Err(format!("deadline = {deadline} is out of range; from 1us to {LONGEST} is valid"));
        }
        match (self.class, self.tenant) {
            (16.., _) => Err(format!("class = {} is out of range; from 0 to 15 is valid", self.class)),
            (_, 4_096..) => Err(format!("tenant = {} is out of range; from 0 to 4095 is valid", self.tenant)),
            _ => Ok(()),
        }
    }

    /// All in words, after a space; empty without any.
    pub fn describe_attributes(&self) -> String {
        let word = |name: &str, value: u16| if value == 0 { String::new() } else { format!(" {name}={value}") };
        let deadline = self.deadline.map_or_else(String::new, |deadline| format!(" deadline={deadline}"));
        match self.attributes() {
            Some(all) => word("class", all.class().into()) + &word("tenant", all.tenant()) + &deadline,
            None => " class and tenant by queue".to_owned() + &deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
    use nandscape_sim::{Executor, Seed, Span};

    use super::*;
    use crate::file::parse_table;
    use crate::run::Runner;

    #[derive(Default)]
    struct Noting(RefCell<Vec<(u32, u32)>>);

    impl Service for Noting {
        fn begin(&self, io: &Io) -> Span {
            self.0.borrow_mut().push((io.command.cdw2.get(), io.command.cdw3.get()));
            Span::from_us(10)
        }
    }

    #[test]
    fn commands_have_the_class_the_tenant_and_the_deadline_of_their_job() {
        let text = "version = 1\nio_count = 40\n[[job]]\nname = \"a\"\nrw = \"randrw\"\nclass = 3\ntenant = 9\ndeadline = \"1500ns\"\n\
                    [[job]]\nname = \"b\"\nrw = \"write\"\n";
        let workload = parse_table("w", text.parse().unwrap()).unwrap();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Noting::default());
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let outcome = executor.block_on(runner.run(&workload, Seed::new(1), |_, _| drive.connect())).unwrap();
        assert_eq!(outcome.flows.iter().map(|flow| (flow.class, flow.tenant)).collect::<Vec<_>>(), [(3, 9), (0, 0)]);
        assert_eq!(workload.jobs[0].describe_attributes(), " class=3 tenant=9 deadline=1500ns");
        let given = drive.service().0.take();
        let count = |dwords: (u32, u32)| given.iter().filter(|one| **one == dwords).count();
        // Deadlines are whole microseconds, and none is shortened.
        let (with, without) = (count((0x93, 2)), count((0, 0)));
        assert!(with > 0 && without > 0 && with + without == given.len(), "{given:x?}");
    }

    #[test]
    fn rules_give_jobs_and_loads_what_they_do_not_state() {
        let text = "version = 1\nio_count = 400\n[[job]]\nname = \"a\"\nrw = \"read\"\nclass = 3\nnumjobs = 2\n\
                    [[job]]\nname = \"b\"\nrw = \"read\"\nnumjobs = 2\n[[job]]\nname = \"c\"\nrw = \"write\"\nnamespace = 2\n";
        let mut workload = parse_table("w", text.parse().unwrap()).unwrap();
        workload
            .assign(&"class=9 queue=4,class=15,tenant=8 namespace=2,tenant=7 via=vfio-user,tenant=1".parse().unwrap());
        let words: Vec<String> = workload.jobs.iter().map(JobSpec::describe_attributes).collect();
        assert_eq!(words, [" class=3", " class and tenant by queue", " class=9 tenant=7"]);
        // The rules of a drive complete those of a command line.
        let mut both = workload.clone();
        both.assign(&"queue=1,class=5,tenant=2 class=6".parse().unwrap());
        let own =
            |job: &JobSpec| [0, 1].map(|clone| (job.attributes_of(clone).class(), job.attributes_of(clone).tenant()));
        assert_eq!([own(&both.jobs[0]), own(&both.jobs[1])], [[(3, 2), (3, 0)], [(9, 0), (15, 8)]]);
        // A job alone keeps what it has among the others.
        assert_eq!(workload.alone(2, &[1, 1, 1]).unwrap().jobs[0].describe_attributes(), words[2]);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Noting::default());
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let outcome = executor.block_on(runner.run(&workload, Seed::new(1), |_, _| drive.connect())).unwrap();
        assert_eq!(
            outcome.flows.iter().map(|flow| (flow.class, flow.tenant)).collect::<Vec<_>>(),
            [(3, 0), (0, 0), (9, 7)]
        );
        let given: std::collections::BTreeSet<u32> =
            drive.service().0.take().into_iter().map(|(cdw2, _)| cdw2).collect();
        assert_eq!(given.into_iter().collect::<Vec<_>>(), [3, 9, 0x79, 0x8f]);
        let mut workload = crate::load("ycsb-a").unwrap();
        workload.assign(&"queue=1,class=4".parse().unwrap());
        workload.assign(&"queue=1,class=5,tenant=6".parse().unwrap());
        assert_eq!(workload.loads[0].assigned, Attributes::of(4, 6));
    }

    #[test]
    fn values_out_of_range_are_named() {
        let refused = |line: &str| {
            let text = format!("version = 1\n[[job]]\nrw = \"read\"\n{line}\n");
            parse_table("w", text.parse().unwrap()).unwrap_err().to_string()
        };
        assert!(refused("class = 16").contains("class = 16 is out of range; from 0 to 15 is valid"));
        assert!(refused("deadline = \"999ns\"").contains("deadline = 999ns is out of range; from 1us to 4294967295us"));
        assert!(refused("deadline = \"soon\"").contains("a time such as"));
        assert!(refused("tenant = 4096").contains("tenant = 4096 is out of range; from 0 to 4095 is valid"));
    }
}
