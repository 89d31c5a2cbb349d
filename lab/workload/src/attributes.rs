//! Class, tenant and deadline of a job, for a drive's arbiter and a host's block layer. Class and tenant are in CDW2 of each of its
//! commands ([`Attributes`]), the deadline in CDW3 of its Reads and Writes.
//!
//! Left out: classes and deadlines that change within a job.

use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io};
use nandscape_sim::Span;
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::vendor::Attributes;

use crate::spec::JobSpec;

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

impl JobSpec {
    /// A drive for the job: its commands have the job's class, tenant and deadline. A job without any gets the drive unchanged.
    pub(crate) fn attributed(&self, drive: Rc<dyn Drive>) -> Rc<dyn Drive> {
        let deadline = self.deadline.map_or(0, |deadline| deadline.ns().div_ceil(1_000) as u32);
        match (Attributes::of(self.class, self.tenant), deadline) {
            (Attributes(0), 0) => drive,
            (attributes, deadline) => Rc::new(Attributed { below: drive, attributes, deadline }),
        }
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
        word("class", self.class.into()) + &word("tenant", self.tenant) + &deadline
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
