//! A host with its own controller, for tests of interactions between hosts of one subsystem.

use std::rc::Rc;

use nandscape_sim::Sim;
use nandscape_wire_nvme::register::{self, CC_EN};
use nandscape_wire_nvme::reservation::Keys;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::conformance::Host;
use crate::controller::{Controller, QueueId};
use crate::mem::HostMem;
use crate::queue_drive::QueueDrive;
use crate::subsystem::{HostIdentity, Subsystem, TransportModel};

/// CC.EN, and entries of 64 and 16 bytes.
pub const ENABLED: u32 = CC_EN | 6 << 16 | 4 << 20;
/// Entries of its queues.
const ENTRIES: u32 = 32;

/// See the file.
pub struct Tenant {
    /// Its controller, which is enabled.
    pub controller: Rc<dyn Controller>,
    /// Its admin queue.
    pub admin: Host,
    /// I/O queue 1.
    pub io: Host,
}

impl Tenant {
    /// A host whose identifier is 16 times `id`; 0 is none.
    ///
    /// # Panics
    /// When the subsystem takes no more hosts.
    pub fn new(sim: &Sim, subsystem: &dyn Subsystem, id: u8) -> Tenant {
        let identity = HostIdentity {
            hostid: [id; 16],
            hostnqn: format!("nqn.2026-11.org.example:{id}"),
            ..HostIdentity::default()
        };
        let controller =
            subsystem.new_controller(identity, TransportModel::Message).expect("there is a controller left");
        controller.set_register(register::CC, ENABLED);
        let pair = |id| QueueDrive::new(sim, controller.clone(), QueueId(id), ENTRIES).expect("the pair is free");
        let (admin, io) = (Host::new(sim, pair(0)), Host::new(sim, pair(1)));
        Tenant { controller, admin, io }
    }

    /// A reservation command on a namespace, with two keys.
    ///
    /// # Errors
    /// Its status, without More and Do Not Retry.
    pub async fn reserve(
        &self,
        opcode: IoOpcode,
        nsid: u32,
        cdw10: u32,
        (current, other): (u64, u64),
    ) -> Result<(), Status> {
        let entry = SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::io(opcode, nsid) };
        let keys = Keys { current: current.into(), other: other.into() };
        run(&self.io, entry, HostMem::from_bytes(keys.as_bytes())).await.map(drop)
    }
}

/// Executes a command; dword 0 of its completion.
///
/// # Errors
/// Its status, without More and Do Not Retry.
///
/// # Panics
/// When the drive does not complete it.
pub async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.expect("a command completes");
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}
