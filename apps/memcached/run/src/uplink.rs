//! The uplink of the controller that all drives share: their data passes it first come, first served, each direction by itself.
//!
//! Left out: commands and completions; packets of a large transfer between those of others.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io, Issuer, Node, Refused, Role, Use};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::blocks::BlockWork;

/// See the file.
pub(crate) struct Uplink {
    sim: Sim,
    /// Bytes a second, of each direction.
    bandwidth: u64,
    /// When the last transfer of reads and of writes ends.
    ends: [Cell<Time>; 2],
}

impl Uplink {
    pub(crate) fn new(sim: &Sim, bandwidth: u64) -> Rc<Uplink> {
        let ends = [const { Cell::new(Time::ZERO) }; 2];
        Rc::new(Uplink { sim: sim.clone(), bandwidth: bandwidth.max(1), ends })
    }

    /// Moves bytes in a direction.
    pub(crate) async fn pass(&self, bytes: u64, is_write: bool) {
        let ends = &self.ends[usize::from(is_write)];
        let span = Span::from_ns((u128::from(bytes) * 1_000_000_000 / u128::from(self.bandwidth)) as u64);
        ends.set(ends.get().max(self.sim.now()) + span);
        self.sim.sleep_until(ends.get()).await;
    }
}

/// A node whose commands pass an uplink. It has no views: what they show knows nothing of the uplink.
pub(crate) struct BehindUplink {
    below: Rc<dyn Node>,
    uplink: Rc<Uplink>,
}

impl BehindUplink {
    pub(crate) fn new(uplink: &Rc<Uplink>, below: Rc<dyn Node>) -> Rc<BehindUplink> {
        Rc::new(BehindUplink { below, uplink: uplink.clone() })
    }
}

impl Node for BehindUplink {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    /// Admin commands move little data, and pass at once.
    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let below = self.below.connect(wanted)?;
        Ok(match wanted.role {
            Role::Admin => below,
            Role::Any | Role::Reads | Role::Writes => Behind::new(&self.uplink, below),
        })
    }
}

/// A drive behind an uplink.
struct Behind {
    drive: Rc<dyn Drive>,
    uplink: Rc<Uplink>,
    issuer: Rc<Issuer>,
}

impl Behind {
    fn new(uplink: &Rc<Uplink>, drive: Rc<dyn Drive>) -> Rc<Behind> {
        Rc::new(Behind { drive, uplink: uplink.clone(), issuer: Rc::new(Issuer::new(&uplink.sim)) })
    }
}

impl Drive for Behind {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        let work = IoOpcode(io.command.opcode).block_work();
        let is_write = match work {
            Some(BlockWork::Read) => false,
            Some(BlockWork::Write) => true,
            _ => return self.drive.submit(io),
        };
        let blocks = u64::from(io.command.blocks_in_a_row());
        let bytes = blocks * u64::from(self.drive.info().lba_bytes);
        let (uplink, drive, issuer) = (self.uplink.clone(), self.drive.clone(), self.issuer.clone());
        self.uplink.sim.spawn(async move {
            if is_write {
                uplink.pass(bytes, true).await;
            }
            let completion = issuer.execute(&*drive, io.command, io.mem.clone()).await;
            if !is_write {
                uplink.pass(bytes, false).await;
            }
            io.token.complete(completion);
        });
    }

    /// A command that waits for the uplink is not found.
    fn cancel(&self, _: CommandRef) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Executor;

    use super::*;

    #[test]
    fn transfers_of_a_direction_follow_each_other() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let uplink = Uplink::new(&sim, 1_000_000_000);
        let ran = executor.block_on(async {
            for (bytes, is_write) in [(1_000, false), (2_000, false), (500, true)] {
                let uplink = uplink.clone();
                sim.spawn(async move { uplink.pass(bytes, is_write).await });
            }
            // The three have begun by then.
            sim.sleep(Span::from_ns(1)).await;
            uplink.pass(3_000, false).await;
            let reads = sim.now();
            uplink.pass(1_000, true).await;
            (reads.ns(), sim.now().ns())
        });
        assert_eq!(ran, Ok((6_000, 7_000)));
    }
}
