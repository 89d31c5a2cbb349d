//! An NVM subsystem (Base 3.1): one drive with any number of controllers over the same namespaces. Each host with
//! queues gets its own controller, so a reset by one host does not affect the others.
//!
//! Left out: the state that controllers share, which the drive keeps.

use std::rc::Rc;

use nandscape_sim::Time;
use nandscape_wire_nvme::Status;

use crate::assign::Assignments;
use crate::block_sizes::BlockSizes;
use crate::controller::Controller;
use crate::drive::DriveInfo;

/// The identifier of the controller that hosts in this process use (CNTLID of Identify Controller).
pub const IN_PROCESS_CONTROLLER: u16 = 1;

/// The names of a subsystem, constant while the drive exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// NVMe Qualified Name, at most 223 bytes.
    pub nqn: String,
    /// Serial number, at most 20 ASCII characters.
    pub serial: String,
    /// Model, at most 40 ASCII characters.
    pub model: String,
    /// Firmware revision, at most 8 ASCII characters.
    pub firmware: String,
}

/// The names of a host. A host that does not name itself has the default: zeros and an empty name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HostIdentity {
    /// Host Identifier (HOSTID, Base 5.1.25.1.28), in byte order of memory. Zeros are no identifier.
    pub hostid: [u8; 16],
    /// The host's NVMe Qualified Name; empty if it has none.
    pub hostnqn: String,
    /// The PCI function that the host uses, by its number within the drive: hosts connect and leave, the function
    /// stays.
    pub function: Option<u16>,
}

/// How commands and data pass between a host and its controller (Base 2.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TransportModel {
    /// The host calls the controller in this process and hands its memory over.
    InProcess,
    /// Queues and data are in memory that the controller reaches by address, as over PCIe. The host creates I/O
    /// queues by admin commands.
    Memory,
    /// Capsules carry commands and data, as over TCP. The host creates queues by Connect, for which the transport calls
    /// [`Controller::create_queue_pair`].
    Message,
}

/// An NVM subsystem.
pub trait Subsystem {
    /// Its names.
    fn names(&self) -> &Names;

    /// The properties of the drive.
    fn info(&self) -> DriveInfo;

    /// The bytes of a logical block of each namespace, always current.
    fn block_sizes(&self) -> Rc<BlockSizes>;

    /// A new controller for a host, disabled (CC.EN is 0). It exists until the last reference to it is dropped. Its
    /// owner first calls [`Controller::detach`]; commands under way keep the controller until they have ended.
    ///
    /// # Errors
    /// Connect: Controller Busy when the subsystem has no controller left.
    fn new_controller(&self, host: HostIdentity, model: TransportModel) -> Result<Rc<dyn Controller>, Status>;

    /// From now on, all controllers report multiple controllers (CMIC) and shared namespaces (NMIC). Controllers of
    /// message-based transports always do.
    fn report_several(&self);

    /// From now on, commands that state no class or tenant get those of these rules, on all controllers. They replace earlier rules.
    fn assign(&self, rules: &Assignments);

    /// The identifiers of the controllers that exist, in ascending order.
    fn controllers(&self) -> Vec<u16>;

    /// Outages after power cuts, the newest 1,024: from the cut until commands are fetched again; of one that has not ended,
    /// until now.
    fn outages(&self) -> Vec<(Time, Time)>;
}
