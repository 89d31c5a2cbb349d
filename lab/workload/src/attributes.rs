//! Class and tenant of a job. Both are in CDW2 of each of its commands, for a drive's arbiter and a host's block layer
//! ([`Attributes`]).
//!
//! Left out: classes that change within a job.

use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io};
use nandscape_wire_nvme::vendor::Attributes;

use crate::spec::JobSpec;

/// A drive whose commands have a class and a tenant.
struct Attributed {
    below: Rc<dyn Drive>,
    attributes: Attributes,
}

impl Drive for Attributed {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, mut io: Io) {
        io.command.cdw2 = (io.command.cdw2.get() | self.attributes.0).into();
        self.below.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.below.cancel(command)
    }
}

impl JobSpec {
    /// A drive for the job: its commands have the job's class and tenant. A job without either gets the drive unchanged.
    pub(crate) fn attributed(&self, drive: Rc<dyn Drive>) -> Rc<dyn Drive> {
        match Attributes::of(self.class, self.tenant) {
            Attributes(0) => drive,
            attributes => Rc::new(Attributed { below: drive, attributes }),
        }
    }

    /// Checks both.
    ///
    /// # Errors
    /// The one that is out of range, with the valid range.
    pub(crate) fn check_attributes(&self) -> Result<(), String> {
        match (self.class, self.tenant) {
            (16.., _) => Err(format!("class = {} is out of range; from 0 to 15 is valid", self.class)),
            (_, 4_096..) => Err(format!("tenant = {} is out of range; from 0 to 4095 is valid", self.tenant)),
            _ => Ok(()),
        }
    }

    /// Both in words, after a space; empty without either.
    pub fn describe_attributes(&self) -> String {
        let word = |name: &str, value: u16| if value == 0 { String::new() } else { format!(" {name}={value}") };
        word("class", self.class.into()) + &word("tenant", self.tenant)
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
    struct Noting(RefCell<Vec<u32>>);

    impl Service for Noting {
        fn begin(&self, io: &Io) -> Span {
            self.0.borrow_mut().push(io.command.cdw2.get());
            Span::from_us(10)
        }
    }

    #[test]
    fn commands_have_the_class_and_the_tenant_of_their_job() {
        let text = "version = 1\nio_count = 40\n[[job]]\nname = \"a\"\nrw = \"randrw\"\nclass = 3\ntenant = 9\n\
                    [[job]]\nname = \"b\"\nrw = \"write\"\n";
        let workload = parse_table("w", text.parse().unwrap()).unwrap();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Noting::default());
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let outcome = executor.block_on(runner.run(&workload, Seed::new(1), |_, _| drive.connect())).unwrap();
        assert_eq!(outcome.flows.iter().map(|flow| (flow.class, flow.tenant)).collect::<Vec<_>>(), [(3, 9), (0, 0)]);
        let cdw2 = drive.service().0.take();
        let count = |value: u32| cdw2.iter().filter(|one| **one == value).count();
        assert!(count(0x93) > 0 && count(0) > 0 && count(0x93) + count(0) == cdw2.len(), "{cdw2:x?}");
    }

    #[test]
    fn values_out_of_range_are_named() {
        let refused = |line: &str| {
            let text = format!("version = 1\n[[job]]\nrw = \"read\"\n{line}\n");
            parse_table("w", text.parse().unwrap()).unwrap_err().to_string()
        };
        assert!(refused("class = 16").contains("class = 16 is out of range; from 0 to 15 is valid"));
        assert!(refused("tenant = 4096").contains("tenant = 4096 is out of range; from 0 to 4095 is valid"));
    }
}
