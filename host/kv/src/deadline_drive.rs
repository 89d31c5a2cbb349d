//! Deadlines of reads on a drive that only knows fast-fail reads (TeaFA): the drive tells how long its own work (collections, programs of
//! buffered data) will keep the read from the flash. Up to the deadline the read waits; beyond it, it is rejected.
//!
//! Left out: waits behind other reads, which such a drive does not tell, and predictions of a host of its own. Reads with a deadline
//! cannot be cancelled.

use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io, Issuer};
use nandscape_sim::Sim;
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL};

/// See the module.
pub struct DeadlineDrive {
    sim: Sim,
    below: Rc<dyn Drive>,
    issuer: Rc<Issuer>,
}

impl DeadlineDrive {
    /// Over a drive that honours fast-fail.
    pub fn new(sim: &Sim, below: Rc<dyn Drive>) -> Rc<DeadlineDrive> {
        Rc::new(DeadlineDrive { sim: sim.clone(), below, issuer: Rc::new(Issuer::new(sim)) })
    }
}

impl Drive for DeadlineDrive {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let deadline = io.command.cdw3.get();
        if io.command.opcode != IoOpcode::READ.0 || deadline == 0 {
            return self.below.submit(io);
        }
        let (below, issuer, sim) = (self.below.clone(), self.issuer.clone(), self.sim.clone());
        self.sim.spawn(async move {
            let begun = sim.now();
            let Io { mut command, mem, token } = io;
            command.cdw3 = 0.into();
            let plain = command;
            command.cdw2 = (command.cdw2.get() | FAST_FAIL).into();
            let first = issuer.execute(&*below, command, mem.clone()).await;
            let mut ended = match first.status.meaning() {
                BUSY if first.dw0 <= deadline => issuer.execute(&*below, plain, mem).await,
                _ => first,
            };
            ended.breakdown.charge_rest("deadline", sim.now() - begun);
            token.complete(ended);
        });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.below.cancel(command)
    }
}
